"""Kernels that are compiled in the background, in processes of their own: several at once and each once, also
where threads want the same ones, and where the process, the device or the parent of a fork ends meanwhile."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.gpu

# Kernels that no process has yet.
HEAD = """if True:
    import threading
    import numpy as np
    import wengert as wg
    NAMES = (
        "sin cos tan exp log sqrt tanh sinh cosh atan asin exp2 log2 expm1 log1p rsqrt sigmoid square "
        "floor ceil abs neg erf relu softplus"
    ).split()
    x = wg.linspace(0.1, 0.9, 64).to("gpu")
    x.tolist()
    compiled = lambda: wg.gpu.memory_stats()["pipelines_created"]
    before = compiled()
    begun = lambda: [getattr(x, name)() for name in NAMES]
    want = [getattr(x.cpu(), name)().numpy() for name in NAMES]
    def check(all):
        for name, y, expected in zip(NAMES, all, want):
            np.testing.assert_allclose(y.cpu().numpy(), expected, rtol=1e-5, atol=1e-6, err_msg=name)
"""


def run(program: str, head: str = HEAD, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", head + program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert "panicked" not in result.stderr
    return result.stdout


def test_several_at_once_and_each_once() -> None:
    run(
        """
    check(begun())
    assert compiled() - before == len(NAMES), (compiled(), before)
    assert wg.gpu.memory_stats()["most_compiling"] > 1
    check(begun())
    assert compiled() - before == len(NAMES)
    """
    )


def test_threads_that_want_the_same() -> None:
    run(
        """
    start, results = threading.Barrier(4), {}
    def work(i):
        start.wait()
        results[i] = [y.tolist() for y in begun()]
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert all(results[i] == results[0] for i in range(4))
    assert compiled() - before == len(NAMES)
    check(begun())
    """
    )


@pytest.mark.parametrize("count", [1, 3, 25])
def test_the_process_ends(count: int) -> None:
    run(f"[getattr(x, name)() for name in NAMES[:{count}]]")


def test_work_behind_the_end_of_the_threads() -> None:
    # What is registered first runs last, behind the library's own.
    head = "import atexit\natexit.register(lambda: print((last * 2 + last.tan()).tolist()[0] > 0))\n"
    program = (
        "\n    y = begun()\n    last = x.clone()\n    other = [wg.jit(wg.atan2)(x, x) for _ in range(3)]\n"
    )
    assert run(program, head + HEAD).strip() == "True"


@pytest.mark.parametrize("lost", [False, True])
def test_the_device_ends(lost: bool) -> None:
    run(
        f"""
    for _ in range(3):
        y = begun()
        if {lost}:
            wg._core._gpu_lose(0)
        wg.gpu.reset()
        try:
            y[0].tolist()
            raise AssertionError("nothing was raised")
        except wg.DeviceError as error:
            assert "make it anew" in str(error)
        x = wg.linspace(0.1, 0.9, 64).to("gpu")
    check(begun())
    """
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_waits_for_nothing() -> None:
    run(
        """
    import os, sys, warnings
    warnings.simplefilter("ignore")
    y = begun()
    child = os.fork()
    if child == 0:
        try:
            y[0].tolist()
        except wg.DeviceError:
            del y
            sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    check(y)
    """
    )


def test_a_profile_and_the_texts() -> None:
    run(
        """
    if wg.gpu.info()["timestamps"]:
        with wg.gpu.profile() as profile:
            y = begun()
        assert len(profile.launches) == len(NAMES)
        assert all(launch.start >= 0 and launch.seconds >= 0 for launch in profile.launches)
    y = begun()
    assert len(wg._core._gpu_texts(0)) >= len(NAMES)
    check(y)
    """
    )
