"""What passes between host and GPU: launches, numbers, tensors, kernels. By the clock of the host."""

import atexit
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import wengert as wg

from . import launches
from .rows import Sizes, normal

#: Operations of a chain.
CHAIN = 100


@dataclass(frozen=True)
class Cost:
    """One cost."""

    name: str
    #: For these sizes a call, and the bytes that it moves (0: it is about latency).
    make: Callable[[Sizes], tuple[Callable[[], Any], int]]
    gate: str = ""
    goal: str = ""
    #: What is measured happens so often in a call.
    each: int = 1


def chain(sizes: Sizes) -> tuple[Callable[[], Any], int]:
    """Additions of four numbers, each of the result of the last."""
    x = wg.ones(4, device="gpu")

    def call() -> None:
        y = x
        for _ in range(CHAIN):
            y = y + x

    return call, 0


def number(sizes: Sizes) -> tuple[Callable[[], Any], int]:
    """A sum, and its value."""
    x = wg.ones(4, device="gpu")
    return lambda: x.sum().item(), 0


def upload(sizes: Sizes) -> tuple[Callable[[], Any], int]:
    """A tensor to the GPU."""
    x = wg.tensor(normal(sizes.bytes // 4))
    return lambda: x.to("gpu"), sizes.bytes


def download(sizes: Sizes) -> tuple[Callable[[], Any], int]:
    """A tensor to the host."""
    x = wg.ones(sizes.bytes // 4, device="gpu")
    return lambda: x.cpu(), sizes.bytes


#: Multiplies by a number of its own.
SHADER = """@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) i: vec3<u32>) {
  if (i.x < arrayLength(&x)) { y[i.x] = tanh(x[i.x]) * NUMBER; }
}
"""


def compiling(sizes: Sizes) -> tuple[Callable[[], Any], int]:
    """A kernel that there was not."""
    x, numbers = wg.ones(64, device="gpu"), itertools.count(1)
    return lambda: wg.gpu.kernel(SHADER.replace("NUMBER", f"{next(numbers)}.0"))(x), 0


def starting(sizes: Sizes) -> tuple[Callable[[], Any], int]:
    """A process that multiplies and reads the result, with its kernels on disk."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    environment = {**os.environ, "WENGERT_CACHE_DIR": folder}
    work = "import wengert as wg; x = wg.ones(64, 64, device='gpu'); (x @ x).softmax(-1).sum().item()"

    def call() -> None:
        subprocess.run([sys.executable, "-c", work], env=environment, check=True)

    return call, 0


def training(sizes: Sizes) -> tuple[Callable[[], Any], int]:
    """A step of the examples' GPT with AdamW, of the size of GPT-2 on a card, as a program."""
    large = {} if sizes.small else {"texts": 8, "layers": 12, "heads": 12, "width": 768, "block": 1024}
    return wg.jit(launches.gpt(False, 0.0, **large)), 0


COSTS = [
    Cost("dispatch: an operation from Python to its end, in a chain", chain, "15 us", "8 us", CHAIN),
    Cost("a number read back", number, "150 us", "60 us"),
    Cost("transfer from host to GPU", upload, "6 GB/s", "20 GB/s"),
    Cost("transfer from GPU to host", download, "6 GB/s", "20 GB/s"),
    Cost("a new kernel compiled", compiling, "15000 us", "5000 us"),
    Cost("a process started, its kernels on disk", starting, "400000 us", "150000 us"),
    Cost("a training step of a GPT", training, "258000 us", "172000 us"),
]
