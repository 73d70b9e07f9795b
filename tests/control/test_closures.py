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


def test_a_copy_that_a_reshape_makes_may_be_written() -> None:
    def branch(x: Any) -> Any:
        y = wg.stack([x, 2 * x, 3 * x, x * x]).reshape(2, 2)

        def inner() -> Any:
            flat = y.T.reshape(-1)
            flat += 1
            return flat[1]

        return wg.cond(x > 0, inner, lambda: x)

    assert array(wg.vmap(branch)(X)).tolist() == [7.0, -1.0, 2.5]


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


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "mul_": lambda h, x: h.mul_(2),
    "add_": lambda h, x: h.add_(x),
    "sin_": lambda h, x: h.sin_(),
    "setitem": lambda h, x: h.__setitem__(1, x),
    "copy_": lambda h, x: h.copy_(h.flip(0)),
    "index_add_": lambda h, x: h.index_add_(0, wg.tensor([1]), x.reshape(1)),
    "a view": lambda h, x: h[0].mul_(5),
}


def writing(how: str, make: Callable[[Any], Any]) -> Callable[..., Any]:
    """A branch that writes into what `make` makes of a tensor from outside, and reads that tensor, too."""

    def f(x: Any, w: Any) -> Any:
        h = wg.stack([x * w, w * w * x])

        def branch() -> Any:
            own = make(h)
            WRITES[how](own, x)
            return own.sum() + h.sum()

        return wg.cond(x > 0, branch, lambda: h.sum())

    return f


@pytest.mark.parametrize("how", WRITES)
def test_a_branch_writes_into_what_it_made(how: str) -> None:
    f, w = writing(how, wg.clone), tensor([3.0, 3.0, 3.0])
    for slope in (wg.grad(f), wg.grad(f, 1), wg.grad(wg.grad(f, 1), 1)):
        assert_near(wg.vmap(slope)(X, w), [slope(x, y).item() for x, y in zip(X, w)], 1e-12)


OUTSIDE: dict[str, Callable[[Any, Any], Any]] = {
    "a batched tensor": lambda x, w: wg.stack([x, x * w]),
    "a batched constant": lambda x, w: wg.stack([x, x * w]).detach(),
    "a shared tensor": lambda x, w: wg.stack([w, w * w]),
    "a shared constant": lambda x, w: wg.zeros(2, dtype=F64),
    "a tensor from outside of the batch": lambda x, w: OLD,
}
OLD = wg.zeros(2, dtype=F64)

OUTER_WRITES: dict[str, Callable[[Any, Any], Any]] = WRITES | {
    "out": lambda h, x: wg.mul(h, 3.0, out=h),
    "a slice": lambda h, x: h[0:1].add_(1),
    "a reshaped view": lambda h, x: h.view(2, 1).zero_(),
    "an expanded row": lambda h, x: h.unsqueeze(0).unbind(0)[0].fill_(2.0),
    "a detached tensor": lambda h, x: h.detach().mul_(2),
    "data": lambda h, x: h.data[0].mul_(2),
    "masked_fill_": lambda h, x: h.masked_fill_(h > -9, 1.0),
    "uniform_": lambda h, x: h.uniform_(),
}


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("made", OUTSIDE)
@pytest.mark.parametrize("how", OUTER_WRITES)
def test_a_branch_writes_into_nothing_from_outside(how: str, made: str, recorded: bool) -> None:
    w = tensor(3.0, requires_grad=True)
    held: list[Any] = []

    def f(x: Any) -> Any:
        h = OUTSIDE[made](x, w)
        held[:] = [h, h.clone()]

        def branch() -> Any:
            with wg.set_grad_enabled(recorded):
                OUTER_WRITES[how](h, x)
            return h.sum()

        return wg.cond(x > 0, branch, lambda: h.sum())

    for transform in (lambda f: f, wg.grad):
        with pytest.raises(RuntimeError, match="from outside of"):
            wg.vmap(transform(f), randomness="different")(X)
        if made == "a shared constant":
            assert held[0].tolist() == [0.0, 0.0]
    assert OLD.tolist() == [0.0, 0.0]


SHAPED: dict[str, Callable[[Any], Any]] = {
    "resize_": lambda b: b.resize_(5),
    "set_": lambda b: b.set_(wg.ones(3)),
    "unsqueeze_": lambda b: b.unsqueeze_(0),
    "t_": lambda b: b.t_(),
    "data": lambda b: setattr(b, "data", wg.ones(3)),
    "clip": lambda b: wg.nn.utils.clip_grad_norm_([OF_ONES], 0.1),
}
OF_ONES = wg.zeros(3, requires_grad=True)
OF_ONES.grad = wg.ones(3)


@pytest.mark.parametrize("how", SHAPED)
def test_a_branch_gives_no_other_memory_to_a_tensor_from_outside(how: str) -> None:
    b = wg.zeros(3)
    branch = lambda x: (SHAPED[how](b), x)[1]
    with pytest.raises(RuntimeError, match="from outside of it, which would be written whether"):
        wg.vmap(lambda x: wg.cond(x > 9, branch, lambda x: x, x))(X)
    assert b.tolist() == [0.0, 0.0, 0.0]
    assert OF_ONES.grad is not None
    assert OF_ONES.grad.tolist() == [1.0, 1.0, 1.0]


def test_recording_is_what_the_branch_makes_it() -> None:
    def recorded(x: Any) -> Any:
        with wg.enable_grad():
            return x * x * w

    w = tensor(3.0)
    with_operands = lambda x: wg.cond(x > 0, recorded, lambda x: x, x)
    with_closures = lambda x: wg.cond(x > 0, lambda: recorded(x), lambda: x)
    loop = lambda x: wg.while_loop(lambda y: y < 10, recorded, x.abs() + 1)
    for f in (with_operands, with_closures, loop):

        def quiet(x: Any, f: Any = f) -> Any:
            with wg.no_grad():
                return f(x)

        assert_near(wg.vmap(wg.grad(quiet))(X), [wg.grad(quiet)(x).item() for x in X], 1e-12)
    assert not wg.vmap(lambda x: wg.cond(x > 0, lambda: x * w, lambda: x))(X).requires_grad


def test_loops_and_optimisers_write_into_nothing_from_outside() -> None:
    layer = wg.nn.Linear(2, 1)
    batches, before = wg.ones(3, 2) * X.float().unsqueeze(1), layer.weight.tolist()
    sgd = wg.optim.SGD(layer.parameters(), lr=0.5)
    layer(batches).sum().backward()
    norm = wg.nn.BatchNorm1d(2)
    count = wg.zeros((), dtype=wg.int64)

    def fill(x: Any) -> Any:
        buffer = wg.zeros(3)

        def body(i: Any, c: Any) -> Any:
            buffer[0] = c.sum()
            return c + 1

        wg.fori_loop(0, (x.sum() > 0).int(), body, x)
        return buffer.sum()

    def step(x: Any) -> Any:
        sgd.step()
        return x

    def counted(x: Any) -> Any:
        count.add_(1)
        return x

    def zeroed(x: Any) -> Any:
        with wg.no_grad():
            layer.weight[0].zero_()
        return layer(x)

    chosen = lambda branch: lambda x: wg.cond(x.sum() > 0, branch, lambda x: x, x).sum()
    normed = chosen(lambda x: norm(wg.ones(4, 2)).sum() * x)
    for f in (fill, chosen(step), chosen(counted), chosen(lambda x: zeroed(x).expand(2)), normed):
        with pytest.raises(RuntimeError, match="from outside of it, which would be written whether"):
            wg.vmap(f)(batches)
    assert layer.weight.tolist() == before
    assert count.item() == 0
    assert norm.num_batches_tracked.item() == 0


@pytest.mark.parametrize("dtype", [wg.float64, wg.int64, wg.bool])
def test_operands_are_copies(dtype: Any) -> None:
    w, n = wg.tensor([1, 0]).to(dtype), wg.tensor([[1, 0], [1, 1], [0, 1]]).to(dtype)

    def write(a: Any, b: Any) -> Any:
        a.copy_(b)
        return a

    f = lambda x, n: wg.cond(x > 0, write, lambda a, b: a, n, w)
    assert array(wg.vmap(f)(X, n)).tolist() == array(wg.stack([w, n[1], w])).tolist()
    assert n.tolist() == wg.tensor([[1, 0], [1, 1], [0, 1]]).to(dtype).tolist()
    g = lambda x: wg.cond(x > 0, write, lambda a, b: a, w, ~w if dtype == wg.bool else w * 0)
    assert (
        array(wg.vmap(g)(X)).tolist()
        == array(wg.stack([~w if dtype == wg.bool else w * 0, w] * 2)[:3])[[0, 1, 0]].tolist()
    )
    assert w.tolist() == wg.tensor([1, 0]).to(dtype).tolist()


def test_bodies_that_write_into_what_they_carry() -> None:
    def body(state: Any) -> Any:
        i, y = state
        i += 1
        y *= 2.0
        return i, y

    run = lambda n, x: wg.while_loop(lambda state: state[0] < n, body, (wg.tensor(0), x * 1.0))[1]
    n = wg.tensor([0, 3, 1])
    assert array(wg.vmap(run)(n, X)).tolist() == [2.0, -8.0, 1.0]
    assert array(wg.vmap(wg.grad(run, 1))(n, X)).tolist() == [1.0, 8.0, 2.0]
    assert array(wg.jit(wg.vmap(wg.grad(run, 1)))(n, X)).tolist() == [1.0, 8.0, 2.0]


def test_an_operand_that_is_returned_is_no_copy() -> None:
    w, k = tensor([3.0, 1.0], requires_grad=True), wg.tensor(2)

    def f(x: Any) -> Any:
        y, u, n = wg.cond(x > 0, lambda *a: (a[0] * 2, *a[1:]), lambda *a: a, x, w, k)
        assert u is w
        # Python may still decide by it.
        return y * (u if int(n) == 2 else 0).sum()

    out = wg.vmap(f)(X)
    assert array(out).tolist() == [16.0, -4.0, 4.0]
    out.sum().backward()
    assert_near(w.grad, [4.0, 4.0], 0)


# ---- derivatives in a branch ----------------------------------------------------------------------


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
