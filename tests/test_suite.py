"""The suite itself: as many examples as the profile says, whatever was collected before, and small
folders."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]
#: Files in a folder; the package itself has more than others.
MOST, MOST_AT_ROOT = 24, {"tests": 8, "python/wengert": 30}


def test_the_profile_is_the_one_asked_for() -> None:
    name = os.environ.get("HYPOTHESIS_PROFILE", "ci")
    assert repr(settings()) == repr(settings.get_profile(name))
    if name == "ci":
        assert (settings().max_examples, settings().derandomize) == (25, True)


@pytest.mark.parametrize("name", ["ci", "search"])
def test_collecting_the_shader_tests_changes_nothing(name: str) -> None:
    """A profile holds for the whole process: a folder that loads its own one sets the examples of all
    tests."""
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


def crowded(files: list[str]) -> list[str]:
    """The folders with more files than they may have."""
    counts = Counter(file.rpartition("/")[0] for file in files)
    return [
        f"{folder}: {n} files" for folder, n in sorted(counts.items()) if n > MOST_AT_ROOT.get(folder, MOST)
    ]


@pytest.mark.parametrize("top", ["tests", "tools", "python"])
def test_folders_stay_small(top: str) -> None:
    files = [path.relative_to(ROOT).as_posix() for path in (ROOT / top).rglob("*.py")]
    assert len(files) > 15
    assert crowded(files) == []


def test_crowded_folders_are_found() -> None:
    files = [
        f"tests/{folder}{i}.py" for folder, count in (("", 9), ("a/", 24), ("b/", 25)) for i in range(count)
    ]
    assert crowded(files) == ["tests: 9 files", "tests/b: 25 files"]
