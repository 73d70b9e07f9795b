"""Autocast and transforms: regions inside of them, regions around them, and both."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from wengert.nn import functional as F

# In bfloat16, which has eight bits, the second number of the first row is lost beside 1.
K = wg.tensor([[1.0, 2.0**-9], [0.0, 1.0]])
FINE = 2.0 + 2.0**-9

#: A sum of `ones(2) @ K` in each transform.
AROUND: dict[str, Callable[[Callable[[wg.Tensor], wg.Tensor]], wg.Tensor]] = {
    "nothing": lambda f: f(wg.ones(2)),
    "vmap": lambda f: wg.vmap(f)(wg.ones(1, 2))[0],
    "jvp": lambda f: wg.jvp(f, (wg.zeros(2),), (wg.ones(2),))[1],
    "vjp": lambda f: wg.vjp(f, wg.ones(2))[0],
    "grad": lambda f: wg.grad(f)(wg.ones(2)).sum(),
    "linearize": lambda f: wg.linearize(f, wg.zeros(2))[1](wg.ones(2)),
    "vmap of grad": lambda f: wg.vmap(wg.grad(f))(wg.ones(1, 2)).sum(),
    "grad of vmap": lambda f: wg.grad(lambda x: wg.vmap(f)(x).sum())(wg.ones(1, 2)).sum(),
}


@pytest.mark.parametrize("name", AROUND)
def test_a_region_without_casts_inside_a_transform(name: str) -> None:
    def f(a: wg.Tensor) -> wg.Tensor:
        with wg.autocast(enabled=False):
            return (a @ K).sum()

    with wg.autocast(dtype=wg.bfloat16):
        assert AROUND[name](f).item() == FINE


@pytest.mark.parametrize("name", ["nothing", "vmap", "vjp"])
def test_another_type_inside_a_transform(name: str) -> None:
    seen = []

    def f(a: wg.Tensor) -> wg.Tensor:
        with wg.autocast(dtype=wg.float16):
            out = a @ K
        seen.append((out.dtype, (a @ K).dtype))
        return out.sum()

    with wg.autocast(dtype=wg.bfloat16):
        # float16 has eleven bits.
        assert AROUND[name](f).float().item() == FINE
    assert seen == [(wg.float16, wg.bfloat16)]


@pytest.mark.parametrize("name", ["tensordot", "dot"])
def test_functions_that_leave_regions_themselves(name: str) -> None:
    f = {"tensordot": lambda a: wg.tensordot(a, K[:, 1], 1), "dot": lambda a: a.dot(K[:, 1])}[name]
    with wg.autocast(dtype=wg.bfloat16):
        assert f(wg.ones(2)).item() == wg.vmap(f)(wg.ones(1, 2)).item() == 1.0 + 2.0**-9


EYE = wg.eye(2)
#: Functions that autocast runs in float32, of halves that a product gives; with their slopes at 0.5.
AFTER: dict[str, tuple[Callable[[wg.Tensor], wg.Tensor], float]] = {
    "log": (wg.log, 2.0),
    "log1p": (wg.log1p, 1 / 1.5),
    "asin": (wg.asin, 0.75**-0.5),
    "exp": (wg.exp, np.exp(0.5)),
    "expm1": (wg.expm1, np.exp(0.5)),
    "rsqrt": (wg.rsqrt, -0.5 * 0.5**-1.5),
    "reciprocal": (wg.reciprocal, -4.0),
    "tan": (wg.tan, 1 / np.cos(0.5) ** 2),
    "sinh": (wg.sinh, np.cosh(0.5)),
    "softplus": (F.softplus, 1 / (1 + np.exp(-0.5))),
    "logsigmoid": (F.logsigmoid, 1 / (1 + np.exp(0.5))),
    "pow": (lambda x: x**2.5, 2.5 * 0.5**1.5),
    "pow of a number": (lambda x: 3.0**x, np.log(3) * 3**0.5),
    "xlogy": (lambda x: wg.xlogy(x, x), np.log(0.5) + 1),
}
#: How a slope is found.
SLOPES: dict[str, Callable[[Any, wg.Tensor], wg.Tensor]] = {
    "grad": lambda f, x: wg.grad(lambda x: f(x).sum())(x),
    "vjp": lambda f, x: wg.vjp(lambda x: f(x).float(), x)[1](wg.ones(1, 2))[0],
    "jvp": lambda f, x: wg.jvp(f, (x,), (wg.ones(1, 2),))[1],
    "linearize": lambda f, x: wg.linearize(f, x)[1](wg.ones(1, 2)),
    "vmap of grad": lambda f, x: wg.vmap(wg.grad(lambda x: f(x[None]).sum()))(x),
    "grad of vmap": lambda f, x: wg.grad(lambda x: wg.vmap(lambda x: f(x[None]))(x).sum())(x),
}


@pytest.mark.parametrize("how", SLOPES)
@pytest.mark.parametrize("name", AFTER)
def test_float32_after_a_product_in_a_transform_within_a_region(name: str, how: str) -> None:
    f, slope = AFTER[name]
    with wg.autocast(dtype=wg.bfloat16):
        found = SLOPES[how](lambda x: f(x @ EYE), wg.full((1, 2), 0.5))
    np.testing.assert_allclose(found.float().tolist(), [[slope] * 2], rtol=2**-7)


@pytest.mark.parametrize("name", AFTER)
def test_second_derivatives_after_a_product(name: str) -> None:
    f, _ = AFTER[name]
    hessian = wg.hessian(lambda x: f(x @ EYE).sum())
    want = hessian(wg.full((1, 2), 0.5))
    with wg.autocast(dtype=wg.bfloat16):
        found = hessian(wg.full((1, 2), 0.5))
    np.testing.assert_allclose(found.tolist(), want.tolist(), rtol=2**-6)


@pytest.mark.parametrize("low", [wg.float16, wg.bfloat16], ids=str)
def test_the_tangent_of_attention_has_its_type(low: Any) -> None:
    q = wg.tensor(np.linspace(-1, 1, 40).reshape(2, 5, 4), dtype=wg.float32)

    def f(q: wg.Tensor) -> wg.Tensor:
        return F.scaled_dot_product_attention(q, q, q) ** 2

    with wg.autocast(dtype=low):
        value, tangent = wg.jvp(f, (q,), (q,))
        wg.jvp(wg.grad(lambda q: f(q).sum()), (q,), (q,))
        parts = wg.jvp(lambda q: F.scaled_dot_product_attention(q, q, q), (q,), (q,))
    # A power is computed in float32, also that of two.
    assert [y.dtype for y in (value, tangent, *parts)] == [wg.float32, wg.float32, low, low]
    _, want = wg.jvp(f, (q,), (q,))
    np.testing.assert_allclose(tangent.tolist(), want.tolist(), atol=0.02)


def test_a_custom_rule_runs_in_the_region_of_its_call() -> None:
    seen = []

    @wg.custom_jvp
    def product(x: wg.Tensor) -> wg.Tensor:
        return x @ K

    @product.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        seen.append(wg.get_autocast_dtype())
        return product(*primals), tangents[0] @ K

    with wg.autocast(dtype=wg.bfloat16):
        value, tangent = wg.jvp(product, (wg.ones(2),), (wg.ones(2),))
    assert seen == [wg.bfloat16]
    assert value.dtype == tangent.dtype == wg.bfloat16


def test_norms_of_halves_take_their_weight_as_it_is() -> None:
    x, w = wg.tensor([[1.0, -1.0]], dtype=wg.bfloat16), wg.tensor([1.0 + 2.0**-12] * 2)
    with wg.autocast(dtype=wg.bfloat16):
        layer, rms = F.layer_norm(x, (2,), w, eps=0.0), F.rms_norm(x, (2,), w, eps=0.0)
    assert layer.tolist() == rms.tolist() == [[1.0 + 2.0**-12, -1.0 - 2.0**-12]]


def test_regions_end_where_they_began() -> None:
    with wg.autocast(dtype=wg.float16):
        wg.vmap(lambda x: x @ K)(wg.ones(3, 2))
        assert wg.get_autocast_dtype() == wg.float16
        with pytest.raises(ZeroDivisionError), wg.autocast(enabled=False):
            wg.grad(lambda x: 1 / 0)(wg.ones(1))
        assert wg.get_autocast_dtype() == wg.float16
    assert wg.get_autocast_dtype() is None


def test_a_generator_that_ends_its_region_early() -> None:
    def run() -> Any:
        with wg.autocast(dtype=wg.bfloat16):
            yield

    generator = run()
    next(generator)
    with wg.autocast(dtype=wg.float16):
        generator.close()
        assert wg.get_autocast_dtype() == wg.float16
        with wg.autocast(enabled=False):
            assert wg.get_autocast_dtype() is None
        assert wg.get_autocast_dtype() == wg.float16
    assert wg.get_autocast_dtype() is None
    assert (wg.ones(2) @ K).dtype == wg.float32
