"""The committed stub of the extension module is what the built module says."""

import ast

import wengert._core as core
from programs import ROOT, module

generator = module("stubs", "tools")


def test_stub_is_up_to_date() -> None:
    committed = (ROOT / "python" / "wengert" / "_core.pyi").read_text(encoding="utf-8")
    assert generator.generate(core) == committed, "run `make stubs`"


def test_stub_parses_and_names_everything() -> None:
    tree = ast.parse(generator.generate(core))
    named = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    named |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    own = {name for name in vars(core) if not name.startswith("__")}
    own |= {name for name in vars(core.Tensor) if not name.startswith("_")}
    assert own - named == set()
