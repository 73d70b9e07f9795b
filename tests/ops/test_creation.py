"""New tensors: constants and ranges against NumPy; random numbers by statistics, seeds and streams."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import wengert as wg
from hypothesis import given, strategies as st
from scipy import stats
from support import array, assert_near

N = 200_000


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool"]
)
def test_constants(dtype: str) -> None:
    kind = getattr(wg, dtype)
    for make, value in ((wg.zeros, 0), (wg.ones, 1)):
        for shape in ((), (3,), (2, 0), (2, 3)):
            x = make(shape, dtype=kind)
            assert (x.shape, x.dtype) == (shape, kind)
            assert (array(x) == value).all()
    assert (array(wg.full((2, 3), 1, dtype=kind)) == 1).all()
    like = wg.zeros(4, 5, dtype=kind)
    assert (wg.ones_like(like).dtype, wg.ones_like(like).shape) == (kind, (4, 5))
    assert wg.empty(3, dtype=kind).shape == (3,)
    assert wg.zeros_like(like, dtype=wg.float64).dtype == wg.float64


def test_defaults() -> None:
    assert wg.zeros(1).dtype == wg.float32
    assert wg.full((2,), 1.5).dtype == wg.float32
    assert wg.arange(3).dtype == wg.int64
    assert wg.arange(3.0).dtype == wg.float32
    assert wg.rand(1).dtype == wg.randn(1).dtype == wg.float32
    assert wg.randint(0, 2, (1,)).dtype == wg.randperm(2).dtype == wg.int64
    assert wg.zeros(2, requires_grad=True).requires_grad
    assert not wg.zeros(2).requires_grad


@given(st.integers(-20, 20), st.integers(-20, 20), st.sampled_from([1, 2, 3, -1, -2, -7]))
def test_integer_ranges(start: int, stop: int, step: int) -> None:
    if (stop - start) * step < 0:
        with pytest.raises(ValueError, match="lead away"):
            wg.arange(start, stop, step)
        return
    assert wg.arange(start, stop, step).tolist() == list(range(start, stop, step))


@given(st.floats(-5, 5, width=32), st.floats(-5, 5, width=32), st.sampled_from([0.25, 0.1, 1.5, -0.3]))
def test_float_ranges(start: float, stop: float, step: float) -> None:
    if (stop - start) * step < 0:
        with pytest.raises(ValueError, match="lead away"):
            wg.arange(start, stop, step)
        return
    got, expected = array(wg.arange(start, stop, step, dtype=wg.float64)), np.arange(start, stop, step)
    assert_near(got, expected, 1e-12)


@pytest.mark.parametrize("count", [0, 1, 2, 5, 1001])
def test_linspace(count: int) -> None:
    got = array(wg.linspace(-1.5, 2.0, count, dtype=wg.float64))
    assert_near(got, np.linspace(-1.5, 2.0, count), 1e-12)
    if count > 1:
        assert (got[0], got[-1]) == (-1.5, 2.0)


def test_eye() -> None:
    assert np.array_equal(array(wg.eye(3)), np.eye(3))
    assert np.array_equal(array(wg.eye(2, 4)), np.eye(2, 4))


# ---- distributions, by tests of fit; the seed is fixed, so nothing here is a matter of luck
# --------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform(dtype: str) -> None:
    wg.manual_seed(1)
    x = array(wg.rand(N, dtype=getattr(wg, dtype))).astype("float64")
    assert (x >= 0).all()
    assert (x < 1).all()
    assert stats.kstest(x, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.01
    assert len(np.unique(x)) > 0.98 * N


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal(dtype: str) -> None:
    wg.manual_seed(2)
    x = array(wg.randn(N, dtype=getattr(wg, dtype))).astype("float64")
    assert np.isfinite(x).all()
    assert stats.kstest(x, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.01
    assert abs(stats.kurtosis(x)) < 0.05


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_random_too(dtype: str) -> None:
    wg.manual_seed(3)
    x = array(wg.rand(20_000, dtype=getattr(wg, dtype)))
    assert (x < 1).all()
    assert abs(x.mean() - 0.5) < 0.02
    assert abs(array(wg.randn(20_000, dtype=getattr(wg, dtype))).std() - 1) < 0.03


@pytest.mark.parametrize(("low", "high"), [(0, 10), (-3, 4), (0, 1), (5, 1000)])
def test_integers(low: int, high: int) -> None:
    wg.manual_seed(4)
    x = array(wg.randint(low, high, (N,)))
    assert x.min() >= low
    assert x.max() < high
    counts = np.bincount(x - low, minlength=high - low)
    assert high - low == 1 or stats.chisquare(counts).pvalue > 1e-3


def test_bernoulli() -> None:
    wg.manual_seed(5)
    p = wg.tensor([0.0, 0.1, 0.5, 0.9, 1.0]).unsqueeze(1).expand(5, 50_000)
    x = array(wg.bernoulli(p))
    assert set(np.unique(x)) <= {0.0, 1.0}
    assert np.abs(x.mean(1) - [0.0, 0.1, 0.5, 0.9, 1.0]).max() < 0.01


def test_permutations() -> None:
    wg.manual_seed(6)
    for n in (0, 1, 2, 1000):
        assert sorted(wg.randperm(n).tolist()) == list(range(n))
    firsts = np.bincount([wg.randperm(5)[0].item() for _ in range(2000)], minlength=5)
    assert stats.chisquare(firsts).pvalue > 1e-3


def test_seeds_and_states() -> None:
    wg.manual_seed(7)
    first = [wg.rand(5).tolist(), wg.randn(3).tolist(), wg.randint(0, 100, (4,)).tolist()]
    state = wg.get_rng_state()
    following = wg.rand(5).tolist()
    wg.manual_seed(7)
    assert [wg.rand(5).tolist(), wg.randn(3).tolist(), wg.randint(0, 100, (4,)).tolist()] == first
    wg.set_rng_state(state)
    assert wg.rand(5).tolist() == following
    wg.manual_seed(8)
    assert wg.rand(5).tolist() != first[0]
    assert wg.rand(5).tolist() != wg.rand(5).tolist()


def test_dropout() -> None:
    wg.manual_seed(9)
    dropout = wg.nn.functional.dropout
    x = wg.ones(N, requires_grad=True)
    y = dropout(x, 0.25, training=True)
    values = np.unique(array(y))
    assert values.tolist() == pytest.approx([0.0, 4 / 3])
    assert abs(array(y).mean() - 1) < 0.01
    (g,) = wg.autograd.grad(y.sum(), [x])
    assert np.array_equal(array(g), array(y))
    assert np.array_equal(array(dropout(x, 0.25, training=False)), array(x))
    assert np.array_equal(array(dropout(x, 0.0, training=True)), array(x))
    assert not array(dropout(x, 1.0, training=True)).any()


def test_random_numbers_do_not_depend_on_a_transform_around_them() -> None:
    wg.manual_seed(10)
    plain = wg.randn(3).tolist()
    wg.manual_seed(10)
    inside = wg.grad(lambda x: (x * wg.randn(3)).sum())(wg.ones(3)).tolist()
    assert inside == pytest.approx(plain)


def test_seeds_have_64_bits() -> None:
    for seed, same in ((-1, 2**64 - 1), (2**63, -(2**63)), (np.int64(5), 5)):
        wg.manual_seed(seed)
        first = wg.rand(3).tolist()
        wg.manual_seed(same)
        assert wg.rand(3).tolist() == first


def test_empty_counts() -> None:
    assert wg.eye(0).shape == (0, 0)
    assert wg.randperm(0).shape == (0,)
    assert wg.linspace(0, 1, 0).shape == (0,)
    assert (wg.zeros(0, dtype=wg.int64) // 0).shape == (0,)


def test_functions_of_several_tensors_take_arrays_and_numbers() -> None:
    assert wg.vstack([np.ones(2), [1.0, 2.0]]).tolist() == [[1.0, 1.0], [1.0, 2.0]]
    assert wg.hstack([1.0, 2.0]).tolist() == [1.0, 2.0]
    assert wg.meshgrid([1, 2], 3)[0].shape == (2, 1)
    assert wg.tensordot(np.ones(3), np.ones(3), 1).item() == 3.0
    assert wg.bernoulli(1.0).item() == 1.0
    assert wg.einsum("i,i", [1.0, 2.0], np.ones(2)).item() == 3.0


@pytest.mark.parametrize(("start", "end"), [(0, 1j), (2j, 1 + 1j), (-1, 3 - 2j)])
def test_ranges_of_complex_numbers(start: complex, end: complex) -> None:
    wanted = np.linspace(start, end, 5)
    for dtype in (None, wg.complex128):
        for a, b in ((start, end), (wg.tensor(start), end), (start, wg.tensor(end))):
            assert np.allclose(array(wg.linspace(a, b, 5, dtype=dtype)), wanted, rtol=1e-5)
    assert np.allclose(array(wg.logspace(start, end, 5)), np.logspace(start, end, 5), rtol=1e-5)
    assert wg.linspace(0, end, 5).dtype == wg.complex64
    bound = wg.tensor(complex(start), requires_grad=True)
    ramp = wg.linspace(bound, end, 5)
    assert np.allclose(array(ramp.detach()), wanted, rtol=1e-5)
    ramp.real.sum().backward()
    assert np.allclose(complex(bound.grad), 2.5)
    batched = wg.vmap(lambda a: wg.linspace(a, wg.tensor(end), 5))(wg.tensor([start, 2j]))
    assert np.allclose(array(batched), np.stack([wanted, np.linspace(2j, end, 5)]), rtol=1e-5)
    with pytest.raises(TypeError, match="linspace: complex bounds for a dtype of float32"):
        wg.linspace(start, 1j * abs(end), 5, dtype=wg.float32)


@pytest.mark.parametrize("half", [Fraction(1, 2), Decimal("0.5"), np.float32(0.5), np.array(0.5)])
def test_bounds_of_a_range_are_any_numbers(half: Any) -> None:
    assert wg.linspace(half, 1, 3).tolist() == [0.5, 0.75, 1.0]
    assert wg.linspace(0, half, 2).tolist() == [0.0, 0.5]


def test_ranges_name_what_is_no_bound() -> None:
    with pytest.raises(TypeError, match="linspace: start is a number or a tensor"):
        wg.linspace("a", 1, 3)
    with pytest.raises(TypeError, match="arange: a dtype of real numbers expected, got complex64"):
        wg.arange(3, dtype=wg.complex64)
