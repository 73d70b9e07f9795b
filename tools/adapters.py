"""Print the GPU adapters that wengert's own host finds; exit 1 if there is none.

With `--not-run`: print how many tests `make test` left out for want of one, and why;
nothing where there is one.
"""

import os
import re
import subprocess
import sys

import wengert as wg


def not_run() -> None:
    """Count the GPU tests of both halves."""
    rust = subprocess.run(
        ["cargo", "test", "--locked", "--quiet", "--", "--list", "--ignored"],
        check=True,
        capture_output=True,
        text=True,
    )
    python = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "--collect-only"],
        check=True,
        capture_output=True,
        text=True,
    )
    collected = re.search(r"^(\d+)(?:/\d+)? tests collected", python.stdout, re.MULTILINE)
    assert collected, python.stdout[-2000:]
    print(
        f"==> not run: {rust.stdout.count(': test')} Rust tests and {collected[1]} Python tests of the GPU "
        "half,"
    )
    print("    because neither Vulkan, Metal nor DirectX 12 offers an adapter. A driver in software will do")
    print("    (Debian: mesa-vulkan-drivers): WENGERT_GPU=software make test")


def main() -> int:
    """List every adapter, one a line."""
    adapters = wg.gpu.adapters()
    if "--not-run" in sys.argv:
        if not adapters and not os.environ.get("WENGERT_GPU"):
            not_run()
        return 0
    for adapter in adapters:
        print(f"adapter: {adapter}")
    return 0 if adapters else 1


if __name__ == "__main__":
    sys.exit(main())
