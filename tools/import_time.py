"""Print the median time of `import wengert` beyond NumPy's own import, each in a fresh interpreter."""

import statistics
import subprocess
import sys

RUNS = 11
PROGRAM = """
import time
start = time.perf_counter()
import numpy
middle = time.perf_counter()
import wengert
end = time.perf_counter()
print(middle - start, end - middle)
"""


def main() -> None:
    """Run, warm caches first, and print both medians in milliseconds."""
    pairs = []
    for run in range(RUNS + 1):
        done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
        numpy_s, own_s = map(float, done.stdout.split())
        if run > 0:
            pairs.append((numpy_s, own_s))
    numpy_ms, own_ms = (1e3 * statistics.median(column) for column in zip(*pairs))
    print(f"import wengert: {own_ms:.1f} ms beyond NumPy's own {numpy_ms:.1f} ms (median of {RUNS})")


if __name__ == "__main__":
    main()
