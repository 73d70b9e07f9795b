"""Tensors that travel through a group of ranks, without derivatives.

A sum is not MPI's but the core's: every rank gets its part of the addends of all others, adds them in a tree,
and hands the result around. So every dtype can be added, the volume is that of a ring, and the bits are those
of `psum` under `vmap`.
"""

from __future__ import annotations

from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert.distributed._group import Group

__all__ = ["gather_tensors", "sum_tensors"]


def describe(name: str, x: Tensor) -> str:
    """What messages call an operation on such a tensor."""
    return f"{name} of {str(x.dtype).removeprefix('wengert.')}{list(x.shape)}"


def flatten_on_host(x: Tensor) -> Tensor:
    """The elements in one axis, in memory that MPI can read."""
    return x.detach().cpu().contiguous().reshape(-1)


def as_bytes(x: Tensor) -> Any:
    """The memory of a flat tensor, as an array of bytes."""
    return x.view(_core.uint8).numpy()


def gather_tensors(x: Tensor, group: Group, what: str | None = None) -> Tensor:
    """Returns the tensors of all ranks, stacked along a new first axis."""
    found = _core.empty((group.size, x.numel()), dtype=x.dtype)
    group.all_gather(
        as_bytes(flatten_on_host(x)), as_bytes(found.reshape(-1)), what or describe("all_gather", x)
    )
    return found.reshape(group.size, *x.shape).to(x.device)


def sum_tensors(x: Tensor, group: Group) -> Tensor:
    """Returns the sum of the tensors of all ranks, the same on each; without derivatives."""
    return _core._collective(x.detach(), "sum", None, group.members)
