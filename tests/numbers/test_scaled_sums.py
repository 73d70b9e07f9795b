"""Norms, deviations and variances of float32 and halves whose powers overflow or underflow: value and
derivatives are those of the same numbers near 1, times a power of the scale."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import wengert as wg
from wengert import Tensor

AT = np.array([[1.5, -2.25, 0.5, 3.0], [0.75, 1.0, -1.25, 2.0]])

#: Name: the function, and NumPy's.
FUNCTIONS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[np.ndarray], np.ndarray]]] = {
    "std": (lambda x: x.std(), lambda a: a.std(ddof=1)),
    "std of rows": (lambda x: x.std(1), lambda a: a.std(1, ddof=1)),
    "std of columns, kept": (lambda x: x.std(0, keepdim=True), lambda a: a.std(0, ddof=1, keepdims=True)),
    "std, correction 0": (lambda x: wg.std(x, dim=(0, 1), correction=0), lambda a: a.std()),
    "std_mean": (lambda x: wg.std_mean(x, dim=1)[0], lambda a: a.std(1, ddof=1)),
    "norm": (lambda x: x.norm(), lambda a: np.linalg.norm(a)),
    "norm of rows": (
        lambda x: x.norm(dim=1, keepdim=True),
        lambda a: np.linalg.norm(a, axis=1, keepdims=True),
    ),
    "norm 3": (lambda x: x.norm(3, dim=0), lambda a: (np.abs(a) ** 3).sum(0) ** (1 / 3)),
    "norm 12": (lambda x: x.norm(12), lambda a: (np.abs(a) ** 12).sum() ** (1 / 12)),
    "norm 1/2": (lambda x: x.norm(0.5, dim=1), lambda a: (np.abs(a) ** 0.5).sum(1) ** 2),
    "norm -2": (lambda x: x.norm(-2, dim=1), lambda a: (np.abs(a) ** -2.0).sum(1) ** -0.5),
    "vector_norm": (lambda x: wg.linalg.vector_norm(x, dim=1), lambda a: np.linalg.norm(a, axis=1)),
    "matrix_norm": (wg.linalg.matrix_norm, lambda a: np.linalg.norm(a)),
    "dist": (lambda x: x[0].dist(x[1]), lambda a: np.linalg.norm(a[0] - a[1])),
}
SCALES = {"float32": (1e24, 1e-25, 3e36, 1e-37), "bfloat16": (1e24, 1e-25), "float64": (1e24, 1e-25)}
CASES = [(dtype, scale) for dtype, scales in SCALES.items() for scale in scales]


@pytest.mark.parametrize(("dtype", "scale"), CASES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_derivatives(name: str, dtype: str, scale: float) -> None:
    function, expected = FUNCTIONS[name]
    power = 2.0 ** round(math.log2(scale))
    kind = getattr(wg, dtype)
    eps = wg.finfo(kind).eps
    x = wg.tensor(AT).to(kind) * power
    found = function(x)
    assert found.dtype == kind
    # A root of a sum has the error of its order times the logarithm of the sum.
    np.testing.assert_allclose(
        found.double().numpy() / power, expected(AT), rtol=(8 if "std" in name else 64) * eps
    )
    near, weight = wg.tensor(AT).to(kind), wg.linspace(1.0, 2.0, found.numel()).to(kind).reshape(found.shape)
    loss = lambda x: (function(x) * weight).sum()
    # Of degree 1, so that the gradient has no scale.
    wanted = wg.grad(loss)(near).double().numpy()
    np.testing.assert_allclose(wg.grad(loss)(x).double().numpy(), wanted, rtol=128 * eps, atol=128 * eps)
    direction = wg.ones_like(x).cumsum(1) - 2.5
    forward = wg.jvp(function, (x,), (direction,))[1].double().numpy()
    wanted = wg.jvp(function, (near,), (direction,))[1].double().numpy()
    np.testing.assert_allclose(forward, wanted, rtol=128 * eps, atol=128 * eps)


@pytest.mark.parametrize(("dtype", "scale"), [c for c in CASES if c[0] != "bfloat16"])
@pytest.mark.parametrize("name", ["std of rows", "norm", "norm 3"])
def test_second_derivatives_go_with_the_inverse_scale(name: str, dtype: str, scale: float) -> None:
    function = FUNCTIONS[name][0]
    power, kind = 2.0 ** round(math.log2(scale)), getattr(wg, dtype)
    curve = wg.jvp(
        lambda x: wg.grad(lambda x: function(x).sum())(x),
        (wg.tensor(AT).to(kind),),
        (wg.ones(2, 4).to(kind),),
    )
    tangent = wg.full((2, 4), power, dtype=kind)
    far = wg.jvp(
        lambda x: wg.grad(lambda x: function(x).sum())(x), (wg.tensor(AT).to(kind) * power,), (tangent,)
    )
    np.testing.assert_allclose(
        far[1].numpy(), curve[1].numpy(), rtol=64 * wg.finfo(kind).eps, atol=64 * wg.finfo(kind).eps
    )


def test_variances_whose_squares_add_up_beyond_the_largest_number() -> None:
    # In float32 the sum is infinite, and the variance is not.
    a = np.array([1.5e19, -1.5e19] * 50, dtype=np.float32)
    x = wg.tensor(a)
    np.testing.assert_allclose(x.var(correction=0).item(), a.astype(float).var(), rtol=1e-6)
    slope = wg.grad(lambda x: x.var(correction=0))(x).numpy()
    np.testing.assert_allclose(slope, 2 * a.astype(float) / len(a), rtol=1e-5)
    assert wg.tensor([1e25, -1e25]).var().item() == math.inf
    assert wg.tensor([1e-25, -1e-25]).var().item() == 0.0


def test_rows_of_every_size_in_one_batch() -> None:
    scales = [1.0, 2.0**80, 2.0**-80, 0.0, 2.0**-140]
    x = wg.tensor([[s * v for v in (3.0, 4.0, -12.0)] for s in scales])
    expected = [13.0 * s for s in scales]
    assert x.norm(dim=1).tolist() == expected
    assert wg.vmap(lambda row: row.norm())(x).tolist() == expected
    slopes = wg.vmap(wg.grad(lambda row: row.norm()))(x)
    unit = np.array([3.0, 4.0, -12.0]) / 13.0
    np.testing.assert_allclose(slopes.numpy(), [unit, unit, unit, 0 * unit, unit], rtol=1e-5)


def test_what_is_infinite_or_not_a_number_stays_so() -> None:
    for x in ([math.inf, 1.0], [-math.inf, 1e30]):
        assert wg.tensor(x).norm().item() == math.inf
    assert math.isnan(wg.tensor([math.nan, 1e30]).norm().item())
    assert math.isnan(wg.tensor([math.inf, 1.0]).std().item())
    assert wg.tensor([0.0, 1e-30]).norm(-2).item() == 0.0
    assert wg.zeros(3).norm().item() == wg.zeros(3).std().item() == 0.0
    assert wg.zeros(0).norm().item() == 0.0
    assert wg.zeros(2, 0).norm(dim=1).tolist() == [0.0, 0.0]
    assert wg.tensor(1e30).norm().item() == wg.tensor(1e30).item()
    np.testing.assert_allclose(wg.tensor([3e25 + 4e25j, 12e25]).norm().item(), 13e25, rtol=1e-6)
    np.testing.assert_allclose(
        wg.tensor([3e25 + 4e25j, -3e25 - 4e25j]).std(correction=0).item(), 5e25, rtol=1e-6
    )


@pytest.mark.parametrize("scale", [1e-160, 1e200])
def test_squares_of_float64_are_added_as_numpy_adds_them(scale: float) -> None:
    x = wg.tensor(AT * scale)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(x.norm(dim=1).numpy(), np.linalg.norm(AT * scale, axis=1), rtol=1e-15)
        np.testing.assert_allclose(x.std().item(), (AT * scale).std(ddof=1), rtol=1e-15)
