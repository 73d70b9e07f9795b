"""Programs beside the package as modules, for the tests that look inside them: examples, tools."""

import importlib.util
import json
import sys
import types
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples"
#: Losses of two examples in PyTorch, and its version; `tools/torch_losses.py` writes them.
PYTORCH = json.loads((ROOT / "tests" / "docs" / "pytorch_losses.json").read_text(encoding="utf-8"))


def module(name: str, folder: str = "examples") -> types.ModuleType:
    """A program, as a module."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / folder / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]
