"""The rows of `make bench-gpu` compute what they say, and its table has what it promises."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
bench = importlib.import_module("benches.gpu.__main__")
sys.path.pop(0)
ROWS = [*bench.ROWS, *bench.structured.ROWS, *bench.gradients.ROWS]
#: Relative to the largest element, with inputs that are rounded before.
TOLERANCE = {"float32": 2e-6, "float16": 2e-3, "bfloat16": 1.6e-2}
#: The squares of all errors, relative to those of all elements.
SQUARES = {"float32": 1e-12, "float16": 1e-6, "bfloat16": 6.4e-5}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_right(row: Any) -> None:
    assert bench.error_of(row) < TOLERANCE[row.dtype]
    for found, expected in bench.compared(row):
        assert ((found - expected) ** 2).sum() <= SQUARES[row.dtype] * (expected**2).sum()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_has_a_gate_and_a_goal_above_it(row: Any) -> None:
    gate, goal = (float(text.removesuffix("%")) for text in (row.gate, row.goal))
    assert 0 < gate < goal
    arrays, work = row.inputs(bench.Sizes(True, 1 << 16, 64, 64))
    assert work >= arrays[0].size


def test_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "table.md"
    arguments = ["--small", "--runs", "1", "--only", "matmul of 64", "--peer", "torch", "--output", str(path)]
    monkeypatch.setattr(sys, "argv", ["benches.gpu", *arguments])
    monkeypatch.setitem(sys.modules, "torch", None)
    assert bench.main() == 0
    found = capsys.readouterr()
    message = "--peer torch: it is not installed here; install it with support of CUDA"
    assert found.err.splitlines()[-1] == message
    text = path.read_text(encoding="utf-8")
    assert text.strip() == found.out.strip()
    table = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert table[0] == list(bench.COLUMNS)
    assert len(table) == 3
    assert table[2][0] == "matmul of 64 x 64, a batch"
    assert table[2][5:7] == ["27%", "45%"]


@pytest.mark.parametrize("cost", bench.host.COSTS, ids=lambda cost: cost.name)
def test_a_cost_can_be_measured(cost: Any) -> None:
    call, moved = cost.make(bench.Sizes(True, 1 << 12, 16, 16))
    call()
    assert moved in (0, 1 << 12)
