"""Custom functions under `vmap`: what does not depend on the batch, what it is shared with, what is summed.

Expected values are those of the same mathematics written plainly, worked out by hand.
"""

import numpy as np
import pytest
import wengert as wg

SIN4, COS4 = np.sin(0.4), np.cos(0.4)


def t(values, **options):
    return wg.tensor(values, dtype=wg.float64, **options)


X = [0.3, 0.5, 0.7]


def function(**methods):
    return type("F", (wg.autograd.Function,), {name: staticmethod(f) for name, f in methods.items()})


def constant(kind):
    """A function whose value is zero and whose derivative is one."""
    if kind == "function":
        return function(
            forward=lambda ctx, x: wg.zeros(x.shape, dtype=x.dtype), backward=lambda ctx, g: g
        ).apply
    f = getattr(wg, kind)(lambda x: wg.zeros(x.shape, dtype=x.dtype))
    if kind == "custom_jvp":
        f.defjvp(lambda p, d: (f(*p), d[0]))
    else:
        f.defvjp(lambda x: (f(x), None), lambda _, g: (g,))
    return f


KINDS = ["custom_jvp", "custom_vjp", "function"]


@pytest.mark.parametrize("kind", KINDS)
def test_value_that_is_the_same_for_the_batch_has_the_gradient_of_each_example(kind):
    f, weights = constant(kind), t([1.0, 2.0, 3.0])
    assert wg.grad(lambda x: wg.vmap(f)(x).sum())(t(X)).tolist() == [1, 1, 1]
    assert wg.grad(lambda x: (weights * wg.vmap(f)(x)).sum())(t(X)).tolist() == [1, 2, 3]
    leaf = t(X, requires_grad=True)
    (weights * wg.vmap(f)(leaf)).sum().backward()
    assert leaf.grad.tolist() == [1, 2, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_value_that_is_the_same_for_the_batch_has_the_tangent_of_each_example(kind):
    f = constant(kind)
    y, moved = wg.jvp(wg.vmap(f), (t(X),), (t([1.0, 2.0, 3.0]),))
    assert (y.tolist(), moved.tolist()) == ([0, 0, 0], [1, 2, 3])
    _, push = wg.linearize(wg.vmap(f), t(X))
    assert push(t([1.0, 2.0, 3.0])).tolist() == [1, 2, 3]
    assert wg.jacfwd(wg.vmap(f))(t(X)).tolist() == np.eye(3).tolist()


def test_tangent_that_depends_on_the_batch_where_the_value_does_not():
    f = wg.custom_jvp(lambda x, z: x * 1.0)
    f.defjvp(lambda p, d: (f(*p), d[0] * p[1]))
    y, moved = wg.jvp(lambda x: wg.vmap(lambda z: f(x, z))(t(X)), (t(0.4),), (t(2.0),))
    np.testing.assert_allclose(y.numpy(), [0.4] * 3)
    np.testing.assert_allclose(moved.numpy(), [0.6, 1.0, 1.4])


ADD = function(forward=lambda ctx, x, b: x + b, backward=lambda ctx, g: (g, g))


def add_by_custom_vjp():
    f = wg.custom_vjp(lambda x, b: x + b)
    f.defvjp(lambda x, b: (x + b, None), lambda _, g: (g, g))
    return f


@pytest.mark.parametrize("f", [ADD.apply, add_by_custom_vjp()], ids=["function", "custom_vjp"])
@pytest.mark.parametrize("n", [2, 3])
def test_gradients_over_broadcast_axes_are_summed_within_each_example(f, n):
    # x is (3, n) and b is (3,): each b_i is added to a row of n numbers.
    x, weights = t(np.arange(3.0 * n).reshape(3, n)), t(np.arange(1.0, 3 * n + 1).reshape(3, n))
    want = weights.numpy().sum(1)
    leaf = t([0.0, 0.0, 0.0], requires_grad=True)
    (weights * wg.vmap(f)(x, leaf)).sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), want)
    loss = lambda b: (weights * wg.vmap(f)(x, b)).sum()
    np.testing.assert_allclose(wg.grad(loss)(t([0.0, 0.0, 0.0])).numpy(), want)
    full = wg.jacrev(lambda b: wg.vmap(f)(x, b))(t([0.0, 0.0, 0.0])).numpy()
    np.testing.assert_allclose(full, np.repeat(np.eye(3)[:, None], n, 1))


def test_gradient_over_broadcast_axes_of_an_argument_with_an_axis_of_length_one():
    x, b = t(np.ones((3, 2, 2))), t(np.zeros((3, 2, 1)), requires_grad=True)
    wg.vmap(ADD.apply, in_dims=(0, 0))(x, b).sum().backward()
    assert b.grad.tolist() == [[[2.0], [2.0]]] * 3
    c = t(np.zeros((2, 1)), requires_grad=True)
    wg.vmap(ADD.apply, in_dims=(0, None))(x, c).sum().backward()
    assert c.grad.tolist() == [[6.0], [6.0]]


def saved_sine(form):
    """`w z`, whose derivative by `z` is `sin w` by its rule; `sin w` is saved."""
    if form == "function":
        return function(
            forward=lambda ctx, w, z: (ctx.save_for_backward(w.sin()), w * z)[1],
            backward=lambda ctx, g: (None, g * ctx.saved_tensors[0]),
        ).apply
    f = wg.custom_vjp(lambda w, z: w * z)
    f.defvjp(lambda w, z: (w * z, w.sin()), lambda s, g: (None, g * s))
    return f


@pytest.mark.parametrize("form", ["function", "custom_vjp"])
def test_saved_value_that_does_not_depend_on_the_batch_has_derivatives(form):
    f = saved_sine(form)
    slopes = lambda w: wg.vmap(wg.grad(lambda z: f(w, z)))(t(X)).sum()
    want = 3 * COS4
    assert wg.grad(slopes)(t(0.4)).item() == pytest.approx(want)
    assert wg.jvp(slopes, (t(0.4),), (t(1.0),))[1].item() == pytest.approx(want)
    assert wg.jacfwd(slopes)(t(0.4)).item() == pytest.approx(want)
    assert wg.linearize(slopes, t(0.4))[1](t(1.0)).item() == pytest.approx(want)
    leaf = t(0.4, requires_grad=True)
    slopes(leaf).backward()
    assert leaf.grad.item() == pytest.approx(want)


def test_cotangent_has_derivatives_where_the_gradient_does_not_depend_on_the_batch():
    f = function(forward=lambda ctx, x, z: (x * 1, z * 1), backward=lambda ctx, a, b: (2 * a, 3 * b))
    _, pull = wg.vjp(lambda x: wg.vmap(lambda z: f.apply(x, z)[0])(t(X)), t(0.4))
    assert wg.jacrev(lambda c: pull(c)[0])(t(X)).tolist() == [2, 2, 2]


def test_shared_argument_on_which_one_output_depends_alone():
    f = function(forward=lambda ctx, x, z: (x * 1.0, z * 1.0), backward=lambda ctx, a, b: (a * 2, b * 3))
    loss = lambda x: wg.vmap(lambda z: f.apply(x, z)[0] * z)(t(X)).sum()
    assert wg.grad(loss)(t(0.4)).item() == pytest.approx(2 * 1.5)


def test_both_modes_agree_where_one_of_several_outputs_is_shared():
    f = wg.custom_jvp(lambda x, z: (x.sin(), x * z))
    f.defjvp(lambda p, d: (f(*p), (d[0] * p[0].cos(), d[0] * p[1] + d[1] * p[0])))

    def loss(x):
        return sum((o * t([1.0, 10.0, 100.0])).sum() for o in wg.vmap(lambda z: f(x, z))(t(X)))

    want = 111 * COS4 + 0.3 + 5 + 70
    assert wg.grad(loss)(t(0.4)).item() == pytest.approx(want)
    assert wg.jvp(loss, (t(0.4),), (t(1.0),))[1].item() == pytest.approx(want)


@pytest.mark.parametrize("form", ["function", "custom_vjp"])
def test_cotangents_of_a_shared_and_a_batched_output_meet_in_one_gradient(form):
    if form == "function":
        f = function(
            forward=lambda ctx, x, z: (ctx.save_for_backward(x, z), (x.sin(), x * z))[1],
            backward=lambda ctx, a, b: (
                a * ctx.saved_tensors[0].cos() + b * ctx.saved_tensors[1],
                b * ctx.saved_tensors[0],
            ),
        ).apply
    else:
        f = wg.custom_vjp(lambda x, z: (x.sin(), x * z))
        f.defvjp(
            lambda x, z: ((x.sin(), x * z), (x, z)),
            lambda r, g: (g[0] * r[0].cos() + g[1] * r[1], g[1] * r[0]),
        )
    loss = lambda x: sum(o.sum() for o in wg.vmap(lambda z: f(x, z))(t(X)))
    assert wg.grad(loss)(t(0.4)).item() == pytest.approx(3 * COS4 + 1.5)


def test_output_without_derivatives_stays_shared():
    f = function(
        forward=lambda ctx, x: (x * 2, wg.tensor([1, 2])),
        backward=lambda ctx, g, _: 2 * g,
    )
    y, index = wg.vmap(f.apply, out_dims=(0, None))(t(X))
    assert (y.tolist(), index.tolist()) == ([0.6, 1.0, 1.4], [1, 2])


def test_batches_inside_batches():
    f = function(
        forward=lambda ctx, x, w: (ctx.save_for_backward(w.sin(), x), w.sin())[1],
        backward=lambda ctx, g: (g * ctx.saved_tensors[0], g * ctx.saved_tensors[1]),
    )
    inner = lambda x: wg.vmap(lambda w: f.apply(x, w))(t([0.1, 0.2]))
    got = wg.grad(lambda x: wg.vmap(inner)(x).sum())(t(X))
    np.testing.assert_allclose(got.numpy(), [np.sin(0.1) + np.sin(0.2)] * 3)
