"""Samplers: in which order a dataset is read, and how indices are grouped to batches.

A shuffle depends on its generator alone, or on one number of the global stream (`wengert.manual_seed`), from
which it makes a generator of its own. So neither prefetching nor what a training loop draws in between
changes it.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from wengert import _core
from wengert._core import Generator

__all__ = [
    "BatchSampler",
    "DistributedSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T_co = TypeVar("T_co", covariant=True)

# Indices drawn at once with replacement, so that endless samplers need no memory.
_DRAWN = 1024


class Sampler(Generic[T_co]):
    """What gives the indices of samples, or of batches, in the order in which they are read.

    Subclasses define `__iter__`, and `__len__` where the number of indices is known.

    Example:
        >>> class Backwards(wg.utils.data.Sampler):
        ...     def __init__(self, data):
        ...         self.data = data
        ...     def __iter__(self):
        ...         return iter(range(len(self.data) - 1, -1, -1))
        >>> list(wg.utils.data.DataLoader("abc", sampler=Backwards("abc"), batch_size=2))
        [['c', 'b'], ['a']]
    """

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(
            f"{type(self).__name__}: define __iter__(self), which returns an iterator over indices"
        )


class SequentialSampler(Sampler[int]):
    """The indices of a dataset in their order.

    Example:
        >>> list(wg.utils.data.SequentialSampler("abc"))
        [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """The indices of a dataset in random order.

    Args:
        data_source: the dataset, whose length is asked for.
        replacement: True draws each index independently of the others; False draws permutations, one after
            another where more indices are asked for than the dataset has.
        num_samples: how many indices come in an epoch; the length of the dataset if None.
        generator: where the order is drawn from; the global stream if None.

    Example:
        >>> sampler = wg.utils.data.RandomSampler("abcd")
        >>> sorted(sampler), len(sampler)
        ([0, 1, 2, 3], 4)
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = _flag("RandomSampler", "replacement", replacement)
        self._num_samples = num_samples
        self.generator = generator
        _count("RandomSampler", "num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many indices come in an epoch; the length of the dataset unless given."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        length, left = len(self.data_source), self.num_samples
        generator = self.generator or Generator().manual_seed(draw_seed())
        while left > 0:
            if self.replacement:
                drawn = _core.randint(0, length, (min(left, _DRAWN),), generator=generator, device="cpu")
            else:
                drawn = _core.randperm(length, generator=generator, device="cpu")[:left]
            left -= len(drawn)
            yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order, each once.

    Args:
        indices: a sequence.
        generator: where the order is drawn from; the global stream if None.

    Example:
        >>> sorted(wg.utils.data.SubsetRandomSampler([5, 2, 9]))
        [2, 5, 9]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for place in _core.randperm(len(self.indices), generator=self.generator, device="cpu").tolist():
            yield self.indices[place]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices `0..len(weights)` drawn with probabilities proportional to `weights`.

    Args:
        weights: numbers that are not negative; they need not sum to 1.
        num_samples: how many indices come in an epoch.
        replacement: False draws each index at most once.
        generator: where the indices are drawn from; the global stream if None.

    Example:
        >>> list(wg.utils.data.WeightedRandomSampler([0.0, 3.0, 0.0], 4))
        [1, 1, 1, 1]
    """

    def __init__(
        self, weights: Any, num_samples: int, replacement: bool = True, generator: Generator | None = None
    ) -> None:
        self.weights = _core.as_tensor(weights, dtype=_core.float64, device="cpu")
        if self.weights.ndim != 1:
            raise ValueError(
                "WeightedRandomSampler: weights in one axis expected, one of each sample, got shape "
                f"{tuple(self.weights.shape)}"
            )
        self.num_samples = _count("WeightedRandomSampler", "num_samples", num_samples)
        self.replacement = _flag("WeightedRandomSampler", "replacement", replacement)
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = _core.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` indices that come one after another from a sampler.

    Args:
        sampler: a `Sampler`, or any iterable over indices.
        batch_size: a positive number.
        drop_last: True leaves the last list out if it is shorter.

    Example:
        >>> list(wg.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
        [[0, 1], [2, 3], [4]]
        >>> list(wg.utils.data.BatchSampler(range(5), batch_size=2, drop_last=True))
        [[0, 1], [2, 3]]
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool) -> None:
        self.sampler = sampler
        self.batch_size = _count("BatchSampler", "batch_size", batch_size)
        self.drop_last = _flag("BatchSampler", "drop_last", drop_last)

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        number = len(self.sampler)  # type: ignore[arg-type]
        return number // self.batch_size if self.drop_last else -(-number // self.batch_size)


class DistributedSampler(Sampler[int]):
    """The indices of a dataset for one of several ranks: each rank reads its share, of the same length.

    All ranks draw the same order, and take every `num_replicas`-th index of it.

    Args:
        dataset: the dataset, whose length is asked for.
        num_replicas: the number of ranks; those of the program if None.
        rank: which of them this is; the program's own if None.
        shuffle: True draws a new order for each epoch that `set_epoch` names.
        seed: what the order depends on, together with the epoch; the same on all ranks.
        drop_last: True leaves out the last indices where they are not enough for all ranks; False repeats
            the first.

    Example:
        >>> from wengert.utils.data import DistributedSampler
        >>> [list(DistributedSampler("abcde", 2, rank, shuffle=False)) for rank in range(2)]
        [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            from wengert.distributed._group import world

            num_replicas = world().size if num_replicas is None else num_replicas
            rank = world().rank if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"DistributedSampler: rank is one of 0..{num_replicas - 1}, got {rank}")
        self.dataset = dataset
        self.num_replicas = _count("DistributedSampler", "num_replicas", num_replicas)
        self.rank = rank
        self.epoch = 0
        self.shuffle = _flag("DistributedSampler", "shuffle", shuffle)
        self.seed = seed
        self.drop_last = _flag("DistributedSampler", "drop_last", drop_last)

    @property
    def num_samples(self) -> int:
        """How many indices each rank reads."""
        length = len(self.dataset)
        return length // self.num_replicas if self.drop_last else -(-length // self.num_replicas)

    def __iter__(self) -> Iterator[int]:
        length, total = len(self.dataset), self.num_samples * self.num_replicas
        order = list(range(length))
        if self.shuffle:
            generator = Generator().manual_seed(self.seed + self.epoch)
            order = _core.randperm(length, generator=generator, device="cpu").tolist()
        # Longer than the dataset where there are more ranks than samples.
        return (order[i % length] for i in range(self.rank, total, self.num_replicas))

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Says which epoch comes; without it every epoch has the order of the first.

        Args:
            epoch: its number, the same on all ranks.

        Example:
            >>> sampler = wg.utils.data.DistributedSampler(range(100), 2, 0)
            >>> first = list(sampler)
            >>> sampler.set_epoch(1)
            >>> list(sampler) == first
            False
        """
        self.epoch = epoch


def draw_seed(generator: Generator | None = None) -> int:
    """A seed from a generator, or from the global stream."""
    return int(_core.randint(0, 2**63 - 1, (), dtype=_core.int64, generator=generator, device="cpu"))


def _count(function: str, name: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < 1:
        raise ValueError(f"{function}: {name} is a positive integer, got {value!r}")
    return int(value.__index__())


def _flag(function: str, name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{function}: {name} is True or False, got {value!r}")
    return value
