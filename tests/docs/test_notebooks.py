"""Pages of the documentation as notebooks: valid, complete, plain Markdown, and code that runs."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import matplotlib
import nbformat
import programs
import pytest
from matplotlib import pyplot as plt
from programs import ROOT

notebooks = programs.module("notebooks", "docs/_ext")
DOCS = ROOT / "docs"
NAMES = notebooks.names(DOCS)
GALLERY = [name for name in NAMES if name.startswith("gallery/")]
# The quick ones; the build of the documentation runs all, and warns where the code of a notebook is not what
# it ran.
QUICK = ["gallery/why", "gallery/private"]


def converted(name: str) -> dict[str, Any]:
    return notebooks.convert(DOCS / f"{name}.md")


def test_what_is_offered() -> None:
    assert {"tutorials/digits", "tutorials/gpt"} < set(NAMES)
    assert len(GALLERY) == 7


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_valid(name: str) -> None:
    text = json.dumps(converted(name))
    nbformat.validate(nbformat.reads(text, as_version=nbformat.NO_CONVERT))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_the_page_is_lost(name: str) -> None:
    page, notebook = (DOCS / f"{name}.md").read_text(encoding="utf-8"), converted(name)
    code = notebooks.code(notebook)
    assert len(code) == page.count("```{code-cell}") > 3
    kept = " ".join(cell["source"] for cell in notebook["cells"][1:])
    lost = [
        line for line in page.split("---\n", 2)[2].splitlines() if line not in kept and "{doc}" not in line
    ]
    assert [line for line in lost if not line.startswith(("```", ":tags:"))] == []
    for cell in code:
        ast.parse(cell["source"])


@pytest.mark.parametrize("name", NAMES)
def test_prose_needs_no_sphinx(name: str) -> None:
    for cell in converted(name)["cells"]:
        if cell["cell_type"] == "markdown":
            # Roles, directives and links to files beside the page mean nothing in a notebook.
            assert not re.search(r"\{[\w:-]+\}`|^(```|:::)\{|\]\((?!https?:)", cell["source"], re.MULTILINE)


def test_links_become_titles(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("---\na: b\n---\n\n# What it is\n\n## Part\n", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(
        "---\na: b\n---\n\n# Page\n\nSee {doc}`other` or {doc}`that one <other>`.\n\n"
        "```{code-cell} python\n:tags: [hide-input, slow]\n\nx = 1\n\n\ny = 2\n```\n",
        encoding="utf-8",
    )
    _, prose, cell = notebooks.convert(page)["cells"]
    assert prose["source"] == "# Page\n\nSee *What it is* or *that one*."
    assert cell["source"] == "x = 1\n\n\ny = 2"
    assert cell["metadata"] == {"tags": ["hide-input", "slow"]}


@pytest.mark.parametrize("name", QUICK)
def test_code_runs(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    matplotlib.use("Agg")
    monkeypatch.setattr(plt, "show", lambda: plt.close("all"))
    namespace: dict[str, Any] = {}
    with matplotlib.rc_context(fname=DOCS / "matplotlibrc"):
        for cell in notebooks.code(converted(name)):
            exec(compile(cell["source"], f"{name}.md", "exec"), namespace)
    assert capsys.readouterr().out


def test_the_picture_of_a_page_is_its_last() -> None:
    def drawn(data: dict[str, str]) -> dict[str, Any]:
        return {"cell_type": "code", "outputs": [{"output_type": "display_data", "data": data}]}

    text = {"cell_type": "code", "outputs": [{"output_type": "stream", "text": "1"}]}
    first, last = drawn({"image/png": "Zmlyc3Q="}), drawn({"image/png": "bGFzdA=="})
    assert notebooks.picture({"cells": [first, last, text, drawn({"text/plain": "1"})]}) == b"last"
    assert notebooks.picture({"cells": [text]}) is None


def test_the_index_shows_every_page() -> None:
    index = (DOCS / "gallery" / "index.md").read_text(encoding="utf-8")
    cards = re.findall(
        r'<a href="([\w-]+)\.html"><img src="\.\./_images/gallery-([\w-]+)\.png" alt="[^"]{10,}"><strong>(.+)</strong>',
        index,
    )
    assert {f"gallery/{page}" for page, _, _ in cards} == set(GALLERY)
    for page, picture, title in cards:
        assert picture == page
        assert title == notebooks.title(DOCS / "gallery" / f"{page}.md")
        assert f"\n{page}\n" in index[index.index("{toctree}") :]
