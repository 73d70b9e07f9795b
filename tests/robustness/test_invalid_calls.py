"""Nothing that a user passes in ends the process, panics, hangs or leaves the library unusable."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CALLS = 400 if os.environ.get("HYPOTHESIS_PROFILE") == "search" else 6


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="forked children under Linux's limits of memory")
def test_senseless_arguments_raise_ordinary_exceptions() -> None:
    script = Path(__file__).with_name("invalid_calls.py")
    command = [sys.executable, str(script), "0", str(CALLS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    *surprises, last = done.stdout.splitlines()
    assert surprises == []
    name, count = last.split()
    assert name == "called"
    assert int(count) > 600
