"""Errors of functions and of their first two derivatives over their whole domains: writes docs/accuracy.md.

`python tools/accuracy.py [function ...]` compares float64 and float32 with mpmath at hard places and at
random ones: zeros of both signs, the extremes of the dtype, magnitudes from 1e-300 to 1e300, both sides of
every branch, next to poles and roots. Without names it writes the page,
with names it prints their lines. Needs mpmath.
"""

import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import wengert as wg
from exact_functions import FUNCTIONS, Function
from mpmath import mp, mpf

PAGE = Path(__file__).parent.parent / "docs" / "accuracy.md"
INF = math.inf


#: Random places of each of four kinds.
SAMPLES = 40

SIZES = (
    *(
        5e-324,
        2.2250738585072014e-308,
        1.2e-45,
        1.1754943508222875e-38,
        1e-300,
        1e-200,
        1e-160,
        1e-100,
        1e-38,
        1e-30,
    ),
    *(
        1e-20,
        1e-16,
        1e-12,
        1e-9,
        1e-8,
        1e-6,
        1e-5,
        1e-4,
        1e-3,
        0.01,
        0.03,
        0.1,
        0.25,
        0.5,
        0.75,
        1.0,
        1.5,
        2.0,
        2.5,
    ),
    *(
        3.0,
        4.0,
        5.0,
        6.0,
        8.0,
        10.0,
        12.0,
        16.0,
        20.0,
        30.0,
        37.0,
        50.0,
        88.0,
        100.0,
        104.0,
        300.0,
        700.0,
        709.0,
    ),
    *(
        745.0,
        1e3,
        1e4,
        1e5,
        1e7,
        1e8,
        1e12,
        1e16,
        1e20,
        1e30,
        1e38,
        1e100,
        1e154,
        1e200,
        1e300,
        1.7976931348623157e308,
    ),
)


def places(function: Function, dtype: Any, samples: int) -> np.ndarray:
    """Where a function is measured: hard places with their neighbours, and random ones."""
    rng = np.random.default_rng(11)
    with np.errstate(over="ignore", under="ignore"):
        most = float(np.finfo(dtype).max)
        hard = np.array(
            [*SIZES, *function.hard, 0.0, *(e for e in (function.low, function.high) if e != INF)]
        )
        hard = np.clip(np.concatenate([hard, -hard]), -most, most).astype(dtype)
        hard = np.concatenate([hard, np.nextafter(hard, dtype(INF)), np.nextafter(hard, dtype(-INF))])
        spread = np.exp(rng.uniform(math.log(1e-300), math.log(1e300), samples)) * rng.choice(
            [-1.0, 1.0], samples
        )
        near = [rng.uniform(-1, 1, samples), rng.uniform(-10, 10, samples), 20 * rng.normal(size=samples)]
        drawn = np.clip(np.concatenate([spread, *near]), -most, most).astype(dtype)
    x = np.unique(np.concatenate([hard, drawn]))
    x = np.append(x[np.isfinite(x)], dtype(-0.0))
    return x[(x >= max(function.low, -most)) & (x <= min(function.high, most))]


def derivatives(function: Function, x: np.ndarray) -> Iterator[np.ndarray]:
    """Values, first and second derivatives."""
    at = wg.tensor(x, requires_grad=True)
    y = function.call(at)
    for order in range(3):
        yield y.detach().numpy()
        if order < 2:
            y = wg.autograd.grad(y.sum(), at, create_graph=True, allow_unused=True)[0]
            if y is None or not y.requires_grad:
                yield np.zeros_like(x) if y is None else y.detach().numpy()
                return


@dataclass
class Worst:
    """The largest error of a function, or of a derivative, in one dtype."""

    units: float = 0.0
    relative: float = 0.0
    at: float = 0.0
    got: float = 0.0
    exact: float = 0.0

    def is_wrong(self) -> bool:
        """Whether a digit is wrong that matters, or the kind of number."""
        return self.relative > 1e-3

    def __str__(self) -> str:
        if self.units == INF:
            return f"{self.got:.3g} for {self.exact:.3g} at {self.at:.6g}"
        size = f"{self.units:.1f}" if self.units < 1000 else f"relative {self.relative:.0e}"
        return f"{size} at {self.at:.6g}"


def exact_value(function: Function, order: int, x: float) -> Any:
    """The exact result as an mpf; infinite at a pole, None where it is no real number."""
    digits = 50
    if function.wide and x != 0:
        digits += int(2.2 * abs(math.log10(abs(x))))
    with mp.workdps(digits):
        try:
            value = function.exact[order](mpf(x))
        except (ZeroDivisionError, ValueError):
            return None
        return None if isinstance(value, mp.mpc) or mp.isnan(value) or mp.isinf(value) else +value


def worst(function: Function, order: int, x: np.ndarray, got: np.ndarray) -> Worst:
    """The largest error. Next to the limits of the dtype either side of the limit will do."""
    info, found = np.finfo(x.dtype), Worst()
    tiny, most, bits = float(info.smallest_subnormal), mpf(float(info.max)), info.nmant
    for at, value in zip(x, got, strict=True):
        if any(at == kink and order >= first for kink, first in function.kinks):
            continue
        exact = exact_value(function, order, float(at))
        if exact is None:
            continue
        size = abs(exact)
        if size > most * (1 - mpf(2) ** -20):
            if (math.isinf(value) and (value > 0) == (exact > 0)) or (size <= most and np.isfinite(value)):
                continue
            units = relative = INF
        elif not np.isfinite(value):
            units = relative = INF
        else:
            error = abs(mpf(float(value)) - exact)
            unit = max(mpf(2) ** (int(mp.floor(mp.log(size, 2))) - bits) if size else mpf(0), mpf(tiny))
            units = float(error / unit)
            # Below the smallest normal number what counts is the unit there.
            relative = float(error / max(size, mpf(float(info.tiny))))
        if units > found.units:
            found = Worst(units, relative, float(at), float(value), float(exact))
    return found


def measure(names: Iterable[str], samples: int) -> Iterator[tuple[str, str, list[Worst]]]:
    """For each function and dtype the largest error of the value and of two derivatives."""
    for name in names:
        for dtype in (np.float64, np.float32):
            x = places(FUNCTIONS[name], dtype, samples)
            found = [
                worst(FUNCTIONS[name], order, x, got)
                for order, got in enumerate(derivatives(FUNCTIONS[name], x))
            ]
            yield name, np.dtype(dtype).name, found


HEAD = """# Accuracy

The largest error of each function, and of its first and second derivative, over its whole domain: in units in the last
place and where, or relative to the exact number where it is more than a thousand of them. `inf for 3 at x` says that
the result is infinite where the exact one is 3. A unit is the distance of floats at the exact number, and below the
smallest normal number the distance there; a result next to the largest number may be infinite.

Derivatives are those of backward, with a cotangent of 1. Their errors are those of the formulas in {doc}`operations`:
where a formula cancels, next to a root of the derivative, few digits are right. Derivatives that are made from the
output (`tanh`, `sigmoid`, `expm1`, as in PyTorch), and second derivatives that read such a slope, are 0 where the
output has rounded to its limit.

Norms and deviations of float32, float16 and bfloat16 are taken of the numbers over a power of two, on CPUs,
where squares overflow or underflow, with their derivatives; PyTorch adds those of `std` in float64. In float64, on
GPUs, and in normalisations, squares are added as they are, as NumPy does: beyond the root of the largest
number they are infinite, and below that of the smallest one 0, with slopes of 0 or NaN. `hypot`,
`logsumexp` and the functions below scale what they add.

`special.airy_ai` is measured from -10000 to 100. Further out, the phase of its waves, `2/3 |x|^1.5`, is right to about
`|x|^1.5 2^-104`: 1e-14 of the height of a wave at -1e12, 1e-8 at -1e16, and nothing from -1e21 on.
On GPUs, which compute in float32, it is right to `|x|^1.5 2^-23`. The polynomials are recurrences:
beside a root the last digits are lost.

Written by `python tools/accuracy.py`, with mpmath as the judge, on x86-64; errors of values at more places are in
`benches/results/ulp.md`.

| function | dtype | value | first derivative | second derivative |
|---|---|---|---|---|
"""


def line(name: str, dtype: str, found: list[Worst]) -> str:
    """A line of the table."""
    return f"| `{name}` | {dtype} | {' | '.join(str(w) for w in found)} |"


def main() -> None:
    """Prints the lines of the functions named, or writes the page."""
    names = sys.argv[1:] or list(FUNCTIONS)
    lines = []
    for name, dtype, found in measure(names, SAMPLES):
        lines.append(line(name, dtype, found))
        print(("!! " if any(w.is_wrong() for w in found) else "   ") + lines[-1], flush=True)
    if not sys.argv[1:]:
        PAGE.write_text(HEAD + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
