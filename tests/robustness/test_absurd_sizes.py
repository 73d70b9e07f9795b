"""Sizes that no memory holds raise at once, and integers beyond int64 are named: no riddle, no computing for
hours."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import wengert as wg
from wengert import nn


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
def test_absurd_sizes_raise_at_once() -> None:
    script = Path(__file__).with_name("absurd_sizes.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert [line for line in lines if "SURPRISE" in line] == []
    assert done.returncode == 0, [*lines[-1:], done.stderr[-2000:]]


def test_sizes_that_are_no_lengths_are_named() -> None:
    for call, text in (
        (lambda: nn.LSTM(1, 1, 2**40), "LSTM: num_layers must be at most 1048576, got 1099511627776"),
        (lambda: nn.RNN(1, 1, 2**40), "RNN: num_layers must be at most 1048576, got 1099511627776"),
        (
            lambda: nn.Transformer(2, 1, 2**40),
            "TransformerEncoder: the number of layers must be at most 1048576, got 1099511627776",
        ),
        (lambda: wg.debug(-1), "debug: limit must lie in [0, 2^63), got -1"),
        (lambda: wg.debug(2**70), f"debug: limit must lie in [0, 2^63), got {2**70}"),
        (lambda: wg.ones(1).polygamma(-1), "polygamma: n must lie in [0, 2^32), got -1"),
        (
            lambda: wg.memory.set_cache_limit(-1),
            "set_cache_limit: a number of bytes was expected, got -1; 0 keeps nothing",
        ),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
            call()
    with pytest.raises(TypeError, match=r"^debug: limit is an integer, got float$"):
        wg.debug(1e6)


def test_a_tensor_is_no_dictionary() -> None:
    huge = wg.zeros(1).expand(2**31)
    with pytest.raises(TypeError, match=r"^ModuleDict: a mapping or pairs expected, got Tensor$"):
        nn.ModuleDict(huge)
    with pytest.raises(TypeError, match=r"^ParameterDict: a mapping or pairs expected, got Tensor$"):
        nn.ParameterDict(wg.zeros(1, 1).expand(2**31, 2))


def test_lists_of_tensors_for_hooks() -> None:
    with pytest.raises(TypeError, match="list"):
        wg._core._Levels(wg.zeros(1).expand(2**31))


def test_what_is_too_large_is_named() -> None:
    x, n = wg.arange(3.0), 2**70
    for call in (lambda: wg.zeros(n), lambda: x.roll(n), lambda: wg.randint(n, (2,)), lambda: wg.arange(n)):
        with pytest.raises(ValueError, match=f"the integer {n} does not fit into int64"):
            call()
    with pytest.raises(IndexError, match=f"index {n} is beyond the end of every axis"):
        x[n]
    with pytest.raises(IndexError, match=f"index {-n} is beyond the end of every axis"):
        x[-n] = 1.0
    with pytest.raises(ValueError, match="stride must be below 2\\^31, got 1099511627776"):
        wg.nn.functional.max_pool2d(wg.ones(1, 1, 4, 4), 2, 2**40)
