"""What branches and bodies of loops read from outside of them, where they run for all examples of a batch."""

import dataclasses
import functools
import itertools
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import wengert as wg
from support import array, assert_near

F64 = wg.float64


def tensor(x: Any, **settings: Any) -> wg.Tensor:
    return wg.tensor(np.asarray(x), dtype=F64, **settings)


X = tensor([2.0, -1.0, 0.5])


def chosen(branch: Callable[[Any], Any]) -> wg.Tensor:
    """The branch for positive numbers, and others as they are."""
    return wg.vmap(lambda x: wg.cond(x > 0, branch, lambda x: x, x))(X)


# ---- no order leaks ------------------------------------------------------------------------------

LEAKING: dict[str, Callable[[Any, Any], Any]] = {
    # Not finite for x <= 0, in every derivative by p.
    "power": lambda x, p: x**p,
    "quotient": lambda x, p: p**3 / x.relu(),
    "logarithms": lambda x, p: ((x * p).log() * p).exp() * (x * p).log(),
    "root": lambda x, p: (x * p).sqrt() * (p / x).log(),
}


def held_in(
    form: str, inner: Callable[[Any, Any], Any], other: Callable[[Any, Any], Any]
) -> Callable[..., Any]:
    """A function of x and p whose branches find p, and x, in their closures."""

    def f(x: Any, p: Any) -> Any:
        pair, named = [p], {"p": (p, 3)}
        part = lambda y: inner(y, p)
        branches: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
            "variables": (lambda: inner(x, p), lambda: other(x, p)),
            "lists": (lambda: inner(x, pair[0]), lambda: other(x, pair[0])),
            "dictionaries": (lambda: inner(x, named["p"][0]), lambda: other(x, named["p"][0])),
            "functions": (lambda: part(x), lambda: other(x, p)),
            "partial": (functools.partial(inner, x, p), functools.partial(other, x, p)),
        }
        if form == "switch":
            return wg.switch((x > 0).int(), [lambda: other(x, p), lambda: inner(x, p)])
        if form == "fori_loop":
            return other(x, p) + wg.fori_loop(0, (x > 0).int(), lambda i, c: c + inner(x, p), 0.0 * p)
        if form == "while_loop":
            test = lambda c: (c[1] < 1) & (x > 0)
            return (
                other(x, p) + wg.while_loop(test, lambda c: (c[0] + inner(x, p), c[1] + 1), (0.0 * p, 0))[0]
            )
        return wg.cond(x > 0, *branches[form])

    return f


FORMS = ["variables", "lists", "dictionaries", "functions", "partial", "switch", "fori_loop", "while_loop"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", LEAKING)
def test_no_order_leaks_what_a_closure_holds(name: str, form: str) -> None:
    f = held_in(form, LEAKING[name], lambda x, p: x * p**4)
    x, p = tensor([-1.0, 0.0, 0.5, 2.0]), tensor(1.3)
    each = lambda p: wg.vmap(lambda x: f(x, p))(x).sum()
    for transforms in itertools.product((wg.grad, wg.jacfwd), repeat=3):
        slope = each
        alone = [lambda p, row=row: f(row, p) for row in x]
        for transform in transforms:
            slope, alone = transform(slope), [transform(one) for one in alone]
            want = sum(one(p).item() for one in alone)
            assert_near(slope(p), want, 1e-11 * max(abs(want), 1))
            assert_near(wg.jit(slope)(p), want, 1e-11 * max(abs(want), 1))


def test_large_tensors_of_a_closure_are_shared_by_all_examples() -> None:
    w, x = wg.ones(256, 256, requires_grad=True), wg.ones(512, 256) - wg.arange(512).unsqueeze(1) % 2 * 2.0
    before = wg.memory.live_bytes()
    wg.memory.reset_peak()
    wg.vmap(lambda x: wg.cond(x.sum() > 0, lambda: w @ x, lambda: x))(x).sum().backward()
    assert wg.memory.peak_bytes() - before < 16 * x.nbytes
    assert_near(w.grad, np.full((256, 256), 256.0), 0)


LAYERS: dict[str, tuple[Callable[[], Any], Callable[[Any, Any], Any]]] = {
    "small": (lambda: wg.nn.Linear(8, 4), lambda m, x: m(x).sum()),
    "large": (
        lambda: wg.nn.Sequential(wg.nn.Linear(8, 600), wg.nn.Tanh(), wg.nn.Linear(600, 8)),
        lambda m, x: m(x).sum(),
    ),
    "normed": (
        lambda: wg.nn.Sequential(wg.nn.Linear(8, 5000), wg.nn.LayerNorm(5000)),
        lambda m, x: (m(x) ** 2).sum(),
    ),
    "elementwise": (lambda: wg.nn.PReLU(5000), lambda m, x: (m(x.repeat(625).reshape(1, -1)) ** 2).sum()),
    "recurrent": (lambda: wg.nn.GRU(8, 48), lambda m, x: m(x.reshape(1, 8))[1].sum()),
    "convolution": (lambda: wg.nn.Conv1d(1, 700, 7), lambda m, x: m(x.reshape(1, 8)).sin().sum()),
    "embedding": (lambda: wg.nn.Embedding(900, 8), lambda m, x: (m(wg.tensor([1, 1])) @ x).sum()),
    "attention": (lambda: wg.nn.MultiheadAttention(8, 2), lambda m, x: m(*[x.reshape(1, 8)] * 3)[0].sum()),
}


@pytest.mark.parametrize("layer", LAYERS)
def test_layers_leak_nothing_whatever_they_read(layer: str) -> None:
    wg.manual_seed(3)
    make, run = LAYERS[layer]
    module, xs = make().double(), wg.randn(5, 8, dtype=F64)
    values = {name: value.detach() for name, value in module.named_parameters()}
    call = lambda values, x: run(lambda *a: wg.func.functional_call(module, values, a), x)
    # Not finite, nor is any derivative of it, where the branch is not taken.
    branch = lambda values, x: call(values, x[0].log() * x) * x[0].sqrt()
    f = lambda values, x: wg.cond(x[0] > 0, lambda: branch(values, x), lambda: x.sum())
    assert 0 < (xs[:, 0] > 0).sum() < 5
    slope = lambda values, x: wg.grad(f, 1)(values, x).cos().sum()
    for g in (f, slope):
        batch = wg.grad(lambda values, g=g: wg.vmap(g, (None, 0))(values, xs).sum())(values)
        alone = wg.grad(lambda values, g=g: sum(g(values, x) for x in xs if x[0] > 0))(values)
        for name, want in alone.items():
            scale = max(want.abs().max().item(), 1)
            assert np.isfinite(array(want)).all()
            assert_near(batch[name], want, 1e-12 * scale)


def test_a_loop_in_a_branch_ends_with_those_that_take_it() -> None:
    def f(x: Any, p: Any) -> Any:
        grow = lambda: wg.while_loop(lambda y: y < 10, lambda y: y + x, x)
        shared = lambda: wg.while_loop(lambda y: y < 10, lambda y: y + p, p) * x
        times = lambda: wg.fori_loop(0, (1e9 * (x < 0)).int() + 2, lambda i, y: y + x, x)
        return (
            wg.cond(x > 0, grow, lambda: x)
            + wg.cond(x > 9, shared, lambda: x)
            + wg.cond(x > 0, times, lambda: x)
        )

    p = tensor(-1.0)
    got, slopes = wg.vmap(wg.value_and_grad(f), (0, None))(X, p)
    assert array(got).tolist() == [10 + 2 + 6, -3.0, 10 + 0.5 + 1.5]
    assert array(slopes).tolist() == [5 + 1 + 3, 3.0, 20 + 1 + 3]
    assert array(wg.jit(wg.vmap(f, (0, None)))(X, p)).tolist() == array(got).tolist()


LARGE: dict[str, Callable[[Any, Any], Any]] = {
    "solved": lambda w, x: wg.linalg.solve(w, (x * wg.ones(70, dtype=F64)).log()).sum(),
    "joined": lambda w, x: wg.cat([w.reshape(-1), x.log().reshape(1)]).tanh().sum() * x.sqrt(),
    "gathered": lambda w, x: (w[wg.tensor([1, 2])] * x.log()).sum(),
    "a custom function": lambda w, x: scaled_by_rule(w, x.log()).sum() * x.sqrt(),
    "normed": lambda w, x: wg.nn.functional.layer_norm(w * x.log(), (70,), w[0]).square().sum(),
    "attended": lambda w, x: wg.nn.functional.scaled_dot_product_attention(
        x.log() * wg.ones(2, 70, dtype=F64), w, w
    ).sum(),
    "written into": lambda w, x: (w * 2).index_fill(0, wg.tensor([3]), 1.0).mul(x.log()).sum(),
}


@wg.custom_vjp
def scaled_by_rule(w: Any, x: Any) -> Any:
    return w.sin() * x


scaled_by_rule.defvjp(
    lambda w, x: (w.sin() * x, (w, x)), lambda s, g: (g * s[0].cos() * s[1], (g * s[0].sin()).sum())
)


@pytest.mark.parametrize("name", LARGE)
def test_large_tensors_leak_nothing(name: str) -> None:
    w = wg.eye(70, dtype=F64) * 3 + wg.linspace(0, 1, 4900, dtype=F64).reshape(70, 70)
    f = lambda w, x: wg.cond(x > 0, lambda: LARGE[name](w, x), lambda: x * w.sum())
    slope = lambda w, x: wg.grad(f, 1)(w, x)
    for g in (f, slope):
        got = wg.grad(lambda w, g=g: wg.vmap(g, (None, 0))(w, X).cos().sum())(w)
        want = wg.grad(lambda w, g=g: sum(g(w, x).cos() for x in X))(w)
        assert np.isfinite(array(want)).all()
        assert_near(got, want, 1e-11 * max(want.abs().max().item(), 1))


def test_a_collective_in_a_branch_is_of_all_examples_with_and_without_derivatives() -> None:
    w = tensor([[2.0, 1.0], [0.5, -1.0]])

    def f(w: Any, x: Any) -> Any:
        y = wg.stack([x, x * x])
        return wg.cond(x > 0, lambda: wg.psum(w @ y, "i").sum(), lambda: x)

    each = lambda w: wg.vmap(f, (None, 0), axis_name="i")(w, X)
    total = sum((w @ wg.stack([x, x * x])).sum().item() for x in X)
    for got in (each(w), wg.value_and_grad(lambda w: (each(w).sum(), each(w)), has_aux=True)(w)[0][1]):
        assert_near(got, [total, -1.0, total], 1e-12)


def test_a_branch_is_a_program() -> None:
    w = tensor(2.0)
    forms: list[Callable[[Any, Any], Any]] = [
        lambda w, x: wg.cond(x > 0, wg.sqrt, lambda x: x, x),
        lambda w, x: wg.cond(x > 0, lambda x, w: w, lambda x, w: w * x, x, w),
        lambda w, x: wg.cond(x > 1, lambda: wg.fori_loop(0, 3, lambda i, s: s + x * w, 0.0), lambda: x),
        lambda w, x: wg.while_loop(lambda y: y.abs() < 9, lambda y: y * w, x),
    ]
    for form in forms:
        step = wg.jit(wg.grad(lambda w, x, form=form: wg.vmap(form, (None, 0))(w, x).sum()))
        for x in (X, -X, X.abs(), -X.abs()):
            want = wg.grad(lambda w, x=x, form=form: sum(form(w, row) for row in x))(w)
            assert_near(step(w, x), want, 1e-12)
        assert step.why() == []
        if form is not forms[3]:
            assert step.traces == 1
            assert wg.eval_shape(lambda x, form=form: wg.vmap(form, (None, 0))(w, x), X).shape == (3,)


def test_a_loop_in_a_branch_that_nobody_takes_ends_and_has_its_dtype() -> None:
    forms: list[Callable[[Any], Any]] = [
        lambda x: wg.fori_loop(0, 10**9, lambda i, s: s + x, 0.0),
        lambda x: wg.fori_loop(0, wg.tensor(10**9), lambda i, s: s + x, 0),
        lambda x: wg.while_loop(lambda s: s < 1e300, lambda s: s + x, 0.0),
        lambda x: wg.while_loop(lambda s: True, lambda s: s + x, 0.0),
    ]
    for form in forms:
        f = lambda x, form=form: wg.cond(x > 9, lambda: form(x), lambda: x * 2)
        assert array(wg.vmap(f)(X)).tolist() == [4.0, -2.0, 1.0]
        assert array(wg.vmap(wg.grad(f))(X)).tolist() == [2.0, 2.0, 2.0]


def test_a_branch_changes_the_variables_of_its_closure() -> None:
    p, x = tensor(2.0), tensor([-1.0, 1.0])
    seen: list[Any] = []
    count = 0

    def log(y: Any) -> Any:
        nonlocal count
        count += 1
        seen.append(y)
        return y

    def f(p: Any) -> Any:
        last = p

        def both(y: Any) -> Any:
            nonlocal last
            last = y * p
            return log(last)

        each = wg.vmap(lambda y: wg.cond(y > 0, lambda: both(y), lambda: y + p))(x)
        return each.sum()

    assert wg.grad(f)(p).item() == 2
    assert (count, len(seen)) == (1, 1)


def test_a_function_that_names_itself_in_a_branch() -> None:
    def f(x: Any, p: Any) -> Any:
        def power(k: int) -> Any:
            return (x * p).log() if k == 0 else power(k - 1) * p

        return wg.cond(x > 0, lambda: power(2), lambda: p**3)

    p = tensor(1.5)
    slope = wg.grad(wg.grad(wg.grad(lambda p: wg.vmap(lambda x: f(x, p))(tensor([0.0, 2.0])).sum())))
    assert_near(slope(p), 6 + 2 / 1.5, 1e-12)


Pair = namedtuple("Pair", ["first", "second"])
GLOBAL: dict[str, Any] = {}


@dataclasses.dataclass
class Held:
    z: Any

    def read(self) -> Any:
        return self.z

    def __call__(self) -> Any:
        return product(self.z)


def product(z: Any) -> Any:
    """Not finite where z is not positive: no rule of an element can leave that out."""
    return (z.log().reshape(1, 2) @ z).sum()


def global_branch() -> Any:
    return product(GLOBAL["z"])


def local_list(z: Any) -> Any:
    out: list[Any] = []
    out.append(product(z))
    return out[0]


@functools.lru_cache(maxsize=1)
def cached(z: Any) -> Any:
    return product(z)


def as_global(z: Any) -> Callable[[], Any]:
    GLOBAL["z"] = z
    return global_branch


@wg.custom_vjp
def product_by_rule(z: Any) -> Any:
    return product(z)


product_by_rule.defvjp(lambda z: (product(z), z), lambda z, g: (g * wg.grad(product)(z),))


def given(held: Any, read: Callable[[Any], Any]) -> Callable[[], Any]:
    """A branch that holds what it reads as a default."""
    return lambda held=held: product(read(held))


PLACES: dict[str, Callable[[Any], Callable[[], Any]]] = {
    "a variable": lambda z: lambda: product(z),
    "a default": lambda z: lambda z=z: product(z),
    "an object that is called": Held,
    "a method": lambda z: given(Held(z).read, lambda read: read()),
    "a global variable": as_global,
    "an ordered dictionary": lambda z: given(OrderedDict(z=z), lambda held: held["z"]),
    "a named tuple": lambda z: given(Pair(z, 1), lambda held: held.first),
    "a namespace": lambda z: given(SimpleNamespace(z=z), lambda held: held.z),
    "an iterator": lambda z: given(iter([z]), next),
    "a cache": lambda z: lambda: cached(z),
    "a jitted function": lambda z: lambda: wg.jit(product)(z),
    "a list that the branch makes": lambda z: lambda: local_list(z),
    "a custom rule": lambda z: lambda: product_by_rule(z),
    "a checkpoint": lambda z: lambda: wg.checkpoint(product, z),
    "a branch of a branch": lambda z: lambda: wg.cond(z.sum() > -9, lambda: product(z), lambda: z.sum()),
    "a batch of a branch": lambda z: lambda: wg.vmap(lambda a: product(z) * a)(wg.ones(2, dtype=F64))[0],
    "a derivative": lambda z: lambda: wg.grad(lambda a: product(a * z))(tensor(1.0)),
}


@pytest.mark.parametrize("place", PLACES)
def test_what_a_branch_reads_leaks_nothing_wherever_it_lies(place: str) -> None:
    f = lambda x: wg.cond(x > 0, PLACES[place](wg.stack([x, 2 * x])), lambda: x * x)
    slope = f
    for _ in range(3):
        slope = wg.grad(slope)
        want = [slope(x).item() for x in X]
        assert np.isfinite(want).all()
        assert_near(wg.vmap(slope)(X), want, 1e-12 * max(map(abs, want)))


@pytest.mark.parametrize("second", [wg.grad, wg.jacfwd])
def test_operands_of_a_branch_in_a_branch(second: Callable[..., Any]) -> None:
    def f(x: Any, w: Any) -> Any:
        # Not finite at 0, where the inner branch would be taken, and the outer one is not.
        inner = lambda a, b: (a * b + x.log() * x).tanh().cos()
        outer = lambda b: wg.cond(x <= 1, inner, lambda a, b: a, x, b)
        return wg.cond(x > 0, outer, lambda b: b, w)

    x, w = tensor([0.0, 0.5, 2.0]), tensor([0.5, 0.5, 0.5])
    slope = second(wg.grad(f))
    assert_near(wg.vmap(slope)(x, w), [slope(*pair).item() for pair in zip(x, w)], 1e-12)


UNTAKEN: dict[str, Callable[[Any, Any], Any]] = {
    "beside an example": lambda w, x: product(x * w),
    "before an example": lambda w, x: product(w) * x,
    "alone": lambda w, x: product(w),
    "in a batch": lambda w, x: wg.vmap(lambda r: product(w) * r)(wg.stack([x, x])).sum(),
    "as a batch": lambda w, x: wg.vmap(lambda r: product(r) * x)(wg.stack([w, w])).sum(),
    "as a batch from outside": lambda w, x: (lambda ww: wg.vmap(product)(ww).sum())(w.expand(2, 2)),
    "in a checkpoint": lambda w, x: wg.checkpoint(product, w) * x,
}


@pytest.mark.parametrize("how", UNTAKEN)
def test_what_no_example_takes(how: str) -> None:
    w = tensor([-1.0, 2.0])
    f = lambda w: wg.vmap(lambda x: wg.cond(x > 9, lambda: UNTAKEN[how](w, x), lambda: x * w.sum()))(X).sum()
    assert_near(wg.grad(f)(w), [1.5, 1.5], 1e-12)
    assert_near(wg.jit(wg.grad(f))(w), [1.5, 1.5], 1e-12)
    assert_near(wg.hessian(f)(w), np.zeros((2, 2)), 0)
    # Where an example takes it, so does its derivative.
    some = lambda w: wg.vmap(lambda x: wg.cond(x > 1, lambda: UNTAKEN[how](w, x), lambda: x * w.sum()))(
        X
    ).sum()
    assert np.isnan(array(wg.grad(some)(w))).any()


# ---- it stays what it is -------------------------------------------------------------------------


def test_helpers_change_what_the_branch_reads() -> None:
    w = tensor(3.0, requires_grad=True)
    act: Callable[[Any], Any] = lambda x: x
    held = [w]
    memo: dict[str, Any] = {"w": w}

    def switch() -> None:
        nonlocal act
        act = lambda x: 2 * x

    def double(x: Any) -> Any:
        switch()
        return act(x)

    def push(x: Any) -> Any:
        held.append(x)
        memo["seen"] = memo.get("seen", 0) + 1
        return sum(held)

    assert array(chosen(double)).tolist() == [4.0, -1.0, 1.0]
    assert array(chosen(push)).tolist() == [5.0, -1.0, 3.5]
    assert (len(held), memo["seen"]) == (2, 1)


def test_a_loop_whose_body_calls_what_rebinds_a_variable() -> None:
    def f(x: Any) -> Any:
        g = tensor(1.0, requires_grad=True)

        def grow() -> None:
            nonlocal g
            g = g * 2

        def body(x: Any) -> Any:
            grow()
            return x + g

        return wg.while_loop(lambda x: x < 2, body, x)

    # Steps add 2, 4, …; each example has its own number of them.
    assert array(wg.vmap(f)(tensor([3.0, 1.0, -1.0]))).tolist() == [3.0, 3.0, 5.0]


def test_objects_are_themselves_in_a_branch() -> None:
    p = wg.nn.Parameter(tensor(3.0))
    p.scale = 5.0  # type: ignore[attr-defined]
    (p * p).backward()
    held, names = [p], {id(p): "p", p: "q"}

    class Tenfold(functools.partial[Any]):
        def __call__(self, *args: Any) -> Any:
            return 10 * super().__call__(*args)

    def branch(x: Any) -> Any:
        assert isinstance(held[0], wg.nn.Parameter)
        assert held[0] is p
        assert p.is_leaf
        assert (names[id(held[0])], names[p], p.scale) == ("p", "q", 5.0)
        assert p.grad is not None
        assert p.grad.item() == 6.0
        return x * p * p.scale

    assert array(chosen(branch)).tolist() == [30.0, -1.0, 7.5]
    assert array(chosen(Tenfold(lambda x: x * p))).tolist() == [60.0, -1.0, 15.0]


DECISIONS: dict[str, Callable[[Any, Any], Any]] = {
    "if": lambda w, x: x * w if w > 1 else x,
    "item": lambda w, x: x * w if w.item() > 1 else x,
    "int": lambda w, x: x * w * (int(w) > 1),
    "format": lambda w, x: x * w if f"{w.detach():.1f}" == "3.0" else x,
    "index": lambda w, x: x * w * [0, 0, 0, 1][w.long()],
    "numpy": lambda w, x: x * w if w.detach().numpy() > 1 else x,
    "cond": lambda w, x: wg.cond(w > 2, lambda: x * w, lambda: [][0]),
    "switch": lambda w, x: wg.switch(w.long() - 2, [lambda: [][0], lambda: x * w]),
}


@pytest.mark.parametrize("size", [1, 5000])
@pytest.mark.parametrize("name", DECISIONS)
def test_python_decides_by_what_all_examples_share(name: str, size: int) -> None:
    each = lambda w: chosen(lambda x: DECISIONS[name](w, x)).sum()
    assert wg.grad(each)(tensor(3.0)).item() == 2.5
    w = wg.full((size,), 3.0, dtype=F64, requires_grad=True)
    assert array(chosen(lambda x: DECISIONS[name](w.mean(), x))).tolist() == [6.0, -1.0, 1.5]


def test_what_both_branches_return_is_the_same_for_all_examples() -> None:
    w = tensor(3.0, requires_grad=True)
    f = lambda x: wg.cond(x > 0, lambda: (x * 2, w), lambda: (x, w))
    out, same = wg.vmap(f, out_axes=(0, None))(X)
    assert array(out).tolist() == [4.0, -1.0, 1.0]
    assert same.item() == 3.0


def test_a_container_that_holds_itself_and_one_that_is_deep() -> None:
    w = tensor(3.0, requires_grad=True)
    root: dict[str, Any] = {"w": w}
    root["self"] = root
    deep: list[Any] = [w]
    for _ in range(64):
        deep = [deep, deep]
    assert array(chosen(lambda x: x * root["self"]["w"] * len(deep))).tolist() == [12.0, -1.0, 3.0]


def test_the_first_call_is_a_program() -> None:
    f = lambda w: wg.vmap(lambda x: wg.cond(x > 0, lambda: x * w * 2, lambda: x - 1))(X).sum()
    step = wg.jit(wg.grad(f))
    assert step(tensor(1.0)).item() == 5.0
    assert (step.traces, step.why()) == (1, [])
    assert "where" in str(wg.make_graph(wg.grad(f))(tensor(1.0)))


def test_an_error_ends_the_branch() -> None:
    w = tensor(3.0, requires_grad=True)

    def fails(x: Any) -> Any:
        raise KeyError(str((x * w).shape))

    with pytest.raises(KeyError):
        chosen(fails)
    out = wg.vmap(lambda x: x * w)(X)
    out.sum().backward()
    assert w.grad is not None
    assert w.grad.item() == 1.5
