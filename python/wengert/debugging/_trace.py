"""`trace_backward`: the chain rule of a small graph, with numbers."""

import heapq
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert import _core
from wengert._core import Node, Tensor
from wengert.autograd.anomaly import Location
from wengert.autograd.modes import no_grad
from wengert.debugging._numbers import array

__all__ = ["Trace", "TraceRow", "trace_backward"]

Numbers = np.ndarray[Any, Any]
Key = tuple[int, int]


@dataclass(frozen=True)
class TraceRow:
    """One input of one operation: `downstream` is `upstream` times the `local` derivative.

    `local` is the Jacobian of the output with respect to the input, computed by the operation's own reverse
    rule: of the output's shape followed by the input's; `diagonal` says that it is a diagonal in truth, and
    holds that alone. None for more than `max_elements` elements.
    """

    output: str
    op: str
    input: str
    local: Numbers | None
    diagonal: bool
    upstream: Numbers
    downstream: Numbers
    location: Location | None


@dataclass(frozen=True)
class Trace:
    """What `trace_backward` found; `print` it, or read the `rows` and `gradients` (by name)."""

    root: str
    rows: list[TraceRow]
    gradients: dict[str, Numbers]
    notices: list[str]

    def __str__(self) -> str:
        """The table."""
        table = [("value", "operation", "local derivative", "times upstream", "equals downstream")]
        for row in self.rows:
            table.append(
                (
                    row.output,
                    row.op,
                    f"d{row.output}/d{row.input} = {_local(row)}",
                    f"* {_numbers(row.upstream)}",
                    f"= {_numbers(row.downstream)} to {row.input}",
                )
            )
        widths = [max(len(cells[k]) for cells in table) for k in range(5)]
        lines = ["  ".join(c.ljust(w) for c, w in zip(cells, widths)).rstrip() for cells in table]
        ends = [f"d{self.root}/d{name} = {_numbers(g)}" for name, g in self.gradients.items()]
        return "\n".join([*lines, *ends, *self.notices])


def _numbers(values: Numbers) -> str:
    if values.size > 16:
        return f"{values.shape} of norm {np.linalg.norm(values):.4g}"
    with np.printoptions(precision=4, floatmode="maxprec", linewidth=10**6):
        text = np.array2string(values, separator=", ")
    return re.sub(r"\s+", " ", re.sub(r"\.(?=[\s,\]]|$)", "", text)).replace("[ ", "[")


def _local(row: TraceRow) -> str:
    if row.local is None:
        return "(large)"
    return ("diag " if row.diagonal and row.local.ndim else "") + _numbers(row.local)


class _Names:
    """A name for every value: that of a variable, or `v1`, `v2` in the order of the trace."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        self.given: dict[Key, str] = {}
        self.next = 0
        for name, value in known.items():
            if isinstance(value, Tensor) and not name.startswith("_"):
                edge = _core._gradient_edge(value)
                if edge is not None:
                    self.given.setdefault((edge[0].sequence_nr, edge[1]), name)
        self.taken = set(self.given.values())

    def of(self, key: Key) -> str:
        """The name of a value."""
        while key not in self.given:
            self.next += 1
            name = f"v{self.next}"
            if name not in self.taken:
                self.given[key] = name
        return self.given[key]


def trace_backward(
    loss: Tensor,
    gradient: Tensor | None = None,
    names: Mapping[str, Tensor] | None = None,
    max_elements: int = 16,
    max_rows: int = 200,
) -> Trace:
    """Walks the graph of `loss` back, and shows every step of the chain rule with its numbers.

    One row per operation and input, in backward order: the name of the output, the operation, its local
    derivative, times the cotangent of the output, equals what goes down to the input. Values have the names
    of the caller's variables, or those in `names`, else `v1`, `v2`, ... Nothing is freed or accumulated, and
    no hooks are called.

    Args:
        loss: where to begin; its graph must not have been freed.
        gradient: the cotangent to begin with; ones by default.
        names: tensors by name, in place of the caller's variables.
        max_elements: the largest value whose local derivatives are computed; larger ones are shown by shape
            and norm.
        max_rows: rows after which the table ends, with a notice.

    Raises:
        RuntimeError: for a loss without a graph, or one that was freed.

    Example:
        >>> x, w, b = (wg.tensor(v, requires_grad=True) for v in (2.0, 3.0, 1.0))
        >>> h = x * w + b
        >>> y = h**2
        >>> print(wg.trace_backward(y))
        value  operation  local derivative  times upstream  equals downstream
        y      square     dy/dh = 14        * 1             = 14 to h
        h      add        dh/dv1 = 1        * 14            = 14 to v1
        h      add        dh/db = 1         * 14            = 14 to b
        v1     mul        dv1/dx = 3        * 14            = 42 to x
        v1     mul        dv1/dw = 2        * 14            = 28 to w
        dy/dx = 42
        dy/dw = 28
        dy/db = 14
    """
    edge = _core._gradient_edge(loss)
    if edge is None:
        raise RuntimeError(
            f"trace_backward: the tensor of shape {tuple(loss.shape)} has no graph: none of its inputs "
            "requires a gradient, or it was detached; call requires_grad_() on an input before computing it"
        )
    if names is None:
        frame = sys._getframe(1)
        # Local names come first, and keep their place.
        names = dict(frame.f_locals) | {k: v for k, v in frame.f_globals.items() if k not in frame.f_locals}
    seed = _core.ones_like(loss.detach()) if gradient is None else gradient
    if tuple(seed.shape) != tuple(loss.shape):
        raise ValueError(
            f"trace_backward: gradient= has shape {tuple(seed.shape)}, expected {tuple(loss.shape)} as the "
            f"loss"
        )
    with no_grad():
        return _Tracer(_Names(names), max_elements, max_rows).run((edge[0], edge[1]), seed)


class _Tracer:
    """The walk."""

    def __init__(self, names: _Names, max_elements: int, max_rows: int) -> None:
        self.names = names
        self.max_elements = max_elements
        self.max_rows = max_rows
        self.rows: list[TraceRow] = []
        self.leaves: dict[Key, Tensor] = {}
        self.large = 0
        self.left = 0

    def run(self, root: tuple[Node, int], seed: Tensor) -> Trace:
        """Every rule in backward order."""
        nodes = {root[0].sequence_nr: root[0]}
        waiting: dict[int, list[Tensor | None]] = {root[0].sequence_nr: [None] * len(root[0].outputs)}
        waiting[root[0].sequence_nr][root[1]] = seed.detach()
        heap = [-root[0].sequence_nr]
        while heap:
            number = -heapq.heappop(heap)
            node, cotangents = nodes[number], waiting.pop(number)
            if node.is_leaf:
                if cotangents[0] is not None:
                    self.leaves[(number, 0)] = cotangents[0]
                continue
            gradients = node(*cotangents)
            for i, ((to, position), g) in enumerate(zip(node.next_functions, gradients)):
                if to is None or g is None:
                    continue
                if to.sequence_nr not in waiting:
                    nodes[to.sequence_nr] = to
                    waiting[to.sequence_nr] = [None] * len(to.outputs)
                    heapq.heappush(heap, -to.sequence_nr)
                slots = waiting[to.sequence_nr]
                before = slots[position]
                slots[position] = g if before is None else before + g
                for k, upstream in enumerate(cotangents):
                    if upstream is not None:
                        self.row(node, (k, i), (to.sequence_nr, position), upstream)
        return self.finish((root[0].sequence_nr, root[1]))

    def row(self, node: Node, which: tuple[int, int], to: Key, upstream: Tensor) -> None:
        """The row of an output and an input of `node`, `which` in this order."""
        if len(self.rows) >= self.max_rows:
            self.left += 1
            return
        downstream = self.pull(node, which, upstream)
        if downstream is None:
            return
        local, diagonal = self.local(node, which, upstream, downstream)
        output, name = self.names.of((node.sequence_nr, which[0])), self.names.of(to)
        location = None if node.location is None else Location(*node.location)
        numbers = (array(upstream), array(downstream))
        self.rows.append(TraceRow(output, node.op, name, local, diagonal, *numbers, location))

    def pull(self, node: Node, which: tuple[int, int], upstream: Tensor) -> Tensor | None:
        """The gradient of one input for the cotangent of one output."""
        cotangents: list[Tensor | None] = [None] * len(node.outputs)
        cotangents[which[0]] = upstream
        return node(*cotangents)[which[1]]

    def local(
        self, node: Node, which: tuple[int, int], upstream: Tensor, downstream: Tensor
    ) -> tuple[Numbers | None, bool]:
        """The Jacobian of one output with respect to one input, row by row from the reverse rule."""
        shape, size = tuple(upstream.shape), upstream.numel()
        if max(size, downstream.numel()) > self.max_elements:
            self.large += 1
            return None, False
        jacobian = np.zeros((size, downstream.numel()))
        for r in range(size):
            unit = np.zeros(size)
            unit[r] = 1.0
            unit = unit.reshape(shape)
            row = self.pull(node, which, _core.tensor(unit, dtype=upstream.dtype).to(upstream.device))
            if row is not None:
                jacobian[r] = array(row).reshape(-1)
        same = shape == tuple(downstream.shape)
        if same and not (jacobian - np.diag(np.diag(jacobian))).any():
            return np.diag(jacobian).reshape(shape), True
        return jacobian.reshape(shape + tuple(downstream.shape)), False

    def finish(self, root: Key) -> Trace:
        """The trace, with notices of what it does not show."""
        notices = []
        if self.large:
            notices.append(
                f"{self.large} local derivatives have more than {self.max_elements} elements on a side and "
                "are not shown; raise max_elements to see them"
            )
        if self.left:
            notices.append(
                f"the first {self.max_rows} rows are shown, {self.left} are left out; raise max_rows"
            )
        gradients = {self.names.of(key): array(g) for key, g in sorted(self.leaves.items())}
        return Trace(self.names.of(root), self.rows, gradients, notices)
