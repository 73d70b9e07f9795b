"""A cotangent of zero stays zero at poles, unless `ieee_gradients` asks for IEEE arithmetic."""

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from wengert import _core

X = (4.0, 0.25, 0.0, -1.0)

#: A function that a mask keeps from its pole, and its first and second derivative at the points of X.
MASKED: dict[str, tuple[Callable[[Any], Any], list[float], list[float]]] = {
    "sqrt": (lambda x: wg.where(x > 0, x.sqrt(), x), [0.25, 1.0, 1.0, 1.0], [-1 / 32, -2.0, 0.0, 0.0]),
    "rsqrt": (lambda x: wg.where(x > 0, x.rsqrt(), 0), [-1 / 16, -4.0, 0.0, 0.0], [3 / 128, 24.0, 0.0, 0.0]),
    "log": (lambda x: wg.where(x > 0, x.log(), 0), [0.25, 4.0, 0.0, 0.0], [-1 / 16, -16.0, 0.0, 0.0]),
    "log1p": (lambda x: wg.where(x > -1, x.log1p(), 0), [0.2, 0.8, 1.0, 0.0], [-0.04, -0.64, -1.0, 0.0]),
    "reciprocal": (lambda x: wg.where(x > 0, x.reciprocal(), 0), [-1 / 16, -16, 0, 0], [1 / 32, 128, 0, 0]),
    "divided": (lambda x: wg.where(x > 0, 1 / x, 0), [-1 / 16, -16.0, 0.0, 0.0], [1 / 32, 128.0, 0.0, 0.0]),
    "quotient": (lambda x: wg.where(x > 0, x / x, 0), [0.0] * 4, [0.0] * 4),
    "power": (lambda x: wg.where(x > 0, x**0.5, x), [0.25, 1.0, 1.0, 1.0], [-1 / 32, -2.0, 0.0, 0.0]),
    "nested": (
        lambda x: wg.where(x > 0, wg.where(x > 0, x.sqrt().log(), 0), 0),
        [0.125, 2.0, 0.0, 0.0],
        [-1 / 32, -8.0, 0.0, 0.0],
    ),
    "chained": (
        lambda x: wg.where(x > 0, (x.log() * x.sqrt()).square(), 0),
        [((2 + math.log(v)) * math.log(v)) if v > 0 else 0.0 for v in X],
        [(2 * (1 + math.log(v)) / v) if v > 0 else 0.0 for v in X],
    ),
    "overflow": (lambda x: wg.where(x < 3, (400 * x.square()).exp(), 0) * 0, [0.0] * 4, [0.0] * 4),
}


def points() -> wg.Tensor:
    return wg.tensor(X, dtype=wg.float64)


@pytest.fixture(params=list(MASKED))
def masked(request: pytest.FixtureRequest) -> tuple[Callable[[Any], Any], list[float], list[float]]:
    return MASKED[request.param]


def total(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: f(x).sum()


def close(found: wg.Tensor, expected: list[float]) -> None:
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-12)


def test_backward(masked: Any) -> None:
    f, first, _ = masked
    x = points().requires_grad_()
    f(x).sum().backward()
    close(x.grad, first)


def test_grad_jvp_and_vmap(masked: Any) -> None:
    f, first, second = masked
    x = points()
    close(wg.grad(total(f))(x), first)
    close(wg.jvp(f, (x,), (wg.ones_like(x),))[1], first)
    close(wg.vmap(wg.grad(f))(x), first)
    close(wg.vmap(wg.grad(wg.grad(f)))(x), second)


def test_second_order(masked: Any) -> None:
    f, _, second = masked
    x = points()
    close(wg.hessian(total(f))(x).diagonal(), second)
    close(wg.grad(total(wg.grad(total(f))))(x), second)
    close(wg.jvp(wg.grad(total(f)), (x,), (wg.ones_like(x),))[1], second)
    close(wg.jacfwd(wg.jacfwd(f))(x).sum((1, 2)), second)
    x.requires_grad_()
    (g,) = wg.autograd.grad(f(x).sum(), [x], create_graph=True)
    g.sum().backward()
    close(x.grad, second)


#: At these arguments the slope of each function is infinite or undefined, or the value is.
POLES = {
    "sqrt": (0.0, -1.0),
    "rsqrt": (0.0, -1.0),
    "reciprocal": (0.0,),
    "log": (0.0, -1.0),
    "log1p": (-1.0, -2.0),
    "exp": (1e4, math.inf),
    "expm1": (1e4, math.inf),
}


@pytest.mark.parametrize("name", list(POLES))
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_zero_times_a_pole(name: str, dtype: str) -> None:
    for value in (*POLES[name], math.nan):
        x = wg.tensor([value], dtype=getattr(wg, dtype), requires_grad=True)
        y = getattr(x, name)()
        (g,) = wg.autograd.grad(y, [x], [wg.zeros_like(y)], retain_graph=True)
        assert g.tolist() == [0.0], (name, value)
        assert wg.jvp(getattr(wg, name), (x.detach(),), (wg.zeros_like(y),))[1].tolist() == [0.0]
        if not math.isnan(value) and value >= -0.5:
            with wg.ieee_gradients(True):
                (g,) = wg.autograd.grad(y, [x], [wg.zeros_like(y)])
                assert math.isnan(g.item()), (name, value)


@pytest.mark.parametrize(
    "at", [(0.0, 0.0), (1.0, 0.0), (0.0, -1.0), (-1.0, 0.5), (math.nan, 2.0), (2.0, math.nan)]
)
@pytest.mark.parametrize("name", ["div", "pow", "hypot", "logaddexp", "maximum"])
def test_zero_of_two_operands(name: str, at: tuple[float, float]) -> None:
    x, y = (wg.tensor([v], dtype=wg.float64, requires_grad=True) for v in at)
    out = getattr(x, name)(y)
    grads = wg.autograd.grad(out, [x, y], [wg.zeros_like(out)])
    assert [g.item() == 0.0 for g in grads] == [True, True]


def test_norms_at_zero() -> None:
    zero = wg.zeros(3, dtype=wg.float64)
    assert wg.grad(lambda x: x.norm())(zero).tolist() == [0.0] * 3
    assert wg.grad(lambda x: wg.where(x.sum() > 0, x.norm(), 0))(zero).tolist() == [0.0] * 3
    unit = lambda x: wg.where(x.norm() > 0, x / x.norm(), 0).sum()
    assert wg.grad(unit)(zero).tolist() == [0.0] * 3
    assert wg.vmap(wg.grad(unit))(wg.zeros(2, 3)).tolist() == [[0.0] * 3] * 2


def test_strict_gradients_are_those_of_ieee(masked: Any) -> None:
    """With the mode on, some masked pole shows as NaN, and unmasked points keep their derivative."""
    f, first, _ = masked
    x = points()
    with wg.ieee_gradients(True):
        strict = wg.grad(total(f))(x).tolist()
        forward = wg.jvp(f, (x,), (wg.ones_like(x),))[1].tolist()
    assert strict[0] == pytest.approx(first[0], rel=1e-12) or math.isnan(strict[0])
    assert forward[0] == pytest.approx(first[0], rel=1e-12) or math.isnan(forward[0])
    if f is not MASKED["overflow"][0]:
        assert any(map(math.isnan, strict))


def test_it_applies_where_the_derivative_is_computed() -> None:
    f = lambda x: wg.where(x > 0, x.sqrt(), x).sum()
    x = wg.tensor([0.0], requires_grad=True)
    with wg.ieee_gradients(True):
        y = f(x)
        assert wg.is_ieee_gradients_enabled()
    assert not wg.is_ieee_gradients_enabled()
    y.backward()
    assert x.grad.tolist() == [1.0]
    x.grad = None
    y = f(x)
    with wg.ieee_gradients(True):
        y.backward()
    assert math.isnan(x.grad.item())


def test_under_transforms() -> None:
    f = lambda x: wg.where(x > 0, x.sqrt(), x)
    x = wg.zeros(2)
    with wg.ieee_gradients(True):
        assert np.isnan(wg.vmap(wg.grad(f))(x).numpy()).all()
        assert np.isnan(wg.vmap(wg.grad(wg.grad(f)))(x).numpy()).all()
        assert np.isnan(wg.hessian(total(f))(x).numpy()).any()
        with wg.ieee_gradients(False):
            assert wg.vmap(wg.grad(f))(x).tolist() == [1.0, 1.0]
        # Forward mode selects a tangent, it multiplies none by zero.
        assert wg.jacfwd(f)(x).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_setter_decorator_and_nesting() -> None:
    slope = wg.grad(lambda x: wg.where(x > 0, x.log(), 0))
    zero = wg.tensor(0.0)
    wg.ieee_gradients(True)
    try:
        assert math.isnan(slope(zero).item())
        with wg.autograd.detect_anomaly(check_nan=False), wg.debug():
            assert math.isnan(slope(zero).item())
            wg.ieee_gradients(False)
        assert slope(zero).item() == 0.0
    finally:
        wg.ieee_gradients(False)

    @wg.ieee_gradients(True)
    def strict() -> float:
        return slope(zero).item()

    assert slope(zero).item() == 0.0
    assert math.isnan(strict())
    assert not wg.is_ieee_gradients_enabled()


def test_it_belongs_to_the_thread() -> None:
    found = []
    with wg.ieee_gradients(True):
        other = threading.Thread(target=lambda: found.append(wg.is_ieee_gradients_enabled()))
        other.start()
        other.join()
    assert found == [False]


def test_autocast_keeps_its_types() -> None:
    x = wg.tensor([1.0, 0.5], dtype=wg.bfloat16, requires_grad=True)
    with wg.ieee_gradients(True), wg.autocast("cpu", dtype=wg.bfloat16):
        (x.exp() * x.log()).sum().backward()
    assert x.grad.dtype == wg.bfloat16


@pytest.mark.parametrize("name", ["sqrt", "log", "exp", "expm1", "reciprocal", "rsqrt", "log1p"])
def test_where_slopes_are_finite_both_agree(name: str) -> None:
    x = wg.linspace(0.25, 3, 12, dtype=wg.float64)
    slope = wg.vmap(wg.grad(getattr(wg, name)))
    curvature = wg.vmap(wg.grad(wg.grad(getattr(wg, name))))
    usual = (slope(x), curvature(x))
    with wg.ieee_gradients(True):
        strict = (slope(x), curvature(x))
    for a, b in zip(usual, strict):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-14)


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    f = lambda x: wg.where(x > 0, x.sqrt(), x).sum()
    x = wg.tensor([4.0, 0.0], device="gpu")
    assert wg.grad(f)(x).cpu().tolist() == [0.25, 1.0]
    with wg.ieee_gradients(True):
        assert wg.grad(f)(x).cpu()[0].item() == 0.25


SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e4, -1e4, 1e300, math.inf, -math.inf, math.nan)
ROWS = [(name, table) for name, _, table in _core.op_rows() if table != "Parametric"]


@pytest.mark.parametrize(("name", "table"), ROWS, ids=[name for name, _ in ROWS])
def test_every_row_keeps_a_cotangent_of_zero(name: str, table: str) -> None:
    """Whatever the arguments: in reverse and forward mode, and in the derivative of the derivative."""
    grid = np.meshgrid(SPECIAL, SPECIAL) if table == "Binary" else [np.array(SPECIAL)]
    xs = [wg.tensor(values.ravel()).requires_grad_() for values in grid]
    f = getattr(wg, name)
    y = f(*xs)
    zero = wg.zeros_like(y)
    for g in wg.autograd.grad(y, xs, [zero], allow_unused=True, retain_graph=True):
        assert g is None or not g.numpy().any()
    constants = tuple(x.detach() for x in xs)
    assert not wg.jvp(f, constants, tuple(wg.zeros_like(x) for x in xs))[1].numpy().any()
    upstream = wg.zeros_like(y).requires_grad_()
    grads = wg.autograd.grad(y, xs, [upstream], create_graph=True, allow_unused=True)
    grads = [g for g in grads if g is not None and g.requires_grad]
    if grads:
        ones = [wg.ones_like(g) for g in grads]
        for g in wg.autograd.grad(grads, xs, ones, allow_unused=True):
            assert g is None or not g.numpy().any()


@pytest.mark.parametrize("dtype", [wg.float32, wg.float64])
@pytest.mark.parametrize("n", [3, 3.0, -2, 2.5])
def test_what_does_not_move_costs_nothing_in_ieee_arithmetic(n, dtype):
    """The logarithm of a negative base belongs to the derivative in the exponent, which is not asked for."""
    points = [-2.0, -0.5, 1.5, 1e30 if dtype == wg.float32 else 1e90]
    x = wg.tensor(points, dtype=dtype)
    if n == 2.5:
        x = x.abs()

    def second(x):
        return wg.grad(lambda x: wg.grad(lambda x: (x**n).sum())(x).sum())(x)

    with wg.ieee_gradients(True):
        found = second(x)
    expected = n * (n - 1) * x.double().numpy() ** (n - 2)
    np.testing.assert_allclose(found.numpy(), expected.astype(found.numpy().dtype), rtol=3e-6)
    assert np.isfinite(found.numpy()).all()


def test_both_moving_in_ieee_arithmetic():
    x, y = wg.tensor(2.0, dtype=wg.float64), wg.tensor(3.0, dtype=wg.float64)
    with wg.ieee_gradients(True):
        hessian = wg.hessian(lambda x, y: x**y, argnums=(0, 1))(x, y)
    log = math.log(2.0)
    expected = [[12.0, 4 + 12 * log], [4 + 12 * log, 8 * log * log]]
    np.testing.assert_allclose([[float(v) for v in row] for row in hessian], expected, rtol=1e-12)
