"""Training on GPUs, one for all ranks."""

from pathlib import Path

from distributed.training import ran


def test_two_ranks(tmp_path: Path) -> None:
    assert ran(2, "on_gpu", tmp_path, limit=120.0, WENGERT_GPU="software") == ["the same 2\n"] * 2
