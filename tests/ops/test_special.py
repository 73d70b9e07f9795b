"""Special functions and bits: singular points as docs/formulas.md says, exact cases, operators on
integers."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import wengert as wg
from wengert.testing import assert_close

INF, NAN = math.inf, math.nan

# Function, point, value, derivative there.
POINTS: list[tuple[str, float, float, float]] = [
    ("abs", 0.0, 0.0, 0.0),
    ("sign", 0.0, 0.0, 0.0),
    ("relu", 0.0, 0.0, 0.0),
    ("sqrt", 0.0, 0.0, INF),
    ("rsqrt", 0.0, INF, -INF),
    ("reciprocal", 0.0, INF, -INF),
    ("log", 0.0, -INF, INF),
    ("log2", 0.0, -INF, INF),
    ("log10", 0.0, -INF, INF),
    ("log1p", -1.0, -INF, INF),
    ("log", -1.0, NAN, -1.0),
    ("asin", 1.0, math.pi / 2, INF),
    ("asin", -1.0, -math.pi / 2, INF),
    ("asin", 2.0, NAN, NAN),
    ("acos", 1.0, 0.0, -INF),
    ("acos", -1.0, math.pi, -INF),
    ("acos", -2.0, NAN, NAN),
    ("atan", INF, math.pi / 2, 0.0),
    ("asinh", -INF, -INF, 0.0),
    ("acosh", 1.0, 0.0, INF),
    ("acosh", 0.5, NAN, NAN),
    ("atanh", 1.0, INF, INF),
    ("atanh", -1.0, -INF, INF),
    ("erfc", INF, 0.0, 0.0),
    ("erfinv", 1.0, INF, INF),
    ("erfinv", -1.0, -INF, INF),
    ("erfinv", 1.5, NAN, NAN),
    ("ndtr", -INF, 0.0, 0.0),
    ("lgamma", 0.0, INF, -INF),
    ("lgamma", -0.0, INF, INF),
    ("lgamma", -3.0, INF, NAN),
    ("digamma", 0.0, -INF, INF),
    ("digamma", -2.0, NAN, INF),
    ("i0", 0.0, 1.0, 0.0),
    ("i0", -INF, INF, -INF),
    ("i0e", 0.0, 1.0, 0.0),
    ("i0e", INF, 0.0, 0.0),
    ("i1", 0.0, 0.0, 0.5),
    ("i1", -INF, -INF, INF),
    ("i1e", 0.0, 0.0, 0.5),
    ("i1e", INF, 0.0, 0.0),
    ("entr", 0.0, 0.0, INF),
    ("entr", -1.0, -INF, 0.0),
    ("entr", 1.0, 0.0, -1.0),
    ("entr", NAN, NAN, NAN),
    ("trunc", 1.0, 1.0, 0.0),
    ("frac", 1.0, 0.0, 1.0),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "at", "value", "slope"), POINTS, ids=[f"{p[0]} at {p[1]}" for p in POINTS])
def test_singular_points(name: str, at: float, value: float, slope: float, dtype: str) -> None:
    x = wg.tensor([at], dtype=getattr(wg, dtype), requires_grad=True)
    y = getattr(x, name)()
    assert_close(y.detach(), wg.tensor([value], dtype=x.dtype), equal_nan=True)
    (g,) = wg.autograd.grad(y, [x], wg.ones(1, dtype=x.dtype), retain_graph=True, allow_unused=True)
    if g is None:
        assert slope == 0.0
        return
    assert_close(g, wg.tensor([slope], dtype=x.dtype), equal_nan=True)
    # A branch that where() did not take spoils nothing, unless the derivative is not a number to begin with.
    if not math.isnan(slope):
        (none,) = wg.autograd.grad(y, [x], wg.zeros(1, dtype=x.dtype))
        assert none.item() == 0.0


PAIRS: list[tuple[str, tuple[float, float], tuple[float, float]]] = [
    ("atan2", (0.0, 0.0), (0.0, 0.0)),
    ("hypot", (0.0, 0.0), (0.0, 0.0)),
    ("maximum", (1.0, 1.0), (0.5, 0.5)),
    ("minimum", (1.0, 1.0), (0.5, 0.5)),
    ("fmod", (6.0, 3.0), (1.0, -2.0)),
    ("fmod", (-7.0, 3.0), (1.0, 2.0)),
    ("remainder", (-7.0, 3.0), (1.0, 3.0)),
]


@pytest.mark.parametrize(("name", "at", "slopes"), PAIRS)
def test_singular_pairs(name: str, at: tuple[float, float], slopes: tuple[float, float]) -> None:
    x, y = (wg.tensor([v], dtype=wg.float64, requires_grad=True) for v in at)
    getattr(x, name)(y).sum().backward()
    assert (x.grad.item(), y.grad.item()) == slopes


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_have_exact_logarithms(dtype: str) -> None:
    kind = getattr(wg, dtype)
    twos = wg.arange(-126, 127, dtype=kind)
    assert wg.exp2(twos).log2().tolist() == twos.tolist()
    tens = wg.tensor([10.0**k for k in range(11)], dtype=kind)
    assert tens.log10().tolist() == list(range(11))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainders_of_any_quotient_are_exact(dtype: str) -> None:
    rng = np.random.default_rng(3)
    top = 37 if dtype == "float32" else 300
    a = (10.0 ** rng.uniform(-top, top, 4000) * rng.choice([-1, 1], 4000)).astype(dtype)
    b = (10.0 ** rng.uniform(-top, top, 4000) * rng.choice([-1, 1], 4000)).astype(dtype)
    near = rng.integers(1, 1000, 4000).astype(dtype)
    for x, y in ((a, b), (near * near[::-1] / 8, near / 8), (a, a * 3)):
        assert np.array_equal(wg.fmod(x, y).numpy(), np.fmod(x, y))
        assert np.array_equal(wg.remainder(x, y).numpy(), np.remainder(x, y))
        with np.errstate(all="ignore"):
            assert np.array_equal(wg.floor_divide(x, y).numpy(), np.floor_divide(x, y))


def test_quotients_do_not_reach_the_next_integer() -> None:
    assert (wg.tensor([1.0], dtype=wg.float64) // 0.1).item() == 1.0 // 0.1 == 9.0
    assert (wg.tensor([1.0]) // math.inf).item() == 0.0
    assert (wg.tensor([-1.0]) // math.inf).item() == -1.0
    assert (wg.tensor([-1.0]) % math.inf).item() == math.inf


def test_small_values_of_gelu_and_silu_have_all_their_bits() -> None:
    from scipy import special

    x = np.linspace(-37.0, -3.0, 500)
    exact = x * special.ndtr(x)
    assert np.allclose(wg.nn.functional.gelu(wg.tensor(x)).numpy(), exact, rtol=5e-13, atol=0.0)
    single = x[x > -12.9].astype("float32")
    exact = single.astype("float64") * special.ndtr(single.astype("float64"))
    assert np.allclose(wg.nn.functional.gelu(wg.tensor(single)).numpy(), exact, rtol=3e-7, atol=0.0)
    x = np.linspace(-90.0, -60.0, 500).astype("float32")
    wide = x.astype("float64")
    exact = wide / (1 + np.exp(-wide))
    assert np.allclose(wg.nn.functional.silu(wg.tensor(x)).numpy(), exact, rtol=3e-7, atol=0.0)


def test_polygamma_orders_and_reflection() -> None:
    from scipy import special

    x = np.array([0.2, 0.7, 1.0, 1.5, 3.0, 9.5, 40.0])
    for n in range(8):
        assert_close(wg.polygamma(n, wg.tensor(x)), special.polygamma(n, x), rtol=1e-12, atol=0.0)
    # psi_n(1 - x) (-1)^n - psi_n(x) is pi times a derivative of the cotangent.
    x = wg.tensor([-0.3, -1.7, -5.25], dtype=wg.float64)
    cot = 1.0 / wg.tan(math.pi * x)
    slope = {1: -(math.pi**2) * (1 + cot**2), 2: 2 * math.pi**3 * cot * (1 + cot**2)}
    for n, pole in slope.items():
        assert_close(wg.polygamma(n, 1 - x) * (-1) ** n - wg.polygamma(n, x), pole, rtol=1e-12, atol=0.0)
    # Every derivative is the next order.
    x = wg.tensor([0.4, 2.2], dtype=wg.float64, requires_grad=True)
    y = x.lgamma()
    for n in range(6):
        (y,) = wg.autograd.grad(y.sum(), [x], create_graph=True)
        assert_close(y, wg.polygamma(n, x), rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lgamma_next_to_its_pole(dtype: str) -> None:
    """`-log|x|` on both sides: the rest is less than a rounding."""
    sizes = [
        1e-17,
        1.1e-17,
        1e-20,
        1e-30,
        2.3e-38,
        *([1e-40] if dtype == "float32" else [1e-40, 1e-300, 5e-324]),
    ]
    for size in sizes:
        x = wg.tensor([-size, size], dtype=getattr(wg, dtype))
        expected = -math.log(abs(x[1].item()))
        assert_close(x.lgamma(), wg.full_like(x, expected), rtol=1e-6 if dtype == "float32" else 1e-15)
    # Further out, the logarithm of pi / (x sin(pi x)) less that of the positive side.
    for at in (-1e-16, -1e-9, -1e-3, -0.25, -1.5):
        x = wg.tensor(at, dtype=getattr(wg, dtype))
        assert_close(x.lgamma(), wg.tensor(math.lgamma(x.item()), dtype=x.dtype), rtol=1e-6)


def test_other_names() -> None:
    x = wg.tensor([0.3, 0.6])
    for alias, name in (("arcsin", "asin"), ("arctan", "atan"), ("arctanh", "atanh"), ("fix", "trunc")):
        assert getattr(wg, alias)(x).tolist() == getattr(x, name)().tolist()
    assert wg.arctan2(x, x).tolist() == x.atan2(x).tolist()
    assert wg.arccosh(x + 1).tolist() == (x + 1).acosh().tolist()
    assert wg.signbit(wg.tensor([0.0, -0.0, -1.0, NAN])).tolist() == [False, True, True, False]
    assert wg.positive(x) is x


# ---- bits ----------------------------------------------------------------------------------------

SHIFTS = (0, 1, 5)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_bits_follow_numpy(dtype: str) -> None:
    low = 0 if dtype == "uint8" else -200
    a = np.random.default_rng(0).integers(low, 200, (3, 4)).astype(dtype)
    b = np.random.default_rng(1).integers(low, 200, 4).astype(dtype)
    x, y = wg.tensor(a), wg.tensor(b)
    results: list[tuple[Any, Any]] = [(x & y, a & b), (x | y, a | b), (x ^ y, a ^ b), (~x, ~a)]
    results += [(x << k, a << k) for k in SHIFTS] + [(x >> k, a >> k) for k in SHIFTS]
    results += [(3 & x, 3 & a), (1 | x, 1 | a), (5 ^ x, 5 ^ a), (wg.gcd(x, y), np.gcd(a, b))]
    results += [(2 << (y & 3), 2 << (b & 3)), (64 >> (y & 3), 64 >> (b & 3))]
    for got, expected in results:
        assert got.dtype == x.dtype
        assert np.array_equal(got.numpy(), expected)
    assert np.array_equal(wg.lcm(x.long(), y.long()).numpy(), np.lcm(a.astype("int64"), b.astype("int64")))


def test_shifts_by_too_much_leave_the_sign() -> None:
    x = wg.tensor([-5, 5], dtype=wg.int32)
    assert (x << 32).tolist() == [0, 0]
    assert (x >> 32).tolist() == [-1, 0]
    assert (x >> -1).tolist() == [-1, 0]
    assert (x << -1).tolist() == [0, 0]


def test_bits_of_bools_are_logic() -> None:
    x, y = wg.tensor([True, True, False]), wg.tensor([True, False, False])
    assert wg.bitwise_and(x, y).tolist() == [True, False, False]
    assert wg.bitwise_or(x, y).tolist() == [True, True, False]
    assert wg.bitwise_xor(x, y).tolist() == [False, True, False]
    assert wg.bitwise_not(x).tolist() == wg.bitwise_invert(x).tolist() == [False, False, True]
    assert (x & 3).tolist() == [1, 1, 0]
    assert (x & 3).dtype == wg.int64


def test_bits_in_place() -> None:
    x = wg.tensor([6, 3])
    same = x
    x &= 2
    x |= 8
    x ^= 1
    x <<= 2
    x >>= 1
    assert same is x
    assert x.tolist() == [((6 & 2) | 8 ^ 1) * 2, ((3 & 2) | 8 ^ 1) * 2]
    assert x.bitwise_not_().tolist() == [-23, -23]


def test_next_numbers_in_every_dtype() -> None:
    values = np.array([0.0, -0.0, 1.0, -1.5, 3e38, math.inf, -math.inf, math.nan])
    for name in ("float32", "float64"):
        a, b = (v.astype(name) for v in np.meshgrid(values, values))
        got = wg.nextafter(wg.tensor(a), wg.tensor(b)).numpy()
        assert np.array_equal(got, np.nextafter(a, b), equal_nan=True)
    for name, kind in (("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)):
        with np.errstate(over="ignore"):
            a, b = (v.astype(kind) for v in np.meshgrid(values, values))
        x, y = (wg.tensor(v.astype("float32")).to(getattr(wg, name)) for v in (a, b))
        with np.errstate(all="ignore"):
            expected = np.nextafter(a, b).astype("float32")
        assert np.array_equal(wg.nextafter(x, y).float().numpy(), expected, equal_nan=True)


def test_the_special_namespace() -> None:
    x = wg.tensor([0.25, 0.75])
    for name in wg.special.__all__:
        assert callable(getattr(wg.special, name)), name
    assert wg.special.gammaln(x).tolist() == x.lgamma().tolist()
    assert wg.special.psi(x).tolist() == x.digamma().tolist()
    assert wg.special.expit(x).tolist() == x.sigmoid().tolist()
