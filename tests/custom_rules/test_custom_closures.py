"""Rules and hooks that use tensors of the function that is being differentiated."""

import numpy as np
import pytest
import wengert as wg

X0, W0 = 0.4, 0.7


def t(values, **options):
    return wg.tensor(values, dtype=wg.float64, **options)


def scaled(w, form):
    """The sine, whose derivative is `w cos` by its rule, which has `w` by a closure."""
    if form == "custom_vjp":
        f = wg.custom_vjp(lambda x: x.sin())
        f.defvjp(lambda x: (x.sin(), x), lambda x, g: (g * w * x.cos(),))
        return f
    if form == "custom_jvp":
        f = wg.custom_jvp(lambda x: x.sin())
        f.defjvp(lambda p, d: (f(*p), d[0] * w * p[0].cos()))
        return f

    class Scaled(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            return g * w * ctx.saved_tensors[0].cos()

    return Scaled.apply


FORMS = ["custom_vjp", "custom_jvp", "function"]


@pytest.mark.parametrize("form", FORMS)
def test_rule_uses_a_tensor_of_an_outer_transform(form):
    inner = lambda w: wg.grad(scaled(w, form))(t(X0))
    assert inner(t(W0)).item() == pytest.approx(W0 * np.cos(X0))
    assert wg.grad(inner)(t(W0)).item() == pytest.approx(np.cos(X0))
    assert wg.jvp(inner, (t(W0),), (t(1.0),))[1].item() == pytest.approx(np.cos(X0))
    np.testing.assert_allclose(wg.vmap(inner)(t([0.1, W0])).numpy(), np.array([0.1, W0]) * np.cos(X0))
    np.testing.assert_allclose(
        wg.grad(lambda w: wg.vmap(inner)(w).sum())(t([0.1, W0])).numpy(), [np.cos(X0)] * 2
    )


@pytest.mark.parametrize("form", FORMS)
def test_rule_uses_a_tensor_of_the_function_itself(form):
    # By the rule the derivative of f(x w) by w is w cos(x w) x, in which the first w is a constant.
    f = lambda w: scaled(w, form)(X0 * w)
    slope = lambda w: w * np.cos(X0 * w) * X0
    assert wg.grad(f)(t(W0)).item() == pytest.approx(slope(W0))
    assert wg.jvp(f, (t(W0),), (t(1.0),))[1].item() == pytest.approx(slope(W0))
    assert wg.jacfwd(f)(t(W0)).item() == pytest.approx(slope(W0))
    assert wg.linearize(f, t(W0))[1](t(1.0)).item() == pytest.approx(slope(W0))
    leaf = t(W0, requires_grad=True)
    f(leaf).backward()
    assert leaf.grad.item() == pytest.approx(slope(W0))
    w = np.array([0.1, W0])
    np.testing.assert_allclose(wg.grad(lambda w: wg.vmap(f)(w).sum())(t(w)).numpy(), slope(w))
    np.testing.assert_allclose(wg.vmap(wg.grad(f))(t(w)).numpy(), slope(w))


@pytest.mark.parametrize("form", FORMS)
def test_what_a_rule_uses_has_derivatives_further_out(form):
    # The derivative of w cos(x w) x, where the inner function has been differentiated already.
    second = X0 * np.cos(X0 * W0) - X0 * X0 * W0 * np.sin(X0 * W0)
    slope = wg.grad(lambda w: scaled(w, form)(X0 * w))
    if form == "custom_jvp":
        assert wg.jvp(slope, (t(W0),), (t(1.0),))[1].item() == pytest.approx(second)
    assert wg.grad(slope)(t(W0)).item() == pytest.approx(second)


@pytest.mark.parametrize("form", ["custom_vjp", "custom_jvp"])
def test_function_that_closes_over_what_is_differentiated_raises(form):
    def program(w):
        f = getattr(wg, form)(lambda x: x.sin() * w)
        if form == "custom_vjp":
            f.defvjp(lambda x: (x.sin() * w, None), lambda _, g: (g,))
        else:
            f.defjvp(lambda p, d: (f(*p), d[0]))
        return f(t(X0))

    with pytest.raises(RuntimeError, match="closes over a tensor"):
        wg.grad(program)(t(W0))


# ---- hooks ---------------------------------------------------------------------------------------


def hooked(x):
    y = x.sin()
    y.register_hook(lambda g: g * x)
    return y


def test_hook_uses_a_tensor_of_the_function():
    want = X0 * np.cos(X0)
    assert wg.grad(hooked)(t(X0)).item() == pytest.approx(want)
    assert wg.vjp(hooked, t(X0))[1](t(2.0))[0].item() == pytest.approx(2 * want)
    assert wg.jacrev(hooked)(t(X0)).item() == pytest.approx(want)
    np.testing.assert_allclose(wg.vmap(wg.grad(hooked))(t([X0, 0.5])).numpy(), [want, 0.5 * np.cos(0.5)])
    np.testing.assert_allclose(wg.grad(lambda x: wg.vmap(hooked)(x).sum())(t([X0])).numpy(), [want])
    leaf = t(X0, requires_grad=True)
    hooked(leaf).backward()
    assert leaf.grad.item() == pytest.approx(want)


def test_what_a_hook_computes_has_derivatives_further_out():
    want = np.cos(X0) - X0 * np.sin(X0)
    assert wg.grad(wg.grad(hooked))(t(X0)).item() == pytest.approx(want)
    assert wg.jvp(wg.grad(hooked), (t(X0),), (t(1.0),))[1].item() == pytest.approx(want)
    leaf = t(X0, requires_grad=True)
    wg.grad(hooked)(leaf).backward()
    assert leaf.grad.item() == pytest.approx(want)


def test_hook_of_a_node_uses_a_tensor_of_the_function():
    def before(x):
        y = x.sin()
        y.grad_fn.register_prehook(lambda g: (g[0] * x,))
        return y

    def after(x):
        y = x.sin()
        y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * x,))
        return y

    for f in (before, after):
        assert wg.grad(f)(t(X0)).item() == pytest.approx(X0 * np.cos(X0))


def test_hook_uses_a_leaf_made_inside():
    def program(x):
        leaf = (x.detach() * 3).requires_grad_()
        y = x.sin()
        y.register_hook(lambda g: g * leaf)
        return y

    assert wg.grad(program)(t(X0)).item() == pytest.approx(3 * X0 * np.cos(X0))
