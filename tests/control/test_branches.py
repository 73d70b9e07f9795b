"""`cond` and `switch`: the branch that is taken, one for each example of a batch, and what is not taken."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from messages import Situations, message_tests
from support import array, assert_near

F64 = wg.float64


def tensor(x: Any) -> wg.Tensor:
    return wg.tensor(np.asarray(x), dtype=F64)


X = tensor([0.5, -1.0, 2.0])

# ---- which branch --------------------------------------------------------------------------------


def test_the_branch_that_is_taken_runs_alone() -> None:
    ran: list[str] = []

    def branch(name: str) -> Callable[..., Any]:
        return lambda x, y: ran.append(name) or {"sum": x + y, "one": 1}

    for flag in (True, wg.tensor(True), np.bool_(True), X.sum() > 0):
        out = wg.cond(flag, branch("true"), branch("false"), X, 2.0)
        assert out["sum"].tolist() == [2.5, 1.0, 4.0]
        assert out["one"].item() == 1
    assert wg.cond(X.sum() > 9, branch("true"), branch("false"), X, 0)["sum"].tolist() == X.tolist()
    assert ran == ["true"] * 4 + ["false"]


def test_operands_in_a_tuple_and_pytorch_s_names() -> None:
    assert wg.cond(False, lambda x, y: x, lambda x, y: y, operands=(X, X + 1)).tolist() == (X + 1).tolist()
    out = wg.cond(pred=True, true_fn=lambda x: x.sin(), false_fn=lambda x: x.cos(), operands=(X,))
    assert wg.equal(out, X.sin())
    assert wg.equal(wg.cond(True, lambda pair: pair[0], lambda pair: pair[1], (X, 0)), X)
    assert wg.cond(False, lambda: 1.0, lambda: 2.0).item() == 2.0


@pytest.mark.parametrize(("index", "want"), [(-7, 0), (0, 0), (1, 1), (2, 2), (9, 2)])
def test_an_index_is_clamped(index: int, want: int) -> None:
    branches = [lambda x: x, lambda x: x.sin(), lambda x: x**3]
    for given in (index, np.int32(index), wg.tensor(index), wg.tensor(index, dtype=wg.int8)):
        assert wg.equal(wg.switch(given, branches, X), branches[want](X))


def test_an_index_that_differs_between_examples() -> None:
    # The values are those of jax.lax.switch.
    f = lambda k, x: wg.switch(k, [wg.sin, wg.exp, lambda x: x**3], x)
    k, x = wg.tensor([-1, 0, 1, 2, 9]), wg.full((5,), 0.5, dtype=F64)
    want = [0.479425538604203, 0.479425538604203, 1.6487212707001282, 0.125, 0.125]
    assert_near(wg.vmap(f)(k, x), want, 1e-15)
    slopes = [np.cos(0.5), np.cos(0.5), np.exp(0.5), 0.75, 0.75]
    assert_near(wg.vmap(wg.grad(f, argnums=1))(k, x), slopes, 1e-15)
    assert wg.equal(wg.vmap(lambda k: f(k, x), in_axes=0)(k)[:, 0], wg.vmap(f)(k, x))
    assert wg.vmap(lambda k: wg.switch(k, [lambda: 2.0]))(k).tolist() == [2.0] * 5


# ---- examples that differ ------------------------------------------------------------------------

BAD: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], list[float], list[float], list[float]]] = {
    # A function, its condition, points; first and second derivatives there, 0 where it is not taken.
    "sqrt": (lambda x: x.sqrt(), lambda x: x > 0, [4.0, 0.0, -1.0], [0.25, 0, 0], [-1 / 32, 0, 0]),
    "log": (lambda x: x.log(), lambda x: x > 0, [0.5, 0.0, -2.0], [2.0, 0, 0], [-4.0, 0, 0]),
    "reciprocal": (lambda x: 1 / x, lambda x: x != 0, [0.5, 0.0, -2.0], [-4.0, 0, -0.25], [16.0, 0, -0.25]),
    "power": (lambda x: x**-1.5, lambda x: x > 0, [1.0, 0.0, -1.0], [-1.5, 0, 0], [3.75, 0, 0]),
    "overflow": (lambda x: x.exp(), lambda x: x < 1, [0.0, 1000.0, 800.0], [1.0, 0, 0], [1.0, 0, 0]),
    "acos": (lambda x: x.acos(), lambda x: x.abs() < 1, [0.0, 1.0, 3.0], [-1.0, 0, 0], [0.0, 0, 0]),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_taken_leaks_nothing(name: str) -> None:
    inside, test, points, first, second = BAD[name]
    f = lambda x: wg.cond(test(x), inside, lambda x: wg.zeros_like(x), x)
    x = tensor(points)
    ones = wg.ones_like(x)
    each = wg.vmap(f)
    assert np.isfinite(array(each(x))).all()
    assert_near(wg.vmap(wg.grad(f))(x), first, 1e-14)
    assert_near(wg.grad(lambda x: each(x).sum())(x), first, 1e-14)
    assert_near(wg.jvp(each, (x,), (ones,))[1], first, 1e-14)
    assert_near(wg.linearize(each, x)[1](ones), first, 1e-14)
    leaf = x.clone().requires_grad_()
    each(leaf).sum().backward()
    assert_near(leaf.grad, first, 1e-14)
    for outer in (wg.grad, wg.jacfwd, wg.jacrev):
        for inner in (wg.grad, wg.jacfwd):
            assert_near(wg.vmap(outer(inner(f)))(x), second, 1e-13)
    assert_near(wg.hessian(lambda x: each(x).sum())(x), np.diag(second), 1e-13)


TWICE_BAD: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    # What is not taken is a product of two that are not finite, or a function of what is not.
    "product": (lambda x: x.log() * x.sqrt(), lambda x: x > 0),
    "square": (lambda x: (1 / x) * (1 / x), lambda x: x != 0),
    "chain": (lambda x: x.log().cos(), lambda x: x > 0),
}


@pytest.mark.parametrize("name", TWICE_BAD)
def test_no_order_leaks_what_is_not_taken(name: str) -> None:
    inside, test = TWICE_BAD[name]
    cube = lambda x: x * x * x
    branches = {
        "cond": lambda x: wg.cond(test(x), inside, cube, x),
        "switch": lambda x: wg.switch(test(x).int(), [cube, inside], x),
        "while_loop": lambda x: wg.while_loop(
            lambda c: (c[1] < 1) & test(c[0]), lambda c: (inside(c[0]), c[1] + 1), (x, 0)
        )[0],
        "fori_loop": lambda x: wg.fori_loop(0, test(x).int(), lambda i, c: inside(c), x),
    }
    x = tensor([0.0, 0.5, 4.0])
    for form, f in branches.items():
        for first, second, third in itertools.product((wg.grad, wg.jacfwd), repeat=3):
            slope = first(second(third(f)))
            alone = [slope(row).item() for row in x]
            assert alone[0] == (6.0 if form in ("cond", "switch") else 0.0)
            assert_near(wg.vmap(slope)(x), alone, 1e-12)
            assert_near(wg.jit(wg.vmap(slope))(x), alone, 1e-12)


def test_one_branch_has_its_derivative_for_all_examples() -> None:
    f = lambda k, x: wg.switch(k, [lambda x: x * x], x)
    assert wg.vmap(wg.grad(f, argnums=1))(wg.tensor([-1, 0, 3]), tensor([1.0, 2.0, 3.0])).tolist() == [
        2,
        4,
        6,
    ]


def test_both_branches_of_a_batch_are_trees() -> None:
    def f(x: Any, k: Any) -> Any:
        low = lambda x, k: {"a": (x, k), "b": x > 0, "z": x * 1j, "n": 0}
        high = lambda x, k: {"a": (-x, k), "b": x < 0, "z": x + 0j, "n": 1.5}
        return wg.cond(x.sum() > 0, low, high, x, k)

    x = tensor([[1.0, 2.0], [-1.0, -2.0]])
    k = wg.tensor(7)
    out = wg.vmap(f, in_axes=(0, None))(x, k)
    rows = [f(row, k) for row in x]
    for got, want in zip(
        wg.tree.leaves({**out, "n": 0}), zip(*(wg.tree.leaves({**r, "n": 0}) for r in rows))
    ):
        if isinstance(got, wg.Tensor):
            assert got.dtype == want[0].dtype
            assert got.tolist() == [w.tolist() for w in want]
    assert out["n"].tolist() == [0.0, 1.5]


def test_a_number_beside_a_tensor_takes_its_dtype() -> None:
    f = lambda x: wg.cond(x > 1, lambda x: x, lambda x: 0, x)
    out = wg.vmap(f)(X)
    assert out.dtype == F64
    assert out.tolist() == [0.0, 0.0, 2.0]
    assert wg.vmap(lambda x: wg.cond(x > 1, lambda: 0, lambda: 1))(X).dtype == wg.int64


def test_batches_in_batches() -> None:
    x = tensor([[1.0, -2.0], [-3.0, 4.0], [0.0, 5.0]])
    f = lambda x, y: wg.cond(x > y, lambda a: a * y, lambda a: a / (1 + y * y), x)
    want = np.where(array(x) > 0.5, array(x) * 0.5, array(x) / 1.25)
    assert_near(wg.vmap(wg.vmap(lambda x: f(x, tensor(0.5))))(x), want, 1e-15)
    table = wg.vmap(lambda x: wg.vmap(lambda y: f(x, y))(X))(X)
    a, b = array(X)[:, None], array(X)[None, :]
    assert_near(table, np.where(a > b, a * b, a / (1 + b * b)), 1e-15)
    assert wg.vmap(lambda x: wg.cond(x > 0, wg.sin, wg.cos, x))(tensor([])).shape == (0,)


def test_functions_close_over_parameters() -> None:
    w = tensor(3.0).requires_grad_()
    f = lambda x: wg.cond(x > 0, lambda x: w * x, lambda x: w.exp(), x)
    f(tensor(2.0)).backward()
    assert w.grad.item() == 2.0
    w.grad = None
    wg.vmap(f)(X).sum().backward()
    assert_near(w.grad, 2.5 + np.exp(3.0), 1e-15)


def test_programs_take_the_branch_of_the_value() -> None:
    f = wg.jit(lambda x: wg.cond(x.sum() > 0, lambda x: x.sin() / 3, lambda x: x.exp(), x))
    g = wg.jit(lambda x: wg.switch(x[0].long(), [wg.sin, wg.cos, wg.exp], x))
    h = wg.jit(wg.vmap(wg.grad(lambda x: wg.cond(x > 0, wg.sqrt, wg.sin, x))))
    for scale in (1.0, -1.0, 3.0, -2.0, 5.0):
        x = X * scale
        assert wg.equal(f(x), x.sin() / 3 if x.sum() > 0 else x.exp())
        assert wg.equal(g(x), [wg.sin, wg.cos, wg.exp][min(max(int(x[0]), 0), 2)](x))
        assert wg.equal(h(x), wg.vmap(wg.grad(lambda x: wg.cond(x > 0, wg.sqrt, wg.sin, x)))(x))
    assert (f.traces, f.why(), g.why(), h.traces, h.why()) == (2, [], [], 1, [])


# ---- messages ------------------------------------------------------------------------------------

EACH = lambda first, second: wg.vmap(lambda x: wg.cond(x > 0, first, second, x))(X)
ALIKE = "all branches return one structure, with equal shapes and dtypes"
PREDICATE = "cond: the predicate is a bool or a bool tensor of shape (), got "
SITUATIONS: Situations = {
    "a predicate of three": (
        lambda: wg.cond(X > 0, wg.sin, wg.cos, X),
        TypeError,
        PREDICATE + "wengert.bool of shape (3,); reduce it with .all() or .any()",
    ),
    "a predicate of another dtype": (
        lambda: wg.cond(X.sum(), wg.sin, wg.cos, X),
        TypeError,
        PREDICATE + "wengert.float64 of shape (); compare it with a number, as in x > 0",
    ),
    "an integer as a predicate": (
        lambda: wg.cond(1, wg.sin, wg.cos, X),  # type: ignore[call-overload]
        TypeError,
        PREDICATE + "int 1; compare it with a number, as in x > 0",
    ),
    "a branch that is no function": (
        lambda: wg.cond(True, X, wg.cos, X),  # type: ignore[call-overload]
        TypeError,
        "cond: a function as true_fun expected, got Tensor",
    ),
    "operands in both ways": (
        lambda: wg.cond(True, wg.sin, wg.cos, X, operands=(X,)),  # type: ignore[call-overload]
        TypeError,
        "cond: operands are given one by one, or as operands=(...); not both",
    ),
    "one operand that is no tuple": (
        lambda: wg.cond(True, wg.sin, wg.cos, operands=X),  # type: ignore[call-overload]
        TypeError,
        "cond: operands is a tuple of operands, got Tensor; write operands=(x,)",
    ),
    "a function by two names": (
        lambda: wg.cond(True, true_fun=wg.sin, false_fn=wg.cos, true_fn=wg.sin),  # type: ignore[call-overload]
        TypeError,
        "cond: true_fun and true_fn are two names of one argument; give one of them",
    ),
    "no tensor as a result": (
        lambda: wg.cond(True, lambda: "text", lambda: "text"),
        TypeError,
        "cond: the result of the branch is str, expected a tensor or a tree of tensors",
    ),
    "other structures": (
        lambda: EACH(lambda x: x, lambda x: (x, x)),
        ValueError,
        f"cond: the result of the true branch is TreeDef(*), that of the false branch TreeDef((*, *)); "
        f"{ALIKE}",
    ),
    "other dtypes": (
        lambda: EACH(lambda x: {"a": x, "b": x}, lambda x: {"a": x, "b": x.float()}),
        TypeError,
        "cond: the result of the true branch at ['b'] is wengert.float64 of shape (), that of the false "
        "branch "
        f"wengert.float32 of shape (); {ALIKE}",
    ),
    "other shapes": (
        lambda: EACH(lambda x: x, lambda x: x[None]),
        wg.ShapeError,
        "cond: the result of the true branch is wengert.float64 of shape (), that of the false branch "
        f"wengert.float64 of shape (1,); {ALIKE}",
    ),
    "a number that does not fit": (
        lambda: wg.vmap(lambda k: wg.cond(k > 0, lambda: k, lambda: 0.5))(wg.tensor([1, -1])),
        TypeError,
        "cond: the result of the true branch is wengert.int64 of shape (), that of the false branch "
        "wengert.float32 "
        f"of shape (); {ALIKE}",
    ),
    "a float as an index": (
        lambda: wg.switch(1.0, [wg.sin], X),  # type: ignore[arg-type]
        TypeError,
        "switch: the index is an integer or an integer tensor of shape (), got float 1.0",
    ),
    "a bool as an index": (
        lambda: wg.switch(wg.tensor(True), [wg.sin], X),
        TypeError,
        "switch: the index is an integer or an integer tensor of shape (), got wengert.bool of shape ()",
    ),
    "two indices": (
        lambda: wg.switch(wg.tensor([0, 1]), [wg.sin], X),
        TypeError,
        "switch: the index is an integer or an integer tensor of shape (), got wengert.int64 of shape (2,)",
    ),
    "one function": (
        lambda: wg.switch(0, wg.sin, X),  # type: ignore[arg-type]
        TypeError,
        "switch: branches is a list of functions, got one function",
    ),
    "no branch": (lambda: wg.switch(0, [], X), ValueError, "switch: at least one branch expected, got none"),
    "branches that differ": (
        lambda: wg.vmap(lambda k: wg.switch(k, [lambda: X, lambda: X, lambda: X[:1]]))(wg.tensor([0, 2])),
        wg.ShapeError,
        "switch: the result of branch 0 is wengert.float64 of shape (3,), that of branch 2 wengert.float64 "
        "of shape "
        f"(1,); {ALIKE}",
    ),
}

test_messages = message_tests(SITUATIONS)
