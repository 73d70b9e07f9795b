"""README.md: examples print what it says, pictures and times are current; files that pages name exist."""

import re

import pytest
from programs import ROOT, module

pictures = module("pictures", "tools")


def test_examples() -> None:
    blocks = pictures.examples()
    assert len(blocks) >= 4
    assert any(expected is not None for _, _, expected in blocks)
    namespace: dict[str, object] = {"__name__": "readme"}
    for line, code, expected in blocks:
        printed = pictures.run(code, line, namespace)
        if expected is not None:
            assert printed == expected, f"README.md:{line}"


def test_pictures_and_times_are_current() -> None:
    assert pictures.stale() == []


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
