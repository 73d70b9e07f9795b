"""What rules of custom functions return, checked, and rules that apply their own function."""

import numpy as np
import pytest
import wengert as wg


def t(values, **options):
    return wg.tensor(values, dtype=wg.float64, **options)


def function(**methods):
    return type("F", (wg.autograd.Function,), {name: staticmethod(f) for name, f in methods.items()})


def by_rule(rule, value=wg.sin):
    h = wg.custom_jvp(value)
    h.defjvp(rule)
    return h


# ---- a rule that applies its function to the tangent ---------------------------------------------


def negation():
    f = wg.custom_jvp(lambda x: -x)
    f.defjvp(lambda p, d: (f(*p), f(*d)))
    return f


def negation_by_class():
    class Negation(wg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return -x

        @staticmethod
        def jvp(ctx, d):
            return Negation.apply(d)

    return Negation.apply


@pytest.mark.parametrize("f", [negation(), negation_by_class()], ids=["custom_jvp", "function"])
def test_linear_function_applied_to_its_tangent(f):
    x = t([1.0, 2.0])
    assert wg.grad(f)(t(1.0)).item() == -1
    assert wg.jvp(f, (x,), (t([3.0, 4.0]),))[1].tolist() == [-3, -4]
    assert wg.jacrev(f)(x).tolist() == wg.jacfwd(f)(x).tolist() == [[-1, 0], [0, -1]]
    assert wg.vmap(wg.grad(f))(x).tolist() == wg.grad(lambda x: wg.vmap(f)(x).sum())(x).tolist() == [-1, -1]
    assert wg.grad(wg.grad(lambda x: f(x) ** 3))(t(2.0)).item() == 6 * -2.0
    assert wg.jvp(wg.grad(lambda x: f(x) ** 3), (t(2.0),), (t(1.0),))[1].item() == 6 * -2.0
    leaf = t([1.0, 2.0], requires_grad=True)
    (f(leaf) * t([5.0, 7.0])).sum().backward()
    assert leaf.grad.tolist() == [-5, -7]
    assert wg.linear_transpose(f, x)(t([1.0, 2.0]))[0].tolist() == [-1, -2]


def test_linear_function_of_another_shape_applied_to_its_tangent():
    matrix = t([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    f = wg.custom_jvp(lambda x: matrix @ x)
    f.defjvp(lambda p, d: (f(*p), f(*d)))
    assert wg.jacrev(f)(t([1.0, 1.0])).tolist() == matrix.tolist()
    assert wg.vmap(wg.jacrev(f))(t([[1.0, 1.0], [2.0, 2.0]])).tolist() == [matrix.tolist()] * 2


def test_two_rules_that_apply_each_other():
    f, g = wg.custom_jvp(lambda x: 2 * x), wg.custom_jvp(lambda x: 2 * x)
    f.defjvp(lambda p, d: (g(*p), g(*d)))
    g.defjvp(lambda p, d: (f(*p), f(*d)))
    assert wg.grad(f)(t(1.0)).item() == wg.grad(g)(t(1.0)).item() == 2


def test_reverse_rule_that_applies_its_function_to_the_cotangent():
    f = wg.custom_vjp(lambda x: x.flip(0))
    f.defvjp(lambda x: (f(x), None), lambda _, g: (f(g),))
    x, d = t([1.0, 2.0, 4.0]), t([1.0, 0.0, 3.0])
    assert wg.jvp(f, (x,), (d,))[1].tolist() == [3, 0, 1]
    assert wg.vjp(f, x)[1](d)[0].tolist() == [3, 0, 1]
    assert wg.grad(lambda x: wg.grad(lambda x: (f(x) ** 3).sum())(x).sum())(x).tolist() == [6, 12, 24]


def test_rule_that_needs_itself_without_end_raises():
    f = wg.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x * 2, None), lambda _, g: (wg.grad(f)(g),))
    with pytest.raises(RecursionError):
        wg.grad(f)(t(1.0))
    h = wg.custom_jvp(lambda x: x * 2)
    h.defjvp(lambda p, d: (h(*p), wg.jvp(h, p, d)[1]))
    with pytest.raises(RecursionError):
        wg.jvp(h, (t(1.0),), (t(1.0),))
    assert wg.grad(negation())(t(1.0)).item() == -1


# ---- what a forward rule returns -----------------------------------------------------------------


def test_forward_mode_has_the_value_of_the_rule():
    h = by_rule(lambda p, d: (p[0] * 3, d[0] * p[0].cos()))
    y, moved = wg.jvp(h, (t(2.0),), (t(1.0),))
    assert (y.item(), moved.item()) == (6, pytest.approx(np.cos(2)))
    y, moved = wg.jvp(wg.vmap(h), (t([1.0, 2.0]),), (t([1.0, 1.0]),))
    assert y.tolist() == [3, 6]
    # The value of a rule has the derivatives of what it was computed by.
    assert wg.grad(lambda x: wg.jvp(h, (x,), (t(1.0),))[0])(t(2.0)).item() == 3
    assert h(t(2.0)).item() == wg.value_and_grad(h)(t(2.0))[0].item() == pytest.approx(np.sin(2))


WRONG = {
    "no_pair": (lambda p, d: d[0], "expected a pair"),
    "three": (lambda p, d: (p[0], d[0], d[0]), "expected a pair"),
    "shape_of_the_value": (lambda p, d: (wg.ones(1, dtype=wg.float64), d[0]), r"shape \(1,\) for output 0"),
    "dtype_of_the_value": (lambda p, d: (p[0].float(), d[0]), "float32"),
    "structure_of_the_value": (lambda p, d: ((p[0], p[0]), d[0]), "output"),
    "value_is_no_tensor": (lambda p, d: (1.0, d[0]), "float for output 0"),
    "shape_of_the_tangent": (lambda p, d: (p[0], d[0].reshape(1)), "the tangent of output 0"),
    "dtype_of_the_tangent": (lambda p, d: (p[0], d[0].float()), "tangent of output 0, expected float64"),
    "structure_of_the_tangent": (lambda p, d: (p[0], (d[0], d[0])), "tangent"),
    "complex_tangent": (lambda p, d: (p[0], d[0] * 1j), "real"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_forward_rule_returns_is_checked(name):
    rule, text = WRONG[name]
    with pytest.raises(RuntimeError, match=text):
        wg.jvp(by_rule(rule), (t(2.0),), (t(1.0),))
    with pytest.raises(RuntimeError, match=text):
        wg.jvp(wg.vmap(by_rule(rule)), (t([2.0, 3.0]),), (t([1.0, 1.0]),))


def test_wider_tangent_of_a_narrower_value_raises():
    h = by_rule(lambda p, d: (p[0].sin(), d[0].double()))
    with pytest.raises(RuntimeError, match="float64"):
        wg.jvp(h, (wg.tensor(2.0),), (wg.tensor(1.0),))
    f = function(forward=lambda ctx, x: x.sin(), jvp=lambda ctx, d: d.double())
    with pytest.raises(RuntimeError, match="float64"):
        wg.jvp(f.apply, (wg.tensor(2.0),), (wg.tensor(1.0),))


def test_reverse_mode_checks_the_forward_rule_as_well():
    h = by_rule(lambda p, d: (p[0].sin(), d[0].double()))
    with pytest.raises((RuntimeError, NotImplementedError), match="float64"):
        wg.grad(h)(wg.tensor(2.0))


def test_forward_rule_in_autocast_has_the_dtype_of_the_value():
    h = wg.custom_jvp(lambda x, w: x @ w)
    h.defjvp(lambda p, d: (p[0] @ p[1], d[0] @ p[1] + p[0] @ d[1]))
    x, w = wg.ones(2, 3), wg.ones(3, 2)
    with wg.autocast("cpu", dtype=wg.bfloat16):
        y, moved = wg.jvp(h, (x, w), (x, w))
    assert (y.dtype, moved.dtype) == (wg.bfloat16, wg.bfloat16)
    assert moved.tolist() == [[6, 6], [6, 6]]


# ---- what a batching rule returns ----------------------------------------------------------------


def batching(result):
    return function(forward=lambda ctx, x: x * 2, backward=lambda ctx, g: 2 * g, vmap=result)


def test_place_of_the_batch_is_checked():
    x = t([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert wg.vmap(batching(lambda info, dims, x: ((x * 2).T, -1)).apply)(x).tolist() == (2 * x).tolist()
    for dim in (5, -3):
        with pytest.raises(IndexError, match="place of the batch axis of output 0"):
            wg.vmap(batching(lambda info, dims, x, dim=dim: (x * 2, dim)).apply)(x)
    with pytest.raises(IndexError, match="has 0 axes"):
        wg.vmap(batching(lambda info, dims, x: (x.sum(), 0)).apply)(x)
    with pytest.raises(RuntimeError, match="expected 3 along axis 1"):
        wg.vmap(batching(lambda info, dims, x: (x * 2, 1)).apply)(x)
    with pytest.raises(TypeError, match="a number or None"):
        wg.vmap(batching(lambda info, dims, x: (x * 2, "0")).apply)(x)
    with pytest.raises(RuntimeError, match="2 batch axes for 1 outputs"):
        wg.vmap(batching(lambda info, dims, x: (x * 2, (0, 0))).apply)(x)


# ---- containers of outputs -----------------------------------------------------------------------


def test_list_of_outputs_is_a_list_and_a_tuple_a_tuple():
    for kind in (list, tuple):
        f = function(
            forward=lambda ctx, x, kind=kind: kind([x * 2, x * 3]), backward=lambda ctx, a, b: 2 * a + 3 * b
        )
        leaf = t(1.0, requires_grad=True)
        y = f.apply(leaf)
        assert type(y) is kind
        (y[0] + 10 * y[1]).backward()
        assert leaf.grad.item() == 32


def test_one_tensor_returned_twice_is_two_outputs():
    f = function(forward=lambda ctx, x: (y := x * 2, y), backward=lambda ctx, a, b: 2 * a + 2 * b)
    leaf = t(1.0, requires_grad=True)
    a, b = f.apply(leaf)
    (a + 2.5 * b).backward()
    assert leaf.grad.item() == 7
