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
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert.safetensors import load_file, safe_open, save_file

from ._group import Group, resolve_group
from ._trees import Shard, StateDescription, rebuild_state
from ._values import gather_values

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


def _divide_tensors(tensors: Mapping[str, Tensor], count: int) -> list[list[str]]:
    """The names of tensors for each rank to write: large ones first, to whom has least."""
    names: list[list[str]] = [[] for _ in range(count)]
    filled = [0] * count
    for name in sorted(tensors, key=lambda name: (-tensors[name].nbytes, name)):
        rank = filled.index(min(filled))
        names[rank].append(name)
        filled[rank] += tensors[name].nbytes
    return names


def _flush_file(path: Path) -> None:
    """Returns when a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class _Writing:
    """One checkpoint while it is written."""

    def __init__(self, group: Group, path: Path) -> None:
        self.group, self.path = group, path
        self.unfinished = path.with_name(path.name + _UNFINISHED)
        self.state, self.has_begun = StateDescription(), False
        self.file = f"model-{group.rank + 1:05d}-of-{group.size:05d}.safetensors"

    def together(self, action: Callable[[], Any]) -> list[Any]:
        """What `action` returns on each rank; where it raises on one, this raises on all."""
        found, failure = None, None
        try:
            found = action()
        except Exception as error:
            failure = error
        every = gather_values([found, failure and f"{type(failure).__name__}: {failure}"], self.group)
        if failure is not None:
            raise failure
        for rank, (_, text) in enumerate(every):
            if text is not None:
                raise RuntimeError(f"checkpoint.save: {self.path} is not written, rank {rank} failed: {text}")
        return [value for value, _ in every]

    def prepare(self, state_dict: Any, keep: int | None) -> None:
        """Takes the state apart and makes the folder."""
        if keep is not None and (not isinstance(keep, int) or keep < 1):
            raise ValueError(
                f"checkpoint.save: keep= is a number of checkpoints from 1, or None, got {keep!r}"
            )
        if self.path.suffix == _UNFINISHED or not self.path.name:
            raise ValueError(f"checkpoint.save: {str(self.path)!r} is no name for a checkpoint")
        if self.path.exists():
            raise FileExistsError(
                f"checkpoint.save: {self.path} is there; save each step under a name of its own"
            )
        self.tree = self.state.describe(state_dict, "")
        if self.group.rank == 0:
            shutil.rmtree(self.unfinished, ignore_errors=True)
            self.unfinished.mkdir(parents=True)
            self.has_begun = True

    def check(self) -> None:
        """Raises on all ranks where they have other tensors, or shards that are not parts of one."""
        kind = lambda x, skipped: [x.dtype.name, *x.shape[skipped:]]
        own = {name: kind(x, 0) for name, x in self.state.whole.items()}
        shards = {name: [x.begin, len(x.tensor), kind(x.tensor, 1)] for name, x in self.state.shards.items()}
        every = gather_values([own, shards], self.group)
        for rank, (others, theirs) in enumerate(every):
            first, parts = every[0]
            different = [n for n in {**first, **others} if first.get(n) != others.get(n)]
            different += parts.keys() ^ theirs.keys()
            if different:
                raise ValueError(
                    f"checkpoint.save: rank {rank} has another tensor {min(different)!r} than rank 0, or "
                    "only one of them has it; the state is the same on all ranks, other than in shards"
                )
        for name in shards:
            end = 0
            for begin, rows, like in sorted(theirs[name] for _, theirs in every):
                if like != shards[name][2]:
                    raise ValueError(f"checkpoint.save: shards of {name!r} have other dtypes or row shapes")
                if rows and begin != end:
                    raise ValueError(
                        f"checkpoint.save: a shard of {name!r} begins at row {begin}, where row {end} is "
                        "next; shards of all ranks together are the tensor"
                    )
                end += rows

    def write(self) -> list[Any]:
        """Writes this rank's file; returns what is in it."""
        keys = _divide_tensors(self.state.whole, self.group.size)[self.group.rank]
        own = {key: self.state.whole[key] for key in keys}
        parts = {key: shard.tensor.detach() for key, shard in self.state.shards.items()}
        path = self.unfinished / self.file
        save_file({key: x.contiguous() for key, x in (own | parts).items()}, path)
        _flush_file(path)
        return [self.file, keys, {key: x.begin for key, x in self.state.shards.items()}]

    def complete(self, files: list[Any], keep: int | None) -> None:
        """Writes the index, gives the folder its name and removes older ones; rank 0 does it."""
        if self.group.rank:
            return
        before = _on_complete(self.path.parent)
        index = {
            # Those that are written later have higher numbers.
            "order": before[0][0] + 1 if before else 0,
            "metadata": {"format": "wengert.distributed 1"},
            "weight_map": {key: file for file, keys, _ in files for key in keys},
            "shards": {key: [[file, begins[key]] for file, _, begins in files] for key in self.state.shards},
            "state": self.tree,
        }
        (self.unfinished / _INDEX).write_text(json.dumps(index))
        _flush_file(self.unfinished / _INDEX)
        _flush_file(self.unfinished)
        self.unfinished.rename(self.path)
        _flush_file(self.path.parent)
        if keep is not None:
            for _, old in before[keep - 1 :]:
                old.rename(old.with_name(old.name + _UNFINISHED))
            for left in self.path.parent.glob("*" + _UNFINISHED):
                shutil.rmtree(left)


def save(
    state_dict: Any,
    checkpoint_id: str | os.PathLike[str],
    *,
    keep: int | None = None,
    process_group: Group | None = None,
) -> None:
    """Writes a state as the folder `checkpoint_id`; every rank calls it.

    Where it raises on one rank it raises on all, and nothing is left.

    Args:
        state_dict: dicts, lists and tuples of tensors, shards, numbers and texts; other than in shards, it is
            the same on all ranks.
        checkpoint_id: a folder that is not there yet, such as `run/step-100`.
        keep: how many checkpoints the folder around it keeps, those written last; None for all. What programs
            that were killed left there is removed too.
        process_group: the ranks; None for all.

    Raises:
        FileExistsError: where `checkpoint_id` is there.
        TypeError: for something else in the state.
        ValueError: for shards that overlap or leave gaps, and for a `keep` below 1.
        RuntimeError: where another rank has failed.

    Example:
        >>> import tempfile
        >>> from wengert.distributed import checkpoint
        >>> folder = tempfile.mkdtemp()
        >>> checkpoint.save({"weight": wg.ones(2), "step": 3}, f"{folder}/step-3")
        >>> checkpoint.load(checkpoint.latest(folder))
        {'weight': tensor([1., 1.]), 'step': 3}
    """
    group, path = resolve_group("checkpoint.save", process_group), Path(checkpoint_id)
    writing = _Writing(group, path)
    try:
        writing.together(lambda: writing.prepare(state_dict, keep))
        writing.check()
        files = writing.together(writing.write)
        writing.together(lambda: writing.complete(files, keep))
    except Exception:
        if group.rank == 0 and writing.has_begun:
            shutil.rmtree(writing.unfinished, ignore_errors=True)
        raise


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

    return rebuild_state(index["state"], tensors)


def _order(path: Path) -> int | None:
    """The place of a checkpoint among those of its folder, in the order in which they were written; None for
    one that a program at work has just removed."""
    try:
        found: int = json.loads((path / _INDEX).read_text()).get("order", -1)
    except FileNotFoundError:
        return None
    return found


def _on_complete(folder: Path) -> list[tuple[int, Path]]:
    """The checkpoints of a folder with their order, the one that was written last first."""
    found = [path.parent for path in folder.glob(f"*/{_INDEX}") if path.parent.suffix != _UNFINISHED]
    orders = [(order, path) for path in found if (order := _order(path)) is not None]
    # Names decide among copies, and where an older version wrote.
    numbers = lambda path: [int(digits) for digits in re.findall(r"\d+", path.name)]
    return sorted(orders, key=lambda at: (at[0], numbers(at[1]), at[1].name), reverse=True)


def latest(folder: str | os.PathLike[str]) -> Path | None:
    """Returns the checkpoint of a folder that was written last; None if there is none.

    Args:
        folder: the folder around checkpoints.

    Example:
        >>> wg.distributed.checkpoint.latest("no such run")
    """
    return next((path for _, path in _on_complete(Path(folder))), None)
