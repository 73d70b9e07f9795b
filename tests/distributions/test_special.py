"""Incomplete gamma functions, slopes of gamma variates, quantiles, densities of large shapes: against
mpmath."""

import math

import mpmath as mp
import numpy as np
import pytest
import scipy.special as sp
import scipy.stats as st
import wengert as wg
from distributions.families import tensor
from wengert.distributions.numerics.incomplete import gammainc, gammaincc, log_gamma_slope
from wengert.distributions.numerics.special import (
    expm1_over,
    half_step,
    in_double,
    log1p_over,
    log_gamma_density,
)
from wengert.testing import gradcheck

SHAPES = [1e-6, 1e-3, 0.03, 0.3, 0.7, 0.99, 1.0, 1.01, 1.5, 2.0, 3.7, 10.0, 35.0, 200.0, 1e3]
PROBABILITIES = [1e-12, 1e-5, 1e-2, 0.2, 0.5, 0.8, 0.99, 1 - 1e-5, 1 - 1e-12]


def slope_by_differences(a: float, log_x: float) -> float:
    """`-(dP/da) / (x f)` with 50 digits."""
    with mp.workdps(50):
        x = mp.exp(mp.mpf(log_x))
        dp = mp.diff(lambda b: mp.gammainc(b, 0, x, regularized=True), mp.mpf(a), h=a * mp.mpf(10) ** -18)
        return float(-dp / mp.exp(a * mp.mpf(log_x) - x - mp.loggamma(a)))


@pytest.mark.parametrize("a", SHAPES)
def test_log_gamma_slope(a: float) -> None:
    x = st.gamma.ppf(PROBABILITIES, a)
    # Where the quantile underflows, from the first term of the series.
    small = (np.log(PROBABILITIES) + sp.gammaln(a + 1)) / a
    log_x = np.where(x > 1e-290, np.log(np.maximum(x, 1e-290)), small)
    expected = [slope_by_differences(a, float(v)) for v in log_x]
    np.testing.assert_allclose(log_gamma_slope(tensor(a), tensor(log_x)).numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize("a", [1e5, 1e9])
def test_log_gamma_slope_of_large_shapes(a: float) -> None:
    for z in (-6, -1, 0, 2, 6):
        log_x = float(np.log(a + z * np.sqrt(a)))
        with mp.workdps(40):
            x, c = mp.exp(mp.mpf(log_x)), mp.mpf(log_x) - mp.digamma(a)
            s, w = (1 if c > 0 else -1), 1 / mp.sqrt(mp.mpf(a))
            steps = [k * w for k in (0, 1, 3, 6, 10, 20)]
            expected = mp.quad(
                lambda u, s=s, x=x, c=c: mp.exp(s * a * u - x * mp.expm1(s * u)) * (s * c + u), steps
            )
        assert log_gamma_slope(tensor(a), tensor(log_x)).item() == pytest.approx(float(expected), rel=1e-9)


def test_log_gamma_slope_of_float32() -> None:
    got = log_gamma_slope(wg.tensor([0.5, 3.0]), wg.tensor([-1.0, 1.0]))
    assert got.dtype == wg.float32
    np.testing.assert_allclose(
        got.numpy(), [slope_by_differences(0.5, -1), slope_by_differences(3, 1)], rtol=1e-6
    )


def test_incomplete_gamma_functions() -> None:
    rng = np.random.default_rng(0)
    a = np.concatenate([10 ** rng.uniform(-6, 4, 2000), 10 ** rng.uniform(-1, 1, 2000)])
    x = a * np.exp(rng.normal(size=a.size) * np.minimum(4, 4 / np.sqrt(a)))
    below, above = gammainc(tensor(a), tensor(x)).numpy(), gammaincc(tensor(a), tensor(x)).numpy()
    np.testing.assert_allclose(below, sp.gammainc(a, x), rtol=1e-11, atol=1e-250)
    np.testing.assert_allclose(above, sp.gammaincc(a, x), rtol=1e-8, atol=1e-14)
    assert gammainc(tensor([0.5, 1, 2, 3]), tensor([0, np.inf, 0, 1e300])).tolist() == [0, 1, 0, 1]
    assert gammaincc(tensor([0.5, 1, 2, 3]), tensor([0, np.inf, 0, 1e300])).tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("function", [gammainc, gammaincc])
def test_gradients_of_incomplete_gamma_functions(function: wg.custom_jvp) -> None:
    a = tensor([0.3, 0.9, 2.0, 40.0]).requires_grad_()
    x = tensor([0.2, 1.5, 3.0, 39.0]).requires_grad_()
    assert gradcheck(function, [a, x])
    assert gradcheck(function, [a, tensor(2.0).requires_grad_()])


def test_second_derivative_of_the_slope() -> None:
    a, log_x, h = 1.5, tensor(0.3), 1e-4
    got = wg.grad(lambda a: log_gamma_slope(a, log_x))(tensor(a)).item()
    up, down = log_gamma_slope(tensor(a + h), log_x).item(), log_gamma_slope(tensor(a - h), log_x).item()
    assert got == pytest.approx((up - down) / (2 * h), rel=1e-6)


def test_normal_quantiles() -> None:
    p = np.concatenate([10.0 ** np.arange(-300, 0, 5), np.linspace(0.001, 0.999, 98), [1 - 1e-10, 0.1, 0.9]])
    np.testing.assert_allclose(wg.ndtri(tensor(p)).numpy(), sp.ndtri(p), rtol=1e-13)
    assert wg.ndtri(tensor([0.0, 0.5, 1.0])).tolist() == [-np.inf, 0, np.inf]
    assert wg.ndtri(tensor([-0.1, 1.1, np.nan])).isnan().all()
    x = tensor([1e-8, 0.05, 0.3, 0.95])
    got = wg.grad(lambda p: wg.ndtri(p).sum())(x).numpy()
    np.testing.assert_allclose(got, 1 / st.norm.pdf(sp.ndtri(x.numpy())), rtol=1e-12)
    second = wg.vmap(wg.grad(wg.grad(wg.ndtri)))(tensor([0.2, 0.7])).numpy()
    z = sp.ndtri([0.2, 0.7])
    np.testing.assert_allclose(second, z / st.norm.pdf(z) ** 2, rtol=1e-12)


def test_gamma_density_of_any_shape() -> None:
    rng = np.random.default_rng(0)
    a = 10 ** rng.uniform(-8, 12, 300)
    x = a * np.exp(rng.normal(size=300) * np.minimum(3, 3 / np.sqrt(a)))
    with mp.workdps(50):
        terms = [
            (mp.mpf(b) - 1) * mp.log(mp.mpf(y)) - mp.mpf(y) - mp.loggamma(mp.mpf(b)) for b, y in zip(a, x)
        ]
    np.testing.assert_allclose(
        log_gamma_density(tensor(a), tensor(x)).numpy(), [float(t) for t in terms], rtol=1e-9
    )


def test_half_step() -> None:
    x = 10 ** np.linspace(-3, 12, 60)
    with mp.workdps(50):
        expected = [float(mp.loggamma(mp.mpf(v) + 0.5) - mp.loggamma(mp.mpf(v))) for v in x]
    np.testing.assert_allclose(half_step(tensor(x)).numpy(), expected, rtol=1e-12, atol=1e-13)


def test_quotients_that_are_smooth_at_0() -> None:
    z = 0.7
    c = np.array([-0.5, -2e-3, -1e-3, -1e-9, 0, 1e-12, 1e-4, 1.4e-3, 1.5e-3, 0.5])
    with mp.workdps(40):
        logs = [float(mp.log1p(mp.mpf(v) * z) / v) if v else z for v in c]
        powers = [float(mp.expm1(mp.mpf(v) * z) / v) if v else z for v in c]
    np.testing.assert_allclose(log1p_over(tensor(z), tensor(c)).numpy(), logs, rtol=1e-14)
    np.testing.assert_allclose(expm1_over(tensor(z), tensor(c)).numpy(), powers, rtol=1e-14)
    for function, slope in ((log1p_over, -0.5), (expm1_over, 0.5)):
        assert wg.grad(lambda c, f=function: f(tensor(z), c))(tensor(0.0)).item() == pytest.approx(
            slope * z * z
        )
        assert gradcheck(
            function, [tensor([0.7, -0.5]).requires_grad_(), tensor([0.2, 1e-5]).requires_grad_()]
        )


def test_in_double_rounds_once() -> None:
    difference = in_double(lambda x, y: (x + y) - x)
    assert difference(wg.tensor(1e8), wg.tensor(1.0)).item() == 1
    assert difference(wg.tensor(1e8), wg.tensor(1.0)).dtype == wg.float32
    assert difference(wg.tensor([1e8]), wg.tensor(1.0, dtype=wg.float64)).dtype == wg.float32
    assert difference(wg.tensor(3), wg.tensor(1.0)).dtype == wg.float32


def test_incomplete_gamma_functions_at_zero() -> None:
    """Constant in `a` at `x = 0`: the slope is 0 in both modes, also where the density is infinite."""
    x = wg.zeros(4, dtype=wg.float64)
    a = wg.tensor([0.25, 0.5, 1.0, 3.0], dtype=wg.float64)
    for function, sign in ((wg.igamma, 1.0), (wg.igammac, -1.0)):
        by_a, by_x = wg.vjp(function, a, x)[1](wg.ones_like(a))
        assert by_a.tolist() == [0.0] * 4
        assert by_x.tolist() == [sign * math.inf, sign * math.inf, sign, 0.0]
        assert wg.jvp(lambda a, f=function: f(a, x), (a,), (wg.ones_like(a),))[1].tolist() == [0.0] * 4
        moved = wg.jvp(function, (a, x), (wg.zeros_like(a), wg.ones_like(x)))[1]
        assert moved.tolist() == by_x.tolist()


def test_the_airy_function_far_out() -> None:
    """Against mpmath, beside the height of the wave."""
    places = [-13.0, -1234.5, -98765.4321, -1234567.891, -87654321.125, -3e10]
    x = wg.tensor(places, dtype=wg.float64, requires_grad=True)
    y = wg.special.airy_ai(x)
    (slope,) = wg.autograd.grad(y.sum(), x)
    with mp.workdps(60):
        for at, value, moved in zip(places, y.tolist(), slope.tolist(), strict=True):
            height = abs(mp.mpf(at)) ** 0.25 / mp.sqrt(mp.pi)
            limit = 1e-15 if at > -1e9 else 1e-14
            assert abs(moved - mp.airyai(at, derivative=1)) < limit * height
            assert abs(value - mp.airyai(at)) * abs(at) ** 0.5 < limit * height
    far = wg.special.airy_ai(wg.tensor([-1e150, -math.inf, math.inf], dtype=wg.float64))
    assert far[0].abs() < 1e-37
    assert far[1:].tolist() == [0.0, 0.0]
