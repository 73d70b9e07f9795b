"""The range of float16 and bfloat16, and scaling of the loss."""

import pytest
import wengert as wg
from wengert import nn, optim
from wengert.amp import GradScaler

SMALLEST = 2.0**-24


def test_the_range_of_the_half_types() -> None:
    assert wg.tensor(SMALLEST, dtype=wg.float16).item() == SMALLEST == pytest.approx(5.96e-8, rel=1e-3)
    assert wg.tensor(SMALLEST / 2, dtype=wg.float16).item() == 0.0
    assert wg.tensor(65504.0, dtype=wg.float16).item() == 65504.0 == wg.finfo(wg.float16).max
    assert wg.tensor(65520.0, dtype=wg.float16).isinf().item()
    assert wg.tensor(1e-38, dtype=wg.bfloat16).item() == pytest.approx(1e-38, rel=4e-3)
    assert wg.tensor(1e38, dtype=wg.bfloat16).item() == pytest.approx(1e38, rel=4e-3)
    assert wg.tensor(1.0 + 2.0**-9, dtype=wg.bfloat16).item() == 1.0
    assert wg.tensor(1.0 + 2.0**-9, dtype=wg.float16).item() == 1.0 + 2.0**-9


def small_gradient(dtype: wg.dtype, scale: float = 1.0) -> float:
    """The gradient 1e-8 of a weight, computed in `dtype` and unscaled in float32."""
    w = wg.ones(1, requires_grad=True)
    loss = (w.to(dtype) * 1e-4).float().sum() * 1e-4
    (loss * scale).backward()
    return w.grad.item() / scale


def test_small_gradients_vanish_in_float16_and_scaling_saves_them() -> None:
    assert small_gradient(wg.float16) == 0.0
    assert small_gradient(wg.float16, 65536.0) == pytest.approx(1e-8, rel=2e-3)
    assert small_gradient(wg.float32) == pytest.approx(1e-8, rel=1e-6)


def test_bfloat16_needs_no_scaling() -> None:
    assert small_gradient(wg.bfloat16) == pytest.approx(1e-8, rel=2e-2)


def test_the_scaler_saves_a_training_that_float16_would_stop() -> None:
    def train(scaler: GradScaler) -> float:
        w = nn.Parameter(wg.ones(1))
        optimiser = optim.SGD([w], lr=1e6)
        for _ in range(5):
            optimiser.zero_grad()
            scaler.scale((w.half() * 1e-4).float().sum() * 1e-4).backward()
            scaler.step(optimiser)
            scaler.update()
        return w.item()

    assert train(GradScaler(enabled=False)) == 1.0
    assert train(GradScaler()) == pytest.approx(1.0 - 5 * 1e-2, rel=1e-4)


def test_the_scaler_doubles_after_2000_good_steps_and_halves_on_overflow() -> None:
    p = nn.Parameter(wg.zeros(1))
    optimiser, scaler = optim.SGD([p], lr=0.0), GradScaler()

    def step(factor: float) -> float:
        optimiser.zero_grad()
        scaler.scale((p * factor).sum()).backward()
        scaler.step(optimiser)
        scaler.update()
        return scaler.get_scale()

    assert {step(1.0) for _ in range(1999)} == {65536.0}
    assert step(1.0) == 131072.0
    assert step(float("inf")) == 65536.0
    assert step(1.0) == 65536.0
