"""States as tensors by name and a description in JSON: what is written to files and sent to ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from wengert._core import Tensor

__all__ = ["StateDescription", "Shard", "rebuild_state"]


class Shard(NamedTuple):
    """What one rank has of a tensor that is divided along its first axis.

    Args:
        tensor: the rows of this rank.
        begin: the number of the first of them in the whole tensor.
    """

    tensor: Tensor
    begin: int


class StateDescription:
    """Takes a state apart into tensors by name, and a description that JSON can hold."""

    def __init__(self) -> None:
        self.whole: dict[str, Tensor] = {}
        self.shards: dict[str, Shard] = {}
        # Tensors that are the same, such as tied weights, are written once.
        self.known: dict[Any, str] = {}

    def describe(self, value: Any, name: str) -> Any:
        if isinstance(value, Tensor):
            place = value.data_ptr(), str(value.dtype), tuple(value.shape), value.stride()
            if value.numel() and place in self.known:
                return {"tensor": self.known[place]}
            name = self.known[place] = self._free(name)
            self.whole[name] = value.detach()
            return {"tensor": name}
        if isinstance(value, Shard):
            name = self._free(name)
            self.shards[name] = value
            return {"sharded": name}
        if isinstance(value, Mapping):
            pairs = [[self._key(key, name), self._below(x, name, key)] for key, x in value.items()]
            return {"dict": pairs}
        if isinstance(value, list | tuple):
            parts = [self._below(x, name, i) for i, x in enumerate(value)]
            return {type(value).__name__: parts} if type(value) in (list, tuple) else {"tuple": parts}
        if value is None or isinstance(value, bool | int | float | str):
            return {"value": value}
        raise TypeError(
            f"{name or 'the state'} is a {type(value).__name__}; tensors, numbers, texts, "
            "and dicts, lists and tuples of them expected"
        )

    def _free(self, name: str) -> str:
        """A name that no other tensor has, and that means nothing to safetensors."""
        taken, number, found = {"__metadata__", *self.whole, *self.shards}, 1, name
        while found in taken:
            number, found = number + 1, f"{name}#{number + 1}"
        return found

    def _below(self, value: Any, name: str, key: Any) -> Any:
        return self.describe(value, f"{name}.{key}" if name else str(key))

    def _key(self, key: Any, name: str) -> Any:
        if not isinstance(key, str | int):
            raise TypeError(f"{name or 'the state'} has the key {key!r}; str or int expected")
        return key


def rebuild_state(described: Any, tensors: Any) -> Any:
    """The state of a description."""
    ((kind, value),) = described.items()
    if kind == "value":
        return value
    if kind in ("tensor", "sharded"):
        return tensors(kind, value)
    if kind == "dict":
        return {key: rebuild_state(below, tensors) for key, below in value}
    parts = [rebuild_state(below, tensors) for below in value]
    return parts if kind == "list" else tuple(parts)
