"""Operations whose result never shares memory with the tensor they are given.

The core answers some of them with a view: always (a reversed axis, a diagonal), or where the numbers happen to leave
everything in place (one copy side by side, a shift by a whole turn). A write into the result would then write into the
operand, for some shapes and not for others. Here the result is copied in exactly those cases, and only in them.
"""

import functools
from collections.abc import Callable
from typing import Any

from wengert import _core
from wengert._core import Tensor

from ._method import method

__all__ = ["diag", "diff", "flip", "repeat", "roll", "rot90", "tile"]

# The core's own methods, some of which give views.
reversed_view = Tensor.flip
_roll, _repeat, _tile, _diag, _diff = Tensor.roll, Tensor.repeat, Tensor.tile, Tensor.diag, Tensor.diff


def _listed(numbers: Any) -> tuple[int, ...]:
    """One number, or a sequence of them, as a tuple."""
    return tuple(numbers) if isinstance(numbers, (tuple, list)) else (numbers,)


def _spread(numbers: tuple[Any, ...]) -> tuple[int, ...]:
    """Numbers given one by one or as a sequence."""
    return tuple(numbers[0]) if len(numbers) == 1 and isinstance(numbers[0], (tuple, list)) else numbers


@method
def flip(input: Tensor, *dims: Any) -> Tensor:
    """Reversed along `dims`. A copy.

    Raises:
        IndexError: there is no such axis.
    """
    return reversed_view(input, *dims).clone()


@method
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """Turned by `k` quarters in the plane of two axes, from the first towards the second. A copy."""
    if len(dims) != 2 or dims[0] % max(input.ndim, 1) == dims[1] % max(input.ndim, 1):
        raise ValueError(
            f"rot90: two different axes expected, got {tuple(dims)} for a tensor with {input.ndim} axes"
        )
    a, b = dims
    quarter = k % 4
    if quarter == 0:
        return input.clone()
    if quarter == 2:
        return reversed_view(input, a, b).clone()
    return reversed_view(input.transpose(a, b), a if quarter == 1 else b).clone()


@method
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Elements shifted by `shifts` along `dims`, those pushed out coming back in at the other end. A copy.

    Args:
        shifts: one number, or one for each of `dims`.
        dims: the axes; without them the flattened tensor is shifted.
    """
    out = _roll(input, shifts, dims)
    if isinstance(shifts, int) and isinstance(dims, int):
        length = input.shape[dims]
        return out if length and shifts % length else out.clone()
    lengths = (input.numel(),) if dims is None else [input.shape[d] for d in _listed(dims)]
    moved = any(n and s % n for s, n in zip(_listed(shifts), lengths))
    return out if moved else out.clone()


def _laid_side_by_side(input: Tensor, out: Tensor, counts: tuple[int, ...]) -> Tensor:
    """The core's result, which is a view unless an axis of more than one element is repeated."""
    lengths = (1,) * (len(counts) - input.ndim) + tuple(input.shape)
    copied = any(count != 1 and n != 1 for count, n in zip(counts, lengths))
    return out if copied else out.clone()


@method
def repeat(input: Tensor, *dims: Any) -> Tensor:
    """The tensor laid side by side, `dims[i]` times along axis `i`. A copy."""
    return _laid_side_by_side(input, _repeat(input, *dims), _spread(dims))


@method
def tile(input: Tensor, *dims: Any) -> Tensor:
    """The tensor laid side by side; missing leading counts are 1. A copy."""
    counts = _spread(dims)
    return _laid_side_by_side(input, _tile(input, *dims), (1,) * (input.ndim - len(counts)) + counts)


@method
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """A vector as a diagonal matrix, or the diagonal of a matrix. A copy; `diagonal()` gives the view."""
    out = _diag(input, diagonal)
    return out.clone() if input.ndim == 2 else out


@method
def diff(input: Tensor, n: int = 1, dim: int = -1, *, axis: int | None = None) -> Tensor:
    """Differences of neighbours along `dim`: `x[1:] - x[:-1]`, `n` times. A copy."""
    out = _diff(input, n, dim, axis=axis)
    return out if n else out.clone()


def _copied(function: Callable[..., Any], unchanged: Callable[[Tensor], bool]) -> Callable[..., Any]:
    """A method of the core that returns tensors as they are where `unchanged` holds of them."""

    @functools.wraps(function)
    def copied(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        out = function(input, *args, **kwargs)
        if not unchanged(input):
            return out
        return out.clone() if isinstance(out, Tensor) else type(out)(*(x.clone() for x in out))

    return copied


def _is_number(x: Tensor) -> bool:
    return x.ndim == 0


def _is_whole(x: Tensor) -> bool:
    return not x.dtype.is_differentiable


def _has_one(x: Tensor) -> bool:
    # The core multiplies complex numbers one after another, and so not at all along an axis of length 1.
    return x.ndim == 0 or (x.is_complex() and 1 in x.shape)


_UNCHANGED = {
    _is_number: ("cummax", "cummin", "cumsum", "logcumsumexp", "masked_select", "sort"),
    _is_whole: ("ceil", "floor", "round", "trunc"),
    _has_one: ("cumprod", "prod"),
}
for _unchanged, _names in _UNCHANGED.items():
    for _name in _names:
        setattr(Tensor, _name, _copied(getattr(Tensor, _name), _unchanged))


def padded(x: Tensor, widths: list[int], value: float) -> Tensor:
    """`x` with `widths` elements of `value` around its axes, as `wengert.nn.functional.pad` counts them. A copy."""
    out = _core._pad(x, widths, value)
    return out if any(n > 0 for n in widths) else out.clone()
