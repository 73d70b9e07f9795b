"""Time the same work in wengert, NumPy, JAX, HIPS autograd, micrograd and torch, side by side.

    python benches/peers/run.py [--table small|single|large|programs|staged] [--rounds N] [--only WORDS]
    [--output DIR]

Each table runs in a process of its own, confined to as many cores as the table says, the same for every
library. Times are medians; ratios are wengert's time over the peer's (below 1: wengert is faster), taken in
each round, then the median over rounds. A library that is not installed, or lacks the work, is named as such.
"""

import argparse
import importlib
import os
import platform
import subprocess
import sys
from pathlib import Path

TABLES = {
    "small": ("Eager and small work, 1 thread", 1),
    "single": ("Large work, 1 thread", 1),
    "large": ("Large work, 2 threads", 2),
    "programs": ("Whole programs, 1 thread", 1),
    "staged": ("Staged programs, 1 thread", 1),
}
#: The columns of a table beside wengert's; times of first calls are a column for staged work.
PEERS = {"staged": ("eager", "jax jit", "torch compile")}
ALL_PEERS = ("numpy", "torch", "jax jit", "autograd", "micrograd")
RESULTS = Path(__file__).parent.parent / "results"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


def confine(threads: int) -> int:
    """Keep this process on `threads` cores; must come before the libraries are imported."""
    for name in THREAD_VARIABLES:
        os.environ[name] = str(threads)
    if not hasattr(os, "sched_setaffinity"):
        return threads
    cores = sorted(os.sched_getaffinity(0))[:threads]
    os.sched_setaffinity(0, cores)
    return len(cores)


def processor() -> str:
    """The model of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def cells(result, peers: tuple[str, ...], first: bool) -> list[str]:
    """One line of the table: our time, the target, whether it is met, each peer's time and the ratio, and the
    first calls in milliseconds.
    """
    ours = f"{result.median_us('wengert'):.3g}" if "wengert" in result.seconds else "not available"
    line = [result.row.name, ours, str(result.row.target), result.met()]
    for peer in peers:
        if peer not in result.seconds:
            line.append("")
        elif "wengert" in result.seconds:
            line.append(f"{result.median_us(peer):.3g} ({result.ratio(peer):.2f})")
        else:
            line.append(f"{result.median_us(peer):.3g}")
    if first:
        names = [name for name in ("wengert", *peers) if name != "eager"]
        shown = [f"{1e3 * result.first[name]:.3g}" if name in result.first else "" for name in names]
        line.append(" / ".join(shown).rstrip(" /"))
    return line


def table(name: str, rounds: int, only: str) -> str:
    """Measure one table, printing as it goes; returns Markdown."""
    title, threads = TABLES[name]
    threads = confine(threads)
    from clock import REST_SECONDS, measure
    from libraries import versions

    rows = [row for row in importlib.import_module(name).ROWS if only.lower() in row.name.lower()]
    peers = PEERS.get(name, ALL_PEERS)
    staged = ["first call, ms: wengert / jax / torch"] if name == "staged" else []
    heads = ["work", "wengert, us", "target", "met", *peers, *staged]
    lines = [f"## {title}", "", " | ".join(heads).join(("| ", " |")), "|---" * len(heads) + "|"]
    missing: list[str] = []
    short: list[str] = []
    for row in rows:
        result = measure(row, rounds, REST_SECONDS if threads > 1 else 0.0)
        line = cells(result, peers, bool(staged))
        lines.append(" | ".join(line).join(("| ", " |")))
        others = "  ".join(f"{head} {cell}" for head, cell in zip(heads[4:], line[4:], strict=True) if cell)
        print(f"{line[0]:<55} wengert {line[1]:>13}  target {line[2]:<12} {line[3]:<4} {others}", flush=True)
        if result.met() == "no":
            limit = row.limit() if callable(row.limit) else row.limit
            short.append(f"- {row.name}: {limit or 'not looked into yet'}.")
        for library, reason in result.absent.items():
            installed = versions().get(library.split()[0], "") != "not installed"
            if installed:
                missing.append(f"- {row.name}: {library}: {reason}")
                print(f"    {library}: {reason}", flush=True)
    shown = ", ".join(f"{library} {version}" for library, version in versions().items())
    lines += [
        "",
        "Times in microseconds, in parentheses wengert's time over the peer's.",
        f"{threads} core(s) of {processor()}, Python {platform.python_version()}; {shown}.",
    ]
    if short:
        lines += ["", "What limits the rows that fall short:", "", *short]
    if missing:
        lines += ["", "Not measured:", "", *missing]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run one table here, or each in a process of its own."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--table", choices=TABLES)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the Markdown tables")
    options = parser.parse_args()
    if options.table is None:
        return max(subprocess.call([sys.executable, *sys.argv, "--table", name]) for name in TABLES)
    text = table(options.table, options.rounds, options.only)
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / f"{options.table}.md"
    path.write_text(text, encoding="utf-8")
    print(f"\n{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
