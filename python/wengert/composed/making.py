"""New tensors from numbers and arrays."""

from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert._types import DeviceLike, DTypeLike

from ._method import method

__all__ = ["asarray", "linspace", "prelu", "scalar_tensor"]


@method
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Returns `x` where positive, else `weight * x`, with one slope or one per channel (axis 1).

    Example:
        >>> wg.prelu(wg.tensor([-2.0, 3.0]), wg.tensor(0.5))
        tensor([-1.,  3.])
    """
    from wengert.nn.functional import prelu as function

    return function(input, weight)


def asarray(
    obj: Any,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Makes a tensor of anything that is one, an array, or nested lists of numbers; shares memory where it can.

    Args:
        copy: True always copies, False raises where a copy would be needed.

    Example:
        >>> wg.asarray([1.0, 2.0])
        tensor([1., 2.])
    """
    out = _core.as_tensor(obj, dtype, device, copy=copy)
    return out.detach().requires_grad_() if requires_grad else out


def _is_known(x: Tensor) -> bool:
    """Whether a tensor is a number that nothing is differentiated by."""
    try:
        return not x.requires_grad and x.item() is not None
    except TypeError:
        return False


def linspace(
    start: complex | Tensor,
    end: complex | Tensor,
    steps: int = 100,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns `steps` numbers from `start` to `end`, both included, evenly spaced.

    Args:
        start, end: numbers, or tensors without axes, which the result is a function of where they are
            recorded or belong to a transform. For a dtype of integers they lose their fractions,
            and so do the numbers.

    Raises:
        TypeError: for the dtype bool.

    Example:
        >>> wg.linspace(0, 1, 5)
        tensor([0.00, 0.25, 0.50, 0.75, 1.00])
    """
    ends = [x for x in (start, end) if isinstance(x, Tensor)]
    made: dict[str, Any] = {"dtype": dtype, "device": device}
    if not ends or all(_is_known(x) for x in ends):
        return _core.linspace(start, end, steps, **made, requires_grad=requires_grad)  # type: ignore[arg-type]
    ramp = _core.linspace(0, 1, steps, **made)
    first, last = (x.to(ramp.dtype) if isinstance(x, Tensor) else x for x in (start, end))
    step = last - first
    # From the nearer end, so that both are met exactly.
    return _core.where(ramp < 0.5, first + step * ramp, last - step * (1 - ramp))


def scalar_tensor(
    s: complex | Tensor,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Makes a number a 0-d tensor, of float32 unless told otherwise.

    Example:
        >>> wg.scalar_tensor(2.5)
        tensor(2.5)
    """
    return _core.tensor(s, dtype=dtype or _core.float32, device=device, requires_grad=requires_grad)
