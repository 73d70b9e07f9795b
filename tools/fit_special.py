"""Fit the polynomials of src/math/special: writes src/math/special/tables.rs, for both precisions.

`python tools/fit_special.py` takes a few minutes and prints the error that each fit leaves, relative to the
function it is a part of. The method is that of `fit_math.py`. A table holds the coefficients of a function of
one variable over an interval; its documentation in the file says which. Needs mpmath.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

from fit_math import remez, single
from mpmath import mp, mpf

TARGET = Path(__file__).parent.parent / "src" / "math" / "special" / "tables.rs"
TINY = mpf("1e-9")
ROOT = mp.findroot(mp.digamma, mpf("1.4616321449683623"))
HEAD = """\
//! Coefficients of the polynomials of this folder, lowest power first, for both precisions.
//!
//! Written by `python tools/fit_special.py`: change that, not this.

#![allow(clippy::approx_constant, reason = "the first coefficient of a sine of half turns is one")]

/// Declares the tables, and defines them: the coefficients for `f32`, then those for `f64`.
macro_rules! tables {
    ($($(#[$doc:meta])* $name:ident: $single:expr, $double:expr;)*) => {
        /// The tables of a precision.
        pub trait Tables {
            $($(#[$doc])* const $name: &'static [f64];)*
        }
        impl Tables for f32 {
            $(const $name: &'static [f64] = &$single;)*
        }
        impl Tables for f64 {
            $(const $name: &'static [f64] = &$double;)*
        }
    };
}

tables! {
"""


@dataclass
class Table:
    """What is fitted: the function, what makes an error of it relative, interval and degree in each
    precision.

    A degree of None: an empty table.
    """

    name: str
    meaning: str
    target: Callable
    weight: Callable
    intervals: tuple
    degrees: tuple


def root(function):
    """`(f(x) - x) / x^3` as a function of `z = x^2`, and the weight that makes its error relative to `f`."""

    def target(z):
        x = mp.sqrt(z)
        return (function(x) - x) / (x * z)

    def weight(z):
        x = mp.sqrt(z)
        return x * z / function(x)

    return target, weight


def relative(target):
    """A function whose own relative error counts."""
    return target, lambda t: 1 / abs(target(t))


def sine_of_turns(z):
    """`sin(pi r) / r` in `z = r^2`."""
    return mp.sin(mp.pi * mp.sqrt(z)) / mp.sqrt(z)


def scaled_erfc(centre):
    """`(1 + 2 t) exp(t^2) erfc(t)` in `u = (t - K) / (t + K)` (M. Shepherd and J. Laframboise, 1981)."""

    def target(u):
        t = centre * (1 + u) / (1 - u)
        return (1 + 2 * t) * mp.exp(t * t) * mp.erfc(t)

    return target


def inverse_erf(w):
    """`erfinv(x) / x` where `w = -log(1 - x^2)` (M. Giles, 2012)."""
    x = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x


def stirling(v):
    """What Stirling's formula lacks of `lgamma(x)`, times `x`, in `v = 1 / x^2`."""
    x = 1 / mp.sqrt(v)
    return x * (mp.loggamma(x) - ((x - mpf(1) / 2) * mp.log(x) - x + mp.log(2 * mp.pi) / 2))


def digamma_rest(v):
    """`(log(x) - 1 / (2 x) - digamma(x)) x^2` in `v = 1 / x^2`."""
    x = 1 / mp.sqrt(v)
    return (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) / v


def bessel(order):
    """`I(x)`, for order 1 over `x / 2`, in `q = (x / 2)^2`."""
    return lambda q: mp.besseli(order, 2 * mp.sqrt(q)) / (mp.sqrt(q) if order else 1)


def bessel_far(order):
    """`exp(-x) I(x) sqrt(x)` in `v = 10 / x - 1`."""

    def target(v):
        x = 10 / (1 + v)
        return mp.sqrt(x) * mp.exp(-x) * mp.besseli(order, x)

    return target


def from_position(t):
    """`x` for the position `t` of `x^2` in `[0, 25]`, which the interval `[-1, 1]` stands for."""
    return 5 * mp.sqrt((1 + t) / 2)


def cylinder(order):
    """`J(x)`, for order 1 over `x`, less its root `r`, over `x^2 - r^2`, by the position of `x^2`."""
    root = mp.besseljzero(order, 1)

    def target(t):
        x = from_position(t)
        return mp.besselj(order, x) / (x if order else 1) / (x * x - root * root)

    return target


def second_kind(order):
    """What `Y(x)` has beside its singular part `2/pi log(x) J(x)`, for order 1 less `2/(pi x)` and over
    `x`."""

    def target(t):
        x = from_position(t)
        singular = mp.log(x) * mp.besselj(order, x) - (1 / x if order else 0)
        return (mp.bessely(order, x) - 2 / mp.pi * singular) / (x if order else 1)

    return target


def modulus(order, part):
    """The real part of `H(x) exp(-i (x - (2 order + 1) pi/4)) sqrt(pi x / 2)`, or `x` times its imaginary
    part."""

    def target(t):
        x = 5 * mp.sqrt(2 / (1 + t))
        turned = mp.hankel1(order, x) * mp.exp(-1j * (x - (2 * order + 1) * mp.pi / 4))
        scaled = turned * mp.sqrt(mp.pi * x / 2)
        return x * scaled.imag if part else scaled.real

    return target


def modified(order):
    """What `K(x)` has beside its singular part, for order 1 over `x`, in `x^2`."""

    def target(z):
        x = mp.sqrt(z)
        singular = mp.log(x) * mp.besseli(order, x)
        return (mp.besselk(1, x) - singular - 1 / x) / x if order else mp.besselk(0, x) + singular

    return target


def modified_far(order):
    """`exp(x) K(x) sqrt(x)` in `v = 2 / x - 1`."""

    def target(v):
        x = 2 / (1 + v)
        return mp.sqrt(x) * mp.exp(x) * mp.besselk(order, x)

    return target


def both(low, high):
    """The same interval in both precisions."""
    return ((mpf(low), mpf(high)),) * 2


def to_u(centre, low, high):
    """The interval of `u` for `low <= t <= high`."""
    return tuple((mpf(t) - centre) / (mpf(t) + centre) for t in (low, high))


def bessel_tables():
    """The tables of the modified Bessel functions."""
    near, away = both("1e-9", "6.2501"), both("-0.99999", "1.0001")
    return [
        Table("I0", "`i0(x)` in `x^2 / 4`, `x <= 5`", *relative(bessel(0)), near, (9, 14)),
        Table("I1", "`2 i1(x) / x` in `x^2 / 4`, `x <= 5`", *relative(bessel(1)), near, (9, 14)),
        Table(
            "I0_FAR",
            "`exp(-x) i0(x) sqrt(x)` in `10 / x - 1`, `x >= 5`",
            *relative(bessel_far(0)),
            away,
            (8, 31),
        ),
        Table(
            "I1_FAR",
            "`exp(-x) i1(x) sqrt(x)` in `10 / x - 1`, `x >= 5`",
            *relative(bessel_far(1)),
            away,
            (8, 31),
        ),
    ]


def cylinder_tables():
    """The tables of Bessel functions, and of the modified ones of the second kind."""
    inside = both(mpf(-1) + TINY, "1.0001")
    far = both(mpf(-1) + mpf("1e-5"), "1.0001")
    below = "in `2 x^2 / 25 - 1`, `x <= 5`"
    above = "in `50 / x^2 - 1`, `x >= 5`"
    absolute = lambda t: mpf(1)
    rows = []
    for order in (0, 1):
        n, over = str(order), " / x" if order else ""
        singular = f"2/pi (log(x) J{n}(x){' - 1 / x' if order else ''})"
        part = f"H{n}(x) exp(-i (x - {2 * order + 1} pi/4)) sqrt(pi x / 2)"
        rows += [
            Table(
                f"J{n}",
                f"`J{n}(x){over} / (x^2 - root^2)` {below}",
                *relative(cylinder(order)),
                inside,
                ((9, 8)[order], 12),
            ),
            Table(
                f"Y{n}",
                f"`(Y{n}(x) - {singular}){over}` {below}",
                second_kind(order),
                absolute,
                inside,
                (9, 14),
            ),
            Table(f"P{n}", f"the real part of `{part}` {above}", modulus(order, 0), absolute, far, (5, 17)),
            Table(
                f"Q{n}", f"its imaginary part times `x`, order {n}", modulus(order, 1), absolute, far, (6, 21)
            ),
            Table(
                f"K{n}",
                "`K0(x) + log(x) I0(x)` in `x^2`, `x <= 1`"
                if order == 0
                else "`(K1(x) - log(x) I1(x) - 1 / x) / x` in `x^2`, `x <= 1`",
                modified(order),
                absolute,
                both(TINY, "1.0001"),
                (5, 8),
            ),
            Table(
                f"K{n}_FAR",
                f"`exp(x) K{n}(x) sqrt(x)` in `2 / x - 1`, `x >= 1`",
                *relative(modified_far(order)),
                both("-0.99999", "1.0001"),
                (10, 30),
            ),
        ]
    return rows


def tables(precision):
    """The tables; those that depend on the precision for the one with this index."""
    centre = (mpf("2"), mpf("3.25"))[precision]
    far = (mpf(4), mpf(8))[precision]
    quarter = (mp.pi / 4 * mpf("1.001")) ** 2
    half = mpf("0.251")
    return [
        Table(
            "TAN",
            "`(tan(r) - r) / r^3` in `r^2`, `|r| <= pi/4`",
            *root(mp.tan),
            both(TINY, quarter),
            (6, None),
        ),
        Table(
            "ASIN", "`(asin(x) - x) / x^3` in `x^2`, `|x| <= 1/2`", *root(mp.asin), both(TINY, half), (4, 12)
        ),
        Table("ATAN", "`(atan(x) - x) / x^3` in `x^2`, `|x| <= 1`", *root(mp.atan), both(TINY, 1), (8, 20)),
        Table(
            "ATANH",
            "`(atanh(x) - x) / x^3` in `x^2`, `|x| <= 1/2`",
            *root(mp.atanh),
            both(TINY, half),
            (5, 13),
        ),
        Table(
            "ASINH", "`(asinh(x) - x) / x^3` in `x^2`, `|x| <= 1`", *root(mp.asinh), both(TINY, 1), (8, 20)
        ),
        Table(
            "ACOSH",
            "`(acosh(1 + t) / sqrt(2 t) - 1) / t`, `0 <= t <= 1`",
            lambda t: (mp.acosh(1 + t) / mp.sqrt(2 * t) - 1) / t,
            lambda t: t * mp.sqrt(2 * t) / mp.acosh(1 + t),
            both("1e-6", 1),
            (6, 15),
        ),
        Table("SINH", "`(sinh(x) - x) / x^3` in `x^2`, `|x| <= 1`", *root(mp.sinh), both(TINY, 1), (3, 6)),
        Table(
            "SIN_PI",
            "`sin(pi r) / r` in `r^2`, `|r| <= 1/2`",
            *relative(sine_of_turns),
            both(TINY, half),
            (4, 8),
        ),
        Table(
            "ERFCX",
            "`(1 + 2 t) exp(t^2) erfc(t)` in `(t - K) / (t + K)`, from `t = 0.4` to where the tail is 0",
            *relative(scaled_erfc(centre)),
            (to_u(centre, "0.4", 11), to_u(centre, "0.4", 28)),
            (9, 21),
        ),
        Table(
            "ERFINV",
            "`erfinv(x) / x` in `w - 2.5` for `w = -log(1 - x^2) <= 5`",
            *relative(lambda t: inverse_erf(t + mpf("2.5"))),
            both(mpf("-2.5") + TINY, "2.5"),
            (10, 12),
        ),
        Table(
            "ERFINV_TAIL",
            "`erfinv(x) / x` in `sqrt(w) - 3` beyond",
            *relative(lambda t: inverse_erf((t + 3) ** 2)),
            ((mpf("-0.77"), mpf("1.15")), (mpf("-0.77"), mpf("3.2"))),
            (10, 12),
        ),
        Table(
            "LGAMMA_ONE",
            "`lgamma(1 + d) / d`, `-1/4 <= d <= 1/2`",
            *relative(lambda d: mp.loggamma(1 + d) / d),
            both("-0.2501", "0.5001"),
            (10, 22),
        ),
        Table(
            "LGAMMA_TWO",
            "`lgamma(2 + d) / d`, `|d| <= 1/2`",
            *relative(lambda d: mp.loggamma(2 + d) / d),
            both("-0.5001", "0.5001"),
            (8, 18),
        ),
        Table(
            "STIRLING",
            "what Stirling's formula lacks of `lgamma(x)`, times `x`, in `1 / x^2`, from `GAMMA_FAR` on",
            stirling,
            lambda v: mp.sqrt(v) / mp.loggamma(1 / mp.sqrt(v)),
            both("1e-6", 1 / far**2),
            (2, 5),
        ),
        Table(
            "DIGAMMA",
            "`digamma(y) / (y - root)` in `y - 1.5`, `0.75 <= y <= 2.25`",
            *relative(lambda t: mp.digamma(t + mpf("1.5")) / (t + mpf("1.5") - ROOT)),
            both("-0.7501", "0.7501"),
            (13, 29),
        ),
        Table(
            "DIGAMMA_REST",
            "`(log(x) - 1 / (2 x) - digamma(x)) x^2` in `1 / x^2`, from `GAMMA_FAR` on",
            digamma_rest,
            lambda v: v / mp.digamma(1 / mp.sqrt(v)),
            both("1e-6", 1 / far**2),
            (3, 6),
        ),
        *bessel_tables(),
        *cylinder_tables(),
    ]


def fitted(table, precision):
    """The coefficients as the precision holds them, and the error that is left."""
    low, high = table.intervals[precision]
    degree = table.degrees[precision]
    ideal, error = remez(table.target, table.weight, low, high, [], degree)
    if precision == 1:
        return [float(c) for c in ideal], error
    # All rounded, or the first few one at a time, so that the others make up for it: whatever leaves less.
    candidates = []
    for count in range(4):
        rounded, coefficients = [], ideal
        for _ in range(count):
            rounded.append(single(coefficients[0]))
            coefficients, _ = remez(table.target, table.weight, low, high, rounded, degree)
        candidates.append([single(c) for c in (*rounded, *coefficients)])
    points = [low + (high - low) * (i + mpf(1) / 3) / 500 for i in range(500)]
    exact = [(t, table.target(t), table.weight(t)) for t in points]

    def left(coefficients):
        return max(abs(w * (y - mp.polyval(coefficients[::-1], t))) for t, y, w in exact)

    best = min(candidates, key=left)
    return [float(c) for c in best], left(best)


def row(table, columns):
    """A table as a row of the file: its meaning, its name, its coefficients in both precisions."""
    meaning = table.meaning[0].upper() + table.meaning[1:]
    lists = [", ".join(map(repr, coefficients)) for coefficients in columns]
    texts = [fill(f"[{text}]", 109, initial_indent=" " * 8, subsequent_indent=" " * 9) for text in lists]
    return f"    /// {meaning}.\n    {table.name}:\n" + ",\n".join(texts) + ";\n"


def main():
    """Fit everything and write the file."""
    text = HEAD
    for pair in zip(tables(0), tables(1), strict=True):
        columns = []
        for precision, table in enumerate(pair):
            columns.append([])
            if table.degrees[precision] is None:
                continue
            columns[-1], error = fitted(table, precision)
            name = f"{('single', 'double')[precision]} {table.name}"
            print(f"{name}: 2^{float(mp.log(error, 2)):.1f}", file=sys.stderr, flush=True)
        text += row(table, columns)
    TARGET.write_text(text + "}\n")


if __name__ == "__main__":
    main()
