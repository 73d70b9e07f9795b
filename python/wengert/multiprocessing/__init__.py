"""Processes as programs for PyTorch start them: Python's `multiprocessing`, and `spawn`.

`Process`, `Queue`, `set_start_method` and all other names of that module are here too. Tensors in queues and
pipes are sent as copies of their values; no memory is shared between processes.
"""

import multiprocessing as _python
from collections.abc import Callable, Iterable
from multiprocessing import *  # its names, which programs take from here
from multiprocessing import connection
from typing import Any

__all__ = [
    "ProcessContext",
    "SpawnContext",
    "connection",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]
__dir__ = __all__.copy


def get_all_sharing_strategies() -> set[str]:
    """Returns the ways in which programs may ask for shared memory: those that PyTorch has.

    Example:
        >>> "file_system" in wg.multiprocessing.get_all_sharing_strategies()
        True
    """
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """Returns the way that was asked for, or "file_descriptor".

    Example:
        >>> wg.multiprocessing.get_sharing_strategy()
        'file_descriptor'
    """
    return _strategy[-1]


_strategy = ["file_descriptor"]


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepts a way of sharing memory; tensors are copied whatever it says.

    Args:
        new_strategy: "file_descriptor" or "file_system".

    Raises:
        ValueError: for another one.

    Example:
        >>> wg.multiprocessing.set_sharing_strategy("file_descriptor")
    """
    if new_strategy not in get_all_sharing_strategies():
        raise ValueError(
            f"set_sharing_strategy: 'file_descriptor' or 'file_system' expected, got {new_strategy!r}"
        )
    _strategy[:] = [new_strategy]


def _run(function: Callable[..., Any], number: int, args: tuple[Any, ...], errors: Any) -> None:
    """What each process does."""
    import sys
    import traceback

    try:
        function(number, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        errors.put(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """The processes that `spawn` has started."""

    def __init__(self, processes: list[Any], errors: list[Any]) -> None:
        """Keeps the processes, and where each tells of its exception."""
        self.processes, self._errors = processes, errors

    def pids(self) -> list[int]:
        """Returns the numbers of the processes."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None) -> bool:
        """Waits until one of the processes ends; returns whether all have.

        Args:
            timeout: the longest wait, in seconds.

        Raises:
            RuntimeError: one of them failed, with what it said; the others are ended.
        """
        running = {process.sentinel: i for i, process in enumerate(self.processes) if process.is_alive()}
        if running and all(not p.exitcode for p in self.processes):
            for ended in connection.wait(list(running), timeout):
                self.processes[running[ended]].join()
        for number, process in enumerate(self.processes):
            if not process.exitcode:
                continue
            for other in self.processes:
                if other.is_alive():
                    other.terminate()
                other.join()
            said = self._errors[number]
            text = said.get() if not said.empty() else f"exit code {process.exitcode}"
            raise RuntimeError(f"spawn: process {number} failed:\n{text}")
        return not any(process.is_alive() for process in self.processes)


#: The same, by PyTorch's older name.
SpawnContext = ProcessContext


def start_processes(
    fn: Callable[..., Any],
    args: Iterable[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Starts `nprocs` processes that call `fn(number, *args)`.

    Args:
        fn: a function that can be pickled: at the top of a module.
        args: what all are given behind their numbers.
        nprocs: how many.
        join: whether to wait for all of them; otherwise a `ProcessContext` is returned.
        daemon: whether they end with this process.
        start_method: "spawn", "fork" or "forkserver".

    Raises:
        RuntimeError: one of them failed.

    Example:
        >>> context = wg.multiprocessing.start_processes(print, ("done",), join=False, start_method="fork")
        >>> context.join()
        True
    """
    context: Any = _python.get_context(start_method)
    processes, errors = [], []
    for number in range(nprocs):
        said = context.SimpleQueue()
        process = context.Process(target=_run, args=(fn, number, tuple(args), said), daemon=daemon)
        process.start()
        processes.append(process)
        errors.append(said)
    started = ProcessContext(processes, errors)
    if not join:
        return started
    while not started.join():
        pass
    return None


#: The same, by the name that most programs use.
spawn = start_processes
