"""lib/math.wgsl: every function of the library against float64, in units in the last place."""

import numpy as np
import pytest
from scipy import special
from shaders.host import SHADERS, axes, rng, run

LIBRARY = (SHADERS / "lib" / "math.wgsl").read_text(encoding="utf-8")


def silu(x):
    """`x` times the logistic function, 0 at minus infinity."""
    return np.where(x == -np.inf, 0.0, x * special.expit(x))


def gelu(x):
    """`x` times the normal distribution function, 0 at minus infinity."""
    return np.where(x == -np.inf, 0.0, x * special.ndtr(x))


def i0(x):
    """SciPy's function, which has no value at infinity."""
    return np.where(np.isinf(x), np.inf, special.i0(x))


def i1(x):
    """SciPy's function, which has no value at infinity."""
    return np.where(np.isinf(x), x, special.i1(x))


def lgamma(x):
    """The logarithm of the gamma function's size, infinite at both ends as in C."""
    return np.where(np.isinf(x), np.inf, special.gammaln(x))


# Per function: the reference, the range of arguments whose results are normal numbers, the error allowed.
UNARY = {
    "exp": (np.exp, (-87.0, 88.7), 2),
    "expm1": (np.expm1, (-30.0, 88.7), 3),
    "log": (np.log, (1.2e-38, 3.4e38), 3),
    "log1p": (np.log1p, (-0.9999, 3.4e38), 3),
    "sin": (np.sin, (-1e5, 1e5), 3),
    "cos": (np.cos, (-1e5, 1e5), 3),
    "tanh": (np.tanh, (-12.0, 12.0), 3),
    "erf": (special.erf, (-5.0, 5.0), 3),
    "exp2": (np.exp2, (-125.9, 127.9), 3),
    "log2": (np.log2, (1.2e-38, 3.4e38), 3),
    "log10": (np.log10, (1.2e-38, 3.4e38), 3),
    "tan": (np.tan, (-1e5, 1e5), 4),
    "asin": (np.arcsin, (-1.0, 1.0), 3),
    "acos": (np.arccos, (-1.0, 1.0), 3),
    "atan": (np.arctan, (-1e5, 1e5), 3),
    "sinh": (np.sinh, (-88.0, 88.0), 3),
    "cosh": (np.cosh, (-88.0, 88.0), 3),
    "asinh": (np.arcsinh, (-3.4e38, 3.4e38), 3),
    "acosh": (np.arccosh, (1.0, 3.4e38), 3),
    "atanh": (np.arctanh, (-0.99999, 0.99999), 3),
    "sigmoid": (special.expit, (-87.0, 88.0), 3),
    "silu": (silu, (-80.0, 88.0), 4),
    "erfc": (special.erfc, (-5.0, 9.0), 4),
    "erfinv": (special.erfinv, (-0.99999, 0.99999), 3),
    "ndtr": (special.ndtr, (-12.5, 8.0), 3),
    "gelu": (gelu, (-12.5, 30.0), 4),
    "lgamma": (lgamma, (1.2e-38, 1e36), 3),
    "digamma": (special.digamma, (1.2e-38, 1e30), 4),
    "i0": (i0, (-88.0, 88.0), 4),
    "i0e": (special.i0e, (-1e30, 1e30), 4),
    "i1": (i1, (-88.0, 88.0), 4),
    "i1e": (special.i1e, (-1e30, 1e30), 4),
    "erfcx": (special.erfcx, (-9.0, 1e30), 4),
    "ndtri": (special.ndtri, (1.2e-38, 0.99999), 6),
    "modified_bessel_k0": (special.k0, (1e-30, 85.0), 5),
    "modified_bessel_k1": (special.k1, (1e-30, 85.0), 5),
    "scaled_modified_bessel_k0": (special.k0e, (1e-30, 1e30), 5),
    "scaled_modified_bessel_k1": (special.k1e, (1e-30, 1e30), 5),
}


def elementwise(name, *args):
    """Run `w_{name}` on the GPU."""
    names, count = "xy"[: len(args)], len(args[0])
    arguments = ", ".join(names)
    declared = ", ".join(n + ": f32" for n in names)
    replace = {"fn op": f"{LIBRARY}\nfn op({declared}) -> f32 {{ return w_{name}({arguments}); }}"}
    replace["const CONTIGUOUS"] = "const CONTIGUOUS: bool = true;"
    params = [axes([count]), *[axes([1])] * len(args), 1, count, *[0] * len(args), 0.0, 0.0, 0.0, 0.0]
    outs = [((count,), np.float32)]
    return run(f"map{len(args)}.wgsl", list(args), outs, params, -(-count // 1024), replace, fours=True)[0]


def ulps(got, want):
    """The largest error in units in the last place of a float32 of that size."""
    size = np.maximum(np.abs(want), np.finfo(np.float32).tiny)
    step = np.spacing(size.astype(np.float32)).astype(np.float64)
    return float(np.max(np.abs(got.astype(np.float64) - want) / step))


def spread(low, high, count=20000):
    """Arguments between the bounds: evenly, and by powers of ten towards 0 and to the bounds."""
    even = np.linspace(low, high, count)
    steps = np.geomspace(1.2e-38, 1.0, count)
    x = np.concatenate([even, high * steps, low * steps]).astype(np.float32)
    return x[(x >= np.float32(low)) & (x <= np.float32(high)) & ((np.abs(x) > 1.2e-38) | (x == 0))]


@pytest.mark.parametrize("name", UNARY)
def test_accuracy(name):
    reference, (low, high), allowed = UNARY[name]
    x = spread(low, high)
    assert ulps(elementwise(name, x), reference(x.astype(np.float64))) <= allowed


@pytest.mark.parametrize("name", ["j0", "j1", "y0", "y1"])
def test_waves(name):
    """Next to roots errors are small beside the height of the waves."""
    x = np.concatenate([np.geomspace(1e-30, 1e4, 20000), np.linspace(0.5, 60, 20000)]).astype(np.float32)
    want = getattr(special, name)(x.astype(np.float64))
    height = np.maximum(np.abs(want), np.sqrt(2 / np.pi / np.maximum(x, 1.0)))
    error = np.abs(elementwise(f"bessel_{name}", x) - want) / height
    assert error.max() < 8 * np.finfo(np.float32).eps


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_large_angles(name):
    x = (10.0 ** rng(1).uniform(3, 38.4, 20000) * rng(2).choice([-1, 1], 20000)).astype(np.float32)
    x[:4] = [3.4028235e38, 12000.0, -11999.999, 16367173.0 * 2.0**72]
    want = np.array([float(getattr(np, name)(np.float64(v))) for v in x])
    assert ulps(elementwise(name, x), want) <= 3


def test_pow():
    r = rng(3)
    x = (2.0 ** r.uniform(-126, 127, 30000)).astype(np.float32)
    x[::3] = r.uniform(0.5, 2.0, 10000)
    x[1::3] = 1 + r.uniform(-0.01, 0.01, 10000)
    with np.errstate(divide="ignore"):
        y = (r.uniform(-125, 127, 30000) / np.log2(x.astype(np.float64))).astype(np.float32)
    ok = np.isfinite(y)
    x, y = x[ok], y[ok]
    assert ulps(elementwise("pow", x, y), x.astype(np.float64) ** y.astype(np.float64)) <= 3


def test_pow_of_signs_and_zeros():
    values = np.array([0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -3.0, 3.0, 1e10, -16777215.0], np.float32)
    x, y = (v.reshape(-1) for v in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
    ok = (want == 0) | (np.abs(want) > 1.2e-38) | np.isnan(want)
    np.testing.assert_allclose(elementwise("pow", x, y)[ok], want[ok], rtol=3e-7)


@pytest.mark.parametrize("name", UNARY)
def test_edges(name):
    x = np.array([0.0, np.inf, -np.inf, np.nan, -1.0, -2.0, 1000.0, -1000.0], np.float32)
    with np.errstate(all="ignore"):
        want = UNARY[name][0](x.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(elementwise(name, x), want, rtol=3e-7)
