"""Jitted functions that are called inside of a transformed function of Python: each call is one entry of the
tape of the transform, with eager's bits.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import wengert as wg
from staging.comparing import raised, recorded
from wengert.jit._results import Variant

Scenario = Callable[[Callable[..., Any]], Iterator[Any]]

X = wg.tensor([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]])
Y = wg.tensor([[1.0, 2.0, -0.5], [-2.0, 0.5, 0.25]])
SCALES = (1.0, 0.5, -2.0, 3.0)
SCENARIOS: dict[str, tuple[Scenario, int, int]] = {}


def scenario(traces: int, again: int = 0) -> Callable[[Scenario], Scenario]:
    """Adds a scenario, whose function makes so many programs, and whose backward runs the function `again` so
    often; it must do the same with `jit` and without.
    """

    def add(body: Scenario) -> Scenario:
        SCENARIOS[body.__name__] = body, traces, again
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


@scenario(1, again=3)
def pullbacks(jit: Any) -> Iterator[Any]:
    f = jit(chain)
    for scale in SCALES:
        y, pull = wg.vjp(f, X * scale)
        yield y, pull(Y), pull(X), pull(wg.ones(3).expand(2, 3)), pull(Y.t().contiguous().t())
    yield f


@scenario(2, again=3)
def results_with_axes_of_length_1(jit: Any) -> Iterator[Any]:
    """The strides of such axes tell nothing of where elements lie."""
    f = jit(lambda x: (chain(x), chain(x).sum(1, keepdim=True), chain(x).sum()))
    one = wg.tensor(2.0)
    for scale in SCALES:
        x = X[:1] * scale
        _, pull = wg.vjp(f, x)
        rows = Y[:1], Y.t().contiguous().t()[1:], Y.t()[:, 1].reshape(3, 1).t(), one.expand(1, 3)
        columns = Y[:1, :1], one.expand(1, 1), wg.ones(4, 4)[1:2, 3:], wg.ones(1)[None]
        for row, column in zip(rows, columns, strict=True):
            yield [g.contiguous().tolist() for g in pull((row, column, one))]
        yield wg.grad(lambda x: (f(x)[1] * 2).sum())(x), wg.grad(lambda x: f(x)[0].sum())(x)
        leaf = x.clone().requires_grad_()
        sum(y.sum() for y in f(leaf)).backward()
        yield leaf.grad
    yield f


@scenario(1)
def results_of_one_element(jit: Any) -> Iterator[Any]:
    f = jit(lambda x: chain(x).sum(1))
    for scale in SCALES:
        y, pull = wg.vjp(f, X[:1] * scale)
        for g in (wg.ones(1), wg.ones(()).expand(1), wg.arange(6.0)[3:4], wg.arange(6.0)[::4][1:]):
            yield y, pull(g)
    yield f


@scenario(1)
def results_without_elements(jit: Any) -> Iterator[Any]:
    f = jit(chain)
    for _ in SCALES:
        y, pull = wg.vjp(f, X[:0])
        yield y, pull(wg.ones(0, 3)), pull(wg.ones(3, 0).t())
    yield f


@scenario(3)
def derivatives_that_are_zero(jit: Any) -> Iterator[Any]:
    f = jit(lambda x, y: ((x * 2).sign() * y, (x * 3).floor()))
    for scale in SCALES:
        for k in range(2):
            yield wg.grad(lambda x, y: f(x, y)[k].sum(), (0, 1))(X * scale, Y)  # noqa: B023
        yield wg.grad(lambda x, y: (f(x, y)[0] * f(x, y)[1]).sum(), (0, 1))(X * scale, Y)
        yield wg.grad(lambda x: (x * -0.0 + f(x, Y)[1]).sum())(X * scale)
        yield wg.grad(lambda x: f(x, x)[0].sum())(X * scale)
        yield wg.vjp(f, X * scale, Y)[1]((X, Y))
    yield f


@scenario(1)
def rows_by_index(jit: Any) -> Iterator[Any]:
    """Of what is used outside, too: each row is added to the sum that is there."""
    rows, index = jit(lambda x, index: x[index]), wg.tensor([0, 2, 2, 1, 0, 0])
    wg.manual_seed(0)
    for _ in range(6):
        x, weights = wg.randn(3, 4), wg.randn(6, 4)
        yield wg.grad(lambda x: (rows(x, index) * weights).sum() + x.square().sum() * 0.1)(x)  # noqa: B023
        yield wg.grad(lambda x: (rows(x * 1, index) * weights).sum() + (x * x).sum())(x)  # noqa: B023
        yield wg.vjp(lambda x: rows(x, index), x)[1](weights)
    yield rows


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


@scenario(2, again=4)
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


@scenario(1, again=9)
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
def test_bits_of_eager_mode(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body, traces, again = SCENARIOS[name]
    calls: list[Any] = []
    pull = Variant._pull
    monkeypatch.setattr(Variant, "_pull", lambda *args: (calls.append(args), pull(*args))[1])

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
    assert (function.traces, len(calls)) == (traces, again), function.why()


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
