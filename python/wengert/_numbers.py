"""Arguments that are to be whole numbers or probabilities, and what is raised where they are not."""

from typing import Any

__all__ = ["check_integers", "check_probability"]


def check_integers(name: str, **values: Any) -> None:
    """Raises TypeError for what is no integer: it names the function and the argument."""
    for what, value in values.items():
        if isinstance(value, bool) or not hasattr(type(value), "__index__"):
            raise TypeError(f"{name}: {what} is an integer, got {value!r}")


def check_probability(name: str, p: Any) -> None:
    """Raises TypeError for what is no number, and ValueError for one outside of `[0, 1]`."""
    try:
        is_valid = 0.0 <= p <= 1.0
    except TypeError:
        raise TypeError(f"{name}: p is a number between 0 and 1, got {p!r}") from None
    if not is_valid:
        raise ValueError(f"{name}: p is a probability between 0 and 1, got {p}")
