"""Trains the GPT and the moons of `examples/` in PyTorch, from the weights that the tests set, and prints the
losses.

    python tools/torch_losses.py > tests/docs/pytorch_losses.json

Run it in an environment with torch and NumPy; wengert need not be there: the programs are read, and `wengert`
in their imports becomes `torch`. The tests train by the same two functions and compare with the file.
"""

import contextlib
import io
import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def fill(torch: Any, network: Any, values: Any) -> None:
    """Sets all parameters to what a function of name and shape says."""
    with torch.no_grad():
        for name, p in network.named_parameters():
            p.copy_(torch.tensor(values(name, tuple(p.shape)).astype(np.float32)))


def gpt_losses(torch: Any, gpt: Any, fused: bool) -> list[float]:
    """The losses of 20 steps on random bytes."""
    rng = np.random.default_rng(0)
    model = gpt.GPT(gpt.Config(layers=2, heads=2, width=32, block=32, fused=fused))
    fill(torch, model, lambda name, shape: rng.normal(0, 0.05, shape) + ("norm" in name and "weight" in name))
    optimizer = model.configure_optimizers(3e-3, 0.1)
    losses = []
    for batch in rng.integers(0, 256, (20, 8, 33)) // 8:
        _, loss = model(torch.tensor(batch[:, :-1]), torch.tensor(batch[:, 1:]))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def moons_losses(torch: Any, moons: Any) -> list[float]:
    """The losses of 100 steps on 100 points."""
    rng = np.random.default_rng(1)
    network = moons.Network()
    fill(torch, network, lambda _, shape: rng.uniform(-1, 1, shape))
    return moons.train(network, moons.tensor_loss, *moons.make_moons(100, 0.1, 1), 100)[0]


def ported(name: str) -> types.ModuleType:
    """An example, as the PyTorch program that it is but for its imports."""
    code = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    for ours, theirs in (("import wengert", "import torch"), ("from wengert", "from torch")):
        code = code.replace(f"\n{ours}", f"\n{theirs}")
    program = sys.modules[name] = types.ModuleType(name)
    exec(compile(code, f"{name}.py", "exec"), program.__dict__)
    return program


def main() -> None:
    """Prints them, with PyTorch's version."""
    import torch

    # What a program prints on its way is not for the file.
    with contextlib.redirect_stdout(io.StringIO()):
        gpt, moons = gpt_losses(torch, ported("gpt"), fused=True), moons_losses(torch, ported("moons"))
    print(json.dumps({"torch": torch.__version__.split("+")[0], "gpt": gpt, "moons": moons}, indent=1))


if __name__ == "__main__":
    main()
