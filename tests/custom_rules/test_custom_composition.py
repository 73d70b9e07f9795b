"""Custom functions in every pair of transforms and tools: they equal the built-in in value and
derivatives."""

import pytest
import wengert as wg
from custom_rules.custom_functions import FUNCTIONS, RULES
from support import array, assert_near
from transforms import test_composition

X = wg.tensor([0.3, -1.2, 2.0], dtype=wg.float64)
ALL = FUNCTIONS | RULES
by_function = pytest.mark.parametrize("name", list(ALL))


def loss(f):
    return lambda x: (f(x) * x.cos()).sum()


def twice_on_the_tape(f):
    def g(x):
        x = x.detach().requires_grad_()
        (first,) = wg.autograd.grad(loss(f)(x), x, create_graph=True)
        (second,) = wg.autograd.grad(first.sin().sum(), x, create_graph=True)
        (third,) = wg.autograd.grad(second.sin().sum(), x)
        return wg.stack([first.detach(), second.detach(), third])

    return g


def accumulated(f):
    def g(x):
        x = x.detach().requires_grad_()
        loss(f)(x).backward()
        return x.grad

    return g


VIEWS = {
    "value": lambda f: f,
    "backward": accumulated,
    "create_graph": twice_on_the_tape,
    "grad": lambda f: wg.grad(loss(f)),
    "grad of grad": lambda f: wg.grad(lambda x: wg.grad(loss(f))(x).sin().sum()),
    "vmap": lambda f: wg.vmap(f),
    "vmap of vmap": lambda f: lambda x: wg.vmap(wg.vmap(f))(wg.stack([x, x * 2])),
    "vmap along the last axis": lambda f: lambda x: wg.vmap(f, in_dims=1)(wg.stack([x, x * 2])),
    "jvp": lambda f: lambda x: wg.jvp(f, (x,), (x.cos(),))[1],
    "jacfwd of jacrev": lambda f: wg.jacfwd(wg.jacrev(f)),
    "jacrev of jacfwd": lambda f: wg.jacrev(wg.jacfwd(f)),
    "jacrev of jacrev": lambda f: wg.jacrev(wg.jacrev(f)),
    "hessian": lambda f: wg.hessian(loss(f)),
    "vmap of grad of grad": lambda f: wg.vmap(wg.grad(wg.grad(f))),
    "grad of vmap": lambda f: wg.grad(loss(wg.vmap(f))),
    "grad of grad of vmap": lambda f: wg.grad(lambda x: wg.grad(loss(wg.vmap(f)))(x).sin().sum()),
    "grad of vmap of grad": lambda f: wg.grad(loss(wg.vmap(wg.grad(f)))),
    "vmap of jvp": lambda f: wg.vmap(lambda x: wg.jvp(f, (x,), (x.cos(),))[1]),
    "jvp of vmap": lambda f: lambda x: wg.jvp(wg.vmap(f), (x,), (x.cos(),))[1],
    "backward inside vmap": lambda f: wg.vmap(accumulated(f)),
}


@by_function
@pytest.mark.parametrize("view", list(VIEWS))
def test_equals_the_builtin(name: str, view: str) -> None:
    found, expected = VIEWS[view](ALL[name])(X), VIEWS[view](wg.sigmoid)(X)
    assert_near(array(found), array(expected), 1e-12, f"{view} of {name}")


# The transforms and tools of test_composition.py map a function onto a function, so any two compose.
TOOLS = {k: v for k, v in vars(test_composition).items() if k.startswith("by_") and callable(v)}
LOW = {"by_autocast"}


def tools() -> list[str]:
    return [
        k for k in TOOLS if k.split("by_")[1] in
        "grad vjp jvp vmap jacfwd jacrev hvp hessian checkpoint no_grad autocast backward create_graph".split()
    ]  # fmt: skip


@pytest.mark.parametrize("inner", tools())
@pytest.mark.parametrize("outer", tools())
def test_every_pair_of_tools(outer: str, inner: str) -> None:
    x = wg.tensor([0.3, 0.9, 0.5, 1.1], dtype=wg.float64)
    compose = lambda f: TOOLS[outer](TOOLS[inner](f))
    expected = array(compose(lambda x: x.sigmoid() * x)(x))
    for name in ("NewStyle", "SavesIntermediate", "OwnVmap", "by_vjp", "by_jvp", "by_both"):
        found = array(compose(lambda x, name=name: ALL[name](x) * x)(x))
        assert_near(found, expected, 1e-11, f"{outer} of {inner} of {name}")


@by_function
def test_under_no_grad_nothing_is_recorded(name: str) -> None:
    x = X.clone().requires_grad_()
    with wg.no_grad():
        assert not ALL[name](x).requires_grad
    assert ALL[name](x).requires_grad


@by_function
def test_autocast_reaches_the_forward(name: str) -> None:
    seen = []

    def f(x):
        y = x @ x
        seen.append(y.dtype)
        return ALL[name](y)

    x = wg.tensor([[0.5, 1.0], [2.0, 0.1]], requires_grad=True)
    with wg.autocast("cpu", dtype=wg.bfloat16):
        f(x).sum().backward()
    assert seen == [wg.bfloat16]
    assert x.grad.dtype == wg.float32


class Product(wg.autograd.Function):
    """A matrix product, which autocast lowers."""

    @staticmethod
    def forward(ctx, x, y):
        out = x @ y
        ctx.save_for_backward(x, y)
        return out

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g.float() @ y.mT, x.mT @ g.float()


def test_operations_of_a_forward_run_under_autocast_inside_vmap_too() -> None:
    x = wg.rand(3, 4, 4)
    with wg.autocast("cpu", dtype=wg.bfloat16):
        assert Product.apply(x[0], x[1]).dtype == wg.bfloat16
        assert wg.vmap(Product.apply)(x, x).dtype == wg.bfloat16
        assert wg.vmap(wg.grad(lambda x, y: Product.apply(x, y).float().sum()))(x, x).dtype == wg.float32

    def inside(x, y):
        with wg.autocast("cpu", dtype=wg.bfloat16):
            return Product.apply(x, y)

    assert wg.vmap(inside)(x, x).dtype == wg.bfloat16
    assert wg.vmap(inside, in_dims=(0, None))(x, x[0]).dtype == wg.bfloat16


def test_vmap_of_several_arguments_some_shared() -> None:
    x, y = wg.rand(3, 4, 4, dtype=wg.float64), wg.rand(4, 4, dtype=wg.float64)
    total = lambda f: lambda x, y: wg.vmap(f, in_dims=(0, None))(x, y).square().sum()
    found = wg.grad(total(Product64.apply), argnums=(0, 1))(x, y)
    expected = wg.grad(total(lambda x, y: x @ y), argnums=(0, 1))(x, y)
    for a, b in zip(found, expected, strict=True):
        assert_near(array(a), array(b), 1e-12, "shared operand")


class Product64(Product):
    """Its cotangents keep their dtype."""

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g @ y.mT, x.mT @ g


def test_a_shared_input_gets_the_sum_over_the_batch_even_of_a_constant_gradient() -> None:
    class Shift(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x, b):
            return x + b

        @staticmethod
        def backward(ctx, g):
            return g, wg.ones(())

    x, b = wg.zeros(5), wg.tensor(0.0)
    assert wg.grad(lambda b: wg.vmap(Shift.apply, in_dims=(0, None))(x, b).sum())(b).item() == 5.0
