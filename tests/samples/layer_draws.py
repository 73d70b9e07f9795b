"""What random calls of layers are drawn with. Read next: `layer_calls.py`, `loss_calls.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass
class Call:
    """A function of tensors, its definition in NumPy, and the inputs; with how it was drawn,
    for the report.
    """

    function: Callable[..., Any]
    definition: Callable[..., Any]
    inputs: list[Array]
    text: str
    #: Whether to compare gradients with differences.
    smooth: bool = field(default=True)


class Source:
    """Draws."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def size(self, low: int = 1, high: int = 4) -> int:
        return int(self.rng.integers(low, high + 1))

    def shape(self, axes: int, low: int = 1, high: int = 4) -> tuple[int, ...]:
        return tuple(self.size(low, high) for _ in range(axes))

    def one(self, *values: Any) -> Any:
        return values[self.size(0, len(values) - 1)]

    def some(self, **options: tuple[Any, ...]) -> dict[str, Any]:
        """Each keyword with one of its values, or left out."""
        return {name: self.one(*values) for name, values in options.items() if self.rng.random() < 0.6}

    def normal(self, *shape: int) -> Array:
        return self.rng.normal(size=shape)
