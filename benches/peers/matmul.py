"""Matrix products beside torch, NumPy and JAX, over sizes, layouts and dtypes, with one thread and with two.

    python benches/peers/matmul.py [--threads N] [--seconds S] [--only WORDS] [--output FILE]

Libraries take turns within a row; the fastest of many short samples counts, since other programs only ever
make one slower. One thread is timed by the processor's time of the whole process, two by the clock on the
wall. Ratios are wengert's speed over the peer's: above 1, wengert is faster.
"""

import argparse
import importlib
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clock import Work
from run import RESULTS, confine, processor

PEERS = ("torch", "numpy", "jax")
SAMPLE_SECONDS = 0.001


@dataclass(frozen=True)
class Case:
    """A product of `left` by `right`; a `T` in `layout` means that operand is the transpose of what is in
    memory."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    dtype: str = "float32"
    layout: str = "NN"
    backward: bool = False

    @property
    def name(self) -> str:
        """Shapes, dtype and layout."""
        shapes = " x ".join(str(list(shape)).replace(" ", "") for shape in (self.left, self.right))
        return f"{self.dtype} {shapes} {self.layout}{', forward + backward' if self.backward else ''}"

    @property
    def flops(self) -> float:
        """Multiplications and additions."""
        columns = self.right[-1] if len(self.right) > 1 else 1
        batch = 1
        for length in self.left[:-1]:
            batch *= length
        return 2.0 * batch * self.left[-1] * columns * (3 if self.backward else 1)


def cases() -> Iterator[Case]:
    """The rows of the table."""
    for n in (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096):
        yield Case((n, n), (n, n))
    for n in (16, 64, 256, 1024):
        for layout in ("NT", "TN", "TT"):
            yield Case((n, n), (n, n), layout=layout)
    for n in (8, 32, 128, 512, 1024, 2048):
        yield Case((n, n), (n, n), "float64")
    for n in (32, 128, 512, 1024, 2048):
        yield Case((n, n), (n, n), "bfloat16")
    for n in (128, 1024):
        yield Case((n, n), (n, n), "float16")
        yield Case((n, n), (n, n), "int32")
    yield Case((1024, 1024), (1024, 1024), backward=True)
    yield Case((256, 256), (256, 256), backward=True)
    for layout in ("NN", "NT"):
        yield Case((1, 1024), (1024, 1024), layout=layout)
        yield Case((32, 784), (784, 256), layout=layout)
        yield Case((8, 512), (512, 2048), layout=layout)
    yield Case((1024, 1024), (1024,))
    yield Case((1024, 1024), (1024,), layout="TN")
    yield Case((4096, 64), (64, 64))
    yield Case((20000, 10), (10, 4))
    yield Case((1024, 1), (1, 1024))
    yield Case((1_000_000,), (1_000_000,))
    yield Case((64, 8192), (8192, 64))
    yield Case((256, 16, 16), (256, 16, 16))
    yield Case((64, 128, 32), (64, 32, 128))
    yield Case((64, 128, 32), (64, 32, 128), layout="NT")


def shapes(case: Case) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shapes in memory."""

    def turned(shape: tuple[int, ...], letter: str) -> tuple[int, ...]:
        return (*shape[:-2], shape[-1], shape[-2]) if letter == "T" and len(shape) > 1 else shape

    return turned(case.left, case.layout[0]), turned(case.right, case.layout[1])


def torchlike(name: str, case: Case, a: Any, b: Any) -> Work:
    """The work in wengert or torch."""
    module = importlib.import_module(name)
    dtype = getattr(module, case.dtype)
    x, y = (module.tensor(value).to(dtype) for value in (a, b))
    if case.backward:
        x, y = x.requires_grad_(), y.requires_grad_()
        g = module.ones(case.left[0], case.right[1])

        def step() -> None:
            (x @ y).backward(g)
            x.grad = y.grad = None

        return step
    x = x.transpose(-1, -2) if case.layout[0] == "T" else x
    y = y.transpose(-1, -2) if case.layout[1] == "T" else y
    return lambda: x @ y


def numpylike(case: Case, a: Any, b: Any) -> Work:
    """The work in NumPy."""
    if case.backward or case.dtype == "bfloat16":
        raise NotImplementedError("NumPy has neither gradients nor bfloat16")
    if case.dtype in ("float16", "int32") and case.left[-1] > 256:
        raise NotImplementedError("a plain loop, seconds long")
    x, y = a.astype(case.dtype), b.astype(case.dtype)
    x = x.swapaxes(-1, -2) if case.layout[0] == "T" else x
    y = y.swapaxes(-1, -2) if case.layout[1] == "T" else y
    return lambda: x @ y


def jaxlike(case: Case, a: Any, b: Any) -> Work:
    """The work in JAX, jitted."""
    import jax
    import jax.numpy as jnp

    x, y = (jnp.asarray(value, dtype=case.dtype) for value in (a, b))

    def product(x: Any, y: Any) -> Any:
        x = jnp.swapaxes(x, -1, -2) if case.layout[0] == "T" else x
        y = jnp.swapaxes(y, -1, -2) if case.layout[1] == "T" else y
        return x @ y

    function = product
    if case.backward:
        g = jnp.ones((case.left[0], case.right[1]), dtype=case.dtype)
        function = lambda x, y: (lambda out, pull: (out, pull(g)))(*jax.vjp(product, x, y))
    run = jax.jit(function)
    return lambda: jax.block_until_ready(run(x, y))


def fastest(works: dict[str, Work], seconds: float, clock: Callable[[], float]) -> dict[str, float]:
    """Seconds per call by `clock`: the least of many samples, in turns."""
    best, calls = dict.fromkeys(works, float("inf")), {}
    for name, work in works.items():
        work()
        start = clock()
        work()
        calls[name] = max(1, int(SAMPLE_SECONDS / max(clock() - start, 1e-7)))
    end, rounds = time.perf_counter() + seconds, 0
    while rounds < 5 or time.perf_counter() < end:
        for name, work in works.items():
            start = clock()
            for _ in range(calls[name]):
                work()
            best[name] = min(best[name], (clock() - start) / calls[name])
        rounds += 1
    return best


def measure(case: Case, seconds: float, clock: Callable[[], float]) -> dict[str, float]:
    """Seconds per call of every library that has the work."""
    import numpy as np

    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, dtype=np.float32) for shape in shapes(case))
    if case.dtype.startswith("int"):
        a, b = (10 * a).round(), (10 * b).round()
    makers: dict[str, Callable[[], Work]] = {
        "wengert": lambda: torchlike("wengert", case, a, b),
        "torch": lambda: torchlike("torch", case, a, b),
        "numpy": lambda: numpylike(case, a, b),
        "jax": lambda: jaxlike(case, a, b),
    }
    works: dict[str, Work] = {}
    for name, maker in makers.items():
        try:
            works[name] = maker()
        except (ImportError, NotImplementedError):
            if name == "wengert":
                raise
    return fastest(works, seconds, clock)


def table(threads: int, seconds: float, only: str) -> str:
    """Measure all rows with so many threads; returns Markdown."""
    os.environ["JAX_ENABLE_X64"] = "1"
    threads = confine(threads)
    import wengert

    wengert.set_num_threads(threads)
    try:
        import torch

        torch.set_num_threads(threads)
    except ImportError:
        pass
    heads = ["product", "GFLOP/s", *(f"vs {peer}" for peer in PEERS)]
    lines = [
        f"## {threads} thread{'s' if threads > 1 else ''}",
        "",
        "| " + " | ".join(heads) + " |",
        "|---" * 5 + "|",
    ]
    for case in cases():
        if only.lower() not in case.name.lower():
            continue
        took = measure(case, seconds, time.process_time if threads == 1 else time.perf_counter)
        ratios = [f"{took[peer] / took['wengert']:.2f}" if peer in took else "" for peer in PEERS]
        line = [case.name, f"{case.flops / took['wengert'] / 1e9:.1f}", *ratios]
        print("  ".join(f"{cell:>9}" for cell in line[1:]), line[0], flush=True)
        lines.append("| " + " | ".join(line) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Measure with one thread and with two, each in a process of its own."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--threads", type=int)
    parser.add_argument("--seconds", type=float, default=0.4, help="per row")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--output", type=Path, default=RESULTS / "matmul.md")
    options = parser.parse_args()
    if options.threads is not None:
        options.output.write_text(table(options.threads, options.seconds, options.only), encoding="utf-8")
        return 0
    parts = []
    for threads in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            part = Path(folder) / "part.md"
            arguments = [*sys.argv, "--threads", str(threads), "--output", str(part)]
            if subprocess.call([sys.executable, *arguments]) != 0:
                return 1
            parts.append(part.read_text(encoding="utf-8"))
    about = (
        "GFLOP/s of wengert, and its speed over that of torch, NumPy and JAX (jitted): above 1, wengert is "
        "faster. The fastest of many short samples, in turns; processor time for one thread. "
        f"{processor()}, Python {platform.python_version()}; the "
        "machine was shared with other work. `make bench-matmul` repeats it.\n"
    )
    options.output.write_text("# Matrix products\n\n" + "\n".join([about, *parts]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
