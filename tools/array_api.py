"""Run the public suite of the array API standard on `wengert.numpy`, from a checkout of
data-apis/array-api-tests.

The tests that docs/array-api.md lists as failing are expected to fail; one of them that passes is reported,
too. Arguments behind the path go to pytest.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "array-api.md"


def failing() -> list[str]:
    """The tests that the documentation lists, with the reasons above them as comments."""
    block = re.search(
        r"```\{code-block\} text\n:name: failing\n\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S
    )
    return block[1].splitlines() if block else []


def main(suite: str = "", *arguments: str) -> int:
    """Runs pytest in the checkout; its exit status."""
    if not (Path(suite) / "array_api_tests").is_dir():
        print(
            f"no suite at {suite!r}: a checkout of github.com/data-apis/array-api-tests with submodules "
            f"expected"
        )
        return 2
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as expected:
        expected.write("\n".join(failing()))
        expected.flush()
        command = [
            sys.executable,
            "-m",
            "pytest",
            "array_api_tests",
            "-q",
            "-rxXfE",
            "--derandomize",
            "--disable-deadline",
        ]
        command += ["--xfails-file", expected.name, *arguments]
        env = os.environ | {"ARRAY_API_TESTS_MODULE": "wengert.numpy", "ARRAY_API_TESTS_VERSION": "2024.12"}
        return subprocess.run(command, cwd=suite, env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
