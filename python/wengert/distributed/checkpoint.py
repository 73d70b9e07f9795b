"""Checkpoints that many ranks write together, and any number of ranks reads: `save`, `load`, `latest`.

A checkpoint is a folder: a file of safetensors from each rank, and an index that says where each tensor lies.
It gets its name when all of it is on the disk; a program that is killed before leaves what was there as it
was. Tensors are the same on all ranks, and each rank writes some of them; those that are divided among ranks
are given as a `Shard`, and each rank writes its own.

Example:
    >>> from wengert.distributed import checkpoint
    >>> import tempfile
    >>> folder, model = tempfile.mkdtemp(), wg.nn.Linear(2, 1)
    >>> checkpoint.save({"model": model.state_dict(), "step": 100}, f"{folder}/step-100", keep=2)
    >>> state = checkpoint.load(checkpoint.latest(folder))
    >>> state["step"], list(state["model"])
    (100, ['weight', 'bias'])
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert.safetensors import load_file, safe_open, save_file

from ._group import Group, chosen
from ._trees import Described, Shard, rebuilt
from ._values import told

__all__ = ["Shard", "Sharded", "latest", "load", "save"]
__dir__ = __all__.copy

_INDEX = "model.safetensors.index.json"
_UNFINISHED = ".unfinished"


class Sharded:
    """A tensor that was written in shards; rows are read when they are asked for.

    Args:
        parts: the file and the first row of each shard.
        name: the tensor's name in the files.
    """

    def __init__(self, parts: list[tuple[Path, int]], name: str) -> None:
        """Opens nothing."""
        self._parts, self._name = sorted(parts, key=lambda part: part[1]), name

    def rows(self, begin: int, end: int) -> Tensor:
        """Returns the rows from `begin` to `end`, which may be those of other ranks than now."""
        found: list[Tensor] = []
        for path, first in self._parts:
            with safe_open(path) as file:
                part = file.get_slice(self._name)
                low, high = max(begin - first, 0), min(end - first, part.get_shape()[0])
                if low < high or not found:
                    found.append(part[low : max(low, high)])
        return _core.cat(found)

    def whole(self) -> Tensor:
        """Returns all rows."""
        return self.rows(0, 1 << 62)


def _divided(tensors: Mapping[str, Tensor], count: int) -> list[list[str]]:
    """The names of tensors for each rank to write: large ones first, to whom has least."""
    names: list[list[str]] = [[] for _ in range(count)]
    filled = [0] * count
    for name in sorted(tensors, key=lambda name: (-tensors[name].nbytes, name)):
        rank = filled.index(min(filled))
        names[rank].append(name)
        filled[rank] += tensors[name].nbytes
    return names


def _flushed(path: Path) -> None:
    """Returns when a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def save(
    state_dict: Any,
    checkpoint_id: str | os.PathLike[str],
    *,
    keep: int | None = None,
    process_group: Group | None = None,
) -> None:
    """Writes a state as the folder `checkpoint_id`; every rank calls it.

    Args:
        state_dict: dicts, lists and tuples of tensors, shards, numbers and texts; other than in shards, it is
            the same on all ranks.
        checkpoint_id: a folder that is not there yet, such as `run/step-100`.
        keep: how many checkpoints the folder around it keeps, the newest; None for all. What programs that
            were killed left there is removed too.
        process_group: the ranks; None for all.

    Raises:
        FileExistsError: where `checkpoint_id` is there.
        TypeError: for something else in the state.

    Example:
        >>> import tempfile
        >>> from wengert.distributed import checkpoint
        >>> folder = tempfile.mkdtemp()
        >>> checkpoint.save({"weight": wg.ones(2), "step": 3}, f"{folder}/step-3")
        >>> checkpoint.load(checkpoint.latest(folder))
        {'weight': tensor([1., 1.]), 'step': 3}
    """
    group, path = chosen("checkpoint.save", process_group), Path(checkpoint_id)
    if path.exists():
        raise FileExistsError(f"checkpoint.save: {path} is there; save each step under a name of its own")
    writing = Described()
    tree = writing.described(state_dict, "")
    unfinished = path.with_name(path.name + _UNFINISHED)
    if group.rank == 0:
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
    group.barrier()
    name = f"model-{group.rank + 1:05d}-of-{group.size:05d}.safetensors"
    own = {key: writing.whole[key] for key in _divided(writing.whole, group.size)[group.rank]}
    parts = {key: shard.tensor.detach() for key, shard in writing.shards.items()}
    save_file({key: x.contiguous() for key, x in (own | parts).items()}, unfinished / name)
    _flushed(unfinished / name)
    written = told([name, list(own), {key: x.begin for key, x in writing.shards.items()}], group)
    if group.rank == 0:
        index = {
            "metadata": {"format": "wengert.distributed 1"},
            "weight_map": {key: file for file, keys, _ in written for key in keys},
            "shards": {key: [[file, begins[key]] for file, _, begins in written] for key in writing.shards},
            "state": tree,
        }
        (unfinished / _INDEX).write_text(json.dumps(index))
        _flushed(unfinished / _INDEX)
        _flushed(unfinished)
        unfinished.rename(path)
        _flushed(path.parent)
        if keep:
            for old in _complete(path.parent)[keep:]:
                old.rename(old.with_name(old.name + _UNFINISHED))
            for left in path.parent.glob("*" + _UNFINISHED):
                shutil.rmtree(left)
    group.barrier()


def load(checkpoint_id: str | os.PathLike[str]) -> Any:
    """Returns the state that `save` wrote, on any number of ranks; each rank reads what it uses.

    Tensors lie in the files until they are written to. What was saved in shards is a `Sharded`.

    Args:
        checkpoint_id: the folder.

    Example:
        >>> import tempfile
        >>> from wengert.distributed import checkpoint
        >>> folder = f"{tempfile.mkdtemp()}/last"
        >>> checkpoint.save([checkpoint.Shard(wg.arange(4), 0)], folder)
        >>> checkpoint.load(folder)[0].rows(1, 3)
        tensor([1, 2])
    """
    path = Path(checkpoint_id)
    index = json.loads((path / _INDEX).read_text())
    files: dict[str, dict[str, Tensor]] = {}

    def tensors(kind: str, name: str) -> Any:
        if kind == "sharded":
            return Sharded([(path / file, begin) for file, begin in index["shards"][name]], name)
        file = index["weight_map"][name]
        if file not in files:
            files[file] = load_file(path / file)
        return files[file][name]

    return rebuilt(index["state"], tensors)


def _complete(folder: Path) -> list[Path]:
    """The checkpoints of a folder, those with the highest numbers in their names first."""
    found = [path.parent for path in folder.glob(f"*/{_INDEX}") if path.parent.suffix != _UNFINISHED]
    numbers = lambda path: [int(digits) for digits in re.findall(r"\d+", path.name)]
    return sorted(found, key=lambda path: (numbers(path), path.name), reverse=True)


def latest(folder: str | os.PathLike[str]) -> Path | None:
    """Returns the checkpoint of a folder that has the highest number in its name; None if there is none.

    Args:
        folder: the folder around checkpoints.

    Example:
        >>> wg.distributed.checkpoint.latest("no such run")
    """
    return next(iter(_complete(Path(folder))), None)
