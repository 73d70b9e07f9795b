"""The demonstration, as a user runs it."""

import re
import subprocess
import sys

import numpy as np
import pytest
from wengert import demo, plot


def run(*arguments, folder):
    command = [sys.executable, "-m", "wengert.demo", "--out", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_reaches_the_goal_and_draws(tmp_path):
    done = run(folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    (accuracy,) = re.findall(r"([\d.]+)% of the held-out digits are right", done.stdout)
    assert float(accuracy) >= 97.0
    picture = tmp_path / "wengert_demo.png"
    assert f"picture: {picture.resolve()}" in done.stdout
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert len(re.findall(r"^ +\d+ +[\d.]+ +[\d.]+ +[\d.]+% +[\d.]+ +[\d.]+$", done.stdout, re.M)) == 30


@pytest.mark.parametrize("extra", [("--amp", "bf16"), ("--amp", "f16", "--checkpoint")])
def test_other_modes_learn(tmp_path, extra):
    done = run(*extra, folder=tmp_path)
    (accuracy,) = re.findall(r"([\d.]+)% of the held-out digits are right", done.stdout)
    assert float(accuracy) >= 97.0, done.stdout + done.stderr


def test_missing_the_goal_is_a_failure(tmp_path):
    done = run("--epochs", "1", "--lr", "0", folder=tmp_path)
    assert done.returncode == 1
    assert "the goal of 97% was missed" in done.stderr


def test_missing_packages_are_named(tmp_path):
    hide = "import sys; sys.modules['{}'] = None; from wengert import demo; demo.main(['--out', {!r}])"
    for package, name in (("sklearn", "scikit-learn"), ("matplotlib", "matplotlib")):
        code = hide.replace("{}", package, 1).replace("{!r}", repr(str(tmp_path)))
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert f"the demo needs {name}" in done.stderr
        assert "pip install wengert[demo]" in done.stderr


def test_split_is_fixed_and_stratified():
    a, b = demo.load_digits(), demo.load_digits()
    np.testing.assert_array_equal(a.test_labels, b.test_labels)
    assert (len(a.train_labels), len(a.test_labels)) == (1347, 450)
    assert np.bincount(a.test_labels).min() >= 43


def test_shifts_move_whole_images():
    image = np.zeros((50, 8, 8), np.float32)
    image[:, 3, 4] = 1.0
    moved = demo.shifted(image, np.random.default_rng(0))
    rows, columns = np.nonzero(moved.sum(0))
    assert moved.sum() == 50
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (2, 4, 3, 5)


def test_smoothing_leaves_out_what_is_not_finite():
    np.testing.assert_allclose(plot.smooth([1.0, np.inf, 3.0, 5.0], 3), [1.0, 2.0, 4.0, 4.0])
