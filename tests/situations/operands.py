"""What the calls of all tables are given."""

import wengert as wg

ones = wg.ones


def leaf(*shape: int) -> wg.Tensor:
    """A leaf that requires a gradient."""
    return wg.ones(*shape, requires_grad=True)


def i(*values: int) -> wg.Tensor:
    """Indices."""
    return wg.tensor(list(values), dtype=wg.int64)
