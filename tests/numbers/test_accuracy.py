"""docs/accuracy.md holds what a measurement of some of its lines finds, and has a line for every function."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
#: A sample: functions with series, branches and poles whose exact values cost little.
SAMPLE = (
    "exp",
    "log1p",
    "log10",
    "asin",
    "tanh",
    "sinc",
    "elu",
    "softsign",
    "xlogy(0.75, x)",
    "ndtr",
    "silu",
)


def tool() -> ModuleType:
    """`tools/accuracy.py` as a module."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        spec = importlib.util.spec_from_file_location("accuracy", ROOT / "tools" / "accuracy.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["accuracy"] = module
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.pop(0)


ACCURACY = tool()


def page() -> dict[tuple[str, str], list[str]]:
    """The cells of each line of the page."""
    lines = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8").splitlines()
    found = [re.split(r" \| ", line.strip("| ")) for line in lines if line.startswith("| `")]
    return {(cells[0].strip("`"), cells[1]): cells[2:] for cells in found}


def test_every_function_has_its_lines() -> None:
    expected = {(name, dtype) for name in ACCURACY.FUNCTIONS for dtype in ("float64", "float32")}
    assert set(page()) == expected
    assert {len(cells) for cells in page().values()} == {3}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", SAMPLE)
def test_errors_are_those_of_the_page(name: str, dtype: str) -> None:
    function, kind = ACCURACY.FUNCTIONS[name], np.dtype(dtype).type
    # Without the random places: the hard ones are all on the page.
    x = ACCURACY.places(function, kind, 0)
    for order, got in enumerate(ACCURACY.derivatives(function, x)):
        found, cell = ACCURACY.worst(function, order, x, got), page()[name, dtype][order]
        if size := re.match(r"relative (\S+)", cell):
            assert found.relative <= 2 * float(size[1]), (order, str(found))
        elif size := re.match(r"([\d.]+) at", cell):
            assert found.units <= float(size[1]) + 0.1, (order, str(found))


def test_a_wrong_function_would_be_found() -> None:
    function = ACCURACY.FUNCTIONS["exp"]
    x = ACCURACY.places(function, np.float64, 0)
    with np.errstate(over="ignore"):
        exact = np.exp(x)
    assert ACCURACY.worst(function, 0, x, exact).units < 2
    assert ACCURACY.worst(function, 0, x, exact * (1 + 1e-12)).units > 1000
    assert ACCURACY.worst(function, 0, x, np.where(x > 700, np.nan, exact)).is_wrong()
    assert ACCURACY.worst(function, 0, x, np.where(x > 5, np.inf, exact)).is_wrong()
    assert ACCURACY.worst(function, 0, x, np.where(x < -5, 0.0, exact)).is_wrong()
