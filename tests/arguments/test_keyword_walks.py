"""Keywords that many functions share, function by function: `out`, NumPy's names,
what creation functions take.

Every public function that has the keyword is found by its signature and called. `tools/keywords.py` counts
the keywords in `WALKED` as tested for every function, because a test here fails for a function
that ignores them.
"""

import inspect
from typing import Any

import numpy as np
import pytest
import wengert as wg

from arguments.calls import WRITTEN, calls, functions_with, parameters

WALKED = ("out", "dtype", "device", "requires_grad")
# What is drawn has no record; `test_keywords_of_random_numbers` has it.
WITH_OUT = {name: f for name, f in functions_with("out").items() if name != "bernoulli"}


def results(x: Any) -> list[wg.Tensor]:
    """The tensors of a result."""
    return [y for part in x for y in results(part)] if isinstance(x, tuple | list) else [x]


def same(a: Any, b: Any) -> bool:
    """Whether two results are equal bit for bit."""
    return all(
        np.array_equal(x.numpy(), y.numpy(), equal_nan=x.dtype.is_floating_point)
        for x, y in zip(results(a), results(b))
    )


@pytest.mark.parametrize("name", WITH_OUT)
def test_out_receives_the_result_and_is_returned(name: str) -> None:
    function, tried = WITH_OUT[name], 0
    for args, kwargs in calls(name, function):
        tried += 1
        wg.manual_seed(0)
        expected = function(*args, **kwargs)
        if isinstance(expected, bool):
            with pytest.raises(TypeError, match=f"{name}: the result is a Python bool"):
                function(*args, **kwargs, out=wg.zeros((), dtype=wg.bool))
            continue
        out = [wg.zeros(y.shape, dtype=y.dtype) for y in results(expected)]
        many = isinstance(expected, tuple | list)
        wg.manual_seed(0)
        found = function(*args, **kwargs, out=tuple(out) if many else out[0])
        assert same(out, expected)
        assert all(x is y for x, y in zip(results(found), out))
    assert tried


# How a result must look that was asked for in this dtype: a type that nothing has by default.
TYPED = functions_with("dtype")
NARROW = ("linalg.matrix_norm",)  # no half precision


@pytest.mark.parametrize("name", TYPED)
def test_dtype_is_that_of_the_result(name: str) -> None:
    function, tried = TYPED[name], 0
    if name in ("numpy.isdtype", "numpy.astype"):
        pytest.skip("asks about a dtype, or takes it by position alone")
    if name in ("masked.argmax", "masked.argmin"):
        pytest.skip("the dtype is that of what is compared, not that of the places")
    for args, kwargs in calls(name, function):
        tried += 1
        wanted = wg.int16 if any(word in name for word in ("randint", "randperm", "indices")) else wg.float16
        if name in NARROW:
            wanted = wg.float32
        assert {y.dtype for y in results(function(*args, **{**kwargs, "dtype": wanted}))} == {wanted}
    assert tried


# Functions about a card, about files and about the default have tests of their own.
PLACED = {
    name: f
    for name, f in functions_with("device").items()
    if not name.startswith(("cuda.", "safetensors.", "set_default_device"))
}


@pytest.mark.parametrize("name", PLACED)
def test_a_device_that_does_not_exist_is_refused(name: str) -> None:
    function, tried = PLACED[name], 0
    if name == "optim.swa_utils.update_bn":
        pytest.skip("moves what a loader yields")
    if name == "distributed.broadcast_object_list":
        pytest.skip("sends objects, which have no device")
    for args, kwargs in calls(name, function):
        tried += 1
        assert {str(y.device) for y in results(function(*args, **{**kwargs, "device": "cpu"}))} == {"cpu"}
        with pytest.raises(wg.DeviceError, match=r"(?i)gpu"):
            function(*args, **{**kwargs, "device": "gpu:15"})
    assert tried


RECORDED = functions_with("requires_grad")


@pytest.mark.parametrize("name", [n for n in RECORDED if n in WRITTEN])
def test_requires_grad_makes_a_leaf(name: str) -> None:
    for args, kwargs in calls(name, RECORDED[name]):
        more = {"dtype": wg.float32} if "dtype" in inspect.signature(RECORDED[name]).parameters else {}
        found = RECORDED[name](*args, **{**kwargs, **more, "requires_grad": True})
        assert found.requires_grad
        assert found.is_leaf
        assert not RECORDED[name](*args, **{**kwargs, **more}).requires_grad


# One name for another: the value that means the same by both.
SYNONYMS = {"axis": "dim", "keepdims": "keepdim"}
RENAMED = [
    (name, f, word)
    for word in SYNONYMS
    for name, f in functions_with(word).items()
    if SYNONYMS[word] in parameters(f)
]


@pytest.mark.parametrize(("name", "function", "word"), RENAMED, ids=lambda x: x if isinstance(x, str) else "")
def test_both_names_mean_the_same(name: str, function: Any, word: str) -> None:
    values = [True, False] if word == "keepdims" else [0, -1]
    tried = 0
    for args, kwargs in calls(name, function):
        rest = {k: v for k, v in kwargs.items() if k not in (word, SYNONYMS[word])}
        for value in values:
            try:
                expected = function(*args, **rest, **{SYNONYMS[word]: value})
            except (TypeError, ValueError, IndexError, RuntimeError):
                continue
            tried += 1
            assert same(function(*args, **rest, **{word: value}), expected)
    if not tried:
        pytest.skip("the sample passes it by position")
