"""In-place methods that the core does not write out itself, and functions of those that PyTorch has as functions."""

from collections.abc import Callable
from typing import Any

from wengert import _core
from wengert._arguments import no_tensor
from wengert._core import Tensor

__all__ = ["add_methods", "functions_in_place"]

# Operations outside the tables of elementwise functions that have an in-place form, too.
_IN_PLACE = """
    addbmm addmm addmv addr baddbmm bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
    bitwise_xor clamp_max clamp_min cumprod cumsum deg2rad eq float_power gcd ge gelu gt index_add index_copy
    index_fill index_put lcm ldexp le log_softmax logaddexp2 logical_and logical_not
    logical_or logical_xor logit lt masked_fill masked_scatter nan_to_num ne nextafter polygamma rad2deg renorm
    scatter softmax softplus tril triu
    """.split()

# Of these, and of functions of one tensor, the in-place methods are functions, too.
_FUNCTIONS = """
    addmv clamp clamp_max clamp_min deg2rad gcd index_put lcm ldexp logit nan_to_num rad2deg xlogy
    """.split()


def _in_place(name: str) -> Callable[..., Tensor]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return self._in_place(name, *args, **kwargs)

    method.__name__ = method.__qualname__ = f"{name}_"
    method.__doc__ = f"`{name}`, in place."
    return method


def _function(name: str) -> Callable[..., Tensor]:
    def function(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if not isinstance(input, Tensor):
            raise no_tensor(name, "input", input)
        return getattr(input, name)(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "wengert"
    function.__doc__ = getattr(Tensor, name).__doc__
    return function


def add_methods() -> None:
    """Gives every operation that has none an in-place method."""
    for name in [*(row[0] for row in _core.op_rows()), *_IN_PLACE]:
        if hasattr(Tensor, name) and not hasattr(Tensor, f"{name}_"):
            setattr(Tensor, f"{name}_", _in_place(name))


def functions_in_place(aliases: dict[str, str]) -> dict[str, Callable[..., Tensor]]:
    """The functions `exp_(x)` of in-place methods, under their other names too."""
    names = [*(name for name, _, table in _core.op_rows() if table == "Unary"), *_FUNCTIONS]
    made = {f"{name}_": _function(f"{name}_") for name in names}
    return made | {f"{alias}_": made[f"{name}_"] for alias, name in aliases.items() if f"{name}_" in made}
