"""From samples to a batch: `default_collate` puts what stands at one place of every sample into one
tensor."""

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from wengert import _core
from wengert._core import Tensor

__all__ = ["default_collate", "default_convert"]


def default_collate(batch: Sequence[Any]) -> Any:
    """Returns a batch of samples of one structure, with a new first axis that counts samples.

    - Tensors, NumPy arrays and numbers become a tensor of their dtype.
    - int and bool become a tensor of int64 or bool, float one of float64.
    - str and bytes stay as they are, in a list or tuple.
    - Dictionaries and other mappings become one with a batch at each key of the first sample.
    - Named tuples become one with a batch in each field.
    - Tuples, lists and other sequences become a list, or a sequence of the same kind, with a batch at each
      place.

    Raises:
        ShapeError: where tensors or arrays differ in shape, or sequences in length; it says which sample, and
            the key or place within.
        ValueError: without samples.
        TypeError: for anything else; give the `DataLoader` a `collate_fn` of your own.

    Example:
        >>> wg.utils.data.default_collate([(1, 0.5, "a"), (2, 0.25, "b")])
        [tensor([1, 2]), tensor([0.50, 0.25], dtype=float64), ('a', 'b')]
        >>> wg.utils.data.default_collate([{"x": wg.ones(2)}, {"x": wg.zeros(2)}])
        {'x': tensor([[1., 1.],
                [0., 0.]])}
    """
    if len(batch) == 0:
        raise ValueError("default_collate: at least one sample expected, got none")
    return _collated(batch, "")


def default_convert(data: Any) -> Any:
    """Returns data with tensors in place of NumPy arrays and numbers, within dictionaries and sequences too.

    Anything else is left as it is; tuples become lists. A `DataLoader` with `batch_size=None` does this to a
    sample.

    Example:
        >>> import numpy as np
        >>> wg.utils.data.default_convert({"x": np.arange(3), "name": "a"})
        {'x': tensor([0, 1, 2]), 'name': 'a'}
    """
    if isinstance(data, Tensor | str | bytes):
        return data
    if isinstance(data, np.ndarray | np.generic):
        return _core.as_tensor(data, device="cpu") if data.dtype.kind in _NUMBERS else data
    if isinstance(data, Mapping):
        return _mapping(data, {key: default_convert(data[key]) for key in data})
    if _is_named(data):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence):
        return _sequence(data, [default_convert(value) for value in data])
    return data


# Kinds of NumPy's dtypes that tensors have too.
_NUMBERS = "biufc"


def _collated(batch: Sequence[Any], place: str) -> Any:
    """The batch of what stands at one place of the samples; the place is for errors."""
    first = batch[0]
    if isinstance(first, str | bytes):
        return batch
    for kinds, make in _LEAVES:
        if isinstance(first, kinds):
            return make(batch, place)
    if isinstance(first, Mapping):
        return _mapping(first, {key: _at(batch, key, place) for key in first})
    if isinstance(first, Sequence):
        for number, sample in enumerate(batch):
            if not isinstance(sample, Sequence) or len(sample) != len(first):
                raise _core.ShapeError(
                    f"default_collate: sample {number}{place} is {_described(sample)}, sample 0 is "
                    f"{_described(first)}; pad them in a collate_fn of your own"
                )
        parts = [_collated(column, f"{place}[{i}]") for i, column in enumerate(zip(*batch))]
        if _is_named(first):
            return type(first)(*parts)
        return parts if isinstance(first, tuple) else _sequence(first, parts)
    raise _not_collated(first, place)


def _at(batch: Sequence[Any], key: Any, place: str) -> Any:
    """The batch of what stands at a key of the samples."""
    for number, sample in enumerate(batch):
        if not isinstance(sample, Mapping) or key not in sample:
            raise KeyError(f"default_collate: sample {number}{place} has no {key!r}, which sample 0 has")
    return _collated([sample[key] for sample in batch], f"{place}[{key!r}]")


def _tensors(batch: Sequence[Any], place: str) -> Tensor:
    _check(batch, place, Tensor, lambda x: tuple(x.shape))
    return _core.stack(list(batch))


def _arrays(batch: Sequence[Any], place: str) -> Tensor:
    if batch[0].dtype.kind not in _NUMBERS:
        raise _not_collated(batch[0], place)
    _check(batch, place, (np.ndarray, np.generic), lambda x: tuple(x.shape))
    return _core.as_tensor(np.stack(batch), device="cpu")


def _floats(batch: Sequence[Any], place: str) -> Tensor:
    _check(batch, place, (int, float, np.generic), lambda x: ())
    return _core.tensor(list(batch), dtype=_core.float64, device="cpu")


def _integers(batch: Sequence[Any], place: str) -> Tensor:
    _check(batch, place, (int, float, np.generic), lambda x: ())
    return _core.tensor(list(batch), device="cpu")


_LEAVES: list[tuple[Any, Callable[[Sequence[Any], str], Tensor]]] = [
    (Tensor, _tensors),
    (np.ndarray | np.generic, _arrays),
    (float, _floats),
    (int, _integers),
]


def _check(batch: Sequence[Any], place: str, kinds: Any, shape: Callable[[Any], tuple[int, ...]]) -> None:
    """Checks that all are of one kind and shape."""
    expected = shape(batch[0])
    for number, sample in enumerate(batch):
        if not isinstance(sample, kinds):
            raise TypeError(
                f"default_collate: sample {number}{place} is {_described(sample)}, sample 0 is "
                f"{_described(batch[0])}; samples must be of one type"
            )
        if shape(sample) != expected:
            raise _core.ShapeError(
                f"default_collate: sample {number}{place} has shape {shape(sample)}, sample 0 has "
                f"{expected}; make them equal in the dataset, or pad them in a collate_fn of your own"
            )


def _described(value: Any) -> str:
    """What an error says that a sample is."""
    name = type(value).__name__
    article = "an" if name[0] in "aeiouAEIOU" else "a"
    is_long = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    return "None" if value is None else f"{article} {name}" + (f" of length {len(value)}" if is_long else "")


def _not_collated(value: Any, place: str) -> TypeError:
    """The error of something that has no batch."""
    kind = f" of dtype {value.dtype}" if isinstance(value, np.ndarray | np.generic) else ""
    return TypeError(
        f"default_collate: tensors, NumPy arrays, numbers, strings, dictionaries or sequences expected, but "
        f"sample 0{place} is {_described(value)}{kind}; use a collate_fn of your own"
    )


def _is_named(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _mapping(like: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    """A mapping of the kind of another one; a dictionary where that cannot be made."""
    try:
        if not isinstance(like, MutableMapping):
            return type(like)(values)  # type: ignore[call-arg]
        made = copy.copy(like)
        made.update(values)
        return made
    except TypeError:
        return values


def _sequence(like: Sequence[Any], values: list[Any]) -> Any:
    """A sequence of the kind of another one; a list where that cannot be made."""
    try:
        if not isinstance(like, MutableSequence):
            return type(like)(values)  # type: ignore[call-arg]
        made = copy.copy(like)
        for place, value in enumerate(values):
            made[place] = value
        return made
    except TypeError:
        return values
