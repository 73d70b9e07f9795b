"""Hooks on tensors inside `vmap` under an outer tape: each sees gradients as its tensor is seen there."""

from __future__ import annotations

import re

import pytest
import wengert as wg
from wengert import Tensor


def test_a_hook_inside_grad_of_vmap_sees_one_example() -> None:
    shapes: list[tuple[int, ...]] = []

    def f(x: Tensor) -> Tensor:
        y = x * x

        def hook(g: Tensor) -> Tensor:
            shapes.append(tuple(g.shape))
            return g * g.sum()

        y.register_hook(hook)
        return (y * wg.tensor([1.0, 2.0, 3.0])).sum()

    x = wg.ones(4, 3)
    gradient = wg.grad(lambda x: (wg.vmap(f)(x) * wg.arange(4.0)).sum())(x)
    assert shapes == [(3,)]
    # For example k the cotangent is k (1, 2, 3), which the hook multiplies by its own sum 6 k.
    assert gradient.tolist() == [[12.0 * k * k, 24.0 * k * k, 36.0 * k * k] for k in range(4)]


def test_batch_axes_keep_their_places() -> None:
    seen: list[Tensor] = []

    def f(x: Tensor) -> Tensor:
        x.register_hook(lambda g: seen.append(tuple(g.shape)))
        return (x * wg.tensor([1.0, 2.0])).sum()

    both = wg.vmap(wg.vmap(f, in_dims=1), in_dims=2)
    x = wg.arange(24.0).reshape(2, 3, 4)
    assert wg.grad(lambda x: both(x).sum())(x)[:, 0, 0].tolist() == [1.0, 2.0]
    assert seen == [(2,)]

    def doubled(x: Tensor) -> Tensor:
        x.register_hook(lambda g: g * wg.tensor([1.0, 10.0]))
        return (x * x).sum()

    both = wg.vmap(wg.vmap(doubled, in_dims=1), in_dims=2)
    expected = 2 * x * wg.tensor([1.0, 10.0]).reshape(2, 1, 1)
    assert wg.grad(lambda x: both(x).sum())(x).tolist() == expected.tolist()


def test_a_constant_from_a_hook_is_one_for_every_example() -> None:
    def f(x: Tensor) -> Tensor:
        x.register_hook(lambda g: wg.tensor([5.0, 7.0]))
        return x.sum()

    assert wg.grad(lambda x: wg.vmap(f, in_dims=1)(x).sum())(wg.ones(2, 3)).tolist() == [[5.0] * 3, [7.0] * 3]


def test_eager_tensors_batched_and_pushed_forward() -> None:
    w = wg.tensor([1.0, 2.0], requires_grad=True)
    seen: list[list[float]] = []

    def f(x: Tensor) -> Tensor:
        y = w * x
        y.register_hook(lambda g: g * 10)
        return y.sum()

    wg.vmap(f)(wg.tensor([[1.0, 1.0], [2.0, 2.0]])).sum().backward()
    assert w.grad.tolist() == [30.0, 30.0]

    def g(x: Tensor) -> Tensor:
        def inner(t: Tensor) -> Tensor:
            y = t * t
            y.register_hook(lambda c: seen.append(c.tolist()))
            return y.sum()

        return wg.jvp(inner, (x,), (wg.ones(2),))[0]

    assert wg.grad(g)(wg.tensor([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert seen == [[1.0, 1.0]]


def test_results_inside_a_batch_have_an_entry_of_the_outer_tape() -> None:
    shapes: list[tuple[int, ...]] = []
    known: list[tuple[bool, bool, str]] = []

    def f(x: Tensor) -> Tensor:
        y = x.exp()
        known.append((y.requires_grad, y.is_leaf, y.grad_fn.name()))
        y.grad_fn.register_hook(lambda gi, go: shapes.append((tuple(gi[0].shape), tuple(go[0].shape))))
        y.grad_fn.register_prehook(lambda go: (go[0] * 2,))
        return y.sum()

    x = wg.zeros(4, 3)
    assert wg.grad(lambda x: wg.vmap(f)(x).sum())(x).tolist() == [[2.0] * 3] * 4
    # The entry works on the whole batch.
    assert shapes == [((4, 3), (4, 3))]
    assert known == [(True, False, "ExpBackward")]


def test_retained_gradients_are_stacked() -> None:
    kept: list[Tensor] = []

    def f(x: Tensor) -> Tensor:
        y = x * 2
        y.retain_grad()
        assert y.retains_grad
        kept.append(y)
        return (y * y).sum()

    x = wg.arange(24.0).reshape(2, 3, 4)
    both = wg.vmap(wg.vmap(f, in_dims=1), in_dims=2)
    gradient = wg.grad(lambda x: both(x).sum())(x)
    assert gradient.tolist() == (8 * x).tolist()
    # x[i, k, b] with k of the inner and b of the outer batch.
    assert kept[0].grad.tolist() == (4 * x).permute(2, 1, 0).tolist()


def test_a_leaf_seen_inside_a_batch() -> None:
    w = wg.ones(2, 3, requires_grad=True)
    (w * 2).sum().backward()
    seen: list[tuple[bool, Tensor]] = []

    def f(x: Tensor) -> Tensor:
        seen.append((x.is_leaf, x.grad))
        return x.sum()

    wg.vmap(f, in_dims=1)(w)
    assert [(leaf, tuple(g.shape)) for leaf, g in seen] == [(True, (3, 2))]


def test_module_hooks_inside_a_batch_see_one_example() -> None:
    layer = wg.nn.Linear(3, 2)
    shapes: list[list[tuple[int, ...] | None]] = []

    def look(_: wg.nn.Module, gi: tuple, go: tuple) -> tuple:
        shapes.append([tuple(g.shape) for g in (*gi, *go)])
        return (gi[0] * go[0].sum(),)

    layer.register_full_backward_hook(look)
    x = wg.ones(4, 3)
    weights = wg.arange(4.0)
    got = wg.grad(lambda x: (wg.vmap(lambda r: layer(r).sum())(x) * weights).sum())(x)
    assert shapes == [[(3,), (2,)]]
    expected = weights.unsqueeze(1) * layer.weight.detach().sum(0) * (2 * weights).unsqueeze(1)
    assert wg.allclose(got, expected)


def test_several_gradients_inside_a_batch() -> None:
    seen: list[list[tuple[int, ...]]] = []

    def f(x: Tensor) -> Tensor:
        y, z = x * 2, x.sum()
        wg.autograd.graph.register_multi_grad_hook(
            [y, z], lambda gs: seen.append([tuple((gs[0] * gs[1]).shape), tuple(gs[1].shape)])
        )
        return (y * z).sum()

    wg.grad(lambda x: wg.vmap(f, in_dims=1)(x).sum())(wg.ones(3, 4))
    assert seen == [[(3,), ()]]


def test_a_shared_tensor_takes_no_gradient_of_one_example() -> None:
    w = wg.ones(3, requires_grad=True)

    class Times(wg.nn.Module):
        def forward(self, x: Tensor, w: Tensor) -> Tensor:
            return (x * w).sum()

    times = Times()
    times.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0] * go[0]))
    y = wg.vmap(lambda x: times(x, w))(wg.rand(4, 3, requires_grad=True)).sum()
    with pytest.raises(
        RuntimeError,
        match=re.escape(
            "a hook inside vmap returned gradients that differ between the examples for a tensor that they "
            "share; return one that does not depend on the example, or None to leave the gradient as it is"
        ),
    ):
        y.backward()


def test_backward_inside_a_batch_of_another_tape_says_what_to_do() -> None:
    with pytest.raises(RuntimeError) as error:
        wg.grad(lambda x: wg.vmap(lambda r: r.exp().sum().backward() or r.sum())(x).sum())(wg.ones(2, 3))
    assert str(error.value) == (
        "backward: the float32 tensor of shape () is recorded by a tape around the vmap or jvp it is in, "
        "where all "
        "examples are differentiated at once; return it, and go backward from what vmap or jvp returns"
    )
    with pytest.raises(RuntimeError) as error:
        wg.grad(lambda x: wg.vmap(lambda r: r.requires_grad_(False).sum())(x).sum())(wg.ones(2, 3))
    assert str(error.value) == (
        "requires_grad_(False): the tensor of shape (3,) is recorded by a tape around the vmap or jvp it is "
        "in; call detach() to compute with it without a gradient"
    )
