"""The committed stubs are what the built package says."""

import ast
import inspect
from pathlib import Path

import pytest
import wengert as wg
import wengert._core as core
from programs import module

generator = module("stubs", "tools")


STUBS = generator.stubs()


@pytest.mark.parametrize("path", STUBS, ids=lambda path: path.name)
def test_stub_is_up_to_date(path: Path) -> None:
    assert STUBS[path] == path.read_text(encoding="utf-8"), "run `make stubs`"


def test_stub_parses_and_names_everything() -> None:
    tree = ast.parse(generator.generate(core))
    named = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    named |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    own = {name for name in vars(core) if not name.startswith("__")}
    own |= {name for name in vars(core.Tensor) if not name.startswith("_")}
    assert own - named == set()


def test_every_function_is_typed() -> None:
    tree = ast.parse(STUBS[generator.PACKAGE / "_core.pyi"])
    builtins = {
        name for name in wg.__all__ if inspect.isbuiltin(f := getattr(wg, name)) and f.__name__ == name
    }
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in builtins]
    assert {node.name for node in functions} == builtins
    # A function that says nothing of what it takes or gives is not typed.
    vague = {node.name for node in functions if "Any" in (ast.unparse(node.returns or ast.Constant("Any")))}
    assert vague == set()
    assert not [node.name for node in functions if node.args.kwarg is not None]
