"""Modules that find names where these lie: PyTorch keeps its layers in files of other names."""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["alias", "found_in"]


def found_in(module: str, homes: str, others: dict[str, str] | None = None) -> Callable[[str], Any]:
    """A `__getattr__` for `module`, which looks in the files `homes` of this folder when it is asked.

    `others` are names that a thing has there, with those that it has here.
    """

    def find(name: str) -> Any:
        own = (others or {}).get(name, name)
        for home in homes.split():
            if name.startswith("__"):
                break
            found = import_module(f"{__package__}.{home}")
            if own in found.__dict__:
                return found.__dict__[own]
        raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)

    return find


def alias(name: str, homes: str, others: dict[str, str]) -> ModuleType:
    """A module of this folder without a file, by `found_in`."""
    module = ModuleType(f"{__package__}.{name}", f"PyTorch's name for {homes.replace(' ', ' and ')}.")
    module.__getattr__ = found_in(module.__name__, homes, others)  # type: ignore[method-assign]
    return module
