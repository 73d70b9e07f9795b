"""Floating point operations, counted as a program runs: by operation, by module, forward and backward.

The core counts where kernels run, each operation by its own formula, so whatever calls it (a layer, a
transform, a checkpoint that runs again) is counted, with the shapes that it really has, batch axes of `vmap`
included.

What counts: additions, subtractions, multiplications, divisions and elementary functions (`exp`, `sqrt`,
`tanh`, …) of one element count one each, of whatever dtype. Changes of sign, comparisons, selections,
roundings, random numbers and moving data count nothing. The count is that of the formula: a product of
matrices is `2 m n k`, a convolution two for each product of its window, padding included, attention the
composition's, causal or not. Writes in place are counted like what makes a new value; for a fused step of an
optimiser see `Update` in the list of operations.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from wengert import _core

__all__ = ["Count", "FlopCounter", "flops"]
__dir__ = __all__.copy

# What a module is called where none runs, as in torch.utils.flop_counter.
GLOBAL = "Global"


class Count(NamedTuple):
    """Calls and floating point operations of one operation."""

    calls: int
    flops: int


@dataclass(frozen=True)
class Row:
    """One operation in one module, in the forward or in backward."""

    module: str
    backward: bool
    op: str
    calls: int
    flops: int
    #: How long it took on the host.
    seconds: float


class Modules:
    """The modules that run, by name; the numbers are what the core knows of them."""

    def __init__(self) -> None:
        self.names: list[str] = [GLOBAL]
        self.numbers: dict[str, int] = {GLOBAL: 0}
        # The modules that run, with the scope that each found, and the names of all in the outermost one.
        self.open: list[tuple[Any, int]] = []
        self.known: dict[int, str] = {}
        self.counters = 0

    def number(self, name: str) -> int:
        """The number of a name."""
        if name not in self.numbers:
            self.numbers[name] = len(self.names)
            self.names.append(name)
        return self.numbers[name]

    def enter(self, module: Any) -> None:
        """A module begins to run."""
        root = type(module).__name__
        if not self.open or id(module) not in self.known:
            found = {id(m): f"{root}.{name}" if name else root for name, m in module.named_modules()}
            self.known = found if not self.open else {**found, **self.known}
        number = self.number(self.known[id(module)])
        self.open.append((module, _core._flops_scope(number)))

    def leave(self, module: Any) -> None:
        """A module has run."""
        if self.open and self.open[-1][0] is module:
            _core._flops_scope(self.open.pop()[1])


class _Here(Modules, threading.local):
    """Those of this thread."""


_modules = _Here()


class _Following:
    """The hooks by which counters learn of modules: those of all modules, while any thread counts."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.counters = 0
        self.hooks: list[Any] = []

    def begin(self) -> None:
        """One more counter."""
        from wengert.nn.hooks import EVERYWHERE, Hook, add

        with self.lock:
            self.counters += 1
            if self.counters == 1:
                after = Hook(_after, always_call=True)
                self.hooks = [
                    add(EVERYWHERE, "forward_pre", Hook(_before)),
                    add(EVERYWHERE, "forward", after),
                ]

    def end(self) -> None:
        """One counter less."""
        with self.lock:
            self.counters -= 1
            if not self.counters:
                for hook in self.hooks:
                    hook.remove()


_following = _Following()


def _before(module: Any, args: tuple[Any, ...]) -> None:
    if _modules.counters:
        _modules.enter(module)


def _after(module: Any, args: tuple[Any, ...], out: Any) -> None:
    if _modules.counters:
        _modules.leave(module)


class FlopCounter:
    """Counts the floating point operations of what runs inside, in this thread; a context.

    Counters nest. Modules are named by their place in the outermost module that is called (`Sequential.0`);
    what runs outside of any is `Global`. The numbers can be read inside and afterwards, `print(counter)`
    shows a table. Outside of a counter nothing is counted, at no cost.

    Attributes:
        rows: one for each module, direction and operation.

    Example:
        >>> layer = wg.nn.Linear(8, 4)
        >>> with wg.FlopCounter() as counter:
        ...     layer(wg.ones(2, 8)).sum().backward()
        >>> counter.total, counter.forward, counter.backward
        (275, 143, 132)
        >>> counter.by_operation()["linear"]
        Count(calls=2, flops=268)
        >>> counter.by_module()["Linear"]
        Count(calls=2, flops=268)
    """

    def __init__(self) -> None:
        """Nothing is counted before `with`."""
        self._rows: list[Row] = []
        self._is_open = False

    def __enter__(self) -> "FlopCounter":
        """Begins to count."""
        if self._is_open:
            raise RuntimeError("FlopCounter: this counter is counting already; make another one to nest them")
        _following.begin()
        _modules.counters += 1
        _core._flops_begin()
        self._is_open = True
        return self

    def __exit__(self, *exc: Any) -> None:
        """Ends counting; what was counted stays."""
        self._rows = self._read()
        self._is_open = False
        _core._flops_end()
        _modules.counters -= 1
        _following.end()
        if not _modules.counters:
            _modules.open.clear()
            _core._flops_scope(0)

    def _read(self) -> list[Row]:
        found = (
            Row(_modules.names[scope], backward, op, calls, flops, time / 1e9)
            for scope, backward, op, calls, flops, time in _core._flops_read()
        )
        return sorted(found, key=lambda row: (_place(row.module), row.backward, -row.flops, row.op))

    @property
    def rows(self) -> list[Row]:
        """What was counted, by module, direction and operation."""
        return self._read() if self._is_open else list(self._rows)

    @property
    def total(self) -> int:
        """All floating point operations."""
        return sum(row.flops for row in self.rows)

    @property
    def forward(self) -> int:
        """Those outside of backward walks; tangents of forward mode are among them."""
        return sum(row.flops for row in self.rows if not row.backward)

    @property
    def backward(self) -> int:
        """Those of backward walks."""
        return sum(row.flops for row in self.rows if row.backward)

    def _by(self, key: Callable[[Row], Iterator[str]]) -> dict[str, Count]:
        sums: dict[str, Count] = {}
        for row in self.rows:
            for name in key(row):
                calls, flops = sums.get(name, (0, 0))
                sums[name] = Count(calls + row.calls, flops + row.flops)
        return dict(sorted(sums.items(), key=lambda item: -item[1].flops))

    def by_operation(self) -> dict[str, Count]:
        """Calls and operations per operation, the costliest first."""
        return self._by(lambda row: iter((row.op,)))

    def by_module(self) -> dict[str, Count]:
        """Calls and operations per module, those of its submodules included, the costliest first."""

        def holders(row: Row) -> Iterator[str]:
            if row.module == GLOBAL:
                yield GLOBAL
                return
            parts = row.module.split(".")
            yield from (".".join(parts[:n]) for n in range(1, len(parts) + 1))

        return self._by(holders)

    def table(self, depth: int | None = None) -> str:
        """Returns a table of modules and their operations: forward, backward, their sum and its share.

        Args:
            depth: how many levels of modules to show; all where None.
        """
        return _table(self.rows, depth)

    def __str__(self) -> str:
        """The table."""
        return self.table()


def _place(name: str) -> list[tuple[int, int, str]]:
    """Sorts modules as people count: 2 before 10, what runs outside of any last."""
    if name == GLOBAL:
        return [(2, 0, "")]
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in name.split(".")]


def _table(rows: list[Row], depth: int | None) -> str:
    """The lines of the table, columns aligned."""
    total = sum(row.flops for row in rows)
    lines = [("module", "operation", "calls", "forward", "backward", "total", "share")]

    def line(name: str, op: str, chosen: list[Row]) -> None:
        back = sum(row.flops for row in chosen if row.backward)
        flops = sum(row.flops for row in chosen)
        share = f"{100 * flops / total:.1f} %" if total else "-"
        calls = str(sum(row.calls for row in chosen))
        lines.append((name, op, calls, f"{flops - back:,}", f"{back:,}", f"{flops:,}", share))

    names = {row.module for row in rows}
    holders = {".".join(name.split(".")[:n]) for name in names for n in range(1, name.count(".") + 2)}
    for name in sorted(holders, key=_place):
        level = name.count(".")
        if depth is not None and level >= depth:
            continue
        inside = [row for row in rows if row.module == name or row.module.startswith(name + ".")]
        line("  " * level + name, "", inside)
        own = (
            inside
            if depth is not None and level == depth - 1
            else [row for row in rows if row.module == name]
        )
        ops = {row.op for row in own if row.flops}
        for op in sorted(ops, key=lambda op: -sum(row.flops for row in own if row.op == op)):
            line("", op, [row for row in own if row.op == op])
    line("all", "", rows)
    widths = [max(len(cells[i]) for cells in lines) for i in range(len(lines[0]))]
    align = [str.ljust, str.ljust, *[str.rjust] * 5]
    return "\n".join(
        "  ".join(pad(cell, width) for pad, cell, width in zip(align, cells, widths)).rstrip()
        for cells in lines
    )


def flops(function: Callable[..., Any], *args: Any, **kwargs: Any) -> int:
    """Counts the floating point operations of `function(*args, **kwargs)`, which runs once.

    To count a backward, let the function do it: `wg.flops(wg.grad(loss), w)`. See `FlopCounter` for what
    counts, and for the parts.

    Example:
        >>> a, b = wg.ones(3, 4), wg.ones(4, 5)
        >>> wg.flops(lambda: a @ b)
        120
        >>> wg.flops(wg.matmul, a, b) == 2 * 3 * 4 * 5
        True
    """
    if not callable(function):
        raise TypeError(
            f"flops: a function expected, got {type(function).__name__}; give it its arguments behind it"
        )
    with FlopCounter() as counter:
        function(*args, **kwargs)
    return counter.total
