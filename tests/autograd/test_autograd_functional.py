"""`autograd.functional`: derivatives known in closed form, structures, and the tape behind results."""

from __future__ import annotations

import numpy as np
import pytest
import wengert as wg
from messages import Situations, message_tests
from wengert.autograd import functional
from wengert.testing import assert_close

X, Y = wg.tensor([0.5, -1.0, 2.0]), wg.tensor([1.5, 0.25, -0.5])
STRATEGIES = ["reverse-mode", "forward-mode"]


def energy(x: wg.Tensor, y: wg.Tensor) -> wg.Tensor:
    """Its Hessian in blocks: 2 diag(y), 2 diag(x), 2 diag(x), 0."""
    return (x * x * y).sum()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_jacobians_of_several_inputs_and_outputs(strategy: str) -> None:
    first, second = functional.jacobian(lambda x, y: (x * y, x.sin().sum()), (X, Y), strategy=strategy)
    assert_close(first[0], Y.diag())
    assert_close(first[1], X.diag())
    assert_close(second[0], X.cos())
    assert_close(second[1], wg.zeros(3))
    alone = functional.jacobian(lambda x: x**3, X, vectorize=True, strategy=strategy)
    assert_close(alone, (3 * X**2).diag())


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_hessians(strategy: str) -> None:
    (xx, xy), (yx, yy) = functional.hessian(energy, (X, Y), outer_jacobian_strategy=strategy)
    assert_close(xx, (2 * Y).diag())
    assert_close(xy, (2 * X).diag())
    assert_close(yx, (2 * X).diag())
    assert_close(yy, wg.zeros(3, 3))
    # One element need not be a number.
    alone = functional.hessian(lambda x: (x**3).sum().reshape(1), X, outer_jacobian_strategy=strategy)
    assert_close(alone, (6 * X).diag())


def test_products_with_vectors() -> None:
    u, v = wg.tensor([1.0, 2.0, 3.0]), wg.tensor([-1.0, 0.5, 2.0])
    out, pulled = functional.vjp(lambda x: x.exp(), X, u)
    assert_close(out, X.exp())
    assert_close(pulled, u * X.exp())
    out, (gx, gy) = functional.vjp(energy, (X, Y))
    assert_close(out, energy(X, Y))
    assert_close(gx, 2 * X * Y)
    assert_close(gy, X * X)
    (p, _q), (dp, dq) = functional.jvp(lambda x, y: (x * y, x.sum()), (X, Y), (u, v))
    assert_close(p, X * Y)
    assert_close(dp, u * Y + v * X)
    assert_close(dq, u.sum())
    for product in (functional.hvp, functional.vhp):
        out, (hx, hy) = product(energy, (X, Y), (u, v))
        assert_close(out, energy(X, Y))
        assert_close(hx, 2 * Y * u + 2 * X * v)
        assert_close(hy, 2 * X * u)
        assert_close(product(lambda x: (x**3).sum(), X, u)[1], 6 * X * u)


def test_results_are_on_the_tape_if_asked() -> None:
    leaf = X.clone().requires_grad_()
    assert not functional.jacobian(lambda x: x**3, leaf).requires_grad
    functional.jacobian(lambda x: x**3, leaf, create_graph=True).sum().backward()
    assert leaf.grad is not None
    assert_close(leaf.grad, 6 * X)
    _value, product = functional.hvp(lambda x: (x**4).sum(), leaf, wg.ones(3), create_graph=True)
    assert_close(wg.autograd.grad(product.sum(), leaf)[0], 24 * X)
    assert not functional.vjp(lambda x: x * 2, leaf, wg.ones(3))[1].requires_grad


def test_ones_stand_for_the_vector_of_one_element() -> None:
    one = wg.tensor([2.0])
    assert functional.jvp(lambda x: x**3, one)[1].tolist() == [12.0]
    assert np.isclose(functional.hvp(lambda x: (x**3).sum(), one)[1].item(), 12.0)


SITUATIONS: Situations = {
    "strategy": (
        lambda: functional.jacobian(lambda x: x, X, strategy="fast"),
        ValueError,
        "jacobian: strategy must be one of reverse-mode, forward-mode, got 'fast'",
    ),
    "no_vector": (
        lambda: functional.vjp(lambda x: x * 2, X),
        ValueError,
        "vjp: v may be left out for one element only; pass tensors of shapes (3,)",
    ),
    "shapes": (
        lambda: functional.jvp(lambda x: x * 2, X, wg.ones(2)),
        ValueError,
        "jvp: v has shapes (2,), expected (3,)",
    ),
}
test_messages = message_tests(SITUATIONS)
