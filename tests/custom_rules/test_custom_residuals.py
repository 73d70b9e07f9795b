"""What custom functions keep for their rules, and what their rules are told of the call."""

import numpy as np
import pytest
import wengert as wg


def t(values, **options):
    return wg.tensor(values, dtype=wg.float64, **options)


def function(**methods):
    return type("F", (wg.autograd.Function,), {name: staticmethod(f) for name, f in methods.items()})


# ---- residuals that are no tensors ---------------------------------------------------------------


def sine_by_pullback():
    h = wg.custom_vjp(lambda x: x.sin())
    h.defvjp(lambda x: wg.vjp(wg.sin, x), lambda pull, g: pull(g))
    return h


def sine_by_linear_map():
    h = wg.custom_vjp(lambda x: x.sin())
    h.defvjp(lambda x: wg.linearize(wg.sin, x), lambda push, g: (g * push(wg.ones_like(g)),))
    return h


def sine_by_pair():
    h = wg.custom_vjp(lambda x: x.sin())

    def fwd(x):
        y, pull = wg.vjp(wg.sin, x)
        return y, {"pull": [pull], "x": x}

    h.defvjp(fwd, lambda kept, g: kept["pull"][0](g))
    return h


def _pullback_forward(ctx, x):
    y, ctx.pull = wg.vjp(wg.sin, x)
    return y


def container(make, look):
    """The sine; its cosine is kept inside of something."""

    def forward(ctx, x):
        ctx.kept = make(x)
        return x.sin()

    return function(forward=forward, backward=lambda ctx, g: g * look(ctx.kept).cos()).apply


KEPT = {
    "pullback": sine_by_pullback(),
    "linear_map": sine_by_linear_map(),
    "pullback_in_a_dict": sine_by_pair(),
    "pullback_on_ctx": function(forward=_pullback_forward, backward=lambda ctx, g: ctx.pull(g)[0]).apply,
    "tensor": container(lambda x: x, lambda kept: kept),
    "list": container(lambda x: [x], lambda kept: kept[0]),
    "dict": container(lambda x: {"a": (1, x)}, lambda kept: kept["a"][1]),
    "intermediate_in_a_list": container(lambda x: [x * 2], lambda kept: kept[0] / 2),
}


@pytest.mark.parametrize("name", KEPT)
def test_kept_value_has_derivatives(name):
    f, x = KEPT[name], t(0.4)
    second, third = -np.sin(0.4), -np.cos(0.4)
    assert wg.grad(f)(x).item() == pytest.approx(np.cos(0.4))
    assert wg.grad(wg.grad(f))(x).item() == pytest.approx(second)
    assert wg.jvp(wg.grad(f), (x,), (t(1.0),))[1].item() == pytest.approx(second)
    assert wg.grad(wg.grad(wg.grad(f)))(x).item() == pytest.approx(third)
    np.testing.assert_allclose(wg.vmap(wg.grad(wg.grad(f)))(t([0.4, 0.4])).numpy(), [second] * 2)
    summed = wg.grad(lambda x: wg.vmap(wg.grad(f))(x).sum())(t([0.4, 0.4]))
    np.testing.assert_allclose(summed.numpy(), [second] * 2)
    leaf = t(0.4, requires_grad=True)
    (g,) = wg.autograd.grad(f(leaf), leaf, create_graph=True)
    g.backward()
    assert leaf.grad.item() == pytest.approx(second)


def test_pullback_that_is_kept_runs_its_function_once_for_a_first_derivative():
    runs = []

    def inner(x):
        runs.append(1)
        return x.sin()

    h = wg.custom_vjp(lambda x: x.sin())
    h.defvjp(lambda x: wg.vjp(inner, x), lambda pull, g: pull(g))
    wg.grad(h)(t(0.4))
    wg.vmap(wg.grad(h))(t([0.4, 0.5]))
    assert len(runs) == 2
    wg.grad(wg.grad(h))(t(0.4))
    assert len(runs) > 3


def test_pullback_that_runs_again_draws_the_same_numbers():
    h = wg.custom_vjp(lambda x: x * 1.0)
    h.defvjp(
        lambda x: wg.vjp(lambda x: x**3 * wg.rand((), dtype=wg.float64), x),
        lambda pull, g: pull(g),
    )
    wg.manual_seed(3)
    want = 6 * 0.5 * wg.rand((), dtype=wg.float64).item()
    wg.manual_seed(3)
    assert wg.grad(wg.grad(h))(t(0.5)).item() == pytest.approx(want)


def test_pullback_is_a_container_of_the_primals():
    _, pull = wg.vjp(lambda x, y: x * y.sin(), t(2.0), t(0.4))
    leaves, structure = wg.tree.tree_flatten(pull)
    assert [x.item() for x in leaves] == [2.0, 0.4]
    assert wg.tree.tree_unflatten(structure, leaves) is pull
    moved = wg.tree.tree_unflatten(structure, [t(3.0), t(0.4)])
    assert moved(t(1.0))[1].item() == pytest.approx(3 * np.cos(0.4))
    pulls = wg.vmap(lambda x: wg.vjp(wg.sin, x)[1])(t([0.4, 0.5]))
    slopes = wg.vmap(lambda pull, g: pull(g)[0])(pulls, t([1.0, 10.0]))
    np.testing.assert_allclose(slopes.numpy(), [np.cos(0.4), 10 * np.cos(0.5)])


def test_number_written_on_the_context_in_backward_is_there_in_the_next():
    seen = []

    def backward(ctx, g):
        ctx.n += 1
        seen.append(ctx.n)
        return g

    f = function(forward=lambda ctx, x: (setattr(ctx, "n", 1), x * 1)[1], backward=backward)
    y = f.apply(t(1.0, requires_grad=True))
    y.backward(retain_graph=True)
    y.backward()
    assert seen == [2, 3]


# ---- needs_input_grad ----------------------------------------------------------------------------


def squared(seen):
    """The square of x, plus z; keeps x if that needs a gradient."""

    def forward(ctx, x, z):
        seen.append(ctx.needs_input_grad)
        if ctx.needs_input_grad[0]:
            ctx.save_for_backward(x)
        return x * x + z

    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0] if ctx.needs_input_grad[0] else None, g

    return function(forward=forward, backward=backward).apply


def test_needs_input_grad_in_forward_mode():
    seen = []
    f = squared(seen)
    y, moved = wg.jvp(lambda x: f(x, t(1.0)), (t(0.4),), (t(1.0),))
    assert (y.item(), moved.item()) == (pytest.approx(1.16), pytest.approx(0.8))
    assert wg.jacfwd(lambda x: f(x, t(1.0)))(t(0.4)).item() == pytest.approx(0.8)
    assert wg.linearize(lambda x: f(x, t(1.0)), t(0.4))[1](t(1.0)).item() == pytest.approx(0.8)
    assert set(seen) == {(True, False)}
    assert wg.jvp(lambda z: f(t(0.4), z), (t(1.0),), (t(5.0),))[1].item() == 5
    assert seen[-1] == (False, True)
    assert wg.vmap(lambda x: wg.jvp(f, (x, x), (t(1.0), t(0.0)))[1])(t([1.0, 2.0])).tolist() == [2, 4]


def test_needs_input_grad_in_reverse_mode():
    seen = []
    f = squared(seen)
    leaf = t(0.4, requires_grad=True)
    f(leaf, t(1.0))
    with wg.no_grad():
        f(leaf, t(1.0))
    f(t(0.4), t(1.0))
    wg.grad(lambda z: f(t(0.4), z))(t(1.0))
    assert seen == [(True, False), (True, False), (False, False), (False, True)]


# ---- defaults and names of arguments -------------------------------------------------------------


def test_rules_of_custom_vjp_are_given_all_arguments():
    f = wg.custom_vjp(lambda x, k=2.0: x * k)
    f.defvjp(lambda x, k: (x * k, k), lambda k, g: (g * k, None))
    assert wg.grad(f)(t(0.4)).item() == 2
    assert wg.grad(lambda x: f(x, 3.0))(t(0.4)).item() == wg.grad(lambda x: f(x, k=3.0))(t(0.4)).item() == 3
    assert wg.grad(lambda x: f(k=4.0, x=x))(t(0.4)).item() == 4


def test_rules_of_custom_jvp_are_given_all_arguments():
    f = wg.custom_jvp(lambda x, k=2.0: x * k)
    f.defjvp(lambda p, d: (f(*p), d[0] * p[1] + d[1] * p[0]))
    assert wg.jvp(f, (t(0.4),), (t(1.0),))[1].item() == 2
    assert wg.grad(lambda x: f(x, k=x))(t(0.4)).item() == pytest.approx(0.8)


class Scaled(wg.autograd.Function):
    """x times k."""

    @staticmethod
    def forward(x, k=2.0):
        return x * k

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.k = inputs[1]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.k, None


def test_apply_fills_in_defaults_and_takes_names():
    assert wg.grad(Scaled.apply)(t(0.4)).item() == 2
    assert wg.grad(lambda x: Scaled.apply(x, 3.0))(t(0.4)).item() == 3
    assert wg.grad(lambda x: Scaled.apply(x, k=3.0))(t(0.4)).item() == 3
    assert wg.grad(lambda x: Scaled.apply(k=4.0, x=x))(t(0.4)).item() == 4
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        Scaled.apply(t(0.4), q=1)
    plain = function(forward=lambda ctx, x, k=2.0: x * k, backward=lambda ctx, g: 2 * g)
    assert wg.grad(plain.apply)(t(0.4)).item() == 2
    with pytest.raises(TypeError, match="takes a setup_context"):
        plain.apply(t(0.4), k=2.0)


@pytest.mark.parametrize("form", ["function", "custom_vjp"])
def test_unsummed_gradient_meets_the_derivative_of_what_was_saved(form):
    # The square of sum(x) sin(w); w is shared by three numbers, and its sine and cosine are saved.
    def pulled(kept, g):
        return g * kept[1], g * kept[0] * kept[2]

    if form == "function":
        f = function(
            forward=lambda ctx, x, w: (ctx.save_for_backward(x, w.sin(), w.cos()), x * w.sin())[1],
            backward=lambda ctx, g: pulled(ctx.saved_tensors, g),
        ).apply
    else:
        f = wg.custom_vjp(lambda x, w: x * w.sin())
        f.defvjp(lambda x, w: (x * w.sin(), (x, w.sin(), w.cos())), pulled)
    loss = lambda w: f(t([0.3, 0.5, 0.7]), w).sum() ** 2
    want = 2 * 1.5**2 * np.cos(0.8)
    assert wg.grad(wg.grad(loss))(t(0.4)).item() == pytest.approx(want)
    assert wg.jacrev(wg.jacrev(loss))(t(0.4)).item() == pytest.approx(want)
    assert wg.jvp(wg.grad(loss), (t(0.4),), (t(1.0),))[1].item() == pytest.approx(want)
