"""`draw`: the graph behind some results as DOT, Mermaid, SVG or a page for a browser; `Drawing` holds them
all.

The tape is read at once (`tape.py`), with gradient norms if asked for; each format is made when it is first
wanted.
"""

import heapq
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import wengert as wg
from wengert._core import Tensor

from . import fold, html, svg, tape, text

__all__ = ["Drawing", "draw"]

# Boxes in a picture, unless told otherwise, and from how many on repetitions are folded. Mermaid by default
# refuses more than 500 links or 50,000 characters. DOT is complete: Graphviz takes what it gets.
PICTURE, FOLDED, MERMAID = 400, 200, 300
FORMATS = {
    ".dot": "dot",
    ".gv": "dot",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".svg": "svg",
    ".html": "html",
    ".htm": "html",
}


class Drawing:
    """The graph behind some results.

    Attributes:
        graph: its boxes and links, as read from the tape.
        notices: what the picture does not show, in sentences; empty if it shows everything.
    """

    def __init__(
        self, graph: tape.Graph, title: str, collapse: bool | None = None, max_nodes: int | None = None
    ) -> None:
        """Holds `graph`; `draw` makes it."""
        self.graph, self.title = graph, title
        self._collapse, self._max_nodes = collapse, max_nodes

    def _fitting(self, limit: int | None) -> tape.Graph:
        """The graph, folded and capped to `limit` boxes."""
        graph = self.graph
        large = limit is not None and len(graph.boxes) > min(limit, FOLDED)
        if self._collapse or (large and self._collapse is None):
            graph = fold.fold(graph)
        return graph if limit is None else fold.cap(graph, limit)

    @cached_property
    def _picture(self) -> tape.Graph:
        return self._fitting(self._max_nodes or PICTURE)

    @property
    def notices(self) -> list[str]:
        """What the picture does not show."""
        return list(self._picture.notices)

    @cached_property
    def dot(self) -> str:
        """Returns the text for Graphviz; complete unless `max_nodes` was given."""
        return text.dot(self._fitting(self._max_nodes))

    @cached_property
    def mermaid(self) -> str:
        """Returns, for Markdown that draws Mermaid, the text of a code block whose language is `mermaid`."""
        return text.mermaid(self._fitting(self._max_nodes or MERMAID))

    @cached_property
    def svg(self) -> str:
        """Returns a picture, in light or dark colours as the viewer prefers."""
        return svg.svg(self._picture, self.title)

    @cached_property
    def html(self) -> str:
        """Returns a page of its own, to search, zoom and look closer; it loads nothing."""
        return html.page(self._picture, self.title)

    def save(self, path: str | Path, format: str | None = None) -> Path:
        """Writes a file and returns its path; the suffix tells the format unless `format` does."""
        path = Path(path)
        known = sorted(set(FORMATS.values()))
        if format is None and path.suffix.lower() not in FORMATS:
            raise ValueError(
                f"draw: the suffix of {path.name!r} tells no format; use one of {', '.join(FORMATS)}, or "
                f"format="
            )
        kind = FORMATS[path.suffix.lower()] if format is None else format
        if kind not in known:
            raise ValueError(f"draw: unknown format {kind!r}; expected one of {', '.join(known)}")
        path.write_text(getattr(self, kind), encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        """The page inside a notebook, in a frame of its own."""
        return (
            f'<iframe srcdoc="{escape(self.html)}" title="{escape(self.title)}" '
            'style="width:100%;height:560px;border:1px solid #8884;border-radius:8px"></iframe>'
        )

    def __repr__(self) -> str:
        """How much there is, and what is not shown."""
        return "\n  ".join([f"<Drawing: {self.graph.summary()}>", *self.notices])


def draw(
    outputs: Any,
    path: str | Path | None = None,
    format: str | None = None,
    params: Any = None,
    *,
    backward: bool = False,
    collapse: bool | None = None,
    max_nodes: int | None = None,
    constants: bool = True,
    title: str | None = None,
) -> Drawing:
    """Draws the operations that gradients of `outputs` pass through, from the leaves at the top to the
    results below.

    Boxes tell the operation, shape and dtype of its result, and how many bytes it keeps for backward; memory
    that several operations keep is counted at each. Names come from `params`; a named parameter shows the
    norm of its `.grad`, and one that the results do not depend on is reported in `notices`.

    In a `wengert.debug()` region operations remember the line that recorded them; the page and the SVG then
    tell it.

    Args:
        outputs: a tensor, several, or a tree of them.
        path: where to write a file; its suffix (`.dot`, `.mmd`, `.svg`, `.html`) tells the format.
        format: "dot", "mermaid", "svg" or "html", where the suffix does not say.
        params: a module, its `named_parameters()`, or a tree of tensors, for names. Results of operations can
            be named, too.
        backward: computes gradients and shows their norms at every box. Cotangents are ones, as for
            `outputs.sum()`; neither `.grad` nor what the graph keeps changes, and hooks do not run. The graph
            must not be freed. `record` watches a backward of your own instead.
        collapse: folds repetitions (layers, time steps) or not; by default in pictures of more than 200
            boxes.
        max_nodes: the most boxes, by default 400 in pictures and 300 in Mermaid; where there are more, those
            nearest to the outputs are drawn and `notices` says so. DOT is complete unless this is given.
        constants: whether to draw inputs that need no gradient.
        title: the heading.

    Returns:
        A `Drawing` with `.dot`, `.mermaid`, `.svg`, `.html` and `save(path)`, which notebooks show by itself.

    Raises:
        RuntimeError: if there is no graph, or if it was freed and `backward` is asked for.
        TypeError: for something else than tensors.
        ValueError: for an unknown format.

    Example:
        >>> w = wg.ones(3, requires_grad=True)
        >>> drawing = wg.graph.draw((w * w).sum(), params={"w": w}, backward=True)
        >>> print(drawing)
        <Drawing: 2 operations · 1 parameter · 24 B kept for backward>
    """
    graph, index = tape.read(outputs, params, constants)
    if backward:
        _gradients(graph, index)
    return make(graph, path, format, collapse, max_nodes, title)


def make(
    graph: tape.Graph,
    path: str | Path | None,
    format: str | None,
    collapse: bool | None,
    max_nodes: int | None,
    title: str | None,
) -> Drawing:
    """The drawing of a graph, saved if there is a path."""
    whole = isinstance(max_nodes, int) and not isinstance(max_nodes, bool)
    if max_nodes is not None and not (whole and max_nodes >= 2):
        raise ValueError(f"draw: max_nodes must be an integer of at least 2, got {max_nodes!r}")
    if format is not None and path is None:
        raise ValueError(
            f"draw: format={format!r} says how to write a file, but no path was given; give one, or take "
            ".dot, .mermaid, .svg or .html of the result"
        )
    drawing = Drawing(graph, title or _title(graph), collapse, max_nodes)
    if path is not None:
        drawing.save(path, format)
    return drawing


def _title(graph: tape.Graph) -> str:
    names = [name for box in graph.boxes if box.kind == "output" for name in box.names]
    return f"Graph of {', '.join(names[:4])}" + (", …" if len(names) > 4 else "") if names else "Graph"


def _gradients(graph: tape.Graph, index: dict[Any, int]) -> None:
    """Walks back with cotangents of ones, applying each entry's rule, and notes the norms; keeps nothing
    else."""
    waiting: dict[Any, list[Tensor | None]] = {}
    heap: list[tuple[int, int, Any]] = []

    def send(node: Any, port: int, g: Tensor) -> None:
        if node not in waiting:
            waiting[node] = [None] * len(node.outputs)
            heapq.heappush(heap, (-node.sequence_nr, index[node], node))
        before = waiting[node][port]
        waiting[node][port] = g if before is None else before + g

    with wg.no_grad():
        for node, box in index.items():
            value = node.outputs
            for port in graph.results.get(box, ()):
                ones = wg.ones(value[port].shape, dtype=value[port].dtype, device=value[port].device)
                send(node, port, ones)
        while heap:
            *_, node = heapq.heappop(heap)
            g = waiting.pop(node)
            graph.boxes[index[node]].norms = [None if x is None else tape.norm(x) for x in g]
            if node.is_leaf:
                continue
            for (source, port), gradient in zip(node.next_functions, node(*g)):
                if source is not None and gradient is not None:
                    send(source, port, gradient)
