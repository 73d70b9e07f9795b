"""Random numbers of the core whose parameters are looked at first."""

from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert._values import extremes

__all__ = ["normal"]

_bernoulli_, _normal_, _uniform_ = Tensor.bernoulli_, Tensor.normal_, Tensor.uniform_


def _check_deviation(name: str, std: Any) -> None:
    """Raises for a negative standard deviation."""
    if isinstance(std, Tensor):
        found = extremes(std)
        std = 0.0 if found is None else found[0]
    if isinstance(std, (int, float)) and std < 0:
        raise ValueError(f"{name}: std must not be negative, got {std:g}")


def normal(mean: Any, std: Any = None, size: Any = None, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Normal random numbers; `mean` and `std` are numbers (then `size` is the shape) or tensors.

    Raises:
        ValueError: a negative `std`.
    """
    _check_deviation("normal", std)
    return _core.normal(mean, std, size, dtype=dtype, device=device)


def normal_(input: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Fills with normal numbers, in place. Raises ValueError for a negative `std`."""
    _check_deviation("normal_", std)
    return _normal_(input, mean, std)


def uniform_(input: Tensor, low: float = 0.0, high: float = 1.0) -> Tensor:
    """Fills with uniform numbers on `[low, high)`, in place. Raises ValueError where `low` exceeds `high`."""
    if low > high:
        raise ValueError(f"uniform_: low must not exceed high, got {low:g} and {high:g}")
    return _uniform_(input, low, high)


def bernoulli_(input: Tensor, p: Any = 0.5) -> Tensor:
    """Fills with 1 with probability `p`, else 0, in place. Raises ValueError for a number outside of 0 to 1."""
    if isinstance(p, (int, float)) and not 0 <= p <= 1:
        raise ValueError(f"bernoulli_: p is a probability between 0 and 1, got {p:g}")
    return _bernoulli_(input, p)


for _function in (normal_, uniform_, bernoulli_):
    setattr(Tensor, _function.__name__, _function)
