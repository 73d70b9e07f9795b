"""`optim.swa_utils`: averages of weights against their formulas, the schedule, batch statistics anew."""

import math
from typing import Any

import numpy as np
import pytest
import wengert as wg
from messages import Situations, message_tests
from support import Array, array, assert_near
from wengert import nn
from wengert.optim import SGD, swa_utils
from wengert.optim.lr_scheduler import StepLR


def network() -> nn.Module:
    wg.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)).double()


def moved(net: nn.Module, k: int) -> list[Array]:
    """Sets the parameters to other values, and returns these."""
    rng = np.random.default_rng(k)
    values = [rng.normal(size=tuple(p.shape)) for p in net.parameters()]
    with wg.no_grad():
        for p, v in zip(net.parameters(), values):
            p.copy_(wg.tensor(v))
    return values


def mean(values: list[Array]) -> Array:
    return np.mean(values, axis=0)


def ema(values: list[Array]) -> Array:
    out = values[0]
    for v in values[1:]:
        out = 0.9 * out + 0.1 * v
    return out


def weighted(values: list[Array]) -> Array:
    return sum(((k + 1) * v for k, v in enumerate(values)), np.zeros(()))


AVERAGES: dict[str, tuple[dict[str, Any], Any]] = {
    "default": ({}, mean),
    "mean": ({"avg_fn": swa_utils.get_swa_avg_fn()}, mean),
    "mean of lists": ({"multi_avg_fn": swa_utils.get_swa_multi_avg_fn()}, mean),
    "ema": ({"avg_fn": swa_utils.get_ema_avg_fn(0.9)}, ema),
    "ema of lists": ({"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.9)}, ema),
    "own": ({"avg_fn": lambda a, p, n: a + p * (n + 1)}, weighted),
}


@pytest.mark.parametrize("name", list(AVERAGES))
def test_averages(name: str) -> None:
    kwargs, formula = AVERAGES[name]
    net = network()
    average = swa_utils.AveragedModel(net, **kwargs)
    seen = []
    for k in range(4):
        seen.append(moved(net, k))
        average.update_parameters(net)
    assert average.n_averaged.item() == 4
    for i, p in enumerate(average.module.parameters()):
        assert_near(p, formula([v[i] for v in seen]), 1e-14)
        assert p.grad_fn is None
    x = wg.tensor(np.random.default_rng(9).normal(size=(5, 3)))
    assert_near(average.eval()(x), array(average.module(x)), 0)


@pytest.mark.parametrize("use_buffers", [False, True])
def test_buffers(use_buffers: bool) -> None:
    net = network()
    average = swa_utils.AveragedModel(net, use_buffers=use_buffers)
    seen = []
    for k in range(3):
        net(wg.tensor(np.random.default_rng(k).normal(size=(8, 3))))
        seen.append(array(net[1].running_mean).copy())
        average.update_parameters(net)
    assert_near(average.module[1].running_mean, mean(seen) if use_buffers else seen[-1], 1e-14)
    assert average.module[1].num_batches_tracked.item() == 3


def test_a_state_that_is_saved() -> None:
    net = network()
    average = swa_utils.AveragedModel(net)
    for k in range(2):
        moved(net, k)
        average.update_parameters(net)
    other = swa_utils.AveragedModel(network())
    other.load_state_dict(average.state_dict())
    assert other.n_averaged.item() == 2
    for a, b in zip(other.parameters(), average.parameters()):
        assert_near(a, array(b), 0)


def test_batch_statistics_anew() -> None:
    net = network()
    batches = [np.random.default_rng(k).normal(size=(6, 3)) for k in range(3)]
    net[0].eval()
    swa_utils.update_bn([(wg.tensor(b), None) for b in batches], net)
    hidden = [array(net[0](wg.tensor(b))) for b in batches]
    assert_near(net[1].running_mean, mean([h.mean(0) for h in hidden]), 1e-14)
    assert_near(net[1].running_var, mean([h.var(0, ddof=1) for h in hidden]), 1e-14)
    assert net[1].momentum == 0.1
    assert (net[0].training, net[1].training) == (False, True)
    swa_utils.update_bn([], nn.Linear(1, 1))


@pytest.mark.parametrize("strategy", ["cos", "linear"])
def test_the_schedule(strategy: str) -> None:
    optimizer = SGD([{"params": [nn.Parameter(wg.ones(1))], "lr": r} for r in (1.0, 0.5)], lr=0.1)
    before = StepLR(optimizer, 2, 0.5)
    schedule = swa_utils.SWALR(optimizer, [0.05, 0.02], anneal_epochs=4, anneal_strategy=strategy)
    for _ in range(3):
        before.step()
    rates = []
    for _ in range(6):
        schedule.step()
        rates.append(schedule.get_last_lr())
    for t, got in enumerate(rates, 1):
        part = min(1.0, t / 4)
        part = part if strategy == "linear" else (1 - math.cos(math.pi * part)) / 2
        assert got == pytest.approx([0.05 * part + 0.5 * (1 - part), 0.02 * part + 0.25 * (1 - part)])
    again = swa_utils.SWALR(optimizer, 1.0, anneal_epochs=4, anneal_strategy=strategy)
    again.load_state_dict(schedule.state_dict())
    assert again.get_last_lr() == pytest.approx(rates[-1])


def test_at_once() -> None:
    optimizer = SGD([nn.Parameter(wg.ones(1))], lr=0.1)
    schedule = swa_utils.SWALR(optimizer, 0.01, anneal_epochs=0)
    assert schedule.get_last_lr() == [0.01]
    schedule.step()
    assert schedule.get_last_lr() == [0.01]


ERRORS: Situations = {
    "decay": (
        lambda: swa_utils.get_ema_avg_fn(1.5),
        ValueError,
        "get_ema_avg_fn: decay is between 0 and 1, got 1.5",
    ),
    "both": (
        lambda: swa_utils.AveragedModel(
            network(), avg_fn=swa_utils.get_swa_avg_fn(), multi_avg_fn=swa_utils.get_swa_multi_avg_fn()
        ),
        TypeError,
        "AveragedModel: avg_fn and multi_avg_fn given, one of them expected",
    ),
    "model": (
        lambda: swa_utils.AveragedModel(nn.Linear(1, 2)).update_parameters(nn.Linear(2, 2)),
        ValueError,
        "AveragedModel: a model with 2 parameters of shapes [(2, 2), (2,)] given, expected [(2, 1), (2,)] as "
        "in the model that was copied",
    ),
    "strategy": (
        lambda: swa_utils.SWALR(SGD([nn.Parameter(wg.ones(1))], lr=0.1), 0.1, anneal_strategy="exp"),
        ValueError,
        "SWALR: anneal_strategy must be 'cos' or 'linear', got 'exp'",
    ),
    "epochs": (
        lambda: swa_utils.SWALR(SGD([nn.Parameter(wg.ones(1))], lr=0.1), 0.1, anneal_epochs=-1),
        ValueError,
        "SWALR: anneal_epochs is a whole number of at least 0, got -1",
    ),
    "rates": (
        lambda: swa_utils.SWALR(SGD([nn.Parameter(wg.ones(1))], lr=0.1), [0.1, 0.2]),
        ValueError,
        "SWALR: 2 rates for 1 parameter groups",
    ),
}

test_errors = message_tests(ERRORS)
