"""`custom_vjp` and `custom_jvp`: pytrees, arguments that are no data, both rules on one function, derived
rules, closures, errors, and that nothing leaks."""

import functools
import gc
import weakref

import pytest
import wengert as wg
from support import array, assert_near


def x64(*values: float) -> wg.Tensor:
    return wg.tensor(list(values), dtype=wg.float64)


def clipped(low: float = -1.0, high: float = 1.0):
    """The identity whose gradient is clipped."""

    @wg.custom_vjp
    def clip(x):
        return x

    clip.defvjp(lambda x: (x, None), lambda _, g: (g.clamp(low, high),))
    return clip


def gain(factor: float):
    """The identity whose tangent is scaled."""

    @wg.custom_jvp
    def f(x):
        return x * 1.0

    f.defjvp(lambda primals, tangents: (primals[0] * 1.0, tangents[0] * factor))
    return f


def test_a_gradient_that_is_clipped() -> None:
    clip = clipped()
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    (clip(x) * wg.tensor([0.5, 5.0])).sum().backward()
    assert x.grad.tolist() == [0.5, 1.0]
    assert clip.__name__ == "clip"
    assert clip(x).grad_fn.name() == "ClipBackward"


def test_rules_hold_at_every_level() -> None:
    f, x = gain(3.0), x64(1.0, 2.0)
    assert wg.grad(lambda x: f(x).sum())(x).tolist() == [3.0, 3.0]
    assert wg.jvp(f, (x,), (x,))[1].tolist() == [3.0, 6.0]
    assert wg.vmap(wg.grad(f))(x).tolist() == [3.0, 3.0]
    assert wg.grad(lambda x: wg.vmap(f)(x).sum())(x).tolist() == [3.0, 3.0]
    assert wg.grad(lambda x: wg.grad(lambda x: (f(x) ** 2).sum())(x).sum())(x).tolist() == [18.0, 18.0]
    assert wg.equal(wg.jacfwd(f)(x), wg.jacrev(f)(x))


def test_the_forward_rule_runs_only_where_it_is_needed() -> None:
    calls = []

    @wg.custom_vjp
    def f(x):
        calls.append("f")
        return x * 2

    def fwd(x):
        calls.append("fwd")
        return x * 2, None

    f.defvjp(fwd, lambda _, g: (2 * g,))
    x = x64(1.0)
    f(x)
    wg.vmap(f)(x)
    with wg.no_grad():
        f(x.clone().requires_grad_())
    assert calls == ["f"] * 3
    wg.grad(lambda x: f(x).sum())(x)
    assert calls[3:] == ["fwd"]


# ---- trees ---------------------------------------------------------------------------------------


@wg.custom_vjp
def affine(params, inputs):
    """Trees in, trees out."""
    return {"out": inputs[0] * params["w"] + params["b"], "sum": inputs[0] + inputs[1]}


def affine_fwd(params, inputs):
    return affine(params, inputs), (params["w"], inputs, "text")


def affine_bwd(kept, g):
    w, (x, _), text = kept
    assert text == "text"
    return {"w": g["out"] * x, "b": g["out"]}, (g["out"] * w + g["sum"], g["sum"])


affine.defvjp(affine_fwd, affine_bwd)


def plain(params, inputs):
    return {"out": inputs[0] * params["w"] + params["b"], "sum": inputs[0] + inputs[1]}


def test_trees() -> None:
    params, inputs = {"w": x64(2.0, 3.0), "b": x64(0.5, 1.0)}, (x64(1.0, -1.0), x64(4.0, 0.1))

    def total(f):
        return lambda p, i: sum(y.sin().sum() for y in f(p, i).values())

    for view in (
        lambda f: wg.grad(total(f), argnums=(0, 1))(params, inputs),
        lambda f: wg.jacrev(f, argnums=(0, 1))(params, inputs),
        lambda f: wg.jacfwd(f, argnums=(0, 1))(params, inputs),
        lambda f: wg.hessian(total(f))(params, inputs),
        lambda f: wg.vmap(f)(params, inputs),
        lambda f: wg.vmap(f, in_dims=({"w": None, "b": 0}, 0))({"w": x64(2.0)[0], "b": params["b"]}, inputs),
        lambda f: wg.jvp(f, (params, inputs), (params, inputs)),
    ):
        found, expected = wg.tree.tree_flatten(view(affine)), wg.tree.tree_flatten(view(plain))
        assert found[1] == expected[1]
        for a, b in zip(found[0], expected[0], strict=True):
            assert_near(array(a), array(b), 1e-12, "trees")


def test_none_stands_for_zeros_and_numbers_are_constants() -> None:
    @wg.custom_vjp
    def f(x, n, pair):
        return x * n, n

    f.defvjp(lambda x, n, pair: ((x * n, n), n), lambda n, g: (g[0] * n, None, None))
    x, y = x64(1.0), x64(2.0)
    assert f(x, 3, (y, y))[1] == 3
    found = wg.grad(lambda x, y: f(x, 3, (y, y))[0].sum(), argnums=(0, 1))(x, y)
    assert [g.tolist() for g in found] == [[3.0], [0.0]]


def test_keyword_arguments_and_defaults() -> None:
    @wg.custom_vjp
    def power(x, y=2.0):
        return x**y

    power.defvjp(lambda x, y: (x**y, (x, y)), lambda k, g: (g * k[1] * k[0] ** (k[1] - 1), None))
    assert wg.grad(lambda x: power(x, y=wg.tensor(3.0)))(wg.tensor(2.0)).item() == 12.0
    assert wg.grad(lambda x: power(y=wg.tensor(3.0), x=x))(wg.tensor(2.0)).item() == 12.0


# ---- arguments that are no data
# ------------------------------------------------------------------------------


def test_nondiff_argnums() -> None:
    @functools.partial(wg.custom_vjp, nondiff_argnums=(0, 2))
    def apply(function, x, name):
        assert name == "name"
        return function(x)

    def fwd(function, x, name):
        return function(x), x

    def bwd(function, name, x, g):
        assert name == "name"
        return (g * wg.grad(lambda x: function(x).sum())(x) * 2,)

    apply.defvjp(fwd, bwd)
    x = x64(0.3, 0.4)
    found = wg.grad(lambda x: apply(wg.sin, x, "name").sum())(x)
    assert_near(array(found), 2 * array(x.cos()), 1e-12, "twice the cosine")
    found = wg.jvp(lambda x: apply(wg.sin, x, "name"), (x,), (x,))[1]
    assert_near(array(found), 2 * array(x.cos() * x), 1e-12, "transposed")

    @functools.partial(wg.custom_jvp, nondiff_argnums=1)
    def power(x, n):
        return x**n

    power.defjvp(lambda n, p, t: (p[0] ** n, t[0] * n * p[0] ** (n - 1)))
    assert wg.grad(power)(wg.tensor(2.0), 3).item() == 12.0
    assert wg.hessian(lambda x: power(x, 3))(wg.tensor(2.0)).item() == 12.0


def test_a_method() -> None:
    class Model:
        factor = 3.0

        @wg.custom_jvp
        def f(self, x):
            return x * self.factor

    Model.f.nondiff = (0,)
    Model.f.defjvp(lambda self, p, t: (p[0] * self.factor, t[0] * self.factor))
    assert wg.grad(lambda x: Model().f(x))(wg.tensor(2.0)).item() == 3.0


# ---- rules that are derived ----------------------------------------------------------------------


def test_both_rules_on_one_function() -> None:
    @wg.custom_vjp
    def f(x):
        return x * 1.0

    f.defvjp(lambda x: (x * 1.0, None), lambda _, g: (g * 2,))
    f.defjvp(lambda p, t: (p[0] * 1.0, t[0] * 5))
    x = x64(1.0)
    assert wg.grad(lambda x: f(x).sum())(x).tolist() == [2.0]
    assert wg.jvp(f, (x,), (x,))[1].tolist() == [5.0]
    # A function with a rule inside one with the other keeps both.
    outer = wg.custom_vjp(gain(7.0))
    outer.defvjp(lambda x: (x * 1.0, None), lambda _, g: (g * 2,))
    assert wg.grad(lambda x: outer(x).sum())(x).tolist() == [2.0]
    assert wg.jvp(outer, (x,), (x,))[1].tolist() == [7.0]


def test_defjvps_argument_by_argument() -> None:
    @wg.custom_jvp
    def f(x, y, z):
        return x * y, z * 1.0

    f.defjvps(lambda t, out, x, y, z: (t * y, None), lambda t, out, x, y, z: (t * x, None), None)
    x, y, z = x64(2.0), x64(3.0), x64(4.0)
    found = wg.grad(lambda x, y, z: (f(x, y, z)[0] + f(x, y, z)[1]).sum(), argnums=(0, 1, 2))(x, y, z)
    assert [g.tolist() for g in found] == [[3.0], [2.0], [0.0]]


def test_a_rule_where_the_plain_derivative_fails() -> None:
    @wg.custom_jvp
    def log1pexp(x):
        return (1 + x.exp()).log()

    log1pexp.defjvps(lambda t, out, x: t * (1 - 1 / (1 + x.exp())))
    assert wg.grad(log1pexp)(wg.tensor(100.0)).item() == 1.0
    assert wg.grad(wg.grad(log1pexp))(wg.tensor(1.0)).item() == pytest.approx(0.19661193)


def test_a_fixed_point_by_the_implicit_function_theorem() -> None:
    def solve(f, a, start):
        x = start
        for _ in range(60):
            x = f(a, x)
        return x

    @functools.partial(wg.custom_vjp, nondiff_argnums=(0,))
    def fixed_point(f, a, start):
        return solve(f, a, start)

    def fwd(f, a, start):
        x = fixed_point(f, a, start)
        return x, (a, x)

    def bwd(f, kept, g):
        a, x = kept
        _, of_a = wg.vjp(lambda a: f(a, x), a)
        _, of_x = wg.vjp(lambda x: f(a, x), x)
        w = solve(lambda g, w: g + of_x(w)[0], g, g)
        return of_a(w)[0], None

    fixed_point.defvjp(fwd, bwd)
    step = lambda a, x: (x + a / x) / 2
    a = x64(2.0)[0]
    root = lambda a: fixed_point(step, a, wg.ones_like(a))
    assert root(a).item() == pytest.approx(2**0.5)
    assert wg.grad(root)(a).item() == pytest.approx(0.5 / 2**0.5)
    assert wg.grad(wg.grad(root))(a).item() == pytest.approx(-0.25 / 2**1.5)
    found = wg.vmap(wg.grad(root))(x64(2.0, 3.0))
    assert_near(array(found), [0.5 / 2**0.5, 0.5 / 3**0.5], 1e-12, "batch of roots")


def test_residuals_are_saved_by_the_tape() -> None:
    @wg.custom_vjp
    def f(x):
        return x.exp()

    f.defvjp(lambda x: ((y := x.exp()), y), lambda y, g: (g * y,))
    x = wg.ones(100, requires_grad=True)
    y = f(x)
    assert y.grad_fn.saved_bytes == 400
    packed = []
    with wg.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t.numel()) or t, lambda t: t):
        f(x)
    assert packed == [100]
    y.detach().mul_(2)
    with pytest.raises(RuntimeError, match="backward of f: its saved output 0 of shape"):
        y.sum().backward()


def test_nothing_leaks() -> None:
    refs = []

    def run() -> None:
        @wg.custom_vjp
        def f(x):
            return x.exp()

        f.defvjp(lambda x: (x.exp(), {"x": x, "z": x * 2}), lambda kept, g: (g * kept["x"].exp(),))
        refs.append(weakref.ref(f))
        x = wg.ones(10_000, requires_grad=True)
        f(x)
        f(x).sum().backward()
        wg.autograd.grad(f(x).sum(), x, create_graph=True)
        wg.hessian(lambda x: f(x).sum())(wg.ones(10))
        wg.vmap(wg.grad(f))(wg.ones(10))

    run()
    gc.collect()
    start = wg.memory.live_bytes()
    gc.disable()
    try:
        run()
        assert wg.memory.live_bytes() <= start
    finally:
        gc.enable()
    gc.collect()
    assert [ref for ref in refs if ref() is not None] == []


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    x = wg.tensor([0.5, 2.0], device="gpu", requires_grad=True)
    (clipped()(x) * 5).sum().backward()
    assert x.grad.cpu().tolist() == [1.0, 1.0]
    assert wg.jvp(gain(3.0), (x.detach(),), (wg.ones_like(x.detach()),))[1].cpu().tolist() == [3.0, 3.0]
