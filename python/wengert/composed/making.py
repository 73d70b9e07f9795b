"""New tensors beside others: of their dtype and device, of other types, and filled by chance."""

from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert._types import DeviceLike, DTypeLike, Operand, Sizes

from ._method import method

__all__ = [
    "asarray",
    "byte",
    "char",
    "clamp_max",
    "clamp_min",
    "exponential_",
    "linspace",
    "log_normal_",
    "ndimension",
    "new_empty",
    "new_full",
    "new_ones",
    "new_tensor",
    "new_zeros",
    "prelu",
    "randint_like",
    "random_",
    "scalar_tensor",
    "short",
]


def _shape(size: tuple[Any, ...], named: Any) -> Any:
    given = size if named is None else (named,)
    return given[0] if len(given) == 1 and not isinstance(given[0], int) else given


def _of(input: Tensor, dtype: Any, device: Any) -> dict[str, Any]:
    return {"dtype": dtype or input.dtype, "device": input.device if device is None else device}


@method
def new_zeros(
    input: Tensor,
    *shape: Any,
    size: Sizes | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Makes zeros of this shape, of the dtype and on the device of `input` unless told otherwise.

    Example:
        >>> wg.ones(1, dtype=wg.float64).new_zeros(2)
        tensor([0., 0.], dtype=float64)
    """
    return _core.zeros(_shape(shape, size), **_of(input, dtype, device), requires_grad=requires_grad)


@method
def new_ones(
    input: Tensor,
    *shape: Any,
    size: Sizes | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Makes ones of this shape, of the dtype and on the device of `input` unless told otherwise."""
    return _core.ones(_shape(shape, size), **_of(input, dtype, device), requires_grad=requires_grad)


@method
def new_empty(
    input: Tensor,
    *shape: Any,
    size: Sizes | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Makes a tensor to be filled, of the dtype and on the device of `input` unless told otherwise."""
    return _core.empty(_shape(shape, size), **_of(input, dtype, device), requires_grad=requires_grad)


@method
def new_full(
    input: Tensor,
    size: Sizes,
    fill_value: complex,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Makes a tensor with one number everywhere, of the dtype and on the device of `input` unless told otherwise.

    Example:
        >>> wg.ones(1).new_full((2,), 7.0)
        tensor([7., 7.])
    """
    return _core.full(size, fill_value, **_of(input, dtype, device), requires_grad=requires_grad)


@method
def new_tensor(
    input: Tensor,
    data: Any,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Makes a copy of `data`, of the dtype and on the device of `input` unless told otherwise."""
    data = data.detach() if isinstance(data, Tensor) else data
    return _core.tensor(data, **_of(input, dtype, device), requires_grad=requires_grad)


@method
def short(input: Tensor) -> Tensor:
    """Converts to int16."""
    return input.to(_core.int16)


@method
def byte(input: Tensor) -> Tensor:
    """Converts to uint8."""
    return input.to(_core.uint8)


@method
def char(input: Tensor) -> Tensor:
    """Converts to int8."""
    return input.to(_core.int8)


@method
def ndimension(input: Tensor) -> int:
    """Returns the number of axes."""
    return input.ndim


@method
def clamp_min(input: Tensor, min: Operand) -> Tensor:
    """Returns the elements, or `min` where they are smaller.

    Example:
        >>> wg.clamp_min(wg.tensor([-1.0, 2.0]), 0.0)
        tensor([0., 2.])
    """
    return input.clamp(min=min)


@method
def clamp_max(input: Tensor, max: Operand) -> Tensor:
    """Returns the elements, or `max` where they are larger.

    Example:
        >>> wg.clamp_max(wg.tensor([-1.0, 2.0]), 0.0)
        tensor([-1.,  0.])
    """
    return input.clamp(max=max)


@method
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Returns `x` where positive, else `weight * x`, with one slope or one per channel (axis 1).

    Example:
        >>> wg.prelu(wg.tensor([-2.0, 3.0]), wg.tensor(0.5))
        tensor([-1.,  3.])
    """
    from wengert.nn.functional import prelu as function

    return function(input, weight)


def _wide(input: Tensor) -> Any:
    """The dtype to compute random numbers in: a half may round what is below 1 to 1, whose logarithm is infinite."""
    return input.dtype if input.dtype == _core.float64 else _core.float32


@method
def exponential_(input: Tensor, lambd: float = 1.0) -> Tensor:
    """Fills with exponential numbers of rate `lambd`, whose mean is `1 / lambd`, in place."""
    if not lambd > 0:
        raise ValueError(f"exponential_: a positive rate expected, got {lambd}")
    return input.copy_(-(-_core.rand_like(input, dtype=_wide(input))).log1p() / lambd)


@method
def log_normal_(input: Tensor, mean: float = 1.0, std: float = 2.0) -> Tensor:
    """Fills with numbers whose logarithms are normal with this mean and standard deviation, in place."""
    if not std > 0:
        raise ValueError(f"log_normal_: a positive standard deviation expected, got {std}")
    return input.copy_((_core.randn_like(input, dtype=_wide(input)) * std + mean).exp())


@method
def random_(input: Tensor, low: int, high: int | None = None) -> Tensor:
    """Fills with integers from `low` to `high - 1`, in place; with one argument, from 0 to that less one."""
    low, high = (0, low) if high is None else (low, high)
    if not input.is_floating_point():
        # Raises where a number would not fit.
        return input.copy_(
            _core.randint(low, high, tuple(input.shape), dtype=input.dtype, device=input.device)
        )
    return input.copy_(_core.randint(low, high, tuple(input.shape), device=input.device))


def randint_like(
    input: Tensor,
    low: int,
    high: int | None = None,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Draws integers from `low` to `high - 1` (with one bound, from 0) in the shape, dtype and device of `input`.

    Example:
        >>> wg.randint_like(wg.zeros(2, 3), 10).shape
        (2, 3)
    """
    low, high = (0, low) if high is None else (low, high)
    device = input.device if device is None else device
    return _core.randint(low, high, tuple(input.shape), device=device).to(dtype or input.dtype)


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
