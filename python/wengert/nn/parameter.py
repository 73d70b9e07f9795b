"""`Parameter`: a tensor that a module owns and an optimiser updates. Read next: `module.py`."""

from typing import Any

import wengert as wg
from wengert._core import Tensor

__all__ = ["Parameter"]


class Parameter(Tensor):
    """A leaf tensor that requires a gradient, and that a `Module` registers when it is assigned to an
    attribute.

    Args:
        data: a tensor, or anything `wengert.as_tensor` takes; its memory is shared. Its history is dropped.
        requires_grad: whether gradients are recorded for it.

    Example:
        >>> weight = wg.nn.Parameter(wg.zeros(3, 2))
        >>> weight.requires_grad
        True
    """

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> "Parameter":
        """Shares the memory of `data`."""
        values = wg.empty(0) if data is None else wg.as_tensor(data)
        return Tensor.__new__(cls, values.detach(), requires_grad=requires_grad)

    def __repr__(self) -> str:
        """The values, and that they are a parameter."""
        return "Parameter containing:\n" + super().__repr__()

    def __deepcopy__(self, memo: dict[int, Any]) -> "Parameter":
        """An independent copy without a gradient, once per `copy.deepcopy` call."""
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Pickles as the plain tensor of its values."""
        return type(self), (self.detach(), self.requires_grad)
