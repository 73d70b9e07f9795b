"""Programs beside the package as modules, for the tests that look inside them: examples, tools."""

import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import wengert as wg

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples"


def module(name: str, folder: str = "examples") -> types.ModuleType:
    """A program, as a module."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / folder / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def fill(network: Any, values: Any) -> None:
    """Sets all parameters to what a function of name and shape says."""
    with wg.no_grad():
        for name, p in network.named_parameters():
            p.copy_(wg.tensor(values(name, tuple(p.shape)).astype(np.float32)))
