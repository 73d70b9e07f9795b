"""The rows of docs/coming_from.md, by their numbers, against JAX and autograd."""

import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from programs import ROOT

PAGE = (ROOT / "docs" / "coming_from.md").read_text(encoding="utf-8")
ROWS = [int(number) for number in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)]
HAS_JAX = sys.platform == "linux"  # elsewhere the test extra may have no wheel of it


def test_rows_are_numbered() -> None:
    for place, row in enumerate(ROWS, 1):
        assert row == place


def test_cells_of_the_page_run() -> None:
    namespace: dict[str, Any] = {}
    cells = re.findall(r"^```\{code-cell\} python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(cells) >= 5
    for cell in cells:
        exec(compile(cell, "coming_from.md", "exec"), namespace)


# Each takes the module's own functions and returns plain numbers.
POINT = [4.0, 0.0, -1.0]


def jax_results() -> dict[int, Callable[[], Any]]:
    """What JAX says to the rows about it."""
    import jax
    import jax.numpy as jnp

    params = {"w": jnp.array([1.0, 2.0]), "b": (jnp.array(3.0),)}

    def write() -> None:
        jnp.zeros(3)[1] = 5.0

    return {
        35: lambda: jax.vmap(lambda a, b: a @ b, in_axes=(0, None))(jnp.ones((2, 3)), jnp.ones(3)).tolist(),
        36: lambda: jax.tree.map(
            lambda g: g.tolist(), jax.grad(lambda p: (p["w"] * p["b"][0]).sum())(params)
        ),
        37: write,
        38: lambda: jnp.arange(3.0)[7].tolist(),
        39: lambda: str(jnp.ones(2, dtype="float64").dtype),
        41: lambda: jnp.array([1.0, 2.0, 3.0]).std().tolist(),
        42: lambda: [jax.grad(jnp.abs)(0.0).tolist(), jax.grad(lambda x: jnp.clip(x, 0, 1))(0.0).tolist()],
        44: lambda: jax.grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), x).sum())(jnp.array(POINT)).tolist(),
        45: lambda: jax.grad(lambda x: x * x)(3),
    }


def wengert_results() -> dict[int, Callable[[], Any]]:
    """What wengert says to them."""
    params = {"w": wg.tensor([1.0, 2.0]), "b": (wg.tensor(3.0),)}

    def write() -> list[float]:
        x = wg.zeros(3)
        x[1] = 5.0
        return x.tolist()

    return {
        35: lambda: wg.vmap(lambda a, b: a @ b, in_axes=(0, None))(wg.ones(2, 3), wg.ones(3)).tolist(),
        36: lambda: wg.tree.tree_map(
            lambda g: g.tolist(), wg.grad(lambda p: (p["w"] * p["b"][0]).sum())(params)
        ),
        37: write,
        38: lambda: wg.arange(3.0)[7].tolist(),
        39: lambda: wg.ones(2, dtype="float64").dtype.name,
        41: lambda: wg.tensor([1.0, 2.0, 3.0]).std().tolist(),
        42: lambda: [wg.grad(wg.abs)(0.0).tolist(), wg.grad(lambda x: x.clamp(0, 1))(0.0).tolist()],
        44: lambda: wg.grad(lambda x: wg.where(x > 0, x.sqrt(), x).sum())(wg.tensor(POINT)).tolist(),
        45: lambda: wg.grad(lambda x: x * x)(3),
    }


# Row: what wengert gives (an exception is expected as its class), and what JAX gives.
EXPECTED: dict[int, tuple[Any, Any]] = {
    35: ([3.0, 3.0], [3.0, 3.0]),
    36: ({"w": [3.0, 3.0], "b": (3.0,)}, {"w": [3.0, 3.0], "b": (3.0,)}),
    37: ([0.0, 5.0, 0.0], TypeError),
    38: (IndexError, 2.0),
    39: ("float64", "float32"),
    41: (1.0, (2 / 3) ** 0.5),
    42: ([0.0, 1.0], [1.0, 0.5]),
    44: ([0.25, 1.0, 1.0], [0.25, np.nan, np.nan]),
    45: (TypeError, TypeError),
}


def check(run: Callable[[], Any], expected: Any) -> None:
    """Equal, or raising."""
    if isinstance(expected, type):
        with pytest.raises(expected):
            run()
    elif isinstance(expected, dict | str):
        assert run() == expected
    else:
        np.testing.assert_allclose(run(), expected, rtol=1e-6)


@pytest.mark.parametrize("row", EXPECTED)
def test_a_row_about_jax(row: int) -> None:
    assert row in ROWS
    check(wengert_results()[row], EXPECTED[row][0])


if HAS_JAX:

    @pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
    @pytest.mark.parametrize("row", EXPECTED)
    def test_what_a_row_says_of_jax(row: int) -> None:
        check(jax_results()[row], EXPECTED[row][1])


def test_rows_about_autograd() -> None:
    import autograd
    import autograd.numpy as anp

    x, v = np.array([0.3, -1.2, 2.0]), np.array([1.0, 2.0, -1.0])

    def energy(library: Any) -> Callable[[Any], Any]:
        return lambda x: library.sum(library.sin(x) * library.exp(x))

    theirs, ours = energy(anp), energy(wg)
    pairs = [
        (autograd.grad(theirs)(x), wg.grad(ours)(x)),  # 46, 47
        (autograd.jacobian(lambda x: anp.sin(x) * x[0])(x), wg.jacobian(lambda x: x.sin() * x[0])(x)),
        (autograd.hessian(theirs)(x), wg.hessian(ours)(x)),
        (autograd.elementwise_grad(anp.tanh)(x), wg.vmap(wg.grad(wg.tanh))(wg.tensor(x))),  # 48
        (autograd.hessian_vector_product(theirs)(x, v), wg.hvp(ours, (x,), (v,))),  # 50
    ]
    for their, our in pairs:
        our = our[-1] if isinstance(our, tuple) else our
        assert our.dtype == wg.float64  # 49
        np.testing.assert_allclose(our.numpy(), their, rtol=1e-12)
