"""Numbers beside halves on a GPU: the answers of the CPU."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from wengert.nn import functional as F

CASES: dict[str, tuple[wg.dtype, float, Callable[[Any], Any]]] = {
    "over a large number": (wg.float16, 60000.0, lambda a: a / 1e5),
    "times a small number": (wg.float16, 60000.0, lambda a: a * 1e-8),
    "times a large number": (wg.float16, 1e-3, lambda a: a * 1e5),
    "times a tenth": (wg.float16, 65504.0, lambda a: a * 0.1),
    "minus a number": (wg.float16, 60000.0, lambda a: 70000.0 - a),
    "times a 0-d tensor of the CPU": (wg.float16, 60000.0, lambda a: a * wg.tensor(1e-8)),
    "power": (wg.float16, 60000.0, lambda a: a**0.1),
    "bfloat16": (wg.bfloat16, 3.046875, lambda a: a * 0.1),
    "hardswish": (wg.bfloat16, -2.984375, F.hardswish),
    "several": (wg.bfloat16, 0.7, lambda a: (a * 0.3 + 1.7) / 3.3),
}


@pytest.mark.parametrize("name", CASES)
def test_as_on_the_cpu(name: str) -> None:
    dtype, value, f = CASES[name]
    a = wg.full((3,), value, dtype=dtype)
    g, exact = a.gpu(), f(a)
    for found in (f(g), wg.vmap(f)(g[None])[0], wg.jvp(f, (g,), (g,))[0]):
        assert (found.dtype, str(found.device)) == (dtype, "gpu:0")
        # A unit of the half type for other roundings of float32.
        np.testing.assert_allclose(
            found.float().tolist(), exact.float().tolist(), rtol=2**-7 if dtype == wg.bfloat16 else 2**-10
        )
    slope = [wg.grad(lambda a: f(a).float().sum())(x).float().tolist() for x in (a, g)]
    np.testing.assert_allclose(slope[1], slope[0], rtol=2**-7, atol=2**-24)
    assert (np.array(f(g).float().tolist()) != 0).all()


def test_in_place_and_second_derivatives() -> None:
    g = wg.full((2,), 60000.0, dtype=wg.float16, device="gpu")
    g /= 1e5
    np.testing.assert_array_equal(g.tolist(), (wg.full((2,), 60000.0, dtype=wg.float16) / 1e5).tolist())
    x = wg.tensor([2.0], dtype=wg.float16, device="gpu")
    curvature = wg.grad(lambda a: wg.grad(lambda a: (a**3 * 1e-3).sum())(a).sum())(x)
    np.testing.assert_allclose(curvature.float().item(), 12e-3, rtol=2**-9)
