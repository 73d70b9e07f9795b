"""`SyncBatchNorm` on several ranks against batch normalisation of all their inputs on one."""

from pathlib import Path

from distributed.training import ran


def test_statistics_are_those_of_all_ranks(tmp_path: Path) -> None:
    assert [round(float(text), 3) for text in ran(3, "norms", tmp_path)] == [-1.225, 0.0, 1.225]
