"""Operators registered with PyTorch's dispatcher, of which there is none here: use raises and says what to
write."""

from typing import Any

from wengert._arguments import refusing

__all__ = ["Library", "custom_op"]
__dir__ = __all__.copy


_refused = refusing(
    "library",
    "operators are not registered here; "
    "write a function, and its derivative as an autograd.Function or by wengert.custom_vjp",
)


@_refused('"mine::sin", mutates_args=()')
def custom_op(name: str, fn: Any = None, /, *, mutates_args: Any = (), **kwargs: Any) -> None:
    """Raises NotImplementedError: there is no register of operators.

    Args:
        name: the name of the operator.
        fn: what computes it.
        mutates_args: which arguments it writes.
    """


class Library:
    """Raises NotImplementedError: there is no register of operators."""

    @_refused('"mine", "DEF"')
    def __init__(self, ns: str, kind: str, *args: Any) -> None:
        """Raises."""
