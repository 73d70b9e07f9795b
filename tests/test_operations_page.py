"""docs/operations.md is what the compiled operations, their formulas and their samples say."""

import importlib.util
from pathlib import Path
from types import ModuleType

from wengert import _core

ROOT = Path(__file__).parent.parent


def generator() -> ModuleType:
    """tools/operations.py as a module."""
    spec = importlib.util.spec_from_file_location("operations", ROOT / "tools" / "operations.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_is_up_to_date() -> None:
    committed = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    assert generator().generate() == committed, "run `make operations`"


def test_every_operation_has_formulas_for_both_modes() -> None:
    for entry in _core._op_entries():
        assert all(entry[key] for key in ("doc", "vjp", "jvp")), entry["name"]
    for row in _core._op_formulas():
        assert row["value"], row["name"]
        assert len(row["partials"]) == row["inputs"] == len(row["reads"])
        for partial, flops in zip(row["partials"], row["partial_flops"], strict=True):
            assert flops == 0 or partial is not None
