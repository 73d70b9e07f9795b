"""Builds the extension with the address sanitizer and runs tests in it: reads and writes outside of memory,
and of memory that was freed, end the run with a report.

    python tools/sanitize.py                        the tests of files, capsules, buffers and indices
    python tools/sanitize.py tests/autograd/test_views.py    others

The build is a whole one, into `target/sanitize`, and takes minutes. It wants Linux, GCC's libasan, and the
Python that the virtual environment was made from: a wrapper script in its place hangs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "sanitize"
TESTS = [
    "tests/exchange",
    "tests/behaviours/test_partial_writes.py",
    "tests/robustness/test_fuzz_exchange.py",
    "tests/robustness/test_fuzz_indexing.py",
]
FLAGS = "-Zsanitizer=address -Zexternal-clangrt -Cunsafe-allow-abi-mismatch=sanitizer"


def build() -> Path:
    """The extension with the sanitizer in it."""
    host = next(
        line.split()[1]
        for line in subprocess.run(
            ["rustc", "-vV"], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        if line.startswith("host")
    )
    environment = os.environ | {
        "RUSTC_BOOTSTRAP": "1",
        "RUSTFLAGS": FLAGS,
        "CARGO_TARGET_DIR": str(TARGET),
        "CARGO_PROFILE_DEV_DEBUG": "1",
        "PYO3_PYTHON": os.environ.get("PYO3_PYTHON", sys.executable),
    }
    # With a target of its own, build scripts and macros are built without the sanitizer.
    command = ["cargo", "build", "--lib", "--features", "python", "--target", host]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return TARGET / host / "debug" / "libwengert.so"


def main(tests: list[str]) -> int:
    """Runs the tests in a copy of the package with that extension; the exit code is pytest's."""
    library = build()
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "wengert"
        shutil.copytree(
            ROOT / "python" / "wengert", package, ignore=shutil.ignore_patterns("*.so", "__pycache__")
        )
        shutil.copy(library, package / "_core.abi3.so")
        # The C++ library, too: the sanitizer looks for its functions at the start, and other packages bring
        # it later.
        runtime = " ".join(
            subprocess.run(
                ["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True
            ).stdout.strip()
            for name in ("libasan.so", "libstdc++.so.6")
        )
        environment = os.environ | {
            "LD_PRELOAD": runtime,
            "ASAN_OPTIONS": "detect_leaks=0,allocator_may_return_null=1",
            "PYTHONPATH": os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
            # Python's own small blocks would hide what lies beside them.
            "PYTHONMALLOC": "malloc",
        }
        # A report goes past Python, and would be lost with what pytest keeps of it.
        command = [sys.executable, "-m", "pytest", "-q", "--capture=sys", "-p", "no:cacheprovider"]
        command += tests or TESTS
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
