"""Dropout in attention: whatever batches the derivatives, they see the numbers of the forward.

The reference is the composition of attention with the mask written out, from the same numbers of `rand`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from references.attention_reference import attend, composed, numbers, tensors
from support import array

Map = Callable[[wg.Tensor], Any]

K, V = tensors(numbers(5, 4), numbers(5, 3))


def keep(*shape: int) -> wg.Tensor:
    """What dropout multiplies the weights by, from the numbers after seed 7."""
    wg.manual_seed(7)
    return (wg.rand(*shape) >= 0.5).double() / 0.5


def dropped(x: wg.Tensor) -> wg.Tensor:
    return attend(x, K, V, dropout_p=0.5)


def seeded(f: Map) -> Map:
    """`f` with the same random numbers each time."""

    def run(x: wg.Tensor) -> Any:
        wg.manual_seed(7)
        return f(x)

    return run


def near(got: Any, want: Any, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(array(got), array(want), atol=tolerance)


def pulled(f: Map, x: wg.Tensor, batched: bool) -> wg.Tensor:
    """The Jacobian by a pullback of unit cotangents, one by one or as a batch."""
    y, pull = wg.vjp(f, x)
    rows = wg.eye(y.numel(), dtype=y.dtype).reshape(-1, *y.shape)
    one = lambda g: pull(g)[0]
    return wg.vmap(one)(rows) if batched else wg.stack([one(g) for g in rows])


def pushed(f: Map, x: wg.Tensor, batched: bool) -> wg.Tensor:
    """The transposed Jacobian by a linear map of unit tangents, one by one or as a batch."""
    _, push = wg.linearize(f, x)
    rows = wg.eye(x.numel(), dtype=x.dtype).reshape(-1, *x.shape)
    return wg.vmap(push)(rows) if batched else wg.stack([push(t) for t in rows])


def on_the_tape(f: Map, x: wg.Tensor, batched: bool) -> wg.Tensor:
    """The Jacobian by `autograd.grad`, one by one or with `is_grads_batched`."""
    leaf = x.clone().requires_grad_()
    y = f(leaf)
    rows = wg.eye(y.numel(), dtype=y.dtype).reshape(-1, *y.shape)
    if batched:
        return wg.autograd.grad(y, leaf, rows, is_grads_batched=True)[0]
    return wg.stack([wg.autograd.grad(y, leaf, g, retain_graph=True)[0] for g in rows])


@pytest.mark.parametrize("way", [pulled, pushed, on_the_tape], ids=lambda f: f.__name__)
def test_batches_of_directions_see_the_mask_of_the_forward(way: Any) -> None:
    (x,) = tensors(numbers(6, 4))
    mask = keep(6, 5)
    want = way(lambda x: composed(x, K, V, keep=mask), x, False)
    for batched in (False, True):
        near(way(seeded(dropped), x, batched), want)


def test_jacobians_agree_with_each_other_and_with_differences() -> None:
    (x,) = tensors(numbers(3, 4))
    f = seeded(dropped)
    reverse, forward = wg.jacrev(f)(x), wg.jacfwd(f)(x)
    near(reverse, forward)
    step = 1e-6 * wg.eye(12, dtype=wg.float64).reshape(12, 3, 4)
    slopes = wg.stack([(f(x + s) - f(x - s)) / 2e-6 for s in step], dim=-1)
    near(reverse.reshape(3, 3, 12), slopes, 1e-8)


SECOND: dict[str, Callable[[Map], Map]] = {
    "hessian": wg.hessian,
    "reverse over reverse": lambda f: wg.jacrev(wg.jacrev(f)),
    "reverse over forward": lambda f: wg.jacrev(wg.jacfwd(f)),
    "forward over forward": lambda f: wg.jacfwd(wg.jacfwd(f)),
    "reverse over gradient": lambda f: wg.jacrev(wg.grad(f)),
}


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives(name: str) -> None:
    (x,) = tensors(numbers(3, 4))
    mask = keep(3, 5)
    want = wg.hessian(lambda x: (composed(x, K, V, keep=mask) ** 3).sum())(x)
    near(SECOND[name](seeded(lambda x: (dropped(x) ** 3).sum()))(x), want)


def test_third_derivatives_by_the_composition() -> None:
    (x,) = tensors(numbers(2, 4))
    mask = keep(2, 5)
    want = wg.jacfwd(wg.hessian(lambda x: (composed(x, K, V, keep=mask) ** 2).sum()))(x)
    f = seeded(lambda x: (dropped(x) ** 2).sum())
    near(wg.jacrev(wg.jacrev(wg.grad(f)))(x), want)
    near(wg.jacfwd(wg.jacrev(wg.jacrev(f)))(x), want)


PER_EXAMPLE: dict[str, Callable[[Map], Map]] = {
    "jacrev": wg.jacrev,
    "jacfwd": wg.jacfwd,
    "pullback": lambda f: lambda x: pulled(f, x, True),
    "linear map": lambda f: lambda x: pushed(f, x, True),
    "hessian": lambda f: wg.hessian(lambda x: (f(x) ** 3).sum()),
    "reverse over reverse": lambda f: wg.jacrev(wg.jacrev(lambda x: (f(x) ** 3).sum())),
    "third": lambda f: wg.jacrev(wg.jacrev(wg.grad(lambda x: (f(x) ** 2).sum()))),
}


@pytest.mark.parametrize("name", PER_EXAMPLE)
@pytest.mark.parametrize("randomness", ["same", "different"])
def test_derivatives_of_examples(name: str, randomness: str) -> None:
    (x,) = tensors(numbers(3, 2, 4))
    mask = keep(3, 2, 5) if randomness == "different" else keep(2, 5).expand(3, 2, 5)
    transform = PER_EXAMPLE[name]
    want = wg.stack([transform(lambda x, m=m: composed(x, K, V, keep=m))(row) for row, m in zip(x, mask)])
    wg.manual_seed(7)
    near(wg.vmap(transform(dropped), randomness=randomness)(x), want)


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_derivatives_of_a_batch(randomness: str) -> None:
    (x,) = tensors(numbers(3, 2, 4))
    mask = keep(3, 2, 5) if randomness == "different" else keep(2, 5).expand(3, 2, 5)
    f = seeded(wg.vmap(dropped, randomness=randomness))
    for way in (pulled, pushed, on_the_tape):
        want = way(lambda x: composed(x, K, V, keep=mask), x, False)
        near(way(f, x, True), want)
    near(wg.jacrev(f)(x), wg.jacfwd(f)(x))


def test_batches_of_both_kinds_around_and_inside() -> None:
    (x,) = tensors(numbers(2, 3, 4))
    mask = keep(2, 1, 3, 5)
    scales = wg.tensor([1.0, 2.0], dtype=wg.float64)

    def inner(x: wg.Tensor) -> wg.Tensor:
        """Two examples that share numbers, and the derivative of each along all directions."""
        return wg.vmap(lambda s: wg.jacrev(lambda x: dropped(x * s))(x), randomness="same")(scales)

    wg.manual_seed(7)
    got = wg.vmap(inner, randomness="different")(x)
    want = [
        [wg.jacfwd(lambda x, s=s, m=m: composed(x * s, K, V, keep=m[0]))(row) for s in scales]
        for row, m in zip(x, mask)
    ]
    near(got, wg.stack([wg.stack(row) for row in want]))


def test_a_batch_of_cotangents_needs_no_word_on_randomness() -> None:
    (x,) = tensors(numbers(6, 4))
    y, pull = wg.vjp(seeded(dropped), x)
    g = y.cos()
    both = wg.vmap(lambda g: pull(g)[0])(wg.stack([g, g]))
    assert both[0].tolist() == both[1].tolist()
    near(both[0], pull(g)[0])
