"""Objects that are pickled and sent to all ranks."""

from __future__ import annotations

import io
import pickle
from typing import Any

from wengert import _core
from wengert.distributed._everyday.calls import (
    AnyGroup,
    resolve_root,
    run_operation,
)
from wengert.distributed._group import Group
from wengert.distributed._tensors import gather_tensors

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
]


def all_gather_object(object_list: list[Any], obj: Any, group: AnyGroup = None) -> None:
    """Writes the objects of all ranks into a list; they are pickled.

    Args:
        object_list: with a place for each rank.
        obj: whatever can be pickled.
        group: of `new_group`; all ranks if None.

    Example:
        >>> wg.distributed.init_process_group()
        >>> found = [None]
        >>> wg.distributed.all_gather_object(found, {"loss": 0.5})
        >>> found
        [{'loss': 0.5}]
        >>> wg.distributed.destroy_process_group()
    """

    def run(g: Group) -> None:
        if len(object_list) != g.size:
            raise ValueError(f"all_gather_object: a list of {g.size} places expected, got {len(object_list)}")
        text = pickle.dumps(obj)
        sizes = gather_tensors(_core.tensor(len(text)), g, "all_gather_object").tolist()
        found = bytearray(max(sizes) * g.size)
        g.all_gather(text.ljust(max(sizes), b"\0"), found, "all_gather_object")
        for i, size in enumerate(sizes):
            object_list[i] = pickle.loads(memoryview(found)[i * max(sizes) :][:size])

    run_operation(group, False, run)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: AnyGroup = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Writes the objects in the list of rank `src` into those of all others; they are pickled.

    Args:
        object_list: of the same length on all ranks.
        src: a rank of the default group.
        group: of `new_group`; all ranks if None.
        device: accepted for programs that give it.
        group_src: a rank of `group`, instead of `src`.

    Example:
        >>> wg.distributed.init_process_group()
        >>> wg.distributed.broadcast_object_list(["a", 1], src=0)
        >>> wg.distributed.destroy_process_group()
    """
    root = resolve_root("broadcast_object_list", "src", src, group_src, group)

    def run(g: Group) -> None:
        what = f"broadcast_object_list of {len(object_list)}"
        text = bytearray(pickle.dumps(list(object_list)) if g.rank == root else b"")
        size = bytearray(len(text).to_bytes(8, "little"))
        g.broadcast(size, root, what)
        if g.rank != root:
            text = bytearray(int.from_bytes(size, "little"))
        g.broadcast(text, root, what)
        if g.rank != root:
            object_list[:] = pickle.load(io.BytesIO(text))

    run_operation(group, False, run)
