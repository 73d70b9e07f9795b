"""The record of an operation: what `op_samples.py` and the other lists of samples are made of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from support import Arg, Case, Domain, Real, Source

ANY = Real(-3.0, 3.0)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 30.0, -30.0, 1e4, -1e4, math.inf, -math.inf, math.nan)


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

    def unary(self, name: str, reference: Callable[..., Any], domain: Domain = ANY, **more: Any) -> None:
        """A row of the table of functions of one variable."""
        settings = {"rows": (name, "Map", "MapVjp", "MapVjpJvp"), "special": SPECIAL, **more}

        def case(s: Source) -> Case:
            return Case((Arg(s.shape(), domain),))

        self.record(name, lambda x: getattr(x, name)(), reference, case, **settings)

    def binary(
        self,
        name: str,
        reference: Callable[..., Any],
        left: Domain = ANY,
        right: Domain = ANY,
        **more: Any,
    ) -> None:
        """A row of the table of functions of two variables, which broadcast."""

        def case(s: Source) -> Case:
            a, b = s.broadcast(2)
            return Case((Arg(a, left), Arg(b, right)))

        settings = {"rows": (name, "Map", "MapVjp", "MapVjpJvp"), "special": SPECIAL, **more}
        self.record(name, lambda x, y: getattr(x, name)(y), reference, case, **settings)
