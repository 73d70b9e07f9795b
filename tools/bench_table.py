"""Prints what `cargo bench` measured as Markdown tables: `python tools/bench_table.py [TARGET_FOLDER] [HOURS]`.

TARGET_FOLDER is cargo's (default: `$CARGO_TARGET_DIR` or `target`). Only results of the last HOURS (default 24) are
shown, so that benchmarks which no longer exist drop out.
"""

import json
import os
import platform
import sys
import time
from collections import defaultdict
from pathlib import Path


def quantity(value: float, units: list[tuple[float, str]]) -> str:
    """`value` with three digits in the largest unit that it reaches."""
    for size, unit in units:
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / units[-1][0]:.3g} {units[-1][1]}"


def duration(nanoseconds: float) -> str:
    """A time."""
    return quantity(nanoseconds, [(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")])


def rate(throughput: dict[str, int] | None, nanoseconds: float) -> str:
    """Elements or bytes per second, if the benchmark says how many it handles."""
    if not throughput:
        return ""
    (kind, count), *_ = throughput.items()
    unit = "B/s" if kind.startswith("Bytes") else "/s"
    return quantity(
        count / nanoseconds * 1e9, [(1e9, f"G{unit}"), (1e6, f"M{unit}"), (1e3, f"k{unit}"), (1.0, unit)]
    )


def processor() -> str:
    """The name of the CPU."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def main() -> None:
    """Prints one table per group of benchmarks."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("CARGO_TARGET_DIR", "target"))
    hours = float(sys.argv[2]) if len(sys.argv) > 2 else 24.0
    groups: dict[str, list[tuple[str, float, float, float, str]]] = defaultdict(list)
    for path in sorted((target / "criterion").glob("**/new/benchmark.json")):
        if time.time() - path.stat().st_mtime > hours * 3600:
            continue
        names = json.loads(path.read_text())
        median = json.loads((path.parent / "estimates.json").read_text())["median"]
        middle, interval = median["point_estimate"], median["confidence_interval"]
        row = (names["function_id"] or names["value_str"] or "", middle, interval["lower_bound"])
        groups[names["group_id"]].append((*row, interval["upper_bound"], rate(names["throughput"], middle)))
    if not groups:
        sys.exit(f"no results of the last {hours:g} hours in {target / 'criterion'}; run `make bench` first")
    for group, rows in groups.items():
        print(f"## {group}\n\n| work | median | 95 % of medians | rate |\n|---|---|---|---|")
        for name, middle, low, high, speed in rows:
            print(f"| {name} | {duration(middle)} | {duration(low)} - {duration(high)} | {speed} |")
        print()
    print(f"{os.cpu_count()} cores of {processor()}, {platform.system()}; criterion, 100 samples each.")


if __name__ == "__main__":
    main()
