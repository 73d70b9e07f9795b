"""Hooks on tensors inside `vmap` under an outer tape: each sees gradients as its tensor is seen there."""

from __future__ import annotations

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
