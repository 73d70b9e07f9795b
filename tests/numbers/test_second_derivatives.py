"""Second derivatives far out, where an inner term overflows, underflows or cancels
and the answer does not: against mpmath and closed forms.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
import wengert.nn.functional as F
from mpmath import mp, mpf
from wengert import Tensor

DTYPES = ("float64", "float32")
MOST = np.finfo(np.float64).max


def sigmoid_slope(x: Any) -> Any:
    """The derivative of the logistic function."""
    return mp.exp(-abs(x)) / (1 + mp.exp(-abs(x))) ** 2


def silu(x: Any) -> Any:
    """The second derivative of `x sigmoid(x)`."""
    return sigmoid_slope(x) * (2 - x * mp.tanh(x / 2))


def mish(x: Any) -> Any:
    """The second derivative of `x tanh(log(1 + exp(x)))`, by `tanh(log(1 + e)) = 1 - 2 / ((1 + e)^2 + 1)`."""
    e = mp.exp(x)
    rest = (1 + e) ** 2 + 1
    slope = 4 * e * (1 + e) / rest**2
    curve = (4 * e * (1 + 2 * e) * rest - 16 * e * e * (1 + e) ** 2) / rest**3
    return 2 * slope + x * curve


def gelu_tanh(x: Any) -> Any:
    """The second derivative of `x sigmoid(u)` with `u = c (x + 0.044715 x^3)`."""
    c = mpf(1.5957691216057308)
    u, first, second = c * (x + mpf(0.044715) * x**3), c * (1 + mpf(0.134145) * x * x), c * mpf(0.26829) * x
    slope = sigmoid_slope(u)
    return slope * (2 * first + x * second - x * first**2 * mp.tanh(u / 2))


#: Name: the function, its second derivative, places.
CURVES: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Any], Any], tuple[float, ...]]] = {
    "atan": (wg.atan, lambda x: -2 * x / (1 + x * x) ** 2, (1.0, -1.0, 3.0, 1e5, -1e10, 1e90, -1e100, MOST)),
    "x ** 2.5": (lambda x: x**2.5, lambda x: mpf("3.75") * mp.sqrt(x), (1e-30, 2.0, 1e20, 1e37, 7e240, MOST)),
    "2.5 ** x": (
        lambda x: 2.5**x,
        lambda x: mp.log(mpf("2.5")) ** 2 * mpf("2.5") ** x,
        (-90.0, 2.0, 90.0, 700.0, 1000.0),
    ),
    "mish": (F.mish, mish, (-700.0, -300.0, -80.0, -20.0, -5.0, 0.0, 0.5, 5.0, 12.0, 20.0, 40.0, 300.0)),
    "mish of large numbers": (F.mish, lambda x: mpf(0), (1e3, 1e30, 1e300, MOST)),
    "silu": (
        F.silu,
        silu,
        (-700.0, -300.0, -80.0, -20.0, -5.0, -0.0, 0.0, 0.5, 5.0, 20.0, 42.5, 80.0, 300.0, 700.0),
    ),
    "gelu (tanh)": (
        lambda x: F.gelu(x, approximate="tanh"),
        gelu_tanh,
        (-8.0, -5.0, -3.0, 0.0, 0.25, 3.0, 5.2, 6.5, 7.9, 8.0),
    ),
    "entr": (wg.special.entr, lambda x: -1 / x, (5e-324, 1e-310, 1e-45, 1e-30, 0.5, 1e20)),
    "hypot(x, 0.75)": (
        lambda x: wg.hypot(x, wg.full_like(x, 0.75)),
        lambda x: mpf("0.5625") / mp.sqrt(x * x + mpf("0.5625")) ** 3,
        (0.0, 0.3, 0.75, 100.0, -1e6, 1e11, 1e32, 1e90),
    ),
    "softplus": (
        lambda x: F.softplus(x, threshold=1e30),
        sigmoid_slope,
        (-80.0, -3.0, 3.0, 20.0, 42.5, 80.0),
    ),
    "logsigmoid": (F.logsigmoid, lambda x: -sigmoid_slope(x), (-80.0, -42.5, -20.0, 3.0, 60.0)),
    "logaddexp(x, 0.25)": (
        lambda x: wg.logaddexp(x, wg.full_like(x, 0.25)),
        lambda x: sigmoid_slope(x - mpf("0.25")),
        (-80.0, 1.0, 42.5, 80.0),
    ),
    "tanhshrink": (
        F.tanhshrink,
        lambda x: 2 * mp.tanh(x) / mp.cosh(x) ** 2,
        (1e-6, 0.5, 1.79, 1.81, 9.0, 30.0, -40.0, 400.0),
    ),
}


#: In units of the last place, where it is not 16: the exponential of a number of about 50 has 50 times its
#: error.
STEEP = {"gelu (tanh)": 150}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CURVES)
def test_curvature(name: str, dtype: str) -> None:
    function, exact, places = CURVES[name]
    info = np.finfo(dtype)
    slope = wg.grad(lambda x: function(x).sum())
    for place in places:
        if abs(place) > float(info.max):
            continue
        x = wg.tensor([place], dtype=getattr(wg, dtype))
        leaf = x.clone().requires_grad_(True)
        (first,) = wg.autograd.grad(function(leaf).sum(), leaf, create_graph=True)
        found = [
            wg.autograd.grad(first.sum(), leaf)[0].item(),
            wg.jvp(slope, (x,), (wg.ones_like(x),))[1].item(),
        ]
        with mp.workdps(50):
            wanted = exact(mpf(x.item())) if x.item() or name != "entr" else -mp.inf
            for value in found:
                if abs(wanted) > mpf(float(info.max)):
                    assert value == math.copysign(math.inf, wanted), (place, value)
                else:
                    error = abs(mpf(value) - wanted) if math.isfinite(value) else mp.inf
                    assert error <= STEEP.get(name, 16) * mpf(float(info.eps)) * abs(wanted) + float(
                        info.tiny
                    ), (place, value)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tanhshrink_has_no_cancellation(dtype: str) -> None:
    x = wg.tensor(np.linspace(1e-3, 4.0, 4001), dtype=getattr(wg, dtype))
    for at, value in zip(x.tolist(), F.tanhshrink(x).tolist(), strict=True):
        with mp.workdps(40):
            exact = mpf(at) - mp.tanh(mpf(at))
            assert abs(mpf(value) - exact) <= 2.5 * float(np.finfo(dtype).eps) * exact, at


#: Numbers whose squares overflow or underflow.
SCALES = [
    (dtype, s) for dtype, most in zip(DTYPES, (197, 25), strict=True) for s in (10.0**most, 10.0**-most)
]


@pytest.mark.parametrize(("dtype", "scale"), SCALES)
def test_quotients(dtype: str, scale: float) -> None:
    # x / (x + y + z) of degree 0: second derivatives go with the square of the scale.
    at = np.array([2.75, 5.25, 6.5])
    x = wg.tensor(at * scale, dtype=getattr(wg, dtype))
    _, curve = wg.jvp(
        wg.grad(lambda x: x[0] / x.sum()), (x,), (x * wg.tensor([1.0, 0.0, 0.0], dtype=x.dtype),)
    )
    total = at.sum()
    exact = at[0] * np.array([-2 * (total - at[0]), 2 * at[0] - total, 2 * at[0] - total]) / total**3
    np.testing.assert_allclose((curve * scale).numpy(), exact, rtol=64 * np.finfo(dtype).eps)


@pytest.mark.parametrize(("dtype", "scale"), SCALES)
def test_logarithm_of_a_determinant(dtype: str, scale: float) -> None:
    at = np.array([[-2.75, 5.25], [6.25, 6.5]])
    a, t = (wg.tensor(m * scale, dtype=getattr(wg, dtype)) for m in (at, np.diag([-2.75, 0.0])))
    _, curve = wg.jvp(wg.grad(lambda a: wg.linalg.slogdet(a)[1]), (a,), (t,))
    inverse = np.linalg.inv(at)
    exact = -(inverse @ np.diag([-2.75, 0.0]) @ inverse).T
    np.testing.assert_allclose((curve * scale).numpy(), exact, rtol=64 * np.finfo(dtype).eps)


@pytest.mark.parametrize("scale", [1e197, 1e-197, 1e120, 1.0])
def test_determinants_that_overflow_have_cofactors(scale: float) -> None:
    at = np.array([[-2.75, 5.25], [6.25, 6.5]])
    x = wg.tensor(at * scale, dtype=wg.float64)
    exact = np.array([[6.5, -6.25], [-5.25, -2.75]]) * scale
    np.testing.assert_allclose(wg.grad(wg.linalg.det)(x).numpy(), exact, rtol=1e-13)


def test_a_tangent_of_zero_meets_no_infinity() -> None:
    # x ** y moves along x alone: what it would do along y, whose slope is infinite, does not count.
    x, y = (wg.tensor(v, dtype=wg.float64) for v in (7e240, 2.5))
    slope = wg.grad(lambda x, y: x**y, argnums=(0, 1))
    _, (along_x, _) = wg.jvp(slope, (x, y), (wg.ones(()).double(), wg.zeros(()).double()))
    np.testing.assert_allclose(along_x.item(), 3.75 * math.sqrt(7e240), rtol=1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
def test_logaddexp2_of_large_numbers(dtype: str) -> None:
    # The difference of both counts, which is exact.
    size = {"float64": 1e12, "float32": 2.0**16}[dtype]
    x, y = (wg.tensor(v, dtype=getattr(wg, dtype)) for v in (size, size + 0.5))
    share = 1 / (1 + math.sqrt(2.0))
    np.testing.assert_allclose(wg.grad(wg.logaddexp2)(x, y).item(), share, rtol=8 * np.finfo(dtype).eps)
    infinite = wg.tensor([math.inf, -math.inf, 3.0, -math.inf], dtype=x.dtype)
    assert wg.logaddexp2(infinite, infinite.flip(0)).tolist() == [math.inf, 3.0, 3.0, math.inf]
