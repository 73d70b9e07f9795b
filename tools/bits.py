"""Run every sample of an operation as a program, over instruction sets and threads; print a table.

    python tools/bits.py            all of them
    python tools/bits.py avx2       one instruction set

`tests/staging/test_records.py` compares `jit(f)` with `f` bit for bit, values and gradients. Here it runs in
a process of its own for each instruction set (WENGERT_ISA) and number of threads (WENGERT_NUM_THREADS). Where a
processor lacks an instruction set, the library takes the best one that it has. The last table is kept in
benches/results/bits.md.
"""

import argparse
import datetime
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
SETS = ("baseline", "avx2", "avx512")
THREADS = (1, 2, 8)
WALK = "tests/staging/test_records.py"


def processor() -> str:
    """The name of the processor."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    found = re.search(r"model name\s*:\s*(.*)", text)
    return found[1] if found else platform.machine()


def walk(isa: str, threads: int) -> tuple[str, float, bool]:
    """The last line of one run, its seconds, and whether all was equal."""
    environment = {**os.environ, "WENGERT_ISA": isa, "WENGERT_NUM_THREADS": str(threads)}
    begin = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", WALK]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout, file=sys.stderr)
    lines = done.stdout.strip().splitlines() or ["nothing ran"]
    return re.sub(r" in [\d.]+s.*", "", lines[-1]), time.monotonic() - begin, done.returncode == 0


def main() -> int:
    """Prints the table as the runs end; 1 if some bits differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}")
    sets = parser.parse_args().sets or SETS
    if unknown := set(sets) - set(SETS):
        parser.error(f"unknown instruction sets: {', '.join(sorted(unknown))}")
    print("# Programs and functions, bit for bit\n")
    print(f"`make test-bits` on {datetime.date.today()}, {processor()}, {os.cpu_count()} cores.\n")
    print("Every sample of an operation as a program, values and gradients, against the function itself.\n")
    print("| instruction set | threads | result | seconds |\n|---|---|---|---|")
    equal = True
    for isa in sets:
        for threads in THREADS:
            result, seconds, same = walk(isa, threads)
            equal &= same
            print(f"| {isa} | {threads} | {result} | {seconds:.0f} |", flush=True)
    return not equal


if __name__ == "__main__":
    sys.exit(main())
