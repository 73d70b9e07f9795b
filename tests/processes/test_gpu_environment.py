"""What the environment says about GPUs is understood, or refused."""

import os
import subprocess
import sys

import pytest

PROGRAM = "import wengert as wg; print(wg.ones(3, device='gpu').sum().item())"


def run(**variables: str) -> subprocess.CompletedProcess[str]:
    """A process that uses a GPU."""
    environment = {**os.environ, **variables}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("name", "choices"), [("WENGERT_GPU", ["software"]), ("WENGERT_GPU_LIMITS", ["small", "standard"])]
)
def test_a_word_that_means_nothing_is_refused(name: str, choices: list[str]) -> None:
    done = run(**{name: "bogus"})
    expected = "' or '".join(choices)
    assert f"ValueError: the environment has {name}=bogus: '{expected}' expected, or nothing" in done.stderr
    for choice in choices:
        assert run(**{name: choice}).stdout == "3.0\n"
    assert run(**{name: ""}).stdout == "3.0\n"
