"""Plain values that ranks tell each other: whatever JSON can hold, and texts of any length."""

from __future__ import annotations

import json
from typing import Any

import wengert as wg

from ._group import Group
from ._tensors import gathered

__all__ = ["agreed", "told"]


def told(value: Any, group: Group) -> list[Any]:
    """What each rank says, in the order of ranks."""
    text = json.dumps(value).encode()
    lengths = gathered(wg.tensor(len(text)), group).tolist()
    padded = wg.tensor(list(text.ljust(max(lengths))), dtype=wg.uint8)
    return [json.loads(bytes(row[:n].tolist())) for row, n in zip(gathered(padded, group), lengths)]


def agreed(value: Any, group: Group) -> Any:
    """What the rank 0 says."""
    text = json.dumps(value).encode()
    length = bytearray(len(text).to_bytes(8, "little"))
    group.broadcast(length, 0)
    buffer = bytearray(int.from_bytes(length, "little"))
    if group.rank == 0:
        buffer[:] = text
    group.broadcast(buffer, 0)
    return json.loads(buffer)
