"""Count the launches of whole steps on a GPU, one operation after another and as programs.

    python benches/gpu/launches.py                 every step, as a table
    python benches/gpu/launches.py --output FILE   and write it

Each runs on the adapter that there is (in software: WENGERT_GPU=software) under `wengert.gpu.profile`, after
three steps that compile its kernels and its program. Nothing is timed. The last table is kept in
benches/results/gpu_launches.md.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import wengert as wg
from wengert import Tensor, nn
from wengert.nn import functional as F

ROOT = Path(__file__).parents[2]
HEAD = """# Launches of whole steps

Counted by `python benches/gpu/launches.py` on {adapter}: the kernels that one step
launches, and the bytes of their operands, each once a launch: one operation after another (eager), and as a
program of `wengert.jit`.

| step | launches, eager | as a program | ratio | MB, eager | as a program |
|---|---|---|---|---|---|
"""

Step = Callable[[], object]


def data(*shape: int) -> Tensor:
    """Random numbers on the GPU."""
    draws = np.random.default_rng(0)
    return wg.tensor(draws.standard_normal(shape).astype(np.float32)).to("gpu")


def trained(model: nn.Module, loss: Callable[[], Tensor], clip: bool = False) -> Step:
    """A step of AdamW."""
    optimizer = wg.optim.AdamW(model.parameters(), lr=1e-3)

    def step() -> Tensor:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return value.detach()

    return step


def gpt(spelled_out: bool, dropout: float, texts: int = 2, **sizes: int) -> Step:
    """The GPT of the examples on so many texts, small but for `sizes`."""
    sys.path.insert(0, str(ROOT / "examples"))
    import gpt as example

    sizes = {"layers": 2, "heads": 2, "width": 32, "block": 32, **sizes}
    config = example.Config(**sizes, dropout=dropout, fused=not spelled_out)
    model = example.GPT(config).to("gpu")
    index = np.random.default_rng(0).integers(0, 256, (2, texts, config.block))
    x, y = (wg.tensor(part.astype(np.int32)).to("gpu") for part in index)
    return trained(model, lambda: model(x, y)[1], clip=True)


def perceptron() -> Step:
    """Two hidden layers, with functions and a loss of their own names."""
    net = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1)).to(
        "gpu"
    )
    x, y = data(128, 16), data(128, 1)
    return trained(net, lambda: F.mse_loss(net(x), y))


def convolutions() -> Step:
    """Three convolutions, functions behind them, and a classifier."""
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
    )
    net = nn.Sequential(net, nn.Conv2d(16, 32, 1), nn.GELU(), nn.Flatten(), nn.Linear(2048, 10)).to("gpu")
    x, y = data(4, 3, 16, 16), wg.arange(4, dtype=wg.int32, device="gpu")
    return trained(net, lambda: F.cross_entropy(net(x), y))


def equation() -> Step:
    """The residual of a differential equation: second derivatives of a network along its input."""
    net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)).to("gpu")
    x = wg.linspace(-1, 1, 64, device="gpu")[:, None]

    def loss() -> Tensor:
        u = lambda t: net(t[None])[0, 0]
        along = lambda t: wg.jvp(u, (t,), (wg.ones_like(t),))[1]
        second = wg.vmap(lambda t: wg.jvp(along, (t,), (wg.ones_like(t),))[1])(x)
        return ((second + wg.vmap(u)(x)) ** 2).mean()

    return trained(net, loss)


def written_out() -> Step:
    """A layer, dropout, and momentum with weight decay, in operations on tensors."""
    w = [data(32, 64), data(64), data(64, 1)]
    w = [(0.1 * p).detach().requires_grad_() for p in w]
    momentum = [wg.zeros_like(p) for p in w]
    x, y = data(128, 32), data(128, 1)

    def step() -> Tensor:
        h = F.dropout(wg.tanh(x @ w[0] + w[1]), 0.1)
        loss = F.huber_loss(h @ w[2], y)
        with wg.no_grad():
            for p, m, g in zip(w, momentum, wg.autograd.grad(loss, w), strict=True):
                m.copy_(0.9 * m + g + 0.01 * p)
                p.copy_(p - 0.05 * m / (1 + m.abs()))
        return loss.detach()

    return step


def chain() -> Step:
    """gelu(x) * sigmoid(y) + x, its sum and its gradients."""
    x, y = data(4096), data(4096)
    f = lambda x: (F.gelu(x) * wg.sigmoid(y) + x).sum()
    return lambda: wg.func.grad(f)(x)


STEPS: dict[str, Callable[[], Step]] = {
    "GPT, 2 layers, AdamW, clipped": lambda: gpt(False, 0.0),
    "the same with dropout": lambda: gpt(False, 0.1),
    "the same with attention spelled out": lambda: gpt(True, 0.1),
    "network of 3 layers, AdamW": perceptron,
    "network of 3 convolutions, AdamW": convolutions,
    "second derivatives of a network, AdamW": equation,
    "dropout and momentum written out": written_out,
    "gradient of gelu(x) * sigmoid(y) + x": chain,
}


def counted(step: Step) -> tuple[int, int]:
    """The launches of a step, and the bytes of their operands."""
    for _ in range(3):
        step()
    with wg.gpu.profile() as profile:
        step()
    return len(profile.launches), sum(launch.bytes for launch in profile.launches)


def main() -> None:
    """Prints the table, and writes it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="a file for the table")
    options = parser.parse_args()
    table = HEAD.format(adapter=wg.gpu.adapters()[0])
    print(table, end="")
    for name, make in STEPS.items():
        wg.manual_seed(0)
        eager = counted(make())
        staged = wg.jit(make())
        program = counted(staged)
        if staged.traces != 1:
            raise SystemExit(f"{name} is no program: {staged.why()}")
        row = f"| {name} | {eager[0]} | {program[0]} | {eager[0] / program[0]:.2f} "
        row += f"| {eager[1] / 1e6:.2f} | {program[1] / 1e6:.2f} |\n"
        print(row, end="", flush=True)
        table += row
    if options.output:
        options.output.write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
