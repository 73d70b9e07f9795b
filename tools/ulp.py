"""Errors of wengert's functions in units in the last place: prints the table of benches/results/ulp.md.

`python tools/ulp.py [samples] [function ...]` samples each function over its domain, evenly, by powers of ten
and next to its hard places, in float64 and float32, and compares with mpmath at 60 digits (1300 bits for
large angles). A unit is the distance of floats at the exact value; below the smallest normal number it stays
the same. Needs mpmath.

`cargo run --release --example ulp` looks at every float32, against double precision.
"""

import sys
from dataclasses import dataclass

import numpy as np
import wengert as wg
import wengert.nn.functional as F
from mpmath import mp, mpf

rng = np.random.default_rng(7)


@dataclass
class Function:
    """What is measured: how to call it, the exact function, and where."""

    call: object
    exact: object
    domain: tuple
    bits: int = 300


def even(low, high):
    """Samples with even distances at random."""
    return lambda count: rng.uniform(low, high, count)


def sizes(low, high, signs=(1.0, -1.0)):
    """Samples whose logarithms are even, with these signs."""
    return lambda count: np.exp(rng.uniform(np.log(low), np.log(high), count)) * rng.choice(signs, count)


def near(centre, low, high):
    """Samples whose distances from `centre` have even logarithms."""
    return lambda count: centre + sizes(low, high)(count)


def multiples(count):
    """The doubles next to multiples of pi/2."""
    return np.arange(1, count + 1) * (np.pi / 2)


def sigmoid(x):
    """The logistic function."""
    return 1 / (1 + mp.exp(-x))


def at_least_one(count):
    """Samples from 1 on whose distances from it have even logarithms."""
    return 1 + sizes(1e-7, 1, POSITIVE)(count)


def next_to_one(count):
    """Samples up to 1 whose distances from it have even logarithms."""
    return 1 - sizes(1e-7, 1, POSITIVE)(count)


def inverse_erf(x):
    """The inverse of the error function, which is infinite at 1."""
    return mp.erfinv(x) if abs(x) < 1 else mp.sign(x) * mp.inf


POSITIVE = (1.0,)
UNIT = (even(-1, 1), sizes(1e-35, 1))
POLYGAMMA = (even(0, 20), sizes(1e-10, 1e10, POSITIVE))
ANGLES = (even(-10, 10), sizes(1e-10, 1e9), sizes(1e9, 1e38), multiples)
AROUND_0 = (even(-1, 1), sizes(1e-35, 1))
BESSEL = (even(-88, 88), even(-8, 8), sizes(1e-35, 1e6))
FUNCTIONS = {
    "exp": Function(wg.exp, mp.exp, (even(-87, 88), *AROUND_0)),
    "expm1": Function(wg.expm1, mp.expm1, (even(-40, 88), *AROUND_0)),
    "log": Function(wg.log, mp.log, (sizes(1e-37, 1e38, POSITIVE), even(0.3, 3), near(1, 1e-7, 0.1))),
    "log1p": Function(wg.log1p, mp.log1p, (sizes(1e-37, 1e38, POSITIVE), even(-0.999, 3), sizes(1e-35, 0.1))),
    "sin": Function(wg.sin, mp.sin, ANGLES, 1300),
    "cos": Function(wg.cos, mp.cos, ANGLES, 1300),
    "tanh": Function(wg.tanh, mp.tanh, (even(-20, 20), *AROUND_0)),
    "sigmoid": Function(wg.sigmoid, sigmoid, (even(-87, 88), *AROUND_0)),
    "erf": Function(wg.erf, mp.erf, (even(-6, 6), *AROUND_0)),
    "softplus": Function(
        F.softplus, lambda x: mp.log1p(mp.exp(x)) if x < 20 else x, (even(-80, 30), *AROUND_0)
    ),
    "silu": Function(F.silu, lambda x: x * sigmoid(x), (even(-80, 80), *AROUND_0)),
    "gelu": Function(F.gelu, lambda x: x * mp.ncdf(x), (even(-12, 12), *AROUND_0)),
    "exp2": Function(wg.exp2, lambda x: mpf(2) ** x, (even(-125, 127), *AROUND_0)),
    "log2": Function(
        wg.log2, lambda x: mp.log(x, 2), (sizes(1e-37, 1e38, POSITIVE), even(0.3, 3), near(1, 1e-7, 0.1))
    ),
    "log10": Function(wg.log10, mp.log10, (sizes(1e-37, 1e38, POSITIVE), even(0.3, 3), near(1, 1e-7, 0.1))),
    "tan": Function(wg.tan, mp.tan, ANGLES, 1300),
    "asin": Function(wg.asin, mp.asin, UNIT),
    "acos": Function(wg.acos, mp.acos, (*UNIT, next_to_one)),
    "atan": Function(wg.atan, mp.atan, (even(-10, 10), sizes(1e-35, 1e35))),
    "sinh": Function(wg.sinh, mp.sinh, (even(-88, 88), even(-2, 2), *AROUND_0)),
    "cosh": Function(wg.cosh, mp.cosh, (even(-88, 88), even(-2, 2))),
    "asinh": Function(wg.asinh, mp.asinh, (even(-10, 10), sizes(1e-35, 1e35))),
    "acosh": Function(wg.acosh, mp.acosh, (even(1, 10), sizes(1, 1e35, POSITIVE), at_least_one)),
    "atanh": Function(wg.atanh, mp.atanh, UNIT),
    "erfc": Function(wg.erfc, mp.erfc, (even(-6, 9.1), *AROUND_0)),
    "erfinv": Function(wg.erfinv, inverse_erf, (even(-1, 1), *AROUND_0, next_to_one)),
    "ndtr": Function(wg.ndtr, mp.ncdf, (even(-12.5, 8), *AROUND_0)),
    "lgamma": Function(
        wg.lgamma,
        lambda x: mp.log(abs(mp.gamma(x))) if x < 1e6 else mp.loggamma(x),
        (even(0, 20), sizes(1e-35, 1e35, POSITIVE), near(1, 1e-6, 0.5), near(2, 1e-6, 0.5)),
    ),
    "digamma": Function(
        wg.digamma, mp.digamma, (even(0, 20), sizes(1e-30, 1e35, POSITIVE), near(1.46, 1e-3, 0.5))
    ),
    "i0": Function(wg.i0, lambda x: mp.besseli(0, x), (even(-88, 88), even(-8, 8))),
    "i0e": Function(wg.i0e, lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), BESSEL),
    "i1": Function(wg.i1, lambda x: mp.besseli(1, x), (even(-88, 88), even(-8, 8), sizes(1e-35, 1))),
    "i1e": Function(wg.i1e, lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), BESSEL),
    "entr": Function(
        wg.special.entr,
        lambda x: -x * mp.log(x),
        (sizes(1e-35, 1e35, POSITIVE), even(0, 3), near(1, 1e-7, 0.1)),
    ),
    "polygamma 1": Function(lambda x: wg.polygamma(1, x), lambda x: mp.psi(1, x), POLYGAMMA),
    "polygamma 2": Function(lambda x: wg.polygamma(2, x), lambda x: mp.psi(2, x), POLYGAMMA),
    "sqrt": Function(wg.sqrt, mp.sqrt, (sizes(1e-37, 1e38, POSITIVE),)),
    "rsqrt": Function(wg.rsqrt, lambda x: 1 / mp.sqrt(x), (sizes(1e-37, 1e38, POSITIVE),)),
}


def error(got, exact, mantissa, smallest):
    """The distance between the two in units in the last place."""
    if mp.isinf(exact):
        return 0.0 if float(got) == float(exact) else float("inf")
    exponent = max(mp.frexp(exact)[1] - 1, smallest) if exact else smallest
    return float(abs(mpf(float(got)) - exact) / mpf(2) ** (exponent - mantissa))


def worst(function, x, dtype):
    """The largest error over the samples, and where it is."""
    mantissa, smallest = (52, -1022) if dtype == np.float64 else (23, -126)
    with mp.workprec(function.bits):
        got = function.call(wg.tensor(x)).numpy()
        errors = [
            error(y, function.exact(mpf(float(v))), mantissa, smallest) for v, y in zip(x, got, strict=True)
        ]
    at = int(np.argmax(errors))
    return errors[at], x[at]


def power_samples(count, dtype):
    """Bases and exponents whose powers spread over all numbers of the type."""
    limit = 1000 if dtype == np.float64 else 120
    x = np.concatenate(
        [sizes(1e-37, 1e38, POSITIVE)(count), even(0.5, 2)(count), near(1, 1e-6, 0.1)(count)]
    ).astype(dtype)
    with np.errstate(divide="ignore"):
        y = (rng.uniform(-limit, limit, 3 * count) / np.log2(x.astype(np.float64))).astype(dtype)
    known = np.isfinite(y) & (np.abs(y * np.log2(x.astype(np.float64))) < limit)
    return x[known], y[known]


def worst_power(count, dtype):
    """The largest error of powers, and where it is."""
    mantissa, smallest = (52, -1022) if dtype == np.float64 else (23, -126)
    x, y = power_samples(count, dtype)
    got = wg.pow(wg.tensor(x), wg.tensor(y)).numpy()
    with mp.workprec(300):
        errors = [
            error(p, mpf(float(a)) ** mpf(float(b)), mantissa, smallest)
            for a, b, p in zip(x, y, got, strict=True)
        ]
    at = int(np.argmax(errors))
    return errors[at], f"{x[at]:.17g}, {y[at]:.17g}"


def main():
    """Print the table."""
    arguments = sys.argv[1:]
    count = int(arguments.pop(0)) if arguments and arguments[0].isdigit() else 4000
    print("| function | samples | float64 | at | float32 | at |\n|---|---|---|---|---|---|")
    for name, function in FUNCTIONS.items():
        if arguments and name not in arguments:
            continue
        x = np.concatenate([part(count) for part in function.domain])
        row = [worst(function, x.astype(dtype), dtype) for dtype in (np.float64, np.float32)]
        print(
            f"| {name} | {len(x)} | " + " | ".join(f"{e:.2f} | {at:.17g}" for e, at in row) + " |", flush=True
        )
    if not arguments or "pow" in arguments:
        row = [worst_power(count, dtype) for dtype in (np.float64, np.float32)]
        print(f"| pow | {3 * count} | " + " | ".join(f"{e:.2f} | {at}" for e, at in row) + " |")


if __name__ == "__main__":
    main()
