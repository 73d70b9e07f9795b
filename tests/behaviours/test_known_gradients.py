"""Gradients that have a closed form, and second derivatives three ways."""

import numpy as np
import pytest
import wengert as wg
import wengert.nn.functional as F

RNG = np.random.default_rng(0)
CLOSE = dict(rtol=1e-12, atol=1e-14)


def leaf(values: np.ndarray) -> wg.Tensor:
    """A leaf with these values."""
    return wg.tensor(values, requires_grad=True)


def softmax(x: np.ndarray) -> np.ndarray:
    """Along the last axis."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("batch", [None, 7])
def test_linear(batch: int | None) -> None:
    x, w, b = RNG.normal(size=(batch or 1, 3)), RNG.normal(size=(2, 3)), RNG.normal(size=2)
    g = RNG.normal(size=(batch or 1, 2))
    one = batch is None
    tx, tw, tb = leaf(x[0] if one else x), leaf(w), leaf(b)
    F.linear(tx, tw, tb).backward(wg.tensor(g[0] if one else g))
    np.testing.assert_allclose(tw.grad.numpy(), g.T @ x, **CLOSE)
    np.testing.assert_allclose(tb.grad.numpy(), g.sum(0), **CLOSE)
    np.testing.assert_allclose(tx.grad.numpy(), (g @ w)[0] if one else g @ w, **CLOSE)


def test_softmax_jacobian() -> None:
    x = RNG.normal(size=5)
    y = softmax(x)
    for jacobian in (wg.jacrev, wg.jacfwd):
        found = jacobian(lambda x: x.softmax(-1))(wg.tensor(x)).numpy()
        np.testing.assert_allclose(found, np.diag(y) - np.outer(y, y), **CLOSE)


def test_the_sum_of_a_softmax_has_no_gradient() -> None:
    x = leaf(RNG.normal(size=(4, 6)))
    x.softmax(-1).sum().backward()
    assert np.abs(x.grad.numpy()).max() < 1e-15


def test_cross_entropy() -> None:
    x, classes = RNG.normal(size=(4, 6)), np.array([1, 0, 5, 2])
    t = leaf(x)
    F.cross_entropy(t, wg.tensor(classes), reduction="sum").backward()
    np.testing.assert_allclose(t.grad.numpy(), softmax(x) - np.eye(6)[classes], **CLOSE)


ELEMENTWISE = {
    "sigmoid": (wg.sigmoid, lambda x, y: y * (1 - y)),
    "tanh": (wg.tanh, lambda x, y: 1 - y**2),
    "relu": (wg.relu, lambda x, y: (x > 0).astype(float)),
    "exp": (wg.exp, lambda x, y: y),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name: str) -> None:
    f, derivative = ELEMENTWISE[name]
    x, g = RNG.normal(size=20), RNG.normal(size=20)
    t = leaf(x)
    y = f(t)
    y.backward(wg.tensor(g))
    np.testing.assert_allclose(t.grad.numpy(), g * derivative(x, y.detach().numpy()), **CLOSE)


def test_relu_has_no_slope_at_zero() -> None:
    assert wg.grad(wg.relu)(wg.tensor(0.0)).item() == 0.0


def test_binary_cross_entropy_with_logits() -> None:
    x, target = RNG.normal(size=9) * 3, RNG.uniform(size=9)
    t = leaf(x)
    F.binary_cross_entropy_with_logits(t, wg.tensor(target), reduction="sum").backward()
    np.testing.assert_allclose(t.grad.numpy(), 1 / (1 + np.exp(-x)) - target, **CLOSE)


def test_layer_norm() -> None:
    x, w, g, eps = RNG.normal(size=(3, 8)), RNG.normal(size=8), RNG.normal(size=(3, 8)), 1e-5
    tx, tw, tb = leaf(x), leaf(w), leaf(np.zeros(8))
    F.layer_norm(tx, (8,), tw, tb, eps).backward(wg.tensor(g))
    rstd = 1 / np.sqrt(x.var(-1, keepdims=True) + eps)
    normal = (x - x.mean(-1, keepdims=True)) * rstd
    scaled = g * w
    dx = rstd * (scaled - scaled.mean(-1, keepdims=True) - normal * (scaled * normal).mean(-1, keepdims=True))
    np.testing.assert_allclose(tx.grad.numpy(), dx, **CLOSE)
    np.testing.assert_allclose(tw.grad.numpy(), (g * normal).sum(0), **CLOSE)
    np.testing.assert_allclose(tb.grad.numpy(), g.sum(0), **CLOSE)


def test_rms_norm() -> None:
    x, w, g, eps = RNG.normal(size=(3, 8)), RNG.normal(size=8), RNG.normal(size=(3, 8)), 1e-5
    tx, tw = leaf(x), leaf(w)
    F.rms_norm(tx, (8,), tw, eps).backward(wg.tensor(g))
    rstd = 1 / np.sqrt((x**2).mean(-1, keepdims=True) + eps)
    normal, scaled = x * rstd, g * w
    dx = rstd * (scaled - normal * (scaled * normal).mean(-1, keepdims=True))
    np.testing.assert_allclose(tx.grad.numpy(), dx, **CLOSE)
    np.testing.assert_allclose(tw.grad.numpy(), (g * normal).sum(0), **CLOSE)


def energy(x: wg.Tensor) -> wg.Tensor:
    """A scalar with a dense Hessian."""
    return (x.sin() * x.roll(1, 0).exp()).sum() + x.prod()


def test_hessian_vector_products_in_every_order() -> None:
    x, v = wg.tensor(RNG.normal(size=5)), wg.tensor(RNG.normal(size=5))
    forward_over_reverse = wg.jvp(wg.grad(energy), (x,), (v,))[1]
    reverse_over_reverse = wg.grad(lambda x: (wg.grad(energy)(x) * v).sum())(x)
    reverse_over_forward = wg.grad(lambda x: wg.jvp(energy, (x,), (v,))[1])(x)
    explicit = wg.hessian(energy)(x) @ v
    leaf_x = x.clone().requires_grad_()
    (first,) = wg.autograd.grad(energy(leaf_x), leaf_x, create_graph=True)
    (eager,) = wg.autograd.grad(first, leaf_x, grad_outputs=v)
    for other in (reverse_over_reverse, reverse_over_forward, explicit, eager, wg.hvp(energy, (x,), (v,))):
        other = other[-1] if isinstance(other, tuple) else other
        np.testing.assert_allclose(other.numpy(), forward_over_reverse.numpy(), rtol=1e-12, atol=1e-13)


def test_jvp_costs_a_pass_per_input_and_vjp_one_per_output() -> None:
    runs = 0
    matrix = wg.tensor(RNG.normal(size=(3, 5)))

    def f(x: wg.Tensor) -> wg.Tensor:
        nonlocal runs
        runs += 1
        return (matrix @ x).tanh()

    x = wg.tensor(RNG.normal(size=5))
    columns = [wg.jvp(f, (x,), (wg.eye(5, dtype=wg.float64)[i],))[1] for i in range(5)]
    assert runs == 5
    runs = 0
    _, pullback = wg.vjp(f, x)
    rows = [pullback(wg.eye(3, dtype=wg.float64)[i]) for i in range(3)]
    rows = [row[0] if isinstance(row, tuple) else row for row in rows]
    assert runs == 1
    np.testing.assert_allclose(wg.stack(columns, 1).numpy(), wg.stack(rows).numpy(), rtol=1e-12)
