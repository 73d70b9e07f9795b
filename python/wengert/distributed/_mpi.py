"""MPI: its module, started once, and ended once where this process started it."""

from __future__ import annotations

import atexit
import importlib
import os
import sys
from typing import Any

__all__ = ["check_process", "in_child", "mpi", "on_exit"]

# What starters of several processes tell each of them.
_STARTERS = {
    "OMPI_COMM_WORLD_SIZE": "Open MPI's mpirun",
    "PMI_SIZE": "MPICH's or Intel's mpirun",
    "MV2_COMM_WORLD_SIZE": "MVAPICH's mpirun",
    "SLURM_STEP_NUM_TASKS": "srun",
}

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


def on_exit(action: Any) -> None:
    """Calls `action` when this process ends, before MPI does."""
    _LEAVING.append(action)


def _leave() -> None:
    while _LEAVING and not _CHILD:
        _LEAVING.pop()()


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
    if found.COMM_WORLD.Get_size() > 1:
        return
    for variable, starter in _STARTERS.items():
        count = os.environ.get(variable, "1")
        if count.isdigit() and int(count) > 1:
            library = found.Get_library_version().partition("\n")[0].rstrip("\0").strip()
            raise RuntimeError(
                f"{starter} started {count} processes ({variable}={count}), but the MPI of mpi4py "
                f"({' '.join(library.split())}) finds itself alone: the starter belongs to another MPI. Start "
                f'with that one\'s mpirun; pip install "wengert[mpi]" puts one beside python, '
                f"{os.path.join(os.path.dirname(sys.executable), 'mpirun')}"
            )
