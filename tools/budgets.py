"""What the engine costs in instructions, compared with `benches/budgets.toml`.

Times on shared machines vary by a quarter, instruction counts do not: this runs each path under valgrind's
callgrind and counts the instructions that wengert's own library executes (not Python's, NumPy's or the C
library's, which differ between systems). Valgrind knows no AVX-512, so kernels run as AVX2 everywhere. A path
that costs more than its budget by more than 5 % is an error.

    python tools/budgets.py            compare the installed wengert with the budgets
    python tools/budgets.py --write    make what was measured the budgets (from a release wheel)
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

BUDGETS = Path(__file__).parents[1] / "benches" / "budgets.toml"
TOLERANCE = 1.05
REPEAT = 200
CHAIN = 200
# CPython's function behind `sys.getallocatedblocks()`. Nothing else calls it, so callgrind can cut at its
# calls.
MARK = "_Py_GetAllocatedBlocks"
LIBRARY = "_core"
HEADER = """\
# Instructions per operation inside wengert's library, release build, AVX2 (valgrind knows no AVX-512), one thread.
# `make budgets` compares; `python tools/budgets.py --write` rewrites this file from the installed release wheel.
# A change that raises a number says why in its commit message.
"""

Path_ = tuple[int, Callable[[], object]]


def repeated(operation: Callable[[], object]) -> Path_:
    """A path of one operation."""

    def work() -> None:
        for _ in range(REPEAT):
            operation()

    return REPEAT, work


def tape_paths(wg: Any) -> dict[str, Path_]:
    """Chains of operations, forward and backward."""
    x, c = wg.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True), wg.tensor([0.999] * 4)
    w, b, start = (wg.tensor(v, requires_grad=True) for v in (0.9, 0.1, 1.0))
    tail: list[Any] = []

    def chain() -> None:
        y = x
        for _ in range(CHAIN // 2):
            y = y * c
            y = y + c
        tail.append(y.sum())

    def back() -> None:
        tail.pop().backward()

    def scalars() -> None:
        y = start
        for _ in range(CHAIN // 2):
            y = y * w + b
        y.backward()

    return {
        "chain forward": (CHAIN, chain),
        "chain backward": (CHAIN, back),
        "scalar graph": (CHAIN, scalars),
    }


def network_paths(wg: Any) -> dict[str, Path_]:
    """A small network."""
    linear, data = wg.nn.Linear(16, 32), wg.ones(32, 16)
    model = wg.nn.Sequential(linear, wg.nn.ReLU(), wg.nn.Linear(32, 1))
    optimiser = wg.optim.SGD(model.parameters(), lr=0.01)
    target = wg.zeros(32, 1)

    def step() -> None:
        optimiser.zero_grad()
        ((model(data) - target) ** 2).mean().backward()
        optimiser.step()

    step()
    return {
        "nn.Linear, 32x16 by 16x32": repeated(lambda: linear(data)),
        "optim.SGD step, 4 tensors": repeated(optimiser.step),
        "training step, 16-32-1": (20, lambda: [step() for _ in range(20)]),
    }


def paths() -> dict[str, Path_]:
    """Every path: how many operations a call of its work has, and the work."""
    import wengert as wg

    wg.set_num_threads(1)
    wg.manual_seed(0)
    a, b = wg.tensor([1.0, 2.0, 3.0, 4.0]), wg.tensor([4.0, 3.0, 2.0, 1.0])
    r, m = wg.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True), wg.ones(2, 2)
    return {
        "a + b": repeated(lambda: a + b),
        "a * 2.0": repeated(lambda: a * 2.0),
        "a.tanh()": repeated(a.tanh),
        "a + b, recorded": repeated(lambda: r + b),
        "a * a, recorded, both saved": repeated(lambda: r * r),
        "x.T": repeated(lambda: m.T),
        "x[0]": repeated(lambda: m[0]),
        **tape_paths(wg),
        **network_paths(wg),
    }


def run() -> None:
    """Runs each path between two marks; under callgrind, each mark ends one file of counts."""
    import gc

    works = paths()
    gc.disable()
    for _ in range(3):
        for _, work in works.values():
            work()
    for _, work in works.values():
        sys.getallocatedblocks()
        work()
    sys.getallocatedblocks()
    # The names and numbers of operations go to whoever reads the counts.
    for name, (operations, _) in works.items():
        print(f"{operations}\t{name}")


def count(dump: Path) -> int:
    """The instructions of wengert's library in one file of counts."""
    total, ours, inclusive = 0, False, False
    names: dict[str, str] = {}
    for line in dump.read_text().splitlines():
        if found := re.match(r"ob=\((\d+)\)(?: (.*))?$", line):
            if found[2]:
                names[found[1]] = found[2]
            ours = LIBRARY in Path(names.get(found[1], "")).name
        elif found := re.match(r"cob=\((\d+)\) (.*)$", line):
            names[found[1]] = found[2]
        elif line.startswith("calls="):
            inclusive = True
        elif line and line[0] in "+-*0123456789":
            if ours and not inclusive:
                total += int(line.split()[-1])
            inclusive = False
    return total


def measure() -> dict[str, int]:
    """Instructions per operation of each path."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "counts"
        callgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", f"--dump-before={MARK}"]
        command = [*callgrind, sys.executable, __file__, "--run"]
        environment = {
            **os.environ,
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "WENGERT_ISA": "avx2",
        }
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"valgrind failed with status {done.returncode}:\n{done.stderr}")
        works = [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]
        # The first file is the preparation; the last, without a number, is what came after the last mark.
        dumps = [Path(f"{out}.{i + 2}") for i in range(len(works))]
        if not all(dump.exists() for dump in dumps):
            raise SystemExit(f"callgrind saw no calls of {MARK}: this Python does not export it")
        return {name: round(count(dump) / int(n)) for (n, name), dump in zip(works, dumps, strict=True)}


def compare(measured: dict[str, int], budgets: dict[str, int]) -> list[str]:
    """Prints the table; the paths that cost too much or have no budget."""
    wrong = []
    print(f"{'instructions per operation':32}{'measured':>10}{'budget':>10}")
    for name, instructions in measured.items():
        budget = budgets.get(name)
        over = budget is None or instructions > budget * TOLERANCE
        note = "" if not over else "  no budget" if budget is None else "  too many"
        print(f"{name:32}{instructions:>10}{budget or '':>10}{note}")
        wrong += [name] if over else []
    return wrong


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="make what was measured the budgets")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        run()
        return
    measured = measure()
    if arguments.write:
        rows = "".join(f'"{name}" = {instructions}\n' for name, instructions in measured.items())
        BUDGETS.write_text(f"{HEADER}\n[instructions]\n{rows}")
    budgets = tomllib.loads(BUDGETS.read_text())["instructions"] if BUDGETS.exists() else {}
    if wrong := compare(measured, budgets):
        raise SystemExit(f"over budget: {', '.join(wrong)}; see the head of {BUDGETS.name}")


if __name__ == "__main__":
    main()
