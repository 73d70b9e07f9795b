"""Derivatives and checkpoints inside of branches that run for all examples of a batch."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from support import array, assert_near

F64 = wg.float64


def tensor(x: Any, **settings: Any) -> wg.Tensor:
    return wg.tensor(np.asarray(x), dtype=F64, **settings)


X = tensor([2.0, -1.0, 0.5])


def product(z: Any) -> Any:
    """Not finite where z is not positive: no rule of an element can leave that out."""
    return (z.log().reshape(1, 2) @ z).sum()


@wg.custom_vjp
def product_by_rule(z: Any) -> Any:
    return product(z)


product_by_rule.defvjp(lambda z: (product(z), z), lambda z, g: (g * wg.grad(product)(z),))


def newton(f: Callable[[Any], Any], y: Any, steps: int = 30) -> Any:
    """A minimum of f."""
    for _ in range(steps):
        y = y - wg.linalg.solve(wg.hessian(f)(y), wg.grad(f)(y))
    return y


DERIVED: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda x, w: wg.grad(lambda y: (y * w * x).sin().sum())(w).sum(),
    "grad of a closure": lambda x, w: wg.grad(lambda s: (s * w).sin().sum() * x)(x),
    "hessian": lambda x, w: wg.hessian(lambda y: (y.exp() * w).sum() * x)(w).trace(),
    "jacfwd": lambda x, w: wg.jacfwd(lambda y: y**3 * w * x)(w).sum(),
    "jvp": lambda x, w: wg.jvp(lambda q: (w / q).log().sum() * (q * w).sqrt().sum(), (x,), (x * x,))[1],
    "linearize": lambda x, w: wg.linearize(lambda q: (q * x).log().sum(), w)[1](w),
    "vmap": lambda x, w: wg.vmap(lambda a: a.log() * x)(w * x).sum(),
    "vmap of grad": lambda x, w: wg.vmap(wg.grad(lambda a: (a * x).log() * a))(w).sum(),
    "a minimum": lambda x, w: newton(lambda y: (y.exp() * w**2 - y * (2 + x * x)).sum(), 0 * w).sum(),
    "a custom rule in a batch": lambda x, w: wg.vmap(lambda a: product_by_rule(a * x * w))(w).sum(),
    "an own leaf": lambda x, w: own_leaf() * x * w.sum(),
}


def own_leaf() -> Any:
    leaf = tensor([1.0, 2.0], requires_grad=True)
    (leaf**3).sum().backward()
    assert leaf.grad is not None
    return leaf.grad.sum()


@pytest.mark.parametrize("name", DERIVED)
def test_derivatives_in_a_branch(name: str) -> None:
    w = tensor([1.5, 0.5])

    def f(x: Any, w: Any) -> Any:
        def branch() -> Any:
            return DERIVED[name](x, w)

        return wg.cond(x > 0, branch, lambda: (x * w).sum())

    assert_near(wg.vmap(f, (0, None))(X, w), [f(x, w).item() for x in X], 1e-12)
    wants = lambda g: np.stack([array(g(x, w)) for x in X])
    for arg, second in itertools.product((0, 1), (None, wg.grad, wg.jacfwd)):
        slope = wg.grad(f, arg)
        if second is not None:
            slope = second(lambda x, w, slope=slope: slope(x, w).sum(), arg)
        want = wants(slope)
        assert np.isfinite(want).all()
        scale = max(np.abs(want).max(), 1)
        assert_near(wg.vmap(slope, (0, None))(X, w), want, 1e-11 * scale)
        assert_near(wg.jit(wg.vmap(slope, (0, None)))(X, w), want, 1e-11 * scale)


def test_checkpoints_of_branches_run_again_in_other_branches() -> None:
    bad = lambda x, w: ((x * w).log().sum() * x.sqrt()).tanh()

    def f(x: Any, w: Any) -> Any:
        inner = lambda: wg.cond(
            x > 1,
            lambda: wg.checkpoint(bad, x, w) * w.sum(),
            lambda: wg.checkpoint(lambda a, b: (a * b).sin().sum(), x, w),
        )
        again = lambda a: wg.cond(a > 0, lambda: wg.checkpoint(bad, a, w), lambda: a * w.sum())
        return wg.cond(x > 0, lambda: inner() + wg.grad(again)(x * 1.0), lambda: x * w.sum())

    w = tensor([1.5, 0.5])
    by_w = wg.grad(f, 1)
    for g in (
        f,
        wg.grad(f),
        by_w,
        wg.grad(wg.grad(f)),
        wg.grad(lambda x, w: by_w(x, w).sum(), 1),
        wg.jacfwd(by_w, 1),
    ):
        want = wg.stack([g(x, w) for x in X])
        assert np.isfinite(array(want)).all()
        each = wg.vmap(g, (0, None))
        assert_near(each(X, w), array(want), 1e-12)
        assert_near(wg.jit(each)(X, w), array(want), 1e-12)


def test_derivatives_in_a_branch_that_no_example_takes() -> None:
    w, seen = tensor([1.5, 0.5], requires_grad=True), list[Any]()

    def branch(x: Any) -> Any:
        seen.append(wg.grad(lambda y: (y**3).sum())(w).tolist())
        seen.append(wg.hessian(lambda y: (y**3).sum())(w).diagonal().tolist())
        # A loop that ends where its slope does.
        return (
            wg.while_loop(lambda y: wg.grad(lambda y: (y * y).sum())(y).sum() > 1, lambda y: y / 2, w).sum()
            * x
        )

    out = wg.vmap(lambda x: wg.cond(x > 9, branch, lambda x: x * w.sum(), x))(X)
    assert seen == [[6.75, 0.75], [9.0, 3.0]]
    out.sum().backward()
    assert_near(w.grad, [1.5, 1.5], 0)


def test_a_leaf_of_a_branch_that_no_example_takes() -> None:
    seen: list[Any] = []

    def branch(x: Any) -> Any:
        leaf = tensor([1.0, 2.0], requires_grad=True)
        shared = w.detach().requires_grad_()
        ((leaf**3).sum() + (leaf * shared).sum()).backward()
        assert leaf.grad is not None
        assert shared.grad is not None
        seen.append((leaf.grad.tolist(), shared.grad.tolist()))
        return x

    w = tensor([4.0, 5.0], requires_grad=True)
    wg.vmap(lambda x: wg.cond(x > 9, branch, lambda x: x, x))(X)
    assert seen == [([7.0, 17.0], [1.0, 2.0])]
