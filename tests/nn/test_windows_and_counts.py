"""Windows of pooling that see nothing, and distances that count."""

import math

import pytest
import wengert as wg
from wengert import nn
from wengert.nn import functional as F


def test_windows_in_the_padding_alone_refuse():
    # Positions -1 and 1 of an axis of one element.
    with pytest.raises(ValueError, match="a window lies in the padding altogether"):
        F.max_pool1d(wg.ones(1, 1, 1), 2, padding=1, dilation=2)
    with pytest.raises(ValueError, match="spatial axis 1 has 2 elements"):
        F.max_pool2d(wg.ones(1, 1, 9, 2), 2, 1, 1, 3)
    assert F.max_pool1d(wg.tensor([[1.0, 2.0]]), 2, 1, 1, 2).tolist() == [[2.0, 1.0]]


def test_distances_by_count_keep_their_graph():
    x = wg.tensor([[1.0, 0.0, 3.0], [0.0, 0.0, math.nan]], requires_grad=True)
    out = nn.PairwiseDistance(p=0, eps=0.0)(x, wg.zeros(2, 3))
    assert out.tolist() == [2, 1]
    out.sum().backward()
    assert x.grad.tolist() == [[0, 0, 0], [0, 0, 0]]
