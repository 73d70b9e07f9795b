"""The functions that `tools/accuracy.py` measures: how they are called,
and what they and two derivatives are exactly.

The exact formulas are those of textbooks, in mpmath, and independent of the rules of the library.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import wengert as wg
import wengert.nn.functional as F
from mpmath import mp, mpf

INF = math.inf


@dataclass
class Function:
    """What is measured: how to call it, the exact function with its derivatives, and where."""

    call: Callable[[Any], Any]
    exact: tuple[Callable[[Any], Any], ...]
    low: float = -INF
    high: float = INF
    #: Places besides those that every function gets.
    hard: tuple[float, ...] = ()
    #: Where derivatives of an order and above are a matter of convention.
    kinks: tuple[tuple[float, int], ...] = ()
    #: Whether the exact formulas cancel, far out or near 0, and need digits for it.
    wide: bool = False


def sigmoid(x: Any) -> Any:
    """The logistic function."""
    return 1 / (1 + mp.exp(-x))


def bump(x: Any) -> Any:
    """Its derivative."""
    return 1 / (4 * mp.cosh(x / 2) ** 2)


def pdf(x: Any) -> Any:
    """The density of the normal distribution."""
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def sech2(x: Any) -> Any:
    """The derivative of tanh."""
    return 1 / mp.cosh(x) ** 2


def cdf(x: Any) -> Any:
    """The normal distribution function; far out by its asymptotic series, which mpmath's does not reach."""
    if abs(x) < 1e6:
        return mp.ncdf(x)
    tail = pdf(x) / abs(x) * (1 - x**-2 + 3 * x**-4 - 15 * x**-6 + 105 * x**-8)
    return tail if x < 0 else 1 - tail


def erfc(x: Any) -> Any:
    """The complement of the error function."""
    return 2 * cdf(-mp.sqrt(2) * x)


def mish(x: Any, order: int) -> Any:
    """`x tanh(log(1 + exp(x)))` and its derivatives."""
    s, p = mp.log1p(mp.exp(x)), sigmoid(x)
    if order == 0:
        return x * mp.tanh(s)
    if order == 1:
        return mp.tanh(s) + x * sech2(s) * p
    return sech2(s) * (2 * p + x * (bump(x) - 2 * mp.tanh(s) * p * p))


def gelu_tanh(x: Any, order: int) -> Any:
    """GELU by the tanh formula, with the coefficients of the paper."""
    c, a = mp.sqrt(2 / mp.pi), mpf("0.044715")
    u, du, ddu = c * (x + a * x**3), c * (1 + 3 * a * x * x), 6 * c * a * x
    if order == 0:
        return x / (1 + mp.exp(-2 * u))
    if order == 1:
        return 1 / (1 + mp.exp(-2 * u)) + x * sech2(u) * du / 2
    return sech2(u) * (du + x * (ddu / 2 - mp.tanh(u) * du * du))


def sinc(x: Any, order: int) -> Any:
    """`sin(pi x) / (pi x)`."""
    if x == 0:
        return (mpf(1), mpf(0), -(mp.pi**2) / 3)[order]
    p = mp.pi * x
    sin, cos = mp.sinpi(x), mp.cospi(x)
    if order == 0:
        return sin / p
    if order == 1:
        return mp.pi * (cos - sin / p) / p
    return mp.pi**2 * (-sin - 2 * (cos - sin / p) / p) / p


def log_ndtr(x: Any, order: int) -> Any:
    """The logarithm of the normal distribution function."""
    if order == 0:
        return mp.log1p(-cdf(-x)) if x > 0 else mp.log(cdf(x))
    hazard = pdf(x) / cdf(x)
    return hazard if order == 1 else -hazard * (x + hazard)


def bessel(order: int, derivative: int, scaled: bool) -> Callable[[Any], Any]:
    """A modified Bessel function of the first kind, or it times `exp(-|x|)`."""

    def plain(x: Any, k: int) -> Any:
        if k == 0:
            return mp.besseli(order, x)
        i = [mp.besseli(n, x) for n in range(4)]
        if order == 0:
            return i[1] if k == 1 else (i[0] + i[2]) / 2
        return (i[0] + i[2]) / 2 if k == 1 else (i[3] + 3 * i[1]) / 4

    def function(x: Any) -> Any:
        if not scaled:
            return plain(x, derivative)
        side = mp.sign(x)
        terms = (
            lambda: plain(x, 0),
            lambda: plain(x, 1) - side * plain(x, 0),
            lambda: plain(x, 2) - 2 * side * plain(x, 1) + plain(x, 0),
        )
        return mp.exp(-abs(x)) * terms[derivative]()

    return function


def family(function: Callable[[Any, int], Any]) -> tuple[Callable[[Any], Any], ...]:
    """The orders 0, 1, 2 of a function that takes the order."""
    return tuple((lambda x, k=k: function(x, k)) for k in range(3))


def branches(
    above: Any, below: Any, scale: float = 1.0, width: float = 1.0
) -> tuple[Callable[[Any], Any], ...]:
    """An exponential linear unit and its derivatives."""
    a, s, w = mpf(below), mpf(scale), mpf(width)
    return (
        lambda x: s * (x if x > 0 else a * mp.expm1(x / w)),
        lambda x: s * (mpf(above) if x > 0 else a / w * mp.exp(x / w)),
        lambda x: mpf(0) if x > 0 else s * a / w**2 * mp.exp(x / w),
    )


LN2 = mp.log(2)
WHOLE = tuple(float(k) for k in range(-12, 0))
TURNS = tuple(k * math.pi / 2 for k in range(-8, 9))
ALPHA, SCALE = 1.6732632423543772, 1.0507009873554805

FUNCTIONS: dict[str, Function] = {
    "sqrt": Function(
        wg.sqrt, (mp.sqrt, lambda x: 1 / (2 * mp.sqrt(x)), lambda x: -1 / (4 * mp.sqrt(x) ** 3)), 0.0
    ),
    "rsqrt": Function(
        wg.rsqrt,
        (lambda x: 1 / mp.sqrt(x), lambda x: -1 / (2 * mp.sqrt(x) ** 3), lambda x: 3 / (4 * mp.sqrt(x) ** 5)),
        0.0,
    ),
    "reciprocal": Function(wg.reciprocal, (lambda x: 1 / x, lambda x: -1 / x**2, lambda x: 2 / x**3)),
    "exp": Function(wg.exp, (mp.exp, mp.exp, mp.exp)),
    "exp2": Function(
        wg.exp2, (lambda x: mpf(2) ** x, lambda x: LN2 * mpf(2) ** x, lambda x: LN2**2 * mpf(2) ** x)
    ),
    "expm1": Function(wg.expm1, (mp.expm1, mp.exp, mp.exp)),
    "log": Function(wg.log, (mp.log, lambda x: 1 / x, lambda x: -1 / x**2), 0.0),
    "log2": Function(
        wg.log2, (lambda x: mp.log(x) / mp.log(2), lambda x: 1 / (x * LN2), lambda x: -1 / (x**2 * LN2)), 0.0
    ),
    "log10": Function(
        wg.log10, (mp.log10, lambda x: 1 / (x * mp.log(10)), lambda x: -1 / (x**2 * mp.log(10))), 0.0
    ),
    "log1p": Function(wg.log1p, (mp.log1p, lambda x: 1 / (1 + x), lambda x: -1 / (1 + x) ** 2), -1.0),
    "sin": Function(wg.sin, (mp.sin, mp.cos, lambda x: -mp.sin(x)), hard=TURNS),
    "cos": Function(wg.cos, (mp.cos, lambda x: -mp.sin(x), lambda x: -mp.cos(x)), hard=TURNS),
    "tan": Function(
        wg.tan, (mp.tan, lambda x: mp.sec(x) ** 2, lambda x: 2 * mp.tan(x) * mp.sec(x) ** 2), hard=TURNS
    ),
    "asin": Function(
        wg.asin, (mp.asin, lambda x: 1 / mp.sqrt(1 - x * x), lambda x: x / mp.sqrt(1 - x * x) ** 3), -1.0, 1.0
    ),
    "acos": Function(
        wg.acos,
        (mp.acos, lambda x: -1 / mp.sqrt(1 - x * x), lambda x: -x / mp.sqrt(1 - x * x) ** 3),
        -1.0,
        1.0,
    ),
    "atan": Function(wg.atan, (mp.atan, lambda x: 1 / (1 + x * x), lambda x: -2 * x / (1 + x * x) ** 2)),
    "sinh": Function(wg.sinh, (mp.sinh, mp.cosh, mp.sinh)),
    "cosh": Function(wg.cosh, (mp.cosh, mp.sinh, mp.cosh)),
    "tanh": Function(wg.tanh, (mp.tanh, sech2, lambda x: -2 * mp.tanh(x) * sech2(x))),
    "asinh": Function(
        wg.asinh, (mp.asinh, lambda x: 1 / mp.sqrt(1 + x * x), lambda x: -x / mp.sqrt(1 + x * x) ** 3)
    ),
    "acosh": Function(
        wg.acosh, (mp.acosh, lambda x: 1 / mp.sqrt(x * x - 1), lambda x: -x / mp.sqrt(x * x - 1) ** 3), 1.0
    ),
    "atanh": Function(
        wg.atanh, (mp.atanh, lambda x: 1 / (1 - x * x), lambda x: 2 * x / (1 - x * x) ** 2), -1.0, 1.0
    ),
    "erf": Function(
        wg.erf,
        (
            lambda x: 1 - erfc(x) if abs(x) > 1e6 else mp.erf(x),
            lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x),
            lambda x: -4 / mp.sqrt(mp.pi) * x * mp.exp(-x * x),
        ),
    ),
    "erfc": Function(
        wg.erfc,
        (
            erfc,
            lambda x: -2 / mp.sqrt(mp.pi) * mp.exp(-x * x),
            lambda x: 4 / mp.sqrt(mp.pi) * x * mp.exp(-x * x),
        ),
        hard=(26.5, 27.2),
    ),
    "erfinv": Function(
        wg.erfinv,
        (
            mp.erfinv,
            lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(mp.erfinv(x) ** 2),
            lambda x: mp.pi / 2 * mp.erfinv(x) * mp.exp(2 * mp.erfinv(x) ** 2),
        ),
        -1.0,
        1.0,
    ),
    "ndtr": Function(wg.ndtr, (cdf, pdf, lambda x: -x * pdf(x)), hard=(-37.5, -38.2, -12.9)),
    "log_ndtr": Function(
        wg.log_ndtr, family(log_ndtr), hard=(-10.0, -9.999, -10.001, 8.3, 6.0, 37.0), wide=True
    ),
    "lgamma": Function(
        wg.lgamma, (lambda x: mp.loggamma(x).real, mp.digamma, lambda x: mp.psi(1, x)), -300.0, hard=WHOLE
    ),
    "digamma": Function(
        wg.digamma,
        (mp.digamma, lambda x: mp.psi(1, x), lambda x: mp.psi(2, x)),
        -300.0,
        hard=(*WHOLE, 1.4616321449683623),
    ),
    "polygamma(1, x)": Function(
        lambda x: wg.polygamma(1, x),
        (lambda x: mp.psi(1, x), lambda x: mp.psi(2, x), lambda x: mp.psi(3, x)),
        -300.0,
        hard=WHOLE,
    ),
    "sinc": Function(wg.sinc, family(sinc), hard=(*(k / 2 for k in range(-9, 10)), 1e-9, 1e-4), wide=True),
    "i0": Function(wg.i0, tuple(bessel(0, k, False) for k in range(3)), -1e3, 1e3),
    "i0e": Function(
        wg.i0e, tuple(bessel(0, k, True) for k in range(3)), -1e4, 1e4, kinks=((0.0, 1),), wide=True
    ),
    "i1": Function(wg.i1, tuple(bessel(1, k, False) for k in range(3)), -1e3, 1e3),
    "i1e": Function(
        wg.i1e, tuple(bessel(1, k, True) for k in range(3)), -1e4, 1e4, kinks=((0.0, 2),), wide=True
    ),
    "sigmoid": Function(wg.sigmoid, (sigmoid, bump, lambda x: -bump(x) * mp.tanh(x / 2))),
    "logsigmoid": Function(
        F.logsigmoid, (lambda x: -mp.log1p(mp.exp(-x)), lambda x: sigmoid(-x), lambda x: -bump(x))
    ),
    "softplus (threshold 1e30)": Function(
        lambda x: F.softplus(x, 1.0, 1e30), (lambda x: mp.log1p(mp.exp(x)), sigmoid, bump)
    ),
    "gelu": Function(
        F.gelu, (lambda x: x * cdf(x), lambda x: cdf(x) + x * pdf(x), lambda x: pdf(x) * (2 - x * x))
    ),
    "gelu (tanh)": Function(lambda x: F.gelu(x, "tanh"), family(gelu_tanh), wide=True),
    "silu": Function(
        F.silu,
        (
            lambda x: x * sigmoid(x),
            lambda x: sigmoid(x) + x * bump(x),
            lambda x: bump(x) * (2 - x * mp.tanh(x / 2)),
        ),
    ),
    "mish": Function(F.mish, family(mish)),
    "elu": Function(F.elu, branches(1, 1), kinks=((0.0, 2),)),
    "celu (alpha 0.5)": Function(lambda x: F.celu(x, 0.5), branches(1, 0.5, 1.0, 0.5), kinks=((0.0, 2),)),
    "selu": Function(F.selu, branches(1, ALPHA, SCALE), kinks=((0.0, 1),)),
    "tanhshrink": Function(
        F.tanhshrink,
        (lambda x: x - mp.tanh(x), lambda x: mp.tanh(x) ** 2, lambda x: 2 * mp.tanh(x) * sech2(x)),
        wide=True,
    ),
    "softsign": Function(
        F.softsign,
        (
            lambda x: x / (1 + abs(x)),
            lambda x: 1 / (1 + abs(x)) ** 2,
            lambda x: -2 * mp.sign(x) / (1 + abs(x)) ** 3,
        ),
        kinks=((0.0, 2),),
    ),
    "logit": Function(
        wg.logit,
        (
            lambda x: mp.log(x) - mp.log1p(-x),
            lambda x: 1 / (x * (1 - x)),
            lambda x: (2 * x - 1) / (x * (1 - x)) ** 2,
        ),
        0.0,
        1.0,
    ),
    "entr": Function(wg.entr, (lambda x: -x * mp.log(x), lambda x: -mp.log(x) - 1, lambda x: -1 / x), 0.0),
    "xlogy(0.75, x)": Function(
        lambda x: wg.xlogy(0.75, x),
        (lambda x: 0.75 * mp.log(x), lambda x: 0.75 / x, lambda x: -0.75 / x**2),
        0.0,
    ),
    "xlog1py(0.75, x)": Function(
        lambda x: wg.xlog1py(0.75, x),
        (lambda x: 0.75 * mp.log1p(x), lambda x: 0.75 / (1 + x), lambda x: -0.75 / (1 + x) ** 2),
        -1.0,
    ),
    "x ** 2.5": Function(
        lambda x: x**2.5,
        (lambda x: mp.sqrt(x) ** 5, lambda x: 2.5 * mp.sqrt(x) ** 3, lambda x: 3.75 * mp.sqrt(x)),
        0.0,
    ),
    "2.5 ** x": Function(
        lambda x: 2.5**x,
        tuple((lambda x, k=k: mp.log(2.5) ** k * mp.exp(x * mp.log(2.5))) for k in range(3)),
    ),
    "logaddexp(x, 0.25)": Function(
        lambda x: wg.logaddexp(x, wg.tensor(0.25, dtype=x.dtype)),
        (
            lambda x: mpf(0.25) + mp.log1p(mp.exp(x - 0.25)),
            lambda x: sigmoid(x - 0.25),
            lambda x: bump(x - 0.25),
        ),
        hard=(0.25,),
    ),
    "hypot(x, 0.75)": Function(
        lambda x: wg.hypot(x, wg.tensor(0.75, dtype=x.dtype)),
        (
            lambda x: mp.sqrt(x * x + 0.5625),
            lambda x: x / mp.sqrt(x * x + 0.5625),
            lambda x: mpf(0.5625) / mp.sqrt(x * x + 0.5625) ** 3,
        ),
        hard=(0.75,),
    ),
    "atan2(x, 0.75)": Function(
        lambda x: wg.atan2(x, wg.tensor(0.75, dtype=x.dtype)),
        (
            lambda x: mp.atan(x / 0.75),
            lambda x: mpf(0.75) / (x * x + 0.5625),
            lambda x: -1.5 * x / (x * x + 0.5625) ** 2,
        ),
        hard=(0.75,),
    ),
}
