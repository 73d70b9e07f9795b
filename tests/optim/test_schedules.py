"""Learning-rate schedules against their closed forms."""

import math

import numpy as np
import pytest
import wengert as wg
from wengert import nn, optim
from wengert.optim import lr_scheduler as schedules


def rates(make, steps=12, lr=1.0, optimizer=None):
    optimizer = optimizer or optim.SGD([nn.Parameter(wg.zeros(1))], lr=lr, momentum=0.9)
    scheduler = make(optimizer)
    found = []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return np.array(found)


T = np.arange(12)
RESTARTED, PERIODS = np.array([0, 1, 0, 1, 2, 3, *range(6)]), np.array([2] * 2 + [4] * 4 + [8] * 6)


def cosine(t, n, low=0.0):
    return low + (1 - low) * (1 + np.cos(np.pi * t / n)) / 2


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda o: schedules.StepLR(o, 4), 0.1 ** (T // 4)),
        (lambda o: schedules.MultiStepLR(o, [2, 7], gamma=0.5), 0.5 ** ((T >= 2).astype(int) + (T >= 7))),
        (lambda o: schedules.ConstantLR(o), np.where(T < 5, 1 / 3, 1)),
        (lambda o: schedules.LinearLR(o), 1 / 3 + 2 / 3 * np.minimum(T, 5) / 5),
        (lambda o: schedules.ExponentialLR(o, 0.9), 0.9**T),
        (lambda o: schedules.PolynomialLR(o, 8, power=2.0), (1 - np.minimum(T, 8) / 8) ** 2),
        (lambda o: schedules.CosineAnnealingLR(o, 11, eta_min=0.1), cosine(T, 11, 0.1)),
        (lambda o: schedules.CosineAnnealingWarmRestarts(o, 2, 2), cosine(RESTARTED, PERIODS)),
        (lambda o: schedules.LambdaLR(o, lambda t: 1 / (1 + t)), 1 / (1 + T)),
        (lambda o: schedules.MultiplicativeLR(o, lambda t: t / (1 + t)), 1 / (1 + T)),
        (
            lambda o: schedules.ChainedScheduler([schedules.ConstantLR(o), schedules.ExponentialLR(o, 0.9)]),
            np.where(T < 5, 1 / 3, 1) * 0.9**T,
        ),
        (
            lambda o: schedules.SequentialLR(
                o, [schedules.LinearLR(o, 0.1, total_iters=4), schedules.CosineAnnealingLR(o, 8)], [4]
            ),
            np.where(T < 4, 0.1 + 0.9 * T / 4, cosine(T - 4, 8)),
        ),
    ],
)  # fmt: skip
def test_schedule(make, expected):
    np.testing.assert_allclose(rates(make), expected, rtol=1e-12, atol=1e-12)


def test_one_cycle():
    optimizer = optim.SGD([nn.Parameter(wg.zeros(1))], lr=1.0, momentum=0.9)
    scheduler = schedules.OneCycleLR(optimizer, max_lr=2.0, total_steps=10)
    lr, momentum = [], []
    for _ in range(10):
        lr.append(optimizer.param_groups[0]["lr"])
        momentum.append(optimizer.param_groups[0]["momentum"])
        scheduler.step()
    assert math.isclose(lr[0], 2 / 25)
    assert math.isclose(lr[2], 2.0)
    assert math.isclose(lr[9], 2 / 25 / 1e4)
    assert math.isclose(lr[1], 2 / 25 + (2 - 2 / 25) / 2)
    assert (momentum[0], momentum[2], momentum[9]) == pytest.approx((0.95, 0.85, 0.95))
    with pytest.raises(ValueError, match="step 11 of a cycle of 10"):
        scheduler.step()
    adam_like = optim.Adam([nn.Parameter(wg.zeros(1))])
    schedules.OneCycleLR(adam_like, max_lr=1.0, epochs=2, steps_per_epoch=5)
    assert adam_like.param_groups[0]["betas"] == (0.95, 0.999)


@pytest.mark.parametrize(
    ("settings", "scale"),
    [
        (dict(mode="triangular"), lambda cycle, t: 1.0),
        (dict(mode="triangular2"), lambda cycle, t: 0.5 ** (cycle - 1)),
        (dict(mode="exp_range", gamma=0.9), lambda cycle, t: 0.9**t),
        (dict(scale_fn=lambda x: 1 / x), lambda cycle, t: 1 / cycle),
        (dict(scale_fn=lambda x: 1 / (1 + x), scale_mode="iterations"), lambda cycle, t: 1 / (1 + t)),
    ],
)
def test_cyclic(settings, scale):
    optimizer = optim.SGD([nn.Parameter(wg.zeros(1))], lr=7.0, momentum=0.9)
    scheduler = schedules.CyclicLR(optimizer, 0.1, 1.0, step_size_up=3, step_size_down=2, **settings)
    for t in range(13):
        height = [0, 1 / 3, 2 / 3, 1, 1 / 2][t % 5] * scale(t // 5 + 1, t)
        group = optimizer.param_groups[0]
        assert group["lr"] == pytest.approx(0.1 + 0.9 * height)
        assert group["momentum"] == pytest.approx(0.9 - 0.1 * height)
        scheduler.step()
    with pytest.raises(ValueError, match="CyclicLR: mode must be 'triangular', 'triangular2' or 'exp_range'"):
        schedules.CyclicLR(optimizer, 0.1, 1.0, mode="square")
    with pytest.raises(
        ValueError, match="CyclicLR: cycle_momentum needs an optimiser with momentum or betas"
    ):
        schedules.CyclicLR(optim.Adagrad([nn.Parameter(wg.zeros(1))]), 0.1, 1.0)


def test_one_cycle_in_three_phases():
    def straight(share, low, high):
        return low + (high - low) * share

    for strategy, between in (
        ("linear", straight),
        ("cos", lambda s, a, b: b + (a - b) * (1 + math.cos(math.pi * s)) / 2),
    ):
        optimizer = optim.SGD([nn.Parameter(wg.zeros(1))], lr=1.0, momentum=0.9)
        scheduler = schedules.OneCycleLR(
            optimizer, 2.0, total_steps=20, pct_start=0.3, anneal_strategy=strategy, three_phase=True
        )
        start, end = 2 / 25, 2 / 25 / 1e4
        for t in range(20):
            group = optimizer.param_groups[0]
            if t <= 5:
                want = between(t / 5, start, 2.0), between(t / 5, 0.95, 0.85)
            elif t <= 10:
                want = between((t - 5) / 5, 2.0, start), between((t - 5) / 5, 0.85, 0.95)
            else:
                want = between((t - 10) / 9, start, end), 0.95
            assert (group["lr"], group["momentum"]) == pytest.approx(want)
            scheduler.step()


def test_plateau():
    optimizer = optim.SGD([nn.Parameter(wg.zeros(1))], lr=1.0)
    scheduler = schedules.ReduceLROnPlateau(optimizer, patience=2, factor=0.5, cooldown=1)
    seen = []
    for loss in [5, 4, 4, 4, 4, 4, 4, 4, 4, 3]:
        scheduler.step(wg.tensor(float(loss)))
        seen.append(optimizer.param_groups[0]["lr"])
    assert seen == [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25]


def test_schedule_state():
    make = lambda o: schedules.CosineAnnealingLR(o, 10)
    a, b = (optim.SGD([nn.Parameter(wg.zeros(1))], lr=1.0) for _ in range(2))
    first, second = make(a), make(b)
    for _ in range(4):
        first.step()
    second.load_state_dict(first.state_dict())
    assert second.get_last_lr() == first.get_last_lr()
    # The rates are part of the optimiser's state.
    b.load_state_dict(a.state_dict())
    second.step()
    first.step()
    assert a.param_groups[0]["lr"] == b.param_groups[0]["lr"]
