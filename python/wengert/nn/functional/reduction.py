"""What losses share: checks, and the older words for their reduction. Read next: `loss.py`."""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from wengert import _core
from wengert._caller import called, warn
from wengert._core import Tensor

__all__ = ["check_margin", "check_ranks", "older_reduction", "reduce_losses", "reduced"]

P = ParamSpec("P")
R = TypeVar("R")


def older_reduction(name: str, size_average: Any = None, reduce: Any = None) -> str:
    """The reduction that `size_average` and `reduce` name; warns."""
    averaged = "sum" if size_average is not None and not size_average else "mean"
    reduction = "none" if reduce is not None and not reduce else averaged
    warn(f"{name}: size_average and reduce are older words; write reduction={reduction!r}")
    return reduction


def reduced(function: Callable[P, R]) -> Callable[P, R]:
    """A loss that also takes `size_average` and `reduce`, the older words for `reduction`.

    Nothing is looked at unless the call fails.
    """

    @functools.wraps(function)
    def tried(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError:
            older = {name: kwargs.pop(name) for name in ("size_average", "reduce") if name in kwargs}
            if not older:
                raise
        given: Any = {**kwargs}
        if any(value is not None for value in older.values()):
            given["reduction"] = older_reduction(function.__name__, **older)
        return function(*args, **given)

    return tried


def reduce_losses(loss: Tensor, reduction: str) -> Tensor:
    """The mean or the sum of losses, or these themselves."""
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(f"{called()}: reduction must be 'mean', 'sum' or 'none', got {reduction!r}")


def check_ranks(op: str, **tensors: Tensor) -> None:
    """Raises unless all have as many axes: otherwise one would be repeated for each element of another."""
    if len({x.ndim for x in tensors.values()}) > 1:
        shapes = ", ".join(f"{name} {tuple(x.shape)}" for name, x in tensors.items())
        raise _core.ShapeError(f"{op}: tensors with as many axes expected, got {shapes}; reshape one of them")


def check_margin(name: str, margin: float) -> None:
    """Raises for a margin that is not positive."""
    if not margin > 0:
        raise ValueError(f"{name}: margin must be positive, got {margin}")
