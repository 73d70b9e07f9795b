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
from wengert.distributed import checkpoint

STATE = """
from wengert.distributed import checkpoint
folder = FOLDER
x = wg.arange(24.0).reshape(12, 2)
tied = wg.arange(6).reshape(2, 3)
state = {
    "model": {"a.weight": tied, "b.weight": tied, "bias": wg.ones(3).bfloat16(), "none": wg.empty(0, 2)},
    "optimizer": {
        "state": {0: {"step": 3, "mean": x.T}},
        "groups": [{"betas": (0.9, 0.1 + 0.2), "lr": float("inf")}],
    },
    "step": 7, "name": "run", "on": True, "nothing": None,
}

def shard(count, at):
    return checkpoint.Shard(x[12 // count * at : 12 // count * (at + 1)], 12 // count * at)

def check(found):
    rows = found.pop("rows")
    assert list(found) == list(state) and found["model"].keys() == state["model"].keys()
    for name, value in state["model"].items():
        read = found["model"][name]
        assert read.dtype == value.dtype and read.shape == value.shape and read.equal(value)
    entry = found["optimizer"]["state"][0]
    assert entry["step"] == 3 and entry["mean"].equal(x.T)
    assert found["optimizer"]["groups"] == state["optimizer"]["groups"]
    assert [found[name] for name in ("step", "name", "on", "nothing")] == [7, "run", True, None]
    assert rows.whole().equal(x)
    assert rows.rows(5 * rank, 5 * rank + 3).equal(x[5 * rank : 5 * rank + 3])
    assert rows.rows(4, 4).shape == (0, 2)
"""

WRITTEN = (
    STATE
    + """
checkpoint.save({**state, "rows": shard(size, rank)}, folder / f"step-{size}")
check(checkpoint.load(folder / f"step-{size}"))
try:
    checkpoint.save(state, folder / f"step-{size}")
except FileExistsError as error:
    print(str(error).split("; ")[1])
"""
)

READ = (
    STATE
    + """
for path in sorted(folder.iterdir()):
    check(checkpoint.load(path))
print(checkpoint.latest(folder).name)
"""
)


def test_other_numbers_of_ranks_read(tmp_path: Path) -> None:
    folder = f"__import__('pathlib').Path({str(tmp_path / 'run')!r})"
    for count in (1, 2, 4):
        own = tmp_path / str(count)
        own.mkdir()
        found = run(count, WRITTEN.replace("FOLDER", folder), own)
        assert found == ["save each step under a name of its own\n"] * count
        assert len(list((tmp_path / "run" / f"step-{count}").glob("*.safetensors"))) == count
    assert run(2, READ.replace("FOLDER", folder), tmp_path) == ["step-4\n"] * 2


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


STEPS = 200
LIVES = """
import pathlib, sys
from wengert import nn
from wengert.distributed import DataParallel, checkpoint

folder = pathlib.Path(sys.argv[1])
(folder / f"pid{rank}").write_text(str(__import__("os").getpid()))
wg.manual_seed(0)
model = DataParallel(nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.2), nn.Linear(64, 4)), grain=2)
adam = wg.optim.Adam(model.parameters(), lr=0.01)
losses, step = [], 0
if found := checkpoint.latest(folder / "run"):
    state = checkpoint.load(found)
    model.load_state_dict(state["model"])
    adam.load_state_dict(state["adam"])
    wg.set_rng_state(state["random"])
    losses, step = state["losses"], state["step"]
while step < STEPS:
    adam.zero_grad()
    losses.append(model.backward(lambda: model(wg.randn(8, 4)).square().mean()).item())
    adam.step()
    step += 1
    state = {"model": model.state_dict(), "adam": adam.state_dict(), "random": wg.get_rng_state()}
    checkpoint.save({**state, "losses": losses, "step": step}, folder / f"run/step-{step}", keep=2)
print(*[x.hex() for x in losses])
""".replace("STEPS", str(STEPS))


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
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    return is_running


def test_killed_twenty_times(tmp_path: Path) -> None:
    once, folder = tmp_path / "once", tmp_path / "killed"
    once.mkdir()
    folder.mkdir()
    expected = run(2, LIVES, once)
    chance = random.Random(0)
    for _ in range(20):
        # Some steps after it was started, and somewhere within a step.
        until, more = _step(folder) + chance.randint(1, 4), chance.uniform(0.0, 0.02)
        process = start(2, LIVES, folder)
        for _ in range(3000):
            if _step(folder) >= until:
                break
            time.sleep(0.01)
        time.sleep(more)
        assert _kill(folder, process), "the program ended before it was killed"
    assert _step(folder) < STEPS
    assert run(2, LIVES, folder) == expected
    assert len(expected[0].split()) == STEPS
