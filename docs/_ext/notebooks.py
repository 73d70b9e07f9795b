"""Pages as notebooks: each page of `FOLDERS` links to an `.ipynb` of itself, with what its cells printed and
drew.

`convert` needs no Sphinx, so the tests can ask it too. The build adds the outputs, and warns where the code
is not what MyST-NB ran. The last picture of a page of the gallery is its picture on the index.
"""

import base64
import json
import os
import re
from pathlib import Path
from typing import Any

FOLDERS = ("gallery", "tutorials")

# The lines of options (`:tags: [...]`) and the code of a cell.
CELL = re.compile(
    r"^```\{code-cell\} python\n((?::[\w-]+:[^\n]*\n)*)\n*(.*?)\n*^```$", re.MULTILINE | re.DOTALL
)
# A link to a page, with or without words of its own.
LINK = re.compile(r"\{doc\}`(?:([^`<]+?) *<)?([^`>]+)>?`")

FIRST = (
    "*This notebook is a page of the documentation of wengert. It needs wengert, NumPy, SciPy and "
    "matplotlib. "
    "The outputs are those of the build of the documentation.*"
)


def is_notebook(name: str) -> bool:
    """Whether a page, named as Sphinx names it, is offered as a notebook."""
    folder, _, page = name.rpartition("/")
    return folder in FOLDERS and page != "index"


def names(docs: Path) -> list[str]:
    """The pages that are offered as notebooks."""
    found = (path.relative_to(docs).with_suffix("").as_posix() for path in sorted(docs.glob("*/*.md")))
    return [name for name in found if is_notebook(name)]


def title(page: Path) -> str:
    """The first heading of a page."""
    found = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else page.stem


def words(text: str, folder: Path) -> str:
    """Prose without Sphinx's roles: a link to a page becomes the title of that page."""
    return LINK.sub(lambda m: f"*{m[1] or title((folder / m[2]).with_suffix('.md'))}*", text).strip("\n")


def convert(page: Path) -> dict[str, Any]:
    """A page as a notebook (nbformat 4.5), without outputs."""
    text = page.read_text(encoding="utf-8").split("---\n", 2)[2]
    prose, *rest = CELL.split(text)
    cells = [markdown(FIRST), markdown(words(prose, page.parent))]
    for options, code, prose in zip(rest[::3], rest[1::3], rest[2::3]):
        found = re.search(r"^:tags: \[(.*)\]$", options, re.MULTILINE)
        meta = {"tags": [tag.strip() for tag in found[1].split(",")]} if found else {}
        cells.append(
            {"cell_type": "code", "execution_count": None, "metadata": meta, "outputs": [], "source": code}
        )
        if prose.strip():
            cells.append(markdown(words(prose, page.parent)))
    for at, cell in enumerate(cells):
        cell["id"] = f"cell-{at}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def markdown(text: str) -> dict[str, Any]:
    """A cell of prose."""
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def code(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells of code of a notebook."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def executed(app: Any, name: str) -> Path:
    """Where MyST-NB writes the notebook of a page when it has run."""
    return Path(app.env.mystnb_config.output_folder, f"{name}.ipynb")


def offer(app: Any, doctree: Any) -> None:
    """Replaces MyST-NB's notebook of a page by ours, with its outputs, and links to it below the title."""
    from docutils import nodes
    from sphinx.addnodes import download_reference
    from sphinx.util.logging import getLogger

    name = app.env.docname
    if not is_notebook(name):
        return
    path, page = executed(app, name), Path(app.env.doc2path(name))
    made, ran = convert(page), json.loads(path.read_text(encoding="utf-8"))
    if [cell["source"] for cell in code(made)] != ["".join(cell["source"]).strip("\n") for cell in code(ran)]:
        getLogger("notebooks").warning("the notebook of %s is not the code that ran", name)
    for cell, source in zip(code(made), code(ran)):
        cell["outputs"], cell["execution_count"] = source["outputs"], source["execution_count"]
    path.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    target = "/" + Path(os.path.relpath(path, app.srcdir)).as_posix()
    link = download_reference("", "", nodes.literal("", path.name), reftarget=target)
    section = next(doctree.findall(nodes.section))
    section.insert(
        1, nodes.paragraph("", "", nodes.Text("This page as a notebook: "), link, classes=["notebook"])
    )


def picture(notebook: dict[str, Any]) -> bytes | None:
    """The last picture that a notebook drew."""
    outputs = [out.get("data", {}) for cell in code(notebook) for out in cell["outputs"]]
    found = [data["image/png"] for data in outputs if "image/png" in data]
    return base64.b64decode("".join(found[-1])) if found else None


def write_pictures(app: Any, error: Exception | None) -> None:
    """Writes the pictures of the index of the gallery."""
    if error is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir, "_images")
    folder.mkdir(exist_ok=True)
    for name in filter(is_notebook, app.env.found_docs):
        drawn = picture(json.loads(executed(app, name).read_text(encoding="utf-8")))
        if name.startswith("gallery/") and drawn:
            (folder / f"{name.replace('/', '-')}.png").write_bytes(drawn)


def setup(app: Any) -> dict[str, bool]:
    """Connects what stands above; before Sphinx collects the files that pages offer."""
    app.connect("doctree-read", offer, priority=400)
    app.connect("build-finished", write_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
