"""Where a GPU stands: the adapter's own ceilings, then each kernel against them.

    python -m benches.gpu [--only WORDS] [--runs N] [--small | --large] [--peer torch] [--output FILE]

Times are those of the queue: a batch of calls between two waits for the GPU, divided by their number; the
fastest of several batches counts. A row of copies is compared with the copy bandwidth of the same run, a row
of products with the rate of fused multiply-adds. `gate` is what the project asks of itself on a large card,
`goal` what it aims at; a software adapter reaches neither. `error` is the largest error of a small instance
against NumPy in float64, relative to the largest element.
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

from .rows import ROWS, Row, Sizes

PROBE = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var a = x[id.x];
    var b = a + 0.1;
    var c = a + 0.2;
    var d = a + 0.3;
    for (var i = 0u; i < ROUNDS; i += 1u) {
        a = fma(a, 0.999, 0.001);
        b = fma(b, 0.999, 0.001);
        c = fma(c, 0.999, 0.001);
        d = fma(d, 0.999, 0.001);
    }
    out[id.x] = a + b + c + d;
}
"""


def per_call(work: Callable[[], Any], wait: Callable[[], Any], runs: int, seconds: float = 0.1) -> float:
    """Seconds per call, of the fastest of `runs` batches that last about `seconds` each."""
    work()
    wait()
    start = time.perf_counter()
    work()
    wait()
    count = max(1, min(1000, int(seconds / max(time.perf_counter() - start, 1e-7))))
    fastest = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        for _ in range(count):
            work()
        wait()
        fastest = min(fastest, (time.perf_counter() - start) / count)
    return fastest


def ceilings(sizes: Sizes, runs: int) -> dict[str, float]:
    """Bytes per second of a copy, FLOP per second of multiply-adds, seconds of a dispatch, of a read-back."""
    wait = wg.gpu.synchronize
    x = wg.ones(sizes.bytes // 4, device="gpu")
    copy = 2 * sizes.bytes / min(per_call(x.clone, wait, runs), per_call(lambda: -x, wait, runs))
    count, rounds = (1 << 20, 1024) if not sizes.small else (1 << 14, 64)
    probe = wg.gpu.kernel(PROBE.replace("ROUNDS", f"{rounds}u"), "x", groups=count // 256)
    start = wg.ones(count, device="gpu")
    multiply = 8.0 * count * rounds / per_call(lambda: probe(start), wait, runs)
    tiny = wg.ones(4, device="gpu")

    def chain() -> None:
        y = tiny
        for _ in range(100):
            y = y + tiny

    return {
        "copy": copy,
        "multiply": multiply,
        "dispatch": per_call(chain, wait, runs) / 100,
        "readback": per_call(lambda: (tiny + 1).sum().item(), wait, runs),
    }


def error_of(row: Row) -> float:
    """The largest error of a small instance, relative to the largest element of the reference."""
    arrays, reference = row.check()
    got = row.call(
        wg, *(wg.tensor(a.astype(np.float32) if a.dtype == np.float64 else a, device="gpu") for a in arrays)
    )
    got = got if isinstance(got, tuple) else (got,)
    expected = reference if isinstance(reference, tuple) else (reference,)
    worst = 0.0
    for a, b in zip(got, expected, strict=True):
        worst = max(
            worst, float(np.abs(a.cpu().numpy().astype(np.float64) - b).max() / max(np.abs(b).max(), 1e-30))
        )
    return worst


def rate_of(row: Row, work: float, taken: float, ceiling: dict[str, float]) -> tuple[str, float]:
    """The rate with its unit, and its share of the ceiling."""
    if row.unit == "bytes":
        return f"{work / taken / 1e9:.4g} GB/s", work / taken / ceiling["copy"]
    return f"{work / taken / 1e12:.3g} TFLOP/s", work / taken / ceiling["multiply"]


def peer_seconds(row: Row, sizes: Sizes, runs: int) -> float | None:
    """Seconds of the same call in torch on its GPU."""
    torch = importlib.import_module("torch")
    if not torch.cuda.is_available():
        return None
    arrays, _ = row.inputs(sizes)
    tensors = [torch.tensor(a, device="cuda") for a in arrays]
    return per_call(lambda: row.call(torch, *tensors), torch.cuda.synchronize, runs)


def table(rows: list[Row], sizes: Sizes, runs: int, peer: bool) -> list[str]:
    """Measure, print and return lines of Markdown."""
    found = wg.gpu.info()
    ceiling = ceilings(sizes, runs)
    lines = [
        f"# {found['adapter']}",
        "",
        f"{found['backend']}, {found['driver']}; wengert {wg.__version__}. Made by `python -m benches.gpu`.",
        "",
        f"Copy {ceiling['copy'] / 1e9:.4g} GB/s; multiply-adds {ceiling['multiply'] / 1e12:.3g} TFLOP/s; an operation "
        f"from Python to the queue {ceiling['dispatch'] * 1e6:.3g} us; a number read back "
        f"{ceiling['readback'] * 1e6:.3g} us.",
        "",
        "| kernel | us | rate | of the ceiling | gate | goal | error |" + (" torch, us |" if peer else ""),
        "|---" * (8 if peer else 7) + "|",
    ]
    print("\n".join(lines), flush=True)
    for row in rows:
        try:
            arrays, work = row.inputs(sizes)
            tensors = [wg.tensor(a, device="gpu") for a in arrays]
            taken = per_call(lambda t=tensors, r=row: r.call(wg, *t), wg.gpu.synchronize, runs)
            rate, share = rate_of(row, work, taken, ceiling)
            cells = [
                row.name,
                f"{taken * 1e6:.4g}",
                rate,
                f"{share:.0%}",
                row.gate,
                row.goal,
                f"{error_of(row):.1e}",
            ]
        except (wg.DeviceError, MemoryError) as problem:
            cells = [row.name, "", f"not measured: {problem}", "", row.gate, row.goal, ""]
        if peer:
            theirs = peer_seconds(row, sizes, runs)
            cells.append("no GPU" if theirs is None else f"{theirs * 1e6:.4g}")
        lines.append(" | ".join(cells).join(("| ", " |")))
        print(lines[-1], flush=True)
        wg.gpu.empty_cache()
    return lines


def main() -> int:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0], prog="python -m benches.gpu"
    )
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--runs", type=int, default=5, help="batches of each row")
    parser.add_argument(
        "--small", action="store_true", help="sizes for a software adapter, where it is the default"
    )
    parser.add_argument("--large", action="store_true", help="sizes for a card, where it is the default")
    parser.add_argument(
        "--peer", choices=("torch",), help="the same calls in this library, where it has a GPU"
    )
    parser.add_argument("--output", type=Path, help="a Markdown file for the table")
    options = parser.parse_args()
    if not wg.gpu.adapters():
        print(
            "no GPU and no software adapter: install a Vulkan driver, such as mesa-vulkan-drivers",
            file=sys.stderr,
        )
        return 1
    small = options.small or (wg.gpu.info()["device_type"] == "software" and not options.large)
    rows = [row for row in ROWS if options.only.lower() in row.name.lower()]
    lines = table(rows, Sizes.of(small), options.runs, options.peer is not None)
    if options.output is not None:
        options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
