"""Functions next to removable singularities, far out and at poles:
values and two derivatives against mpmath.
"""

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import wengert as wg
import wengert.nn.functional as F
from mpmath import mp
from wengert import Tensor

DTYPES = ("float64", "float32")


def orders(function: Callable[[Tensor], Tensor], x: float, dtype: str) -> list[float]:
    """Value, first and second derivative, in reverse and forward over reverse."""
    at = wg.tensor(x, dtype=getattr(wg, dtype))
    slope = wg.grad(function)
    return [function(at).item(), slope(at).item(), wg.jvp(slope, (at,), (wg.ones_like(at),))[1].item()]


def exact(function: Callable[[Any], Any], x: float) -> list[float]:
    """The same, by differences at a thousand digits."""
    with mp.workdps(1000):
        step = mpmath.mpf(10) ** -300
        low, here, high = (function(mpmath.mpf(x) + k * step) for k in (-1, 0, 1))
        return [float(v) for v in (here, (high - low) / (2 * step), (high - 2 * here + low) / step**2)]


def sinc(x: Any) -> Any:
    """`sin(pi x) / (pi x)`."""
    return mp.sinc(mp.pi * x)


PLACES = (
    0.0,
    1e-300,
    2.5e-16,
    1e-12,
    1e-9,
    1e-7,
    1e-4,
    1e-3,
    0.01,
    0.1,
    0.3,
    0.499999,
    0.5,
    0.75,
    1.0,
    1.25,
    2.0,
    7.5,
)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("x", [*PLACES, *(-x for x in PLACES)])
def test_sinc(x: float, dtype: str) -> None:
    x = float(np.dtype(dtype).type(x))
    # Second derivatives next to 1/2 are differences of numbers that are a few times larger.
    np.testing.assert_allclose(
        orders(wg.sinc, x, dtype), exact(sinc, x), rtol=60 * np.finfo(dtype).eps, atol=np.finfo(dtype).tiny
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_sinc_of_whole_numbers_is_zero(dtype: str) -> None:
    x = wg.tensor([1.0, -3.0, 1e6, 2.0**40, np.finfo(dtype).max], dtype=getattr(wg, dtype))
    assert wg.sinc(x).tolist() == [0.0] * 5
    slope = wg.vmap(wg.grad(wg.sinc))(x[:4])
    np.testing.assert_allclose(slope.numpy(), [-1.0, 1 / 3, 1e-6, 2.0**-40], rtol=1e-6)


@pytest.mark.parametrize("z", [0.5 + 1j, 0j, 1e-9 - 1e-9j, 0.2 + 0.24j, 0.3 - 0.1j, 2.0 + 0.5j, -1.25 - 3j])
def test_sinc_of_complex_numbers(z: complex) -> None:
    at = wg.tensor(z, dtype=wg.complex128)
    value = complex(mp.sinc(mp.pi * mp.mpc(z)))
    assert abs(wg.sinc(at).item() - value) <= 1e-14 * abs(value)
    # The gradient of the real part is the conjugate of the derivative.
    slope = complex(mp.diff(sinc, mp.mpc(z))).conjugate()
    assert abs(wg.grad(lambda v: wg.sinc(v).real)(at).item() - slope) <= 1e-13 * max(abs(slope), 1e-9)
    assert wg.sinc(wg.tensor([z])).dtype == wg.complex64


def log_ndtr(x: Any) -> Any:
    """The logarithm of the normal distribution function."""
    return mp.log1p(-mp.ncdf(-x)) if x > 0 else mp.log(mp.ncdf(x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "x",
    [
        0.0,
        1e-9,
        -1e-9,
        0.5,
        5.0,
        6.0,
        8.0,
        8.3,
        12.0,
        -1.0,
        -5.0,
        -9.999,
        -10.0,
        -10.001,
        -12.0,
        -30.0,
        -1e3,
        -1e6,
    ],
)
def test_log_ndtr(x: float, dtype: str) -> None:
    x = float(np.dtype(dtype).type(x))
    got, want, eps = orders(wg.log_ndtr, x, dtype), exact(log_ndtr, x), np.finfo(dtype).eps
    np.testing.assert_allclose(got[0], want[0], rtol=8 * eps + x * x * eps if x > 0 else 8 * eps)
    np.testing.assert_allclose(got[1], want[1], rtol=(8 + x * x) * eps if x >= -10 else 8 * eps)
    # Above the asymptotic series the second derivative is a difference whose terms are x^2 times as large.
    np.testing.assert_allclose(got[2], want[2], rtol=(20 + x**4) * eps if x >= -10 else 20 * eps, atol=1e-40)


UNITS: dict[str, tuple[Callable[[Tensor], Tensor], float, float]] = {
    # The function, the factor of the exponential, and the width of its argument.
    "elu": (F.elu, 1.0, 1.0),
    "elu of 1.5": (lambda x: F.elu(x, 1.5), 1.5, 1.0),
    "celu": (F.celu, 1.0, 1.0),
    "celu of 0.5": (lambda x: F.celu(x, 0.5), 0.5, 0.5),
    "selu": (F.selu, 1.6732632423543772 * 1.0507009873554805, 1.0),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNITS)
def test_exponential_units_keep_small_slopes(name: str, dtype: str) -> None:
    function, factor, width = UNITS[name]
    for x in (-1e-9, -0.5, -3.0, -17.0, -37.5, -40.0, -700.0 if dtype == "float64" else -80.0):
        value, slope = factor * math.expm1(x / width), factor / width * math.exp(x / width)
        got = orders(function, x, dtype)
        tolerance = {"rtol": 4 * np.finfo(dtype).eps * max(1, abs(x)), "atol": np.finfo(dtype).tiny}
        np.testing.assert_allclose(got, [value, slope, slope / width], **tolerance)
    above = 1.0507009873554805 if name == "selu" else 1.0
    np.testing.assert_allclose(orders(function, 2.0, dtype), [2 * above, above, 0.0], rtol=1e-6)
    # At 0 the slope from below, and nothing overflows above.
    np.testing.assert_allclose(orders(function, 0.0, dtype)[:2], [0.0, factor / width], rtol=1e-6)
    assert orders(function, 1e30, dtype)[1:] == [pytest.approx(above), 0.0]
    assert wg.hessian(lambda x: wg.vmap(wg.grad(function))(x).sum())(wg.tensor([1e30, 1.0])).tolist() == [
        [0, 0],
        [0, 0],
    ]
    assert math.isnan(orders(function, math.nan, dtype)[0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_tanhshrink_near_zero(dtype: str) -> None:
    for x in (0.0, 1e-9, -1e-5, 1e-3, 0.3, 0.599999, 0.6, -0.7, 3.0):
        x = float(np.dtype(dtype).type(x))
        want = exact(lambda v: v - mp.tanh(v), x)
        np.testing.assert_allclose(
            orders(F.tanhshrink, x, dtype), want, rtol=100 * np.finfo(dtype).eps, atol=1e-37
        )


@pytest.mark.parametrize("dtype", DTYPES)
def test_logit_around_one_half(dtype: str) -> None:
    for d in (1e-12, -1e-7, 1e-4, 0.1, 0.24, 0.26, -0.49):
        x = float(np.dtype(dtype).type(0.5 + d))
        want = exact(lambda v: mp.log(v / (1 - v)), x)
        np.testing.assert_allclose(
            orders(wg.logit, x, dtype), want, rtol=30 * np.finfo(dtype).eps, atol=1e-37
        )


@pytest.mark.parametrize("dtype", [wg.float16, wg.bfloat16])
@pytest.mark.parametrize("bound", [0.1, 0.3, 0.7, 1 / 3])
def test_bounds_of_halves_are_halves(dtype: wg.dtype, bound: float) -> None:
    x = wg.tensor(bound, dtype=dtype)
    assert wg.grad(lambda x: x.clamp(bound, 2.0))(x).item() == 1.0
    assert wg.grad(lambda x: x.clamp(-1.0, bound))(x).item() == 1.0
    assert F.hardshrink(x, bound).item() == 0.0
    assert F.softshrink(x, bound).item() == 0.0
    assert wg.grad(lambda x: F.softshrink(x, bound))(x).item() == 0.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_hard_activations_just_above_their_lower_bound(dtype: str) -> None:
    for distance in (1e-7, 1e-4, 0.5):
        x = float(np.dtype(dtype).type(-3 + distance))
        tolerance = 4 * np.finfo(dtype).eps
        point = wg.tensor(x, dtype=getattr(wg, dtype))
        np.testing.assert_allclose(F.hardsigmoid(point).item(), (x + 3) / 6, rtol=tolerance)
        np.testing.assert_allclose(F.hardswish(point).item(), x * (x + 3) / 6, rtol=tolerance)


def test_digamma_next_to_its_pole() -> None:
    single = wg.tensor([-1e-45, 1e-45, -5.9e-39, 5.9e-39, -1e-20, -0.0, 0.0])
    inverse = -1.0 / single.double()
    expected = inverse.float().tolist()
    assert single.digamma().tolist() == expected
    assert wg.vmap(wg.grad(wg.lgamma))(single).tolist() == expected
    double = wg.tensor([-5e-324, -1e-309, 1e-309, -1e-200], dtype=wg.float64)
    assert double.digamma().tolist() == [math.inf, math.inf, -math.inf, 1e200]


def test_polygamma_of_even_order_at_zero() -> None:
    zeros = wg.tensor([0.0, -0.0, -1.0])
    assert wg.polygamma(2, zeros)[:2].tolist() == [-math.inf, math.inf]
    assert wg.polygamma(1, zeros).tolist() == [math.inf] * 3
    assert wg.polygamma(2, zeros)[2].isnan()


def test_slope_of_a_power_of_zero_in_its_exponent() -> None:
    exponents = wg.tensor([-2.0, -1.0, -1e-30, 0.0, 0.5, 2.0])
    assert wg.vmap(wg.grad(lambda y: wg.zeros(()) ** y))(exponents).tolist() == [-math.inf] * 3 + [0.0] * 3
    tangents = wg.jvp(lambda y: wg.zeros(6) ** y, (exponents,), (wg.ones(6),))[1]
    assert tangents.tolist() == [-math.inf] * 3 + [0.0] * 3
    # Of two factors the one that is 0 decides, where the other's cotangent is 0 too.
    assert (
        wg.grad(lambda y: wg.where(y > 0, wg.zeros(6) ** y, y).sum())(exponents).tolist()
        == [1.0] * 4 + [0.0] * 2
    )


def test_products_with_logarithms() -> None:
    x = wg.tensor([0.0, 0.0, 0.0, 2.0, 0.0], dtype=wg.float64)
    y = wg.tensor([0.0, -1.0, math.inf, 3.0, 5.0], dtype=wg.float64)
    np.testing.assert_allclose(wg.xlogy(x, y).numpy(), [0.0, 0.0, 0.0, 2 * math.log(3.0), 0.0], rtol=1e-15)
    both = wg.grad(lambda x, y: wg.xlogy(x, y).sum(), argnums=(0, 1))(x, y)
    np.testing.assert_allclose(both[0].numpy(), [0.0, 0.0, 0.0, math.log(3.0), math.log(5.0)], rtol=1e-15)
    np.testing.assert_allclose(both[1].numpy(), [0.0, 0.0, 0.0, 2 / 3.0, 0.0], rtol=1e-15)
    assert wg.xlogy(wg.tensor(0.0), wg.tensor(math.nan)).isnan()
    assert wg.xlogy(wg.tensor([2, 0]), wg.tensor([3, 0])).dtype == wg.float32
    z = wg.tensor([2j, 0j], dtype=wg.complex128)
    expected = [2j * np.log(2j), 0]
    np.testing.assert_allclose(wg.xlogy(z, z).numpy(), expected, rtol=1e-15)
    np.testing.assert_allclose(wg.xlog1py(z, z).numpy(), [2j * np.log1p(2j), 0], rtol=1e-15)
    written = wg.tensor([2.0, 0.0])
    written.xlogy_(wg.tensor([3.0, 0.0]))
    assert written.tolist() == [pytest.approx(2 * math.log(3.0)), 0.0]


def test_derivatives_at_the_largest_numbers() -> None:
    for dtype in DTYPES:
        most = float(np.finfo(dtype).max)
        assert orders(wg.erf, most, dtype) == [1.0, 0.0, 0.0]
        assert orders(wg.ndtr, -most, dtype) == [0.0, 0.0, 0.0]
        np.testing.assert_allclose(orders(wg.log10, most, dtype)[1], 1 / math.log(10) / most, rtol=1e-6)
        for function, sign in ((wg.asin, 1), (wg.acos, -1)):
            np.testing.assert_allclose(orders(function, 1e-20, dtype)[2], sign * 1e-20, rtol=1e-6)
        np.testing.assert_allclose(orders(wg.atanh, 1e-20, dtype)[2], 2e-20, rtol=1e-6)
