"""How fast a GPU runs the library's kernels, beside the fastest copy and multiply-adds of that GPU.

    python -m benches.gpu [--only WORDS] [--runs N] [--small | --large] [--peer torch] [--output FILE]

Times are those of the GPU's own clock (`wengert.gpu.profile`): the kernels of a batch of calls, divided by
their number; the fastest of several batches counts. Without such a clock, and for a peer, it is the time
between two waits for the GPU. A row of copies is compared with the copy bandwidth of the same run, one of
products with its rate of float32 multiply-adds (`wengert.gpu.ceilings`), so products of halves may pass
100%. `gate` is what the project asks of itself on a large card, `goal` what it aims at; a software adapter
reaches neither. `error` is the largest error of a small instance against NumPy in float64, relative to the
largest element.
"""

import argparse
import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import wengert as wg

from . import gradients, host, structured
from .rows import ROWS, Row, Sizes

COLUMNS = ("kernel", "us", "rate", "ceiling", "of the ceiling", "gate", "goal", "error")


def calls_of(work: Callable[[], Any], wait: Callable[[], Any], seconds: float) -> int:
    """How many calls last about so long; warms up."""
    work()
    wait()
    start = time.perf_counter()
    work()
    wait()
    return max(1, min(1000, int(seconds / max(time.perf_counter() - start, 1e-7))))


def per_call(work: Callable[[], Any], wait: Callable[[], Any], runs: int, seconds: float = 0.1) -> float:
    """Seconds per call, of the fastest of `runs` batches that last about `seconds` each."""
    count = calls_of(work, wait, seconds)
    fastest = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        for _ in range(count):
            work()
        wait()
        fastest = min(fastest, (time.perf_counter() - start) / count)
    return fastest


def on_gpu(work: Callable[[], Any], runs: int, seconds: float = 0.1) -> float:
    """`per_call` of the kernels alone, by the clock of the GPU."""
    if not wg.gpu.info()["timestamps"]:
        return per_call(work, wg.gpu.synchronize, runs, seconds)
    count = calls_of(work, wg.gpu.synchronize, seconds)
    fastest = float("inf")
    for _ in range(runs):
        with wg.gpu.profile() as found:
            for _ in range(count):
                work()
        fastest = min(fastest, found.seconds / count)
    return fastest


def ceilings(sizes: Sizes, runs: int) -> dict[str, float]:
    """Bytes per second of a copy, operations per second of multiply-adds."""
    if wg.gpu.info()["timestamps"]:
        return wg.gpu.ceilings(size=sizes.bytes, runs=runs)
    x = wg.ones(sizes.bytes // 4, device="gpu")
    print("no clock for kernels: the ceiling of products is not measured", file=sys.stderr)
    return {"copy": 2 * sizes.bytes / per_call(x.clone, wg.gpu.synchronize, runs), "multiply": float("inf")}


def compared(row: Row) -> list[tuple[np.ndarray, np.ndarray]]:
    """The results of a small instance, each beside its reference."""
    arrays, reference = row.check()
    got = row.ready(wg, [wg.tensor(a, device="gpu") for a in row.given(arrays)])()
    got = got if isinstance(got, tuple) else (got,)
    expected = reference if isinstance(reference, tuple) else (reference,)
    return [(a.detach().cpu().double().numpy(), b) for a, b in zip(got, expected, strict=True)]


def error_of(row: Row) -> float:
    """The largest error of a small instance, relative to the largest element of the reference."""
    return max(float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)) for a, b in compared(row))


def inputs_of(row: Row, sizes: Sizes) -> tuple[list[np.ndarray], float]:
    """The inputs in the dtype of the row, and the work."""
    arrays, work = row.inputs(sizes)
    return row.given(arrays), work


def measured(row: Row, sizes: Sizes, runs: int, ceiling: dict[str, float]) -> list[str]:
    """The cells of a row."""
    arrays, work = inputs_of(row, sizes)
    call = row.ready(wg, [wg.tensor(a, device="gpu") for a in arrays])
    taken = max(on_gpu(call, runs), 1e-9)
    name, per, unit = ("copy", 1e9, "GB/s") if row.unit == "bytes" else ("multiply", 1e12, "TFLOP/s")
    rate, top = work / taken, ceiling[name]
    return [
        row.name,
        f"{taken * 1e6:.4g}",
        f"{rate / per:.3g} {unit}",
        f"{top / per:.3g} {unit}",
        f"{rate / top:.1%}",
        row.gate,
        row.goal,
        f"{error_of(row):.1e}",
    ]


def peer(name: str | None) -> Any:
    """The peer's module if it can run here; says why where it cannot."""
    if name is None:
        return None
    try:
        torch = importlib.import_module(name)
    except ImportError:
        print(f"--peer {name}: it is not installed here; install it with support of CUDA", file=sys.stderr)
        return None
    if not torch.cuda.is_available():
        print(
            f"--peer {name}: version {torch.__version__} finds no CUDA device, so there is no column of it",
            file=sys.stderr,
        )
        return None
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    return torch


def peer_seconds(torch: Any, row: Row, sizes: Sizes, runs: int) -> float:
    """Seconds of the same call in torch on its GPU."""
    arrays, _ = inputs_of(row, sizes)
    wide = [a.astype(np.int64) if a.dtype == np.int32 else a for a in arrays]
    call = row.ready(torch, [torch.tensor(a, device="cuda") for a in wide])
    return per_call(call, torch.cuda.synchronize, runs)


def emit(lines: list[str], cells: list[str]) -> None:
    """Adds a line of the table, and prints it."""
    lines.append(" | ".join(cells).join(("| ", " |")))
    print(lines[-1], flush=True)


def table(rows: list[Row], costs: list[host.Cost], sizes: Sizes, runs: int, torch: Any) -> list[str]:
    """Measure, print and return lines of Markdown."""
    found = wg.gpu.info()
    ceiling = ceilings(sizes, runs)
    lines = [
        f"# {found['adapter']}",
        "",
        f"{found['backend']}, {found['driver']}; wengert {wg.__version__}. Made by `python -m benches.gpu`.",
        *(["It computes on the CPU: no graphics hardware."] if found["device_type"] == "software" else []),
        "",
        f"Copy {ceiling['copy'] / 1e9:.4g} GB/s; multiply-adds {ceiling['multiply'] / 1e12:.3g} TFLOP/s.",
        "",
    ]
    print("\n".join(lines), flush=True)
    if rows:
        emit(lines, [*COLUMNS, *(["torch, us"] if torch else [])])
        emit(lines, ["---"] * (len(COLUMNS) + bool(torch)))
    for row in rows:
        try:
            cells = measured(row, sizes, runs, ceiling)
        except (wg.DeviceError, MemoryError) as problem:
            cells = [row.name, "", f"not measured: {problem}", "", "", row.gate, row.goal, ""]
        if torch:
            cells.append(f"{peer_seconds(torch, row, sizes, runs) * 1e6:.4g}")
        emit(lines, cells)
        wg.gpu.empty_cache()
    if costs:
        lines.append("")
        print()
        emit(lines, ["between host and GPU", "time", "rate", "gate", "goal"])
        emit(lines, ["---"] * 5)
    for cost in costs:
        call, moved = cost.make(sizes)
        taken = per_call(call, wg.gpu.synchronize, runs) / cost.each
        rate = f"{moved / taken / 1e9:.3g} GB/s" if moved else ""
        emit(lines, [cost.name, f"{taken * 1e6:.4g} us", rate, cost.gate, cost.goal])
    return lines


def main() -> int:
    """Measure what was asked for."""
    about, _, columns = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        description=about, epilog=columns[columns.index("Times are") :], prog="python -m benches.gpu"
    )
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--runs", type=int, default=5, help="batches of each row; the fastest counts (5)")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument(
        "--small", action="store_true", help="sizes for a software adapter, where it is the default"
    )
    sizes.add_argument("--large", action="store_true", help="sizes for a card, where it is the default")
    parser.add_argument("--peer", choices=("torch",), help="a column of the same calls in PyTorch on CUDA")
    parser.add_argument("--output", type=Path, help="a Markdown file for the table")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error(f"--runs is at least 1, got {options.runs}")
    if options.output is not None and not options.output.absolute().parent.is_dir():
        parser.error(f"--output: there is no folder {options.output.absolute().parent}")
    if not wg.gpu.adapters():
        print(
            "no GPU and no software adapter: install a Vulkan driver, such as mesa-vulkan-drivers",
            file=sys.stderr,
        )
        return 1
    small = options.small or (wg.gpu.info()["device_type"] == "software" and not options.large)
    wanted = options.only.lower()
    everything = [*ROWS, *structured.ROWS, *gradients.ROWS]
    rows = [row for row in everything if wanted in row.name.lower()]
    costs = [cost for cost in host.COSTS if wanted in cost.name.lower()]
    if not rows and not costs:
        parser.error(f"--only: no row has {options.only!r} in its name")
    lines = table(rows, costs, Sizes.of(small), options.runs, peer(options.peer))
    if options.output is not None:
        options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
