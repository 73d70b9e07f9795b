"""NumPy's calls under `wengert.numpy`: its results, and the derivatives that differences of its results
are."""

import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import wengert as wg
import wengert.numpy as xp

from numpy_programs.calls import CALLS, arrays

ARRAYS = arrays()
#: Calls of what runs on the elements alone, which has no derivative.
PLAIN = ("polyfit", "histogram", "unwrap", "lexsort", "union1d", "intersect1d")
#: Calls whose results have a length that the elements decide, or are bools of Python.
DECIDED = ("unique", "nonzero", "argwhere", "extract", "np.where(A > 0)", "allclose", "array_equ")


def parts(result: Any) -> list[Any]:
    """The arrays, tensors and numbers of a result."""
    if isinstance(result, (tuple, list)):
        return [part for each in result for part in parts(each)]
    return [result]


def called(call: str, library: Any, names: dict[str, Any]) -> list[Any]:
    """The parts of what a call returns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return parts(eval(call, {"np": library, **names}))


def tensors() -> dict[str, Any]:
    """What the names mean, as tensors."""
    return {name: wg.tensor(array) for name, array in ARRAYS.items()}


@pytest.mark.parametrize("call", CALLS)
def test_results(call: str) -> None:
    wanted = called(call, np, ARRAYS)
    for found in (called(call, xp, tensors()), called(call, xp, ARRAYS)):
        assert len(found) == len(wanted)
        for mine, theirs in zip(found, wanted):
            if isinstance(mine, wg.dtype):
                assert mine == theirs
                continue
            array = np.asarray(mine)
            np.testing.assert_allclose(array, theirs, rtol=1e-5, atol=1e-6)
            assert array.shape == np.shape(theirs)
            if isinstance(mine, wg.Tensor) and hasattr(theirs, "dtype"):
                # Numbers of Python alone are float32 here.
                assert array.dtype == theirs.dtype or (array.dtype, theirs.dtype) == ("float32", "float64")


@pytest.mark.skipif(not hasattr(wg, "set_default_dtype"), reason="needs wengert.set_default_dtype")
def test_with_floats_of_64_bits_dtypes_are_those_of_numpy() -> None:
    wg.set_default_dtype(wg.float64)
    try:
        for call in CALLS:
            for mine, theirs in zip(called(call, xp, tensors()), called(call, np, ARRAYS), strict=True):
                if isinstance(mine, wg.Tensor) and hasattr(theirs, "dtype"):
                    np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-11, atol=1e-12, err_msg=call)
                    assert mine.dtype == theirs.dtype, call
    finally:
        wg.set_default_dtype(wg.float32)


def cases() -> Iterator[tuple[str, str]]:
    """Calls, and the floats in them that they can be differentiated by."""
    for call in CALLS:
        if not any(name in call for name in PLAIN):
            for name in "ABSTNvw":
                if re.search(rf"\b{name}\b", call):
                    yield call, name


def differences(call: str, name: str, tangent: Any) -> dict[int, Any]:
    """The derivatives of the parts of NumPy's result along a tangent, where they have any."""
    ends = [called(call, np, {**ARRAYS, name: ARRAYS[name] + h * tangent}) for h in (1e-6, -1e-6)]
    pairs = [tuple(map(np.asarray, pair)) for pair in zip(*ends)]
    return {
        i: (a - b) / 2e-6 for i, (a, b) in enumerate(pairs) if a.dtype.kind in "fc" and a.shape == b.shape
    }


@pytest.mark.parametrize(("call", "name"), list(cases()))
def test_derivatives(call: str, name: str) -> None:
    tangent = np.random.default_rng(4).standard_normal(ARRAYS[name].shape)
    tangent = tangent + tangent.T if name == "S" else tangent
    wanted = differences(call, name, tangent)
    if not wanted:
        return

    def function(x: wg.Tensor) -> tuple[wg.Tensor, ...]:
        found = called(call, xp, {**tensors(), name: x})
        return tuple(found[i] for i in wanted)

    x, t = wg.tensor(ARRAYS[name]), wg.tensor(tangent)
    _, pushed = wg.jvp(function, (x,), (t,))
    for mine, theirs in zip(pushed, wanted.values(), strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-4, atol=1e-4)
    if name != "N":
        # Reverse mode is the transpose: <u, J t> = <J' u, t>.
        outputs, pull = wg.vjp(function, x)
        (back,) = pull(tuple(wg.ones_like(out) for out in outputs))
        along = sum(p.real.sum().item() for p in pushed)
        np.testing.assert_allclose((back * t).sum().item(), along, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("call", "name"), list(cases()))
def test_batches(call: str, name: str) -> None:
    if any(word in call for word in DECIDED):
        pytest.skip("the elements decide the shape")

    def function(x: wg.Tensor) -> tuple[wg.Tensor, ...]:
        found = called(call, xp, {**tensors(), name: x})
        return tuple(part for part in found if isinstance(part, wg.Tensor))

    x = wg.tensor(ARRAYS[name])
    batch = wg.stack([x, 1.5 * x])
    for mine, *each in zip(wg.vmap(function)(batch), *map(function, batch), strict=True):
        np.testing.assert_allclose(mine.numpy(), wg.stack(each).numpy(), rtol=1e-7, atol=1e-9)


def test_what_runs_on_elements_refuses_to_lose_a_derivative() -> None:
    x = wg.tensor(ARRAYS["v"], requires_grad=True)
    for function in (xp.unwrap, xp.histogram, lambda x: xp.polyfit(x, x, 1)):
        with pytest.raises(RuntimeError, match=r"detach\(\)"):
            function(x)
