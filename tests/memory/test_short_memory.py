"""Short memory raises MemoryError, wherever it is: no allocation that fails may end the process."""

import subprocess
import sys
from pathlib import Path

import pytest
from memory.short_memory import OPERATIONS

SCRIPT = Path(__file__).with_name("short_memory.py")


def run(names: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *names], capture_output=True, text=True, check=False)


def test_every_allocation_may_fail() -> None:
    left, ended = list(OPERATIONS), []
    while left:
        done = run(left)
        if done.returncode == 0:
            break
        # The last name printed is the one that did not come through; the others still get their turn.
        through = done.stdout.count("\n")
        ended.append(f"{left[through]}: {done.stderr.strip().splitlines()[-1:]}")
        left = left[through + 1 :]
    assert not ended, "\n".join(ended)


def test_the_walk_finds_allocations() -> None:
    counts = {
        line.split(": ")[0]: int(line.split(": ")[1]) for line in run(["add", "x[index]"]).stdout.splitlines()
    }
    # The result; the result and the positions.
    assert counts["add"] >= 1
    assert counts["x[index]"] >= 2


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
def test_a_limit_of_the_system() -> None:
    script = """
import resource, wengert as wg
x = wg.zeros(2**29, dtype=wg.uint8)
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
x.index_put_((wg.tensor([3]),), wg.tensor(1, dtype=wg.uint8))
x[wg.tensor([4, 5])] = 2
try:
    x.nonzero() if x.add_(1).any() else None
except MemoryError as error:
    print("MemoryError")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "MemoryError"), done.stderr[-2000:]


def test_a_request_that_failed_is_not_in_use() -> None:
    script = """
import wengert as wg
from wengert import _core, memory
x = wg.zeros(1000, dtype=wg.float64)
memory.reset_peak()
before = memory.live_bytes(), memory.peak_bytes()
_core._fail_allocations(0, 1 << 20)
try:
    wg.zeros(1 << 20, dtype=wg.float64)
except MemoryError as error:
    print(error)
print((memory.live_bytes(), memory.peak_bytes()) == before, before[0])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    said, _, live = done.stdout.replace("\n", " ").rpartition(" True ")
    assert said == f"cannot allocate 8388608 bytes; {live.strip()} bytes are in use", (
        done.stdout + done.stderr
    )


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
def test_limits_of_the_system_close_to_what_there_is() -> None:
    """Wherever memory ends, in tensors, tapes or what libraries take: an error, never the end of the
    process."""
    script = """
import os, resource, sys
import numpy as np
import wengert as wg
wg.set_num_threads(1)
x = wg.tensor(np.random.default_rng(0).normal(size=(300, 300)), requires_grad=True)
wg.fft, wg.linalg  # Python's parser says that the syntax is wrong where it lacks memory.
for work in (
    lambda: (x @ x.t()).sum().backward(),
    lambda: wg.linalg.svd(x),
    lambda: wg.fft.fft(wg.ones(99991)),
    lambda: [x.sum() * 2 for _ in range(3000)][-1].backward(),
):
    for step in range(12):
        child = os.fork()
        if child == 0:
            size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            limit = size + step**3 * 40_000
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            try:
                work()
            except MemoryError:
                os._exit(3)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), end=" ")
    print()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    codes = [line.split() for line in done.stdout.splitlines()]
    assert len(codes) == 4, done.stderr[-2000:]
    assert {code for line in codes for code in line} <= {"0", "3"}, done.stdout + done.stderr[-2000:]
    assert all("3" in line for line in codes), done.stdout


def test_freeing_needs_no_memory() -> None:
    """The lists that keep freed blocks for reuse grow; where they cannot, the blocks are given back."""
    script = """
import wengert as wg
from wengert import _core
many = [[wg.zeros(n) for _ in range(20_000)] for n in (1, 40)]
_core._fail_allocations(0, 4096)
del many
_core._fail_allocations()
print(wg.memory.live_bytes(), wg.zeros(3).sum().item())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "0 0.0"), done.stderr[-2000:]
