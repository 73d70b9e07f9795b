"""Training on GPUs, one for all ranks."""

from pathlib import Path

from distributed.test_parallel import check_overlap
from distributed.training import ran


def test_two_ranks(tmp_path: Path) -> None:
    assert ran(2, "on_gpu", tmp_path, limit=120.0, WENGERT_GPU="software") == ["the same 2\n"] * 2


def test_gradients_travel_during_backward(tmp_path: Path) -> None:
    """They come from the GPU, are added and go back while backward has more for it to do."""
    check_overlap(2, tmp_path, limit=120.0, WENGERT_GPU="software", DEVICE="gpu")
