"""Pullbacks and linear maps as values: what `vjp` and `linearize` return.

They are containers of trees, and what they contain is the point where they were taken. So a rule of a custom
function may keep one, and a transform may return one: put together with the values that it was taken apart
into it is what it was, with others (those of an outer derivative or batch) it runs the function again there.
"""

from collections.abc import Callable
from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert.tree import register_pytree_node

__all__ = ["LinearMap", "PullbackMap"]

# From the primals to the derivative there, as a function of tangents or cotangents.
Make = Callable[[list[Tensor]], Callable[..., Any]]


class Derivative:
    """The derivative of a function at a point."""

    def __init__(self, make: Make, leaves: list[Any]) -> None:
        """The derivative at the primals `leaves`, which `make` gives; it is asked for when it is needed."""
        self._make = make
        self._leaves = leaves
        self._state = _core.get_rng_state()
        self._found: Callable[..., Any] | None = None

    def __call__(self, *given: Any) -> Any:
        """The tangents or cotangents that these give."""
        return self._map()(*given)

    def _map(self) -> Callable[..., Any]:
        """The derivative itself; the function draws the random numbers of the first time."""
        if self._found is None:
            now = _core.get_rng_state()
            _core.set_rng_state(self._state)
            try:
                self._found = self._make(self._leaves)
            finally:
                _core.set_rng_state(now)
        return self._found

    def _is(self, found: Callable[..., Any], state: tuple[int, int]) -> "Derivative":
        """Takes what `make` gave here, and where the random numbers began."""
        self._found, self._state = found, state
        return self

    def _at(self, point: Any) -> "Derivative":
        """The derivative of the same function at another point."""
        leaves = list(point)
        if len(leaves) == len(self._leaves) and all(
            isinstance(x, Tensor) and isinstance(y, Tensor) and _core._is_same(x, y)
            for x, y in zip(leaves, self._leaves)
        ):
            return self
        new = type(self)(self._make, leaves)
        new._state = self._state
        return new


class PullbackMap(Derivative):
    """What `vjp` returns: from cotangents of the output to those of the arguments, which it contains."""


class LinearMap(Derivative):
    """What `linearize` returns: from tangents of the arguments, which it contains, to those of the output."""


for _kind in (PullbackMap, LinearMap):
    register_pytree_node(_kind, lambda d: (tuple(d._leaves), d), lambda d, children: d._at(children))
