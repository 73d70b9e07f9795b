"""Scripts on several ranks: what all tests of this folder start, with a limit of time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

MPIRUN = Path(sys.executable).parent / "mpirun"

# Each rank writes into a file of its own, so that lines of two ranks never mix; errors share one stream, as
# on a terminal.
PRELUDE = """
import os, sys
sys.stdout = open(os.path.join(sys.argv[1], "out" + os.environ["PMI_RANK"]), "w")
exec(os.environ.get("FIRST", ""))
import wengert as wg
from wengert import distributed
from wengert.distributed._group import world
group = world()
rank, size = group.rank, group.size
from wengert.distributed import _group
_group._OFTEN = group._often = int(os.environ["SHARING_FROM"])
"""


# For `SHARING_FROM`, the operation of a group with which its ranks begin to share memory: never.
MESSAGES = str(sys.maxsize)


@dataclass
class Ran:
    """What a script left."""

    code: int
    out: list[str]
    err: str
    seconds: float


def start(
    count: int,
    text: str,
    folder: Path,
    *options: str,
    first: str = "",
    starter: str = "mpirun",
    **environment: str,
) -> subprocess.Popen[str]:
    """Starts the script on so many ranks; `first` runs before anything of this package."""
    program = MPIRUN.with_name(starter)
    assert program.exists(), f'{program} is missing: pip install "wengert[mpi]" brings it'
    script = folder / "script.py"
    # On one line: line 2 of the file is the first of the text.
    script.write_text(f"exec({PRELUDE!r})\n{text}")
    command = [str(program), *options, "-n", str(count), sys.executable, str(script), str(folder)]
    settings = {
        **os.environ,
        "WENGERT_NUM_THREADS": "1",
        "FIRST": first,
        "SHARING_FROM": "1",
        **environment,
    }
    settings = {name: value for name, value in settings.items() if not name.startswith(("PMI_", "HYDI_"))}
    return subprocess.Popen(
        command,
        env=settings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str], folder: Path, limit: float = 60.0, began: float = 0.0) -> Ran:
    """Waits for the end, which must come within the limit."""
    try:
        err, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        err, _ = process.communicate()
        raise AssertionError(f"the ranks were at work after {limit} s, and wrote:\n{err}") from None
    out = [path.read_text() for path in sorted(folder.glob("out*"), key=lambda p: int(p.name[3:]))]
    return Ran(process.returncode, out, err, time.monotonic() - began)


def run(
    count: int, text: str, folder: Path, *options: str, limit: float = 60.0, **environment: str
) -> list[str]:
    """Runs a script on so many ranks, which must end well and say nothing on stderr; returns what each of
    them printed. The names `wg`, `distributed`, `group`, `rank` and `size` are there.
    """
    ran = failing(count, text, folder, *options, limit=limit, **environment)
    assert ran.code == 0, (ran.code, ran.out, ran.err)
    assert ran.err == "", ran.err
    return ran.out


def failing(
    count: int, text: str, folder: Path, *options: str, limit: float = 60.0, **environment: str
) -> Ran:
    """Runs a script that may fail; returns what it left."""
    began = time.monotonic()
    return finish(start(count, text, folder, *options, **environment), folder, limit, began)
