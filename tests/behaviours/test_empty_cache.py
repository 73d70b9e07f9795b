"""`memory.empty_cache()`: what many small tensors held goes back to the system."""

import subprocess
import sys

import pytest

SCRIPT = """
import wengert as wg
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
before = resident()
all = [wg.zeros(700, dtype=wg.uint8) for _ in range(200_000)]
full = resident()
# Every thousandth stays, so that memory has holes rather than an end.
all = all[::1000]
wg.memory.empty_cache()
print(full - before, resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux tells of a process")
def test_small_blocks_go_back() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    full, left = map(int, done.stdout.split())
    assert full > 150 << 20
    assert left < full // 4
