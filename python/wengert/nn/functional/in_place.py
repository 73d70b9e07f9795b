"""`inplace=True` of activations and dropouts: the result is written into the input,
recorded as any in-place method.

Read next: `activation.py`, `dropout.py`.
"""

from collections.abc import Callable
from typing import Any

from wengert._core import Tensor

__all__ = ["written"]


def written(name: str, input: Tensor, function: Callable[..., Tensor], *settings: Any) -> Tensor:
    """Writes `function(input, *settings)` into `input`, which is returned; `name` is that of the public
    function.

    Raises:
        RuntimeError: for a leaf that requires a gradient, and for elements that share memory.
        TypeError: for a result of another kind than the input, such as the float32 of an int64.
    """
    # The derivative may read the input, so it is computed from a copy.
    out = function(input.clone(), *settings)
    if out.dtype != input.dtype and not input.dtype.is_floating_point:
        raise TypeError(
            f"{name}_: the result is {out.dtype} and cannot be stored in a tensor of {input.dtype}; write "
            f"x = {name}(x)"
        )
    try:
        return input.copy_(out)
    except RuntimeError as error:
        # The error of the write, about the function that was called.
        text = (
            str(error)
            .replace("copy_:", f"{name}_:")
            .replace("write to a clone() of it", f"write x = {name}(x)")
        )
        raise type(error)(text) from None
