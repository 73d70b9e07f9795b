"""Which libraries take part, and how their work is wrapped."""

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

from clock import Work

TORCHLIKE = ("wengert", "torch")


def prepared(name: str, make: Callable[..., Work], *arguments: Any) -> Work:
    """Import a library with PyTorch's names and let it prepare its work."""
    return make(importlib.import_module(name), *arguments)


def torchlike(make: Callable[..., Work], *arguments: Any) -> dict[str, Callable[[], Work]]:
    """The same source for wengert and torch: they share their names."""
    return {name: partial(prepared, name, make, *arguments) for name in TORCHLIKE}


def pair(make: Callable[..., Work], make_jax: Callable[[], Work]) -> dict[str, Callable[[], Work]]:
    """wengert and torch, and JAX with its own source."""
    return {**torchlike(make), "jax jit": make_jax}


def jax_ready(function: Callable[..., Any], *arguments: Any) -> Work:
    """A JAX call that waits for its result; without this only the dispatch would be timed."""
    import jax

    return lambda: jax.block_until_ready(function(*arguments))


def versions() -> dict[str, str]:
    """The version of each library that is installed."""
    import importlib.metadata as metadata

    found = {}
    for name in ("wengert", "numpy", "torch", "jax", "autograd", "micrograd"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
