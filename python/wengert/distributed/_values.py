"""Plain values and whole states that ranks tell each other."""

from __future__ import annotations

import json
from typing import Any

import wengert as wg

from ._flat import broadcast
from ._group import Group
from ._tensors import gather_tensors
from ._trees import StateDescription, rebuild_state

__all__ = ["broadcast_value", "broadcast_state", "gather_values"]


def gather_values(value: Any, group: Group) -> list[Any]:
    """What each rank says, in the order of ranks: whatever JSON can hold."""
    text = json.dumps(value).encode()
    lengths = gather_tensors(wg.tensor(len(text)), group).tolist()
    padded = wg.tensor(list(text.ljust(max(lengths))), dtype=wg.uint8)
    return [json.loads(bytes(row[:n].tolist())) for row, n in zip(gather_tensors(padded, group), lengths)]


def broadcast_value(value: Any, group: Group, root: int = 0) -> Any:
    """What the rank `root` says."""
    text = json.dumps(value).encode()
    length = bytearray(len(text).to_bytes(8, "little"))
    group.broadcast(length, root)
    buffer = bytearray(int.from_bytes(length, "little"))
    if group.rank == root:
        buffer[:] = text
    group.broadcast(buffer, root)
    return json.loads(buffer)


def broadcast_state(state: Any, group: Group, root: int) -> Any:
    """The state that the rank `root` has: tensors, numbers and texts in dicts, lists and tuples."""
    own = StateDescription()
    tree = own.describe(state, "")
    kinds = {name: [x.dtype.name, list(x.shape), str(x.device)] for name, x in own.whole.items()}
    tree, kinds = broadcast_value([tree, kinds], group, root)
    tensors = own.whole
    if group.rank != root:
        tensors = {
            name: wg.empty(tuple(shape), dtype=getattr(wg, dtype), device=device)
            for name, (dtype, shape, device) in kinds.items()
        }
    broadcast([tensors[name] for name in kinds], group, root)
    return rebuild_state(tree, lambda kind, name: tensors[name])
