"""The record of an operation: what `op_samples.py` and the other lists of samples are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from support import Case, Real, Source

ANY = Real(-3.0, 3.0)


@dataclass(frozen=True)
class OpSample:
    """An operation and everything needed to test it."""

    name: str
    #: Called with tensors and the keyword arguments of a case.
    fn: Callable[..., Any]
    #: The same on NumPy arrays in float64.
    reference: Callable[..., Any]
    #: Draws shapes, domains and attributes.
    case: Callable[[Source], Case]
    #: Entries of the compiled list of operations, and rows of its tables, that this record covers.
    rows: tuple[str, ...] = ()
    #: The highest derivative that is compared with differences.
    order: int = 2
    #: Values at which an elementwise function is also compared, alone or in pairs.
    special: tuple[float, ...] = ()
    #: Whether integers are computed as integers, by the same reference.
    integers: bool = False
    #: The floating point types that it takes.
    dtypes: tuple[str, ...] = ("float64", "float32", "float16", "bfloat16")
    #: Rounding errors that pile up, relative to one operation.
    scale: float = 1.0
    #: Whether the shape of the result follows from the shapes of the inputs, which batching needs.
    vmap: bool = True
    #: Whether axes of length 0 make sense.
    empty: bool = True
    #: Whether it runs on GPUs, and with which factor on the float32 tolerance.
    gpu: bool = True
    gpu_scale: float = 1.0
    extra: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


class Table(list[OpSample]):
    """A list of records that is written one call each."""

    def record(
        self,
        name: str,
        fn: Callable[..., Any],
        reference: Callable[..., Any],
        case: Callable[[Source], Case],
        **more: Any,
    ) -> None:
        """Adds a record; it covers the row of its own name unless `rows` says otherwise."""
        self.append(OpSample(name, fn, reference, case, **{"rows": (name,), **more}))
