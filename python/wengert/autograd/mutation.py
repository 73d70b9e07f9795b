"""Copies on write: saved values that survive writes in place."""

from typing import Any

from wengert import _core
from wengert.autograd.modes import Region


class allow_mutation_on_saved_tensors(Region):
    """Lets values that operations saved be written in place: a write gives the tape a copy first.

    A context and a decorator. It covers what is saved and written inside it; the copies cost memory and time
    where writes happen, and nothing elsewhere.

    Example:
        >>> x = wg.ones(2, requires_grad=True)
        >>> with wg.autograd.graph.allow_mutation_on_saved_tensors():
        ...     y = x.exp()
        ...     z = y * y
        ...     _ = y.zero_()
        ...     z.sum().backward()
        >>> x.grad
        tensor([14.7781, 14.7781])
    """

    def __init__(self) -> None:
        """The region does not begin before `with`."""
        self._depths: list[int] = []

    def __enter__(self) -> "allow_mutation_on_saved_tensors":
        """Begins the region."""
        self._depths.append(_core._copy_on_write_enter())
        return self

    def __exit__(self, *exc: Any) -> None:
        """Ends the region."""
        _core._saved_hooks_exit(self._depths.pop())
