"""`DataLoader`: batches of a dataset, made here or by workers."""

import functools
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from wengert._core import Generator

from . import workers
from .collating import default_collate, default_convert
from .dataset import Dataset, Indexed, IterableDataset
from .fetching import END, Job
from .sampler import BatchSampler, RandomSampler, SequentialSampler, draw_seed

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

get_worker_info = workers.get_worker_info

T_co = TypeVar("T_co", covariant=True)

# What an iterator was made from, so that it would not notice a change.
_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
_THREADS = "threads"


class _Endless:
    """Requests to an `IterableDataset`, which looks at their number alone."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[T_co]):
    """Batches of a dataset's samples, in an order that a sampler says, made here or by workers ahead of time.

    Args:
        dataset: a `Dataset`, or anything with `__getitem__` and `__len__`; or an `IterableDataset`.
        batch_size: samples of a batch; None gives samples one by one.
        shuffle: True reads the samples in a new random order in every epoch.
        sampler: gives the indices of the samples, in place of `shuffle`.
        batch_sampler: gives the indices of whole batches, in place of `batch_size`, `shuffle`, `sampler` and
            `drop_last`.
        num_workers: how many workers make batches; 0 makes them where they are asked for.
        collate_fn: makes a batch of a list of samples; `default_collate` if None (`default_convert`, of one
            sample, without batches).
        pin_memory: accepted, and changes nothing.
        drop_last: True leaves the last batch out if it is smaller.
        timeout: for how many seconds a worker's batch is waited for; 0 is for ever.
        worker_init_fn: called with the worker's number in each worker, once, after its seeds are set.
        multiprocessing_context: how worker processes start: `"fork"`, `"spawn"`, `"forkserver"` or a context
            of `multiprocessing`; what `multiprocessing.set_start_method` chose if None, else "fork" on Linux.
            `"threads"` makes the workers threads of this process, which share the dataset, and start at once.
        generator: where orders and seeds are drawn from; the global stream if None.
        prefetch_factor: how many batches each worker may be ahead; 2 if None.
        persistent_workers: True keeps the workers, and their datasets, from one epoch to the next.
        pin_memory_device: accepted, and changes nothing.
        in_order: False gives the batches of workers as they come.

    The order of samples does not depend on the workers. A worker process starts Python's, NumPy's and this
    library's random numbers from a seed of its own in every epoch; threads share those of the program.

    Raises:
        ValueError, TypeError: for arguments that exclude each other or are out of range.
        RuntimeError: on iteration, if a worker died or did not answer in time. An error of a worker is raised
            as it is, with the number of the worker and its traceback in the text.

    Example:
        >>> data = [(i, float(i)) for i in range(5)]
        >>> loader = wg.utils.data.DataLoader(data, batch_size=2, drop_last=True)
        >>> len(loader), list(loader)[1]
        (2, [tensor([2, 3]), tensor([2., 3.], dtype=float64)])
        >>> loader = wg.utils.data.DataLoader(data, batch_size=5, shuffle=True, num_workers=2)
        >>> [sorted(x.tolist()) for x, y in loader]
        [[0, 1, 2, 3, 4]]
    """

    def __init__(
        self,
        dataset: Dataset[T_co] | Indexed[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        data: Any = dataset
        is_iterable = isinstance(data, IterableDataset)
        if is_iterable:
            _check_iterable(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("DataLoader: sampler and shuffle exclude each other: a sampler is the order")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "DataLoader: batch_sampler excludes batch_size, shuffle, sampler and drop_last: it gives "
                    "the indices of whole batches"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("DataLoader: drop_last without batches (batch_size=None) has nothing to drop")
        if sampler is None and is_iterable:
            sampler = _Endless()
        elif sampler is None:
            sampler = RandomSampler(data, generator=generator) if shuffle else SequentialSampler(data)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate
        self.dataset = data
        self.batch_size = batch_size
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.collate_fn = collate_fn
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.drop_last = drop_last
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self._iterator: _WorkerIterator | None = None
        self._is_made = True

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and self.__dict__.get("_is_made"):
            raise ValueError(
                f"DataLoader: {name} cannot be changed once the loader is made; make another DataLoader"
            )
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """How workers start: a context of `multiprocessing`, `"threads"`, or None."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None and self.num_workers == 0:
            raise ValueError("DataLoader: multiprocessing_context needs workers, but num_workers is 0")
        self._context = context if context in (None, _THREADS) else _checked_context(context)

    def __iter__(self) -> "_Iterator":
        if self.num_workers == 0:
            return _Iterator(self)
        if not self.persistent_workers:
            return _WorkerIterator(self)
        if self._iterator is None or not self._iterator.is_usable:
            self._iterator = _WorkerIterator(self)
        else:
            self._iterator.begin(self)
        return self._iterator

    def __len__(self) -> int:
        return self._length()()

    def _length(self) -> Callable[[], int]:
        """The function that counts the batches, which does not hold the loader."""
        if not isinstance(self.dataset, IterableDataset):
            requests: Any = self._requests()
            return lambda: len(requests)
        return functools.partial(_number_of_batches, self.dataset, self.batch_size, self.drop_last)

    def _requests(self) -> Iterable[Any]:
        """What gives the requests of an epoch: indices of batches or, without batches, of samples."""
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def _job(self) -> Job:
        return Job(
            self.dataset,
            self.collate_fn,
            self.batch_sampler is not None,
            self.drop_last,
            self.worker_init_fn,
            self.num_workers,
        )


class _Iterator(Iterator[Any]):
    """The batches of one epoch, each made when it is asked for."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._start(loader)
        self._fetch = loader._job().fetcher()

    def _start(self, loader: DataLoader[Any]) -> None:
        """Begins an epoch."""
        # Drawn without workers too, so that the streams do not depend on their number.
        self._seed = draw_seed(loader.generator)
        self._requests = iter(loader._requests())
        self._length = loader._length()
        self._given = 0
        self._said: int | None = None
        self._is_iterable = isinstance(loader.dataset, IterableDataset)

    def __len__(self) -> int:
        return self._length()

    def __next__(self) -> Any:
        batch = self._next()
        self._given += 1
        if self._is_iterable:
            self._compare_length()
        return batch

    def _next(self) -> Any:
        batch = self._fetch(next(self._requests))
        if batch is END:
            raise StopIteration
        return batch

    def _compare_length(self) -> None:
        """Warns where an `IterableDataset` gives more than its length says, the sign of workers without
        parts."""
        if self._said is None:
            try:
                self._said = len(self)
            except (TypeError, NotImplementedError):
                self._said = sys.maxsize
        if self._given == self._said + 1:
            warnings.warn(
                f"DataLoader: the dataset's length makes {self._said} batches, but there are more; where "
                "workers iterate, __iter__ gives each its own part (see get_worker_info)",
                stacklevel=3,
            )


class _WorkerIterator(_Iterator):
    """The batches of one epoch, made by workers ahead of time; of epoch after epoch if the workers
    persist."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._timeout = loader.timeout
        self._ahead: int = loader.prefetch_factor or 1
        self._in_order = loader.in_order
        self._persists = loader.persistent_workers
        if loader.multiprocessing_context == _THREADS:
            self._pool: Any = workers.Threads(loader._job())
        else:
            context = loader.multiprocessing_context or _default_context()
            self._pool = workers.Processes(loader._job(), context)
        # When the iterator is dropped, and when the program ends.
        self._end = weakref.finalize(self, self._pool.close)
        #: Workers in the order of the requests that wait for an answer.
        self._asked: list[int] = []
        self.begin(loader)

    @property
    def is_usable(self) -> bool:
        """Whether the workers live, and belong to this process."""
        return bool(self._pool.is_usable)

    def begin(self, loader: DataLoader[Any]) -> None:
        """Begins an epoch; what the workers still do for the one before is waited for."""
        while self._asked:
            self._receive()
        self._start(loader)
        self._active = list(range(loader.num_workers))
        for worker in self._active:
            self._pool.send(worker, (workers.EPOCH, self._seed + worker))
        self._ask()

    def _ask(self) -> None:
        """Gives requests to the workers that have least to do, until all have enough."""
        while self._active:
            worker = min(self._active, key=self._asked.count)
            if self._asked.count(worker) >= self._ahead:
                return
            try:
                request = next(self._requests)
            except StopIteration:
                return
            self._pool.send(worker, (workers.FETCH, request))
            self._asked.append(worker)

    def _receive(self) -> tuple[int, Any]:
        """The next answer, and whose it is."""
        waiting = self._asked[:1] if self._in_order else sorted(set(self._asked))
        try:
            worker, answer = self._pool.receive(waiting, self._timeout)
        except TimeoutError:
            raise RuntimeError(
                f"DataLoader: no batch came from worker {waiting[0]} within timeout={self._timeout} seconds"
            ) from None
        self._asked.remove(worker)
        return worker, answer

    def _next(self) -> Any:
        if self._asked and not self.is_usable:
            raise RuntimeError("DataLoader: the workers of this iterator ended; iterate over the loader anew")
        while self._asked:
            worker, answer = self._receive()
            if answer is END and worker in self._active:
                self._active.remove(worker)
            self._ask()
            if isinstance(answer, workers.Failure):
                answer.reraise()
            if answer is not END:
                return answer
        if not self._persists:
            self._end()
        raise StopIteration


def _number_of_batches(dataset: Any, batch_size: int | None, drop_last: bool) -> int:
    """How many batches the length of an `IterableDataset` makes."""
    if batch_size is None:
        return len(dataset)
    return len(dataset) // batch_size if drop_last else -(-len(dataset) // batch_size)


def _default_context() -> Any:
    """What `multiprocessing.set_start_method` chose; else forks on Linux, and Python's choice elsewhere."""
    import multiprocessing

    is_chosen = multiprocessing.get_start_method(allow_none=True) is not None
    return multiprocessing.get_context(None if is_chosen or sys.platform != "linux" else "fork")


def _checked_context(context: Any) -> Any:
    """A context of `multiprocessing`, by its name too."""
    import multiprocessing
    from multiprocessing.context import BaseContext

    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError(
                f"DataLoader: multiprocessing_context is one of {[*methods, _THREADS]}, got {context!r}"
            )
        return multiprocessing.get_context(context)
    if not isinstance(context, BaseContext):
        raise TypeError(
            "DataLoader: multiprocessing_context is a context of multiprocessing or the name of one, got "
            f"{type(context).__name__}"
        )
    return context


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent: bool) -> None:
    """Checks the settings of workers against each other."""
    if isinstance(num_workers, bool) or not isinstance(num_workers, int) or num_workers < 0:
        raise ValueError(f"DataLoader: num_workers is 0 or a positive integer, got {num_workers!r}")
    if timeout < 0:
        raise ValueError(f"DataLoader: timeout is 0, for ever, or a number of seconds, got {timeout}")
    if prefetch_factor is not None and prefetch_factor < 1:
        raise ValueError(f"DataLoader: prefetch_factor is a positive integer, got {prefetch_factor}")
    if num_workers == 0:
        for name, value in (
            ("timeout", timeout),
            ("prefetch_factor", prefetch_factor),
            ("persistent_workers", persistent),
        ):
            if value:
                raise ValueError(f"DataLoader: {name}={value} needs workers, but num_workers is 0")


def _check_iterable(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    """Checks that nothing says an order of an `IterableDataset`."""
    for name, value in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
        if value is not None:
            raise ValueError(
                f"DataLoader: an IterableDataset has an order of its own, so {name} is not taken, got "
                f"{value!r}"
            )
