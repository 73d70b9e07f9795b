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
from wengert import _core
from wengert.distributed import DataParallel, _grain
print(_core._isa())
DataParallel(wg.nn.Linear(2, 2), grain=2)
print(_core._isa())
weights = wg.arange(6300.0).sin().reshape(70, 90)
print((weights @ weights.T).double().sum().item().hex(), weights.softmax(1).double().sum().item().hex())
"""

UNEQUAL = """
from wengert.distributed import DataParallel, _grain
# The comparison is for processors whose bits differ otherwise.
_grain.Shards._agree_on_instructions = lambda self: None
try:
    DataParallel(wg.nn.Linear(2, 2), grain=2)
except RuntimeError as error:
    print(error)
"""

PROCESSOR = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""


@pytest.mark.parametrize(
    ("lower", "higher", "flag"), [("baseline", "avx2", "avx2"), ("avx2", "", "avx512dq")]
)
def test_ranks_with_other_instructions(tmp_path: Path, lower: str, higher: str, flag: str) -> None:
    """As on two machines, one of which has fewer instructions: both use these, and have the bits that one rank
    has with them."""
    if flag not in PROCESSOR:
        pytest.skip(f"no {flag} on this processor")
    first = f'os.environ["WENGERT_ISA"] = "{lower}" if os.environ["PMI_RANK"] == "1" else "{higher}"'
    (alone,) = run(1, PROBED, _folder(tmp_path, "alone"), WENGERT_ISA=lower)
    found = run(2, PROBED, _folder(tmp_path, "both"), first=first)
    used = [text.split("\n", 1) for text in found]
    assert used[0][0] == (higher or "avx512")
    assert [use for _, use in used] == [alone.split("\n", 1)[1]] * 2
    assert alone.startswith(f"{lower}\n{lower}\n")
    for text in run(2, UNEQUAL, _folder(tmp_path, "unequal"), first=first):
        assert text.startswith("DataParallel: rank 1 computes other bits than rank 0"), text


def _folder(parent: Path, name: str) -> Path:
    (parent / name).mkdir()
    return parent / name
