"""The form of a table of situations, and what all of them are made of."""

from collections.abc import Callable
from typing import Any

import wengert as wg

#: What goes wrong, the class of the exception, the whole message.
Situations = dict[str, tuple[Callable[[], Any], type[Exception], str]]

ones = wg.ones


def leaf(*shape: int) -> wg.Tensor:
    """A leaf that requires a gradient."""
    return wg.ones(*shape, requires_grad=True)


def i(*values: int) -> wg.Tensor:
    """Indices."""
    return wg.tensor(list(values), dtype=wg.int64)
