"""Every transform in every other, with every tool of the eager tape inside, against differences."""

import math

import numpy as np
import pytest
import wengert as wg
from support import array, assert_near, pairs
from wengert.utils.checkpoint import checkpoint

RNG = np.random.default_rng(3)
X = RNG.uniform(0.3, 1.2, 4)
W = RNG.normal(size=(4, 4))


def network(x: wg.Tensor) -> wg.Tensor:
    """A smooth vector function with a matrix product, a softmax and a norm in it."""
    h = (wg.tensor(W, dtype=x.dtype) @ x).tanh()
    return wg.nn.functional.layer_norm(h * x.sin() + x, (4,)).softmax(-1) + h.square()


def scalar(x: wg.Tensor) -> wg.Tensor:
    """A smooth scalar function."""
    return (network(x) * x).sum()


# Each transform maps a function from [4] to [4] onto another such function, so that any two compose. Its
# second entry is the same by differences of float64 arrays.


def by_grad(f):
    return wg.grad(lambda x: (f(x) * x.cos()).sum())


def by_vjp(f):
    def g(x):
        y, pullback = wg.vjp(f, x)
        return pullback(y.sin())[0]

    return g


def by_jvp(f):
    return lambda x: wg.jvp(f, (x,), (x.cos(),))[1]


def by_vmap(f):
    return lambda x: wg.vmap(f)(wg.stack([x, x * 0.5, x + 0.1])).sum(0)


def by_jacfwd(f):
    return lambda x: wg.jacfwd(f)(x) @ x.cos()


def by_jacrev(f):
    return lambda x: wg.jacrev(f)(x).mT @ x.cos()


def by_hvp(f):
    return lambda x: wg.hvp(lambda x: (f(x) * x.cos()).sum(), (x,), (x.sin(),))[1]


def by_hessian(f):
    return lambda x: wg.hessian(lambda x: (f(x) * x.cos()).sum())(x) @ x.sin()


def by_linearize(f):
    def g(x):
        _, push = wg.linearize(f, x)
        return push(x.cos())

    return g


def by_checkpoint(f):
    return lambda x: checkpoint(f, x, use_reentrant=False)


def by_no_grad(f):
    def g(x):
        with wg.no_grad():
            frozen = f(x.detach())
        return f(x) * frozen

    return g


def by_autocast(f):
    def g(x):
        with wg.autocast("cpu", dtype=wg.bfloat16):
            return f(x)

    return g


def by_backward(f):
    def g(x):
        leaf = x.detach().requires_grad_()
        with wg.enable_grad():
            (f(leaf) * leaf.cos()).sum().backward()
        return f(x) + leaf.grad

    return g


def by_saved_hooks(f):
    def g(x):
        with wg.autograd.graph.saved_tensors_hooks(lambda t: [t], lambda packed: packed[0]):
            return f(x)

    return g


def by_create_graph(f):
    def g(x):
        y = x * 1.0
        if not y.requires_grad:
            y = y.detach().requires_grad_()
        with wg.enable_grad():
            (first,) = wg.autograd.grad((f(y) * y.cos()).sum(), [y], create_graph=True)
        return f(x) + first.detach()

    return g


def by_hook(f):
    def g(x):
        y = x * 1.0
        if y.requires_grad:
            y.register_hook(lambda g: g * 1.0)
        return f(y)

    return g


def by_jit(f):
    """The last call, at least, is that of a program, unless a transform is around it."""
    staged = wg.jit(f)

    def g(x):
        for scale in (0.5, 1.0, 0.9):
            staged(x * scale)
        return staged(x)

    g.staged = staged
    return g


WEIGHTS = np.array([0.5, -0.25, 1.0, -0.5, 0.75, 0.3])


def by_scan(f):
    """Six steps, of which backward keeps two carries."""

    def step(c, w):
        y = f(c)
        return c * 0.75 + y * w * 0.25, y * w

    def g(x):
        c, ys = wg.scan(step, x, wg.tensor(WEIGHTS), save=2 * 32)
        return c + ys.sum(0)

    return g


def by_cond(f):
    """Two of the three examples of `by_vmap` take one branch, the other the other."""
    return lambda x: wg.cond(x.sum() > 2, lambda x: f(x) * 2, lambda x: f(x) * x.sin(), x)


def numeric_scan(f):
    def g(x):
        total = 0.0
        for w in WEIGHTS:
            y = f(x)
            x, total = x * 0.75 + y * w * 0.25, total + y * w
        return x + total

    return g


def numeric_cond(f):
    return lambda x: f(x) * (2 if x.sum() > 2 else np.sin(x))


def numeric_grad(f):
    """`J(f)' cos(x) - f sin(x)` by differences."""

    def g(x):
        return np.array([d.sum() for d in jacobian(lambda x: f(x) * np.cos(x), x).T])

    return g


def jacobian(f, x, h=1e-3):
    """The Jacobian by central differences of fourth order."""
    columns = []
    for i in range(x.size):
        e = np.zeros(x.size)
        e[i] = h
        columns.append((8 * (f(x + e) - f(x - e)) - (f(x + 2 * e) - f(x - 2 * e))) / (12 * h))
    return np.stack(columns, -1)


def numeric_hvp(f):
    return lambda x: jacobian(numeric_grad(f), x) @ np.sin(x)


def numeric_jvp(f):
    return lambda x: jacobian(f, x) @ np.cos(x)


TRANSFORMS = {
    "grad": (by_grad, numeric_grad),
    "vjp": (by_vjp, lambda f: lambda x: jacobian(f, x).T @ np.sin(f(x))),
    "jvp": (by_jvp, numeric_jvp),
    "vmap": (by_vmap, lambda f: lambda x: f(x) + f(x * 0.5) + f(x + 0.1)),
    "jacfwd": (by_jacfwd, numeric_jvp),
    "jacrev": (by_jacrev, lambda f: lambda x: jacobian(f, x).T @ np.cos(x)),
    "hvp": (by_hvp, numeric_hvp),
    "hessian": (by_hessian, numeric_hvp),
    "linearize": (by_linearize, numeric_jvp),
    "checkpoint": (by_checkpoint, lambda f: f),
    "no_grad": (by_no_grad, None),
    "autocast": (by_autocast, lambda f: f),
    "backward": (by_backward, lambda f: lambda x: f(x) + numeric_grad(f)(x)),
    "create_graph": (by_create_graph, None),
    "hook": (by_hook, lambda f: f),
    "saved_hooks": (by_saved_hooks, lambda f: f),
}
# Against NumPy alone: differences of differences of a function of arrays.
STAGED = {
    "jit": (by_jit, lambda f: f),
    "scan": (by_scan, numeric_scan),
    "cond": (by_cond, numeric_cond),
}
# What those of these compute that differences cannot follow.
DETACHED = {
    "no_grad": lambda f: lambda x: f(x) ** 2,
    "create_graph": lambda f: lambda x: f(x) + numeric_grad(f)(x),
}


def values(f):
    """A function of tensors as a function of arrays."""
    return lambda x: array(f(wg.tensor(x)))


@pytest.mark.parametrize("name", list(TRANSFORMS))
def test_each_transform_alone(name: str) -> None:
    transform, numeric = TRANSFORMS[name]
    got = transform(network)(wg.tensor(X))
    if name == "no_grad":
        assert_near(got, values(network)(X) ** 2, 1e-12)
    elif name == "create_graph":
        assert_near(got, values(network)(X) + numeric_grad(values(network))(X), 1e-6)
    else:
        assert_near(got, numeric(values(network))(X), 1e-5)


@pytest.mark.parametrize(("outer", "inner"), list(pairs(list(TRANSFORMS))), ids=lambda name: name)
def test_every_ordered_pair(outer: str, inner: str) -> None:
    def mild(x):
        return (wg.tensor(W, dtype=x.dtype) @ x).tanh() * x + x.square()

    inside = TRANSFORMS[inner][0](mild)
    got = array(TRANSFORMS[outer][0](inside)(wg.tensor(X)))
    assert got.shape == (4,)
    numeric = TRANSFORMS[outer][1]
    if outer == "no_grad":
        expected = values(inside)(X) ** 2
    elif outer == "create_graph":
        # The inner function's own detached part is a constant for the outer derivative only if it is
        # recomputed.
        expected = values(inside)(X) + array(by_grad(inside)(wg.tensor(X)))
    elif inner in ("no_grad", "backward", "create_graph"):
        # Part of the inner function is detached on purpose, which differences cannot see: forward mode can.
        expected = {
            "grad": lambda: array(wg.jacfwd(lambda x: inside(x) * x.cos())(wg.tensor(X))).sum(0),
            "vjp": lambda: array(wg.jacfwd(inside)(wg.tensor(X))).T @ np.sin(values(inside)(X)),
            "jvp": lambda: array(wg.jacrev(inside)(wg.tensor(X))) @ np.cos(X),
            "jacfwd": lambda: array(wg.jacrev(inside)(wg.tensor(X))) @ np.cos(X),
            "jacrev": lambda: array(wg.jacfwd(inside)(wg.tensor(X))).T @ np.cos(X),
            "linearize": lambda: array(wg.jacrev(inside)(wg.tensor(X))) @ np.cos(X),
            "vmap": lambda: numeric(values(inside))(X),
            "checkpoint": lambda: values(inside)(X),
            "autocast": lambda: values(inside)(X),
            "hook": lambda: values(inside)(X),
            "saved_hooks": lambda: values(inside)(X),
            "backward": lambda: values(inside)(X) + array(by_grad(inside)(wg.tensor(X))),
            "hvp": lambda: array(wg.jacfwd(by_grad(inside))(wg.tensor(X))) @ np.sin(X),
            "hessian": lambda: array(wg.jacrev(by_grad(inside))(wg.tensor(X))) @ np.sin(X),
        }[outer]()
    else:
        expected = numeric(values(inside))(X)
    assert_near(got, expected, 2e-5, f"{outer} of {inner}")


@pytest.mark.parametrize(
    ("outer", "inner"),
    [pair for pair in pairs([*TRANSFORMS, *STAGED]) if not STAGED.keys().isdisjoint(pair)],
    ids=lambda name: name,
)
def test_every_ordered_pair_with_staged_and_controlled_functions(outer: str, inner: str) -> None:
    def mild(x):
        return (wg.tensor(W, dtype=x.dtype) @ x).tanh() * x + x.square()

    table = {**TRANSFORMS, **STAGED}
    found = table[outer][0](table[inner][0](mild))
    got = found(wg.tensor(X))
    expected = lambda x: np.tanh(W @ x) * x + x**2
    for name in (inner, outer):
        expected = (DETACHED.get(name) or table[name][1])(expected)
    assert_near(got, expected(X), 1e-7, f"{outer} of {inner}")
    if outer == "jit":
        # One program for each of the branches, or one for all.
        assert (found.staged.traces, found.staged.why()) == (1 + (inner == "cond"), [])


@pytest.mark.parametrize("name", STAGED)
def test_staged_and_controlled_functions_alone(name: str) -> None:
    transform, numeric = STAGED[name]
    assert_near(transform(network)(wg.tensor(X)), numeric(values(network))(X), 1e-12)


@pytest.mark.parametrize(
    ("outer", "inner"),
    [("grad", "checkpoint"), ("jvp", "checkpoint"), ("vmap", "checkpoint"), ("checkpoint", "grad")],
)
def test_three_deep_around_a_checkpoint(outer: str, inner: str) -> None:
    f = TRANSFORMS[outer][0](TRANSFORMS[inner][0](network))
    plain = TRANSFORMS[outer][0](network) if inner == "checkpoint" else TRANSFORMS[inner][0](network)
    assert_near(
        wg.grad(lambda x: f(x).sum())(wg.tensor(X)),
        array(wg.grad(lambda x: plain(x).sum())(wg.tensor(X))),
        1e-10,
    )


def test_many_levels() -> None:
    x = wg.tensor(0.7, dtype=wg.float64)
    f = lambda x: x.sin()
    for order in range(1, 7):
        f = wg.grad(f)
        assert_near(f(x), math.sin(0.7 + order * math.pi / 2), 1e-12)
    g = lambda x: x.exp()
    for k in range(6):
        previous = g
        g = wg.grad(previous) if k % 2 else (lambda x, p=previous: wg.jvp(p, (x,), (wg.ones_like(x),))[1])
    assert_near(g(x), math.exp(0.7), 1e-12)


# ---- perturbations stay apart --------------------------------------------------------------------


@pytest.mark.parametrize("outer", ["grad", "jvp"])
@pytest.mark.parametrize("inner", ["grad", "jvp"])
def test_perturbations_are_not_confused(outer: str, inner: str) -> None:
    def derivative(f, mode):
        if mode == "grad":
            return wg.grad(f)
        return lambda x: wg.jvp(f, (x,), (wg.ones_like(x),))[1]

    one = wg.tensor(1.0, dtype=wg.float64)
    # d/dx (x * d/dy (x + y)) is 1, not 2.
    f = derivative(lambda x: x * derivative(lambda y: x + y, inner)(one), outer)
    assert f(one).item() == 1.0
    # d/dx (x * d/dy (x * y)) is 2 x.
    g = derivative(lambda x: x * derivative(lambda y: x * y, inner)(x), outer)
    assert g(wg.tensor(3.0, dtype=wg.float64)).item() == 6.0


def test_batch_levels_are_not_confused() -> None:
    x, y = wg.tensor([1.0, 2.0, 3.0]), wg.tensor([10.0, 20.0])
    table = wg.vmap(lambda a: wg.vmap(lambda b: a * b + a)(y))(x)
    assert_near(table, np.outer([1, 2, 3], [10, 20]) + np.array([[1], [2], [3]]), 1e-6)
