"""Counts from elsewhere that are too large for a result."""

import pytest
import wengert as wg


@pytest.mark.parametrize("counts", [[2**62, 2**62], [2**63 - 1, 1], [2**32, 0], [2**40, -(2**40) + 1]])
def test_repeat_interleave_does_not_wrap(counts: list[int]) -> None:
    with pytest.raises(ValueError, match=r"too many|negative"):
        wg.tensor([1.0, 2.0]).repeat_interleave(wg.tensor(counts))
    with pytest.raises(ValueError, match=r"too many|negative"):
        wg.repeat_interleave(wg.tensor(counts))


def test_counts_that_fit() -> None:
    assert wg.tensor([1.0, 2.0]).repeat_interleave(wg.tensor([2, 3])).tolist() == [1.0, 1.0, 2.0, 2.0, 2.0]
    assert wg.repeat_interleave(wg.tensor([0, 2], dtype=wg.uint64)).tolist() == [1, 1]
