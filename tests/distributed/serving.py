"""Ranks that stay and run one program after the other, so that hypothesis can draw and shrink programs."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from distributed import programs

MPIRUN = Path(sys.executable).parent / "mpirun"


class Ranks:
    """So many processes under `mpirun`, which run what they are given until they are closed."""

    def __init__(self, count: int, folder: Path, sharing_from: str) -> None:
        self._answers = folder / "answer"
        tests = str(Path(__file__).parent.parent)
        environment = {
            **os.environ,
            "WENGERT_NUM_THREADS": "1",
            "WENGERT_DISTRIBUTED_TIMEOUT": "20",
            "SHARING_FROM": sharing_from,
            "PYTHONPATH": os.pathsep.join([*sys.path, tests]),
        }
        command = [MPIRUN, "-n", str(count), sys.executable, "-m", "distributed.serving", self._answers]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [str(word) for word in command], env=environment, stdin=pipe, stdout=pipe, text=True
        )

    def ask(self, steps: list[Any], x: np.ndarray) -> list[dict[str, np.ndarray]]:
        """What each rank computes, by name."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps([steps, x.tolist(), str(x.dtype)]) + "\n")
        stdin.flush()
        said = stdout.readline()
        assert said == "done\n", said + (stdout.read() if self._process.poll() is not None else "")
        found: list[dict[str, np.ndarray]] = pickle.loads(self._answers.read_bytes())
        return found

    def close(self) -> None:
        """Lets the ranks end."""
        self._process.communicate(timeout=20)


def serve(answers: Path) -> None:
    """What a rank does until rank 0 finds nothing more to read."""
    import wengert as wg
    import wengert.distributed as distributed

    distributed._group._OFTEN = int(os.environ["SHARING_FROM"])
    mpi = distributed._group.mpi().COMM_WORLD
    while line := mpi.bcast(sys.stdin.readline() if mpi.rank == 0 else None):
        steps, rows, dtype = json.loads(line)
        with distributed.axis("i"):
            run = programs.function(steps, "i")
            x = wg.tensor(np.array(rows, dtype)[mpi.rank])
            derived = {**programs.DERIVED, **{name: f for name, (f, _) in programs.ALONE.items()}}
            found = {name: f(run)(x).detach().numpy() for name, f in derived.items()}
        together = mpi.gather(found)
        if mpi.rank == 0:
            answers.write_bytes(pickle.dumps(together))
            print("done", flush=True)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
