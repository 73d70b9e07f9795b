"""Looking at the values of arguments before they are used, where values can be looked at.

Inside `vmap` and `jvp` they cannot, and on a GPU that would wait for all the work before it.
"""

from typing import Any

from wengert import _core
from wengert._core import Tensor

__all__ = ["check_within", "extremes", "not_negative"]

_SIGNED = (_core.int8, _core.int16, _core.int32, _core.int64)


def extremes(x: Tensor) -> tuple[Any, Any] | None:
    """The smallest and the largest element; None where there are none, or where they cannot be looked at."""
    if x.is_gpu or x.numel() == 0:
        return None
    x = x.detach()
    try:
        return x.min().item(), x.max().item()
    except TypeError:
        return None


def check_within(name: str, what: str, x: Tensor, low: float, high: float) -> None:
    """Raises ValueError for an element outside of `low` to `high`; NaN passes."""
    found = extremes(x)
    if found is not None and (found[0] < low or found[1] > high):
        bad = found[0] if found[0] < low else found[1]
        raise ValueError(f"{name}: {what} must lie between {low:g} and {high:g}, got {bad:g}")


def not_negative(
    name: str, what: str, index: Tensor, count: int, of: str, ignored: int | None = None
) -> Tensor:
    """Indices that must not count from the end, although the core's do.

    Where they cannot be looked at, negative ones become `count`, which the core refuses like any other that
    is too large.

    Args:
        what: what an index names, in the error.
        count: how many there are, `of` what.
        ignored: a value that passes.

    Raises:
        IndexError: for a negative index.
    """
    try:
        # A truth value: a program holds for all indices that are right.
        if not index.is_gpu and (index.min() >= 0).item():
            return index
    except (TypeError, ValueError):  # inside a transform; no elements
        pass
    if index.dtype not in _SIGNED or index.numel() == 0:
        return index
    index = index if index.dtype.itemsize > 2 else index.to(_core.int32)
    wrong = index < 0
    if ignored is not None and ignored < 0:
        wrong = wrong.logical_and(index != ignored)
    if extremes(index) is None:
        return index.masked_fill(wrong, count)
    if wrong.any().item():
        bad = index.masked_fill(wrong.logical_not(), 0).min().item()
        raise IndexError(f"{name}: {what} {bad} is out of range for {count} {of}, expected 0..{count - 1}")
    return index
