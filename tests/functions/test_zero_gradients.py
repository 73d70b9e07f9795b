"""Functions whose derivative is zero everywhere stay on the tape: their gradients are zeros, not None."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import wengert as wg
import wengert.nn.functional as F
from wengert import Tensor

Function = Callable[[Tensor], Tensor]

NOWHERE = wg.zeros(0, dtype=wg.int64)
FUNCTIONS: dict[str, Function] = {
    "floor": lambda x: x.floor(),
    "ceil": lambda x: x.ceil(),
    "round": lambda x: x.round(),
    "round to decimals": lambda x: x.round(decimals=1),
    "trunc": lambda x: x.trunc(),
    "sign": lambda x: x.sign(),
    "sgn": lambda x: x.sgn(),
    "in place": lambda x: (x * 1).floor_(),
    "floor_divide": lambda x: x // 2,
    "div, floor": lambda x: x.div(2.0, rounding_mode="floor"),
    "div, trunc": lambda x: wg.div(1.0, x, rounding_mode="trunc"),
    "heaviside": lambda x: wg.heaviside(x, x.detach()),
    "nextafter": lambda x: wg.nextafter(x, wg.zeros(3)),
    "nextafter, other": lambda x: wg.nextafter(wg.zeros(3), x),
    "bernoulli": lambda x: wg.bernoulli(x.abs().clamp(0, 1)),
    "poisson": lambda x: wg.poisson(x.abs()),
    "binomial, count": lambda x: wg.binomial(x.abs().round(), wg.tensor(0.5)),
    "binomial, prob": lambda x: wg.binomial(wg.ones(3), x.sigmoid()),
    "fill": lambda x: x.fill(2.0),
    "norm of order 0": lambda x: x.norm(0),
    "pairwise distance of order 0": lambda x: F.pairwise_distance(x, x.detach() * 2, p=0.0),
    "prod of nothing": lambda x: x[:0].prod(),
    "prod along nothing": lambda x: x.reshape(1, 3)[:0].prod(0),
    "sum of nothing": lambda x: x[:0].sum(),
    "cat of nothing": lambda x: wg.cat([x[:0], wg.ones(2, 2)], 1),
    "scatter_add of nothing": lambda x: wg.zeros(0, 3).scatter_add(
        1, NOWHERE.reshape(0, 1), x.reshape(1, 3)[:0]
    ),
    "index_add of nothing": lambda x: wg.zeros(2, 3).index_add(0, NOWHERE, x.reshape(1, 3)[:0]),
    "index_add to nothing": lambda x: wg.zeros(0, 3).index_add(0, NOWHERE, x.reshape(1, 3)[:0]),
    "index_put of nothing": lambda x: wg.zeros(2, 3).index_put((NOWHERE,), x),
    "index_copy of nothing": lambda x: wg.zeros(2, 3).index_copy(0, NOWHERE, x.reshape(1, 3)[:0]),
    "masked_scatter of nothing": lambda x: wg.zeros(3).masked_scatter(wg.zeros(3, dtype=wg.bool), x),
    "matrix_power 0": lambda x: wg.linalg.matrix_power(x.reshape(3, 1) @ x.reshape(1, 3), 0),
    "addmm, beta 0": lambda x: wg.addmm(x.reshape(1, 3), wg.ones(1, 1), wg.ones(1, 3), beta=0),
    "addmv, beta 0": lambda x: wg.addmv(x, wg.ones(3, 1), wg.ones(1), beta=0),
    "addr, beta 0": lambda x: wg.addr(x.reshape(1, 3), wg.ones(1), wg.ones(3), beta=0),
    "addbmm, beta 0": lambda x: wg.addbmm(x.reshape(1, 3), wg.ones(2, 1, 1), wg.ones(2, 1, 3), beta=0),
    "baddbmm, beta 0": lambda x: wg.baddbmm(x.reshape(1, 1, 3), wg.ones(1, 1, 1), wg.ones(1, 1, 3), beta=0),
    "grid of the nearest": lambda x: F.grid_sample(
        wg.ones(1, 1, 3, 3), x[:2].reshape(1, 1, 1, 2) * 0.3, mode="nearest", align_corners=False
    ),
    "through other operations": lambda x: ((x * 2).exp().floor() + 1).sin(),
    "twice": lambda x: x.floor() + x.sign(),
}


def point(scale: float = 1.0) -> Tensor:
    return (scale * wg.tensor([1.3, -2.2, 0.5])).requires_grad_()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_leaves_get_zeros(name: str) -> None:
    x = point()
    FUNCTIONS[name](x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0, 0, 0]
    assert x.grad.is_contiguous()
    x.grad[0] = 1.0
    assert x.grad.tolist() == [1, 0, 0]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_autograd_grad_gives_zeros(name: str) -> None:
    x = point()
    (g,) = wg.autograd.grad(FUNCTIONS[name](x).sum(), x)
    assert g.tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_transforms_give_zeros(name: str) -> None:
    f = FUNCTIONS[name]
    x = point().detach()
    if name not in ("bernoulli", "in place") and not name.startswith(("poisson", "binomial")):
        assert (
            wg.vmap(wg.grad(lambda x: f(x).sum()))(wg.stack([x, 2 * x])).tolist() == np.zeros((2, 3)).tolist()
        )
        assert not wg.jvp(f, (x,), (wg.ones(3),))[1].any()


def test_gradients_that_are_not_zero_are_added() -> None:
    x = point()
    (x.floor() * x + x).sum().backward()
    # d/dx of floor(x) x + x is floor(x) + 1 wherever it is differentiable.
    assert x.grad.tolist() == [2.0, -2.0, 1.0]


def test_leaves_that_are_not_used_have_no_gradient() -> None:
    x, y = point(), point()
    x.floor().sum().backward()
    assert y.grad is None
    assert wg.autograd.grad(x.floor().sum(), [x, y], allow_unused=True)[1] is None


def test_hooks_and_retained_gradients_see_zeros() -> None:
    x = point()
    middle, seen = x * 2, []
    middle.retain_grad()
    x.register_hook(lambda g: seen.append(g.tolist()))
    middle.floor().sum().backward()
    assert middle.grad.tolist() == [0, 0, 0]
    assert seen == [[0, 0, 0]]


def test_a_hook_may_change_what_is_zero() -> None:
    x = point()
    middle = x * 2
    middle.register_hook(lambda g: g + 1)
    middle.floor().sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_gradients_of_results_in_between() -> None:
    x = point()
    middle = x * 2
    both = wg.autograd.grad(middle.floor().sum(), [middle, x])
    assert [g.tolist() for g in both] == [[0, 0, 0], [0, 0, 0]]


def test_one_of_several_outputs() -> None:
    x = point()
    a, b, c = x.unbind()
    found = wg.autograd.grad(a.floor() + b, [a, b, c], allow_unused=True)
    assert [None if g is None else g.item() for g in found] == [0, 1, None]


def test_gradients_keep_what_was_there() -> None:
    x = point()
    x.grad = wg.tensor([1.0, 2.0, 3.0])
    x.floor().sum().backward()
    assert x.grad.tolist() == [1, 2, 3]


def test_what_a_custom_function_leaves_out_stays_none() -> None:
    class Nothing(wg.autograd.Function):
        @staticmethod
        def forward(ctx: wg.autograd.function.FunctionCtx, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: wg.autograd.function.FunctionCtx, g: Tensor) -> None:
            return None

    x = point()
    Nothing.apply(x).sum().backward()
    assert x.grad is None


def test_second_derivatives_of_kinks_are_zeros() -> None:
    x = point()
    (g,) = wg.autograd.grad((x.relu() * 2).sum(), x, create_graph=True)
    assert g.tolist() == [2, 0, 2]
    if g.requires_grad:
        g.sum().backward()
        assert x.grad.tolist() == [0, 0, 0]


def test_nan_does_not_get_into_results_without_a_factor() -> None:
    x = wg.tensor([float("nan"), float("inf")], requires_grad=True)
    out = wg.addmv(x, wg.ones(2, 1), wg.ones(1), beta=0)
    assert out.tolist() == [1, 1]
    assert x.norm(0).item() == 2
    out.sum().backward()
    assert x.grad.tolist() == [0, 0]


@pytest.mark.parametrize("bounds", [(2.0, 1.0), (wg.tensor(2.0), wg.tensor(1.0))], ids=["numbers", "tensors"])
def test_bounds_that_cross_make_a_constant(bounds) -> None:
    x = wg.tensor([0.0, 1.0, 1.5, 2.0, 3.0], requires_grad=True)
    y = x.clamp(*bounds)
    y.sum().backward()
    assert y.tolist() == [1.0] * 5
    assert x.grad.tolist() == [0.0] * 5
    _, tangent = wg.jvp(lambda x: x.clamp(*bounds), (x.detach(),), (wg.ones(5),))
    assert tangent.tolist() == [0.0] * 5
