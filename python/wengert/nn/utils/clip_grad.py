"""Bounds on gradients, in place."""

import math
from collections.abc import Iterable

import wengert as wg
from wengert import _core
from wengert._core import Tensor

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return _core._gradients([parameters] if isinstance(parameters, Tensor) else parameters)


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Returns the p-norm of the p-norms of all `tensors`, a 0-d tensor; 0 for none.

    p is `norm_type`. Above 0 it is the p-norm of all elements together, `inf` the largest, `-inf` the
    smallest absolute value; 0 counts the tensors that have elements other than 0. `foreach` is accepted and
    changes nothing.

    Raises:
        ValueError: for NaN as the norm, or an empty tensor where p is negative.
        RuntimeError: if the norm is not finite and `error_if_nonfinite`.

    Example:
        >>> wg.nn.utils.get_total_norm([wg.tensor([3.0]), wg.tensor([4.0])])
        tensor(5.)
    """
    p = float(norm_type)
    if math.isnan(p):
        raise ValueError("norm_type must be a number or inf, got nan")
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    with wg.no_grad():
        # One pass over all tensors of a device, where they are plain values.
        norms = _core._norms(tensors) if p == 2.0 else None
        if norms is None:
            norms = [_norm(tensor, p) for tensor in tensors]
        total = _norm_of_norms(norms, p)
    if error_if_nonfinite and not math.isfinite(float(total)):
        raise RuntimeError(
            f"the total norm of the gradients is {float(total)}; look for the loss or layer that overflowed, "
            "or pass error_if_nonfinite=False to clip anyway"
        )
    return total


def _norm_of_norms(norms: list[Tensor], p: float) -> Tensor:
    """The p-norm of numbers, one per tensor or device, on the device of the first."""
    if not norms:
        return wg.tensor(0.0)
    # The norm of one number is that number, except that norm 0 counts it.
    if len(norms) == 1 and p != 0.0:
        return norms[0]
    return wg.stack([norm.to(norms[0].device) for norm in norms]).norm(p)


def _norm(x: Tensor, p: float) -> Tensor:
    """The p-norm of one tensor, in float32 at least; 0 of an empty one where the norm is the largest
    value."""
    x = x.detach()
    if x.numel() == 0 and p < 0.0:
        raise ValueError(
            f"norm_type {p:g}: a tensor of shape {tuple(x.shape)} has no elements, so no such norm"
        )
    if x.numel() == 0 and math.isinf(p):
        return wg.zeros((), dtype=x.dtype, device=x.device)
    return (x.to(wg.float32) if x.dtype.itemsize < 4 else x).norm(p)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales all gradients by one factor so that their total norm is at most `max_norm` (Pascanu et al.
    2012).

    Args:
        parameters: one tensor or several; those without a gradient are passed over.
        max_norm: the bound.
        norm_type: the exponent of the norm, see `get_total_norm`.
        error_if_nonfinite: raise where the norm is infinite or NaN.
        foreach: accepted; it changes nothing.

    Returns:
        The total norm before clipping, a 0-d tensor.

    Raises:
        RuntimeError: if the norm is not finite and `error_if_nonfinite`; the gradients are untouched then.

    Example:
        >>> w = wg.tensor([3.0, 4.0], requires_grad=True)
        >>> (w * w).sum().backward()
        >>> wg.nn.utils.clip_grad_norm_([w], max_norm=1.0), w.grad
        (tensor(10.), tensor([0.6, 0.8]))
    """
    grads = _gradients(parameters)
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    _clip(grads, max_norm, total)
    return total


#: The same, by PyTorch's older name.
clip_grad_norm = clip_grad_norm_


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scales the gradients of `parameters` as `clip_grad_norm_` does, by a `total_norm` that is known
    already.

    It may be one over several programs. The factor is `max_norm / (total_norm + 1e-6)`, at most 1. `foreach`
    is accepted and changes nothing.

    Example:
        >>> w = wg.tensor([3.0, 4.0], requires_grad=True)
        >>> (w * w).sum().backward()
        >>> wg.nn.utils.clip_grads_with_norm_([w], 1.0, wg.tensor(20.0))
        >>> w.grad
        tensor([0.3, 0.4])
    """
    _clip(_gradients(parameters), max_norm, total_norm)


def _clip(grads: list[Tensor], max_norm: float, total: Tensor) -> None:
    """Scales gradients of this total norm to at most `max_norm`."""
    with wg.no_grad():
        # No host round trip: the factor is 1 where nothing is to be clipped.
        factor = (float(max_norm) / (total + 1e-6)).clamp(max=1.0)
        if not _core._scale(grads, factor):
            for grad in grads:
                grad.mul_(factor.to(grad.device).to(grad.dtype))


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Clamps every element of every gradient of `parameters` to [-clip_value, clip_value].

    `foreach` is accepted and changes nothing.

    Example:
        >>> w = wg.tensor([0.2, 4.0], requires_grad=True)
        >>> (w * w).sum().backward()
        >>> wg.nn.utils.clip_grad_value_([w], 1.0)
        >>> w.grad
        tensor([0.4, 1.0])
    """
    bound = float(clip_value)
    if bound < 0:
        raise ValueError(f"clip_grad_value_: clip_value must not be negative, got {clip_value}")
    with wg.no_grad():
        for grad in _gradients(parameters):
            grad.copy_(grad.clamp(-bound, bound))
