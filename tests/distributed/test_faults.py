"""What goes wrong on one rank: all ranks end within seconds, and one text says what happened, where, on which
rank. None of these may hang; each has a limit of time far below the timeouts of groups.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from distributed.running import MESSAGES, Ran, failing, finish, run, start

LIMIT = 30.0


def failed(count: int, text: str, folder: Path, *options: str, **environment: str) -> Ran:
    """Runs a script that must fail, soon."""
    ran = failing(count, text, folder, *options, limit=LIMIT, **environment)
    assert ran.code != 0, ran.err
    return ran


def test_a_rank_that_raises_ends_all_with_its_traceback_once(tmp_path: Path) -> None:
    ran = failed(
        3,
        """print("begun")
group.barrier()
if rank == 1:
    raise ValueError("deliberate")
group.barrier()
""",
        tmp_path,
    )
    assert ran.code == 1
    # What other ranks have printed is not lost.
    assert ran.out == ["begun\n"] * 3
    assert ran.err == (
        "\nrank 1 of 3 failed; all ranks end:\n"
        "Traceback (most recent call last):\n"
        f'  File "{tmp_path}/script.py", line 5, in <module>\n'
        '    raise ValueError("deliberate")\n'
        "ValueError: deliberate\n"
    )


def test_what_all_ranks_raise_is_written_once(tmp_path: Path) -> None:
    ran = failed(3, "wg.ones(2) @ wg.ones(3)\n", tmp_path)
    assert ran.err.startswith("\nranks 0-2 of 3 failed; all ranks end:\nTraceback (most recent call last):\n")
    assert ran.err.count("Traceback") == ran.err.count("ShapeError") == 1


def test_different_errors_are_both_written(tmp_path: Path) -> None:
    ran = failed(2, "group.barrier()\nraise [KeyError, ValueError][rank]('deliberate')\n", tmp_path)
    assert "rank 0 of 2 failed" in ran.err
    assert "KeyError: 'deliberate'" in ran.err
    assert "rank 1 of 2 failed" in ran.err
    assert "ValueError: deliberate" in ran.err


def test_a_program_s_own_hook_writes_the_error(tmp_path: Path) -> None:
    hook = "sys.excepthook = lambda kind, value, trace: print('mine:', value, file=sys.stderr)"
    text = """import sys, subprocess
if rank == 0:
    raise ValueError("deliberate")
group.barrier()
"""
    # Before the group is made, as libraries that print tracebacks do.
    ran = failed(2, text, tmp_path, first=hook)
    assert ran.err == "\nrank 0 of 2 failed; all ranks end:\nmine: deliberate\n"


@pytest.mark.parametrize("sharing_from", ["1", MESSAGES])
def test_a_rank_that_hangs_is_named_with_its_line(tmp_path: Path, sharing_from: str) -> None:
    ran = failed(
        3,
        """import time
def load():
    time.sleep(1000)
def step():
    wg.psum(wg.ones(3), "data")
with distributed.axis("data") as ranks:
    ranks.timeout = 1.0
    step()
    if rank == 1:
        load()
    step()
""",
        tmp_path,
        SHARING_FROM=sharing_from,
    )
    assert ran.seconds < 10
    assert ran.err.count("Traceback") == 1
    assert ran.err.endswith(
        "TimeoutError: psum of float32[3]: rank 1 did not come within 1 s. The ranks of the group:\n"
        "  ranks 0, 2: waiting in psum of float32[3], operation 2 of this group, at "
        f"{tmp_path}/script.py, line 6, in step\n"
        f"  rank 1: at {tmp_path}/script.py, line 4, in load, after 1 operation of this group\n"
    )


def test_the_timeout_can_be_caught_and_the_group_is_of_no_use_afterwards(tmp_path: Path) -> None:
    out = run(
        2,
        """import time
group.timeout = 0.5
other = group.split(0, rank)
if rank == 0:
    try:
        group.barrier()
    except TimeoutError as error:
        print(str(error).partition(".")[0])
    try:
        group.barrier()
    except RuntimeError as error:
        print(error)
else:
    time.sleep(1.5)
other.timeout = 60
other.barrier()
sys.stdout.flush()
other.barrier()
# What was given up cannot be taken back.
os._exit(0)
""",
        tmp_path,
    )
    assert out[0].splitlines() == [
        "barrier: rank 1 did not come within 0",
        "barrier: an operation of this group was given up (TimeoutError in barrier), so its ranks no longer "
        "agree; "
        "end the program, or go on without this group",
    ]


def test_a_rank_that_computes_without_end_is_named(tmp_path: Path) -> None:
    ran = failed(
        2,
        """group.timeout = 0.5
if rank == 0:
    n = 0
    while True:
        n += 1
group.barrier()
""",
        tmp_path,
    )
    assert "barrier: rank 0 did not come within 0.5 s" in ran.err
    assert f"rank 0: at {tmp_path}/script.py, line " in ran.err


def test_a_rank_that_keeps_pythons_lock_is_named_with_its_line(tmp_path: Path) -> None:
    ran = failed(
        2,
        """import re
group.timeout = 0.5
def search():
    # Exponential, in one call of C.
    re.match("(a*)*b", "a" * 60)
group.barrier()
if rank == 1:
    search()
group.barrier()
""",
        tmp_path,
    )
    assert "barrier: rank 1 did not come within 0.5 s" in ran.err
    assert f"rank 1: no answer: it keeps Python's lock, at {tmp_path}/script.py, line 6, in search" in ran.err


def test_a_stopped_rank_is_named(tmp_path: Path) -> None:
    ran = failed(
        2,
        """import signal
group.timeout = 0.5
group.barrier()
if rank == 1:
    os.kill(os.getpid(), signal.SIGSTOP)
group.barrier()
""",
        tmp_path,
    )
    assert "barrier: rank 1 did not come within 0.5 s" in ran.err
    assert "rank 1: no answer: it is stopped (process " in ran.err


def test_a_rank_that_stops_in_a_transfer_is_named(tmp_path: Path) -> None:
    # Large enough to be under way when its receiver is stopped.
    ran = failed(
        2,
        """import signal, threading, time
group.timeout = 1.0
sent, received = bytearray(200_000_000), bytearray(400_000_000)
if rank == 1:
    threading.Timer(0.02, lambda: os.kill(os.getpid(), signal.SIGSTOP)).start()
for _ in range(100):
    group.all_gather(sent, received)
""",
        tmp_path,
    )
    assert "rank 1: no answer: it is stopped" in ran.err


def test_a_rank_that_ends_early_is_named(tmp_path: Path) -> None:
    ran = failed(3, "group.barrier()\nif rank == 1:\n    sys.exit(0)\ngroup.barrier()\n", tmp_path)
    assert ran.seconds < 10
    assert ran.err.endswith(
        "RuntimeError: barrier: rank 1 has come to the end of the program before collective operation 2 of "
        "this "
        "group; all ranks of a group must call it\n"
    )


def test_ranks_that_end_at_different_times(tmp_path: Path) -> None:
    out = run(3, "import time\ngroup.barrier()\ntime.sleep(0.3 * rank)\nprint(rank)\n", tmp_path)
    assert out == ["0\n", "1\n", "2\n"]
    ran = failed(3, "group.barrier()\nsys.exit(rank)\n", tmp_path)
    assert ran.code in (1, 2, 3)
    assert ran.err == ""


def test_a_killed_rank_is_named_where_the_starter_leaves_the_others_time(tmp_path: Path) -> None:
    text = """import signal
group.barrier()
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
group.barrier()
"""
    ran = failed(3, text, tmp_path, starter="mpiexec.gforker")
    assert "\nrank 1 of 3 is gone; all ranks end:\n" in ran.err
    assert f"{tmp_path}/script.py, line 6\n  rank 1: gone: killed, or crashed (process " in ran.err
    # mpirun ends all ranks at once, and says so itself.
    ran = failed(3, text, tmp_path)
    assert ran.seconds < 10
    assert "Killed (signal 9)" in ran.err


def test_memory_of_the_ranks_goes_with_them(tmp_path: Path) -> None:
    """MPICH's has no name any more, which would stay behind when a rank is killed."""
    text = """group.barrier()
with open("/proc/self/maps") as file:
    names = [line for line in file if "mpich_shm" in line]
print(names != [], all("(deleted)" in name for name in names))
"""
    for count in (2, 1):
        assert run(count, text, tmp_path)[:count] == ["True True\n"] * count


def test_ctrl_c_ends_all_ranks(tmp_path: Path) -> None:
    text = """import time
group.barrier()
print("ready", flush=True)
if rank == 1:
    time.sleep(1000)
group.barrier()
"""
    for signalled in (os.kill, os.killpg):
        for path in tmp_path.glob("out*"):
            path.unlink()
        began = time.monotonic()
        process = start(2, text, tmp_path)
        while [path.read_text() for path in tmp_path.glob("out*")] != ["ready\n"] * 2:
            assert time.monotonic() < began + LIMIT
            time.sleep(0.05)
        signalled(process.pid, signal.SIGINT)
        ran = finish(process, tmp_path, LIMIT, began)
        assert ran.seconds < 15
        assert "Traceback" not in ran.err
        assert "\nCtrl-C: all 2 ranks end.\n" in ran.err
        assert f"  rank 0: at {tmp_path}/script.py, line 7\n" in ran.err
        assert f"  rank 1: at {tmp_path}/script.py, line 6\n" in ran.err


def test_a_forked_child_is_no_rank(tmp_path: Path) -> None:
    out = run(
        2,
        """child = os.fork()
if child == 0:
    try:
        group.barrier()
    except RuntimeError as error:
        with open(os.path.join(sys.argv[1], "child"), "w") as file:
            file.write(str(error))
    # Ends as programs do, without a word to MPI.
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
child = os.fork()
if child == 0:
    sys.stderr = open(os.devnull, "w")
    raise ValueError("of the child alone")
assert os.waitpid(child, 0)[1] != 0
group.barrier()
print("well")
""",
        tmp_path,
    )
    assert out == ["well\n"] * 2
    assert (tmp_path / "child").read_text().startswith("barrier: this process was forked from a rank")


def test_two_threads_in_one_group(tmp_path: Path) -> None:
    out = run(
        2,
        """import threading, time
if rank == 0:
    thread = threading.Thread(target=group.barrier)
    thread.start()
    while not group.inside:
        time.sleep(0.001)
    try:
        group.barrier()
    except RuntimeError as error:
        print(error)
    thread.join()
else:
    time.sleep(1)
    group.barrier()
# Each thread with a group of its own.
own = group.split(0, rank)
thread = threading.Thread(target=lambda: [own.barrier() for _ in range(100)])
thread.start()
for _ in range(100):
    group.barrier()
thread.join()
""",
        tmp_path,
    )
    assert out[0].startswith("barrier: another thread is in barrier of the same group")


def test_a_rank_that_fails_before_mpi_starts(tmp_path: Path) -> None:
    # The others wait inside of MPI, where no Python runs.
    first = """
import os, wengert.distributed
if os.environ["PMI_RANK"] == "1":
    raise ValueError("deliberate")
"""
    ran = failed(2, "", tmp_path, first=first)
    assert ran.seconds < 10
    assert ran.err.count("Traceback") == 1
    assert "ValueError: deliberate" in ran.err


def test_a_rank_that_does_not_start_mpi(tmp_path: Path) -> None:
    first = """
import os, time
if os.environ["PMI_RANK"] == "1":
    time.sleep(1000)
"""
    ran = failed(2, "", tmp_path, first=first, WENGERT_DISTRIBUTED_TIMEOUT="1")
    assert ran.seconds < 10
    assert "Timeout (0:00:01)!" in ran.err
    assert f'File "{tmp_path}/script.py", line 1 in <module>' in ran.err
    ran = failed(2, "", tmp_path, first="from mpi4py import MPI" + first, WENGERT_DISTRIBUTED_TIMEOUT="1")
    assert ran.err == (
        "wengert.distributed: not all 2 ranks asked for each other within 1 s; "
        "rank 0 did, at <string>, line 8\n"
    )


def test_a_starter_of_another_mpi(tmp_path: Path) -> None:
    ran = failed(1, "", tmp_path, OMPI_COMM_WORLD_SIZE="4")
    assert (
        "RuntimeError: Open MPI's mpirun started 4 processes (OMPI_COMM_WORLD_SIZE=4), but the MPI of"
        in ran.err
    )
    assert 'pip install "wengert[mpi]" puts one beside python' in ran.err
    # Below mpirun, Slurm counts the hosts of a job.
    assert run(1, "print(size)\n", tmp_path, SLURM_STEP_NUM_TASKS="2") == ["1\n"]


def test_without_mpi(tmp_path: Path) -> None:
    ran = failed(1, "", tmp_path, first="sys.modules['mpi4py'] = None")
    assert (
        "ImportError: wengert.distributed needs mpi4py and an MPI library: "
        'pip install "wengert[mpi]" brings both' in ran.err
    )


def test_importing_starts_no_mpi() -> None:
    code = (
        "import sys, wengert.distributed as d, wengert.utils.data; print('mpi4py' in sys.modules);"
        "sys.modules['mpi4py'] = None; print(d.is_available(), d.is_initialized())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\nFalse False\n"
