"""Transforms: inverses, Jacobians by differentiation, shapes, caches, registries and constraints."""

import copy
import math
from typing import Any

import numpy as np
import pytest
import wengert as wg
import wengert.distributions as D
from distributions.families import tensor

T, C = D.transforms, D.constraints

ELEMENTWISE = [
    T.ExpTransform(),
    T.PowerTransform(tensor(2.0)),
    T.PowerTransform(-0.5),
    T.SigmoidTransform(),
    T.TanhTransform(),
    T.SoftplusTransform(),
    T.AffineTransform(tensor(1.0), tensor(-2.0)),
    T.AffineTransform(1.0, 0.3),
    T.CumulativeDistributionTransform(D.Normal(tensor(0.5), tensor(2.0))),
    T.ComposeTransform([T.AffineTransform(1.0, 2.0), T.TanhTransform()]),
    T.identity_transform,
]
VECTORS: list[tuple[T.Transform, int]] = [
    (T.StickBreakingTransform(), 3),
    (T.CorrCholeskyTransform(), 6),
    (T.IndependentTransform(T.ExpTransform(), 1), 3),
    (T.ReshapeTransform((6,), (2, 3)), 6),
    (T.ComposeTransform([T.ReshapeTransform((6,), (6,)), T.CorrCholeskyTransform()]), 6),
    (T.ComposeTransform([T.AffineTransform(0.5, 2.0), T.StickBreakingTransform()]), 4),
    (T.StackTransform([T.ExpTransform(), T.TanhTransform(), T.identity_transform], dim=-1), 3),
    (T.CatTransform([T.ExpTransform(), T.SigmoidTransform()], dim=-1, lengths=[1, 2]), 3),
]
name = lambda t: repr(t) if isinstance(t, T.Transform) else ""


def arguments(t: T.Transform, shape: tuple[int, ...], seed: int = 0) -> wg.Tensor:
    x = tensor(np.random.default_rng(seed).normal(size=shape))
    return x.exp() if isinstance(t, T.PowerTransform) else x


def near(a: Any, b: Any, rtol: float = 1e-9) -> None:
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=rtol, atol=1e-11)


@pytest.mark.parametrize("t", ELEMENTWISE, ids=name)
def test_of_numbers(t: T.Transform) -> None:
    x = arguments(t, (3, 4))
    y = t(x)
    near(t.inv(y), x, 1e-7)
    near(t.log_abs_det_jacobian(x, y), wg.vmap(wg.grad(t))(x.reshape(-1)).reshape(3, 4).abs().log())
    near(t.inv.log_abs_det_jacobian(y, x), -t.log_abs_det_jacobian(x, y))
    assert t.bijective
    assert t.codomain.check(y).all()
    assert t.domain.check(x).all()
    assert t.forward_shape((3, 4)) == t.inverse_shape((3, 4)) == (3, 4)
    slope = wg.grad(t)(x[0, 0]).item()
    assert math.copysign(1, slope) == float(t.sign)
    assert t.inv.inv is t or isinstance(t, T.ComposeTransform)


@pytest.mark.parametrize(("t", "n"), VECTORS, ids=name)
def test_of_vectors(t: T.Transform, n: int) -> None:
    x = arguments(t, (2, n))
    y = t(x)
    near(t.inv(y), x, 1e-7)
    assert y.shape == t.forward_shape(x.shape)
    assert x.shape == t.inverse_shape(y.shape)
    found = t.log_abs_det_jacobian(x, y)
    if not isinstance(t, (T.StackTransform, T.CatTransform)):
        assert t.codomain.check(y).all()
    for i in range(2):
        jacobian = wg.jacobian(lambda x: free(t, t(x)))(x[i])
        expected = jacobian.slogdet()[1]
        near(found[i].sum() if found.ndim > 1 else found[i], expected)


def free(t: T.Transform, y: wg.Tensor) -> wg.Tensor:
    """As many coordinates of a value as its argument has."""
    last = t.parts[-1] if isinstance(t, T.ComposeTransform) else t
    if isinstance(last, T.StickBreakingTransform):
        return y[:-1]
    if isinstance(last, T.CorrCholeskyTransform):
        return D.utils.tril_matrix_to_vec(y, -1)
    return y.reshape(-1)


def test_onto_matrices() -> None:
    x = tensor(np.random.default_rng(0).normal(size=(2, 3, 3)))
    for t in (T.LowerCholeskyTransform(), T.PositiveDefiniteTransform()):
        y = t(x)
        assert t.codomain.check(y).all()
        near(t(t.inv(y)), y)
    p = T.SoftmaxTransform()(x)
    assert C.simplex.check(p).all()
    near(T.SoftmaxTransform()(T.SoftmaxTransform().inv(p)), p)
    near(T.AbsTransform()(x), x.abs())


def test_far_out() -> None:
    x = tensor([-1000.0, -40.0, 40.0, 1000.0])
    near(T.TanhTransform().log_abs_det_jacobian(x, x.tanh()), math.log(4) - 2 * x.abs())
    near(T.SoftplusTransform()(x), wg.where(x > 0, x, x.exp()))
    near(T.SoftplusTransform().inv(T.SoftplusTransform()(x[1:])), x[1:])
    assert ((T.SigmoidTransform()(x) > 0) & (T.SigmoidTransform()(x) < 1)).all()
    # Shares that a difference from 1 would lose.
    near(
        T.StickBreakingTransform().inv(T.StickBreakingTransform()(tensor([40.0, -30.0]))),
        tensor([40.0, -30.0]),
        1e-6,
    )
    r = tensor([3.0, -4.0, 5.0])
    near(T.CorrCholeskyTransform().inv(T.CorrCholeskyTransform()(r)), r, 1e-6)


def test_cache() -> None:
    t = T.TanhTransform(cache_size=1)
    x = tensor([30.0])
    y = t(x)
    assert t(x) is y
    assert t.inv(y) is x
    assert t.inv(y + 0) is not x
    plain = t.with_cache(0)
    assert plain(x) is not plain(x)
    assert t.with_cache() is t
    assert T.TanhTransform().inv(y).isinf()
    chain = T.ComposeTransform([T.AffineTransform(0.0, 2.0), T.TanhTransform()], cache_size=1)
    assert chain.inv(chain(x)) is x
    with pytest.raises(ValueError, match="cache_size must be 0 or 1, got 2"):
        T.ExpTransform(cache_size=2)
    # A policy of an agent: the density of a squashed action near 1.
    d = D.TransformedDistribution(D.Normal(tensor([20.0]), 1.0), T.TanhTransform(cache_size=1))
    action = d.rsample()
    assert d.log_prob(action).isfinite().all()


def test_equality_and_copies() -> None:
    assert T.ExpTransform() == T.ExpTransform()
    assert T.ExpTransform() != T.TanhTransform()
    assert T.AffineTransform(0.0, 1.0) == T.AffineTransform(0.0, 1.0)
    assert T.AffineTransform(0.0, tensor(1.0)) != T.AffineTransform(0.0, tensor(2.0))
    assert T.ExpTransform().inv == T.ExpTransform().inv
    assert T.ComposeTransform([T.ExpTransform()]) == T.ComposeTransform([T.ExpTransform()])
    assert len({T.ExpTransform(), T.ExpTransform()}) == 1
    t = copy.deepcopy(T.AffineTransform(tensor(1.0), tensor(2.0)))
    assert t(tensor(3.0)).item() == 7
    assert repr(T.ComposeTransform([T.ExpTransform()])) == "ComposeTransform([ExpTransform()])"
    assert repr(T.ExpTransform().inv) == "_InverseTransform(ExpTransform())"


def test_shapes_that_change() -> None:
    assert T.StickBreakingTransform().forward_shape((2, 3)) == (2, 4)
    assert T.CorrCholeskyTransform().forward_shape((2, 6)) == (2, 4, 4)
    assert T.CorrCholeskyTransform().inverse_shape((2, 4, 4)) == (2, 6)
    assert T.AffineTransform(wg.zeros(3), wg.ones(2, 1)).forward_shape(()) == (2, 3)
    assert T.ReshapeTransform((2, 3), (6,)).forward_shape((5, 2, 3)) == (5, 6)
    for call, message in (
        (lambda: T.CorrCholeskyTransform().forward_shape((4,)), "a length n"),
        (lambda: T.CorrCholeskyTransform().inverse_shape((2, 3)), "square matrices"),
        (lambda: T.ReshapeTransform((2,), (3,)), "different numbers"),
        (lambda: T.ReshapeTransform((2,), (2, 1)).forward_shape((3,)), "the last axes must be"),
        (lambda: T.StackTransform([T.ExpTransform()])(wg.ones(2)), "must have length 1"),
        (lambda: T.CatTransform([T.ExpTransform()], lengths=[1, 2]), "1 transforms, but 2 lengths"),
        (lambda: T.SoftmaxTransform().forward_shape(()), "1 or more axes"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    for call in (
        lambda: T.SoftmaxTransform().log_abs_det_jacobian(wg.ones(2), wg.ones(2)),
        lambda: T.SoftmaxTransform().sign,
    ):
        with pytest.raises(NotImplementedError):
            call()


# ---- registries ----------------------------------------------------------------------------------

CONSTRAINTS: list[tuple[Any, tuple[int, ...]]] = [
    (C.real, (3,)),
    (C.positive, (3,)),
    (C.nonnegative, (3,)),
    (C.greater_than(tensor([1.0, 2.0, 3.0])), (3,)),
    (C.greater_than_eq(-2.0), (3,)),
    (C.less_than(-2.0), (3,)),
    (C.unit_interval, (3,)),
    (C.interval(tensor(-3.0), tensor(5.0)), (3,)),
    (C.half_open_interval(-3.0, 5.0), (3,)),
    (C.simplex, (2, 4)),
    (C.corr_cholesky, (2, 6)),
    (C.real_vector, (2, 3)),
    (C.independent(C.positive, 1), (2, 3)),
    (C.stack([C.positive, C.real], -1), (3, 2)),
    (C.cat([C.positive, C.unit_interval], -1, [1, 2]), (2, 3)),
    (C.lower_cholesky, (2, 3, 3)),
    (C.positive_definite, (2, 3, 3)),
    (C.positive_semidefinite, (2, 3, 3)),
]


@pytest.mark.parametrize(
    ("constraint", "shape"), CONSTRAINTS, ids=lambda c: repr(c) if isinstance(c, C.Constraint) else ""
)
def test_transforms_onto_constraints(constraint: Any, shape: tuple[int, ...]) -> None:
    x = tensor(np.random.default_rng(0).normal(size=shape))
    y = D.transform_to(constraint)(x)
    assert constraint.check(y).all()
    near(D.transform_to(constraint)(D.transform_to(constraint).inv(y)), y)
    if constraint in (C.lower_cholesky, C.positive_definite, C.positive_semidefinite):
        with pytest.raises(NotImplementedError, match="no transform onto"):
            D.biject_to(constraint)
        return
    t = D.biject_to(constraint)
    assert t.bijective
    near(t.inv(t(x)), x, 1e-7)
    event = x.ndim - t.log_abs_det_jacobian(x, t(x)).ndim
    assert event == (t.domain.event_dim if not isinstance(constraint, (C.stack, C.cat)) else 0)


def test_registering() -> None:
    class Even(C.Constraint):
        pass

    @D.biject_to.register(Even)
    @D.transform_to.register(Even)
    def double(constraint: Even) -> T.Transform:
        return T.AffineTransform(0.0, 2.0)

    assert D.biject_to(Even())(wg.tensor(3.0)).item() == 6
    with pytest.raises(TypeError, match="a constraint or a class of constraints"):
        D.biject_to.register(int, double)
    with pytest.raises(NotImplementedError, match="no transform onto Boolean"):
        D.biject_to(C.boolean)


def test_constraints() -> None:
    nan = math.nan
    cases: list[tuple[Any, list[Any], list[bool]]] = [
        (C.boolean, [0.0, 1.0, 0.5, nan], [True, True, False, False]),
        (C.real, [0.0, math.inf, nan], [True, True, False]),
        (C.positive, [0.0, 1e-30, nan], [False, True, False]),
        (C.nonnegative, [0.0, -1e-30], [True, False]),
        (C.unit_interval, [0.0, 1.0, 1.1], [True, True, False]),
        (C.half_open_interval(0.0, 1.0), [0.0, 1.0], [True, False]),
        (C.less_than(2.0), [1.9, 2.0], [True, False]),
        (C.nonnegative_integer, [0.0, 2.0, 0.5, -1.0], [True, True, False, False]),
        (C.positive_integer, [0.0, 1.0], [False, True]),
        (C.integer_interval(0, 2), [0.0, 2.0, 3.0], [True, True, False]),
        (C.one_hot, [[0.0, 1.0], [1.0, 1.0], [0.5, 0.5]], [True, False, False]),
        (C.simplex, [[0.3, 0.7], [0.3, 0.6], [1.5, -0.5]], [True, False, False]),
        (C.multinomial(3), [[1.0, 2.0], [2.0, 2.0], [1.5, 1.5]], [True, False, False]),
        (C.symmetric, [[[1.0, 2.0], [2.0, 1.0]], [[1.0, 2.0], [0.0, 1.0]]], [True, False]),
        (C.positive_definite, [[[2.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]]], [True, False]),
        (C.positive_semidefinite, [[[1.0, 1.0], [1.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]]], [True, False]),
        (C.positive_definite, [[[2.0, 1.0], [0.0, 2.0]], [[nan, 0.0], [0.0, 1.0]]], [False, False]),
        (C.lower_triangular, [[[1.0, 0.0], [5.0, -1.0]], [[1.0, 1.0], [0.0, 1.0]]], [True, False]),
        (C.lower_cholesky, [[[1.0, 0.0], [5.0, 1.0]], [[1.0, 0.0], [5.0, -1.0]]], [True, False]),
        (C.corr_cholesky, [[[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [0.6, 0.6]]], [True, False]),
        (C.independent(C.positive, 1), [[1.0, 2.0], [1.0, -2.0]], [True, False]),
    ]
    for constraint, values, expected in cases:
        assert constraint.check(tensor(values)).tolist() == expected, constraint
    assert C.square.check(wg.zeros(2, 3)).item() is False
    assert C.positive_definite.check(wg.zeros(4, 2, 3)).tolist() == [False] * 4
    assert C.nonnegative_integer.check(wg.tensor([1, -1])).tolist() == [True, False]
    assert C.stack([C.positive, C.real]).check(tensor([-1.0, -1.0])).tolist() == [False, True]
    assert C.cat([C.positive, C.real], 0, [1, 2]).check(tensor([1.0, -1.0, -2.0])).all()
    assert repr(C.interval(0.0, 2.0)) == "Interval(lower_bound=0.0, upper_bound=2.0)"
    assert repr(C.interval(wg.zeros(2), wg.ones(()))) == "Interval(lower_bound=(2,), upper_bound=1.0)"
    assert repr(C.real_vector) == "IndependentConstraint(Real(), 1)"
    assert C.interval(lower_bound=0.0, upper_bound=1.0).check(tensor(0.5)).item()
    with pytest.raises(TypeError, match="expected lower_bound, upper_bound"):
        C.interval(0.0)
    with pytest.raises(ValueError, match="a tensor of 1 axes or more expected"):
        C.real_vector.check(wg.tensor(1.0))
    assert C.is_dependent(D.Uniform.support)
    assert D.Categorical.support.is_discrete
    assert C.dependent(event_dim=2).event_dim == 2
    with pytest.raises(ValueError, match="cannot check"):
        C.dependent.check(wg.zeros(2))


def test_large_simplices_pass_with_the_rounding_of_float32() -> None:
    p = wg.rand(50_000).softmax(-1)
    assert C.simplex.check(p).item()
    D.Categorical(probs=p)


@pytest.mark.parametrize("diagonal", [-2, -1, 0, 1, 2])
def test_triangles_as_vectors(diagonal: int) -> None:
    m = tensor(np.random.default_rng(0).normal(size=(2, 4, 4)))
    v = D.utils.tril_matrix_to_vec(m, diagonal)
    assert v.tolist() == m.numpy()[:, *np.tril_indices(4, diagonal)].tolist()
    near(D.utils.vec_to_tril_matrix(v, diagonal), m.tril(diagonal))
    with pytest.raises(ValueError, match="diag must lie between"):
        D.utils.tril_matrix_to_vec(m, 4)
    with pytest.raises(ValueError, match="has 2 elements"):
        D.utils.vec_to_tril_matrix(wg.ones(2), 0)
