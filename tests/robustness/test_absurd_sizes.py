"""Sizes that no memory holds raise at once, and integers beyond int64 are named: no riddle, no computing for hours."""

import subprocess
import sys
from pathlib import Path

import pytest
import wengert as wg


@pytest.mark.skipif(sys.platform == "win32", reason="limits of memory and time are POSIX's")
def test_absurd_sizes_raise_at_once() -> None:
    script = Path(__file__).with_name("absurd_sizes.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert [line for line in lines if "SURPRISE" in line] == []
    assert done.returncode == 0, [*lines[-1:], done.stderr[-2000:]]


def test_what_is_too_large_is_named() -> None:
    x, n = wg.arange(3.0), 2**70
    for call in (lambda: wg.zeros(n), lambda: x.roll(n), lambda: wg.randint(n, (2,)), lambda: wg.arange(n)):
        with pytest.raises(ValueError, match=f"the integer {n} does not fit into int64"):
            call()
    with pytest.raises(IndexError, match=f"index {n} is beyond the end of every axis"):
        x[n]
    with pytest.raises(IndexError, match=f"index {-n} is beyond the end of every axis"):
        x[-n] = 1.0
    with pytest.raises(ValueError, match="stride must be below 2\\^31, got 1099511627776"):
        wg.nn.functional.max_pool2d(wg.ones(1, 1, 4, 4), 2, 2**40)
