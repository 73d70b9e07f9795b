"""The GPT of the examples on several ranks: the same files on any number of them, and one log."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import wengert as wg
from distributed.running import MPIRUN

PROGRAM = Path(__file__).parents[2] / "examples" / "gpt.py"
SHORT = "--preset tiny --steps 6 --every 3 --evaluate 2 --bytes 100000 --batch 4 --sample 0"


def _train(count: int, folder: Path, *options: str) -> tuple[str, dict[str, Any]]:
    """Runs the program on so many ranks: what it writes, and what it saves."""
    command = [str(MPIRUN), "-n", str(count), sys.executable, str(PROGRAM), "--distributed", *SHORT.split()]
    done = subprocess.run(
        [*command, "--out", str(folder), *options],
        env={**os.environ, "WENGERT_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout, wg.load(folder / "gpt.pt", weights_only=True)


def _parts(path: Path) -> dict[str, bytes]:
    """What is in an archive, without the times when it was written."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_files_do_not_depend_on_the_number_of_ranks(tmp_path: Path) -> None:
    found = []
    for count in (1, 2, 4):
        folder = tmp_path / str(count)
        folder.mkdir()
        log, saved = _train(count, folder, "--grain", "4", "--accumulate", "2")
        assert f"{count} processes" in log
        found.append((_parts(folder / "gpt.pt"), saved["losses"]))
    losses = found[0][1]
    assert len(losses) == 6
    assert losses[5] < losses[0]
    for other in found[1:]:
        assert other == found[0]


def test_ranks_with_batches_of_their_own(tmp_path: Path) -> None:
    log, saved = _train(2, tmp_path, "--accumulate", "2")
    losses = saved["losses"]
    assert len(losses) == 6
    assert losses[5] < losses[0]
    # One log: the first rank's.
    assert log.count("2 processes") == log.count("held out") == 1
