"""Errors of float32 functions over every float: prints the second table of benches/results/ulp.md.

`python tools/ulp_every.py function ...` compares float32 with wengert's own float64 at all 2^32 bit patterns:
three minutes of one core per function. The errors of float64, which `tools/ulp.py` finds with mpmath, vanish
in units of float32. NaNs, infinities and zeros must come out as they do in float64; an error there counts as
infinite.

`cargo run --release --example ulp` does the same for every row of the tables.
"""

import sys

import numpy as np
import wengert as wg
from ulp import FUNCTIONS

PIECE = 1 << 22


def distances(got, want):
    """How far `got` is from `want`, in units in the last place of float32 at `want`; subnormal ones have the
    same."""
    nearest = want.astype(np.float32)
    special = ~np.isfinite(nearest) | ~np.isfinite(got) | (want == 0)
    exponent = np.maximum(np.frexp(want)[1] - 1, -126)
    away = np.abs(got.astype(np.float64) - want) / np.exp2(exponent - 23.0)
    same = (got == nearest) & (np.signbit(got) == np.signbit(nearest)) | (np.isnan(got) & np.isnan(want))
    return np.where(special, np.where(same, 0.0, np.inf), away)


def worst(call):
    """The largest error of a function, and where it is."""
    largest, where = 0.0, np.float32(0)
    for start in range(0, 1 << 32, PIECE):
        x = np.arange(start, start + PIECE, dtype=np.uint64).astype(np.uint32).view(np.float32)
        with np.errstate(all="ignore"):
            found = distances(call(wg.tensor(x)).numpy(), call(wg.tensor(x.astype(np.float64))).numpy())
        at = int(np.argmax(found))
        if found[at] > largest:
            largest, where = float(found[at]), x[at]
    return largest, where


def main():
    """Print the table."""
    print("| function | largest error | at |\n|---|---|---|")
    for name in sys.argv[1:]:
        largest, where = worst(FUNCTIONS[name].call)
        print(f"| {name} | {largest:.2f} | {where:.9g} |", flush=True)


if __name__ == "__main__":
    main()
