"""The base of constraints, and those that only an instance of a distribution knows."""

from collections.abc import Callable, Sequence
from typing import Any

from wengert._core import Tensor

from .documented import Documented

__all__ = ["Constraint", "Dependent", "dependent_property", "is_dependent"]


class Constraint(Documented):
    """A set of values. `event_dim` axes make one value; `is_discrete` says whether derivatives make sense.

    Example:
        >>> wg.distributions.constraints.positive.check(wg.tensor([-1.0, 2.0]))
        tensor([False,  True])
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Tensor) -> Tensor:
        """Returns for each event whether it lies in the set."""
        raise NotImplementedError(f"{type(self).__name__} has no check")

    def at(self, index: tuple[int, ...], shape: Sequence[int]) -> "Constraint":
        """Returns the constraint of one element of values of a shape."""
        return self

    def __repr__(self) -> str:
        """Returns the name of the class."""
        return f"{type(self).__name__.lstrip('_')}()"


class Dependent(Constraint):
    """A set that depends on other values, which only an instance of the distribution knows."""

    def __init__(self, *, is_discrete: Any = None, event_dim: Any = None) -> None:
        self._given = {"is_discrete": is_discrete, "event_dim": event_dim}
        if event_dim is not None:
            self.event_dim = event_dim
        if is_discrete is not None:
            self.is_discrete = is_discrete

    def __call__(self, *, is_discrete: Any = None, event_dim: Any = None) -> "Dependent":
        """Returns the constraint with other attributes."""
        given = {"is_discrete": is_discrete, "event_dim": event_dim}
        return Dependent(**{k: self._given[k] if v is None else v for k, v in given.items()})

    def check(self, value: Tensor) -> Tensor:
        """Raises ValueError: nothing is known."""
        raise ValueError("a dependent constraint cannot check values; ask an instance of the distribution")


class dependent_property(property, Dependent):
    """A property that returns a constraint, and of the class is a dependent one.

    Used as a decorator, with or without attributes.

    Example:
        >>> constraints = wg.distributions.constraints
        >>> class Up(wg.distributions.Distribution):
        ...     @constraints.dependent_property(is_discrete=False, event_dim=0)
        ...     def support(self):
        ...         return constraints.greater_than(self.low)
        >>> constraints.is_dependent(Up.support), Up.support.event_dim
        (True, 0)
    """

    def __init__(
        self, fn: Callable[..., Any] | None = None, *, is_discrete: Any = None, event_dim: Any = None
    ):
        property.__init__(self, fn, doc=getattr(fn, "__doc__", None) or "The set, which an instance knows.")
        Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Callable[..., Any]) -> "dependent_property":  # type: ignore[override]
        """Returns the property of a function, with these attributes."""
        return dependent_property(fn, **self._given)


def is_dependent(constraint: Any) -> bool:
    """Returns whether a constraint depends on other values.

    Example:
        >>> wg.distributions.constraints.is_dependent(wg.distributions.constraints.real)
        False
    """
    return isinstance(constraint, Dependent)
