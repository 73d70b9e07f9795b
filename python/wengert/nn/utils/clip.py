"""Bounds on gradients, in place."""

import math
from collections.abc import Iterable

import wengert as wg
from wengert import _core
from wengert._core import Tensor


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return _core._gradients([parameters] if isinstance(parameters, Tensor) else parameters)


def get_total_norm(
    tensors: Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    """The p-norm of all elements of all tensors together, a 0-d tensor; 0 for none.

    Raises:
        RuntimeError: if it is not finite and `error_if_nonfinite`.
    """
    norm_type = float(norm_type)
    if norm_type <= 0.0:
        raise ValueError(f"norm_type must be positive or inf, got {norm_type}")
    tensors = list(tensors)
    with wg.no_grad():
        # One pass over all tensors, where they are plain values.
        squares = _core._sum_squares(tensors) if norm_type == 2.0 else None
        total = _norm_of_norms(tensors, norm_type) if squares is None else squares.sqrt()
    if error_if_nonfinite and not math.isfinite(float(total)):
        raise RuntimeError(
            f"the total norm of the gradients is {float(total)}; look for the loss or layer that overflowed, "
            "or pass error_if_nonfinite=False to clip anyway"
        )
    return total


def _norm_of_norms(tensors: list[Tensor], p: float) -> Tensor:
    parts = [_power(tensor.detach(), p) for tensor in tensors]
    if not parts:
        return wg.tensor(0.0)
    # One float32 number per tensor; gradients on several devices meet on the first one's.
    device = parts[0].device
    together = wg.stack([part.to(device) for part in parts])
    return together.max() if p == math.inf else together.sum() ** (1.0 / p)


def _power(x: Tensor, p: float) -> Tensor:
    x = x.to(wg.float32) if x.dtype.itemsize < 4 else x
    if x.numel() == 0:
        return wg.zeros((), dtype=x.dtype, device=x.device)
    if p == math.inf:
        return x.abs().max()
    return x.square().sum() if p == 2.0 else (x.abs() ** p).sum()


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scales all gradients by one factor so that their total norm is at most `max_norm` (Pascanu et al.
    2012).

    Returns:
        The total norm before clipping, a 0-d tensor.

    Raises:
        RuntimeError: if the norm is not finite and `error_if_nonfinite`; the gradients are untouched then.
    """
    grads = _gradients(parameters)
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    _clip(grads, max_norm, total)
    return total


def clip_grads_with_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor) -> None:
    """`clip_grad_norm_` with a total norm that is known already, such as one over several programs."""
    _clip(_gradients(parameters), max_norm, total_norm)


def _clip(grads: list[Tensor], max_norm: float, total: Tensor) -> None:
    """Scales gradients of this total norm to at most `max_norm`."""
    with wg.no_grad():
        # No host round trip: the factor is 1 where nothing is to be clipped.
        factor = (float(max_norm) / (total + 1e-6)).clamp(max=1.0)
        if not _core._scale(grads, factor):
            for grad in grads:
                grad.mul_(factor.to(grad.device).to(grad.dtype))


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Clamps every element of every gradient to [-clip_value, clip_value]."""
    bound = float(clip_value)
    if bound < 0:
        raise ValueError(f"clip_grad_value_: clip_value must not be negative, got {clip_value}")
    with wg.no_grad():
        for grad in _gradients(parameters):
            grad.copy_(grad.clamp(-bound, bound))
