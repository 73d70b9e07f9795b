"""The graph as a page for a browser: the elements of `svg.py` with zoom, search and details (`page.js`,
`page.css`).

One file that loads nothing, which its content security policy also forbids.
"""

import json
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from . import svg
from .layout import Layout
from .tape import Graph, bytes_text, number_text

__all__ = ["page"]

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
script-src 'unsafe-inline'">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<header>
<div class="what"><h1>{title}</h1><p>{summary}</p></div>
<div class="tools">
<label class="search"><input id="search" type="search" placeholder="Search name, operation, shape" \
aria-label="Search" autocomplete="off" spellcheck="false"><span id="found" role="status"></span><kbd>/</kbd></label>
<div class="group"><button id="out" title="Zoom out (−)" aria-label="Zoom out">−</button>\
<button id="scale" title="Actual size (0)">100%</button>\
<button id="in" title="Zoom in (+)" aria-label="Zoom in">+</button></div>
<button id="fit" title="Show everything (f)">Fit</button>
<button id="theme" title="Light or dark" aria-label="Light or dark">◐</button>
</div>
</header>
{notices}
<main>
<svg id="picture" role="group" aria-label="{title}"><g id="view">
{body}
</g></svg>
<aside id="details" aria-live="polite" hidden></aside>
</main>
<footer>{legend}<span class="hint">drag to move · wheel to zoom · click a box for details</span></footer>
<script id="graph" type="application/json">{data}</script>
<script>
{script}
</script>
</body>
</html>
"""


@cache
def _part(name: str) -> str:
    """A file beside this one."""
    return (files(__package__) / name).read_text(encoding="utf-8")


def _style() -> str:
    """The page's rules and, for each mode, the picture's colours."""
    modes = [svg.style(mode, f':root[data-theme="{mode}"] ') for mode in ("light", "dark")]
    return "\n".join([_part("page.css"), svg.SHARED, *modes])


def _legend(graph: Graph) -> str:
    kinds = [
        f'<span class="kind"><svg class="{kind}" width="14" height="14"><rect class="frame" x="1" y="1" width="12" '
        f'height="12" rx="3.5"/></svg>{text}</span>'
        for kind, text in svg.KINDS.items()
        if any(box.kind == kind for box in graph.boxes)
    ]
    span = svg.norm_range(graph)
    if span and span[1] > span[0]:
        colors = ", ".join(svg.heat(k + 1.0, 1.0, 4.0) for k in range(4))
        kinds.append(
            f'<span class="kind">gradient norm {number_text(span[0])}<i style="background:linear-gradient(90deg, '
            f'{colors})"></i>{number_text(span[1])}</span>'
        )
    return "".join(kinds)


def _data(graph: Graph, layout: Layout) -> dict[str, Any]:
    """What the script shows and searches."""
    boxes = []
    for box, (x, y), (width, height) in zip(graph.boxes, layout.centres, svg.sizes(graph)):
        boxes.append(
            {
                "at": [round(x, 1), round(y, 1), round(width, 1), round(height, 1)],
                "title": box.title,
                "kind": svg.KINDS[box.kind],
                "names": box.names,
                "note": box.note,
                "entry": box.function,
                "values": [box.value(port) for port in range(len(box.shapes))],
                "norms": [None if norm is None else number_text(norm) for norm in box.norms],
                "saved": [[one.name, one.value, bytes_text(one.nbytes)] for one in box.saved],
                "bytes": bytes_text(box.saved_bytes) if box.saved_bytes else "",
                "freed": box.freed,
                "location": f"{box.location[0]}:{box.location[1]} in {box.location[2]}"
                if box.location
                else "",
            }
        )
    links = [[link.source, link.target, svg.link_text(graph, link)] for link in graph.links]
    return {"boxes": boxes, "links": links, "size": [round(layout.width, 1), round(layout.height, 1)]}


def page(graph: Graph, title: str) -> str:
    """The whole page as text."""
    body, layout = svg.body(graph)
    notices = "".join(f"<li>{escape(notice)}</li>" for notice in graph.notices)
    # Inside a script element only "<" could end it early.
    data = json.dumps(_data(graph, layout), ensure_ascii=False).replace("<", "\\u003c")
    return _PAGE.format(
        title=escape(title),
        summary=escape(graph.summary()),
        style=_style(),
        notices=f'<ul class="notices">{notices}</ul>' if notices else "",
        body=body,
        legend=_legend(graph),
        data=data,
        script=_part("page.js"),
    )
