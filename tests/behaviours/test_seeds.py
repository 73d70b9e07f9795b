"""Where random numbers start: a seed of each process's own, unless the program gives one."""

import multiprocessing
import os
import subprocess
import sys

import pytest
import wengert as wg

SCRIPT = "import wengert as wg; print(wg.initial_seed(), wg.rand(3).tolist())"


def drawn(script: str = SCRIPT) -> str:
    """What a new process prints."""
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


def test_every_process_has_a_seed_of_its_own() -> None:
    assert drawn() != drawn()


def test_a_given_seed_is_the_same_everywhere() -> None:
    script = SCRIPT.replace("; print", "; wg.manual_seed(7); print")
    first = drawn(script)
    assert first == drawn(script)
    assert first.startswith("7 ")


def test_the_first_seed_says_what_was_drawn() -> None:
    script = "import wengert as wg; x = wg.rand(3); wg.manual_seed(wg.initial_seed()); "
    script += "print((x == wg.rand(3)).all())"
    assert drawn(script).strip() == "tensor(True)"


def test_seed_starts_over_with_another() -> None:
    first, second = wg.seed(), wg.seed()
    assert first != second
    assert wg.initial_seed() == second
    numbers = wg.rand(3)
    wg.manual_seed(second)
    assert wg.rand(3).tolist() == numbers.tolist()


def _numbers(_: int) -> list[float]:
    return wg.rand(4).tolist()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.parametrize("given", [False, True])
def test_forked_workers(given: bool) -> None:
    script = f"""
import os, wengert as wg
{"wg.manual_seed(3)" if given else "wg.rand(1)"}
def child():
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, repr(wg.rand(4).tolist()).encode())
        os._exit(0)
    os.close(write)
    out = b""
    while part := os.read(read, 4096):
        out += part
    os.wait()
    return out.decode()
a, b, own = child(), child(), repr(wg.rand(4).tolist())
print(len({{a, b, own}}))
"""
    # A seed that the program gave is everybody's, as in PyTorch; one from the system is not.
    assert drawn(script).strip() == ("1" if given else "3")


def test_spawned_workers_differ() -> None:
    with multiprocessing.get_context("spawn").Pool(2, maxtasksperchild=1) as pool:
        found = pool.map(_numbers, range(2), chunksize=1)
    assert found[0] != found[1]
