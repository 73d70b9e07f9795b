"""Derivatives of complex tensors against differences of both parts, and every transform."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from references.complex_reference import BINARY, UNARY, near, some
from support import array
from wengert.autograd import gradcheck, gradgradcheck


def test_the_gradient_is_the_direction_of_steepest_ascent() -> None:
    z = wg.tensor([1 + 2j, -0.5j], requires_grad=True)
    (z.abs() ** 2).sum().backward()
    assert z.grad is not None
    np.testing.assert_allclose(array(z.grad), 2 * array(z.detach()), rtol=1e-6)
    z.grad = None
    z.real.sum().backward()
    assert z.grad.tolist() == [1, 1]
    z.grad = None
    z.imag.sum().backward()
    assert z.grad.tolist() == [1j, 1j]
    # A real input gets a real gradient.
    x = wg.tensor([2.0], requires_grad=True)
    ((x * (1 + 1j)).abs() ** 2).sum().backward()
    np.testing.assert_allclose(array(x.grad), [8.0], rtol=1e-6)
    # Of a holomorphic function, with cotangent 1: the conjugate of its derivative.
    w = wg.tensor([0.3 + 0.4j], dtype=wg.complex128, requires_grad=True)
    w.exp().backward(wg.ones(1, dtype=wg.complex128))
    np.testing.assert_allclose(array(w.grad), np.conj(np.exp(0.3 + 0.4j)), rtol=1e-12)
    with pytest.raises(
        RuntimeError, match="backward: a complex128 tensor has no single gradient; make it real first"
    ):
        w.exp().sum().backward()
    zero = wg.tensor([0j], requires_grad=True)
    zero.abs().sum().backward()
    assert zero.grad.tolist() == [0]


NO_SLOPE = ("isnan", "isinf", "isfinite")


@pytest.mark.parametrize("name", [name for name in UNARY if name not in NO_SLOPE])
def test_derivatives_of_functions_of_one_number(name: str) -> None:
    z = wg.tensor(some(shape=(5,), seed=3))
    f = lambda x: getattr(x, name)()
    assert gradcheck(f, z, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(f, z, check_fwd_over_rev=True, fast_mode=True)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow"])
def test_derivatives_of_functions_of_two_numbers(name: str) -> None:
    x, y = wg.tensor(some(shape=(3, 2), seed=3)), wg.tensor(some(shape=(2,), seed=4))
    assert gradcheck(BINARY[name], (x, y), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(BINARY[name], (x, y), check_fwd_over_rev=True, fast_mode=True)
    assert gradcheck(BINARY[name], (x, wg.tensor([0.5, 1.5], dtype=wg.float64)), check_forward_ad=True)


STRUCTURED: dict[str, Callable[..., Any]] = {
    "sum": lambda x: x.sum(0),
    "mean": lambda x: x.mean(1),
    "prod": lambda x: x.prod(0),
    "cumsum": lambda x: x.cumsum(1),
    "cumprod": lambda x: x.cumprod(1),
    "matmul": lambda x: x @ x.mH,
    "matvec": lambda x: x @ x[0],
    "index": lambda x: x[wg.tensor([1, 1, 0])],
    "gather": lambda x: x.gather(1, wg.tensor([[0, 0], [2, 1]])),
    "index_fill": lambda x: x.index_fill(1, wg.tensor([1]), 2 - 1j),
    "index_copy": lambda x: (3 * x).index_copy(1, wg.tensor([1]), 1j * x[:, :1]),
    "index_add": lambda x: (3 * x).index_add(1, wg.tensor([1]), x[:, :1] ** 2),
    "index_put": lambda x: (3 * x).index_put((wg.tensor([1]),), 1j * x[:1]),
    "scatter": lambda x: (3 * x).scatter(1, wg.tensor([[2], [1]]), 1j * x[:, :1]),
    "scatter_add": lambda x: (3 * x).scatter_add(1, wg.tensor([[2], [1]]), x[:, :1] ** 2),
    "scatter_reduce": lambda x: (3 * x).scatter_reduce(1, wg.tensor([[2], [1]]), x[:, :1], "prod"),
    "slice": lambda x: x[:, ::2],
    "where": lambda x: wg.where(wg.tensor([True, False, True]), x, x.conj()),
    "cat": lambda x: wg.cat([x, 2j * x]),
    "expand": lambda x: x.sum(0).expand(4, 3) * 1.0,
    "real": lambda x: x.real * x.imag,
    "polar": lambda x: wg.polar(x.abs(), x.angle() * 2),
    "complex": lambda x: wg.complex(x.imag, x.real),
    "cast": lambda x: (x.real + 1).to(wg.complex128) * x,
    "tril": lambda x: x.tril(),
    "strided": lambda x: x.T.reshape(-1)[1:],
    "power": lambda x: x**3 + x**-2,
    "scalar": lambda x: 1j * x + (2 - 1j) / x,
}


@pytest.mark.parametrize("name", STRUCTURED)
def test_derivatives_of_structured_operations(name: str) -> None:
    x = wg.tensor(some(shape=(2, 3), seed=5))
    assert gradcheck(STRUCTURED[name], x, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(STRUCTURED[name], x, check_fwd_over_rev=True, fast_mode=True)


def test_a_product_that_was_not_taken_has_no_gradient() -> None:
    z = wg.tensor([1 + 1j, 2 - 1j], dtype=wg.complex128)
    w = wg.tensor([complex(np.inf, 0), 2j], dtype=wg.complex128)
    taken = wg.tensor([False, True])
    for product in (lambda z: z * w, lambda z: w * z, lambda z: w * z.conj()):
        loss = lambda z: wg.where(taken, product(z), 0.0).abs().sum()  # noqa: B023
        assert wg.isfinite(wg.grad(loss)(z)).all()
        moved = wg.jvp(product, (z,), (wg.tensor([0j, 1j], dtype=wg.complex128),))[1]
        assert wg.isfinite(moved).all()
        with wg.ieee_gradients(True):
            assert wg.isnan(wg.grad(loss)(z)).tolist() == [True, False]


def test_products_of_every_layout() -> None:
    x, y = some(shape=(4, 6), seed=11), some(shape=(4, 6), seed=12)
    a, b = wg.tensor(x), wg.tensor(y)
    near(a.T * b.T, x.T * y.T, 1e-15)
    near(a[::-1, ::2] * b[:, 1::2], x[::-1, ::2] * y[:, 1::2], 1e-15)
    near(a * b[0], x * y[0], 1e-15)
    near(a[:, :1] * b, x[:, :1] * y, 1e-15)
    near(a * (2 - 1j), x * (2 - 1j), 1e-15)
    near((2 - 1j) * a.T, (2 - 1j) * x.T, 1e-15)
    near(a[0, 0].expand(4, 6) * b, x[0, 0] * y, 1e-15)
    near(a[0, 0] * b[1, 1], x[0, 0] * y[1, 1], 1e-15)
    assert (a[:0] * b[:0]).shape == (0, 6)
    long = some(shape=(100_000,), seed=13)
    near(wg.tensor(long).square(), long**2, 1e-15)


def test_every_transform() -> None:
    z = wg.tensor(some(shape=(3,), seed=6))
    loss = lambda z: (z.exp() * z.conj()).sum().abs()
    g = wg.grad(loss)(z)
    value, pullback = wg.vjp(loss, z)
    near(pullback(wg.ones_like(value))[0], array(g), 1e-12)
    t = wg.tensor(some(shape=(3,), seed=7))
    _, moved = wg.jvp(loss, (z,), (t,))
    # Real derivative along t: the real inner product with the gradient.
    np.testing.assert_allclose(moved.item(), np.vdot(array(g), array(t)).real, rtol=1e-10)
    batch = wg.tensor(some(shape=(4, 3), seed=8))
    together = wg.vmap(wg.grad(loss))(batch)
    for row, one in zip(batch, together):
        near(one, array(wg.grad(loss)(row)), 1e-12)
    twice = wg.grad(lambda z: (wg.grad(loss)(z).abs() ** 2).sum())(z)
    assert twice.dtype == wg.complex128
    leaf = wg.tensor(array(z), requires_grad=True)
    for _ in range(2):
        loss(leaf).backward()
    near(leaf.grad, 2 * array(g), 1e-12)
    out = wg.utils.checkpoint.checkpoint(loss, leaf)
    leaf.grad = None
    out.backward()
    near(leaf.grad, array(g), 1e-12)
    with wg.no_grad():
        leaf -= 0.1 * leaf.grad
    assert loss(leaf).item() < value.item()


def test_writes_in_place_are_recorded() -> None:
    z = wg.tensor(some(shape=(3,), seed=9), requires_grad=True)
    y = z * 1.0
    y[1] = y[0] * 1j
    y *= 2
    (y.abs() ** 2).sum().backward()
    expected = array(z.detach()) * np.array([16, 0, 8])
    near(z.grad, expected, 1e-12)


# ---- a real result has a real cotangent ----------------------------------------------------------


def real_function(kind: str):
    """The identity of real tensors with a rule that returns complex derivatives."""
    if kind == "custom_vjp":
        f = wg.custom_vjp(lambda x: x * 1)
        f.defvjp(lambda x: (x * 1, None), lambda _, g: (g * 1j,))
        return f
    if kind == "custom_jvp":
        f = wg.custom_jvp(lambda x: x * 1)
        f.defjvp(lambda primals, tangents: (primals[0] * 1, tangents[0] * 1j))
        return f

    class Turn(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g * 1j

        @staticmethod
        def jvp(ctx, t):
            return t * 1j

    return Turn.apply


def test_a_complex_cotangent_of_a_real_result_raises() -> None:
    x = wg.tensor([1.0, 2.0, 3.0])
    g = wg.ones(3) * 1j
    leaf = x.clone().requires_grad_()
    calls = {
        "vjp": lambda: wg.vjp(lambda x: x * x, x)[1](g),
        "constant": lambda: wg.vjp(lambda x: wg.ones(3), x)[1](g),
        "linear_transpose": lambda: wg.linear_transpose(lambda x: 2 * x, x)(g),
    }
    for call in calls.values():
        with pytest.raises(
            TypeError, match=r"a cotangent of wengert\.complex64 given for an output of wengert\.float32"
        ):
            call()
    calls = {
        "backward": lambda: (leaf * 1).backward(g),
        "autograd.backward": lambda: wg.autograd.backward(leaf * 1, g),
        "autograd.grad": lambda: wg.autograd.grad(leaf * 1, leaf, g),
        "batched": lambda: wg.autograd.grad(leaf * 1, leaf, wg.stack([g, g]), is_grads_batched=True),
        "in a transform": lambda: wg.vmap(lambda g: wg.autograd.grad(leaf * 1, leaf, g)[0])(wg.stack([g, g])),
    }
    for call in calls.values():
        with pytest.raises(
            RuntimeError, match=r"a cotangent \(gradient=\) is complex64, and the tensor of shape \(3,\)"
        ):
            call()
    assert leaf.grad is None


@pytest.mark.parametrize("kind", ["custom_vjp", "custom_jvp", "Function"])
def test_a_rule_with_complex_derivatives_of_real_tensors_raises(kind: str) -> None:
    f, x = real_function(kind), wg.tensor([1.0, 2.0])
    modes = {"custom_vjp": ["grad"], "custom_jvp": ["jvp"], "Function": ["grad", "jvp"]}[kind]
    calls = {"grad": lambda: wg.grad(lambda x: f(x).sum())(x), "jvp": lambda: wg.jvp(f, (x,), (x,))}
    for mode in modes:
        with pytest.raises(
            RuntimeError, match=r"returned wengert\.complex64 for .*, expected wengert\.float32; the deriv"
        ):
            calls[mode]()


def test_other_cotangents_are_converted() -> None:
    x = wg.tensor([1.0, 2.0], dtype=wg.float64)
    _, pull = wg.vjp(lambda x: x * x, x)
    for g in (wg.tensor([3, 1]), wg.tensor([3.0, 1.0]), np.array([3.0, 1.0])):
        (got,) = pull(g)
        assert got.dtype == wg.float64
        assert got.tolist() == [6.0, 4.0]
    leaf = x.clone().requires_grad_()
    (leaf * leaf).backward(np.array([3, 1]))
    assert leaf.grad.tolist() == [6.0, 4.0]
    (got,) = wg.autograd.grad(leaf * leaf, leaf, np.array([3.0, 1.0]))
    assert got.tolist() == [6.0, 4.0]
    # A real cotangent of a complex result has no imaginary part.
    _, pull = wg.vjp(lambda x: x * (1 + 2j), x)
    assert pull(wg.tensor([3.0, 1.0]))[0].tolist() == [3.0, 1.0]
