"""Bytes per second of loops over memory, beside a plain copy in the same run.

    python benches/peers/bandwidth.py [--threads N] [--megabytes M] [--seconds S] [--output FILE]

The plain copy is NumPy's, into memory that is there already. All take turns of one call; the fastest counts.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from libraries import versions
from run import confine, processor


def works(megabytes: int) -> dict[str, tuple[Callable[[], Any], float]]:
    """What is timed, and how many arrays of the size each reads and writes."""
    import numpy as np
    import torch
    import wengert as wg

    count = megabytes * 250_000
    x, y, out = (np.random.default_rng(k).random(count, np.float32) for k in range(3))
    found: dict[str, tuple[Callable[[], Any], float]] = {"plain copy": (lambda: np.copyto(out, x), 2)}
    for name, m in (("wengert", wg), ("torch", torch)):
        a, b, c = (m.from_numpy(array) for array in (x, y, out))
        found |= {
            f"copy, {name}": (lambda c=c, a=a: c.copy_(a), 2),
            f"fill, {name}": (lambda c=c: c.fill_(1.0), 1),
            f"sum, {name}": (lambda a=a: a.sum(), 1),
            f"add, {name}": (lambda m=m, a=a, b=b: m.add(a, b), 3),
            f"add in place, {name}": (lambda c=c, a=a: c.add_(a), 3),
        }
    return found


def main() -> int:
    """Measure and print, and write the table where `--output` says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--megabytes", type=int, default=64, help="size of one array")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--output", type=Path, help="file for the Markdown table")
    options = parser.parse_args()
    threads = confine(options.threads)
    timed = works(options.megabytes)
    best = dict.fromkeys(timed, float("inf"))
    end = time.perf_counter() + options.seconds
    while time.perf_counter() < end:
        for name, (work, _) in timed.items():
            start = time.perf_counter()
            work()
            best[name] = min(best[name], time.perf_counter() - start)
    rate = {name: arrays * options.megabytes / 1e3 / best[name] for name, (_, arrays) in timed.items()}
    plain = rate["plain copy"]
    lines = [f"| {name} | {rate[name]:.1f} | {rate[name] / plain:.2f} |" for name in timed]
    peers = ", ".join(f"{name} {versions()[name]}" for name in ("wengert", "torch", "numpy"))
    text = "\n".join(
        [
            f"{threads} core(s) of {processor()}; float32, {options.megabytes} MB an array; {peers}.",
            "Made by `python benches/peers/bandwidth.py`.\n",
            "| work | GB/s | of the plain copy |",
            "|---|---|---|",
            *lines,
        ]
    )
    print(text)
    if options.output is not None:
        options.output.write_text(f"# Bandwidth\n\n{text}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
