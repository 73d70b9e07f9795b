"""The tape as a picture needs it: boxes and links, read once from the entries behind some results.

A box is an operation, a leaf, or a value that needs no gradient; a link carries a value. Reading changes
nothing and is linear in the size of the graph. Read next: `fold.py`, which makes large graphs small.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from wengert import _core, tree
from wengert._core import Tensor

from .layout import Link

__all__ = ["Box", "Graph", "Saved", "read"]


@dataclass(frozen=True)
class Saved:
    """A value that an operation keeps for backward."""

    name: str
    value: str
    nbytes: int


@dataclass
class Box:
    """One thing in the picture.

    Attributes:
        kind: "parameter" (a leaf with a name), "leaf", "data" (needs no gradient), "operation", "output" (an
            operation whose result was given), "fold" (repetitions left out), "rest" (what was not drawn at
            all).
        title: the operation, or the name of the leaf.
        shapes, dtypes: of its outputs.
        function: the name of the tape entry, as in `MulBackward`.
        names: what the user calls its outputs.
        norms: gradient norm per output, None where unknown.
        location: file, line and function that recorded it, where lines were kept (as in `debug()`).
        stands_for: how many operations it stands for.
    """

    kind: str
    title: str
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    dtypes: list[str] = field(default_factory=list)
    function: str = ""
    names: list[str] = field(default_factory=list)
    saved: list[Saved] = field(default_factory=list)
    saved_bytes: int = 0
    freed: bool = False
    norms: list[float | None] = field(default_factory=list)
    stands_for: int = 1
    note: str = ""
    location: tuple[str, int, str] | None = None

    def value(self, port: int = 0) -> str:
        """Shape and dtype of an output, as in `2 × 3 float32`."""
        return f"{shape_text(self.shapes[port])} {self.dtypes[port]}" if self.shapes else ""

    def lines(self) -> list[str]:
        """What stands in the box, the title first."""
        lines = [self.title]
        if self.names and self.kind != "parameter":
            lines.append(", ".join(self.names))
        if self.note:
            lines.append(self.note)
        if self.shapes:
            more = f" and {len(self.shapes) - 1} more" if len(self.shapes) > 1 else ""
            lines.append(self.value() + more)
        if self.saved_bytes:
            lines.append(f"saves {bytes_text(self.saved_bytes)}")
        elif self.freed:
            lines.append("saved values freed")
        known = [norm for norm in self.norms if norm is not None]
        if known:
            lines.append("|gradient| " + ", ".join(number_text(norm) for norm in known[:2]))
        return lines


@dataclass
class Graph:
    """Boxes in the order of computation, links between them, and what the reader must be told."""

    boxes: list[Box]
    links: list[Link]
    notices: list[str] = field(default_factory=list)
    # Per box, the outputs of it that were given.
    results: dict[int, list[int]] = field(default_factory=dict)

    @property
    def operations(self) -> int:
        """How many operations there are, those left out included."""
        return sum(
            box.stands_for for box in self.boxes if box.kind in ("operation", "output", "fold", "rest")
        )

    def summary(self) -> str:
        """One line: how much of everything."""
        count = {
            kind: sum(box.kind == kind for box in self.boxes)
            for kind in ("parameter", "leaf", "data", "fold")
        }
        saved = sum(box.saved_bytes for box in self.boxes)
        parts = [count_text(self.operations, "operation")]
        if count["parameter"]:
            parts.append(count_text(count["parameter"], "parameter"))
        if count["leaf"]:
            parts.append(count_text(count["leaf"], "unnamed leaf", "unnamed leaves"))
        parts.append(f"{bytes_text(saved)} kept for backward")
        return " · ".join(parts)


def shape_text(shape: Iterable[int]) -> str:
    """`2 × 3`; `scalar` for no axes."""
    return " × ".join(map(str, shape)) or "scalar"


def bytes_text(count: int) -> str:
    """`24 B`, `1.5 KiB`."""
    size, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"


def number_text(x: float) -> str:
    """Three digits."""
    return f"{x:.3g}"


def count_text(count: int, one: str, many: str | None = None) -> str:
    """`1 operation`, `12,345 operations`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _labelled(tree_: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted name, leaf) of nested dicts, lists and tuples; other trees number their leaves."""
    if isinstance(tree_, Mapping):
        entries: Iterable[tuple[Any, Any]] = tree_.items()
    elif isinstance(tree_, (list, tuple)):
        pairs = all(isinstance(e, tuple) and len(e) == 2 and isinstance(e[0], str) for e in tree_)
        entries = tree_ if pairs and tree_ else enumerate(tree_)
    else:
        leaves = tree.tree_leaves(tree_)
        if len(leaves) == 1 and leaves[0] is tree_:
            yield path, tree_
            return
        entries = enumerate(leaves)
    for key, value in entries:
        yield from _labelled(value, f"{path}.{key}" if path else str(key))


def named_tensors(params: Any) -> list[tuple[str, Tensor]]:
    """(name, tensor) of a module, of `named_parameters()`, or of nested dicts, lists and tuples of
    tensors."""
    if params is None:
        return []
    if hasattr(params, "named_parameters"):
        return list(params.named_parameters(remove_duplicate=False))
    if isinstance(params, Iterator):
        params = list(params)
    found = []
    for name, value in _labelled(params):
        if not isinstance(value, Tensor):
            raise TypeError(
                f"draw: params holds {type(value).__name__} at {name or 'the top'!r}; give a module, its "
                "named_parameters(), or a dict from names to tensors"
            )
        found.append((name, value))
    return found


def _roots(outputs: Any) -> tuple[list[tuple[str, Any, int]], list[str]]:
    """(name, tape entry, port) of each result that has a graph, and notices about the others."""
    leaves = list(_labelled(outputs))
    if not leaves:
        raise ValueError("draw: there is nothing to draw, the outputs are an empty tree")
    roots, notices = [], []
    for name, x in leaves:
        if not isinstance(x, Tensor):
            raise TypeError(
                f"draw: a tensor or a tree of tensors expected, got {type(x).__name__}"
                + (f" at {name!r}" if name else "")
            )
        label = name if name and not name[0].isdigit() else ("loss" if prod(x.shape) == 1 else "output")
        if name[:1].isdigit():
            label = f"{label} {name}"
        edge = _core._gradient_edge(x)
        if edge is None:
            notices.append(f"{label} of shape {tuple(x.shape)} has no graph, so it is not drawn")
        else:
            roots.append((label, *edge))
    if not roots:
        raise RuntimeError(
            "draw: there is no graph behind "
            + ("the tensor" if len(leaves) == 1 else f"any of the {len(leaves)} tensors")
            + "; none of its inputs required a gradient, or it was computed under no_grad(), or detach() cut it off: "
            "set requires_grad=True on an input before computing it"
        )
    return roots, notices


def read(outputs: Any, params: Any = None, constants: bool = True) -> tuple[Graph, dict[Any, int]]:
    """The graph behind `outputs`, and the box of each tape entry.

    Raises:
        TypeError: for outputs or params that are no tensors.
        RuntimeError: if there is no graph.
    """
    roots, notices = _roots(outputs)
    inputs: dict[Any, tuple[tuple[Any, int], ...]] = {}
    stack = [node for _, node, _ in roots]
    while stack:
        node = stack.pop()
        if node not in inputs:
            inputs[node] = node.next_functions
            stack.extend(source for source, _ in inputs[node] if source is not None)
    graph = Graph([], [], notices)
    index: dict[Any, int] = {}
    for node in sorted(inputs, key=lambda node: node.sequence_nr):
        kept = {saved.name: saved for saved in node.saved}
        links = []
        for i, (source, port) in enumerate(inputs[node]):
            if source is not None:
                at = index[source]
                links.append((at, port))
            elif constants:
                graph.boxes.append(_constant(kept.get(f"input {i}")))
                links.append((len(graph.boxes) - 1, 0))
        index[node] = len(graph.boxes)
        graph.boxes.append(_box(node, kept))
        graph.links += [Link(at, index[node], port) for at, port in links]
    _name(graph, index, roots, named_tensors(params))
    return graph, index


def _constant(saved: Any) -> Box:
    """The box of an input that needs no gradient; its shape is known where it was kept."""
    if saved is None:
        return Box("data", "constant")
    return Box("data", "constant", [saved.shape], [str(saved.dtype).rpartition(".")[2]])


def _box(node: Any, kept: dict[str, Any]) -> Box:
    outputs = node.outputs
    box = Box(
        kind="leaf" if node.is_leaf else "operation",
        title="leaf" if node.is_leaf else node.op,
        shapes=[tuple(value.shape) for value in outputs],
        dtypes=[str(value.dtype).rpartition(".")[2] for value in outputs],
        function=node.name(),
        norms=[None] * len(outputs),
    )
    if not node.is_leaf:
        box.location = node.location
        box.freed = node.is_freed
        box.saved_bytes = node.saved_bytes
        box.saved = [
            Saved(name, f"{shape_text(v.shape)} {str(v.dtype).rpartition('.')[2]}", v.nbytes)
            for name, v in kept.items()
        ]
    return box


def _name(
    graph: Graph, index: dict[Any, int], roots: list[tuple[str, Any, int]], named: list[tuple[str, Tensor]]
) -> None:
    """Names boxes by what the user calls their outputs, and tells which names the graph does not reach."""
    for label, node, port in roots:
        box = graph.boxes[index[node]]
        graph.results.setdefault(index[node], []).append(port)
        box.names.append(label)
        if box.kind == "operation":
            box.kind = "output"
    unreached = []
    for name, tensor in named:
        edge = _core._gradient_edge(tensor)
        if edge is None or edge[0] not in index:
            unreached.append(name)
            continue
        box = graph.boxes[index[edge[0]]]
        if name not in box.names:
            box.names.append(name)
        if box.kind in ("leaf", "parameter"):
            box.kind, box.title = "parameter", " = ".join(box.names)
            grad = tensor.grad
            if grad is not None:
                box.norms = [norm(grad)]
    if unreached:
        shown = ", ".join(unreached[:8]) + (f" and {len(unreached) - 8} more" if len(unreached) > 8 else "")
        graph.notices.append(f"not reached from here, so no gradient will arrive: {shown}")


def norm(g: Tensor) -> float | None:
    """The Euclidean norm of a gradient; None where it has no single value, as inside `vmap`."""
    wide = g.detach().float() if g.dtype.itemsize < 4 else g.detach()
    try:
        return float(wide.norm().item()) if wide.numel() else 0.0
    except (RuntimeError, TypeError):
        return None
