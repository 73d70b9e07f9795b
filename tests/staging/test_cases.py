"""Every case has the same results with `jit` as without: values, dtypes, shapes, types and exceptions."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import wengert as wg
from staging.comparing import CASES, run

for path in sorted((Path(__file__).parent / "cases").glob("*/*.py")):
    import_module(f"staging.cases.{path.parent.name}.{path.stem}")


@pytest.mark.parametrize("name", CASES)
def test_a_case_is_the_same_with_and_without(name: str) -> None:
    made: list[Any] = []

    def jit(function: Any, **settings: Any) -> Any:
        made.append(wg.jit(function, **settings))
        return made[-1]

    expected = run(CASES[name].body, CASES[name].plain)
    found = run(CASES[name].body, jit)
    assert len(found) == len(expected)
    for i, (x, y) in enumerate(zip(found, expected)):
        assert x == y, f"value {i}"
    if CASES[name].traces is not None:
        assert [reason for staged in made for reason in staged.why()] == []
        assert sum(staged.traces for staged in made) == CASES[name].traces
