"""Workers when something goes wrong (errors, deaths, time limits), and what they send."""

import contextlib
import multiprocessing
import os
import re
import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import wengert as wg
from wengert.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info

BOTH = pytest.mark.parametrize("context", ["fork", "threads"])


class Calls(Dataset[Any]):
    """A dataset that is a function."""

    def __init__(self, function: Any, length: int = 4) -> None:
        self.function, self.length = function, length

    def __getitem__(self, index: int) -> Any:
        return self.function(index)

    def __len__(self) -> int:
        return self.length


class NeedsTwo(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(one, two)


def fails(error: BaseException) -> Any:
    def function(index: int) -> int:
        if index == 2:
            raise error
        return index

    return function


def children() -> int:
    return len(multiprocessing.active_children())


# ---- errors ----


@BOTH
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("wrong"), ValueError),
        (KeyError("wrong"), KeyError),
        (wg.ShapeError("wrong"), wg.ShapeError),
        (NeedsTwo(1, 2), RuntimeError),
        (UnicodeDecodeError("utf-8", b"", 0, 1, "wrong"), RuntimeError),
        (type("Local", (Exception,), {})("wrong"), Exception),
        (StopIteration("wrong"), RuntimeError),
        (SystemExit("wrong"), RuntimeError),
    ],
)
def test_an_error_has_its_class_the_worker_and_its_traceback(
    context: str, error: BaseException, kind: type[BaseException]
) -> None:
    loader = DataLoader(Calls(fails(error)), num_workers=2, multiprocessing_context=context)
    with pytest.raises(kind) as caught:
        list(loader)
    text = str(caught.value)
    assert re.match(rf"{type(error).__name__} in DataLoader worker 0 \(process \d+\):\nTraceback", text)
    assert re.search(r'test_workers\.py", line \d+, in function\n', text)
    assert text.rstrip().endswith(str(error) if str(error) else "")


@BOTH
def test_errors_of_worker_init_fn_of_iter_and_of_collating(context: str) -> None:
    def init(worker: int) -> None:
        if worker == 1:
            raise OSError("no file")

    class NoIter(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            raise LookupError("no order")

    given: Any = dict(num_workers=2, multiprocessing_context=context)
    iterator = iter(DataLoader([0, 1, 2, 3], worker_init_fn=init, **given))
    assert next(iterator).item() == 0
    with pytest.raises(OSError, match=r"OSError in DataLoader worker 1(.|\n)*no file"):
        next(iterator)
    assert next(iterator).item() == 2
    del iterator
    with pytest.raises(LookupError, match="no order"):
        list(DataLoader(NoIter(), **given))
    with pytest.raises(wg.ShapeError, match=r"sample 1 has shape \(1,\), sample 0 has \(0,\)"):
        list(DataLoader([wg.ones(0), wg.ones(1)], batch_size=2, **given))


def test_a_batch_that_cannot_be_pickled_is_an_error() -> None:
    loader = DataLoader(Calls(lambda i: lambda: i), batch_size=None, num_workers=1)
    with pytest.raises(RuntimeError, match=r"(?i)in DataLoader worker 0(.|\n)*pickle"):
        next(iter(loader))
    (batch,) = DataLoader(
        Calls(lambda i: lambda: i, 1), batch_size=None, num_workers=1, multiprocessing_context="threads"
    )
    assert batch() == 0


def test_worker_init_fn_runs_once_after_the_seeds() -> None:
    def init(worker: int) -> None:
        info = get_worker_info()
        assert info
        assert info.id == worker
        info.dataset.started = (*getattr(info.dataset, "started", ()), worker, wg.rand(()).item())

    data: Any = Calls(lambda i: data.started)
    loader = DataLoader(data, batch_size=None, num_workers=2, worker_init_fn=init, persistent_workers=True)
    wg.manual_seed(1)
    epochs = [list(loader) for _ in range(2)]
    assert epochs[0] == epochs[1]
    assert [(len(sample), sample[0]) for sample in epochs[0]] == [(2, 0), (2, 1), (2, 0), (2, 1)]
    wg.manual_seed(1)
    again = DataLoader(data, batch_size=None, num_workers=2, worker_init_fn=init)
    assert list(again) == epochs[0]


# ---- deaths and time limits ----


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("in_order", [False, True])
def test_a_worker_that_is_killed(persistent: bool, in_order: bool) -> None:
    def function(index: int) -> Any:
        if index == 2 and alive:
            os.kill(os.getpid(), signal.SIGKILL)
        return wg.ones(100_000)

    alive = [1]
    loader = DataLoader(
        Calls(function), batch_size=None, num_workers=2, persistent_workers=persistent, in_order=in_order
    )
    iterator = iter(loader)
    with pytest.raises(
        RuntimeError, match=r"worker 0 \(process \d+\) was killed by SIGKILL; SIGKILL often means"
    ):
        list(iterator)
    assert children() == 0
    with pytest.raises(
        RuntimeError, match="the workers of this iterator ended; iterate over the loader anew"
    ):
        next(iterator)
    alive.clear()
    assert len(list(loader)) == 4


def test_a_worker_that_exits() -> None:
    loader = DataLoader(Calls(lambda i: os._exit(3)), num_workers=1)
    with pytest.raises(RuntimeError, match=r"worker 0 \(process \d+\) exited with code 3 before its batch"):
        next(iter(loader))


def test_a_worker_that_is_killed_from_outside_while_it_waits() -> None:
    loader = DataLoader(Calls(lambda i: os.getpid(), 100), batch_size=None, num_workers=2)
    iterator = iter(loader)
    first, second = next(iterator), next(iterator)
    os.kill(second, signal.SIGTERM)
    with pytest.raises(RuntimeError, match=rf"worker 1 \(process {second}\) was killed by SIGTERM"):
        list(iterator)
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


def test_a_death_is_noticed_where_a_grandchild_holds_everything_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wg.utils.data.workers, "_BEAT", 0.05)
    end, keep = os.pipe()

    def function(index: int) -> None:
        if os.fork() == 0:
            os.close(keep)
            os.read(end, 1)  # until the test closes its side
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)

    try:
        with pytest.raises(RuntimeError, match="was killed by SIGKILL"):
            next(iter(DataLoader(Calls(function), num_workers=1)))
    finally:
        os.close(keep)
        os.close(end)


@BOTH
def test_a_time_limit(context: str) -> None:
    gate = multiprocessing.get_context("fork").Event()
    loader = DataLoader(
        Calls(lambda i: gate.wait(10) and i),
        num_workers=2,
        timeout=0.05,
        multiprocessing_context=context,
    )
    iterator = iter(loader)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"no batch came from worker 0 within timeout=0.05 seconds"):
            next(iterator)
    gate.set()
    got: list[int] = []
    while len(got) < 4:
        with contextlib.suppress(RuntimeError):
            got.append(next(iterator).item())
    assert got == [0, 1, 2, 3]


def test_a_worker_that_does_not_end_is_terminated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wg.utils.data.workers, "_GRACE", 0.05)

    def function(index: int) -> int:
        if index == 1:
            while True:
                time.sleep(1)
        return index

    old = signal.signal(signal.SIGTERM, lambda *_: None)  # a handler of the program does not stop it
    try:
        iterator = iter(DataLoader(Calls(function), num_workers=2))
        assert next(iterator).item() == 0
        del iterator
    finally:
        signal.signal(signal.SIGTERM, old)
    assert children() == 0


# ---- tensors in workers ----


def test_operations_run_in_workers_and_their_results_arrive() -> None:
    threads = wg.get_num_threads()
    wg.set_num_threads(2)
    matrix = wg.randn(300, 300)
    expected = (matrix @ matrix).sum(0).numpy()  # the threads of the program ran before the fork

    def function(index: int) -> Any:
        before = wg.get_num_threads()
        wg.set_num_threads(2)
        x = matrix.clone().requires_grad_()
        (x @ matrix).sum().backward()
        return (matrix @ matrix).sum(0), x.grad.sum(), before

    try:
        for value, gradient, before in DataLoader(Calls(function, 2), batch_size=None, num_workers=2):
            np.testing.assert_array_equal(value.numpy(), expected)
            np.testing.assert_allclose(gradient.item(), 300 * matrix.sum().item(), rtol=1e-3, atol=1)
            assert before == 1
        assert wg.get_num_threads() == 2
    finally:
        wg.set_num_threads(threads)


@pytest.mark.parametrize("size", [0, 3, 5000])
def test_what_workers_send_arrives_as_it_is(size: int) -> None:
    array = np.arange(2.0 * size).reshape(2, size)
    values: list[Any] = [
        *(wg.as_tensor(array).to(getattr(wg, name)) for name in ("float64", "bfloat16", "uint8", "bool")),
        wg.as_tensor(array).T,
        wg.as_tensor(array)[:, ::2],
        wg.nn.Parameter(wg.ones(size)),
        wg.ones(size, requires_grad=True),
    ]
    (arrived,) = DataLoader(
        [[*values, array, array.T, "x" * size]], batch_size=None, num_workers=1, collate_fn=list
    )
    for value, other in zip(values, arrived):
        assert type(value) is type(other)
        assert (value.dtype, value.shape, value.requires_grad) == (
            other.dtype,
            other.shape,
            other.requires_grad,
        )
        assert value.tolist() == other.tolist()
    np.testing.assert_array_equal(arrived[-3], array)
    np.testing.assert_array_equal(arrived[-2], array.T)
    assert arrived[-1] == "x" * size
    arrived[0][:] = 7.0  # in memory that can be written
    arrived[-3][:] = 7.0


def test_a_dataset_may_use_its_memory_again_at_once() -> None:
    buffer = wg.zeros(50_000)

    def function(index: int) -> Any:
        buffer.fill_(index)
        return buffer

    loader = DataLoader(Calls(function, 30), batch_size=None, num_workers=2, prefetch_factor=8)
    for index, batch in enumerate(loader):
        assert wg.equal(batch, wg.full((50_000,), float(index)))


def test_requests_that_fill_the_pipe() -> None:
    indices = list(range(300_000))
    loader = DataLoader(
        TensorDataset(wg.arange(300_000)), batch_sampler=[indices] * 4, num_workers=1, prefetch_factor=4
    )
    assert [len(x) for (x,) in loader] == [300_000] * 4
