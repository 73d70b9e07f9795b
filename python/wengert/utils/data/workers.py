"""Workers: processes, or threads, that answer the requests of a `DataLoader`.

Every worker takes requests in turn and answers each with a batch, `END` or a `Failure`, in their order. A
process is connected by one socket, whose end is how it learns that it is no longer needed, whether its
iterator was dropped or its parent killed; and how the parent learns that the worker died. A thread of each
process sends its batches, so that it works on while its parent does.
"""

import contextlib
import os
import queue
import random
import signal
import socket
import threading
import time
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from wengert import _core

from . import channel
from .fetching import Job

__all__ = ["Failure", "Processes", "Threads", "WorkerInfo", "get_worker_info"]

# How long workers may take to end by themselves, and how often it is asked whether they live, in seconds.
_GRACE = 5.0
_BEAT = 5.0

EPOCH, FETCH = "epoch", "fetch"
Request = tuple[str, Any]


@dataclass(frozen=True)
class WorkerInfo:
    """Which worker of a `DataLoader` this is.

    Attributes:
        id: its number, from 0.
        num_workers: how many there are.
        seed: a number of its own for random numbers, new in every epoch.
        dataset: its copy of the dataset; worker threads share one.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


class _Where(threading.local):
    """The worker of this thread: a process sets it for all its threads, on the class."""

    info: WorkerInfo | None = None


_WHERE = _Where()


def get_worker_info() -> WorkerInfo | None:
    """Returns which worker of a `DataLoader` runs this: `id`, `num_workers`, `seed` and `dataset`; None
    elsewhere.

    Example:
        >>> wg.utils.data.get_worker_info() is None
        True
    """
    return _WHERE.info


class _Text(str):
    """A text that a KeyError, which shows the `repr` of its argument, shows line by line."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Failure:
    """An error of a worker, on its way to the parent."""

    def __init__(self, error: BaseException, worker: int) -> None:
        self.kind = type(error)
        self.text = (
            f"{self.kind.__name__} in DataLoader worker {worker} (process {os.getpid()}):\n"
            + "".join(traceback.format_exception(error))
        )

    def reraise(self) -> NoReturn:
        """Raises an error of the same class, or a RuntimeError where that is not made from a text."""
        if not issubclass(self.kind, Exception) or issubclass(self.kind, StopIteration):
            raise RuntimeError(self.text)
        try:
            error = self.kind(_Text(self.text) if issubclass(self.kind, KeyError) else self.text)
        except Exception:
            raise RuntimeError(self.text) from None
        try:
            raise error
        finally:
            # Its traceback holds this frame, and those of the iterator: workers would live until a
            # collection.
            del error


def _answers(job: Job, worker: int, requests: Iterable[Request], is_process: bool) -> Iterator[Any]:
    """The answer to each request for a batch. Each epoch begins with its seed."""
    failure = answer = None
    fetch: Callable[[Any], Any] | None = None
    for kind, value in requests:
        try:
            if kind == EPOCH:
                info = WorkerInfo(worker, job.num_workers, value, job.dataset)
                _WHERE.info = info
                if is_process:
                    _Where.info = info
                    _seed(value)
                if fetch is None and job.init_fn is not None:
                    job.init_fn(worker)
                fetch = job.fetcher()
            elif fetch is not None:
                answer = fetch(value)
        except BaseException as error:
            answer = Failure(error, worker)
            failure = answer if kind == EPOCH else failure
        if kind == FETCH:
            yield failure or answer
        answer = None


def _seed(seed: int) -> None:
    """Starts the random numbers of Python, NumPy (its global ones) and this library."""
    random.seed(seed)
    _core.manual_seed(seed)
    np.random.seed(np.random.SeedSequence(seed).generate_state(4))  # noqa: NPY002


# ---- processes ----

# The parent's ends of sockets. A fork copies them, and a copy would keep the connection of another worker
# open.
_LINKS: "weakref.WeakSet[socket.socket]" = weakref.WeakSet()


def _run_process(job: Job, worker: int, link: socket.socket) -> None:
    """What a worker process runs."""
    for other in list(_LINKS):
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears of Ctrl-C too, and ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _core.set_num_threads(1)
    outbox: queue.SimpleQueue[list[Any] | None] = queue.SimpleQueue()
    sender = threading.Thread(target=_send_all, args=(link, outbox), daemon=True)
    sender.start()
    for answer in _answers(job, worker, _received(link), is_process=True):
        try:
            parts = channel.pack(answer)
        except Exception as error:
            failure = answer if isinstance(answer, Failure) else Failure(error, worker)
            failure.kind = RuntimeError  # a class that cannot be pickled is what may have failed
            parts = channel.pack(failure)
        outbox.put(parts)
        del answer, parts  # not kept while the next batch is made
    outbox.put(None)
    sender.join()


def _received(link: socket.socket) -> Iterator[Request]:
    """The requests, until the parent ends the connection."""
    try:
        while True:
            yield channel.unpack(channel.read(link))
    except EOFError:
        return


def _send_all(link: socket.socket, outbox: "queue.SimpleQueue[list[Any] | None]") -> None:
    """Sends what comes, as long as somebody reads it."""
    try:
        while parts := outbox.get():
            channel.send(link, parts)
            del parts  # not kept until the next one comes
    except OSError:
        return


class Processes:
    """Worker processes."""

    def __init__(self, job: Job, context: Any) -> None:
        self.owner = os.getpid()
        self.links: list[socket.socket] = []
        self.processes: list[Any] = []
        if context.current_process().daemon:
            raise RuntimeError(
                "DataLoader: a worker process cannot start workers of its own; use num_workers=0, or "
                "multiprocessing_context='threads', in it"
            )
        try:
            for worker in range(job.num_workers):
                self._start(job, worker, context)
        except BaseException:
            self.close()
            raise

    def _start(self, job: Job, worker: int, context: Any) -> None:
        ours, theirs = socket.socketpair()
        self.links.append(ours)
        _LINKS.add(ours)
        with theirs:
            process = context.Process(target=_run_process, args=(job, worker, theirs), daemon=True)
            process.start()
        self.processes.append(process)

    @property
    def is_usable(self) -> bool:
        """Whether the workers live, and belong to this process."""
        return bool(self.links) and self.owner == os.getpid()

    def send(self, worker: int, request: Request) -> None:
        """Gives a worker something to do."""
        try:
            channel.send(self.links[worker], channel.pack(request))
        except ConnectionError:
            raise self._death(worker) from None

    def receive(self, workers: Sequence[int], timeout: float) -> tuple[int, Any]:
        """Waits for the next answer of one of the workers; 0 seconds mean for ever.

        Raises:
            TimeoutError: if none comes in time.
            RuntimeError: if one of these workers died.
        """
        from multiprocessing.connection import wait

        places: dict[Any, int] = {self.links[worker]: worker for worker in workers}
        deaths: dict[Any, int] = {self.processes[worker].sentinel: worker for worker in workers}
        end = time.monotonic() + timeout if timeout else float("inf")
        while True:
            ready = wait([*places, *deaths], min(_BEAT, max(end - time.monotonic(), 0)))
            for link in ready:
                if link in places:
                    return places[link], self._read(places[link])
            for worker in [deaths[x] for x in ready] or workers:
                # A death that its sentinel does not tell, where a child of the worker holds that open.
                if not self.processes[worker].is_alive():
                    raise self._death(worker)
            if not ready and time.monotonic() >= end:
                raise TimeoutError

    def _read(self, worker: int) -> Any:
        try:
            parts = channel.read(self.links[worker])
        except EOFError:
            raise self._death(worker) from None
        except BaseException:  # Ctrl-C in the middle of a message: nobody knows where the next one begins
            self.close()
            raise
        return channel.unpack(parts)

    def _death(self, worker: int) -> RuntimeError:
        """The error that tells how a worker ended; the others end too."""
        process = self.processes[worker]
        process.join(_GRACE)
        code, pid = process.exitcode, process.pid
        self.close()
        if code is not None and code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            return RuntimeError(
                f"DataLoader: worker {worker} (process {pid}) was killed by {name}; SIGKILL often means that "
                f"the "
                "system ran out of memory: use fewer workers, smaller batches or a smaller prefetch_factor"
            )
        return RuntimeError(
            f"DataLoader: worker {worker} (process {pid}) exited with code {code} before its batch was "
            f"there; what "
            "it printed says why. Processes that are spawned need `if __name__ == '__main__':` around the "
            "program"
        )

    def close(self) -> None:
        """Ends the workers: idle ones at once, others after their batch, and by a signal what takes long."""
        if self.owner != os.getpid():
            return
        links, self.links = self.links, []
        for link in links:
            with contextlib.suppress(OSError):  # the worker ended before
                link.shutdown(socket.SHUT_RDWR)
            link.close()
        end = time.monotonic() + _GRACE
        for process in self.processes:
            process.join(max(end - time.monotonic(), 0))
            if process.is_alive():
                process.terminate()
                process.join(_GRACE)
            if process.is_alive():
                process.kill()
                process.join()


# ---- threads ----


def _run_thread(job: Job, worker: int, requests: Iterable[Request], answers: Any) -> None:
    """What a worker thread runs."""
    for answer in _answers(job, worker, requests, is_process=False):
        answers.put((worker, answer))
        del answer  # not kept while the next batch is made


class Threads:
    """Worker threads, which share the dataset with the program."""

    def __init__(self, job: Job) -> None:
        self.owner = os.getpid()
        self.is_closed = False
        self.requests: list[Any] = [queue.SimpleQueue() for _ in range(job.num_workers)]
        self.answers: Any = queue.SimpleQueue()
        #: Answers of each worker that came before they were asked for.
        self.early: list[deque[Any]] = [deque() for _ in range(job.num_workers)]
        self.threads = []
        for worker, requests in enumerate(self.requests):
            given = iter(requests.get, None)
            thread = threading.Thread(
                target=_run_thread, args=(job, worker, given, self.answers), daemon=True
            )
            thread.start()
            self.threads.append(thread)

    @property
    def is_usable(self) -> bool:
        """Whether the workers live, and belong to this process."""
        return not self.is_closed and self.owner == os.getpid()

    def send(self, worker: int, request: Request) -> None:
        """Gives a worker something to do."""
        self.requests[worker].put(request)

    def receive(self, workers: Sequence[int], timeout: float) -> tuple[int, Any]:
        """Waits for the next answer of one of the workers; 0 seconds mean for ever.

        Raises:
            TimeoutError: if none comes in time.
        """
        end = time.monotonic() + timeout
        while True:
            for worker in workers:
                if self.early[worker]:
                    return worker, self.early[worker].popleft()
            try:
                left = max(end - time.monotonic(), 0) if timeout else None
                worker, answer = self.answers.get(timeout=left)
            except queue.Empty:
                raise TimeoutError from None
            self.early[worker].append(answer)

    def close(self) -> None:
        """Ends the workers, after the batch that each is at."""
        if self.owner != os.getpid() or self.is_closed:
            return
        self.is_closed = True
        for requests in self.requests:
            while not requests.empty():
                try:
                    requests.get_nowait()
                except queue.Empty:
                    break
            requests.put(None)
        end = time.monotonic() + _GRACE
        for thread in self.threads:
            if thread is not threading.current_thread():
                thread.join(max(end - time.monotonic(), 0))
