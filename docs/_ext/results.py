"""The tables of the page on benchmarks: every file of `benches/results`, as the programs wrote it."""

import os
from pathlib import Path

# The order on the page; files that are not named here follow.
ORDER = ("small", "single", "large", "programs", "matmul", "growth", "criterion", "structure", "ulp")


def files(folder: Path) -> list[Path]:
    """The tables, in the order of the page."""
    rank = {name: at for at, name in enumerate(ORDER)}
    return sorted(folder.glob("*.md"), key=lambda path: (rank.get(path.stem, len(ORDER)), path.stem))


def write(pages: Path, folder: Path) -> None:
    """Writes the part of the page that includes them, with paths relative to `pages`, the folder of pages."""
    lines = []
    for path in files(folder):
        # A file may begin with a title or with a section; on the page both are sections.
        offset = 1 if path.read_text(encoding="utf-8").startswith("# ") else 0
        lines += [
            f"```{{include}} /{Path(os.path.relpath(path, pages)).as_posix()}",
            f":heading-offset: {offset}",
            ":relative-images:",
            "```",
            "",
        ]
    page = pages / "results.txt"
    text = "\n".join(lines)
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")
