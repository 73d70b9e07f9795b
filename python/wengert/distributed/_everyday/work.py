"""Collective operations beside the program: a thread runs them in the order in which they were asked for.

MPI moves bytes only while someone calls it; the thread does. Each group gets a second communicator for it, so
that what the program itself does in the group cannot mix with it.
"""

from __future__ import annotations

import collections
import sys
import threading
from collections.abc import Callable
from typing import Any

from wengert.autograd.modes import no_grad
from wengert.distributed import _lines, _mpi
from wengert.distributed._group import Group

__all__ = ["Work", "run_in_background", "wait_for_background", "wait_at_exit"]


class Work:
    """What a collective operation with `async_op=True` returns."""

    def __init__(self) -> None:
        self._done = threading.Event()
        self._error: BaseException | None = None
        self._seen = False

    def wait(self, timeout: Any = None) -> bool:
        """Waits for its end, and raises what went wrong; the tensors have their values afterwards.

        Args:
            timeout: seconds, or a `timedelta`; None leaves it to the timeout of the group.

        Example:
            >>> wg.distributed.init_process_group()
            >>> wg.distributed.all_reduce(wg.ones(2), async_op=True).wait()
            True
            >>> wg.distributed.destroy_process_group()
        """
        seconds = timeout.total_seconds() if hasattr(timeout, "total_seconds") else timeout
        if not self._done.wait(seconds):
            raise TimeoutError(f"wait: the operation was not done after {seconds:g} s")
        self._seen = True
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        """Returns whether it has ended, well or not."""
        return self._done.is_set()

    def is_success(self) -> bool:
        """Returns whether it has ended well."""
        return self._done.is_set() and self._error is None

    def exception(self) -> BaseException | None:
        """Returns what went wrong, if anything."""
        return self._error


# What is to be done; a thread is there while there is something.
_WAITING: collections.deque[tuple[Work, Callable[[], None], _lines.Line]] = collections.deque()
_LOCK = threading.Lock()
_RUNNING: list[threading.Thread] = []
_LAST: list[Work] = []
_FAILED: list[Work] = []


def twin(group: Group) -> Group:
    """The group that the thread uses for this one; all ranks make it at the first operation."""
    group.twin.timeout = group.timeout
    return group.twin


def run_in_background(action: Callable[[], None]) -> Work:
    """Hands an operation to the thread."""
    work = Work()
    if not _LAST:
        _mpi.on_exit(wait_at_exit)
    _LAST[:] = [work]
    with _LOCK:
        _WAITING.append((work, action, _lines.caller_line()))
        if not _RUNNING:
            _RUNNING.append(threading.Thread(target=_run, name="wengert collectives", daemon=True))
            _RUNNING[0].start()
    return work


def _run() -> None:
    while True:
        with _LOCK:
            if not _WAITING:
                _RUNNING.clear()
                return
            work, action, line = _WAITING.popleft()
        try:
            with no_grad(), _lines.on_behalf_of(line):
                action()
        except BaseException as error:
            work._error = error
            _FAILED.append(work)
        del action
        work._done.set()


def wait_for_background() -> None:
    """Waits for all operations that were asked for."""
    for work in _LAST:
        work._done.wait()


def wait_at_exit() -> None:
    """Waits for all operations at the end; one that failed without a word ends all ranks."""
    wait_for_background()
    for work in _FAILED:
        if not work._seen and (error := work._error) is not None:
            sys.excepthook(type(error), error, error.__traceback__)
