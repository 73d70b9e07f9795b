"""Layers and functions with structure in every transform: against differences, and against a loop over the
examples."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from support import array, assert_near
from wengert import nn
from wengert.nn import functional as F
from wengert.utils.checkpoint import checkpoint

F64 = wg.float64


class Cube(wg.autograd.Function):
    """With a reverse rule alone: batching, forward mode and higher orders follow from it."""

    @staticmethod
    def forward(ctx: Any, x: wg.Tensor) -> wg.Tensor:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, g: wg.Tensor) -> wg.Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


def with_index(x: wg.Tensor) -> wg.Tensor:
    z = wg.zeros(3, 4, dtype=F64)
    z[0] = x[1] * x[0]
    z[1:].add_(x[:2].sin())
    return z * x[0]


def layers() -> dict[str, tuple[Callable[[wg.Tensor], wg.Tensor], tuple[int, ...]]]:
    """Each a smooth function of one tensor of the given shape."""
    wg.manual_seed(0)
    make = {"dtype": F64}
    encoder = nn.TransformerEncoderLayer(4, 2, 6, 0.0, "gelu", batch_first=True, **make)
    decoder = nn.TransformerDecoderLayer(4, 2, 6, 0.0, "gelu", batch_first=True, norm_first=True, **make)
    heads = nn.MultiheadAttention(4, 2, add_bias_kv=True, batch_first=True, **make)
    lstm, gru = nn.LSTM(4, 3, 2, bidirectional=True, **make), nn.GRU(4, 3, batch_first=True, **make)
    norm, instances = nn.BatchNorm1d(4, track_running_stats=False, **make), nn.InstanceNorm1d(3, **make)
    conv = nn.Sequential(nn.Conv2d(1, 2, 2, **make), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(0))
    labels, weight = wg.tensor([[1, 2]]), wg.randn(5, 2, **make)
    places, bags = wg.rand(1, 2, 3, 2, **make) * 1.5 - 0.8, wg.tensor([[0, 1, 4], [3, 3, 2]])
    return {
        "attention": (lambda x: F.scaled_dot_product_attention(x, x * 2, x.sin()), (3, 4)),
        "causal": (lambda x: F.scaled_dot_product_attention(x, x * 2, x.sin(), is_causal=True), (3, 4)),
        "heads": (lambda x: heads(x, x.cos(), x)[0], (3, 4)),
        "encoder": (lambda x: encoder(x, is_causal=True), (3, 4)),
        "decoder": (lambda x: decoder(x, x.sin()), (3, 4)),
        "checkpointed": (lambda x: checkpoint(encoder, x), (3, 4)),
        "lstm": (lambda x: lstm(x)[0], (3, 4)),
        "gru": (lambda x: gru(x.unsqueeze(0))[1], (3, 4)),
        "batch_norm": (norm, (3, 4)),
        "instance_norm": (lambda x: instances(x.unsqueeze(0)), (3, 4)),
        "conv": (lambda x: conv(x.unsqueeze(0)), (3, 4)),
        "cdist": (lambda x: F.cdist(x, x.flip(0) * 1.1 + 0.37), (3, 4)),
        "embedding_bag": (
            lambda x: F.embedding_bag(bags, weight, mode="sum", per_sample_weights=x[:2, :3]),
            (3, 4),
        ),
        "table": (lambda x: F.embedding_bag(wg.tensor([[0, 2], [1, 1]]), x), (3, 4)),
        "ctc_loss": (lambda x: F.ctc_loss(x.unsqueeze(1).log_softmax(-1), labels, [5], [2]), (5, 4)),
        "grid_sample": (lambda x: F.grid_sample(x[None, None], places, align_corners=True), (3, 4)),
        "places": (lambda x: F.grid_sample(weight[None, None], x[None, None, :, :2] * 0.01 + 0.03), (3, 4)),
        "linear_cross_entropy": (lambda x: F.linear_cross_entropy(x, weight[:, :2] @ x[:2], bags[0]), (3, 4)),
        "function": (Cube.apply, (3, 4)),
        "writes": (with_index, (3, 4)),
    }


LAYERS = layers()
by_layer = pytest.mark.parametrize("name", LAYERS)


def inputs(name: str, count: int = 3) -> wg.Tensor:
    rng = np.random.default_rng(len(name))
    return wg.tensor(rng.uniform(0.2, 1.5, (count, *LAYERS[name][1])))


def scalar(name: str) -> Callable[[wg.Tensor], wg.Tensor]:
    """A loss in which every output counts differently."""

    def loss(x: wg.Tensor) -> wg.Tensor:
        y = LAYERS[name][0](x).reshape(-1)
        return (y * wg.arange(1, y.shape[0] + 1, dtype=F64).cos() + y * y).sum()

    return loss


def difference(f: Callable[[wg.Tensor], wg.Tensor], x: wg.Tensor, t: wg.Tensor) -> Any:
    """The derivative along `t` by central differences of fourth order."""
    at = lambda k: array(f(x + t * (k * 1e-3)))
    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / 12e-3


@by_layer
def test_forward_and_reverse_mode(name: str) -> None:
    f, (x, t) = LAYERS[name][0], inputs(name, 2)
    want = difference(f, x, t)
    assert_near(wg.jvp(f, (x,), (t,))[1], want, 1e-7)
    loss = scalar(name)
    slope = (wg.grad(loss)(x) * t).sum()
    assert_near(slope, difference(loss, x, t), 1e-7)
    assert_near(wg.jvp(loss, (x,), (t,))[1], array(slope), 1e-11)
    y, pull = wg.vjp(f, x)
    u = y.detach().cos()
    assert_near((u * wg.jvp(f, (x,), (t,))[1]).sum(), array((pull(u)[0] * t).sum()), 1e-11)


@by_layer
def test_second_order(name: str) -> None:
    loss, (x, t) = scalar(name), inputs(name, 2)
    want = difference(wg.grad(loss), x, t)
    assert_near(wg.hvp(loss, (x,), (t,))[1], want, 1e-6)
    hessian = wg.hessian(loss)(x)
    product = (hessian * t).sum((2, 3))
    assert_near(product, want, 1e-6)
    assert_near(wg.jacrev(wg.grad(loss))(x), array(hessian), 1e-9)
    leaf = x.clone().requires_grad_()
    (g,) = wg.autograd.grad(loss(leaf), [leaf], create_graph=True)
    (g * t).sum().backward()
    assert_near(leaf.grad, array(product), 1e-9)
    assert_near(wg.grad(lambda x: wg.jvp(loss, (x,), (t,))[1])(x), array(product), 1e-9)


@by_layer
def test_batches(name: str) -> None:
    f, x, loss = LAYERS[name][0], inputs(name), scalar(name)
    stack = lambda g, *more: np.stack([array(g(*row)) for row in zip(x, *more)])
    assert_near(wg.vmap(f)(x), stack(f), 1e-12)
    assert_near(wg.vmap(f, chunk_size=2)(x), stack(f), 1e-12)
    gradients = stack(wg.grad(loss))
    assert_near(wg.vmap(wg.grad(loss))(x), gradients, 1e-11)
    assert_near(wg.grad(lambda x: wg.vmap(loss)(x).sum())(x), gradients, 1e-11)
    t = x.cos()
    push = lambda x, t: wg.jvp(f, (x,), (t,))[1]
    assert_near(wg.vmap(push)(x, t), stack(push, t), 1e-11)
    assert_near(wg.jvp(wg.vmap(f), (x,), (t,))[1], stack(push, t), 1e-11)

    def eager(x: wg.Tensor) -> wg.Tensor:
        leaf = x.detach().requires_grad_()
        loss(leaf).backward()
        return leaf.grad

    assert_near(wg.vmap(eager)(x), gradients, 1e-11)


@by_layer
def test_tools_of_the_tape_inside_transforms(name: str) -> None:
    f, loss, x = LAYERS[name][0], scalar(name), inputs(name, 2)
    hooks = wg.autograd.graph.saved_tensors_hooks

    def saved(x: wg.Tensor) -> wg.Tensor:
        with hooks(lambda t: [t], lambda packed: packed[0]):
            return loss(x)

    want = [array(wg.grad(loss)(row)) for row in x]
    for g in (saved, lambda x: checkpoint(loss, x)):
        assert_near(wg.grad(g)(x[0]), want[0], 1e-11)
        assert_near(wg.jacrev(g)(x[0]), want[0], 1e-11)
        assert_near(wg.jacfwd(g)(x[0]), want[0], 1e-10)
        assert_near(wg.vmap(wg.grad(g))(x), np.stack(want), 1e-11)
    leaf = x[0].clone().requires_grad_()
    y = checkpoint(f, leaf).sum()
    y.backward(retain_graph=True)
    first = array(leaf.grad).copy()
    y.backward()
    assert_near(leaf.grad, 2 * first, 1e-11)


def test_dropout_under_jvp_and_vmap() -> None:
    wg.manual_seed(5)
    layer = nn.TransformerEncoderLayer(4, 2, 6, 0.4, batch_first=True, dtype=F64)
    x = inputs("encoder", 1)[0]

    def loss(x: wg.Tensor) -> wg.Tensor:
        wg.manual_seed(6)
        return layer(x).pow(2).sum()

    slope = wg.grad(loss)(x)
    assert_near(wg.jvp(loss, (x,), (x,))[1], array((slope * x).sum()), 1e-11)
    assert_near((slope * x).sum(), difference(loss, x, x), 1e-6)
    same = wg.vmap(wg.grad(loss), randomness="same")(wg.stack([x, x]))
    assert_near(same, np.stack([array(slope)] * 2), 1e-11)
    with pytest.raises(RuntimeError, match="random numbers are drawn inside vmap"):
        wg.vmap(loss)(wg.stack([x, x]))
