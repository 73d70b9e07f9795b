"""Records of the special functions and of those on bits: inverse and hyperbolic functions, other bases, the
normal distribution, the gamma function's family, rounding towards 0."""

from __future__ import annotations

import math

import numpy as np
import wengert as wg
from scipy import special
from support import Arg, Case, Domain, Integers, Real, Source, Truth

from samples.sample import ANY, Table

SPECIAL_FUNCTIONS = Table()
unary, binary = SPECIAL_FUNCTIONS.unary, SPECIAL_FUNCTIONS.binary

INSIDE = Real(-0.9, 0.9)
WHOLE = (-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0)
UNIT = (0.0, -0.0, 1.0, -1.0, 0.5, -0.25, 1.5, -math.inf, math.nan)
LARGE = (0.0, -0.0, 1.0, -30.0, 80.0, 1e4, -1e4, math.nan)
ANGLES = (0.0, -0.0, 1.0, -30.0, 1e4, math.inf, math.nan)

unary("exp2", np.exp2)
unary("log2", np.log2, Real(0.3, 4.0))
unary("log10", np.log10, Real(0.3, 4.0))
unary("tan", np.tan, Real(-1.2, 1.2), special=ANGLES)
unary("asin", np.arcsin, INSIDE, special=UNIT)
unary("acos", np.arccos, INSIDE, special=UNIT)
unary("atan", np.arctan)
unary("sinh", np.sinh)
unary("cosh", np.cosh)
unary("asinh", np.arcsinh)
unary("acosh", np.arccosh, Real(1.3, 4.0))
unary("atanh", np.arctanh, INSIDE, special=UNIT)
unary("erfc", special.erfc)
unary("erfinv", special.erfinv, INSIDE, special=UNIT)
unary("ndtr", special.ndtr)
unary("log_ndtr", special.log_ndtr, Real(-6, 3), special=LARGE, scale=4)
unary("entr", special.entr, Real(0.1, 3), special=(0.0, -0.0, 1.0, -1.0, 1e-20, 80.0, math.inf, math.nan))
# NumPy's is not 0 at whole numbers.
unary("sinc", np.sinc, Real(-2, 2), special=(0.0, -0.0, 0.5, -1.25, 1e-20, math.nan), scale=4)
binary("xlogy", special.xlogy, Real(-2, 2), Real(0.2, 2), special=(0.0, 1.0, -2.5, math.nan), scale=4)
binary("xlog1py", special.xlog1py, Real(-2, 2), Real(-0.5, 2), special=(0.0, 1.0, -2.5, math.nan), scale=4)
POLES = (0.0, 1.0, 0.5, 2.0, -2.5, 30.0, 1e4, 1e-3, -1e-3, math.inf, math.nan)
unary(
    "lgamma",
    special.gammaln,
    Real(-2.7, 6.0, avoid=(-2.0, -1.0, 0.0), gap=0.25),
    special=(*POLES, -1.0, -30.0),
)
unary(
    "digamma",
    special.digamma,
    Real(-1.7, 6.0, avoid=(-1.0, 0.0), gap=0.3),
    special=(*POLES, -0.0, -1.0, -30.0),
    scale=4,
)
# SciPy has no value at infinity.
unary("i0", special.i0, special=LARGE)
unary("i0e", special.i0e, special=ANGLES)
unary("i1", special.i1, special=LARGE)
unary("i1e", special.i1e, special=ANGLES)
NEAR_BY = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 30.0, -30.0, math.nan)
ABOVE = (0.0, 1.0, 0.5, 2.5, 5.0, 30.0, -1.0, math.nan)
unary(
    "erfcx", special.erfcx, Real(-1.5, 3), special=(0.0, -0.0, 1.0, -2.0, 7.5, 30.0, 1e4, math.inf, math.nan)
)
unary("ndtri", special.ndtri, Real(0.05, 0.95), special=(0.0, 1.0, 0.5, 0.25, 0.75, -1.0, 1.5, math.nan))
unary("bessel_j0", special.j0, special=NEAR_BY, scale=4)
unary("bessel_j1", special.j1, special=NEAR_BY, scale=4)
unary("bessel_y0", special.y0, Real(0.5, 6), special=ABOVE, scale=4)
unary("bessel_y1", special.y1, Real(0.5, 6), special=ABOVE, scale=4)
unary("modified_bessel_k0", special.k0, Real(0.3, 4), special=ABOVE, scale=4)
unary("modified_bessel_k1", special.k1, Real(0.3, 4), special=ABOVE, scale=4)
unary("scaled_modified_bessel_k0", special.k0e, Real(0.3, 4), special=(*ABOVE, 1e4), scale=4)
unary("scaled_modified_bessel_k1", special.k1e, Real(0.3, 4), special=(*ABOVE, 1e4), scale=4)
unary("spherical_bessel_j0", lambda x: np.sinc(x / np.pi), special=(0.0, -0.0, 0.5, -1.25, 30.0, math.nan))
unary("trunc", np.trunc, Real(-3, 3, avoid=WHOLE), integers=True)
unary("frac", lambda x: x - np.trunc(x), Real(-3, 3, avoid=WHOLE), integers=True)
binary(
    "atan2",
    np.arctan2,
    Real(0.3, 3.0),
    ANY,
    special=(0.0, -0.0, 1.0, -2.5, 1e4, math.inf, -math.inf, math.nan),
)


def polygamma_case(s: Source) -> Case:
    return Case((Arg(s.shape(), Real(0.5, 6.0)),), {"n": s.integer(0, 4)})


SPECIAL_FUNCTIONS.record(
    "polygamma",
    lambda x, n: x.polygamma(n),
    lambda x, n: special.polygamma(n, x),
    polygamma_case,
    rows=("polygamma",),
    scale=8,
    gpu_scale=4,
)


def integers(name: str, reference: object, left: Domain, right: Domain) -> None:
    """A function of two integers, which broadcast."""

    def case(s: Source) -> Case:
        a, b = s.broadcast(2)
        return Case((Arg(a, left), Arg(b, right)))

    SPECIAL_FUNCTIONS.record(
        name, lambda x, y: getattr(x, name)(y), reference, case, rows=("Bitwise", "Logical"), order=0
    )


NUMBERS, COUNTS = Integers(-1000, 1000, "int32"), Integers(0, 20, "int32")
for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    integers(name, getattr(np, name), NUMBERS, NUMBERS)
integers("bitwise_left_shift", np.left_shift, NUMBERS, COUNTS)
integers("bitwise_right_shift", np.right_shift, NUMBERS, COUNTS)
integers("gcd", np.gcd, Integers(-60, 60, "int32"), Integers(-60, 60, "int32"))
for name, domain in (("bitwise_not", NUMBERS), ("invert_truth", Truth())):
    SPECIAL_FUNCTIONS.record(
        name,
        lambda x: ~x,
        np.invert,
        lambda s, domain=domain: Case((Arg(s.shape(), domain),)),
        rows=("Bitwise", "Logical"),
        order=0,
    )


def neighbours(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The next double."""
    return np.nextafter(x, y)


SPECIAL_FUNCTIONS.record(
    "nextafter",
    lambda x, y: wg.nextafter(x, y),
    neighbours,
    lambda s: Case(tuple(Arg(shape) for shape in s.broadcast(2))),
    rows=("NextAfter",),
    order=0,
)
