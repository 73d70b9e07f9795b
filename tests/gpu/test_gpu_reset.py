"""A device that is lost or reset, in processes of their own: errors for what was on it, a new one for
the rest; what a process leaves for the next one."""

import os
import subprocess
import sys

import pytest
import wengert as wg


def run(program: str, **environment: str) -> None:
    head = """if True:
        import numpy as np
        import wengert as wg
        def refused(call):
            try:
                call()
            except wg.DeviceError as error:
                return str(error)
            raise AssertionError("nothing was raised")
    """
    result = subprocess.run(
        [sys.executable, "-c", head + program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert "panicked" not in result.stderr


EVERY_USE = """
        x = wg.ones(4, 4).to("gpu")
        w = wg.rand(4, 4, device="gpu", requires_grad=True)
        loss = (x @ w).softmax(-1).sum()
        kernel = wg.gpu.kernel(
            "@group(0) @binding(0) var<storage, read> x: array<f32>;"
            "@group(0) @binding(1) var<storage, read_write> y: array<f32>;"
            "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) i: vec3<u32>)"
            "{ if (i.x < arrayLength(&x)) { y[i.x] = x[i.x] + 1.0; } }"
        )
        assert kernel(x).tolist() == [[2.0] * 4] * 4
        def fill(x):
            x[1:, 2] = 3.0
        uses = {
            "tolist": lambda: x.tolist(), "add": lambda: (x + 1), "matmul": lambda: x @ w,
            "sum": lambda: x.sum(), "item": lambda: x[1, 2].item(), "copy": lambda: x.T.contiguous(),
            "cpu": lambda: x.cpu(), "grad": lambda: loss.backward(),
            "fill": lambda: fill(x), "kernel": lambda: kernel(x), "cast": lambda: x.half(),
            "sort": lambda: x.sort(), "take": lambda: x[wg.tensor([1]).int()],
            "cat": lambda: wg.cat([x, x]), "argmax": lambda: x.argmax(),
        }
"""


def test_a_lost_device_says_so_until_it_is_reset() -> None:
    run(
        EVERY_USE
        + """
        wg.gpu.synchronize()
        wg._core._gpu_lose(0)
        for name, use in uses.items():
            said = refused(use)
            assert "gpu:0 was lost" in said and "wengert.gpu.reset(0)" in said, (name, said)
        assert "was lost" in refused(lambda: wg.zeros(2, device="gpu"))
        wg.gpu.reset()
        for name, use in uses.items():
            said = refused(use)
            assert said.endswith(
                "this tensor was on gpu:0 before wengert.gpu.reset(0), which ended it; make it anew"
            ), (name, said)
        x = wg.ones(4, 4).to("gpu")
        w = wg.rand(4, 4, device="gpu", requires_grad=True)
        assert kernel(x).tolist() == [[2.0] * 4] * 4
        (x @ w).sum().backward()
        assert w.grad.tolist() == [[4.0] * 4] * 4
        """
    )


def test_a_reset_of_a_device_in_use() -> None:
    run(
        EVERY_USE
        + """
        stats = wg.gpu.memory_stats()
        assert stats["dispatches"] > 0
        old = [wg.rand(1000, device="gpu") for _ in range(50)]
        wg.gpu.reset()
        assert wg.gpu.memory_stats()["live_bytes"] == 0
        for name, use in uses.items():
            assert "make it anew" in refused(use), name
        new = wg.ones(4).to("gpu")
        assert "make it anew" in refused(lambda: x + new) and "make it anew" in refused(lambda: new + x)
        with wg.gpu.profile() as profile:
            (new + new).sum().item()
        assert profile.launches
        for _ in range(3):
            wg.gpu.reset(0)
            assert (wg.arange(4, dtype=wg.int32, device="gpu") * 2).tolist() == [0, 2, 4, 6]
        del old
        wg.gpu.empty_cache()
        """
    )


def test_a_reset_within_a_profile_and_of_a_device_that_is_not_open() -> None:
    run(
        """
        wg.gpu.reset()
        if wg.gpu.info()["timestamps"]:
            with wg.gpu.profile() as profile:
                (wg.ones(3).to("gpu") + 1).sum()
                wg.gpu.reset()
            with wg.gpu.profile() as profile:
                (wg.ones(3).to("gpu") + 1).sum()
            assert profile.launches
        """
    )


def test_a_gpu_that_is_not_there() -> None:
    with pytest.raises(wg.DeviceError, match="gpu:99 does not exist"):
        wg.gpu.reset(index=99)
    with pytest.raises(ValueError, match=r"gpu\.reset: the index of a GPU is an integer"):
        wg.gpu.reset(-1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_is_told_so_and_leaves_the_parents_device_alone() -> None:
    run(
        """
        import os
        x = wg.ones(3).to("gpu")
        child = os.fork()
        if child == 0:
            uses = lambda: x + 1, lambda: wg.gpu.reset(), lambda: wg.ones(2, device="gpu")
            said = [refused(use) for use in uses]
            del x
            os._exit(0 if all("cannot be used by its forked child" in text for text in said) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert (x + 1).tolist() == [2.0, 2.0, 2.0]
        """
    )


# ---- compiled kernels on disk ---------------------------------------------------------------------

WORK = """
        x = wg.ones(4, 4).to("gpu")
        assert (x @ x + x.sum()).tolist() == [[20.0] * 4] * 4
"""


@pytest.fixture(name="files")
def _files(tmp_path):
    """Runs the work with kernels kept in a folder; returns its files."""

    def files(**environment: str):
        run(WORK, **{"WENGERT_CACHE_DIR": str(tmp_path / "made" / "here"), **environment})
        return sorted((tmp_path / "made" / "here").glob("*"))

    if "pipeline_cache" not in wg.gpu.info()["features"]:
        pytest.skip("the adapter keeps no compiled kernels")
    return files


def test_compiled_kernels_are_kept(files, tmp_path) -> None:
    (file,) = files()
    whole = file.read_bytes()
    assert file.suffix == ".pipelines"
    assert whole.startswith(b"wengert1")
    for damaged in (b"", b"nonsense", whole[:-1], whole[:20] + bytes([whole[20] ^ 1]) + whole[21:]):
        file.write_bytes(damaged)
        assert files() == [file]
        again = file.read_bytes()
        assert again.startswith(b"wengert1")
        assert len(again) > 100
    file.unlink()
    file.mkdir()
    assert files() == [file], "a folder in place of the file is no error, and nothing else is left"


def test_no_kernels_are_kept_where_the_variable_is_empty_or_nothing_can_be_written(files, tmp_path) -> None:
    user = tmp_path / "user"
    assert files(WENGERT_CACHE_DIR="", XDG_CACHE_HOME=str(user), HOME=str(user)) == []
    assert not (user / "wengert").exists()
    (tmp_path / "file").write_text("")
    assert files(WENGERT_CACHE_DIR=str(tmp_path / "file")) == []


def test_programs_are_made_anew() -> None:
    run("""
        step = wg.jit(lambda x: x * 2 + wg.ones(3, device="gpu"))
        for traces in (1, 2):
            for value in (1.0, 3.0):
                assert step(wg.full((3,), value, device="gpu")).tolist() == [2 * value + 1] * 3
                assert step(x=wg.full((3,), value, device="gpu")).tolist() == [2 * value + 1] * 3
            assert step.traces == 2 * traces, step.traces
            wg.gpu.reset()
        """)


def test_lost_tensors_are_printed() -> None:
    run("""
        x = wg.ones(2, 3, device="gpu")
        wg.gpu.reset()
        assert repr(x) == "tensor(<lost>, shape=(2, 3), device='gpu:0')", repr(x)
        """)
