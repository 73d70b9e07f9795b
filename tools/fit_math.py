"""Fit the polynomials of src/math/mod.rs: prints every coefficient table, with the error each fit leaves.

Method: the Remez exchange algorithm (E. Remez, 1934) in 50-digit arithmetic. A fit minimises the largest
weighted error of `sum c_k t^k` against a function; the weight turns the error of the polynomial into the
relative error of the result it is a part of. Coefficients are rounded to f32 one at a time, lowest power
first, and the rest is fitted again after each, so that the others make up for the rounding of one.
Needs mpmath.
"""

import struct

from mpmath import mp, mpf

mp.dps = 50


def single(value):
    """The f32 nearest to `value`."""
    return mpf(struct.unpack("f", struct.pack("f", float(value)))[0])


def remez(target, weight, low, high, fixed, degree):
    """The coefficients of t^len(fixed) .. t^degree, given the lower ones, and the largest weighted error."""
    powers = range(len(fixed), degree + 1)
    count = len(powers) + 1
    low, high = mpf(low), mpf(high)
    middle, half = (low + high) / 2, (high - low) / 2
    nodes = [middle - half * mp.cos(mp.pi * (i + mpf(1) / 2) / count) for i in range(count)]
    grid = [middle - half * mp.cos(mp.pi * (i + mpf(1) / 2) / 400) for i in range(400)]
    rest = {t: target(t) - sum(c * t**k for k, c in enumerate(fixed)) for t in grid}
    weights = {t: weight(t) for t in grid}
    nodes = [min(grid, key=lambda t: abs(t - node)) for node in nodes]
    solution = None
    for _ in range(12):
        rows = [[t**k for k in powers] + [(-1) ** i / weights[t]] for i, t in enumerate(nodes)]
        solution = mp.lu_solve(mp.matrix(rows), mp.matrix([rest[t] for t in nodes]))
        error = [weights[t] * (rest[t] - sum(solution[i] * t**k for i, k in enumerate(powers))) for t in grid]
        peaks, start = [], 0
        for i in range(1, len(grid) + 1):
            if i == len(grid) or (error[i] > 0) != (error[start] > 0):
                peaks.append(max(range(start, i), key=lambda j: abs(error[j])))
                start = i
        while len(peaks) > count:
            peaks.pop(0 if abs(error[peaks[0]]) < abs(error[peaks[-1]]) else -1)
        if len(peaks) < count or nodes == [grid[p] for p in peaks]:
            break
        nodes = [grid[p] for p in peaks]
    return [solution[i] for i in range(len(powers))], max(abs(e) for e in error)


def fit(name, target, weight, low, high, degree, fixed=()):
    """Fit and print one table."""
    rounded = [mpf(c) for c in fixed]
    _, ideal = remez(target, weight, low, high, rounded, degree)
    while len(rounded) <= degree:
        coefficients, _ = remez(target, weight, low, high, rounded, degree)
        rounded.append(single(coefficients[0]))
    step = (mpf(high) - low) / 1000
    points = [low + step * (i + mpf(1) / 3) for i in range(1000)]
    error = max(abs(weight(t) * (target(t) - sum(c * t**k for k, c in enumerate(rounded)))) for t in points)
    print(f"// {name}: error 2^{float(mp.log(error, 2)):.1f} (ideal 2^{float(mp.log(ideal, 2)):.1f})")
    print("[" + ", ".join(mp.nstr(c, 10) for c in rounded) + "]")


def fit_double(name, target, weight, low, high, degree):
    """Fit and print one table in double precision, where each coefficient is simply rounded."""
    coefficients, error = remez(target, weight, mpf(low), mpf(high), [], degree)
    print(f"// {name}: error 2^{float(mp.log(error, 2)):.1f}")
    print("[" + ", ".join(repr(float(c)) for c in coefficients) + "]")


def odd(function):
    """`(f(x) - x) / x^3` as a function of `x^2`, and the weight that makes its error relative to `f`."""
    return (
        lambda z: (function(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
        lambda z: z * mp.sqrt(z) / function(mp.sqrt(z)),
    )


def erf_near(z):
    """`(erf(x) - x) / x` as a function of `x^2`."""
    return mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1


def erf_weight(z):
    """What makes an error of `erf_near` relative to `erf`."""
    return mp.sqrt(z) / mp.erf(mp.sqrt(z))


def tail_weight(a):
    """What makes an error of `log(erfc(a))` relative to `erf(a)`."""
    return mp.erfc(a) / mp.erf(a)


def double_tables():
    """The error function in double precision."""
    fit_double("ERF", erf_near, erf_weight, "1e-12", mpf("0.85") ** 2, 11)
    for low, high, centre, degree in (("0.84", "2.26", "1.5", 16), ("2.24", "6.0", "3", 12)):
        middle = mpf(centre)

        def target(u, middle=middle):
            return mp.log(mp.erfc(u + middle))

        def weight(u, middle=middle):
            return tail_weight(u + middle)

        name = f"ERF_TAIL from {low} around {centre}"
        fit_double(name, target, weight, mpf(low) - middle, mpf(high) - middle, degree)


def single_tables():
    """Everything in single precision."""
    half, tiny = mp.log(2) / 2 * mpf("1.001"), mpf("1e-9")
    small = mpf("1e-4")  # keeps the weight away from 0, where a node would have none
    fit(
        "EXP", lambda r: (mp.exp(r) - 1 - r) / r**2, lambda r: abs(r**2 / mp.expm1(r)) + small, -half, half, 5
    )
    low, high = mp.sqrt(mpf(1) / 2) - 1, mp.sqrt(2) - 1
    fit("LOG", lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3, lambda f: f**3 / mp.log1p(f), low, high, 8)
    quarter = (mp.pi / 4 * mpf("1.001")) ** 2
    fit("SIN", *odd(mp.sin), tiny, quarter, 2)
    fit(
        "COS",
        lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2,
        lambda z: z**2 / mp.cos(mp.sqrt(z)),
        100 * tiny,
        quarter,
        2,
    )
    fit("TANH", *odd(mp.tanh), tiny, mpf("0.625") ** 2, 5)
    fit("ERF", erf_near, erf_weight, tiny, mpf("0.95") ** 2, 6)
    fit(
        "ERF_TAIL",
        lambda a: mp.log(mp.erfc(a)) / a,
        lambda a: a * tail_weight(a),
        mpf("0.94"),
        mpf("3.93"),
        7,
    )
    fit("LOG_RATIO", odd(mp.atanh)[0], lambda z: z, tiny, mpf("0.065") ** 2, 2)


if __name__ == "__main__":
    double_tables()
    single_tables()
