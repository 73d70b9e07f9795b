"""The graph as text: DOT for Graphviz, and Mermaid, which GitHub and many editors draw."""

import re

from .svg import PALETTE, link_text
from .tape import Box, Graph

__all__ = ["dot", "mermaid"]

_SHAPES = {"parameter": "box", "leaf": "box", "data": "box", "rest": "box", "fold": "box"}
_BRACKETS = {
    "parameter": ('("', '")'),
    "leaf": ('("', '")'),
    "data": ('(["', '"])'),
    "output": ('(["', '"])'),
    "fold": ('[["', '"]]'),
}


def _dot_text(text: str) -> str:
    """Between double quotes of DOT."""
    return _printable(text).replace("\\", "\\\\").replace('"', '\\"')


def _printable(text: str) -> str:
    """Without control characters, which none of the formats can hold."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", text)


def dot(graph: Graph) -> str:
    """The graph in the DOT language."""
    lines = ["digraph wengert {"]
    lines += [f"  // {_printable(notice)}" for notice in graph.notices]
    lines += [
        '  graph [rankdir=TB, nodesep=0.35, ranksep=0.45, fontname="Helvetica"];',
        '  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=11, margin="0.14,0.07"];',
        '  edge [fontname="Helvetica", fontsize=9, color="#8a94a6", fontcolor="#5b6472", arrowsize=0.6];',
    ]
    for i, box in enumerate(graph.boxes):
        label = "\\n".join(_dot_text(line) for line in box.lines())
        fill, border, ink = PALETTE["light"][box.kind]
        dashed = ', style="rounded,filled,dashed"' if box.kind in ("data", "fold", "rest") else ""
        lines.append(
            f'  n{i} [label="{label}", fillcolor="{fill}", color="{border}", fontcolor="{ink}"{dashed}];'
        )
    for link in graph.links:
        text = link_text(graph, link)
        label = f' [label="{_dot_text(text)}"]' if text else ""
        lines.append(f"  n{link.source} -> n{link.target}{label};")
    return "\n".join([*lines, "}", ""])


def _mermaid_text(text: str) -> str:
    """Between double quotes of Mermaid, whose entities are `#name;`."""
    text = _printable(text).replace("#", "#35;").replace("&", "#amp;")
    return text.replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;").replace("`", "#96;")


def _mermaid_box(i: int, box: Box) -> str:
    opening, closing = _BRACKETS.get(box.kind, ('["', '"]'))
    return f"  n{i}{opening}{'<br>'.join(_mermaid_text(line) for line in box.lines())}{closing}:::{box.kind}"


def mermaid(graph: Graph) -> str:
    """The graph as a Mermaid flowchart."""
    lines = ["flowchart TD"]
    lines += [f"  %% {_printable(notice)}" for notice in graph.notices]
    lines += [_mermaid_box(i, box) for i, box in enumerate(graph.boxes)]
    for link in graph.links:
        text = link_text(graph, link)
        arrow = f'-->|"{_mermaid_text(text)}"|' if text else "-->"
        lines.append(f"  n{link.source} {arrow} n{link.target}")
    for kind in dict.fromkeys(box.kind for box in graph.boxes):
        fill, border, ink = PALETTE["light"][kind]
        dashes = ",stroke-dasharray:4 3" if kind in ("data", "fold", "rest") else ""
        lines.append(f"  classDef {kind} fill:{fill},stroke:{border},color:{ink}{dashes}")
    return "\n".join([*lines, ""])
