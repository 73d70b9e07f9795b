"""Training and all-reduce on two ranks with one core each, beside torch's DDP over gloo and mpi4py itself.

    python benches/peers/distributed.py [--rounds N] [--output FILE]

It starts itself with mpirun. In every round, all works take turns, and all ranks begin each of them together;
the median of the rounds counts. Without torch its columns are missing.
"""

import argparse
import importlib
import importlib.util
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gpt
import numpy as np
from libraries import versions
from run import THREAD_VARIABLES, processor

Work = Callable[[], object]
MEGABYTES = 100


def mlp(m: Any) -> tuple[Any, Any, Any]:
    """A small model and its data."""
    rng = np.random.default_rng(0)
    n = m.nn
    model = n.Sequential(n.Linear(64, 128), n.ReLU(), n.Linear(128, 128), n.ReLU(), n.Linear(128, 10))
    x, y = rng.standard_normal((32, 64), np.float32), rng.integers(0, 10, 32)
    return model, m.tensor(x), m.tensor(y)


def small_gpt(m: Any) -> tuple[Any, Any, Any]:
    """The GPT of the other tables."""
    return gpt.model(m), m.tensor(gpt.TEXT[:, :-1].copy()), m.tensor(gpt.TEXT[:, 1:].reshape(-1))


def step(m: Any, make: Callable[[Any], Any], wrap: Callable[[Any], Any]) -> Work:
    """Forward, cross-entropy, backward, Adam."""
    model, x, y = make(m)
    model = wrap(model)
    adam = m.optim.Adam(model.parameters())

    def work() -> None:
        adam.zero_grad()
        out = model(x)
        m.nn.functional.cross_entropy(out.reshape(-1, out.shape[-1]), y).backward()
        adam.step()

    return work


def bare(count: int) -> Work:
    """mpi4py's all-reduce of so many numbers."""
    from mpi4py import MPI

    sent, received = np.ones(count, np.float32), np.empty(count, np.float32)
    return lambda: MPI.COMM_WORLD.Allreduce(sent, received)


def connect_torch() -> Any:
    """torch with the same ranks, over gloo; None where it is not installed."""
    if importlib.util.find_spec("torch") is None:
        return None
    import socket

    import torch
    from mpi4py import MPI

    torch.set_num_threads(1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = MPI.COMM_WORLD.bcast(free.getsockname()[1], 0)
    address = f"tcp://127.0.0.1:{port}"
    ranks = {"rank": MPI.COMM_WORLD.Get_rank(), "world_size": MPI.COMM_WORLD.Get_size()}
    torch.distributed.init_process_group("gloo", init_method=address, **ranks)
    return torch


def works() -> Iterator[tuple[str, dict[str, Work], int]]:
    """What is timed, by row and column, and how many calls make one sample."""
    import wengert as wg

    wg.distributed.init_process_group()
    torch = connect_torch()
    libraries = [("wengert", wg)] + ([("torch", torch)] if torch else [])
    for name, make, calls in (("MLP", mlp, 20), ("GPT", small_gpt, 1)):
        columns: dict[str, Work] = {}
        for library, m in libraries:
            parallel = m.nn.parallel.DistributedDataParallel
            columns[f"{library} alone"] = step(m, make, lambda model: model)
            columns[f"{library} DDP"] = step(m, make, parallel)
        columns["mpi4py"] = bare(sum(p.numel() for p in make(wg)[0].parameters()))
        yield name, columns, calls
    columns = {"mpi4py": bare(MEGABYTES * 250_000)}
    for library, m in libraries:
        columns[library] = partial(m.distributed.all_reduce, m.ones(MEGABYTES * 250_000))
    yield f"{MEGABYTES} MB", columns, 1


def measure(rounds: int) -> dict[str, dict[str, float]]:
    """Medians in seconds, by row and column."""
    from mpi4py import MPI

    found = {}
    for name, columns, calls in works():
        seconds: dict[str, list[float]] = {column: [] for column in columns}
        for work in columns.values():
            work()
            work()
        for _ in range(rounds):
            for column, work in columns.items():
                MPI.COMM_WORLD.Barrier()
                start = time.perf_counter()
                for _ in range(calls):
                    work()
                seconds[column].append((time.perf_counter() - start) / calls)
        found[name] = {column: statistics.median(times) for column, times in seconds.items()}
    return found


def table(both: dict[str, dict[str, float]], one: dict[str, dict[str, float]]) -> list[str]:
    """The rows of the table: what is asked, the limit, and what was found."""

    def row(name: str, found: float, limit: float, what: str) -> str:
        shown = lambda t: f"{1e6 * t:,.0f} us" if t < 1e-3 else f"{1e3 * t:.1f} ms"
        return f"| {name} | {shown(found)} | {what}: {shown(limit)} | {'yes' if found <= limit else 'no'} |"

    small, large, sums, alone = both["MLP"], both["GPT"], both[f"{MEGABYTES} MB"], one["MLP"]
    lines = [
        row(
            "MLP step",
            small["wengert DDP"],
            small["wengert alone"] + 1.25 * small["mpi4py"],
            "alone + 1.25 x MPI",
        ),
        row("GPT step", large["wengert DDP"], 1.15 * large["wengert alone"], "1.15 x alone"),
        row(f"all-reduce of {MEGABYTES} MB", sums["wengert"], sums["mpi4py"] / 0.9, "mpi4py / 0.9"),
        row("MLP step of one rank", alone["wengert DDP"], 1.02 * alone["wengert alone"], "1.02 x alone"),
    ]
    if "torch DDP" in small:
        for name in ("MLP", "GPT"):
            lines.append(
                row(f"{name} step", both[name]["wengert DDP"], both[name]["torch DDP"], "torch's DDP")
            )
        lines += [row(f"all-reduce of {MEGABYTES} MB", sums["wengert"], sums["torch"], "torch's, by gloo")]
    return lines


def on_ranks(count: int, rounds: int) -> dict[str, dict[str, float]]:
    """The medians that so many ranks find."""
    command = [str(Path(sys.executable).parent / "mpirun"), "-bind-to", "core", "-n", str(count)]
    environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1")}
    done = subprocess.run(
        [*command, sys.executable, __file__, "--rank", "--rounds", str(rounds)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return dict(eval(done.stdout.splitlines()[-1]))


def main() -> int:
    """Measure and print, and write the table where `--output` says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--output", type=Path, help="file for the Markdown table")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        found = measure(options.rounds)
        from mpi4py import MPI

        if MPI.COMM_WORLD.Get_rank() == 0:
            print(found)
        return 0
    both, one = on_ranks(2, options.rounds), on_ranks(1, options.rounds)
    large = both["GPT"]
    hidden = 1 - (large["wengert DDP"] - large["wengert alone"]) / large["mpi4py"]
    peers = ", ".join(f"{name} {versions()[name]}" for name in ("wengert", "torch", "numpy"))
    text = "\n".join(
        [
            f"Two ranks with one core each of {processor()}; float32; {peers}.",
            "Made by `python benches/peers/distributed.py`.\n",
            "| work | wengert | limit | met |",
            "|---|---|---|---|",
            *table(both, one),
            f"\nOf the GPT's communication, {max(hidden, 0.0):.0%} is hidden behind backward.",
        ]
    )
    print(text)
    if options.output is not None:
        options.output.write_text(f"# Several ranks\n\n{text}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
