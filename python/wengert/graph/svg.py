"""The graph as SVG: boxes with text, smooth edges, a legend, for light and dark pages; no other program is
needed.

`body` makes the elements, with classes and no colours; `svg` adds the styles and the frame of a file. Read
next: `html.py`, which puts the same elements on a page.
"""

import math
from html import escape
from itertools import pairwise

from .layout import Layout, Link, Point, arrange
from .tape import Graph, number_text, shape_text

__all__ = ["PALETTE", "body", "link_text", "sizes", "style", "svg"]

FONT = (
    "Inter, ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
)
TITLE, TEXT, LINE = 13.0, 11.0, 15.0
PAD_X, PAD_Y = 18.0, 9.0
MARGIN = 28.0

# Fill, border, ink of each kind of box; then page, ink, muted ink, edge.
PALETTE: dict[str, dict[str, tuple[str, str, str]]] = {
    "light": {
        "parameter": ("#e3edff", "#7aa5f0", "#163a7d"),
        "leaf": ("#dcf5ef", "#63bda7", "#0d4a3c"),
        "data": ("#f3f4f6", "#b6bcc6", "#5b6472"),
        "operation": ("#ffffff", "#c3c9d3", "#1f2530"),
        "output": ("#ffeccb", "#e2a23b", "#6b3f00"),
        "fold": ("#f2ebfe", "#ac8ce4", "#47287f"),
        "rest": ("#f9e5e8", "#d68b98", "#7a1f31"),
    },
    "dark": {
        "parameter": ("#172c52", "#4c7fd6", "#cfe0ff"),
        "leaf": ("#0f3a31", "#3d9b85", "#c4f1e5"),
        "data": ("#1d222b", "#515b6a", "#a3adbb"),
        "operation": ("#232a35", "#4a5566", "#eef1f6"),
        "output": ("#4a3108", "#d39a3a", "#ffe3b0"),
        "fold": ("#2f2150", "#8767c4", "#e3d6ff"),
        "rest": ("#451c26", "#b2606f", "#ffd3da"),
    },
}
PAGE = {
    "light": ("#fbfbfc", "#1f2530", "#6a7382", "#9aa3b2"),
    "dark": ("#14181f", "#eef1f6", "#97a1b0", "#65707f"),
}
KINDS = {
    "parameter": "parameter",
    "leaf": "leaf without a name",
    "data": "constant, needs no gradient",
    "operation": "operation",
    "output": "result",
    "fold": "repetitions, folded",
    "rest": "not drawn",
}


def style(mode: str, scope: str = "") -> str:
    """The colours of one mode as CSS rules, each under the selector `scope`."""
    page, ink, muted, edge = PAGE[mode]
    rules = [
        f".page{{fill:{page}}}",
        f".edge{{stroke:{edge}}}",
        f".tip{{fill:{edge}}}",
        f".legend{{fill:{muted}}}",
    ]
    rules += [f".shape{{fill:{muted};stroke:{page}}}", f".heading{{fill:{ink}}}", f".notice{{fill:{muted}}}"]
    for kind, (fill, border, text) in PALETTE[mode].items():
        rules += [f".{kind} .frame{{fill:{fill};stroke:{border}}}", f".{kind} text{{fill:{text}}}"]
    return "\n".join(scope + rule for rule in rules)


SHARED = f"""text{{font-family:{FONT}}}
.box .title{{font-size:{TITLE}px;font-weight:600}}
.box .line{{font-size:{TEXT}px;opacity:.78}}
.frame{{stroke-width:1.2}}
.data .frame,.fold .frame,.rest .frame{{stroke-dasharray:4 3}}
.edge{{fill:none;stroke-width:1.3}}
.shape{{font-size:10px;stroke-width:4px;paint-order:stroke;stroke-linejoin:round}}
.legend,.notice{{font-size:11px}}
.heading{{font-size:15px;font-weight:600}}"""


def text_width(text: str, size: float) -> float:
    """About how wide a text is in a sans-serif font."""
    narrow = sum(c in "ijlft.,:;|!'()[] I" for c in text)
    wide = sum(c in "mwMWGOQ@%×" for c in text)
    return size * (0.58 * (len(text) - narrow - wide) + 0.33 * narrow + 0.86 * wide)


def sizes(graph: Graph) -> list[Point]:
    """Width and height of each box."""
    out = []
    for box in graph.boxes:
        title, *lines = box.lines()
        width = max([text_width(title, TITLE * 1.06), *(text_width(line, TEXT) for line in lines)])
        out.append((max(width + 2 * PAD_X, 56.0), 2 * PAD_Y + TITLE + LINE * len(lines)))
    return out


def link_text(graph: Graph, link: Link) -> str:
    """The shape of the value on a link."""
    shapes = graph.boxes[link.source].shapes
    return shape_text(shapes[link.port]) if link.port < len(shapes) else ""


def heat(norm: float, low: float, high: float) -> str:
    """Blue for the smallest gradient norm of the graph, red for the largest, on a logarithmic scale; grey for
    zero."""
    if norm == 0:
        return "#9aa3b2"
    if not math.isfinite(norm):
        return "#ff0033"
    at = (math.log(norm) - math.log(low)) / (math.log(high) - math.log(low)) if high > low else 0.5
    stops = [(59, 110, 246), (34, 178, 153), (232, 178, 34), (226, 62, 54)]
    k = min(int(at * 3), 2)
    mixed = [a + (b - a) * (at * 3 - k) for a, b in zip(stops[k], stops[k + 1])]
    return "#" + "".join(f"{round(channel):02x}" for channel in mixed)


def norm_range(graph: Graph) -> tuple[float, float] | None:
    """The smallest and largest positive gradient norms, None where none is known."""
    known = [norm for box in graph.boxes for norm in box.norms if norm is not None]
    positive = [norm for norm in known if norm > 0 and math.isfinite(norm)]
    return (min(positive), max(positive)) if positive else ((1.0, 1.0) if known else None)


def _curve(points: list[Point]) -> str:
    """Straight within a rank, smooth between ranks."""
    x, y = points[0]
    path = f"M{x:.1f} {y:.1f}"
    for k, ((x0, y0), (x1, y1)) in enumerate(pairwise(points)):
        middle = (y0 + y1) / 2
        if x0 == x1 or k % 2:
            path += f"V{y1:.1f}" if x0 == x1 else f"L{x1:.1f} {y1:.1f}"
        else:
            path += f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
    return path


def _edges(graph: Graph, layout: Layout) -> list[str]:
    out, labelled = [], set()
    labels = []
    for i, (link, route) in enumerate(zip(graph.links, layout.routes)):
        *line, (x, y) = route
        path = _curve([*line, (x, y - 5.0)])
        out.append(
            f'<g class="link" data-from="{link.source}" data-to="{link.target}"><path class="edge" d="{path}"/>'
        )
        out.append(f'<path class="tip" d="M{x:.1f} {y:.1f}l-3.6 -7h7.2z"/></g>')
        text = link_text(graph, link)
        if text and (link.source, link.port) not in labelled:
            labelled.add((link.source, link.port))
            (x0, y0), (x1, y1) = route[0], route[1]
            labels.append(
                f'<text class="shape" x="{(x0 + x1) / 2 + 5:.1f}" y="{(y0 + y1) / 2 + 2:.1f}" data-link="{i}">'
                f"{escape(text)}</text>"
            )
    return out + labels


def _boxes(graph: Graph, layout: Layout) -> list[str]:
    out = []
    span = norm_range(graph)
    for i, (box, (x, y), (width, height)) in enumerate(zip(graph.boxes, layout.centres, sizes(graph))):
        left, top = x - width / 2, y - height / 2
        round_ = height / 2 if box.kind == "data" else 8.0
        out.append(f'<g class="box {box.kind}" data-box="{i}">')
        if box.location:
            out.append(
                f"<title>{escape(f'{box.location[0]}:{box.location[1]} in {box.location[2]}')}</title>"
            )
        rect = f'x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{round_:.1f}"'
        if box.kind == "fold":
            shifted = f'x="{left + 4:.1f}" y="{top + 4:.1f}" width="{width:.1f}" height="{height:.1f}" rx="8"'
            out.append(f'<rect class="frame" {shifted}/>')
        out.append(f'<rect class="frame" {rect}/>')
        known = [norm for norm in box.norms if norm is not None]
        if known and span:
            color = heat(max(known), *span)
            out.append(
                f'<rect class="heat" x="{left + 4:.1f}" y="{top + 5:.1f}" width="4" height="{height - 10:.1f}" '
                f'rx="2" fill="{color}"/>'
            )
        title, *lines = box.lines()
        at = top + PAD_Y + TITLE - 2
        out.append(
            f'<text class="title" x="{x:.1f}" y="{at:.1f}" text-anchor="middle">{escape(title)}</text>'
        )
        for line in lines:
            at += LINE
            out.append(
                f'<text class="line" x="{x:.1f}" y="{at:.1f}" text-anchor="middle">{escape(line)}</text>'
            )
        out.append("</g>")
    return out


def body(graph: Graph) -> tuple[str, Layout]:
    """The elements of the picture, its corner at (0, 0), and where they lie."""
    layout = arrange(sizes(graph), graph.links)
    return "\n".join([*_edges(graph, layout), *_boxes(graph, layout)]), layout


def _legend(graph: Graph) -> tuple[list[str], float]:
    """A row of colours from x = 0, and its width."""
    out, x = [], 0.0
    for kind in KINDS:
        if any(box.kind == kind for box in graph.boxes):
            out.append(
                f'<g class="{kind}"><rect class="frame" x="{x:.1f}" y="0" width="14" height="14" rx="4"/></g>'
            )
            out.append(f'<text class="legend" x="{x + 20:.1f}" y="11">{KINDS[kind]}</text>')
            x += 20 + text_width(KINDS[kind], 11) + 18
    span = norm_range(graph)
    if span and span[1] > span[0]:
        low, high = (f"{number_text(norm)}" for norm in span)
        out.append(f'<text class="legend" x="{x:.1f}" y="11">|gradient| {low}</text>')
        x += text_width(f"|gradient| {low}", 11) + 6
        for k in range(24):
            color = heat(math.exp(k / 23), 1.0, math.e)
            out.append(f'<rect x="{x + 3 * k:.1f}" y="3" width="3.2" height="8" fill="{color}"/>')
        out.append(f'<text class="legend" x="{x + 78:.1f}" y="11">{high}</text>')
        x += 78 + text_width(high, 11)
    return out, x


def svg(graph: Graph, title: str) -> str:
    """A file of its own, with light and dark colours."""
    elements, layout = body(graph)
    legend, legend_width = _legend(graph)
    words = graph.notices
    summary = graph.summary()
    texts = [text_width(title, 15) * 1.05, text_width(summary, 11), *(text_width(word, 11) for word in words)]
    head = MARGIN + 52 + 16 * len(words)
    width = max(layout.width, legend_width, *texts) + 2 * MARGIN
    height = head + layout.height + MARGIN + 20 + MARGIN
    lines = [f'<text class="notice" x="{MARGIN}" y="{MARGIN + 26}">{escape(summary)}</text>']
    lines += [
        f'<text class="notice" x="{MARGIN}" y="{MARGIN + 42 + 16 * k}">{escape(word)}</text>'
        for k, word in enumerate(words)
    ]
    left = (width - layout.width) / 2
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{SHARED}\n{style('light')}\n@media (prefers-color-scheme: "
            f"dark){{\n{style('dark')}\n}}</style>",
            '<rect class="page" width="100%" height="100%"/>',
            f'<text class="heading" x="{MARGIN}" y="{MARGIN + 8}">{escape(title)}</text>',
            *lines,
            f'<g transform="translate({left:.1f} {head:.1f})">',
            elements,
            "</g>",
            f'<g transform="translate({MARGIN} {height - MARGIN - 14:.1f})">',
            *legend,
            "</g>",
            "</svg>",
            "",
        ]
    )
