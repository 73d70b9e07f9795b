"""Custom functions and memory: results that are arguments, arguments written in place,
gradients that are shared.
"""

import numpy as np
import pytest
import wengert as wg


def t(values, **options):
    return wg.tensor(values, dtype=wg.float64, **options)


def function(**methods):
    return type("F", (wg.autograd.Function,), {name: staticmethod(f) for name, f in methods.items()})


def identity():
    f = wg.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda _, g: (g,))
    return f


# ---- results that are arguments ------------------------------------------------------------------

ALIASES = {
    "itself": function(forward=lambda ctx, x: x, backward=lambda ctx, g: g).apply,
    "view": function(forward=lambda ctx, x: x.view_as(x), backward=lambda ctx, g: g).apply,
    "part": function(forward=lambda ctx, x: x[:1], backward=lambda ctx, g: wg.cat([g, g * 0])).apply,
    "custom_vjp": identity(),
}


@pytest.mark.parametrize("name", ALIASES)
def test_result_that_is_the_argument_is_not_written_through(name):
    f = ALIASES[name]
    leaf = t([1.0, 2.0], requires_grad=True)
    inner = leaf * 1
    for x in (leaf, inner):
        y = f(x)
        writes = [lambda y=y: y.mul_(3), lambda y=y: y[:1].add_(1), lambda y=y: y.__setitem__(0, 5.0)]
        for write in writes:
            with pytest.raises(RuntimeError, match=r"write to a clone\(\)"):
                write()
        assert x.tolist() == [1, 2]
    # A copy may be written, and so may what is computed of it.
    y = f(inner).clone()
    y.mul_(3)
    y.sum().backward()
    assert inner.tolist() == [1, 2]
    assert leaf.grad[0].item() == 3


def test_result_that_is_no_argument_may_be_written():
    f = function(forward=lambda ctx, x: x * 2, backward=lambda ctx, g: 2 * g)
    leaf = t([1.0, 2.0], requires_grad=True)
    f.apply(leaf).mul_(3).sum().backward()
    assert leaf.grad.tolist() == [6, 6]


def test_memory_returned_twice_is_not_written_through():
    f = function(forward=lambda ctx, x: (y := x * 2, y[:1]), backward=lambda ctx, a, b: 2 * a)
    a, b = f.apply(t([1.0, 2.0], requires_grad=True))
    with pytest.raises(RuntimeError, match="same memory twice"):
        a.mul_(3)
    with pytest.raises(RuntimeError, match="same memory twice"):
        b.mul_(3)


TRANSFORMS = {
    "grad": lambda f: wg.grad(f)(t([1.0, 2.0])),
    "jvp": lambda f: wg.jvp(f, (t([1.0, 2.0]),), (t([1.0, 1.0]),)),
    "linearize": lambda f: wg.linearize(f, t([1.0, 2.0])),
    "vmap": lambda f: wg.vmap(f)(t([[1.0, 2.0], [3.0, 4.0]])),
    "jvp of vmap": lambda f: wg.jvp(wg.vmap(f), (t([[1.0, 2.0]]),), (t([[1.0, 1.0]]),)),
    "vmap of jvp": lambda f: wg.vmap(lambda x: wg.jvp(f, (x,), (x,))[1])(t([[1.0, 2.0]])),
    "vmap of grad": lambda f: wg.vmap(wg.grad(f))(t([[1.0, 2.0]])),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", [*ALIASES, "custom_jvp"])
def test_result_inside_transforms_is_not_written_through(name, transform):
    own = wg.custom_jvp(lambda x: x)
    own.defjvp(lambda p, t: (p[0], t[0]))
    f = ALIASES.get(name, own)
    raised = []

    def program(x):
        h = x * 1
        y = f(h)
        writes = [lambda: y.mul_(3), lambda: y[:1].add_(1), lambda: y.__setitem__(0, 5.0)]
        for write in writes:
            with pytest.raises(RuntimeError, match=r"write to a clone\(\)") as error:
                write()
            raised.append(error)
        y.clone().mul_(3)
        return h.sum()

    TRANSFORMS[transform](program)
    assert len(raised) == 3


def test_result_that_is_the_argument_has_its_gradient():
    leaf = t([1.0, -2.0], requires_grad=True)
    h = leaf * 1
    (ALIASES["itself"](h).clone().relu_() + h).sum().backward()
    assert leaf.grad.tolist() == [2, 1]


# ---- arguments written in place ------------------------------------------------------------------

DOUBLED = function(
    forward=lambda ctx, x: (x.mul_(2), ctx.mark_dirty(x), x)[2],
    backward=lambda ctx, g: g * 2,
)
EXP = function(
    forward=lambda ctx, x: (x.exp_(), ctx.mark_dirty(x), ctx.save_for_backward(x), x)[3],
    backward=lambda ctx, g: g * ctx.saved_tensors[0],
)


@pytest.mark.parametrize("mode", [wg.no_grad, wg.inference_mode])
def test_parameter_written_without_recording_stays_one(mode):
    p = wg.nn.Parameter(t([1.0, 2.0]))
    with mode():
        out = DOUBLED.apply(p)
    assert out is p
    assert p.requires_grad
    assert p.is_leaf
    assert p.tolist() == [2, 4]
    (p * p).sum().backward()
    assert p.grad.tolist() == [4, 8]


def test_value_written_without_recording_keeps_its_history():
    leaf = t([1.0, 2.0], requires_grad=True)
    h = leaf * 3
    with wg.no_grad():
        DOUBLED.apply(h)
    h.sum().backward()
    assert (h.tolist(), leaf.grad.tolist()) == ([6, 12], [3, 3])

    def program(x):
        h = x * 3
        with wg.no_grad():
            DOUBLED.apply(h)
        return h.sum()

    value, slope = wg.value_and_grad(program)(t([1.0, 2.0]))
    assert (value.item(), slope.tolist()) == (18, [3, 3])


def test_view_of_a_parameter_written_without_recording():
    p = t([1.0, 2.0], requires_grad=True)
    with wg.no_grad():
        DOUBLED.apply(p[1:])
    assert p.tolist() == [1, 4]
    assert p.requires_grad
    with pytest.raises(RuntimeError, match="marked as dirty while"):
        DOUBLED.apply(p)
    with pytest.raises(RuntimeError, match="marked as dirty while"):
        DOUBLED.apply(t([1.0, 2.0], requires_grad=True)[1:])


def test_written_view_whose_value_is_saved():
    leaf = t([1.0, 2.0], requires_grad=True)
    z = leaf * 1
    view = z[1:]
    EXP.apply(view)
    np.testing.assert_allclose(z.detach().numpy(), [1, np.exp(2)])
    (z * t([3.0, 5.0])).sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), [3, 5 * np.exp(2)])


def test_written_columns_whose_value_is_saved():
    leaf = t([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    z = leaf * 1
    y = EXP.apply(z[:, 1])
    (z.sum() + 2 * y.sum()).backward()
    np.testing.assert_allclose(leaf.grad.numpy(), [[1, 3 * np.exp(2)], [1, 3 * np.exp(4)]])
    assert z._version == 1


def test_written_argument_inside_transforms():
    def program(x):
        z = x * 1
        EXP.apply(z[1:])
        return z.sum()

    want = [1, np.exp(2)]
    np.testing.assert_allclose(wg.grad(program)(t([1.0, 2.0])).numpy(), want)
    np.testing.assert_allclose(wg.jacfwd(program)(t([1.0, 2.0])).numpy(), want)
    np.testing.assert_allclose(wg.vmap(wg.grad(program))(t([[1.0, 2.0]])).numpy(), [want])


# ---- gradients that are shared -------------------------------------------------------------------


def test_rule_that_writes_into_a_shared_cotangent_raises():
    f = function(forward=lambda ctx, x: x * 2, backward=lambda ctx, g: g.mul_(2))
    a, b = t([1.0, 2.0], requires_grad=True), t([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="wrote in place to a cotangent"):
        ((f.apply(a) + b) * t([3.0, 5.0])).sum().backward()
    (f.apply(a) * t([3.0, 5.0])).sum().backward()
    assert a.grad.tolist() == [6, 10]


def test_gradient_is_never_the_memory_of_what_was_saved():
    f = function(
        forward=lambda ctx, x: (ctx.save_for_backward(x), x.sum())[1],
        backward=lambda ctx, g: ctx.saved_tensors[0],
    )
    p = t([1.0, 2.0], requires_grad=True)
    (g,) = wg.autograd.grad(f.apply(p), p)
    g.zero_()
    assert p.tolist() == [1, 2]
