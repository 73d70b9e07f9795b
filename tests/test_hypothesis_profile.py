"""The examples that hypothesis draws are as many as the profile says, whatever was collected before."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]


def test_the_profile_is_the_one_asked_for() -> None:
    name = os.environ.get("HYPOTHESIS_PROFILE", "ci")
    assert repr(settings()) == repr(settings.get_profile(name))
    if name == "ci":
        assert (settings().max_examples, settings().derandomize) == (25, True)


@pytest.mark.parametrize("name", ["ci", "search"])
def test_collecting_the_shader_tests_changes_nothing(name: str) -> None:
    """A profile holds for the whole process: a folder that loads its own one sets the examples of all tests."""
    path = Path(__file__).relative_to(ROOT)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        "not gpu",
        "tests/shaders",
    ]
    done = subprocess.run(
        [*command, f"{path}::test_the_profile_is_the_one_asked_for"],
        cwd=ROOT,
        env={**os.environ, "HYPOTHESIS_PROFILE": name},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "1 passed" in done.stdout
