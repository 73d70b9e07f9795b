"""The layers, one file per family: affine, activation, normalisation, container, attention, loss.

PyTorch keeps them in files of other names. `from wengert.nn.modules.conv import _ConvNd` and its like find
the same classes: `_FILES` says under which names.
"""

import sys
from collections.abc import Iterable
from itertools import repeat
from types import ModuleType
from typing import Any

from .. import module as _module
from .aliases import alias

# PyTorch's file, ours where they lie, and the classes that have another name there, as base classes.
_FILES: dict[str, tuple[str, dict[str, str]]] = {
    "batchnorm": ("batch lazy", {"_NormBase": "_Channels"}),
    "channelshuffle": ("vision", {}),
    "conv": ("convolution lazy", {"_ConvNd": "_Conv", "_ConvTransposeNd": "_Transposed"}),
    "distance": ("vision", {}),
    "flatten": ("affine", {}),
    "fold": ("convolution", {}),
    "instancenorm": ("batch lazy", {}),
    "linear": ("affine lazy", {}),
    "pixelshuffle": ("vision", {}),
    "rnn": ("recurrent cells", {}),
    "sparse": ("affine vision", {}),
    "upsampling": ("vision", {}),
}


_ALIASES = {name: alias(name, *rest) for name, rest in _FILES.items()}


def _ntuple(n: int, name: str = "parse") -> Any:
    """A function that repeats a number `n` times, and makes a tuple of what is a sequence already."""

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


def _utils() -> ModuleType:
    """The module of tuples of sizes, as layers of a program's own use it."""
    module = ModuleType(f"{__name__}.utils", "Sizes that are a number, or one for each axis.")
    module.__dict__["_ntuple"] = _ntuple
    for n, name in enumerate(("_single", "_pair", "_triple", "_quadruple"), 1):
        module.__dict__[name] = _ntuple(n, name)
    return module


_ALIASES |= {"utils": _utils(), "module": _module}
sys.modules.update({f"{__name__}.{name}": module for name, module in _ALIASES.items()})


def __getattr__(name: str) -> Any:
    """Finds PyTorch's files as attributes, and layers by their own names."""
    if name in _ALIASES:
        return _ALIASES[name]
    from wengert import nn

    if name in nn.__all__:
        return getattr(nn, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
