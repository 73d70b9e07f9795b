"""Run the random searches of tests/robustness, with new examples, for some minutes each; print a table.

    python tools/search.py --minutes 60                       every search
    python tools/search.py --minutes 10 test_custom_programs  one of them

Each search runs again, with the next seed, until its time is over or it has found something; what it found
stands in the log that is named then, and the last seed finds it again:

    HYPOTHESIS_PROFILE=search pytest --hypothesis-seed=SEED tests/robustness/NAME.py

Rounds are short with a small WENGERT_EXAMPLES, the examples per test (1,000). The last table is kept in
tests/robustness/README.md.
"""

import argparse
import datetime
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
SEARCHES = {
    "test_custom_programs": "derivatives by hand in three nested transforms, against plain mathematics",
    "test_function_axes": "calls of functions along axes, every dtype and keyword, against NumPy",
    "test_function_calls": "calls of functions of single elements, every dtype, against NumPy",
    "test_fuzz_einsum": "einsum equations, against NumPy",
    "test_fuzz_exchange": "files, capsules, buffers, dtypes and shapes",
    "test_fuzz_indexing": "keys, read and assigned, against NumPy",
    "test_gpu_programs": "steps of a program on a GPU, where there is one, against the CPU",
    "test_layer_programs": "settings of layers and losses, against definitions in NumPy",
    "test_optimiser_runs": "training runs, against the published recurrences",
    "test_precision_programs": "programs under autocast, against casts written out",
    "test_programs": "views, writes, modes and backward, against a model without a tape",
    "test_same_bits": "reductions over layouts, sizes and threads, bit for bit",
    "test_same_bits_of_functions": "functions that reduce, their values and gradients, over threads, bit for bit",
    "test_sharing_programs": "views, detach and writes in transforms, against the program run eagerly",
}


def search(name: str, minutes: float, seed: int, log: Path) -> tuple[int, int, bool]:
    """Run one search from `seed` on; the last seed, how many examples there were, and whether they found
    nothing."""
    end, count = time.monotonic() + 60 * minutes, 0
    environment = {**os.environ, "HYPOTHESIS_PROFILE": "search"}
    command = [sys.executable, "-m", "pytest", "-q", "--hypothesis-show-statistics", "-p", "no:cacheprovider"]
    while True:
        found = subprocess.run(
            [*command, f"--hypothesis-seed={seed}", f"tests/robustness/{name}.py"],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
        )
        count += sum(int(n) for n in re.findall(r"(\d+) passing", found.stdout))
        if found.returncode:
            log.write_text(found.stdout + found.stderr, encoding="utf-8")
            return seed, count, False
        if time.monotonic() >= end:
            return seed, count, True
        seed += 1


def processor_minutes() -> float:
    """What the searches have taken of all cores until now."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) / 60


def main() -> int:
    """Run the searches, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="searches; all by default")
    parser.add_argument("--minutes", type=float, default=60.0, help="how long each runs")
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    options = parser.parse_args()
    unknown = set(options.names) - SEARCHES.keys()
    if unknown:
        parser.error(f"there is no search {', '.join(sorted(unknown))}; there are {', '.join(SEARCHES)}")
    logs = Path(tempfile.mkdtemp(prefix="wengert-search-"))
    print(
        "| search | what it draws | minutes | of a core | seeds | examples | found "
        "|\n|---|---|---|---|---|---|---|",
        flush=True,
    )
    clean = True
    for name in options.names or SEARCHES:
        start, used = time.monotonic(), processor_minutes()
        last, count, is_clean = search(name, options.minutes, options.seed, logs / f"{name}.log")
        clean &= is_clean
        answer = "nothing" if is_clean else f"see {logs / name}.log"
        spent, used = (time.monotonic() - start) / 60, processor_minutes() - used
        seeds = f"{options.seed} to {last}"
        print(
            f"| `{name}` | {SEARCHES[name]} | {spent:.0f} | {used:.0f} | {seeds} | {count:,} | {answer} |",
            flush=True,
        )
    print(f"\n{datetime.date.today()}, {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
