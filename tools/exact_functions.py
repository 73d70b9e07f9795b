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
from wengert import special

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


def waves(kind: Callable[[int, Any], Any], order: int) -> tuple[Callable[[Any], Any], ...]:
    """A Bessel function of the first or second kind, of order 0 or 1."""

    def function(x: Any, k: int) -> Any:
        if x == 0 and kind is mp.besselj:
            return mpf(((1, 0, -0.5), (0, 0.5, 0))[order][k])
        zeroth, first = kind(0, x), kind(1, x)
        slopes = (
            (zeroth, -first, first / x - zeroth),
            (first, zeroth - first / x, 2 * first / x**2 - zeroth / x - first),
        )
        return slopes[order][k]

    return family(function)


def airy(x: Any, order: int) -> Any:
    """The Airy function; its second derivative is `x` times it."""
    return x * mp.airyai(x) if order == 2 else mp.airyai(x, derivative=order)


def spherical(x: Any, order: int) -> Any:
    """`sin(x) / x`."""
    return sinc(x / mp.pi, order) / mp.pi**order


def lower_gamma(x: Any, order: int) -> Any:
    """The part of a gamma density of shape 2.3 below `x`; the rest is the negative of it but for the value."""
    density = x ** (mpf(2.3) - 1) * mp.exp(-x) / mp.gamma(mpf(2.3))
    if order == 0:
        return mp.gammainc(mpf(2.3), 0, x, regularized=True)
    return density if order == 1 else density * ((mpf(2.3) - 1) / x - 1)


def upper_gamma(x: Any, order: int) -> Any:
    """One less that."""
    return -lower_gamma(x, order) if order else mp.gammainc(mpf(2.3), x, mp.inf, regularized=True)


def polynomial(kind: Callable[..., Any]) -> tuple[Callable[[Any], Any], ...]:
    """One of degree 5 and its derivatives, from its coefficients."""
    points = [mpf(k) for k in range(6)]
    rows = mp.matrix([[p**j for j in range(6)] for p in points])
    factors = [mp.nint(64 * c) / 64 for c in mp.lu_solve(rows, mp.matrix([kind(p) for p in points]))]

    def function(x: Any, order: int) -> Any:
        return sum(mp.ff(j, order) * c * x ** (j - order) for j, c in enumerate(factors) if j >= order)

    return family(function)


def falling(order: int) -> tuple[Callable[[Any], Any], ...]:
    """A modified Bessel function of the second kind."""

    def function(x: Any, k: int) -> Any:
        zeroth, first = mp.besselk(0, x), mp.besselk(1, x)
        slopes = (
            (zeroth, -first, zeroth + first / x)
            if order == 0
            else (first, -zeroth - first / x, first + zeroth / x + 2 * first / x**2)
        )
        return slopes[k]

    return family(function)


def erfcx(x: Any, order: int) -> Any:
    """`exp(x^2) erfc(x)`."""
    value = mp.exp(x * x) * mp.erfc(x)
    slope = 2 * x * value - 2 / mp.sqrt(mp.pi)
    return (value, slope, 2 * value + 2 * x * slope)[order]


def quantile(p: Any) -> Any:
    """The quantile of the normal distribution, by Newton's method on the logarithm of the tail."""
    if p == 0.5:
        return mpf(0)
    if p > 0.5:
        return -quantile(1 - p)
    if p <= 0:
        return -mp.inf if p == 0 else mp.nan
    t = mp.sqrt(-2 * mp.log(p))
    x = -(
        t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
    )
    for _ in range(9):
        tail = mp.ncdf(x)
        x -= mp.log(tail / p) * tail / pdf(x)
    return x


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
    "erfcx": Function(wg.erfcx, family(erfcx), -26.0, 1e4, hard=(-0.4, 0.4, 7.0711, 27.5, 10.5), wide=True),
    "ndtri": Function(
        wg.ndtri,
        (quantile, lambda p: 1 / pdf(quantile(p)), lambda p: quantile(p) / pdf(quantile(p)) ** 2),
        0.0,
        1.0,
    ),
    "bessel_j0": Function(wg.bessel_j0, waves(mp.besselj, 0), -1e4, 1e4, wide=True),
    "bessel_j1": Function(wg.bessel_j1, waves(mp.besselj, 1), -1e4, 1e4, wide=True),
    "bessel_y0": Function(wg.bessel_y0, waves(mp.bessely, 0), 0.0, 1e4),
    "bessel_y1": Function(wg.bessel_y1, waves(mp.bessely, 1), 0.0, 1e4),
    "modified_bessel_k0": Function(wg.modified_bessel_k0, falling(0), 0.0, 1e3),
    "modified_bessel_k1": Function(wg.modified_bessel_k1, falling(1), 0.0, 1e3),
    "special.spherical_bessel_j0": Function(
        special.spherical_bessel_j0, family(spherical), -1e4, 1e4, hard=TURNS, wide=True
    ),
    "special.airy_ai": Function(special.airy_ai, family(airy), -1e4, 1e2, hard=(-12.0, 12.0)),
    "special.zeta(x, 1)": Function(
        lambda x: special.zeta(x, 1.0), tuple((lambda x, k=k: mp.zeta(x, 1, k)) for k in range(3)), 1.0, 1e2
    ),
    "special.zeta(2.5, q)": Function(
        lambda q: special.zeta(2.5, q),
        (
            lambda q: mp.zeta(mpf(2.5), q),
            lambda q: -2.5 * mp.zeta(mpf(3.5), q),
            lambda q: 8.75 * mp.zeta(mpf(4.5), q),
        ),
        1e-30,
        1e4,
    ),
    "igamma(2.3, x)": Function(lambda x: wg.igamma(2.3 + 0 * x, x), family(lower_gamma), 1e-30, 1e3),
    "igammac(2.3, x)": Function(lambda x: wg.igammac(2.3 + 0 * x, x), family(upper_gamma), 1e-30, 1e3),
    "special.chebyshev_polynomial_t(x, 5)": Function(
        lambda x: special.chebyshev_polynomial_t(x, 5), polynomial(lambda x: mp.chebyt(5, x)), -1.0, 1.0
    ),
    "special.legendre_polynomial_p(x, 5)": Function(
        lambda x: special.legendre_polynomial_p(x, 5), polynomial(lambda x: mp.legendre(5, x)), -1.0, 1.0
    ),
    "special.hermite_polynomial_h(x, 5)": Function(
        lambda x: special.hermite_polynomial_h(x, 5), polynomial(lambda x: mp.hermite(5, x)), -1e3, 1e3
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
