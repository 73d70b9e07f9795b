"""Transforms of jitted functions are jitted as a whole: programs in either order, with eager's bits."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import wengert as wg
from staging.comparing import recorded

X = wg.tensor([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]])


def f(x: Any) -> Any:
    return ((x * 1.5).sin() + x * x.tanh()).sum()


def rows(x: Any) -> Any:
    return (x.cos() * x).cumsum(-1)


def push(function: Any) -> Any:
    return lambda x: wg.jvp(function, (x,), (x * 0.5,))


def product(function: Any) -> Any:
    return lambda x: wg.hvp(function, (x,), (x + 1,))


TRANSFORMS: dict[str, tuple[Any, Any]] = {
    "grad": (wg.grad, f),
    "value_and_grad": (wg.value_and_grad, f),
    "grad of several": (lambda g: wg.grad(g, (0,), has_aux=True), lambda x: (f(x), {"rows": rows(x)})),
    "vmap": (wg.vmap, rows),
    "vmap of a tree": (lambda g: wg.vmap(g, in_axes=[0]), rows),
    "jacrev": (wg.jacrev, rows),
    "jacfwd": (wg.jacfwd, rows),
    "hessian": (wg.hessian, f),
    "jvp": (push, rows),
    "hvp": (product, f),
    "grad of grad": (lambda g: wg.grad(lambda x: wg.grad(g)(x).sum()), f),
    "vmap of grad": (lambda g: wg.vmap(wg.grad(g)), f),
    "hessian of vmap": (lambda g: wg.jacfwd(wg.jacrev(wg.vmap(g))), rows),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_bits_of_eager_mode(name: str) -> None:
    transform, function = TRANSFORMS[name]
    eager, staged = transform(function), transform(wg.jit(function))
    for scale in (1.0, 0.5, -2.0):
        assert recorded(staged(X * scale)) == recorded(eager(X * scale)), scale


@pytest.mark.parametrize(
    "transform",
    [wg.grad, wg.value_and_grad, wg.vmap, wg.jacrev, wg.jacfwd, wg.hessian],
    ids=lambda t: t.__name__,
)
def test_is_one_program(transform: Callable[..., Any]) -> None:
    function = rows if transform is wg.vmap else f
    staged = wg.jit(function)
    for scale in (1.0, 0.5):
        transform(staged)(X * scale)
    assert transform(staged) is transform(staged)
    assert (transform(staged).traces, transform(staged).why()) == (1, [])
    # The function has no programs of its own.
    assert (staged.traces, staged.why()) == (0, [])


def test_transforms_of_transforms_are_one_program() -> None:
    staged = wg.jit(f)
    for scale in (1.0, 0.5):
        wg.vmap(wg.value_and_grad(staged))(X * scale)
    both = wg.vmap(wg.value_and_grad(staged))
    assert (both.traces, both.why(), wg.value_and_grad(staged).traces) == (1, [], 0)


def test_directions_are_programs_that_the_function_keeps() -> None:
    g = wg.jit(lambda x: (x.sin() * x).sum())
    for scale in (1.0, 0.5, 2.0):
        wg.jvp(g, (X * scale,), (X,))
        wg.hvp(g, (X * scale,), (X,))
    assert [t.traces for t in g._transforms.values()] == [1, 1]
    assert [t.why() for t in g._transforms.values()] == [[], []]


def test_settings_tell_transforms_apart() -> None:
    staged = wg.jit(lambda x, y: (x * y).sum())
    assert wg.grad(staged) is not wg.grad(staged, 1)
    assert wg.grad(staged, 0) is not wg.grad(staged, False)
    assert wg.vmap(staged, in_axes=(0, None)) is not wg.vmap(staged, in_axes=(None, 0))
    assert wg.vmap(staged, in_axes=({"a": 0}, 0)) is not wg.vmap(staged, in_axes=({"b": 0}, 0))
    assert wg.vmap(staged, in_axes=({"a": 0}, 0)) is wg.vmap(staged, in_axes=({"a": 0}, 0))
    assert wg.grad(staged).__name__ == "<lambda>"


def test_methods_and_modules() -> None:
    class Scale(wg.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = wg.nn.Parameter(wg.tensor([2.0, 3.0, 4.0]))

        @wg.jit
        def loss(self, x: Any) -> Any:
            return (self.weight.detach() * x.exp()).sum()

    model = Scale()
    for scale in (1.0, 0.5):
        found = wg.grad(model.loss)(X * scale)
        assert recorded(found) == recorded(model.weight.detach() * (X * scale).exp())
    assert wg.grad(model.loss).traces == 1


def test_inside_another_transform_it_is_python() -> None:
    staged = wg.jit(f)
    for _ in range(20):
        found = wg.vmap(lambda x: wg.grad(staged)(x))(X)
    assert recorded(found) == recorded(wg.vmap(wg.grad(f))(X))
    inner = wg.grad(staged)
    assert inner.traces == 0
    assert inner.why() == [
        "a transform around the call; transform the jitted function itself, as in vmap(jit(f))"
    ]


def test_errors_are_those_of_the_transform() -> None:
    staged = wg.jit(lambda x: x * 2)
    with pytest.raises(TypeError, match="expected a scalar of shape"):
        wg.grad(staged)(X)
    with pytest.raises(ValueError, match="argnums names argument 3"):
        wg.grad(staged, 3)(X)
    with pytest.raises(ValueError, match="randomness must be"):
        wg.vmap(staged, randomness="none")


def linear(function: Any, x: Any, *directions: Any) -> Any:
    """Value and pushed tangents of one map."""
    value, push = wg.linearize(function, x)
    return value, [push(d) for d in directions]


@pytest.mark.parametrize("shape", [(), (5,), (40, 30)])
def test_linearize_runs_programs(shape: tuple[int, ...]) -> None:
    def g(x: Any) -> Any:
        return {"a": ((x * 1.5).sin() * x + x / 3).tanh(), "b": (x.exp() * x).sum()}

    staged = wg.jit(g)
    for scale in (1.0, 0.5, 2.0, -1.0):
        x, d = wg.rand(shape) * scale, wg.rand(shape)
        assert recorded(linear(staged, x, d, -d, d * 2)) == recorded(linear(g, x, d, -d, d * 2)), scale
    (forward,) = staged._transforms.values()
    assert (forward.traces, forward.why(), staged.traces) == (1, [], 0)


def test_maps_of_a_jitted_function_are_maps() -> None:
    def g(x: Any) -> Any:
        return (x * x.sin(), x.sum())

    staged = wg.jit(g)
    for _ in range(3):
        value, push, aux = wg.linearize(staged, X, has_aux=True)
        expected, known, other = wg.linearize(g, X, has_aux=True)
        assert recorded((value, aux)) == recorded((expected, other))
        assert recorded(wg.vmap(push)(wg.eye(6).reshape(6, 2, 3))) == recorded(
            wg.vmap(known)(wg.eye(6).reshape(6, 2, 3))
        )
        assert recorded(wg.grad(lambda d: push(d).sum())(X)) == recorded(wg.grad(lambda d: known(d).sum())(X))  # noqa: B023
        assert recorded(wg.linear_transpose(push, X)(X)) == recorded(wg.linear_transpose(known, X)(X))
    with pytest.raises(ValueError, match="tangents of structure"):
        push(X, X)
    with pytest.raises(wg.ShapeError, match="a tangent is"):
        push(X[0])


def test_maps_know_what_was_written() -> None:
    staged = wg.jit(lambda x: x * x)
    for _ in range(3):
        x = X.clone()
        _, push = wg.linearize(staged, x)
        push(X)
        x.mul_(2)
        with pytest.raises(RuntimeError, match="modified in place"):
            push(X)


def test_maps_of_functions_with_parameters() -> None:
    w = wg.tensor([1.0, -2.0, 0.5]).requires_grad_()

    def slopes(function: Any) -> Any:
        found = []
        for scale in (1.0, 0.5, 2.0):
            w.grad = None
            value, push = wg.linearize(function, X * scale)
            (push(X) + value).sum().backward()
            found.append((value.detach(), w.grad))
        return found

    def g(x: Any) -> Any:
        return (x * w).sin()

    assert recorded(slopes(wg.jit(g))) == recorded(slopes(g))


def test_random_numbers_of_maps() -> None:
    def g(x: Any) -> Any:
        return wg.nn.functional.dropout(x * x, 0.5)

    def run(function: Any) -> Any:
        wg.manual_seed(5)
        return [linear(function, X, X, X) for _ in range(4)], wg.rand(2)

    assert recorded(run(wg.jit(g))) == recorded(run(g))


def by_first(a, b):
    return wg.autograd.grad((b * a * a).sum(), a, allow_unused=True, retain_graph=True)[0]


def hooked(a):
    a.register_hook(lambda g: g * 10)
    return a


def inputs(kind):
    """Two arguments; `kind` says what lies behind them."""
    a, b = (wg.tensor([2.0, 3.0], requires_grad=True) for _ in range(2))
    match kind:
        case "leaves":
            return a, b
        case "hooked":
            return hooked(a), b
        case "computed":
            return a, b * 3
        case "of the other":
            return a, a * 3
        case "both of one":
            c = a * 2
            return c, c.sin()


@pytest.mark.parametrize("first", ["leaves", "hooked", "computed", "of the other", "both of one"])
def test_a_derivative_by_an_argument_depends_on_the_graph_behind_it(first):
    f = wg.jit(by_first)
    for kind in (first, "leaves", "hooked", "computed", "of the other", "both of one", "leaves"):
        given = inputs(kind)
        assert f(*given).tolist() == by_first(*given).tolist(), kind
    # Calls with leaves are a program, whatever others are.
    traces = f.traces
    f(*inputs("leaves"))
    assert f.traces == traces


def test_a_derivative_by_a_tensor_of_outside_depends_on_it_too():
    weight = wg.tensor([2.0, 3.0], requires_grad=True)

    def of_weight(b):
        return wg.autograd.grad((b * weight).sum(), weight, retain_graph=True)[0]

    f = wg.jit(of_weight)
    for given in (wg.ones(2, requires_grad=True), weight * 3, wg.ones(2, requires_grad=True), weight.exp()):
        assert f(given).tolist() == of_weight(given).tolist()


def test_the_gradient_of_an_argument_is_not_compared():
    def by_gradient(x):
        return x.detach() * (2 if x.grad is None else 3)

    f = wg.jit(by_gradient)
    leaf, kept = wg.ones(2, requires_grad=True), wg.ones(2, requires_grad=True) * 1
    kept.retain_grad()
    kept.sum().backward()
    leaf.grad = wg.ones(2)
    with warnings.catch_warnings(action="ignore"):
        for given in (wg.ones(2, requires_grad=True) * 1, kept, leaf, wg.ones(2), kept):
            assert f(given).tolist() == by_gradient(given).tolist()
    assert "grad of an argument" in f.why()[0]
