"""Datasets: what samples are read from, by index or one after another, and datasets made of others."""

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

from wengert import _core
from wengert._core import Generator, Tensor

__all__ = [
    "Dataset",
    "IterableDataset",
    "TensorDataset",
    "StackDataset",
    "Subset",
    "ConcatDataset",
    "ChainDataset",
    "random_split",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Indexed(Protocol[T_co]):
    """What serves as a dataset without being a `Dataset`: a list, for instance."""

    def __getitem__(self, index: int, /) -> T_co: ...


class Dataset(Generic[T_co]):
    """A dataset that is read by index. Subclasses define `__getitem__`, and `__len__` for most samplers.

    A subclass may define `__getitems__(indices)` as well, which returns the list of the samples of a whole
    batch. `a + b` is the dataset of both, one after the other.

    Example:
        >>> class Squares(wg.utils.data.Dataset):
        ...     def __getitem__(self, index):
        ...         return index**2
        ...     def __len__(self):
        ...         return 4
        >>> next(iter(wg.utils.data.DataLoader(Squares(), batch_size=3)))
        tensor([0, 1, 4])
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(
            f"{type(self).__name__}: define __getitem__(self, index), which returns one sample"
        )

    def __add__(self, other: "Dataset[T_co]") -> "ConcatDataset[T_co]":
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """A dataset that is read one sample after another. Subclasses define `__iter__`.

    Each worker of a `DataLoader` iterates over a copy of its own, so `__iter__` asks `get_worker_info` which
    part to give; without that every sample comes once per worker. `a + b` is the dataset of both, one after
    the other.

    Example:
        >>> class Count(wg.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         worker = wg.utils.data.get_worker_info()
        ...         first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        ...         return iter(range(first, 6, step))
        >>> list(wg.utils.data.DataLoader(Count(), batch_size=4))
        [tensor([0, 1, 2, 3]), tensor([4, 5])]
        >>> list(wg.utils.data.DataLoader(Count(), batch_size=4, num_workers=2))
        [tensor([0, 2, 4]), tensor([1, 3, 5])]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(
            f"{type(self).__name__}: define __iter__(self), which returns an iterator over samples"
        )

    def __add__(self, other: Dataset[T_co]) -> "ChainDataset":  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The samples `(x[i], y[i], ...)` of tensors with first axes of one length.

    A `DataLoader` without a collating function takes a batch from each tensor at once, which gives what
    collating the samples gives.

    Raises:
        ValueError: without tensors, or if their first axes differ.

    Example:
        >>> data = wg.utils.data.TensorDataset(wg.ones(3, 2), wg.arange(3))
        >>> len(data), data[1]
        (3, (tensor([1., 1.]), tensor(1)))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if not tensors:
            raise ValueError("TensorDataset: at least one tensor expected, got none")
        for number, tensor in enumerate(tensors):
            if tensor.ndim == 0:
                raise ValueError(f"TensorDataset: tensor {number} has no axes; the first one counts samples")
            if len(tensor) != len(tensors[0]):
                raise ValueError(
                    f"TensorDataset: tensor {number} has {len(tensor)} rows, tensor 0 has {len(tensors[0])}; "
                    "the first axes must be of one length"
                )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class StackDataset(Dataset[Any]):
    """The samples of several datasets side by side: tuples, or dictionaries where datasets are given by
    keyword.

    Raises:
        ValueError: without datasets, with some by position and some by keyword, or if their lengths differ.

    Example:
        >>> data = wg.utils.data.StackDataset(text=["a", "b"], label=[0, 1])
        >>> len(data), data[1]
        (2, {'text': 'b', 'label': 1})
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError(
                "StackDataset: datasets are given by position, which makes tuples, or by keyword, which "
                f"makes dictionaries; got {len(args)} and {len(kwargs)}"
            )
        self.datasets = args or kwargs
        named: dict[Any, Any] = dict(enumerate(args)) or dict(kwargs)
        first = next(iter(named))
        for name, dataset in named.items():
            if len(dataset) != len(named[first]):
                raise ValueError(
                    f"StackDataset: dataset {name!r} has {len(dataset)} samples, "
                    f"dataset {first!r} has {len(named[first])}; the lengths must be equal"
                )

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: Sequence[Any]) -> list[Any]:
        """Returns the samples of several indices, each dataset asked once if it has `__getitems__`."""
        if isinstance(self.datasets, dict):
            columns = [samples_of(dataset, indices) for dataset in self.datasets.values()]
            return [dict(zip(self.datasets, row)) for row in zip(*columns, strict=True)]
        return list(zip(*(samples_of(dataset, indices) for dataset in self.datasets), strict=True))

    def __len__(self) -> int:
        return len(
            next(iter(self.datasets.values())) if isinstance(self.datasets, dict) else self.datasets[0]
        )


class Subset(Dataset[T_co]):
    """The samples of a dataset at `indices`, in that order.

    Example:
        >>> list(wg.utils.data.Subset("abcdef", [4, 0, 2]))
        ['e', 'a', 'c']
    """

    def __init__(self, dataset: Dataset[T_co] | Indexed[T_co], indices: Sequence[int]) -> None:
        self.dataset: Any = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            sample: T_co = self.dataset[[self.indices[i] for i in index]]
            return sample
        sample = self.dataset[self.indices[index]]
        return sample

    def __getitems__(self, indices: Sequence[Any]) -> list[T_co]:
        """Returns the samples of several indices."""
        return samples_of(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset[T_co]):
    """Datasets one after the other, read by index.

    Raises:
        ValueError: without datasets.
        TypeError: for an `IterableDataset`, which has no indices; `ChainDataset` takes those.

    Example:
        >>> data = wg.utils.data.ConcatDataset(["ab", "cde"])
        >>> len(data), data[0], data[2], data[-1], data.cumulative_sizes
        (5, 'a', 'c', 'e', [2, 5])
    """

    datasets: list[Any]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Dataset[T_co] | Indexed[T_co]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset: at least one dataset expected, got none")
        for number, dataset in enumerate(self.datasets):
            if isinstance(dataset, IterableDataset):
                raise TypeError(
                    f"ConcatDataset: dataset {number} is an IterableDataset, which has no indices; "
                    "use ChainDataset"
                )
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Returns the numbers of samples up to the end of each dataset.

        Example:
            >>> wg.utils.data.ConcatDataset.cumsum(["ab", "cde"])
            [2, 5]
        """
        return list(itertools.accumulate(len(dataset) for dataset in sequence))

    def __getitem__(self, index: int) -> T_co:
        length = len(self)
        if not -length <= index < length:
            raise IndexError(f"ConcatDataset: index {index} is outside of a dataset of {length} samples")
        index %= length
        number = bisect.bisect_right(self.cumulative_sizes, index)
        sample: T_co = self.datasets[number][index - (self.cumulative_sizes[number - 1] if number else 0)]
        return sample

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset[Any]):
    """Iterable datasets one after the other.

    Raises:
        TypeError: on iteration, for a dataset that is not an `IterableDataset`.

    Example:
        >>> class Count(wg.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         return iter(range(3))
        >>> list(Count() + Count())
        [0, 1, 2, 0, 1, 2]
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for dataset in self._checked():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._checked())

    def _checked(self) -> Iterator[Any]:
        for number, dataset in enumerate(self.datasets):
            if not isinstance(dataset, IterableDataset):
                raise TypeError(
                    f"ChainDataset: dataset {number} is a {type(dataset).__name__}, an IterableDataset "
                    "expected; ConcatDataset takes datasets with indices"
                )
            yield dataset


def random_split(
    dataset: Dataset[T] | Indexed[T], lengths: Sequence[float], generator: Generator | None = None
) -> list[Subset[T]]:
    """Returns subsets of a dataset that share no sample, drawn at random.

    Args:
        dataset: with a length.
        lengths: how many samples each subset has, or which fractions of all: these sum to 1, are rounded
            down, and what is left over goes to the subsets in turn, one sample each.
        generator: where the order is drawn from; the global stream if None.

    Raises:
        ValueError: if the lengths do not sum to the length of the dataset, or a fraction is not in [0, 1].

    Example:
        >>> parts = wg.utils.data.random_split(range(10), [0.7, 0.3])
        >>> [len(part) for part in parts], sorted([*parts[0], *parts[1]]) == list(range(10))
        ([7, 3], True)
    """
    total = len(dataset)  # type: ignore[arg-type]
    are_fractions = math.isclose(sum(lengths), 1) and sum(lengths) <= 1
    counts = _counts(total, lengths) if are_fractions else [int(length) for length in lengths]
    if sum(counts) != total or min(counts) < 0 or not (are_fractions or counts == list(lengths)):
        raise ValueError(
            f"random_split: lengths {list(lengths)} given; numbers that sum to {total}, as many as there are "
            "samples, or fractions that sum to 1 expected"
        )
    order = _core.randperm(total, generator=generator, device="cpu").tolist()
    ends = itertools.accumulate(counts)
    return [Subset(dataset, order[end - count : end]) for count, end in zip(counts, ends)]


def _counts(total: int, fractions: Sequence[float]) -> list[int]:
    """How many of `total` samples go to each fraction."""
    for number, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(f"random_split: fraction {number} is {fraction}, between 0 and 1 expected")
    counts = [math.floor(total * fraction) for fraction in fractions]
    for number in range(total - sum(counts)):
        counts[number % len(counts)] += 1
    for number, count in enumerate(counts):
        if count == 0:
            warnings.warn(f"random_split: subset {number} has no samples", stacklevel=3)
    return counts


def samples_of(dataset: Any, indices: Sequence[Any]) -> list[Any]:
    """The samples of several indices, asked for at once if the dataset has `__getitems__`."""
    at_once = getattr(dataset, "__getitems__", None)
    if not callable(at_once):
        return [dataset[index] for index in indices]
    samples: list[Any] = at_once(indices)
    if len(samples) != len(indices):
        raise ValueError(
            f"{type(dataset).__name__}.__getitems__ returned {len(samples)} samples for {len(indices)} "
            f"indices"
        )
    return samples


def rows_of(dataset: Any, indices: Sequence[Any]) -> list[Tensor] | None:
    """The collated batch of a `TensorDataset`, or of a `Subset` of one, with one operation per tensor instead
    of one per sample; None for any other dataset.
    """
    while type(dataset) is Subset:
        dataset, indices = dataset.dataset, [dataset.indices[index] for index in indices]
    if type(dataset) is not TensorDataset:
        return None
    places = list(indices)
    if not places or any(type(i) is not int for i in places):
        return None
    return [tensor[places] for tensor in dataset.tensors]
