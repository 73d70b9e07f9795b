"""`grain=`: losses, gradients, random numbers and statistics have the same bits on any number of ranks."""

from pathlib import Path

import pytest
from distributed.running import run
from distributed.training import ran


@pytest.mark.parametrize(("grain", "counts"), [(4, (1, 2, 4)), (6, (1, 3))])
def test_bits_do_not_depend_on_ranks(tmp_path: Path, grain: int, counts: tuple[int, ...]) -> None:
    found = [text for count in counts for text in ran(count, "shards", tmp_path, GRAIN=str(grain))]
    assert len(found) == sum(counts)
    assert "module.norm.running_var" in found[0]
    for text in found[1:]:
        assert text == found[0]


def test_shards_of_a_batch(tmp_path: Path) -> None:
    (text,) = ran(1, "whole_batch", tmp_path)
    assert text == (
        "DataParallel.backward: a tensor of shape (6, 3) is not divided into 4 equal parts along axis 0, one "
        "for each shard of this rank\n"
        "DataParallel.backward: pass grain= to DataParallel, the number of shards\n"
    )


def test_what_shards_refuse_and_what_they_draw(tmp_path: Path) -> None:
    for text in (*ran(1, "grains", tmp_path), *ran(2, "grains", tmp_path)):
        assert text == (
            "DataParallel: with grain= the gradients of ranks are averaged by model.backward(function, *batch), "
            "not by loss.backward(), which leaves them as they are\n"
            "DataParallel.no_sync: not with grain=; gradients of several calls of model.backward add up without "
            "it\n"
            "DataParallel.join: not with grain=; let all ranks take the same number of steps\n"
        )


WRONG = """
from wengert.distributed import DataParallel
for grain in (3, 6, 1):
    try:
        DataParallel(wg.nn.Linear(2, 2), grain=grain)
    except ValueError as error:
        print(error)
"""


def test_ranks_that_do_not_fit(tmp_path: Path) -> None:
    for text in run(2, WRONG, tmp_path):
        lines = text.splitlines()
        assert len(lines) == 3
        assert lines[0] == (
            "DataParallel: grain=3 on 2 ranks; each rank needs 1, 2, 4, 8, ... shards, the same number on all"
        )


PROBED = """
from wengert.distributed import DataParallel
try:
    DataParallel(wg.nn.Linear(2, 2), grain=2)
except RuntimeError as error:
    print(error)
"""

PROCESSOR = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""


@pytest.mark.parametrize(
    ("lower", "higher", "flag"), [("baseline", "avx2", "avx2"), ("avx2", "", "avx512dq")]
)
def test_ranks_with_other_bits_are_named(tmp_path: Path, lower: str, higher: str, flag: str) -> None:
    if flag not in PROCESSOR:
        pytest.skip(f"no {flag} on this processor")
    # As on two machines: one rank uses fewer instructions.
    first = f'os.environ["WENGERT_ISA"] = "{lower}" if os.environ["PMI_RANK"] == "1" else "{higher}"'
    for found in run(2, PROBED, tmp_path, first=first):
        assert found.startswith("DataParallel: rank 1 computes other bits than rank 0"), found
