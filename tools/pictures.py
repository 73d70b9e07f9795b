"""The pictures of README.md and of the documentation, and the README's table of times.

`docs/images/graph.svg` is what the README's own example draws, `docs/images/floors.svg` the list of modules
in `src/lib.rs`; the times are those of `benches/results`. `make pictures` writes them; `--check` compares,
as a test does.
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

# The rows of the table of times, as they are called in the results.
WORKS = (
    "`a + b`, f32[4]",
    "MLP step 16-32-1, batch 32, SGD",
    "per-sample gradients, 64 samples",
    "matmul 1024, forward + backward",
    "GPT step, 4 layers, d=256, 4x256 tokens, AdamW",
)
TABLE = re.compile(r"^\| work \| threads \|.*\n(?:\|.*\n)+\n.*\n", re.MULTILINE)
MACHINE = re.compile(
    r"^\d+ core\(s\) of (.+?), (Python \S+); .*?(torch \S+), .*?(jax [^,.]+(?:\.\d+)*),", re.MULTILINE
)

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
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img">',
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


def cells(line: str) -> list[str]:
    """The cells of a row of a table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def time_text(cell: str) -> str:
    """A number of microseconds, with the ratio that may follow it left out, in a unit that fits."""
    us = float(cell.split()[0])
    return f"{us:.3g} us" if us < 1000 else f"{us / 1000:.3g} ms"


def times() -> str:
    """The README's table of times, and the line below it that says where they are from."""
    rows, machines = {}, []
    for name in ("small", "single", "large"):
        page = (ROOT / "benches" / "results" / f"{name}.md").read_text(encoding="utf-8")
        threads = re.search(r"(\d) thread", page)
        machine = MACHINE.search(page)
        if threads is None or machine is None:
            raise LookupError(f"benches/results/{name}.md does not say its threads and its machine")
        for row in map(cells, page.splitlines()):
            if row[0] in WORKS:
                # Columns: work, wengert, target, met, numpy, torch, jax, ...
                rows[row[0]] = [threads[1], *map(time_text, (row[1], row[5], row[6]))]
                where = "{}, {}, {} (eager), {}".format(*machine.groups())
                machines += [] if where in machines else [where]
    lines = ["| work | threads | wengert | torch | jax, jitted |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join([work, *rows[work]])} |" for work in WORKS]
    return "\n".join([*lines, "", f"Medians, measured by `make bench-peers` on {'; '.join(machines)}.", ""])


PICTURES = {"graph.svg": graph, "floors.svg": building}


def stale() -> list[str]:
    """The pictures that are out of date, and README.md if its times are not the measured ones."""
    found = [] if times() in (ROOT / "README.md").read_text(encoding="utf-8") else ["README.md"]
    for name, make in PICTURES.items():
        path = IMAGES / name
        if not path.exists() or path.read_text(encoding="utf-8") != make():
            found.append(f"docs/images/{name}")
    return found


def main() -> int:
    """Writes or compares the pictures and the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    if parser.parse_args().check:
        old = stale()
        for name in old:
            print(f"{name} is stale: make pictures")
        return bool(old)
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    (ROOT / "README.md").write_text(TABLE.sub(lambda _: times(), page, count=1), encoding="utf-8")
    for name, make in PICTURES.items():
        (IMAGES / name).write_text(make(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
