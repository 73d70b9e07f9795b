"""`Parameter`: a tensor that a module owns and an optimiser updates. Read next: `module.py`."""

from typing import Any

import wengert as wg
from wengert._core import Tensor

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]


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


class Buffer(Tensor):
    """A tensor that a `Module` registers as a buffer when it is assigned to an attribute.

    Args:
        data: a tensor, or anything `wengert.as_tensor` takes; its memory is shared.
        persistent: whether the state dict holds it.

    Example:
        >>> class Mean(wg.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.mean = wg.nn.Buffer(wg.zeros(2))
        >>> list(Mean().state_dict())
        ['mean']
    """

    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> "Buffer":
        """Shares the memory of `data`."""
        made = Tensor.__new__(cls, (wg.empty(0) if data is None else wg.as_tensor(data)).detach())
        made.persistent = persistent
        return made


class _Uninitialized(Tensor):
    """A tensor whose shape is not known yet."""

    _settings: dict[str, Any]
    #: What it becomes.
    _known: type[Tensor]

    @property
    def shape(self) -> Any:
        """Raises: nobody knows it."""
        raise RuntimeError(
            f"{type(self).__name__}: its shape is not known yet; call materialize(shape) first"
        )

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Becomes an ordinary parameter or buffer of this shape, whose values are to be filled.

        Args:
            shape: the lengths of its axes.
            device, dtype: what was given before, if None.
        """
        given = {"device": device, "dtype": dtype}
        settings = self._settings | {key: value for key, value in given.items() if value is not None}
        self.__class__ = self._known  # type: ignore[assignment]
        self.data = wg.empty(shape, **settings)

    def __repr__(self) -> str:
        """Its name."""
        return f"<{type(self).__name__}>"


class UninitializedParameter(_Uninitialized, Parameter):
    """A parameter whose shape is known later, by `materialize(shape)`: for layers that take it from their
    first input.

    Args:
        requires_grad: whether gradients are recorded for it.
        device, dtype: where and what it will be.

    Example:
        >>> weight = wg.nn.UninitializedParameter()
        >>> weight.materialize((2, 3))
        >>> isinstance(weight, wg.nn.Parameter), weight.shape
        (True, (2, 3))
    """

    _known = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> "UninitializedParameter":
        """Knows no shape."""
        made = Tensor.__new__(cls, wg.empty(0, device=device, dtype=dtype), requires_grad=requires_grad)
        made._settings = {"device": device, "dtype": dtype}
        return made


class UninitializedBuffer(_Uninitialized, Buffer):
    """A buffer whose shape is known later, by `materialize(shape)`.

    Args:
        persistent: whether the state dict holds it.
        device, dtype: where and what it will be.

    Example:
        >>> mean = wg.nn.UninitializedBuffer()
        >>> mean.materialize((2,))
        >>> mean.shape
        (2,)
    """

    _known = Buffer

    def __new__(
        cls, *, persistent: bool = True, device: Any = None, dtype: Any = None
    ) -> "UninitializedBuffer":
        """Knows no shape."""
        made = Tensor.__new__(cls, wg.empty(0, device=device, dtype=dtype))
        made.persistent = persistent
        made._settings = {"device": device, "dtype": dtype}
        return made


def is_lazy(param: Any) -> bool:
    """Tells whether the shape of a parameter or buffer is not known yet.

    Example:
        >>> wg.nn.parameter.is_lazy(wg.nn.Parameter(wg.ones(2)))
        False
    """
    return isinstance(param, _Uninitialized)
