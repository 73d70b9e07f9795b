"""Tensors as one vector per dtype and device, so that many travel in one message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import wengert as wg
from wengert._core import Tensor, _flatten_tensors as flatten_tensors, _unflatten_tensors as unflatten_tensors

from ._group import Group
from ._tensors import as_bytes, flatten_on_host

__all__ = ["broadcast", "flatten_tensors", "apply_flat", "unflatten_tensors"]


def apply_flat(function: Callable[[Tensor], Tensor], tensors: Sequence[Tensor]) -> list[Tensor]:
    """`function` of the vector of each dtype and device, taken apart again; the order is kept."""
    kinds: dict[Any, list[int]] = {}
    for i, tensor in enumerate(tensors):
        kinds.setdefault((str(tensor.dtype), str(tensor.device)), []).append(i)
    found: list[Any] = [None] * len(tensors)
    for places in kinds.values():
        own = [tensors[i] for i in places]
        for i, tensor in zip(places, unflatten_tensors(function(flatten_tensors(own)), own)):
            found[i] = tensor
    return found


def broadcast(tensors: Sequence[Tensor], group: Group, root: int = 0) -> None:
    """Gives tensors of all ranks the values of the rank `root`."""

    def sent(vector: Tensor) -> Tensor:
        there = flatten_on_host(vector)
        group.broadcast(as_bytes(there), root)
        return there.to(vector.device)

    if group.size > 1 and tensors:
        with wg.no_grad():
            for tensor, values in zip(tensors, apply_flat(sent, tensors)):
                tensor.copy_(values)
