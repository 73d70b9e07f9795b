"""Writes `losses.json`: the losses of the programs in PyTorch, JAX and autograd themselves.

    python tests/ported/make_losses.py

Run it in an environment with torch, jax, autograd and NumPy; wengert need not be there.
"""

import importlib.metadata
import json
import os
import time
from pathlib import Path

# Both are read at import. JAX keeps float64 only if it is told to; threads cost more than they bring at these
# sizes.
os.environ["JAX_ENABLE_X64"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

from run import LIBRARIES, execute, names


def main() -> None:
    """Writes the file, and prints how long each program took."""
    versions = {name: importlib.metadata.version(name).split("+")[0] for name in LIBRARIES}
    losses = {}
    for name in names():
        start = time.perf_counter()
        losses[name] = execute(name)
        print(f"{name}: {time.perf_counter() - start:.2f} s, {losses[name][0]:.6g} to {losses[name][-1]:.6g}")
    text = json.dumps({"versions": versions, "losses": losses}, indent=1)
    Path(__file__).with_name("losses.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
