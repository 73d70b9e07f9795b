"""Jitted functions that are called inside of a transformed function of Python: each call is one entry of the
tape of the transform, with eager's bits.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import wengert as wg
from staging.comparing import raised, recorded

Scenario = Callable[[Callable[..., Any]], Iterator[Any]]

X = wg.tensor([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]])
Y = wg.tensor([[1.0, 2.0, -0.5], [-2.0, 0.5, 0.25]])
SCALES = (1.0, 0.5, -2.0, 3.0)
SCENARIOS: dict[str, tuple[Scenario, int]] = {}


def scenario(traces: int) -> Callable[[Scenario], Scenario]:
    """Adds a scenario, whose function makes so many programs; it must do the same with `jit` and without."""

    def add(body: Scenario) -> Scenario:
        SCENARIOS[body.__name__] = body, traces
        return body

    return add


def chain(x: Any) -> Any:
    return ((x * 1.5).sin() + x * x.tanh()) * x


@scenario(1)
def gradients_of_a_sum(jit: Any) -> Iterator[Any]:
    f = jit(chain)
    for scale in SCALES:
        yield wg.grad(lambda x: (f(x) * 2).sum())(X * scale)
        yield wg.value_and_grad(lambda x: f(x).square().mean())(X * scale)
    yield f


@scenario(1)
def uses_before_behind_and_beside(jit: Any) -> Iterator[Any]:
    f = jit(lambda x, w: ((x * w).sin() * w + x / w + w * 0.3).tanh() * w)
    for scale in SCALES:
        g = wg.grad(lambda x, w: ((w * 1.7).cos() + f(x, w) * x + f(x * 0.3, w) * w.exp() + w).sum(), (0, 1))
        yield g(X * scale, Y)
    yield f


@scenario(1)
def pullbacks(jit: Any) -> Iterator[Any]:
    f = jit(chain)
    for scale in SCALES:
        y, pull = wg.vjp(f, X * scale)
        yield y, pull(Y), pull(X), pull(wg.ones(3).expand(2, 3)), pull(Y.t().contiguous().t())
    yield f


@scenario(1)
def several_results(jit: Any) -> Iterator[Any]:
    f = jit(lambda x, y: {"a": (x * y).sin(), "b": [x.exp(), (x > 0).sum()]})
    for scale in SCALES:
        yield wg.grad(lambda x: f(x, Y)["a"].sum())(X * scale)
        yield wg.grad(lambda x: f(x, Y)["b"][0].sum())(X * scale)
        yield wg.grad(lambda x: (f(x, Y)["a"] * f(x, Y)["b"][0]).sum())(X * scale)
        out, aux = wg.grad(lambda x: (f(x, Y)["a"].sum(), f(x, Y)["b"][1]), has_aux=True)(X * scale)
        yield out, aux
    yield f


@scenario(2)
def constants_and_variables(jit: Any) -> Iterator[Any]:
    f = jit(lambda x, y: (x * y).exp())
    for scale in SCALES:
        # Of what is differentiated, and of constants: two programs.
        yield wg.grad(lambda x: (f(x, Y) + f(Y, Y)).sum())(X * scale)
    yield f


@scenario(3)
def outside_and_inside(jit: Any) -> Iterator[Any]:
    f = jit(chain)
    for scale in SCALES:
        yield f(X * scale)
        leaf = (X * scale).requires_grad_()
        f(leaf).sum().backward()
        yield leaf.grad
        yield wg.grad(lambda x: f(x).sum())(X * scale)
    yield f


@scenario(1)
def numbers_drawn_inside(jit: Any) -> Iterator[Any]:
    f = jit(lambda x: wg.nn.functional.dropout(x * 2, 0.5) * x)
    for scale in SCALES:
        yield wg.grad(lambda x: f(x).sum())(X * scale)
    yield wg.rand(2)
    yield f


@scenario(1)
def memory_and_writes(jit: Any) -> Iterator[Any]:
    f = jit(lambda x: x * x)

    def changed(x: Any) -> Any:
        y = f(x)
        y[0] = 0
        return (y * x).sum()

    def spoiled(x: Any) -> Any:
        z = x * 1
        y = f(z)
        z.mul_(2)
        return y.sum()

    for scale in SCALES:
        yield wg.grad(changed)(X * scale)
        error = raised(wg.grad(spoiled), X * scale)
        yield type(error)
    yield f


@scenario(1)
def hooks_of_results(jit: Any) -> Iterator[Any]:
    f, seen = jit(chain), []

    def loss(x: Any) -> Any:
        y = f(x)
        y.register_hook(lambda g: seen.append(g.clone()))
        return (y * x).sum()

    for scale in SCALES:
        yield wg.grad(loss)(X * scale)
    yield seen
    yield f


@scenario(2)
def backwards_inside(jit: Any) -> Iterator[Any]:
    f = jit(chain)

    def slope(x: Any, create: bool) -> Any:
        (g,) = wg.autograd.grad(f(x).sum(), x, create_graph=create)
        return (g * x).sum() if create else g.sum() + f(x).sum()

    for scale in SCALES:
        yield raised(wg.grad(lambda x: slope(x, False)), X * scale)
        yield wg.grad(lambda x: slope(x, True))(X * scale)
        with wg.no_grad():
            yield wg.grad(lambda x: f(x).sum())(X * scale)

        def unrecorded(x: Any) -> Any:
            with wg.no_grad():
                y = f(x)
            return (y * x).sum()

        yield wg.grad(unrecorded)(X * scale)
    yield f


@scenario(1)
def pullbacks_inside_of_transforms(jit: Any) -> Iterator[Any]:
    f = jit(chain)

    def pulled(pull: Any) -> Iterator[Any]:
        yield wg.vmap(lambda g: pull(g)[0])(wg.eye(6).reshape(6, 2, 3))
        yield wg.grad(lambda g: (pull(g)[0] * X).sum())(Y)
        yield wg.jvp(lambda g: pull(g)[0], (Y,), (X,))

    for scale in SCALES:
        yield from pulled(wg.vjp(f, X * scale)[1])
    yield f


@scenario(0)
def other_transforms_are_python(jit: Any) -> Iterator[Any]:
    f = jit(chain)
    for scale in SCALES:
        yield wg.vmap(lambda x: f(x) + 1)(X * scale)
        yield wg.jvp(lambda x: f(x) + 1, (X * scale,), (Y,))
        yield wg.jacrev(lambda x: f(x) * x)(X * scale)
        yield wg.jacrev(lambda x: f(x) * x, chunk_size=2)(X * scale)
        yield wg.grad(lambda x: wg.grad(lambda x: f(x).sum())(x).sum())(X * scale)
        yield wg.vmap(wg.grad(lambda x: f(x).sum()))(X * scale)
        yield wg.hessian(lambda x: f(x).sum())(X * scale)
    yield f


@scenario(0)
def histories_of_outside(jit: Any) -> Iterator[Any]:
    w = Y.clone().requires_grad_()
    f = jit(lambda x: (x * w).sin())
    for scale in SCALES:
        g = wg.grad(lambda x: f(x).sum())(X * scale)
        g.sum().backward()
        yield g, w.grad
        leaf = (X * scale).requires_grad_()
        wg.grad(lambda x: f(x).sum())(leaf).sum().backward()
        yield leaf.grad
    yield f


@pytest.mark.parametrize("name", SCENARIOS)
def test_bits_of_eager_mode(name: str) -> None:
    body, traces = SCENARIOS[name]

    def run(jit: Callable[..., Any]) -> tuple[list[Any], Any]:
        wg.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            *found, function = body(jit)
        return [recorded(value) for value in found], function

    (expected, _), (found, function) = run(lambda f: f), run(wg.jit)
    assert len(found) == len(expected)
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        assert a == b, i
    assert function.traces == traces, function.why()


def test_is_one_node() -> None:
    f, seen = wg.jit(chain), []

    def loss(x: Any) -> Any:
        y = f(x)
        parents = [parent[0] for parent in y.grad_fn.next_functions]
        seen.append((y.grad_fn.op, [node.op for node in parents if node is not None]))
        return y.sum()

    for scale in SCALES:
        wg.grad(loss)(X * scale)
    assert seen[0] == ("mul", ["add", "leaf"])
    assert [name for name, _ in seen[1:]] == ["chain"] * 3


def test_errors_leave_what_was() -> None:
    f = wg.jit(lambda x, i: x.take(i).sin())
    index, bad = wg.tensor([1, 0]), wg.tensor([1, 9])
    slope = wg.grad(lambda x, i: (f(x, i) * 2).sum())
    expected = wg.grad(lambda x, i: (x.take(i).sin() * 2).sum())
    assert recorded(slope(X, index)) == recorded(expected(X, index))
    for _ in range(2):
        with pytest.raises(IndexError):
            slope(X, bad)
        assert recorded(slope(X * 2, index)) == recorded(expected(X * 2, index))
    assert f.traces == 1, f.why()


def test_checked_calls_are_python() -> None:
    f = wg.jit(chain, check=True)
    for scale in SCALES:
        found = wg.grad(lambda x: f(x).sum())(X * scale)
        assert recorded(found) == recorded(wg.grad(lambda x: chain(x).sum())(X * scale))
    assert f.traces == 0
