"""Switches that programs for PyTorch set, and that have one position here."""

from wengert._core import Tensor

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_float32_matmul_precision",
    "set_float32_matmul_precision",
    "use_deterministic_algorithms",
]


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Accepts `mode` and `warn_only`: results are the same bits every time, whatever they say.

    Example:
        >>> wg.use_deterministic_algorithms(True)
    """


def are_deterministic_algorithms_enabled() -> bool:
    """Tells whether results are the same bits every time: True.

    Example:
        >>> wg.are_deterministic_algorithms_enabled()
        True
    """
    return True


def set_float32_matmul_precision(precision: str) -> None:
    """Accepts a precision of products of float32, which are always computed in float32.

    Args:
        precision: "highest", "high" or "medium".

    Raises:
        ValueError: for another one.

    Example:
        >>> wg.set_float32_matmul_precision("high")
    """
    if precision not in ("highest", "high", "medium"):
        raise ValueError(
            f"set_float32_matmul_precision: 'highest', 'high' or 'medium' expected, got {precision!r}"
        )


def get_float32_matmul_precision() -> str:
    """Returns the precision of products of float32: "highest".

    Example:
        >>> wg.get_float32_matmul_precision()
        'highest'
    """
    return "highest"


class _Variable(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_Variable):
    """A tensor, under the name that it had before PyTorch 0.4; every tensor is an instance.

    Args:
        data: a tensor.
        requires_grad: whether gradients are recorded for it.

    Example:
        >>> x = wg.autograd.Variable(wg.ones(2), requires_grad=True)
        >>> x.requires_grad, isinstance(x, wg.autograd.Variable)
        (True, True)
    """

    def __new__(cls, data: Tensor, requires_grad: bool = False) -> Tensor:  # type: ignore[misc]
        """Returns the tensor itself, or one that shares its memory and requires a gradient."""
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable: a tensor expected, got {type(data).__name__}")
        return data.detach().requires_grad_() if requires_grad and not data.requires_grad else data
