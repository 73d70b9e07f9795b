"""Losses as programs for autograd write them: values and gradients under wengert and in autograd itself."""

import functools
import importlib
import types
from typing import Any

import numpy as np
import pytest
import wengert as wg
import wengert.numpy.random
import wengert.scipy

from numpy_programs.fragments import FRAGMENTS

#: Where the steps of the solvers differ, and where np.log(2 * np.pi) is float32.
LOOSER = {"differential_equation": 1e-5, "black_box_inference": 1e-6}
OURS = types.SimpleNamespace(np=wg.numpy, npr=wg.numpy.random, scipy=wg.scipy, tuple=tuple)


@functools.cache
def autograd() -> Any:
    """The names of autograd that the fragments use."""
    pytest.importorskip("autograd")
    names = ("numpy", "numpy.random", "scipy", "scipy.special", "scipy.signal", "scipy.integrate", "builtins")
    parts = {name: importlib.import_module(f"autograd.{name}") for name in names}
    for name in ("norm", "multivariate_normal"):
        importlib.import_module(f"autograd.scipy.stats.{name}")
    return types.SimpleNamespace(
        np=parts["numpy"], npr=parts["numpy.random"], scipy=parts["scipy"], tuple=parts["builtins"].tuple
    )


@pytest.mark.parametrize("name", FRAGMENTS)
def test_values_and_gradients_are_those_of_autograd(name: str) -> None:
    loss, parameters = FRAGMENTS[name](autograd())
    wanted, gradients = importlib.import_module("autograd").value_and_grad(loss)(parameters)
    loss, parameters = FRAGMENTS[name](OURS)
    found, mine = wg.value_and_grad(loss)(parameters)
    tolerance = LOOSER.get(name, 1e-10)
    assert found.item() == pytest.approx(wanted, rel=tolerance)
    for ours, other in zip(wg.tree.leaves(mine), wg.tree.leaves(gradients), strict=True):
        np.testing.assert_allclose(ours.numpy(), other, rtol=tolerance, atol=tolerance)
