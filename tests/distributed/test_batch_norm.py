"""`SyncBatchNorm` on several ranks against batch normalisation of all their inputs on one."""

from pathlib import Path

import pytest
from distributed.training import ran


@pytest.mark.parametrize("count", [2, 3])
def test_statistics_are_those_of_all_ranks(tmp_path: Path, count: int) -> None:
    expected = {2: [-1.0, 1.0], 3: [-1.225, 0.0, 1.225]}[count]
    assert [round(float(text), 3) for text in ran(count, "norms", tmp_path)] == expected
