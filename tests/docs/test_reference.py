"""The API reference: it has every public name, each has a docstring, and the examples in the docstrings
run."""

import ast
import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import programs
import pytest
import wengert as wg

reference = programs.module("reference", "docs/_ext")
PAGES = reference.pages()
DOCUMENTED = {name for page in PAGES for name in page.names}


def members(full: str) -> Iterator[tuple[str, Any]]:
    """A documented object, and what a class has that is public."""
    value = reference.resolve(full)
    yield full, value
    if inspect.isclass(value):
        for name, member in vars(value).items():
            if not name.startswith("_"):
                yield f"{full}.{name}", member


ALL = {id(value): (name, value) for full in sorted(DOCUMENTED) for name, value in members(full)}


def test_every_name_of_the_package_is_documented() -> None:
    # Asked in another way than the reference asks: the text of the stub and of the package's own imports.
    stub = ast.parse((Path(wg.__file__).parent / "_core.pyi").read_text(encoding="utf-8"))
    names = {node.name for node in stub.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    tree = ast.parse(Path(wg.__file__).read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module != "typing"]
    names |= {alias.name for node in imports for alias in node.names}
    tensor = next(node for node in stub.body if isinstance(node, ast.ClassDef) and node.name == "Tensor")
    names |= {node.name for node in tensor.body if isinstance(node, ast.FunctionDef)}
    public = {name for name in names if not name.startswith("_") and name != "*" and hasattr(wg, name)}
    public = {name for name in public if not inspect.ismodule(getattr(wg, name))}
    assert len(public) > 150
    assert {f"wengert.{name}" for name in public} - DOCUMENTED == set()


@pytest.mark.parametrize("module", reference.ORDER)
def test_every_name_of_a_module_is_documented(module: str) -> None:
    found = importlib.import_module(f"wengert.{module}")
    names = {n for n in reference.public(found) if not inspect.ismodule(getattr(found, n))}
    assert {f"wengert.{module}.{name}" for name in names} - DOCUMENTED == set()
    assert names


def test_every_method_of_a_tensor_has_a_docstring_and_parameters_in_the_stub() -> None:
    assert {
        name for name in dir(wg.Tensor) if not name.startswith("_") and not getattr(wg.Tensor, name).__doc__
    } == set()


def test_every_documented_name_has_a_docstring() -> None:
    bare = {name for name, value in ALL.values() if callable(value) and not (value.__doc__ or "").strip()}
    assert bare == set()


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    routines = {name: value for name, value in ALL.values() if inspect.isroutine(value)}
    words = {
        name: inspect.cleandoc(value.__doc__ or "").split(maxsplit=1)[0] for name, value in routines.items()
    }
    assert len(words) > 1200
    # In the third person, as "Returns"; the nouns end alike.
    nouns = "Axes Bytes Coordinates Degrees Differences Elements Frames Indices Integers Matrices Numbers Ones Parts "
    nouns += "Products Radians Rows Tensors This Values Windows Zeros"
    others = {name: word for name, word in words.items() if not re.fullmatch(r"[A-Z][a-z-]+s[:.,]?", word)}
    assert others == {}
    assert {name: word for name, word in words.items() if word in nouns.split()} == {}


# What has no example: what needs a GPU or a window, what only tells an error, and the classes of results.
WITHOUT_EXAMPLE = """
    autograd.function.once_differentiable gpu.ceilings gpu.empty_cache gpu.info gpu.memory_stats gpu.synchronize
    plot.require_matplotlib plot.training tree.register_pytree_node
""".split()


HOMES = ("wengert.nn.", "wengert.optim.")


def test_functions_layers_and_optimisers_have_examples() -> None:
    # Functions of `wengert.numpy` are those of the package; an in-place form says which function it computes.
    shown = {
        full
        for full in DOCUMENTED
        if (value := reference.resolve(full))
        and (inspect.isroutine(value) or (inspect.isclass(value) and full.startswith(HOMES)))
        and not full.startswith(("wengert.Tensor.", "wengert.numpy."))
        and not full.endswith("_")
    }
    assert len(shown) > 850
    bare = {full for full in shown if ">>>" not in (reference.resolve(full).__doc__ or "")}
    classes = {"wengert.nn.utils.parametrize.ParametrizationList", "wengert.nn.utils.rnn.PackedSequence"}
    assert bare - classes == {f"wengert.{name}" for name in WITHOUT_EXAMPLE}


EXAMPLES = {name: value for name, value in ALL.values() if ">>>" in str(getattr(value, "__doc__", ""))}
EXAMPLES["wengert"] = wg


def settings() -> dict[str, object]:
    """The settings of the library and of its names for other devices."""
    asked = {
        name: getattr(wg, name)()
        for name in dir(wg)
        if name.startswith("get_") or (name.startswith(("is_", "are_")) and name.endswith("_enabled"))
        if name != "get_rng_state"
    }
    backends = {name: dict(vars(getattr(wg.backends, name))) for name in ("cudnn", "mkldnn")}
    ways = {name: value() for name, value in vars(wg.backends.cuda).items() if name.endswith("sdp_enabled")}
    return {**asked, **backends, **ways}


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_examples_in_docstrings(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = inspect.cleandoc(EXAMPLES[name].__doc__)
    test = doctest.DocTestParser().get_doctest(text, {"wg": wg}, name, name, 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    before = settings()
    runner.run(test, out=report.append)
    assert settings() == before, "the example leaves a setting to those who come after it"
    assert not report, "".join(report)


@pytest.mark.parametrize("module", reference.ORDER)
def test_a_prompt_completes_what_is_public(module: str) -> None:
    found = importlib.import_module(f"wengert.{module}")
    listed = {name for name in dir(found) if not name.startswith("_")}
    assert listed - set(found.__all__) == set()
