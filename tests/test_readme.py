"""README.md: examples run in order, in one namespace, and print what the page says; pictures and times are current."""

import math
import re
from pathlib import Path

import pytest
from programs import ROOT, module

pictures = module("pictures", "tools")

# A cell of the table of times, and the microseconds in its units.
TIME = re.compile(r"(\S+) (us|ms|s)")
UNITS = {"us": 1.0, "ms": 1e3, "s": 1e6}


def test_examples() -> None:
    blocks = pictures.examples()
    assert len(blocks) >= 4
    assert any(expected is not None for _, _, expected in blocks)
    namespace: dict[str, object] = {"__name__": "readme"}
    for line, code, expected in blocks:
        printed = pictures.run(code, line, namespace)
        if expected is not None:
            assert printed == expected, f"README.md:{line}"


def test_pictures_are_what_they_show() -> None:
    assert pictures.stale() == []


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def measured() -> dict[str, tuple[str, list[str]]]:
    """Per work in benches/results: threads, and the cells of its row."""
    found = {}
    for name in ("small", "single", "large"):
        lines = (ROOT / "benches" / "results" / f"{name}.md").read_text(encoding="utf-8").splitlines()
        threads = re.search(r"(\d) thread", lines[0])
        assert threads
        found |= {cells(line)[0]: (threads[1], cells(line)) for line in lines if line.startswith("| ")}
    return found


def test_times_are_the_measured_ones() -> None:
    page = Path(ROOT / "README.md").read_text(encoding="utf-8")
    table = re.search(r"^\| work \| threads \|.*\n\|[-|]+\n((?:\|.*\n)+)", page, re.MULTILINE)
    assert table
    results = measured()
    for line in table[1].splitlines():
        work, threads, *times = cells(line)
        assert work in results, work
        known_threads, row = results[work]
        assert threads == known_threads, work
        # Columns of the results: work, wengert, target, met, numpy, torch, jax, ...
        for text, known in zip(times, (row[1], row[5], row[6]), strict=True):
            number = TIME.fullmatch(text)
            assert number, text
            assert math.isclose(float(number[1]) * UNITS[number[2]], float(known.split()[0]), rel_tol=1e-9), (
                work
            )


@pytest.mark.parametrize(
    "target", re.findall(r"\]\(([^)#:]+)\)|src=\"([^\"]+)\"", (ROOT / "README.md").read_text("utf-8"))
)
def test_links_lead_somewhere(target: tuple[str, str]) -> None:
    assert (ROOT / (target[0] or target[1])).exists()


PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *(str(p.relative_to(ROOT)) for p in sorted((ROOT / "docs").glob("**/*.md"))),
]
# A path in backquotes: folders, and a file with one of the suffixes of the repository or a slash at the end.
PATH = re.compile(r"`((?:[\w.*-]+/)+(?:[\w*-]+\.(?:py|pyi|rs|md|toml|wgsl|sh|yml|svg))?)`")
# Where a path may begin besides the root.
STARTS = ("", "src", "python/wengert", "python/wengert/nn", "src/ops")
# What builds make, and a file of faer.
ELSEWHERE = ("docs/_build/", "docs/reference/", "src/linalg/evd/mod.rs")


def missing(text: str) -> list[str]:
    """The paths of a page that lead nowhere."""
    named = [path for path in PATH.findall(text) if not path.startswith(ELSEWHERE)]
    return [path for path in named if not any(any((ROOT / start).glob(path.rstrip("/"))) for start in STARTS)]


@pytest.mark.parametrize("page", PAGES)
def test_files_that_a_page_names_exist(page: str) -> None:
    assert missing((ROOT / page).read_text(encoding="utf-8")) == []


def test_a_file_that_is_not_there_is_found() -> None:
    assert missing("`src/lib.rs`, `src/none.rs`, `tests/nowhere/` and `src/op/`") == [
        "src/none.rs",
        "tests/nowhere/",
    ]
