"""Bessel functions, `erfcx`, quantiles, zeta, Airy and incomplete gamma functions over wide ranges: values
and derivatives against mpmath."""

import functools
import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import wengert as wg
from mpmath import mp, mpf
from wengert import Tensor

Exact = Callable[[Any], Any]


def orders(function: Callable[[Tensor], Tensor], x: np.ndarray, dtype: str, most: int) -> list[np.ndarray]:
    """The function and its derivatives at each number, alternately forward and in reverse."""
    at = wg.tensor(x, dtype=getattr(wg, dtype))
    found = []
    for order in range(most + 1):
        found.append(function(at).double().numpy())
        function = derived(function, order % 2 == 1)
    return found


def derived(function: Callable[[Tensor], Tensor], forward: bool) -> Callable[[Tensor], Tensor]:
    """The derivative of a function of single elements."""
    if forward:
        return lambda x: wg.jvp(function, (x,), (wg.ones_like(x),))[1]
    return lambda x: wg.grad(lambda x: function(x).sum())(x)


def erfcx(x: Any) -> Any:
    return mp.exp(x * x) * mp.erfc(x)


def quantile(p: Any) -> Any:
    """By Newton's method on the logarithm."""
    if p == 0.5:
        return mpf(0)
    if p > 0.5:
        return -quantile(1 - p)
    x = mpf(wg.tensor(float(p), dtype=wg.float64).ndtri().item())
    for _ in range(3):
        tail = mp.erfc(-x / mp.sqrt(2)) / 2
        x -= mp.log(tail / p) * tail / mp.npdf(x)
    return x


def spherical(x: Any) -> Any:
    return mp.sin(x) / x if x else mpf(1)


SMALL = [0.02, 0.0301, 0.75, 1.5, 2.0, 4.999]
LARGE = [5.0, 7.0711, 15.2, 30.1]
ABOVE = [*SMALL, *LARGE]
EVEN = [*ABOVE, -0.02, -3.3, -7.1]
#: The exact function, where, how many units the value may be off, and digits that slopes may lose.
CASES: dict[str, tuple[Exact, list[float], float, float]] = {
    "erfcx": (erfcx, [*SMALL, *LARGE, -0.2, -0.39, -0.41, -1.0, -5.0, 300.0, 1e3], 4, 400),
    "ndtri": (
        quantile,
        [0.02, 0.2499, 0.25, 0.4, 0.7, 0.7501, 0.999],
        4,
        4000,
    ),
    "bessel_j0": (lambda x: mp.besselj(0, x), EVEN, 6, 30),
    "bessel_j1": (lambda x: mp.besselj(1, x), EVEN, 6, 30),
    "bessel_y0": (lambda x: mp.bessely(0, x), ABOVE, 6, 30),
    "bessel_y1": (lambda x: mp.bessely(1, x), ABOVE, 6, 30),
    "modified_bessel_k0": (lambda x: mp.besselk(0, x), ABOVE, 4, 30),
    "modified_bessel_k1": (lambda x: mp.besselk(1, x), ABOVE, 4, 30),
    "scaled_modified_bessel_k0": (lambda x: mp.besselk(0, x) * mp.exp(x), [*ABOVE, 300.0, 3e3], 4, 3000),
    "scaled_modified_bessel_k1": (lambda x: mp.besselk(1, x) * mp.exp(x), [*ABOVE, 300.0, 3e3], 4, 3000),
    "spherical_bessel_j0": (spherical, EVEN, 4, 60),
}


@functools.cache
def exact(function: Exact, x: float, most: int) -> list[float]:
    """The function and its derivatives, by differences with many digits."""
    with mp.workdps(58):
        step = mpmath.mpf(10) ** -12 * abs(mpf(x))
        near = [function(mpf(x) + k * step) for k in (-2, -1, 0, 1, 2)]
        first = (near[0] - 8 * near[1] + 8 * near[3] - near[4]) / (12 * step)
        second = (-near[0] + 16 * near[1] - 30 * near[2] + 16 * near[3] - near[4]) / (12 * step**2)
        third = (-near[0] + 2 * near[1] - 2 * near[3] + near[4]) / (2 * step**3)
        return [_float(v) for v in (near[2], first, second, third)[: most + 1]]


def _float(x: Any) -> float:
    return float(mp.sign(x)) * math.inf if abs(x) > mpf("1.7976931348623157e308") else float(x)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name: str, dtype: str) -> None:
    function, places, units, slopes = CASES[name]
    limits = np.finfo(dtype)
    # Numbers that both dtypes hold.
    x = np.array(places).astype("float32").astype("float64")
    want = np.array([exact(function, v, 3) for v in x]).T
    got = orders(getattr(wg, name), x, dtype, 3)
    # Waves are as exact as they are high: next to a root few digits of the number are left.
    waves = np.sqrt(1 / np.maximum(np.abs(x), 1.0)) if "bessel_j" in name or "bessel_y" in name else 0.0
    waves = 1 / np.maximum(np.abs(x), 1.0) if name.startswith("spherical") else waves
    with np.errstate(over="ignore"):
        finite = [np.abs(w) < float(limits.max) / 4 for w in want]
    for order, (g, w) in enumerate(zip(got, want)):
        height = np.maximum(np.abs(w), waves)
        error = np.abs(g - w)[finite[order]] / np.maximum(height, float(limits.tiny))[finite[order]]
        allowed = (units if order == 0 else slopes * 30 ** (order - 1)) * float(limits.eps)
        worst = int(np.argmax(error))
        assert error[worst] <= allowed, (order, x[finite[order]][worst], error[worst] / float(limits.eps))


def test_ends() -> None:
    inf, nan = math.inf, math.nan
    ends = {
        "erfcx": ([-inf, -30.0, 0.0, inf, nan], [inf, inf, 1.0, 0.0, nan]),
        "ndtri": ([0.0, 0.5, 1.0, -0.1, 1.1, nan], [-inf, 0.0, inf, nan, nan, nan]),
        "bessel_j0": ([0.0, inf, -inf, nan], [1.0, 0.0, 0.0, nan]),
        "bessel_j1": ([0.0, inf, nan], [0.0, 0.0, nan]),
        "bessel_y0": ([0.0, -1.0, inf, nan], [-inf, nan, 0.0, nan]),
        "bessel_y1": ([0.0, -1.0, inf, nan], [-inf, nan, 0.0, nan]),
        "modified_bessel_k0": ([0.0, -1.0, inf, 800.0, nan], [inf, nan, 0.0, 0.0, nan]),
        "modified_bessel_k1": ([0.0, -1.0, inf, 800.0, nan], [inf, nan, 0.0, 0.0, nan]),
        "scaled_modified_bessel_k0": ([0.0, -1.0, inf, nan], [inf, nan, 0.0, nan]),
        "scaled_modified_bessel_k1": ([0.0, -1.0, inf, nan], [inf, nan, 0.0, nan]),
        "spherical_bessel_j0": ([0.0, inf, -inf, nan], [1.0, 0.0, 0.0, nan]),
    }
    for name, (places, values) in ends.items():
        for dtype in (wg.float64, wg.float32):
            x = wg.tensor(places, dtype=dtype)
            np.testing.assert_array_equal(getattr(x, name)().numpy(), values, err_msg=name)
            # A branch that where() did not take spoils nothing.
            none = wg.grad(lambda x, n=name: (getattr(x, n)() * 0).sum())(x)
            assert (
                none[~x.isnan() & wg.tensor(np.isfinite(values))].tolist()
                == [0.0] * np.isfinite(values).sum()
            )


def test_quantiles_of_the_smallest_numbers() -> None:
    x = wg.tensor([5e-324, 1e-310, 2.3e-308], dtype=wg.float64)
    np.testing.assert_allclose(x.ndtri().numpy(), [float(quantile(mpf(v))) for v in x.tolist()], rtol=3e-16)


def test_bessel_functions_far_out() -> None:
    for x in (1e3, 12345.678, 1e8, 1e15):
        height = math.sqrt(2 / (math.pi * x))
        for name, function in (("j", mp.besselj), ("y", mp.bessely)):
            for order in (0, 1):
                got = getattr(wg, f"bessel_{name}{order}")(wg.tensor(x, dtype=wg.float64)).item()
                with mp.workdps(40):
                    assert abs(got - float(function(order, mpf(x)))) < 1e-15 * height


# ---- compositions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "x", [-1e4, -40.3, -12.26, -12.24, -5.0, -2.33810741, 0.0, 0.25, 3.1, 11.9, 12.26, 50.0]
)
def test_airy(x: float) -> None:
    got = [v.item() for v in orders(wg.special.airy_ai, np.array(x), "float64", 3)]
    value, slope = mp.airyai(mpf(x)), mp.airyai(mpf(x), derivative=1)
    want = [float(v) for v in (value, slope, x * value, value + x * slope)]
    condition = 1 + abs(x) ** 1.5
    height = abs(x) ** -0.25 if x < -2 else abs(want[0])
    scale = [height * max(abs(x), 1.0) ** (k / 2) for k in range(4)]
    for g, w, s in zip(got, want, scale):
        assert abs(g - w) <= 2e-15 * condition * max(s, abs(w), 1e-300)


def test_airy_of_float32_and_at_infinity() -> None:
    x = wg.tensor([-math.inf, -3.7, 2.5, math.inf])
    got = wg.special.airy_ai(x)
    assert got.dtype == wg.float32
    want = [0.0, float(mp.airyai(-3.7)), float(mp.airyai(2.5)), 0.0]
    np.testing.assert_allclose(got.numpy(), want, rtol=4e-7)


ZETAS = [
    (1.0001, 0.3),
    (1.5, 1.0),
    (2.0, 1e-3),
    (3.3, 17.5),
    (30.0, 0.5),
    (200.0, 2.5),
    (7.0, 1e6),
    (1.2, 1e3),
]


@pytest.mark.parametrize(("x", "q"), ZETAS)
def test_zeta(x: float, q: float) -> None:
    with mp.workdps(40):
        zeta = lambda x, q: mp.zeta(x, q)
        want = zeta(mpf(x), mpf(q))
        by_x, by_q = mp.diff(lambda s: zeta(s, mpf(q)), mpf(x)), -mpf(x) * zeta(mpf(x) + 1, mpf(q))
        mixed = -zeta(mpf(x) + 1, mpf(q)) - mpf(x) * mp.diff(lambda s: zeta(s, mpf(q)), mpf(x) + 1)
    at = (wg.tensor(x, dtype=wg.float64), wg.tensor(q, dtype=wg.float64))
    assert wg.special.zeta(*at).item() == pytest.approx(float(want), rel=2e-14 + 1e-15 * x)
    both = wg.grad(wg.special.zeta, argnums=(0, 1))(*at)
    assert both[0].item() == pytest.approx(float(by_x), rel=1e-12)
    assert both[1].item() == pytest.approx(float(by_q), rel=1e-12)
    second = wg.jvp(lambda q: wg.grad(wg.special.zeta)(at[0], q), (at[1],), (wg.ones_like(at[1]),))[1]
    assert second.item() == pytest.approx(float(mixed), rel=1e-11 if x > 1.1 else 1e-10)


def test_zeta_of_negative_offsets_and_at_poles() -> None:
    x = wg.tensor([2.0, 3.0, 4.0, 2.0, 2.5, 1.0, 0.5, 2.0, 3.0, math.nan, 2.0, math.inf], dtype=wg.float64)
    q = wg.tensor([-0.5, -1.25, -7.5, -3.0, -0.5, 2.0, 2.0, 0.0, math.inf, 1.0, -40.3, 2.0], dtype=wg.float64)
    with mp.workdps(30):
        sums = [
            float(mp.zeta(n, mpf(v) + m) + sum((mpf(v) + k) ** -n for k in range(m)))
            for n, v, m in ((2, -0.5, 1), (3, -1.25, 2), (4, -7.5, 8), (2, -40.3, 41))
        ]
    want = [*sums[:3], math.inf, math.nan, math.inf, math.nan, math.inf, 0.0, math.nan, sums[3], 0.0]
    np.testing.assert_allclose(wg.special.zeta(x, q).numpy(), want, rtol=1e-13)
    slope = wg.grad(lambda q: wg.special.zeta(2.0, q).sum())(q[:1])
    assert slope.item() == pytest.approx(-2 * float(mp.zeta(3, 0.5) + mpf(-0.5) ** -3), rel=1e-13)
    assert wg.special.zeta(wg.tensor([2, 4])).tolist() == [
        pytest.approx(math.pi**2 / 6),
        pytest.approx(math.pi**4 / 90),
    ]
    with pytest.raises(TypeError, match=r"zeta: real numbers expected, got wengert\.complex64"):
        wg.special.zeta(wg.tensor([1j]), 1.0)


GAMMAS = [
    (0.05, 1e-6),
    (0.5, 0.3),
    (1.0, 2.0),
    (3.7, 0.1),
    (12.0, 30.0),
    (150.0, 140.0),
    (1e4, 1.01e4),
    (0.3, 25.0),
]


@pytest.mark.parametrize(("a", "x"), GAMMAS)
def test_incomplete_gamma(a: float, x: float) -> None:
    with mp.workdps(40):
        low = lambda a, x: mp.gammainc(a, 0, x, regularized=True)
        high = lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True)
        want = float(low(mpf(a), mpf(x))), float(high(mpf(a), mpf(x)))
        by_a = float(mp.diff(lambda a: low(a, mpf(x)), mpf(a)))
        twice = float(mp.diff(lambda a: low(a, mpf(x)), mpf(a), 2))
        by_x = float(mp.exp((mpf(a) - 1) * mp.log(x) - x - mp.loggamma(a)))
    at = (wg.tensor(a, dtype=wg.float64), wg.tensor(x, dtype=wg.float64))
    assert wg.igamma(*at).item() == pytest.approx(want[0], rel=1e-12)
    assert at[0].igammac(at[1]).item() == pytest.approx(want[1], rel=1e-12)
    slopes = wg.grad(wg.igamma, argnums=(0, 1))(*at)
    assert slopes[0].item() == pytest.approx(by_a, rel=1e-9)
    assert slopes[1].item() == pytest.approx(by_x, rel=1e-11)
    assert wg.grad(wg.special.gammaincc)(*at).item() == pytest.approx(-by_a, rel=1e-9)
    second = wg.grad(wg.grad(wg.special.gammainc))(*at)
    assert second.item() == pytest.approx(twice, rel=1e-7)


def test_incomplete_gamma_at_its_ends() -> None:
    inf, nan = math.inf, math.nan
    a = wg.tensor([1.0, 0.0, 0.0, 2.0, inf, inf, -1.0, 1.0, nan, 1.0])
    x = wg.tensor([0.0, 1.0, 0.0, inf, 1.0, inf, 1.0, -1.0, 1.0, nan])
    np.testing.assert_array_equal(wg.igamma(a, x).numpy(), [0, 1, nan, 1, 0, nan, nan, nan, nan, nan])
    np.testing.assert_array_equal(wg.igammac(a, x).numpy(), [1, 0, nan, 0, 1, nan, nan, nan, nan, nan])
    slopes = wg.grad(lambda a, x: wg.igamma(a, x).sum(), argnums=(0, 1))(a[[0, 3]], x[[0, 3]])
    assert [v.tolist() for v in slopes] == [[0.0, 0.0], [1.0, 0.0]]
    y = wg.tensor([1.0, 2.0])
    assert y.clone().igamma_(wg.tensor(2.0)).tolist() == wg.igamma(y, 2.0).tolist()
    assert y.clone().igammac_(wg.tensor(2.0)).tolist() == wg.igammac(y, 2.0).tolist()
    assert wg.igamma(wg.tensor([1, 2]), wg.tensor(2)).dtype == wg.float32


# ---- polynomials ---------------------------------------------------------------------------------


def test_polynomials_of_high_degree() -> None:
    x = np.linspace(-1, 1, 41)
    n = 500
    got = wg.special.chebyshev_polynomial_t(wg.tensor(x), n).numpy()
    np.testing.assert_allclose(got, np.cos(n * np.arccos(x)), atol=1e-11)
    ends = wg.tensor([1.0, -1.0], dtype=wg.float64)
    assert wg.special.legendre_polynomial_p(ends, n).tolist() == pytest.approx([1.0, 1.0])
    assert wg.special.chebyshev_polynomial_u(ends, n).tolist() == pytest.approx([n + 1.0, n + 1.0])
    assert wg.special.laguerre_polynomial_l(wg.tensor(1.5, dtype=wg.float64), 60).item() == pytest.approx(
        float(mp.laguerre(60, 0, 1.5)), rel=1e-11
    )


def test_degrees_that_are_tensors_negative_or_zero() -> None:
    x = wg.tensor([0.5, math.nan], dtype=wg.float64)
    n = wg.tensor([[-1], [0], [3]])
    got = wg.special.hermite_polynomial_he(x, n)
    np.testing.assert_array_equal(got.numpy(), [[0, 0], [1, np.nan], [0.125 - 1.5, np.nan]])
    assert wg.special.legendre_polynomial_p(wg.tensor([2, 3]), 1.7).tolist() == [2.0, 3.0]
    assert wg.grad(lambda x: wg.special.laguerre_polynomial_l(x, 0))(x[0]).item() == 0.0
    assert wg.special.hermite_polynomial_h(x[:0], wg.tensor([], dtype=wg.int64)).shape == (0,)
    with pytest.raises(
        TypeError, match=r"legendre_polynomial_p: real numbers expected, got wengert\.complex64"
    ):
        wg.special.legendre_polynomial_p(wg.tensor([1j]), 1)
