"""A sigmoid with derivatives written by hand equals the one of the library, in everything one can ask of
it."""

from collections.abc import Callable

import numpy as np
import pytest
import wengert as wg
from behaviours.tape import kept
from wengert.utils.checkpoint import checkpoint


class Sigmoid(wg.autograd.Function):
    """`1 / (1 + exp(-x))`, whose derivative reads the output."""

    @staticmethod
    def forward(ctx: wg.autograd.FunctionCtx, x: wg.Tensor) -> wg.Tensor:
        """The value; keeps it."""
        y = 1 / (1 + (-x).exp())
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: wg.autograd.FunctionCtx, g: wg.Tensor) -> wg.Tensor:
        """`g y (1 - y)`."""
        (y,) = ctx.saved_tensors
        return g * y * (1 - y)


X = wg.tensor(np.linspace(-4, 4, 9))
total = lambda f: lambda x: f(x).sum()

WAYS: dict[str, Callable] = {
    "value": lambda f: f(X),
    "grad": lambda f: wg.grad(total(f))(X),
    "second": lambda f: wg.vmap(wg.grad(wg.grad(f)))(X),
    "third": lambda f: wg.vmap(wg.grad(wg.grad(wg.grad(f))))(X),
    "jvp": lambda f: wg.jvp(f, (X,), (wg.ones_like(X),))[1],
    "vmap": lambda f: wg.vmap(f)(X.reshape(3, 3)),
    "jacfwd": lambda f: wg.jacfwd(f)(X),
    "jacrev": lambda f: wg.jacrev(f)(X),
    "hessian": lambda f: wg.hessian(total(f))(X),
    "checkpoint": lambda f: wg.grad(total(lambda x: checkpoint(f, x)))(X),
}


@pytest.mark.parametrize("way", WAYS)
def test_it_equals_the_built_in(way: str) -> None:
    ours, theirs = WAYS[way](Sigmoid.apply), WAYS[way](wg.sigmoid)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12, atol=1e-15)


def test_it_keeps_as_much() -> None:
    x = X.clone().requires_grad_()
    sizes = [entry(x).grad_fn.saved_bytes for entry in (Sigmoid.apply, wg.sigmoid)]
    assert sizes == [X.nbytes, X.nbytes]
    assert len(kept(Sigmoid.apply(x))) == 1
