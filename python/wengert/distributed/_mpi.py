"""MPI: its module, started once, and ended once where this process started it."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import importlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

__all__ = ["TIMEOUT", "abort", "check_process", "guard", "in_child", "mpi", "on_exit", "unname_memory"]

# What starters of several processes tell each of them.
_STARTERS = {
    "OMPI_COMM_WORLD_SIZE": "Open MPI's mpirun",
    "PMI_SIZE": "MPICH's or Intel's mpirun",
    "MV2_COMM_WORLD_SIZE": "MVAPICH's mpirun",
    "SLURM_STEP_NUM_TASKS": "srun",
}

#: Seconds that a rank waits for others, unless its group says otherwise.
TIMEOUT = float(os.environ.get("WENGERT_DISTRIBUTED_TIMEOUT", "1800"))

_LEAVING: list[Any] = []
_CHILD: list[bool] = []


def mpi() -> Any:
    """Returns the module `mpi4py.MPI`, which starts MPI when it is first imported.

    Raises:
        ImportError: where mpi4py or an MPI library is missing.
        RuntimeError: where several processes were started, by the starter of another MPI than mpi4py's.
    """
    if (found := sys.modules.get("mpi4py.MPI")) and _LEAVING:
        return found
    # A line less where a rank ends all: what happened has been written by then.
    os.environ.setdefault("MPIR_CVAR_SUPPRESS_ABORT_MESSAGE", "1")
    try:
        rc = importlib.import_module("mpi4py").rc
        if found is None:
            # A forked child that ends would end MPI for its parent.
            rc.finalize = False
        with _deadline():
            found = importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise ImportError(
            'wengert.distributed needs mpi4py and an MPI library: pip install "wengert[mpi]" brings both '
            f"({error})"
        ) from error
    _check_starter(found)
    _LEAVING.append(lambda: rc.finalize is False and not found.Is_finalized() and found.Finalize())
    atexit.register(_leave)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: _CHILD.append(True))
    return found


def _several() -> tuple[str, str]:
    """The variable by which a starter says that it started several processes, or "", and its value."""
    # The first that is there decides: below mpirun those of Slurm count the hosts.
    for variable in _STARTERS:
        if (count := os.environ.get(variable, "")).isdigit():
            return (variable, count) if int(count) > 1 else ("", "1")
    return "", "1"


@contextlib.contextmanager
def _deadline() -> Iterator[None]:
    """MPI starts when all ranks have come, and keeps Python's lock: only a signal ends that wait."""
    if not _several()[0] or not hasattr(signal, "setitimer"):
        yield
        return
    faulthandler.dump_traceback_later(TIMEOUT, file=2)
    before = signal.setitimer(signal.ITIMER_REAL, TIMEOUT + 1)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, *before)


def guard() -> None:
    """Lets a rank that fails before MPI has started end the others, which may already wait for it there."""
    if not _several()[0]:
        return
    write = sys.excepthook

    def failed(kind: type[BaseException], value: BaseException, trace: Any) -> None:
        write(kind, value, trace)
        if _CHILD or watched:
            return
        if _LEAVING:
            abort("")
        # Starters look at signals, not at exit codes, of processes that have not started MPI.
        sys.stdout.flush()
        sys.stderr.flush()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)

    sys.excepthook = failed


#: Holds something when the ranks look after each other.
watched: list[bool] = []


def abort(text: str) -> None:
    """Ends all ranks with a last word."""
    os.write(2, text.encode(errors="replace"))
    # The starter forgets what it has not read yet when it ends the ranks; MPI has nothing to add.
    time.sleep(0.3)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    mpi().COMM_WORLD.Abort(1)
    # Where the starter was asked to let the others live.
    os._exit(1)


def on_exit(action: Any) -> None:
    """Calls `action` when this process ends, before MPI does."""
    _LEAVING.append(action)


def _leave() -> None:
    while _LEAVING and not _CHILD:
        _LEAVING.pop()()


def unname_memory() -> None:
    """Removes the name of the memory in which MPICH's ranks of a host meet, once all have found it: so it
    goes with them, also when they are killed."""
    with contextlib.suppress(OSError), open("/proc/self/maps", encoding="utf-8") as maps:
        for name in {line.split(maxsplit=5)[-1].strip() for line in maps if "/dev/shm/mpich_shm_" in line}:
            with contextlib.suppress(OSError):
                os.unlink(name)


def in_child() -> bool:
    """Whether this process was forked from a rank."""
    return bool(_CHILD)


def check_process(what: str) -> None:
    """Raises in a forked child, which must not use its parent's connections."""
    if _CHILD:
        raise RuntimeError(
            f"{what}: this process was forked from a rank, and is none itself; collectives belong into the "
            "rank's own process. Give data to workers, and let the rank talk"
        )


def _check_starter(found: Any) -> None:
    """Several processes of which each finds itself alone have another starter than their MPI expects."""
    variable, count = _several()
    if not variable or found.COMM_WORLD.Get_size() > 1:
        return
    library = found.Get_library_version().partition("\n")[0].rstrip("\0").strip()
    raise RuntimeError(
        f"{_STARTERS[variable]} started {count} processes ({variable}={count}), but the MPI of mpi4py "
        f"({' '.join(library.split())}) finds itself alone: the starter belongs to another MPI. Start with "
        f'that one\'s mpirun; pip install "wengert[mpi]" puts one beside python, '
        f"{os.path.join(os.path.dirname(sys.executable), 'mpirun')}"
    )
