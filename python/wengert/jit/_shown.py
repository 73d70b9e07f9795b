"""What a program shows of itself: its listing, what it costs, the memory that it takes, its graph."""

import numbers
import textwrap
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from wengert import _core
from wengert._core import Tensor
from wengert.nn.module import Module

__all__ = ["Cost", "CostRow", "Memory", "Program", "ProgramStep", "shown"]


class ProgramStep(NamedTuple):
    """A step of a program.

    Attributes:
        kind: `run`, `write` (in place), `group` (of elementwise operations that run together), `copy`,
            `gradient`, `call` (of the host) or `look` (at a value).
        names: the operations: one, those of a group, or none.
        inputs, outputs: the numbers of values; None for an output that is a view of an input.
        number: which leaf, or which function of the host.
        value: what a look must find.
        draws: whether random numbers are drawn.
        place: file, line and function of the program, where they are known.
        module: the module that ran it, or whose backward it is, by its place in the outermost module that is
            called; `Global` outside of any. That of a group is the module of its first operation.
        flops, read, written: floating point operations, and bytes of distinct elements.
    """

    kind: str
    names: list[str]
    inputs: list[int]
    outputs: list[int | None]
    number: int
    value: float
    draws: bool
    place: tuple[str, int, str] | None
    module: str
    flops: int
    read: int
    written: int

    @property
    def name(self) -> str:
        """The operation, `fused` for a group; empty for what is none."""
        return "fused" if self.kind == "group" else "".join(self.names)


class CostRow(NamedTuple):
    """What one operation costs, over all its runs in a program.

    Attributes:
        calls: how many steps run it.
        flops, read, written: floating point operations and bytes, in sum.
        seconds: the least time at the given rates.
        bound: `compute` or `memory`, whichever takes longer.
    """

    calls: int
    flops: int
    read: int
    written: int
    seconds: float
    bound: str

    @property
    def intensity(self) -> float:
        """Floating point operations per byte; infinite where no byte moves."""
        moved = self.read + self.written
        return self.flops / moved if moved else float("inf") if self.flops else 0.0


def _row(steps: list[ProgramStep], flops_per_second: float, bytes_per_second: float) -> CostRow:
    flops, read, written = (sum(getattr(s, name) for s in steps) for name in ("flops", "read", "written"))
    compute, memory = flops / flops_per_second, (read + written) / bytes_per_second
    bound = "compute" if compute > memory else "memory"
    return CostRow(len(steps), flops, read, written, max(compute, memory), bound)


@dataclass(frozen=True)
class Cost:
    """What a program costs: floating point operations, and bytes of the elements that it reads and writes.

    Attributes:
        steps: a row for each step, in order.
        by_name: a row for each operation; groups of elementwise ones are `fused`, calls of the host are
            `call`, and their bytes are not known.
        by_module: a row for each module, forward and backward, those of its submodules included; `Global` is
            what runs outside of any.
        total: the sum.
    """

    steps: list[CostRow]
    by_name: dict[str, CostRow]
    by_module: dict[str, CostRow]
    total: CostRow

    def __str__(self) -> str:
        """A table, the operation that takes longest first, then so the modules, if there are any."""
        lines = [f"{'operation':<24}{'calls':>7}{'flops':>16}{'bytes':>16}{'flops/byte':>12}  bound"]
        rows = [
            item
            for found in (self.by_name, self.by_module if len(self.by_module) > 1 else {})
            for item in sorted(found.items(), key=lambda item: -item[1].seconds)
        ]
        for name, row in [*rows, ("total", self.total)]:
            moved = row.read + row.written
            lines.append(
                f"{name:<24}{row.calls:>7}{row.flops:>16,}{moved:>16,}{row.intensity:>12.2f}  {row.bound}"
            )
        return "\n".join(lines)


class Memory(NamedTuple):
    """The host memory that a run takes.

    Attributes:
        peak: the most bytes that tensors hold at once, beyond those before the run.
        step: the number of the step that takes them; None for a program without any.
        after: the bytes held after each step.
    """

    peak: int
    step: int | None
    after: list[int]


class Program:
    """A program that `jit` made, to look at. It prints as a listing, a line for each step.

    Attributes:
        steps: what it does, in order. Elementwise operations that run together are one step, `fused`.
        names: the operations, in order.

    Example:
        >>> @wg.jit
        ... def f(x):
        ...     return (x * 2).sin()
        >>> _ = f(wg.ones(3))
        >>> program = f.program(wg.ones(3))
        >>> program.names
        ['mul', 'sin']
        >>> program.cost().total.flops
        6
        >>> program.memory().peak
        12
    """

    def __init__(
        self, program: Any, title: str, names: tuple[dict[int, str], dict[int, str]], modules: list[str]
    ) -> None:
        self._program, self._title = program, title
        self._memories, self._leaves = names
        self._values = program.shown_values()
        self.steps = [
            ProgramStep._make([*what, *values, *facts, place, modules[scope], *moved])
            for what, values, facts, (place, scope), moved in program.shown_steps()
        ]
        self._results, self._touched = program.shown_ends()

    @property
    def names(self) -> list[str]:
        """The operations, in order."""
        return [name for step in self.steps for name in step.names]

    def __repr__(self) -> str:
        """The listing."""
        return str(self)

    def __str__(self) -> str:
        """The listing: what it reads from outside, then a line for each step, then what it returns."""
        lines = [f"program {self._title}"]
        for number, (kind, at, _, _) in enumerate(self._values):
            if kind == "argument":
                lines.append(f"  argument {at}: {self._kind(number)} = {self._name(number)}")
        used = {x for step in self.steps for x in (*step.inputs, *step.outputs)} | set(self._results)
        lines += [
            f"  captured: {self._kind(number)} = {self._name(number)}"
            for number, value in enumerate(self._values)
            if value[0] == "fixed" and number in used
        ]
        for step in self.steps:
            line = f"  {self._line(step)}"
            if step.place:
                line += f"   # {Path(step.place[0]).name}:{step.place[1]}"
            lines.append(line)
            if step.kind == "group":
                lines += textwrap.wrap(
                    ", ".join(step.names), 100, initial_indent=" " * 6, subsequent_indent=" " * 6
                )
        return "\n".join([*lines, f"  return {', '.join(map(self._name, self._results))}".rstrip()])

    def _kind(self, number: int) -> str:
        _, _, shape, dtype = self._values[number]
        return f"{dtype}{list(shape)}"

    def _name(self, number: int) -> str:
        kind, at, _, _ = self._values[number]
        if kind == "argument":
            return f"%arg{at}"
        if kind == "fixed":
            return self._memories.get(at, f"%{number}")
        if kind == "gradient":
            return self._leaf(at) + ".grad"
        return f"%{number}"

    def _leaf(self, number: int) -> str:
        return self._leaves.get(self._touched[number], f"leaf {number}")

    def _operand(self, number: int) -> str:
        kind, at, _, _ = self._values[number]
        return f"view({self._name(at)})" if kind == "within" else self._name(number)

    def _line(self, step: ProgramStep) -> str:
        inputs = ", ".join(map(self._operand, step.inputs))
        made = [x for x in step.outputs if x is not None]
        drawn = "   draws random numbers" if step.draws else ""
        if step.kind == "look":
            return f"look {inputs} == {step.value:g}"
        if step.kind == "call":
            return f"call function {step.number} of the host"
        if step.kind == "gradient":
            return f"{self._leaf(step.number)}.grad = {inputs or 'None'}"
        if step.kind == "copy":
            return f"{', '.join(f'{self._name(x)}: {self._kind(x)}' for x in made)} = copy of a constant"
        if step.kind == "write":
            return f"{', '.join(map(self._operand, made))} <- {step.name}({inputs}){drawn}"
        left = ", ".join(f"{self._name(x)}: {self._kind(x)}" for x in made)
        return f"{left or '_'} = {step.name}({inputs}){drawn}"

    def cost(self, flops_per_second: float = 1e11, bytes_per_second: float = 2e10) -> Cost:
        """Returns floating point operations and bytes, by step, by operation, by module and in sum.

        Operations are counted as `wengert.FlopCounter` counts them, also inside calls of the host; those
        whose results nothing reads, or that repeat others, are no part of the program. Bytes are those of the
        distinct elements of operands and results, as if no cache kept any. Those of calls of the host are not
        known and count as none.

        Args:
            flops_per_second, bytes_per_second: the rates that the machine reaches at most, which decide what
                bounds a step. The defaults stand for a processor with a few cores.

        Raises:
            TypeError: for a rate that is no number.
            ValueError: for a rate that is not positive.

        Example:
            >>> f = wg.jit(lambda x: x @ x)
            >>> _ = f(wg.ones(8, 8))
            >>> cost = f.program(wg.ones(8, 8)).cost(flops_per_second=1e12, bytes_per_second=1e12)
            >>> cost.total.flops, cost.total.bound
            (1024, 'compute')
        """
        rates: dict[str, Any] = {"flops_per_second": flops_per_second, "bytes_per_second": bytes_per_second}
        for name, rate in rates.items():
            if isinstance(rate, bool) or not isinstance(rate, numbers.Real):
                raise TypeError(f"cost: {name} is a number, got {rate!r}")
            if not float(rate) > 0:
                raise ValueError(f"cost: {name} is positive, got {rate!r}")
        steps = [_row([step], flops_per_second, bytes_per_second) for step in self.steps]
        groups: dict[str, list[ProgramStep]] = {}
        modules: dict[str, list[ProgramStep]] = {}
        for step in self.steps:
            groups.setdefault(step.name or step.kind, []).append(step)
            parts = step.module.split(".")
            for end in range(len(parts)):
                modules.setdefault(".".join(parts[: end + 1]), []).append(step)
        by_name, by_module = (
            {k: _row(found, flops_per_second, bytes_per_second) for k, found in rows.items()}
            for rows in (groups, modules)
        )
        return Cost(steps, by_name, by_module, _row(self.steps, flops_per_second, bytes_per_second))

    def memory(self) -> Memory:
        """Returns the host memory that a run takes beyond what is held before it, without running it.

        It follows the lifetimes of the values, with the scratch memory that each kernel took when the program
        was made. A gradient that the run drops counts as free unless it is held elsewhere as well. What the
        state of an optimiser takes in its first step is not part of it. Kernels that share work among
        threads may take a little more.

        Example:
            >>> f = wg.jit(lambda x: (x * 2).sin().sum())
            >>> _ = f(wg.ones(1000))
            >>> f.program(wg.ones(1000)).memory().peak
            4004
        """
        return Memory(*self._program.shown_memory())

    def draw(self) -> str:
        """Returns the program as a graph in the DOT language of Graphviz.

        Example:
            >>> f = wg.jit(lambda x: x.exp())
            >>> _ = f(wg.ones(2))
            >>> f.program(wg.ones(2)).draw().splitlines()[0]
            'digraph program {'
        """
        lines = ["digraph program {", "  rankdir=TB;", "  node [shape=box];"]
        drawn: set[int] = set()
        maker: dict[int, str] = {}

        def source(number: int) -> str:
            kind, at, _, _ = self._values[number]
            if number in maker:
                return maker[number]
            if kind == "within":
                return source(at)
            if number not in drawn:
                drawn.add(number)
                text = _quoted(f"{self._name(number)}\n{self._kind(number)}")
                lines.append(f"  v{number} [label={text}, shape=ellipse];")
            return f"v{number}"

        for i, step in enumerate(self.steps):
            label = step.name or step.kind
            if step.kind == "group":
                label += "\n" + textwrap.shorten(", ".join(step.names), 60)
            if step.kind == "gradient":
                label = f"{self._leaf(step.number)}.grad"
            made = [x for x in step.outputs if x is not None]
            text = "\n".join([label, *(self._kind(x) for x in made)])
            edges = [f"  {source(x)} -> s{i};" for x in step.inputs]
            if step.kind == "write":
                edges += [f"  {source(x)} -> s{i} [style=dashed];" for x in made]
            lines.append(f"  s{i} [label={_quoted(text)}];")
            lines += edges
            for x in made:
                maker[x] = f"s{i}"
                if self._values[x][0] == "within":
                    maker[self._values[x][1]] = f"s{i}"
        for k, x in enumerate(self._results):
            edge = f"  {source(x)} -> r{k};"
            lines += [f'  r{k} [label="result {k}", shape=ellipse];', edge]
        return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _named(function: Any, known: list[Any]) -> list[tuple[str, Tensor]]:
    """Tensors that a function reads, by the names that lead to them, shortest way first."""
    places: list[tuple[str, Any]] = []
    owner = getattr(function, "__self__", None)
    if owner is not None:
        places += [("self", owner), *((f"self.{k}", v) for k, v in getattr(owner, "__dict__", {}).items())]
    inner = getattr(function, "__func__", function)
    if isinstance(inner, types.FunctionType):
        for name, cell in zip(inner.__code__.co_freevars, inner.__closure__ or ()):
            try:
                places.append((name, cell.cell_contents))
            except ValueError:
                continue
        places += [(k, inner.__globals__[k]) for k in inner.__code__.co_names if k in inner.__globals__]
    if isinstance(function, Module):
        places.append(("self", function))
    places += [(type(x).__name__, x) for x in known if isinstance(x, Module)]
    found = []
    for name, value in places:
        if isinstance(value, Tensor):
            found.append((name, value))
        elif isinstance(value, Module):
            inside = [*value.named_parameters(), *value.named_buffers()]
            found += [(f"{name}.{path}", x) for path, x in inside]
    return found


def shown(function: Any, variant: Any) -> Program:
    """The program of a variant, with the names of what it captures."""
    named = _named(function, list(variant.state._known.values()))
    memories: dict[int, str] = {}
    leaves: dict[int, str] = {}
    for (name, _), (memory, leaf) in zip(named, _core._stage_places([x for _, x in named])):
        if memory is not None:
            memories.setdefault(memory, name)
        if leaf is not None:
            leaves.setdefault(leaf, name)
    return Program(
        variant.program,
        getattr(function, "__name__", type(function).__name__),
        (memories, leaves),
        variant.modules,
    )
