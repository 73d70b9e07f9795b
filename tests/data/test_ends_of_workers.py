"""What workers leave behind: nothing, however an epoch or the program ends; programs that start them in other
ways."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest
import wengert as wg
from wengert.utils.data import DataLoader, Dataset

BOTH = pytest.mark.parametrize("context", ["fork", "threads"])


class Calls(Dataset[Any]):
    """A dataset that is a function."""

    def __init__(self, function: Any, length: int = 4) -> None:
        self.function, self.length = function, length

    def __getitem__(self, index: int) -> Any:
        return self.function(index)

    def __len__(self) -> int:
        return self.length


def children() -> int:
    return len(multiprocessing.active_children())


@BOTH
def test_an_abandoned_epoch_leaves_nothing(context: str) -> None:
    loader = DataLoader(
        Calls(lambda i: wg.ones(100_000), 100), num_workers=3, multiprocessing_context=context
    )
    for _ in loader:
        assert children() == (3 if context == "fork" else 0)
        break
    assert children() == 0
    iterator = iter(loader)
    next(iterator)
    del iterator
    assert children() == 0


@BOTH
def test_an_error_leaves_nothing(context: str) -> None:
    before = threading.active_count()
    loader = DataLoader(Calls(lambda i: {0: 0}[i]), num_workers=2, multiprocessing_context=context)
    gc.disable()
    try:
        with pytest.raises(KeyError, match="DataLoader worker 1") as caught:
            list(loader)
        del caught
        assert (children(), threading.active_count()) == (0, before)
    finally:
        gc.enable()


@BOTH
def test_persistent_workers(context: str) -> None:
    def who(index: int) -> tuple[int, int, int]:
        return index, os.getpid(), threading.get_ident()

    loader = DataLoader(
        Calls(who), batch_size=None, num_workers=2, persistent_workers=True, multiprocessing_context=context
    )
    first = [tuple(x) for x in loader]
    assert [x[0] for x in first] == [0, 1, 2, 3]
    assert len({x[1:] for x in first}) == 2
    for _ in loader:  # an epoch that is not finished
        break
    assert [tuple(x) for x in loader] == first
    iterators = iter(loader), iter(loader)
    assert iterators[0] is iterators[1]
    del loader, iterators


PROGRAM = """
import os, signal, sys, time
import wengert as wg
from wengert.utils.data import DataLoader, Dataset, TensorDataset

# What a shell starts in the background ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)

class Slow(Dataset):
    def __len__(self): return 100_000
    def __getitem__(self, i):
        time.sleep(0.01)
        return wg.ones(1000)
"""


def run(tmp_path: Path, code: str, number: int | None = None) -> tuple[int, str]:
    """A program's exit code and what it and its workers printed; a signal is sent when it says so."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM + textwrap.dedent(code))
    with subprocess.Popen(
        [sys.executable, file], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, process_group=0
    ) as process:
        assert process.stdout
        if number is not None:
            assert process.stdout.readline() == "ready\n"
            if number == signal.SIGINT:
                os.killpg(process.pid, number)
            else:
                process.send_signal(number)
        # Ends when no process holds the pipe: neither the program nor a worker.
        output, _ = process.communicate(timeout=60)
    return process.returncode, output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_the_program(tmp_path: Path, number: int) -> None:
    code = """
        for i, batch in enumerate(DataLoader(Slow(), num_workers=3, persistent_workers=True)):
            if i == 5: print("ready", flush=True)
    """
    exit_code, output = run(tmp_path, code, number)
    assert exit_code == -number
    # The traceback of the program alone.
    assert output.count("Traceback") == (number == signal.SIGINT)


@BOTH
def test_an_epoch_goes_on_after_an_interruption(context: str) -> None:
    gate = multiprocessing.get_context("fork").Event()
    data = Calls(lambda i: i if i == 0 else gate.wait(20) and i)
    iterator = iter(DataLoader(data, num_workers=2, multiprocessing_context=context))
    assert next(iterator).item() == 0
    old = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            next(iterator)
    finally:
        signal.signal(signal.SIGALRM, old)
    gate.set()
    assert [batch.item() for batch in iterator] == [1, 2, 3]


def test_a_program_that_ends_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    code = """
        iterator = iter(DataLoader(Slow(), num_workers=2))
        threads = iter(DataLoader(Slow(), num_workers=2, multiprocessing_context="threads"))
        next(iterator), next(threads)
        print("end")
    """
    assert run(tmp_path, code) == (0, "end\n")


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_that_are_not_forked(tmp_path: Path, method: str) -> None:
    code = f"""
        def squares(samples): return [wg.stack(samples) ** 2]
        def init(worker): print("worker", worker, flush=True)
        if __name__ == "__main__":
            data = [wg.full((2,), i) for i in range(4)]
            loader = DataLoader(data, 2, num_workers=1, worker_init_fn=init, collate_fn=squares,
                                multiprocessing_context="{method}")
            print([batch.tolist() for (batch,) in loader])
    """
    assert run(tmp_path, code) == (0, "worker 0\n[[[0, 0], [1, 1]], [[4, 4], [9, 9]]]\n")


def test_spawning_without_a_guard_is_an_error(tmp_path: Path) -> None:
    code = 'list(DataLoader([1], num_workers=1, multiprocessing_context="spawn"))'
    exit_code, output = run(tmp_path, code)
    assert exit_code == 1
    assert "exited with code 1 before its batch was there" in output
    assert "need `if __name__ == '__main__':` around the program" in output


def test_importing_imports_no_multiprocessing(tmp_path: Path) -> None:
    code = """
        wg.utils.data.DataLoader([1])
        print("multiprocessing" in sys.modules)
    """
    assert run(tmp_path, code) == (0, "False\n")


def test_workers_start_no_workers() -> None:
    loader = DataLoader(Calls(lambda i: list(DataLoader([1], num_workers=1))), num_workers=1)
    with pytest.raises(
        RuntimeError, match="a worker process cannot start workers of its own; use num_workers=0"
    ):
        next(iter(loader))
    inner = Calls(lambda i: len(list(DataLoader([1], num_workers=1, multiprocessing_context="threads"))))
    assert [x.item() for x in DataLoader(inner, num_workers=1)] == [1, 1, 1, 1]


def test_a_fork_of_the_program_leaves_the_workers_alone() -> None:
    loader = DataLoader(list(range(8)), num_workers=2, persistent_workers=True)
    iterator = iter(loader)
    assert next(iterator).item() == 0
    child = os.fork()
    if child == 0:
        code = 1
        try:
            next(iterator)
        except RuntimeError:
            del loader, iterator
            code = 0
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [x.item() for x in iterator] == list(range(1, 8))
    del loader, iterator
