"""Checkpoints: what ranks write together any number of ranks reads, whole or not at all."""

import contextlib
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import wengert as wg
from distributed.running import run, start
from distributed.training import program, ran
from wengert.distributed import checkpoint


def test_other_numbers_of_ranks_read(tmp_path: Path) -> None:
    run_folder = tmp_path / "run"
    for count in (1, 2, 4):
        found = ran(count, "checkpoints", tmp_path, WRITE="1", RUN=str(run_folder))
        assert found == ["save each step under a name of its own\n"] * count
        assert len(list((run_folder / f"step-{count}").glob("*.safetensors"))) == count
    assert ran(3, "checkpoints", tmp_path, RUN=str(run_folder)) == ["step-4\n"] * 3


UNSAVED = """\
{} run/step-1 is not written, rank 1 failed: OSError: [Errno 28] no space left
{} run/step-1 is not written, rank 1 failed: TypeError: x is a set; tensors, numbers, texts, and dicts, lists \
and tuples of them expected
{} rank 1 has another tensor 'more' than rank 0, or only one of them has it; the state is the same on all \
ranks, other than in shards
{} rank 1 has another tensor 'x' than rank 0, or only one of them has it; the state is the same on all ranks, \
other than in shards
{} a shard of 'rows' begins at row 0, where row 3 is next; shards of all ranks together are the tensor
{} a shard of 'rows' begins at row 4, where row 3 is next; shards of all ranks together are the tensor
{} a shard of 'rows' begins at row -1, where row 0 is next; shards of all ranks together are the tensor
{} shards of 'rows' have other dtypes or row shapes
{} shards of 'rows' have other dtypes or row shapes
{} rank 1 has another tensor 'rows' than rank 0, or only one of them has it; the state is the same on all \
ranks, other than in shards
{} keep= is a number of checkpoints from 1, or None, got 0
{} keep= is a number of checkpoints from 1, or None, got 1.5
saved
"""


def test_what_is_not_saved_raises_on_all_ranks(tmp_path: Path) -> None:
    first, second = ran(2, "unsaved", tmp_path)
    kinds = ["RuntimeError"] * 2 + ["ValueError"] * 10
    expected = UNSAVED.format(*(f"{kind} checkpoint.save:" for kind in kinds)).splitlines()
    assert first.splitlines() == expected
    # The rank that failed raises its own error.
    expected[0] = "OSError [Errno 28] no space left"
    expected[1] = (
        "TypeError x is a set; tensors, numbers, texts, and dicts, lists and tuples of them expected"
    )
    assert second.splitlines() == expected


def test_names_that_look_alike(tmp_path: Path) -> None:
    a, b, c = wg.ones(2), wg.zeros(2), wg.ones(3)
    state = {"m": {"x.y": a, "x": {"y": b}, "x.y#2": c}, 1: a + 1, "1": b + 2, "__metadata__": c + 1}
    checkpoint.save(state, tmp_path / "1")
    found = checkpoint.load(tmp_path / "1")
    assert found["m"]["x.y"].equal(a)
    assert found["m"]["x"]["y"].equal(b)
    assert found["m"]["x.y#2"].equal(c)
    assert found[1].equal(a + 1)
    assert found["1"].equal(b + 2)
    assert found["__metadata__"].equal(c + 1)


def test_those_written_last_are_kept(tmp_path: Path) -> None:
    for number in (100, 200, 300, 10):
        checkpoint.save({"step": number}, tmp_path / f"step-{number}", keep=2)
        assert checkpoint.latest(tmp_path) == tmp_path / f"step-{number}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-10", "step-300"]
    checkpoint.save({}, tmp_path / "last", keep=1)
    assert [path.name for path in tmp_path.iterdir()] == ["last"]
    with pytest.raises(ValueError, match="no name for a checkpoint"):
        checkpoint.save({}, tmp_path / "step.unfinished")


class _Killed(BaseException):
    """The end of a process, at some call of the operating system."""


def test_every_call_may_be_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run"
    checkpoint.save({"x": wg.full((3,), 1.0)}, folder / "step-1")
    calls = ["mkdir", "open", "fsync", "rename", "replace", "rmdir", "unlink"]
    originals: dict[str, Any] = {name: getattr(os, name) for name in calls}
    left = 0

    def last(name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                raise _Killed
            return originals[name](*args, **kwargs)

        return call

    for name in calls:
        monkeypatch.setattr(os, name, last(name))
    newest, seen = 1, set()
    for at in range(1, 60):
        left = at
        try:
            checkpoint.save({"x": wg.full((3,), newest + 1.0)}, folder / f"step-{newest + 1}", keep=1)
            killed = False
        except _Killed:
            killed = True
        left = -1
        found = checkpoint.latest(folder)
        assert found is not None
        number = int(found.name.removeprefix("step-"))
        assert number in (newest, newest + 1)
        assert checkpoint.load(found)["x"].tolist() == [number] * 3
        seen.add((killed, number - newest))
        newest = number
        if not killed:
            break
    # Calls were the last before and after the name was given, and in the end none was.
    assert seen == {(True, 0), (True, 1), (False, 1)}
    assert [path.name for path in folder.iterdir()] == [f"step-{newest}"]


def _step(folder: Path) -> int:
    """The last step that a checkpoint has."""
    found = checkpoint.latest(folder / "run")
    return int(found.name.removeprefix("step-")) if found else 0


def _kill(folder: Path, process: "subprocess.Popen[str]") -> bool:
    """Kills the ranks, and waits until all are gone; tells whether one was at work."""
    is_running = process.poll() is None
    for path in folder.glob("pid*"):
        with contextlib.suppress(ProcessLookupError, ValueError):
            os.kill(int(path.read_text()), signal.SIGKILL)
        path.unlink()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    return is_running


def test_killed_twenty_times(tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    folder.mkdir()
    chance = random.Random(0)
    for i in range(20):
        # Some steps after it was started, and somewhere within a step.
        until, more = _step(folder) + chance.randint(1, 2), chance.uniform(0.0, 0.02)
        # One rank goes on where two were, with the same bits, and two where one was; no life ends by itself.
        process = start(1 + i % 2, program("lives"), folder, STEPS="1000000")
        for _ in range(3000):
            if _step(folder) >= until:
                break
            time.sleep(0.01)
        time.sleep(more)
        assert _kill(folder, process), "the program ended before it was killed"
    steps = _step(folder) + 5
    expected = ran(2, "lives", tmp_path, STEPS=str(steps))
    assert run(2, program("lives"), folder, STEPS=str(steps)) == expected
    assert len(expected[0].split()) == steps
