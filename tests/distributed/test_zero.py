"""`ZeroRedundancyOptimizer`: the steps of the optimiser itself, with a part of its state on each rank."""

from pathlib import Path

import pytest
from distributed.training import ran


@pytest.mark.parametrize("count", [1, 2, 3])
def test_steps_are_those_of_the_optimiser(tmp_path: Path, count: int) -> None:
    assert ran(count, "steps", tmp_path) == ["the same\n"] * count


def test_memory_is_that_of_a_part(tmp_path: Path) -> None:
    for count in (1, 2, 3):
        assert sum(map(int, ran(count, "state_memory", tmp_path))) == 8 * 13010
