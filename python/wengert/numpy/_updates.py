"""`x.at[i].set(v)` and its companions, as in JAX: copies of a tensor that are changed in places."""

from collections.abc import Callable
from typing import Any

from wengert import _core
from wengert._arguments import operand
from wengert._core import Tensor
from wengert.composed._method import positions_like

__all__ = ["At", "Places"]


class At:
    """What `x.at` is: indexed, the `Places` of `x` that a copy is to be changed in."""

    __slots__ = ("_x",)

    def __init__(self, x: Tensor) -> None:
        """The places are those of `x`."""
        self._x = x

    def __getitem__(self, index: Any) -> "Places":
        """Any index that reads elements: numbers, slices, masks, tensors of integers."""
        return Places(self._x, index)


class Places:
    """Elements of a tensor that an index picks, and functions that return changed copies of the tensor.

    The values broadcast to the shape of `x[index]` and take the dtype of `x`. Where an index names an element
    twice, all values count, but with `set` and `apply` one of them. An index out of range raises.

    Example:
        >>> x = wg.zeros(3)
        >>> x.at[1].set(5.0), x.at[wg.tensor([0, 0])].add(1.0)
        (tensor([0., 5., 0.]), tensor([2., 0., 0.]))
    """

    __slots__ = ("_index", "_x")

    def __init__(self, x: Tensor, index: Any) -> None:
        """The elements `x[index]`."""
        self._x, self._index = x, index

    def get(self) -> Tensor:
        """Returns the elements, `x[index]`."""
        return self._x[self._index]

    def set(self, values: Any) -> Tensor:
        """Returns a copy with `values` in the places."""
        out = self._x.clone()
        out[self._index] = operand("set", values, self._x).to(self._x.dtype)
        return out

    def apply(self, func: Callable[[Tensor], Any]) -> Tensor:
        """Returns a copy with `func` of the elements in their places."""
        return self.set(func(self.get()))

    def add(self, values: Any) -> Tensor:
        """Returns a copy with `values` added."""
        return self._reduced("sum", values)

    def subtract(self, values: Any) -> Tensor:
        """Returns a copy with `values` subtracted."""
        return self._reduced("sum", -operand("subtract", values, self._x))

    def multiply(self, values: Any) -> Tensor:
        """Returns a copy with the elements multiplied by `values`."""
        return self._reduced("prod", values)

    def divide(self, values: Any) -> Tensor:
        """Returns a copy with the elements divided by `values`."""
        return self._x / Places(_core.ones_like(self._x), self._index).multiply(values)

    def power(self, values: Any) -> Tensor:
        """Returns a copy with the elements raised to the power of `values`."""
        return self._x ** Places(_core.ones_like(self._x), self._index).multiply(values)

    def min(self, values: Any) -> Tensor:
        """Returns a copy with the smaller ones of the elements and `values`."""
        return self._reduced("amin", values)

    def max(self, values: Any) -> Tensor:
        """Returns a copy with the larger ones of the elements and `values`."""
        return self._reduced("amax", values)

    mul = multiply

    def _reduced(self, reduce: str, values: Any) -> Tensor:
        """A copy in which every place is reduced with the values that the index gives it."""
        x = self._x
        # The index applied to positions: what it picks, whatever kind of index it is.
        places = positions_like(x, x.numel()).reshape(x.shape)[self._index]
        values = operand("at", values, x).to(x.dtype).broadcast_to(places.shape)
        flat = x.reshape(-1).scatter_reduce(0, places.reshape(-1), values.reshape(-1), reduce)
        return flat.reshape(x.shape)
