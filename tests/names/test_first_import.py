"""What `import wengert` leaves for later, and where it is found then."""

import json
import subprocess
import sys

import pytest

WAITING = [
    *(f"wengert.autograd.{name}" for name in ("forward_ad", "functional", "graph", "mutation", "profiler")),
    *(f"wengert.{name}" for name in ("serialization", "nn", "optim", "jit", "control", "utils", "numpy")),
]
PROGRAM = """
import json, sys
import numpy
before = set(sys.modules)
import wengert as wg
first = sorted(set(sys.modules) - before)
found = [
    wg.autograd.forward_ad.dual_level.__module__,
    wg.autograd.functional.vjp.__module__,
    wg.autograd.graph.save_on_cpu.__module__,
    wg.load.__module__,
    wg.save.__module__,
]
print(json.dumps([first, found, sorted(set(dir(wg.autograd)) - set(vars(wg.autograd)))]))
"""


@pytest.fixture(scope="module")
def first_import() -> list[list[str]]:
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    found: list[list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", WAITING)
def test_a_part_waits(name: str, first_import: list[list[str]]) -> None:
    assert "wengert.autograd" in first_import[0]
    assert name not in first_import[0]


def test_parts_are_found_when_they_are_asked_for(first_import: list[list[str]]) -> None:
    parts = ["autograd.forward_ad", "autograd.functional", "autograd.graph"]
    assert first_import[1] == [
        *(f"wengert.{part}" for part in parts),
        "wengert.serialization.reading",
        "wengert.serialization.writing",
    ]
    # What has not been asked for is told as well.
    assert set(first_import[2]) <= {"anomaly", "profiler"}
