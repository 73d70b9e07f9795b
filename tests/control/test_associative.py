"""`associative_scan`: all prefixes of any length and axis, their derivatives, in a logarithmic number of
sweeps."""

import functools
import math
from typing import Any

import numpy as np
import pytest
import wengert as wg
from messages import Situations, message_tests
from support import array, assert_near

F64 = wg.float64
RNG = np.random.default_rng(3)


def tensor(x: Any) -> wg.Tensor:
    return wg.tensor(np.asarray(x), dtype=F64)


def combine(p: Any, q: Any) -> Any:
    """Two steps of the recurrence `h = a h + b` as one."""
    return p[0] * q[0], q[0] * p[1] + q[1]


A, B = tensor([0.5, -0.25, 2.0, 1.5, 0.75]), tensor([1.0, 2.0, 3.0, -1.0, 0.5])


FUNCTIONS = {"add": wg.cumsum, "mul": wg.cumprod, "maximum": lambda x, dim: x.cummax(dim)[0]}


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 33])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_sums_products_and_maxima_of_any_length(name: str, n: int) -> None:
    x, v = (tensor(RNG.normal(size=(2, n, 3))) for _ in range(2))
    fn, own = getattr(wg, name), FUNCTIONS[name]
    if name == "maximum" and n == 0:
        assert wg.associative_scan(fn, x, axis=1).shape == x.shape
        return
    for axis in (0, 1, 2, -2):
        f, g = functools.partial(wg.associative_scan, fn, axis=axis), lambda x, axis=axis: own(x, axis)
        assert_near(f(x), array(g(x)), 1e-13)
        for got, want in zip(wg.jvp(f, (x,), (v,)), wg.jvp(g, (x,), (v,))):
            assert_near(got, array(want), 1e-12)
        slope, known = (wg.vjp(h, x)[1](v)[0] for h in (f, g))
        assert_near(slope, array(known), 1e-12)
        assert_near(f(x, reverse=True), array(g(x.flip(axis)).flip(axis)), 1e-13)


def test_second_derivatives_and_batches() -> None:
    x = tensor(RNG.normal(size=(3, 6)))
    f = lambda x: wg.associative_scan(wg.mul, x).sin().sum()
    g = lambda x: x.cumprod(0).sin().sum()
    for mode in (
        wg.grad,
        wg.hessian,
        lambda h: wg.jacrev(wg.jacrev(h)),
        lambda h: wg.grad(lambda x: wg.grad(h)(x)[0]),
    ):
        assert_near(wg.vmap(mode(f))(x), array(wg.vmap(mode(g))(x)), 1e-11)
    leaf = x.clone().requires_grad_()
    wg.vmap(f)(leaf).sum().backward()
    assert_near(leaf.grad, array(wg.vmap(wg.grad(g))(x)), 1e-12)


def test_a_linear_recurrence() -> None:
    # The values are those of jax.lax.associative_scan.
    a, h = wg.associative_scan(combine, (A, B))
    assert_near(a, [0.5, -0.125, -0.25, -0.375, -0.28125], 1e-15)
    assert_near(h, [1.0, 1.75, 6.5, 8.75, 7.0625], 1e-15)
    a, h = wg.associative_scan(combine, (A, B), reverse=True)
    assert_near(a, [-0.28125, -0.5625, 2.25, 1.125, 0.75], 1e-15)
    assert_near(h, [1.6875, 1.375, 2.5, -0.25, 0.5], 1e-15)
    f = lambda a, b: wg.associative_scan(combine, (a, b))[1].sin().sum()
    g = lambda a, b: wg.scan(lambda h, x: ((new := x[0] * h + x[1]), new.sin()), tensor(0.0), (a, b))[1].sum()
    for got, want in zip(wg.grad(f, argnums=(0, 1))(A, B), wg.grad(g, argnums=(0, 1))(A, B)):
        assert_near(got, array(want), 1e-13)
    for got, want in zip(
        wg.tree.leaves(wg.hessian(f, argnums=(0, 1))(A, B)),
        wg.tree.leaves(wg.hessian(g, argnums=(0, 1))(A, B)),
    ):
        assert_near(got, array(want), 1e-12)


def test_complex_numbers() -> None:
    z = wg.tensor([1 + 2j, 0.5 - 1j, 2j, -1 + 0.5j])
    assert wg.associative_scan(wg.mul, z).tolist() == [1 + 2j, 2.5 + 0j, 5j, -2.5 - 5j]
    z = wg.tensor(RNG.normal(size=7) + 1j * RNG.normal(size=7))
    size = lambda f: lambda z: f(z).abs().square().sum()
    got = wg.grad(size(lambda z: wg.associative_scan(wg.mul, z)))(z)
    want = wg.grad(size(lambda z: z.cumprod(0)))(z)
    assert np.allclose(got.numpy(), want.numpy(), rtol=1e-12)


def test_matrices_one_pair_at_a_time() -> None:
    m = tensor(RNG.normal(size=(5, 2, 2)) / 2)
    want = [array(m[0])]
    for x in m[1:]:
        want.append(want[-1] @ array(x))
    assert_near(wg.associative_scan(wg.matmul, m), want, 1e-14)
    got = wg.associative_scan(lambda p, q: p.matmul(q), m.movedim(0, 1), 1, combine_mode="generic")
    assert_near(got.movedim(1, 0), want, 1e-14)


def test_pytorch_s_order_and_names() -> None:
    x = tensor(RNG.normal(size=(2, 5)))
    want, back = x.cumsum(1), x.flip(1).cumsum(1).flip(1)
    for got in (
        wg.associative_scan(wg.add, x, 1),
        wg.associative_scan(wg.add, x, -1, False, "generic"),
        wg.associative_scan(combine_fn=wg.add, xs=x, dim=1),
        wg.associative_scan(fn=wg.add, elems=x, reverse=False, axis=1, combine_mode="pointwise"),
        wg.associative_scan(wg.add, x, False, 1),
    ):
        assert_near(got, array(want), 1e-14)
    for got in (wg.associative_scan(wg.add, x, 1, True), wg.associative_scan(wg.add, x, 1, reverse=True)):
        assert_near(got, array(back), 1e-14)


@pytest.mark.parametrize("n", [2, 3, 8, 9, 100, 1023, 1024])
def test_few_calls_do_little_work(n: int) -> None:
    sizes: list[int] = []

    def add(x: wg.Tensor, y: wg.Tensor) -> wg.Tensor:
        sizes.append(x.shape[0])
        return x + y

    wg.associative_scan(add, wg.ones(n))
    assert len(sizes) <= 2 * math.log2(n)
    assert sum(sizes) < 2 * n


def test_a_program_has_the_same_bits() -> None:
    f = lambda a: wg.associative_scan(combine, (a, B))[1]
    step = wg.jit(f)
    for scale in (1.0, 2.0, -1.0):
        assert wg.equal(step(A * scale), f(A * scale))
    assert (step.traces, step.why()) == (1, [])


HINT = "the function returns the structure, shapes and dtypes of what it combines"
SITUATIONS: Situations = {
    "another structure": (
        lambda: wg.associative_scan(lambda x, y: (x, y), A),  # type: ignore[call-overload]
        ValueError,
        f"associative_scan: elems was TreeDef(*), after the function it is TreeDef((*, *)); {HINT}",
    ),
    "another shape": (
        lambda: wg.associative_scan(lambda x, y: (x + y).sum(0), A),
        wg.ShapeError,
        "associative_scan: elems was wengert.float64 of shape (2,), after the function it is wengert.float64 "
        "of shape "
        f"(); {HINT}",
    ),
    "another dtype": (
        lambda: wg.associative_scan(lambda x, y: {"a": x["a"].float()}, {"a": A}),
        TypeError,
        "associative_scan: elems at ['a'] was wengert.float64 of shape (2,), after the function it is "
        "wengert.float32 "
        f"of shape (2,); {HINT}",
    ),
    "other lengths": (
        lambda: wg.associative_scan(combine, (A, B[:3])),
        wg.ShapeError,
        "associative_scan: the tensors have different lengths along axis 0: shapes (5,) at [0], (3,) at [1]",
    ),
    "an axis that one lacks": (
        lambda: wg.associative_scan(combine, (A[None], B), axis=1),
        wg.ShapeError,
        "associative_scan: the tensors have different lengths along axis 1: shapes (1, 5) at [0], (5,) at "
        "[1]",
    ),
    "no such axis": (
        lambda: wg.associative_scan(wg.add, A, axis=1),
        ValueError,
        "associative_scan: elems of shape (5,) has no axis 1 to go along",
    ),
    "an axis that is no integer": (
        lambda: wg.associative_scan(wg.add, A, axis=0.5),  # type: ignore[call-overload]
        TypeError,
        "associative_scan: axis is an integer, got 0.5",
    ),
    "no tensors": (
        lambda: wg.associative_scan(wg.add, ()),  # type: ignore[call-overload]
        ValueError,
        "associative_scan: elems has no tensors",
    ),
    "another mode": (
        lambda: wg.associative_scan(wg.add, A, combine_mode="fast"),  # type: ignore[call-overload]
        ValueError,
        "associative_scan: combine_mode is 'pointwise' or 'generic', got 'fast'",
    ),
    "a direction that is a text": (
        lambda: wg.associative_scan(wg.add, A, "x"),  # type: ignore[call-overload]
        TypeError,
        "associative_scan: reverse is True or False, got 'x'",
    ),
    "an axis by two names": (
        lambda: wg.associative_scan(wg.add, A, axis=0, dim=0),  # type: ignore[call-overload]
        TypeError,
        "associative_scan: axis and dim are two names of one argument; give one of them",
    ),
    "an axis twice": (
        lambda: wg.associative_scan(wg.add, A, 0, dim=0),  # type: ignore[misc]
        TypeError,
        "associative_scan: axis is given twice",
    ),
}

test_messages = message_tests(SITUATIONS)
