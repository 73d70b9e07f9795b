"""The documentation site. `make docs` builds it: pages are executed, the reference comes from the
docstrings."""

import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import reference  # noqa: E402
import results  # noqa: E402
import signatures  # noqa: E402
import wengert  # noqa: E402

project = "wengert"
author = "the wengert developers"
copyright = author
version = release = wengert.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "mathml",
    "notebooks",
]
exclude_patterns = ["_build", "_ext"]
# Single backquotes in docstrings are code.
default_role = "literal"
autodoc_typehints = "signature"
autodoc_member_order = "alphabetical"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
toc_object_entries = False
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

# Names of attributes in docstrings become links, and short ones fit several classes.
suppress_warnings = ["ref.python"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
# Every code cell runs at each build, in a fresh process per page. One that raises is a warning that shows the
# traceback, and `make docs` makes warnings errors.
nb_execution_mode = "force"
nb_execution_show_tb = True
nb_execution_timeout = 120
nb_merge_streams = True
# Inherited by the processes that run the pages.
os.environ["MATPLOTLIBRC"] = str(HERE / "matplotlibrc")

html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"wengert {version}"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]


def write_reference(app: Any, config: Any) -> None:
    """The pages of the reference and the tables of benchmarks, before Sphinx looks for sources."""
    del app, config
    reference.write(HERE / "reference")
    results.write(HERE, HERE.parent / "benches" / "results")


def check_reference(app: Any, env: Any) -> None:
    """Every public name must have arrived in the index that the search uses."""
    del app
    known = {name for name, *_ in env.get_domain("py").get_objects()}
    for page in reference.pages():
        for name in page.names:
            if name not in known and not reference.shadows(name):
                from sphinx.util.logging import getLogger

                getLogger("reference").warning("%s is missing in the API reference", name)


def setup(app: Any) -> None:
    """Connects what stands above."""
    app.connect("config-inited", write_reference)
    app.connect("autodoc-process-signature", signatures.process)
    app.connect("env-check-consistency", check_reference)
