"""Values and slopes of composed operations at corner points, against closed forms, NumPy and differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from wengert import Tensor, linalg, nn
from wengert.nn import functional as F
from wengert.testing import assert_close

NAN = math.nan


def real(*numbers: float) -> Tensor:
    """A float64 vector."""
    return wg.tensor(numbers, dtype=wg.float64)


def test_products_conjugate_their_first_operand() -> None:
    x, y = np.array([1 + 2j, 3 - 1j]), np.array([2 - 1j, 1j])
    assert_close(wg.vdot(wg.tensor(x), wg.tensor(y)), np.vdot(x, y))
    rows = np.stack([x, y])
    assert_close(linalg.vecdot(wg.tensor(rows), wg.tensor(x)), (rows.conj() * x).sum(-1))


def test_float_power_of_complex_numbers() -> None:
    x = np.array([1 + 2j, -3.0])
    for exponent in (2, 1j):
        out = wg.float_power(wg.tensor(x), exponent)
        assert out.dtype == wg.complex128
        assert_close(out, np.float_power(x, exponent))
    assert wg.float_power(wg.tensor([4]), 0.5).tolist() == [2.0]
    assert_close(wg.float_power(2.0, wg.tensor([1j])), np.float_power(2.0, np.array([1j])))


@pytest.mark.parametrize("curvature", [1.0, 2.0])
def test_curvature_of_losses_where_they_are_zero(curvature: float) -> None:
    target = real(0.0)
    loss = lambda x: F.smooth_l1_loss(x, target, "sum", 1 / curvature)
    assert wg.hessian(loss)(real(0.0)).item() == curvature
    assert wg.hessian(lambda x: F.huber_loss(x, target, "sum"))(real(0.0)).item() == 1.0
    # Beyond the seam the slope is constant, on both sides.
    assert wg.grad(loss)(real(-3.0)).item() == -1.0
    assert wg.hessian(loss)(real(-3.0)).item() == 0.0


def test_smooth_l1_warns_under_its_own_name() -> None:
    with pytest.warns(UserWarning, match=r"^smooth_l1_loss: "):
        F.smooth_l1_loss(wg.ones(3, 1), wg.ones(3))


@pytest.mark.parametrize(
    ("function", "reference"), [(wg.xlogy, math.log), (wg.xlog1py, math.log1p)], ids=["xlogy", "xlog1py"]
)
def test_slope_of_a_factor_zero_is_the_logarithm(function: Callable[..., Tensor], reference: Any) -> None:
    product = lambda v: function(v[0], v[1])
    assert_close(wg.grad(product)(real(0.0, 3.0)), np.array([reference(3.0), 0.0]))
    mixed = 1 / 3.0 if function is wg.xlogy else 1 / 4.0
    assert_close(wg.hessian(product)(real(0.0, 3.0)), np.array([[0.0, mixed], [mixed, 0.0]]))
    outside = real(-2.0, -1.0, math.inf, NAN) if function is wg.xlog1py else real(-1.0, 0.0, math.inf, NAN)
    np.testing.assert_array_equal(function(real(0.0), outside).numpy(), [0.0, 0.0, 0.0, NAN])
    assert wg.grad(lambda y: function(real(0.0), y).sum())(outside[:3]).tolist() == [0.0, 0.0, 0.0]
    assert_close(function(wg.tensor([0, 2]), 3), np.array([0.0, 2 * reference(3.0)], dtype=np.float32))


def test_deviation_of_equal_elements_has_slope_zero_in_both_modes() -> None:
    for function in (lambda x: x.std(), lambda x: x[:1].std(correction=0), lambda x: wg.std_mean(x)[0]):
        assert wg.grad(function)(real(1.0, 1.0, 1.0)).tolist() == [0.0, 0.0, 0.0]
        assert wg.jvp(function, (real(1.0, 1.0, 1.0),), (real(1.0, 2.0, 4.0),))[1].item() == 0.0
    columns = wg.tensor([[1.0, 1.0], [1.0, 2.0]], dtype=wg.float64)
    assert_close(
        wg.grad(lambda x: x.std(0).sum())(columns), np.array([[0.0, -math.sqrt(0.5)], [0.0, math.sqrt(0.5)]])
    )
    picked = lambda x: x[x > 0].std()
    assert wg.vmap(wg.grad(picked))(wg.ones(2, 3)).tolist() == [[0.0] * 3] * 2


def test_an_infinite_deviation_has_no_slope() -> None:
    for function in (
        lambda x: x.std(correction=3),
        lambda x: x.var(correction=3),
        lambda x: x.std(correction=5),
    ):
        assert function(real(1.0, 2.0, 4.0)).item() == math.inf
        assert np.isnan(wg.grad(function)(real(1.0, 2.0, 4.0)).numpy()).all()


def test_a_bool_in_place_of_the_axes_is_unbiased() -> None:
    x = np.array([[1.0, 2.0, 4.0], [3.0, 7.0, -1.0]])
    for name, reference in (("std", np.std), ("var", np.var)):
        method = getattr(wg.tensor(x), name)
        assert_close(method(False), np.asarray(reference(x)))
        assert_close(method(True), np.asarray(reference(x, ddof=1)))
        assert_close(method(0, False, True), reference(x, axis=0, keepdims=True))
        assert_close(getattr(wg, name)(wg.tensor(x), 1, unbiased=False), reference(x, axis=1))


def test_filling_keeps_the_dtype() -> None:
    mask = wg.tensor([True, False])
    for dtype, value, expected in (
        (wg.bool, 1, [True, False]),
        (wg.int64, 2.5, [2, 0]),
        (wg.uint8, 255, [255, 0]),
        (wg.float16, wg.tensor(0.5, dtype=wg.float64), [0.5, 0.0]),
    ):
        x = wg.zeros(2, dtype=dtype)
        out = x.masked_fill(mask, value)
        assert out.dtype == dtype
        assert out.tolist() == expected
        x.masked_fill_(mask, value)
        assert x.tolist() == expected
    assert wg.grad(lambda v: wg.ones(2).masked_fill(mask, v).sum())(wg.tensor(3.0)).item() == 1.0


def test_interpolation_meets_both_ends() -> None:
    start, end = wg.tensor(1e8), wg.tensor(1.0)
    for weight, expected in ((0.0, 1e8), (1.0, 1.0), (wg.tensor([0.0, 1.0]), [1e8, 1.0])):
        assert wg.lerp(start, end, weight).tolist() == expected
    weights = real(-0.5, 0.25, 0.5, 0.75, 1.5)
    along = lambda v, w: wg.lerp(v[0], v[1], w)
    for w in weights:
        for weight in (w, w.item()):
            assert_close(along(real(2.0, 5.0), weight), 2.0 + 3.0 * w.item())
            assert_close(wg.grad(along)(real(2.0, 5.0), weight), np.array([1 - w.item(), w.item()]))
        assert wg.grad(along, argnums=1)(real(2.0, 5.0), w).item() == 3.0


@pytest.mark.parametrize(
    "name", ["hardshrink", "softshrink", "elu", "selu", "celu", "relu", "relu6", "hardtanh"]
)
def test_activations_pass_nan_on(name: str) -> None:
    assert math.isnan(getattr(F, name)(wg.tensor(NAN)).item())
    assert math.isnan(F.threshold(wg.tensor(NAN), 0.0, 5.0).item())


def test_what_beta_zero_leaves_out_does_not_count() -> None:
    a = wg.ones(2, 2)
    missing = wg.full((2, 2), NAN)
    assert missing.addmm(a, a, beta=0).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    whole = wg.ones(2, 2, dtype=wg.int64)
    out = wg.addmm(whole, whole, whole, beta=2, alpha=3)
    assert out.dtype == wg.int64
    assert out.tolist() == [[8, 8], [8, 8]]


def test_layers_of_empty_batches() -> None:
    mean, var = wg.zeros(2), wg.ones(2)
    assert F.batch_norm(wg.ones(0, 2), mean, var, training=True).shape == (0, 2)
    assert F.instance_norm(wg.ones(0, 2, 3), mean, var).shape == (0, 2, 3)
    assert mean.tolist() == [0.0, 0.0]
    assert var.tolist() == [1.0, 1.0]
    assert F.group_norm(wg.ones(0, 4, 3), 2).shape == (0, 4, 3)
    assert F.pixel_shuffle(wg.ones(0, 4, 1, 2), 2).shape == (0, 1, 2, 4)
    for layer in (nn.RNN(2, 3), nn.GRU(2, 3, bidirectional=True), nn.LSTM(2, 3, num_layers=2)):
        out, last = layer(wg.ones(4, 0, 2))
        assert out.shape[:2] == (4, 0)
        assert (last[0] if isinstance(last, tuple) else last).shape[1] == 0
    assert nn.GRU(2, 3, batch_first=True)(wg.ones(0, 4, 2))[0].shape == (0, 4, 3)
    images = wg.ones(0, 3, 4, 4)
    values, places = F.adaptive_max_pool2d(images, 2, return_indices=True)
    assert values.shape == places.shape == (0, 3, 2, 2)
    assert F.max_unpool2d(values, places, 2).shape == (0, 3, 4, 4)
    assert F.grid_sample(images, wg.ones(0, 2, 5, 2)).shape == (0, 3, 2, 5)


def test_products_of_nothing_are_zero() -> None:
    zero = np.zeros((2, 2)).tolist()
    assert wg.zeros(2, 2).addbmm(wg.ones(0, 2, 3), wg.ones(0, 3, 2)).tolist() == zero
    assert wg.inner(wg.ones(2, 0), wg.ones(2, 0)).tolist() == zero
    assert wg.unique(wg.ones(2, 0), dim=0).shape == (1, 0)


def test_parts_of_nothing() -> None:
    assert [part.shape for part in wg.ones(0, 4).chunk(2)] == [(0, 4), (0, 4)]
    assert wg.ones(0, 4).unflatten(1, (2, -1)).shape == (0, 2, 2)
    assert wg.cat([wg.tensor([]), wg.ones(2, 2)]).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert linalg.cond(wg.ones(2, 0, 0)).tolist() == [0.0, 0.0]
    assert linalg.cond(wg.ones(0, 0), "fro").item() == 0.0


def test_no_axes_reduce_nothing() -> None:
    x = wg.tensor([0.0, 2.0])
    assert x.any(dim=()).tolist() == [False, True]
    assert wg.all(x, axis=()).tolist() == [False, True]
    assert x.any().item()
    assert not x.all().item()


def test_norms_below_one_at_zero() -> None:
    x = real(0.0, 4.0)
    assert x.norm(0.5).item() == 4.0
    assert wg.grad(lambda x: x.norm(0.5))(x).tolist() == [0.0, 1.0]
    assert wg.grad(lambda x: linalg.vector_norm(x, 0.5))(real(0.0, 0.0)).tolist() == [0.0, 0.0]
    matrix = np.array([[1.0, 2.0], [3.0, -4.0]])
    assert_close(wg.tensor(matrix).norm("nuc"), np.linalg.norm(matrix, "nuc"))
    assert_close(wg.tensor(matrix).norm("fro"), np.linalg.norm(matrix, "fro"))


def test_a_wrong_certainty_still_moves() -> None:
    p, t = real(0.0, 1.0, 0.5), real(1.0, 0.0, 1.0)
    loss = lambda p: F.binary_cross_entropy(p, t, reduction="none")
    assert_close(loss(p), np.array([100.0, 100.0, math.log(2.0)]))
    assert wg.grad(lambda p: loss(p).sum())(p).tolist() == [-1e12, 1e12, -2.0]
    half = wg.grad(lambda p: F.binary_cross_entropy(p, t[:2].half()))(p[:2].half())
    assert (half[0] < -1e4).item()
    assert (half[1] > 1e4).item()


def test_variances_one_for_each_line() -> None:
    x, t, var = (np.arange(1.0, 7.0).reshape(2, 3), np.ones((2, 3)), np.array([2.0, 4.0]))
    expected = 0.5 * (np.log(var[:, None]) + (x - t) ** 2 / var[:, None]).mean()
    assert_close(F.gaussian_nll_loss(*map(wg.tensor, (x, t, var))), expected)


def test_ignored_targets_may_be_negative() -> None:
    x = real(1.0, 2.0, 3.0).expand(2, 3)
    assert F.nll_loss(x, wg.tensor([-100, 1])).item() == -2.0
    with pytest.raises(IndexError):
        wg.vmap(lambda t: F.nll_loss(x[:1], t))(wg.tensor([[1], [-1]]))


def test_a_padding_row_counted_from_the_end() -> None:
    table, index = wg.arange(6.0).reshape(3, 2), wg.tensor([[0, 2], [1, 1]])
    bags = F.embedding_bag(index, table, mode="sum", padding_idx=-1)
    assert bags.tolist() == [[0.0, 1.0], [4.0, 6.0]]


def test_products_from_an_infinite_start_keep_their_values() -> None:
    x = wg.tensor([math.inf, 2.0, 3.0])
    want = [math.inf] * 3
    assert x.cumprod(0).tolist() == want
    assert x.clone().requires_grad_().cumprod(0).tolist() == want
    assert wg.jvp(lambda x: x.cumprod(0), (x,), (wg.ones(3),))[0].tolist() == want
    assert wg.linear_recurrence(wg.ones(2), wg.tensor([math.inf, 2.0])).tolist() == [1.0, 3.0]


def test_ramps_of_complex_numbers() -> None:
    for dtype in (wg.complex64, wg.complex128):
        got = wg.linspace(0, 1, 5, dtype=dtype)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got.numpy(), np.linspace(0, 1, 5))


def test_coordinates_of_narrow_numbers() -> None:
    for dtype in (wg.uint8, wg.int8, wg.int64):
        rows, columns = wg.unravel_index(wg.tensor([3, 100], dtype=dtype), (2, 300))
        assert (rows.dtype, rows.tolist(), columns.tolist()) == (wg.int64, [0, 0], [3, 100])


def test_no_spacing_is_one() -> None:
    x = real(0.0, 1.0, 9.0)
    assert_close(wg.gradient(x, spacing=None)[0], wg.gradient(x)[0])


@pytest.mark.parametrize("bad", [NAN, math.inf, -math.inf])
def test_bins_of_an_infinite_range_are_refused(bad: float) -> None:
    x = real(bad, 1.0, 2.0)
    for count in (wg.histc, wg.histogram):
        with pytest.raises(ValueError, match=r"bins from .* give a finite range"):
            count(x, 2)
    assert wg.histc(x, 2, min=0, max=2).tolist() == [0, 2]
    assert wg.histogram(x, 2, range=(0, 2)).hist.tolist() == [0, 2]


def test_a_spacing_that_is_no_number_is_named():
    for spacing in ("a", [None]):
        with pytest.raises(TypeError, match="gradient: a spacing is a number or a tensor"):
            wg.gradient(wg.arange(5.0), spacing=spacing)
