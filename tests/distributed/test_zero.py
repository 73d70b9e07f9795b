"""`ZeroRedundancyOptimizer`: the steps of the optimiser itself, with a part of its state on each rank."""

from pathlib import Path

import pytest
from distributed.training import ran


@pytest.mark.parametrize("count", [1, 3])
def test_steps_are_those_of_the_optimiser(tmp_path: Path, count: int) -> None:
    # All ranks together hold two moments of four bytes for each of 13010 elements.
    assert sum(map(int, ran(count, "steps", tmp_path))) == 8 * 13010
