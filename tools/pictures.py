"""The pictures of README.md and of the documentation: `docs/images/graph.svg` and `docs/images/floors.svg`.

The first is what the README's own example draws, the second the list of modules in `src/lib.rs`. `make pictures` writes
them; `--check` compares, as `tests/test_readme.py` does.
"""

import argparse
import contextlib
import io
import re
import sys
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
# A python block and, if it stands right behind it, the text block with its output.
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n*^```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)

WIDTH, HEIGHT, GAP, MARGIN = 760, 46, 12, 16
# Letters of a line that fit into a box.
LONGEST = 110
STYLE = """
text{font-family:Inter, ui-sans-serif, system-ui, 'Segoe UI', Roboto, Arial, sans-serif}
.why{font-size:11px}
.names{font-family:ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;font-size:13px;font-weight:600}
.page{fill:#fbfbfc} .floor{fill:#e3edff;stroke:#7aa5f0} .core{fill:#ffeccb;stroke:#e2a23b}
.names{fill:#1f2530} .why{fill:#5b6472} .down{stroke:#9aa3b2;stroke-width:1.5;fill:none} .tip{fill:#9aa3b2}
@media (prefers-color-scheme: dark){
.page{fill:#14181f} .floor{fill:#172c52;stroke:#4c7fd6} .core{fill:#4a3108;stroke:#d39a3a}
.names{fill:#eef1f6} .why{fill:#a3adbb} .down{stroke:#65707f} .tip{fill:#65707f}
}"""


def examples() -> list[tuple[int, str, str | None]]:
    """(line number, code, expected output or None) of each python block of README.md."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    return [(page.count("\n", 0, found.start(1)) + 1, found[1], found[2]) for found in BLOCK.finditer(page)]


def run(code: str, line: int, namespace: dict[str, Any]) -> str:
    """Runs a block of README.md, and returns what it prints."""
    printed = io.StringIO()
    # Leading newlines make the line numbers of a traceback those of the page.
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * (line - 1) + code, "README.md", "exec"), namespace)
    return printed.getvalue()


def graph() -> str:
    """What the README draws, as SVG."""
    namespace: dict[str, Any] = {"__name__": "readme"}
    for line, code, _ in examples():
        run(code, line, namespace)
        if "drawing" in namespace:
            return namespace["drawing"].svg
    raise LookupError("README.md draws no graph")


def floors() -> list[tuple[str, list[str]]]:
    """The groups of modules in `src/lib.rs`, from the ground up: what they are, and their names."""
    found = []
    for group in (ROOT / "src" / "lib.rs").read_text(encoding="utf-8").split("\n\n"):
        names = re.findall(r"^(?:pub(?:\(crate\))? )?mod (\w+);$", group, re.MULTILINE)
        words = " ".join(re.findall(r"^// ?(.*)$", group, re.MULTILINE))
        if names and "internals" not in names:
            found.append((words, names))
    return found


def fitting(words: str) -> str:
    """A sentence without its stop, or its part before the colon where the whole is too long."""
    return (words if len(words) <= LONGEST else words.partition(": ")[0]).rstrip(".")


def building() -> str:
    """The floors as SVG, the highest on top; each uses what lies below it."""
    rows = floors()[::-1]
    height = len(rows) * (HEIGHT + GAP) - GAP + 2 * MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img">',
        "<title>The modules of src/lib.rs, by floors</title>",
        f"<style>{STYLE}\n</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}"/>',
        f'<path class="down" d="M{MARGIN + 6} {MARGIN}V{height - MARGIN - 8}"/>',
        f'<path class="tip" d="M{MARGIN + 1} {height - MARGIN - 9}h10l-5 9z"/>',
    ]
    for i, (words, names) in enumerate(rows):
        y = MARGIN + i * (HEIGHT + GAP)
        kind = "core" if "bind" in names else "floor"
        x, wide = MARGIN + 24, WIDTH - 2 * MARGIN - 24
        lines += [
            f'<rect class="{kind}" x="{x}" y="{y}" width="{wide}" height="{HEIGHT}" rx="7"/>',
            f'<text class="names" x="{x + 14}" y="{y + 20}">{escape(" · ".join(names))}</text>',
            f'<text class="why" x="{x + 14}" y="{y + 36}">{escape(fitting(words))}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


PICTURES = {"graph.svg": graph, "floors.svg": building}


def stale() -> list[str]:
    """The pictures that are not what they show any more."""
    found = []
    for name, make in PICTURES.items():
        path = IMAGES / name
        if not path.exists() or path.read_text(encoding="utf-8") != make():
            found.append(name)
    return found


def main() -> int:
    """Writes or compares the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    if parser.parse_args().check:
        old = stale()
        for name in old:
            print(f"docs/images/{name} is stale: make pictures")
        return bool(old)
    for name, make in PICTURES.items():
        (IMAGES / name).write_text(make(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
