"""`DataLoader`: which batches come, in which order, against slices of lists; arguments; random orders and
seeds."""

import gc
import math
import random
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import wengert as wg
from wengert.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    SequentialSampler,
    Subset,
    TensorDataset,
    default_collate,
    get_worker_info,
)

#: No workers, processes, threads.
KINDS: list[dict[str, Any]] = [
    {},
    {"num_workers": 2},
    {"num_workers": 3, "prefetch_factor": 1},
    {"num_workers": 2, "persistent_workers": True},
    {"num_workers": 2, "multiprocessing_context": "threads"},
    {"num_workers": 3, "multiprocessing_context": "threads", "persistent_workers": True},
]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: " ".join(map(str, kind.values())) or "0")


class Shards(IterableDataset[int]):
    """The numbers below n; workers share them in turn, and worker 0 has `extra` more."""

    def __init__(self, n: int, extra: int = 0) -> None:
        self.n, self.extra = n, extra

    def __iter__(self) -> Iterator[int]:
        worker = get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        yield from range(first, self.n, step)
        if first == 0:
            yield from range(self.n, self.n + self.extra)


class Drawn(Dataset[list[float]]):
    """Numbers of three generators."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> list[float]:
        return [random.random(), wg.rand(()).item(), float(np.random.random())]  # noqa: NPY002


@every_kind
@pytest.mark.parametrize("drop_last", [False, True])
def test_batches_come_in_order(kind: dict[str, Any], drop_last: bool) -> None:
    loader = DataLoader(list(range(11)), batch_size=2, drop_last=drop_last, **kind)
    expected = [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]] + ([] if drop_last else [[10]])
    for _ in range(2):
        assert [batch.tolist() for batch in loader] == expected
    assert len(loader) == len(expected) == len(iter(loader))


@every_kind
def test_samples_without_batches(kind: dict[str, Any]) -> None:
    loader = DataLoader([np.array([i]) for i in range(5)], batch_size=None, **kind)
    batches = list(loader)
    assert all(isinstance(batch, wg.Tensor) for batch in batches)
    assert [batch.tolist() for batch in batches] == [[i] for i in range(5)]
    assert len(loader) == 5
    # The sampler may give batches of indices itself.
    sampler = BatchSampler(range(5), 2, False)
    rows = DataLoader(wg.arange(5) * 10, sampler=sampler, batch_size=None, **kind)
    assert [row.tolist() for row in rows] == [[0, 10], [20, 30], [40]]


@every_kind
def test_samplers(kind: dict[str, Any]) -> None:
    data = list(range(10, 20))
    loader = DataLoader(data, batch_size=2, sampler=[3, 1, 4, 1], **kind)
    assert [batch.tolist() for batch in loader] == [[13, 11], [14, 11]]
    loader = DataLoader(data, batch_sampler=[[0], [9, 8, 7], [1, 1]], **kind)
    assert [batch.tolist() for batch in loader] == [[10], [19, 18, 17], [11, 11]]
    assert len(loader) == 3
    named = DataLoader({"a": 1, "b": 2}, sampler=["b", "a"], batch_size=2, **kind)
    assert [batch.tolist() for batch in named] == [[2, 1]]


@every_kind
def test_collate_fn_and_batches_of_structures(kind: dict[str, Any]) -> None:
    data = [{"x": wg.full((2,), i), "y": i, "z": str(i)} for i in range(3)]
    (batch,) = DataLoader(data, batch_size=3, **kind)
    assert batch["x"].tolist() == [[0, 0], [1, 1], [2, 2]]
    assert batch["y"].tolist() == [0, 1, 2]
    assert list(batch["z"]) == ["0", "1", "2"]
    assert list(DataLoader([1, 2, 3], batch_size=2, collate_fn=sum, **kind)) == [3, 3]
    assert list(DataLoader([1, 2], batch_size=None, collate_fn=str, **kind)) == ["1", "2"]


@every_kind
def test_an_iterable_dataset(kind: dict[str, Any]) -> None:
    workers = kind.get("num_workers", 1)
    loader = DataLoader(Shards(13, extra=4), batch_size=2, **kind)
    lists = [list(range(worker, 13, workers)) for worker in range(workers)]
    lists[0] += range(13, 17)
    batches = [[part[i : i + 2] for i in range(0, len(part), 2)] for part in lists]
    turns = max(map(len, batches))
    expected = [part[turn] for turn in range(turns) for part in batches if turn < len(part)]
    for _ in range(2):
        assert [batch.tolist() for batch in loader] == expected
    loader = DataLoader(Shards(13, extra=4), batch_size=2, drop_last=True, **kind)
    assert [batch.tolist() for batch in loader] == [batch for batch in expected if len(batch) == 2]
    loader = DataLoader(Shards(3), batch_size=None, **kind)
    assert list(loader) == [0, 1, 2]
    with pytest.raises(TypeError, match=r"has no len\(\)"):
        len(loader)
    assert list(DataLoader(Shards(0), **kind)) == []


@pytest.mark.parametrize(("size", "drop_last"), [(4, False), (4, True), (None, False)])
def test_the_length_of_an_iterable_dataset(size: int | None, drop_last: bool) -> None:
    class Sized(Shards):
        def __len__(self) -> int:
            return 10

    loader = DataLoader(Sized(10), batch_size=size, drop_last=drop_last)
    assert (
        len(loader) == len(list(loader)) == {(4, False): 3, (4, True): 2, (None, False): 10}[size, drop_last]
    )
    with pytest.warns(UserWarning, match=r"the dataset's length makes .* batches, but there are more"):
        list(DataLoader(Sized(40), batch_size=size, drop_last=drop_last))


@pytest.mark.parametrize("context", [None, "threads"])
def test_batches_that_come_as_they_are_ready(context: str | None) -> None:
    loader = DataLoader(
        list(range(20)), batch_size=3, num_workers=3, in_order=False, multiprocessing_context=context
    )
    batches = sorted(batch.tolist() for batch in loader)
    assert batches == [list(range(i, min(i + 3, 20))) for i in range(0, 20, 3)]
    numbers = DataLoader(Shards(20, extra=9), num_workers=3, in_order=False, multiprocessing_context=context)
    assert sorted(batch.item() for batch in numbers) == list(range(29))


def test_rows_of_tensors_are_what_collating_gives() -> None:
    x, y = wg.arange(24).reshape(6, 4), wg.arange(6.0)
    data = TensorDataset(x, y)
    for dataset in (
        data,
        Subset(data, [5, 1, 2, 0]),
        Subset(Subset(data, [5, 1, 2]), wg.tensor([2, 0]).tolist()),
    ):
        for batch, indices in zip(
            DataLoader(dataset, batch_size=3), BatchSampler(range(len(dataset)), 3, False)
        ):
            slow = default_collate([dataset[i] for i in indices])
            assert isinstance(batch, list)
            assert [part.tolist() for part in batch] == [part.tolist() for part in slow]
            assert [part.dtype for part in batch] == [part.dtype for part in slow]

    class Doubled(TensorDataset):
        def __getitem__(self, index: Any) -> Any:
            return tuple(2 * part for part in super().__getitem__(index))

    (batch,) = DataLoader(Doubled(y), batch_size=6)
    assert batch[0].tolist() == [0, 2, 4, 6, 8, 10]


@every_kind
def test_an_iteration_goes_on_after_an_error(kind: dict[str, Any]) -> None:
    class Bad(Dataset[int]):
        def __getitem__(self, index: int) -> int:
            if index == 1:
                raise ZeroDivisionError("sample 1")
            return index

        def __len__(self) -> int:
            return 3

    iterator = iter(DataLoader(Bad(), **kind))
    assert next(iterator).item() == 0
    with pytest.raises(ZeroDivisionError, match="sample 1"):
        next(iterator)
    assert next(iterator).item() == 2
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(iterator)


# ---- random orders and seeds ----


@every_kind
def test_a_shuffle_is_a_permutation_that_depends_on_the_seed_alone(kind: dict[str, Any]) -> None:
    def epochs(**given: Any) -> tuple[list[list[int]], Any]:
        wg.manual_seed(11)
        loader = DataLoader(list(range(30)), batch_size=4, shuffle=True, **given)
        return [[i for batch in loader for i in batch.tolist()] for _ in range(2)], wg.get_rng_state()

    (first, second), state = epochs(**kind)
    assert sorted(first) == sorted(second) == list(range(30))
    assert first != second
    assert epochs() == ([first, second], state)


@every_kind
def test_a_generator_alone_decides(kind: dict[str, Any]) -> None:
    orders = []
    for seed, given in ((1, kind), (2, {})):
        wg.manual_seed(seed)
        state = wg.get_rng_state()
        loader = DataLoader(range(30), shuffle=True, generator=wg.Generator().manual_seed(5), **given)
        orders.append([batch.item() for _ in range(2) for batch in loader])
        assert wg.get_rng_state() == state
    assert orders[0] == orders[1]


@pytest.mark.parametrize("workers", [0, 2])
def test_draws_of_the_loop_change_no_order(workers: int) -> None:
    orders = []
    for draws in (False, True):
        wg.manual_seed(5)
        order = []
        sampler = wg.utils.data.RandomSampler(range(7), num_samples=20)
        for batch in DataLoader(range(7), sampler=sampler, num_workers=workers):
            order.append(batch.item())
            if draws:
                wg.rand(1)
        orders.append(order)
    assert orders[0] == orders[1]


def test_each_worker_process_has_numbers_of_its_own_that_depend_on_the_seed() -> None:
    def epochs(**given: Any) -> list[list[list[float]]]:
        wg.manual_seed(2)
        loader = DataLoader(Drawn(), batch_size=None, num_workers=2, **given)
        return [list(loader), list(loader)]

    first, second = epochs()
    numbers = [number for epoch in (first, second) for sample in epoch for number in sample]
    assert len(set(numbers)) == len(numbers)
    assert epochs() == [first, second]
    assert epochs(persistent_workers=True) == [first, second]
    assert epochs(prefetch_factor=1) == [first, second]


def test_workers_leave_the_streams_of_the_program_alone() -> None:
    def states() -> Any:
        state: Any = np.random.get_state()  # noqa: NPY002
        return random.getstate(), state[1].tolist()

    for kind in KINDS[1:]:
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        before = states()
        list(DataLoader(list(range(4)), **kind))
        assert before == states()


@pytest.mark.parametrize("kind", KINDS[1:])
def test_what_a_worker_knows_of_itself(kind: dict[str, Any]) -> None:
    class Info(Dataset[Any]):
        def __getitem__(self, index: int) -> Any:
            info = get_worker_info()
            assert info
            return info.id, info.num_workers, info.seed, info.dataset is self

        def __len__(self) -> int:
            return 12

    loader = DataLoader(Info(), batch_size=None, **kind)
    epochs = [[tuple(sample) for sample in loader] for _ in range(2)]
    workers = kind["num_workers"]
    for epoch in epochs:
        assert [sample[:2] for sample in epoch] == [(i % workers, workers) for i in range(12)]
        base = epoch[0][2]
        assert all(sample[2:] == (base + sample[0], True) for sample in epoch)
    assert epochs[0][0][2] != epochs[1][0][2]
    assert get_worker_info() is None


# ---- arguments ----


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (dict(num_workers=-1), "num_workers is 0 or a positive integer, got -1"),
        (dict(num_workers=1.0), "num_workers is 0 or a positive integer, got 1.0"),
        (dict(timeout=-1), "timeout is 0, for ever, or a number of seconds, got -1"),
        (dict(timeout=1), "timeout=1 needs workers, but num_workers is 0"),
        (dict(prefetch_factor=2), "prefetch_factor=2 needs workers"),
        (dict(prefetch_factor=0, num_workers=1), "prefetch_factor is a positive integer, got 0"),
        (dict(persistent_workers=True), "persistent_workers=True needs workers"),
        (dict(multiprocessing_context="fork"), "multiprocessing_context needs workers"),
        (dict(multiprocessing_context="forks", num_workers=1), "'threads'], got 'forks'"),
        (dict(sampler=[0], shuffle=True), "sampler and shuffle exclude each other"),
        (dict(batch_sampler=[[0]], batch_size=2), "batch_sampler excludes batch_size, shuffle, sampler"),
        (dict(batch_sampler=[[0]], shuffle=True), "batch_sampler excludes"),
        (dict(batch_sampler=[[0]], sampler=[0]), "batch_sampler excludes"),
        (dict(batch_sampler=[[0]], drop_last=True), "batch_sampler excludes"),
        (dict(batch_size=None, drop_last=True), r"drop_last without batches \(batch_size=None\)"),
        (dict(batch_size=0), "batch_size is a positive integer, got 0"),
        (dict(dataset=Shards(1), shuffle=True), "an IterableDataset has an order of its own, so shuffle"),
        (dict(dataset=Shards(1), sampler=[0]), r"so sampler is not taken, got \[0\]"),
        (dict(dataset=Shards(1), batch_sampler=[[0]]), "so batch_sampler is not taken"),
        (dict(dataset=[], shuffle=True), "num_samples is a positive integer, got 0"),
    ],
)
def test_arguments_that_do_not_fit(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        DataLoader(**{"dataset": [1, 2], **given})


def test_settings() -> None:
    with pytest.raises(TypeError, match="is a context of multiprocessing or the name of one, got int"):
        DataLoader([1], num_workers=1, multiprocessing_context=3)
    loader = DataLoader([1, 2, 3], batch_size=2, num_workers=1, pin_memory=True, pin_memory_device="x")
    for name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
        with pytest.raises(ValueError, match=f"DataLoader: {name} cannot be changed once the loader is made"):
            setattr(loader, name, 1)
    assert (loader.batch_size, loader.drop_last, loader.prefetch_factor, loader.num_workers) == (
        2,
        False,
        2,
        1,
    )
    assert isinstance(loader.sampler, SequentialSampler)
    assert isinstance(loader.batch_sampler, BatchSampler)
    assert loader.collate_fn is default_collate
    assert DataLoader[int].__origin__ is DataLoader  # type: ignore[attr-defined]
    assert DataLoader([1]).prefetch_factor is None
    assert list(DataLoader([])) == []
    assert math.isclose(DataLoader([1], num_workers=1, timeout=0.5).timeout, 0.5)
    loader.collate_fn = sum
    assert list(loader) == [3, 3]


def test_a_loader_and_its_iterator_are_freed_at_once() -> None:
    gc.disable()
    try:
        for kind in KINDS:
            data = Subset([1, 2, 3], [0, 1, 2])
            loader = DataLoader(data, **kind)
            for _ in loader:
                break
            alive = weakref.ref(data)
            del loader, data, _
            assert alive() is None
    finally:
        gc.enable()


def test_batches_of_indices_of_any_kind() -> None:
    data = TensorDataset(wg.arange(6.0))
    order = wg.tensor([3, 1, 5, 0, 2, 4])
    for batches in (
        order.split(2),
        [[3, 1], [5, 0], [2, 4]],
        [(3, 1), (5, 0), (2, 4)],
        order.reshape(3, 2).numpy(),
    ):
        found = [x.tolist() for (x,) in DataLoader(data, batch_sampler=batches)]
        assert found == [[3.0, 1.0], [5.0, 0.0], [2.0, 4.0]]
