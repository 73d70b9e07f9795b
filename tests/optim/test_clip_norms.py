"""Total norms of gradients: every norm, complex gradients, keywords without meaning."""

import math

import numpy as np
import pytest
import wengert as wg
from wengert import nn
from wengert.nn.utils import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm

TENSORS = [np.array([1.0, -2.0, 0.5]), np.array([[3.0], [-4.0]]), np.array(0.25)]


def norm_of_norms(tensors, p):
    """NumPy's vector norm of its vector norms."""
    return np.linalg.norm([np.linalg.norm(x.reshape(-1), p) for x in tensors], p)


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, math.inf, -math.inf, -1, -2, -0.5])
def test_every_norm(p):
    found = get_total_norm([wg.tensor(x) for x in TENSORS], p)
    assert found.item() == pytest.approx(norm_of_norms(TENSORS, p), rel=1e-12)


def test_norms_at_zeros():
    zeros = [wg.tensor([0.0, 3.0]), wg.zeros(2), wg.zeros(0)]
    assert [get_total_norm(zeros, p).item() for p in (0, 1, 2, math.inf)] == [1.0, 3.0, 3.0, 3.0]
    assert [get_total_norm(zeros[:2], p).item() for p in (-1, -math.inf)] == [0.0, 0.0]
    assert [get_total_norm([], p).item() for p in (0, -1, 2)] == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match=r"norm_type -1: a tensor of shape \(0,\) has no elements"):
        get_total_norm(zeros, -1)
    with pytest.raises(ValueError, match="norm_type must be a number or inf, got nan"):
        get_total_norm(zeros, math.nan)


@pytest.mark.parametrize("p", [0, 1, 2, 3, math.inf, -math.inf])
def test_complex_gradients(p):
    values = [np.array([3 + 4j, 1j]), np.array([2.0 - 1j])]
    lengths = [np.abs(x) for x in values]
    total = norm_of_norms(lengths, p)
    assert get_total_norm([wg.tensor(x) for x in values], p).item() == pytest.approx(total)
    params = [wg.zeros(x.shape, dtype=wg.complex128).requires_grad_() for x in values]
    for param, x in zip(params, values):
        param.grad = wg.tensor(x)
    clip_grad_norm_(params, 0.5, p)
    for param, x in zip(params, values):
        np.testing.assert_allclose(param.grad.numpy(), x * min(1.0, 0.5 / (total + 1e-6)), rtol=1e-9)


def test_foreach_changes_nothing():
    p = nn.Parameter(wg.ones(2))
    p.grad = wg.tensor([3.0, 4.0])
    assert get_total_norm(p.grad, foreach=True).item() == 5.0
    clip_grad_value_(p, 3.5, foreach=False)
    assert p.grad.tolist() == [3.0, 3.5]
    clip_grads_with_norm_(p, 1.0, wg.tensor(2.0), foreach=True)
    assert p.grad.tolist() == pytest.approx([1.5, 1.75])
    assert clip_grad_norm_(p, 1.0, 2.0, False, True).item() == pytest.approx(math.hypot(1.5, 1.75))


@pytest.mark.parametrize("size", [3e37, 3e-37])
@pytest.mark.parametrize("p", [1, 1.5, 2, 3, math.inf])
def test_powers_that_leave_float32(p, size):
    rows = [wg.tensor(x * size, dtype=wg.float32) for x in TENSORS]
    total = norm_of_norms([row.numpy().astype(np.float64) for row in rows], p)
    assert get_total_norm(rows, p).item() == pytest.approx(total, rel=5e-6, abs=0.0)
    params = [nn.Parameter(wg.zeros_like(row)) for row in rows]
    for param, row in zip(params, rows):
        param.grad = row.clone()
    clip_grad_norm_(params, 1.0, p)
    for param, row in zip(params, rows):
        np.testing.assert_allclose(
            param.grad.numpy(), row.numpy() * min(1.0, 1.0 / (total + 1e-6)), rtol=5e-6
        )
