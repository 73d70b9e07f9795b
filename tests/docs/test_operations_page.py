"""docs/operations.md is what the compiled operations, their formulas and their samples say."""

from programs import ROOT, module
from wengert import _core

generator = module("operations", "tools")


def test_page_is_up_to_date() -> None:
    committed = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    assert generator.generate() == committed, "run `make operations`"


def test_every_operation_has_formulas_for_both_modes() -> None:
    for entry in _core._op_entries():
        assert all(entry[key] for key in ("doc", "vjp", "jvp")), entry["name"]
    for row in _core._op_formulas():
        assert row["value"], row["name"]
        assert len(row["partials"]) == row["inputs"] == len(row["reads"])
        for partial, flops in zip(row["partials"], row["partial_flops"], strict=True):
            assert flops == 0 or partial is not None
