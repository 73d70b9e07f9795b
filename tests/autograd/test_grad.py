"""Derivatives of every operation: against differences, against each other, of second order, through every
API."""

import numpy as np
import pytest
import wengert as wg
from hypothesis import given, strategies as st
from samples.op_samples import DIFFERENTIABLE
from samples.sample import OpSample
from support import (
    LAYOUTS,
    Drawn,
    Function,
    array,
    assert_near,
    directional,
    dot,
    drawn,
    examples,
    floats,
    laid_out,
    tensor,
)
from wengert.testing import gradcheck

REAL = [
    s
    for s in DIFFERENTIABLE
    if s.name not in ("any", "all", "argmax", "argmin")
    and "Compare" not in s.rows
    and "Logical" not in s.rows
]
by_sample = pytest.mark.parametrize("sample", REAL, ids=str)


def function(sample: OpSample, d: Drawn, layout: str = "contiguous") -> Function:
    """The operation as a function of its real operands."""
    values = [np.array(laid_out(v, layout)[1]) if v.dtype.kind == "f" else v for v in d.case.sample(d.rng)]
    constant = sample.extra.get("constant", ())
    return Function(sample.fn, d.case, values, [i for i in d.case.real if i not in constant])


@by_sample
def test_vjp_and_jvp_against_differences_and_each_other(sample: OpSample) -> None:
    @examples(20)
    @given(drawn(sample.case))
    def run(d: Drawn) -> None:
        f = function(sample, d)
        u, v = f.cotangents(d.rng), f.directions(d.rng)
        expected = directional(f.arrays, f.x, v)
        values, moved = wg.jvp(lambda *x: tuple(f.tensors(*x)), f.point(), tuple(wg.tensor(w) for w in v))
        _, pullback = wg.vjp(lambda *x: tuple(f.tensors(*x)), *f.point())
        back = [array(g) for g in pullback(tuple(wg.tensor(w) for w in u))]
        forward = [array(t) for t in moved]
        for got, direct, t, want in zip(values, f.arrays(f.x), forward, expected, strict=True):
            assert_near(got, direct, 1e-12)
            assert_near(t, want, 2e-7, f"jvp of {sample.name}")
        for g, x in zip(back, f.x, strict=True):
            assert g.shape == x.shape
        slope, curve = dot(u, expected), dot(back, v)
        assert abs(curve - slope) <= 2e-7 * max(1, abs(slope)) * max(1, len(f.x)), (
            f"vjp of {sample.name}: {curve}, {slope}"
        )
        inner = dot(u, forward)
        assert abs(inner - curve) <= 1e-9 * max(1, abs(inner)), "the adjoint identity"

    run()


@pytest.mark.parametrize("sample", [s for s in REAL if s.order > 1], ids=str)
def test_second_order(sample: OpSample) -> None:
    @examples(8)
    @given(drawn(sample.case, most=3))
    def run(d: Drawn) -> None:
        f = function(sample, d)
        u, v, w = f.cotangents(d.rng), f.directions(d.rng), f.directions(d.rng)
        scalar, wrt = f.weighted(u), tuple(range(len(f.x)))
        expected = directional(f.gradient(u), f.x, v)
        tangents = tuple(wg.tensor(t) for t in v)
        _, forward = wg.jvp(wg.grad(scalar, argnums=wrt), f.point(), tangents)

        def slope(*x: wg.Tensor) -> wg.Tensor:
            terms = [(g * t).sum() for g, t in zip(wg.grad(scalar, argnums=wrt)(*x), tangents, strict=True)]
            return sum(terms[1:], terms[0])

        reverse = wg.grad(slope, argnums=wrt)(*f.point())
        for a, b, c in zip(forward, reverse, expected, strict=True):
            assert_near(a, c, 2e-6, f"forward over reverse of {sample.name}")
            assert_near(b, array(a), 1e-9, f"reverse over reverse of {sample.name}")
        _, other = wg.jvp(wg.grad(scalar, argnums=wrt), f.point(), tuple(wg.tensor(t) for t in w))
        left, right = dot(w, [array(t) for t in forward]), dot(v, [array(t) for t in other])
        assert abs(left - right) <= 1e-9 * max(1, abs(left)), "the Hessian is symmetric"

    run()


@by_sample
def test_backward_of_leaves_in_any_layout(sample: OpSample) -> None:
    @examples(8)
    @given(drawn(sample.case), st.sampled_from(LAYOUTS))
    def run(d: Drawn, layout: str) -> None:
        f = function(sample, d, layout)
        u = f.cotangents(d.rng)
        expected = f.gradient(u)(f.x)
        leaves = [laid_out(x, layout)[0].detach().requires_grad_() for x in f.x]
        for how in ("backward", "grad", "create_graph", "inputs"):
            y = f.weighted(u)(*leaves)
            if how == "backward":
                y.backward()
                y = None
                found = [x.grad for x in leaves]
            elif how == "inputs":
                for x in leaves:
                    x.grad = None
                y.backward(inputs=leaves)
                found = [x.grad for x in leaves]
            else:
                found = wg.autograd.grad(
                    y, leaves, create_graph=how == "create_graph", materialize_grads=True
                )
            for got, want in zip(found, expected, strict=True):
                assert_near(
                    got if got is not None else np.zeros_like(want), want, 1e-11, f"{how} of {sample.name}"
                )

    run()


@by_sample
def test_create_graph_is_grad_of_grad(sample: OpSample) -> None:
    @examples(5)
    @given(drawn(sample.case, most=3))
    def run(d: Drawn) -> None:
        f = function(sample, d)
        u, v = f.cotangents(d.rng), f.directions(d.rng)
        scalar, wrt = f.weighted(u), tuple(range(len(f.x)))
        tangents = [wg.tensor(t) for t in v]
        leaves = [wg.tensor(x).requires_grad_() for x in f.x]
        first = wg.autograd.grad(scalar(*leaves), leaves, create_graph=True, materialize_grads=True)
        slope = sum((g * t).sum() for g, t in zip(first, tangents, strict=True))
        _, expected = wg.jvp(wg.grad(scalar, argnums=wrt), f.point(), tuple(tangents))
        if slope.requires_grad:
            second = wg.autograd.grad(slope, leaves, materialize_grads=True)
        else:
            second = [wg.zeros_like(x) for x in leaves]
        for got, want in zip(second, expected, strict=True):
            assert_near(got, array(want), 1e-9, sample.name)

    run()


@pytest.mark.parametrize("sample", [s for s in REAL if s.empty], ids=str)
def test_gradients_of_empty_tensors(sample: OpSample) -> None:
    @examples(8)
    @given(drawn(sample.case, most=2, least=0))
    def run(d: Drawn) -> None:
        f = function(sample, d)
        u = f.cotangents(d.rng)
        for g, x in zip(f.gradient(u)(f.x), f.x, strict=True):
            assert g.shape == x.shape
            assert not np.isnan(g).any()

    run()


@pytest.mark.parametrize(
    ("sample", "dtype"),
    [
        pytest.param(s, dtype, id=f"{s}-{dtype}")
        for s in REAL
        for dtype in s.dtypes
        if dtype != "float64" and s.name not in ("cast", "double")
    ],
)
def test_gradients_have_the_dtype_of_their_tensor(sample: OpSample, dtype: str) -> None:
    loose = {"float32": 1e-4, "float16": 2e-2, "bfloat16": 1.5e-1}[dtype]

    @examples(4)
    @given(drawn(sample.case, most=3))
    def run(d: Drawn) -> None:
        values = [
            array(tensor(v, dtype)).astype(v.dtype) if v.dtype.kind == "f" else v
            for v in d.case.sample(d.rng)
        ]
        f = Function(
            sample.fn, d.case, values, [i for i in d.case.real if i not in sample.extra.get("constant", ())]
        )
        f.fixed = [tensor(v, dtype) for v in values]
        u = [np.ones_like(y) for y in f.arrays(f.x)]
        exact = Function(sample.fn, d.case, values, f.wrt).gradient(u)(f.x)
        leaves = [tensor(x, dtype).requires_grad_() for x in f.x]
        outs = f.tensors(*leaves)
        total = sum((y.float().sum() for y in outs[1:]), outs[0].float().sum())
        if not total.requires_grad:
            return
        found = wg.autograd.grad(total, leaves, materialize_grads=True)
        for g, x, want in zip(found, leaves, exact, strict=True):
            assert g.dtype == x.dtype
            assert g.shape == x.shape
            assert_near(g, want, loose * sample.scale**0.5, sample.name)

    run()


# ---- singular points, as in PyTorch --------------------------------------------------------------


def slope(fn: object, *x: float) -> list[float]:
    """Partial derivatives at a point."""
    leaves = [wg.tensor(v, dtype=wg.float64).requires_grad_() for v in x]
    return [g.item() for g in wg.autograd.grad(fn(*leaves), leaves)]


def test_conventions_at_kinks() -> None:
    assert slope(lambda x: x.relu(), 0.0) == [0.0]
    assert slope(lambda x: x.abs(), 0.0) == [0.0]
    assert slope(lambda x: x.clamp(-1, 1), 1.0) == [1.0]
    assert slope(lambda x: x.clamp(-1, 1), -1.0) == [1.0]
    assert slope(lambda x: x.clamp(min=2.0), 2.0) == [1.0]
    assert slope(lambda x, y: x.maximum(y), 2.0, 2.0) == [0.5, 0.5]
    assert slope(lambda x, y: x.minimum(y), 2.0, 2.0) == [0.5, 0.5]
    assert slope(lambda x, y: x**y, 0.0, 2.0) == [0.0, 0.0]
    assert slope(lambda x, y: x**y, 0.0, 0.0) == [0.0, 0.0]
    assert slope(lambda x: x**2, 0.0) == [0.0]
    assert slope(lambda x: x**3, -2.0) == [12.0]


def test_ties_share_or_go_first() -> None:
    x = wg.tensor([1.0, 3.0, 3.0], requires_grad=True)
    assert wg.autograd.grad(x.amax(), [x])[0].tolist() == [0.0, 0.5, 0.5]
    assert wg.autograd.grad(x.max(dim=0).values, [x])[0].tolist() == [0.0, 1.0, 0.0]
    y = wg.tensor([2.0, 1.0, 1.0], requires_grad=True)
    assert wg.autograd.grad(y.amin(), [y])[0].tolist() == [0.0, 0.5, 0.5]
    assert wg.autograd.grad(y.min(dim=0).values, [y])[0].tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
def test_product_with_zeros(zeros: int) -> None:
    values = np.array([1.5, -2.0, 0.5, 3.0])
    values[:zeros] = 0.0
    x = wg.tensor(values)
    others = [np.prod(np.delete(values, i)) for i in range(4)]
    assert_near(wg.grad(lambda x: x.prod())(x), others, 1e-12)
    pairs = [[0.0 if i == j else np.prod(np.delete(values, [i, j])) for j in range(4)] for i in range(4)]
    assert_near(wg.hessian(lambda x: x.prod())(x), pairs, 1e-12)


def test_softplus_and_sigmoid_do_not_overflow() -> None:
    for fn in (wg.sigmoid, wg.nn.functional.softplus, wg.tanh, wg.nn.functional.silu, wg.nn.functional.gelu):
        for dtype in (wg.float32, wg.float64):
            x = wg.tensor([-1e4, -100.0, 0.0, 100.0, 1e4], dtype=dtype, requires_grad=True)
            (g,) = wg.autograd.grad(fn(x).sum(), [x])
            assert np.isfinite(array(g)).all(), (fn, dtype)


def test_broadcast_gradients_are_summed() -> None:
    x = wg.ones(3, 1, requires_grad=True)
    y = wg.ones(4, requires_grad=True)
    (x * y).sum().backward()
    assert x.grad.shape == (3, 1)
    assert array(x.grad).tolist() == [[4.0]] * 3
    assert array(y.grad).tolist() == [3.0] * 4


def test_gradients_add_up_over_paths_and_calls() -> None:
    x = wg.tensor([2.0], requires_grad=True)
    y = x * x + x * 3
    y.backward(retain_graph=True)
    assert x.grad.item() == 7.0
    y.backward()
    assert x.grad.item() == 14.0


def test_gradcheck_accepts_right_rules_and_rejects_wrong_ones() -> None:
    x = wg.tensor([0.3, -0.7], dtype=wg.float64, requires_grad=True)
    assert gradcheck(lambda x: (x.tanh() * x).sum(), (x,))
    with pytest.raises(AssertionError):
        gradcheck(lambda x: (x.tanh() + 0.01 * x.detach()).sum(), (x,))


def test_floats_is_what_the_walks_differentiate() -> None:
    x = wg.tensor([[1.0, 2.0]])
    assert len(floats(tuple(x.max(dim=1)))) == 1
