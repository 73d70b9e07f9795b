"""How gradients vanish, explode and die, and how differences go wrong."""

import math

import numpy as np
import pytest
import wengert as wg
from wengert import nn
from wengert.nn import functional as F

FLOAT64 = wg.float64


def chain_slope(f: object, depth: int, at: float = 0.3) -> float:
    """The derivative of `f` applied `depth` times."""
    x = y = wg.tensor(at, dtype=FLOAT64, requires_grad=True)
    for _ in range(depth):
        y = f(y)
    y.backward()
    return x.grad.item()


@pytest.mark.parametrize("depth", [1, 5, 10, 20])
def test_sigmoids_scale_a_gradient_by_a_quarter_at_most(depth: int) -> None:
    slope = chain_slope(wg.sigmoid, depth)
    assert 0 < slope <= 0.25**depth
    assert slope > 0.2**depth
    # The bound is reached where every sigmoid stands at its centre.
    assert chain_slope(lambda x: wg.sigmoid(x) - 0.5, depth, at=0.0) == pytest.approx(0.25**depth, rel=1e-12)


def test_ten_sigmoids() -> None:
    assert chain_slope(lambda x: wg.sigmoid(x) - 0.5, 10, at=0.0) == pytest.approx(9.54e-7, rel=1e-3)


def test_relu_and_residual_connections_let_the_gradient_through() -> None:
    assert chain_slope(wg.relu, 50) == 1.0
    assert 1.0 <= chain_slope(lambda x: x + 0.1 * wg.sigmoid(x), 50) < 4.0


def first_gradient(weight: float, depth: int, width: int = 32) -> float:
    """The norm of the input's gradient behind tanh layers with weights of this standard deviation, in
    1/sqrt(width)."""
    wg.manual_seed(0)
    x = y = (0.01 * wg.randn(width, dtype=FLOAT64)).requires_grad_()
    for _ in range(depth):
        y = wg.tanh(weight / math.sqrt(width) * wg.randn(width, width, dtype=FLOAT64) @ y)
    y.backward(wg.ones(width, dtype=FLOAT64))
    return x.grad.norm().item()


def linear_growth(weight: float, depth: int, width: int = 64) -> float:
    """By what factor a linear chain changes the norm of a gradient."""
    wg.manual_seed(0)
    x = y = wg.randn(width, dtype=FLOAT64).requires_grad_()
    for _ in range(depth):
        y = weight / math.sqrt(width) * wg.randn(width, width, dtype=FLOAT64) @ y
    g = wg.randn(width, dtype=FLOAT64)
    y.backward(g)
    return (x.grad.norm() / g.norm()).item()


def test_large_weights_explode_the_gradient_and_small_ones_lose_it() -> None:
    assert linear_growth(3.0, 20) > 1e7
    assert linear_growth(0.3, 20) < 1e-8
    assert 0.05 < linear_growth(1.0, 20) < 20.0
    assert first_gradient(0.5, 20) < 1e-3 * first_gradient(1.0, 20)


def variances(init: object, activation: object, depth: int = 20, width: int = 256) -> list[float]:
    """The mean square after each layer, starting at one."""
    wg.manual_seed(0)
    y, found = wg.randn(512, width), []
    for _ in range(depth):
        w = wg.empty(width, width)
        init(w)
        y = y @ w.T
        found.append(y.square().mean().item())
        y = activation(y)
    return found


def test_xavier_keeps_the_variance_of_a_linear_chain() -> None:
    for init in (nn.init.xavier_normal_, nn.init.xavier_uniform_):
        assert all(0.5 < v < 2.0 for v in variances(init, lambda y: y))


def test_he_keeps_the_variance_of_a_relu_chain_and_xavier_does_not() -> None:
    he = lambda w: nn.init.kaiming_normal_(w, nonlinearity="relu")
    kept = variances(he, wg.relu)
    assert all(0.5 * kept[0] < v < 2.0 * kept[0] for v in kept)
    lost = variances(nn.init.xavier_normal_, wg.relu)
    assert lost[-1] == pytest.approx(0.5**19, rel=0.9)


def test_a_dead_relu_unit_stays_dead_and_a_leaky_one_comes_back() -> None:
    data = wg.linspace(0.0, 1.0, 16).reshape(16, 1)

    def train(activation: object) -> tuple[float, float, list[float]]:
        w, b = wg.full((1, 1), 0.5, requires_grad=True), wg.full((1,), -5.0, requires_grad=True)
        optimiser, gradients = wg.optim.SGD([w, b], lr=0.5), []
        for _ in range(400):
            optimiser.zero_grad()
            loss = F.mse_loss(activation(data @ w + b), data)
            loss.backward()
            gradients.append(b.grad.item())
            optimiser.step()
        return w.item(), b.item(), gradients

    w, b, gradients = train(F.relu)
    assert (w, b, set(gradients)) == (0.5, -5.0, {0.0})
    w, b, gradients = train(lambda x: F.leaky_relu(x, 0.1))
    assert gradients[0] < 0
    assert F.mse_loss(F.leaky_relu(data * w + b, 0.1), data).item() < 1e-3


def test_clipping_by_norm_keeps_the_direction() -> None:
    wg.manual_seed(0)
    parameters = [wg.randn(3, 4, requires_grad=True), wg.randn(5, requires_grad=True)]
    sum((p**3).sum() * 100 for p in parameters).backward()
    before = wg.cat([p.grad.flatten() for p in parameters])
    total = nn.utils.clip_grad_norm_(parameters, 1.0)
    after = wg.cat([p.grad.flatten() for p in parameters])
    assert total.item() == pytest.approx(before.norm().item(), rel=1e-6)
    assert after.norm().item() == pytest.approx(1.0, rel=1e-5)
    assert (before @ after / (before.norm() * after.norm())).item() == pytest.approx(1.0, rel=1e-6)
    again = after.clone()
    nn.utils.clip_grad_norm_(parameters, 10.0)
    assert wg.cat([p.grad.flatten() for p in parameters]).tolist() == again.tolist()


def difference_errors(dtype: wg.dtype, central: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and the median relative error of the differences of a smooth function over a few points."""
    steps = 10.0 ** np.arange(-15, 0, 0.25) if dtype == wg.float64 else 10.0 ** np.arange(-7, 0, 0.25)
    f = lambda x: (x.sin() * x.exp()).sum()
    points = wg.linspace(0.5, 1.5, 41, dtype=dtype)
    exact = wg.grad(f)(points.double())
    errors = []
    for step in steps:
        each = lambda x: x.sin() * x.exp()
        if central:
            slope = (each(points + step) - each(points - step)).double() / (2 * step)
        else:
            slope = (each(points + step) - each(points)).double() / step
        errors.append(((slope - exact) / exact).abs().numpy())
    return steps, np.median(np.array(errors), axis=1)


@pytest.mark.parametrize(("dtype", "best_step"), [(wg.float64, 1e-8), (wg.float32, 3e-4)])
def test_differences_have_a_best_step(dtype: wg.dtype, best_step: float) -> None:
    steps, errors = difference_errors(dtype)
    best = int(errors.argmin())
    assert best_step / 6 < steps[best] < best_step * 6
    # To the right the error is the truncated series: it grows with the step. To the left it is rounding.
    assert errors[best + 8] / errors[best + 4] == pytest.approx(10.0, rel=0.2)
    assert errors[0] > 100 * errors[best]


def test_differences_in_single_precision_have_three_to_four_digits() -> None:
    assert 3e-5 < difference_errors(wg.float32)[1].min() < 1e-3
    assert difference_errors(wg.float64)[1].min() < 1e-7
    assert difference_errors(wg.float64, central=True)[1].min() < 1e-9
