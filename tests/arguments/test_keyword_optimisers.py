"""Keywords of optimisers and schedules: against their formulas in NumPy and rates worked out by hand."""

import math
from typing import Any

import numpy as np
import pytest
import references.optim_reference as by_hand
import wengert as wg
from wengert import nn, optim
from wengert.optim import lr_scheduler as schedules, swa_utils

from arguments.rows import Array, Function, near


def decoupled(*args: Any, **settings: Any) -> Array:
    return by_hand.adam(*args, **settings, decoupled=True)


OPTIMISERS: list[tuple[Any, Function, dict[str, Any]]] = [
    (optim.SGD, by_hand.sgd, dict(lr=0.1, momentum=0.9, weight_decay=0.2, maximize=True)),
    (optim.Adam, by_hand.adam, dict(lr=0.1, eps=0.1, weight_decay=0.2, maximize=True)),
    (optim.AdamW, decoupled, dict(lr=0.1, eps=0.1, weight_decay=0.2, maximize=True)),
    (optim.Adagrad, by_hand.adagrad, dict(lr=0.1, eps=0.1, weight_decay=0.2, maximize=True)),
    (optim.Adadelta, by_hand.adadelta, dict(lr=0.1, eps=0.1, weight_decay=0.2, maximize=True)),
    (optim.RMSprop, by_hand.rmsprop, dict(lr=0.1, eps=0.1, weight_decay=0.2, maximize=True)),
    (optim.Adamax, by_hand.adamax, dict(lr=0.1, eps=0.1, weight_decay=0.2, maximize=True)),
    (optim.NAdam, by_hand.nadam, dict(lr=0.1, eps=0.1, weight_decay=0.2, maximize=True)),
    (optim.RAdam, by_hand.radam, dict(lr=0.1, eps=0.1, betas=(0.8, 0.9), weight_decay=0.2, maximize=True)),
    (optim.Rprop, by_hand.rprop, dict(lr=0.1, etas=(0.4, 1.5), step_sizes=(0.02, 0.11), maximize=True)),
    (optim.ASGD, by_hand.asgd, dict(lr=0.1, lambd=0.1, alpha=0.6, weight_decay=0.2, maximize=True)),
    (optim.Adafactor, by_hand.adafactor, dict(lr=0.1, d=1.5, weight_decay=0.2, maximize=True)),
]


def stepped(formula: Function, steps: int = 6, maximize: bool = False, **settings: Any) -> list[Array]:
    """The parameters after some steps: up the gradient is down its negative."""
    params, states = by_hand.start(), [{} for _ in by_hand.SHAPES]
    for grads in by_hand.gradients(steps):
        signed = [-g if maximize else g for g in grads]
        params = [formula(p, g, s, **settings) for p, g, s in zip(params, signed, states)]
    return params


@pytest.mark.parametrize(
    ("make", "formula", "settings"), OPTIMISERS, ids=lambda x: getattr(x, "__name__", "")
)
def test_every_setting_counts(make: Any, formula: Function, settings: dict[str, Any]) -> None:
    near(by_hand.run(make, settings, wg.float64, steps=6)[0], stepped(formula, **settings), 1e-7)
    for keyword in settings:
        rest = {k: v for k, v in settings.items() if k != keyword}
        moved = by_hand.run(make, rest, wg.float64, steps=6)[0]
        expected = stepped(formula, **settings)
        assert any(np.abs(x.detach().numpy() - y).max() > 1e-5 for x, y in zip(moved, expected)), keyword


# Ways of computing a step, of which there is one.
IMPLEMENTATIONS = [
    (optim.SGD, dict(foreach=True, fused=True)),
    (optim.Adam, dict(foreach=True, fused=True, capturable=True)),
    (optim.AdamW, dict(foreach=True, fused=True, capturable=True)),
    (optim.Adagrad, dict(foreach=True, fused=True)),
    (optim.Adadelta, dict(foreach=True, capturable=True)),
    (optim.RMSprop, dict(foreach=True, capturable=True)),
    (optim.Adamax, dict(foreach=True, capturable=True)),
    (optim.NAdam, dict(foreach=True, capturable=True)),
    (optim.RAdam, dict(foreach=True, capturable=True)),
    (optim.Rprop, dict(foreach=True, capturable=True)),
    (optim.ASGD, dict(foreach=True, capturable=True)),
    (optim.Adafactor, dict(foreach=True)),
]


@pytest.mark.parametrize(("make", "settings"), IMPLEMENTATIONS, ids=lambda x: getattr(x, "__name__", ""))
def test_settings_of_implementations_are_accepted(make: Any, settings: dict[str, Any]) -> None:
    plain = by_hand.run(make, dict(lr=0.1), wg.float64, steps=2)[0]
    for keyword, value in settings.items():
        near(
            by_hand.run(make, {"lr": 0.1, keyword: value}, wg.float64, steps=2)[0],
            [p.detach().numpy() for p in plain],
        )


RECORDED = [
    (optim.SGD, dict(differentiable=True)), (optim.Adam, dict(differentiable=True)),
    (optim.AdamW, dict(differentiable=True)), (optim.Adagrad, dict(differentiable=True)),
    (optim.Adadelta, dict(differentiable=True)), (optim.RMSprop, dict(differentiable=True)),
    (optim.Adamax, dict(differentiable=True)), (optim.NAdam, dict(differentiable=True)),
    (optim.RAdam, dict(differentiable=True)), (optim.Rprop, dict(differentiable=True)),
    (optim.ASGD, dict(differentiable=True)),
]  # fmt: skip


@pytest.mark.parametrize(("make", "settings"), RECORDED, ids=lambda x: getattr(x, "__name__", ""))
def test_recorded_steps_are_refused(make: Any, settings: dict[str, Any]) -> None:
    with pytest.raises((ValueError, NotImplementedError), match="differentiable"):
        make([nn.Parameter(wg.ones(2))], **settings)


def muon(
    p: Array, g: Array, m: Array, momentum: float = 0.95, eps: float = 1e-7, ns_steps: int = 5,
    ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
) -> tuple[Array, Array]:  # fmt: skip
    """One step of rate 0.1 without decay for a wide matrix: what singular values become,
    not what matrices do.
    """
    m = momentum * m + (1 - momentum) * g
    u, s, v = np.linalg.svd((1 - momentum) * g + momentum * m, full_matrices=False)
    s = s / max(np.linalg.norm(s), eps)
    a, b, c = ns_coefficients
    for _ in range(ns_steps):
        s = a * s + b * s**3 + c * s**5
    return p - 0.1 * (u * s) @ v, m


def test_muon() -> None:
    settings = dict(momentum=0.7, eps=5.0, ns_steps=3, ns_coefficients=(2.0, -1.5, 0.5))

    def run(**settings: Any) -> Array:
        p = nn.Parameter(wg.tensor(np.ones((2, 3))))
        optimizer = optim.Muon([p], lr=0.1, weight_decay=0.0, **settings)
        for seed in range(3):
            p.grad = wg.tensor(np.random.default_rng(seed).standard_normal((2, 3)))
            optimizer.step()
        return p.detach().numpy()

    p, m = np.ones((2, 3)), np.zeros((2, 3))
    for seed in range(3):
        p, m = muon(p, np.random.default_rng(seed).standard_normal((2, 3)), m, **settings)
    near(run(**settings), p)
    for keyword in settings:
        assert np.abs(run(**{k: v for k, v in settings.items() if k != keyword}) - p).max() > 1e-4, keyword
    # The same settings by name, which the table of keywords reads.
    optim.Muon(
        [nn.Parameter(wg.ones(2, 2))], momentum=0.7, eps=5.0, ns_steps=3, ns_coefficients=(2.0, -1.5, 0.5)
    )


MATRIX = np.array([[3.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]])


def bowl(sign: float = 1.0, steps: int = 1, **settings: Any) -> tuple[Array, int]:
    """Where L-BFGS goes on a quadratic (or up its negative), and how often it asked for the loss."""
    x, calls = wg.tensor([1.0, -2.0, 0.5], dtype=wg.float64, requires_grad=True), 0
    optimizer = optim.LBFGS([x], **{"lr": 0.2, **settings})

    def closure() -> wg.Tensor:
        nonlocal calls
        calls += 1
        optimizer.zero_grad()
        loss = sign * 0.5 * x @ wg.tensor(MATRIX) @ x
        loss.backward()
        return loss

    for _ in range(steps):
        optimizer.step(closure)
    return x.detach().numpy(), calls


def quasi_newton(history_size: int, iterations: int) -> Array:
    """The same by the inverse Hessian as a dense matrix, made anew from the last pairs."""
    x, pairs, last, slope = np.array([1.0, -2.0, 0.5]), [], np.zeros(3), np.zeros(3)
    for k in range(iterations):
        g = MATRIX @ x
        if k:
            pairs = [*pairs, (x - last, g - slope)][-history_size:]
        inverse = np.eye(3) * (pairs[-1][0] @ pairs[-1][1] / (pairs[-1][1] @ pairs[-1][1]) if pairs else 1.0)
        for s, y in pairs:
            part = np.eye(3) - np.outer(y, s) / (s @ y)
            inverse = part.T @ inverse @ part + np.outer(s, s) / (s @ y)
        last, slope = x, g
        x = x - (0.2 * min(1.0, 1 / np.abs(g).sum()) if k == 0 else 0.2) * inverse @ g
    return x


def test_lbfgs() -> None:
    for history_size in (1, 2, 100):
        near(bowl(max_iter=6, history_size=history_size)[0], quasi_newton(history_size, 6), 1e-8)
    assert np.abs(quasi_newton(1, 6) - quasi_newton(100, 6)).max() > 1e-4
    near(bowl(-1.0, max_iter=6, maximize=True)[0], quasi_newton(100, 6), 1e-8)
    assert bowl(max_iter=20, max_eval=4)[1] == 4
    # Gradients of at most 10 are small enough, so nothing moves.
    assert bowl(tolerance_grad=10.0)[1] == 1
    near(bowl(tolerance_grad=10.0)[0], np.array([1.0, -2.0, 0.5]))
    # The first step is no longer than its rate, and so the last one.
    near(bowl(tolerance_change=0.3)[0], quasi_newton(100, 1))
    optim.LBFGS([nn.Parameter(wg.ones(2))], max_eval=4, tolerance_grad=10.0, tolerance_change=0.3)
    optim.LBFGS([nn.Parameter(wg.ones(2))], history_size=1, maximize=True)


def rates(
    make: Function, steps: int = 8, key: str = "lr", lr: float = 1.0, initial: float | None = None
) -> list[Any]:
    """The rates of a schedule from its construction on; with `initial`,
    of an optimiser that has gone some way.
    """
    group = {"params": [nn.Parameter(wg.ones(1))], "lr": lr}
    if initial is not None:
        group.update(
            initial_lr=initial, max_lr=2.0, min_lr=0.1, base_momentum=0.8, max_momentum=0.9, swa_lr=0.25
        )
        group.update(base_lr=0.5)
    optimizer = optim.SGD([group], lr=lr, momentum=0.9)
    schedule, found = make(optimizer), []
    for _ in range(steps):
        found.append(optimizer.param_groups[0][key])
        optimizer.step()
        schedule.step()
    return found


UP = lambda t: 1 - abs(t % 8 / 4 - 1)
CYCLE = dict(base_lr=0.5, max_lr=2.0, step_size_up=4)
SETTINGS: list[tuple[Any, dict[str, Any], dict[str, Any], list[float]]] = [
    (schedules.LinearLR, {}, dict(start_factor=0.2, end_factor=0.8, total_iters=3),
        [0.2, 0.4, 0.6, 0.8, 0.8, 0.8]),
    (schedules.ConstantLR, {}, dict(factor=0.3, total_iters=2), [0.3, 0.3, 1, 1, 1, 1]),
    (schedules.CosineAnnealingWarmRestarts, {}, dict(T_0=2, T_mult=2, eta_min=0.2),
     [1, 0.6, 1, 0.6 + 0.4 * math.cos(math.pi / 4), 0.6, 0.6 - 0.4 * math.cos(math.pi / 4)]),
    (schedules.CyclicLR, CYCLE, dict(mode="exp_range", gamma=0.9),
        [0.5 + 1.5 * UP(t) * 0.9**t for t in range(6)]),
    (schedules.CyclicLR, CYCLE, dict(scale_fn=lambda t: 0.8**t, scale_mode="iterations"),
     [0.5 + 1.5 * UP(t) * 0.8**t for t in range(6)]),
    (schedules.OneCycleLR, dict(max_lr=2.0, total_steps=6, anneal_strategy="linear", pct_start=0.5),
     dict(div_factor=4.0, final_div_factor=5.0), [0.5, 1.25, 2, 2 - 1.9 / 3, 2 - 3.8 / 3, 0.1]),
]  # fmt: skip


@pytest.mark.parametrize(("make", "needed", "settings", "expected"), SETTINGS)
def test_settings_of_schedules(
    make: Any, needed: Any, settings: dict[str, Any], expected: list[float]
) -> None:
    assert rates(lambda o: make(o, **needed, **settings), 6) == pytest.approx(expected)
    for keyword in settings:
        if keyword == "T_0":
            continue
        rest = {k: v for k, v in settings.items() if k != keyword}
        assert rates(lambda o, rest=rest: make(o, **needed, **rest), 6) != pytest.approx(expected), keyword


MOMENTA = [
    (schedules.CyclicLR, CYCLE, dict(base_momentum=0.5, max_momentum=0.7),
        [0.7 - 0.2 * UP(t) for t in range(6)]),
    (schedules.CyclicLR, CYCLE, dict(cycle_momentum=False), [0.9] * 6),
    (schedules.OneCycleLR, dict(max_lr=2.0, total_steps=6, anneal_strategy="linear", pct_start=0.5),
     dict(base_momentum=0.5, max_momentum=0.7), [0.7, 0.6, 0.5, 0.5 + 0.2 / 3, 0.5 + 0.4 / 3, 0.7]),
    (schedules.OneCycleLR, dict(max_lr=2.0, total_steps=6), dict(cycle_momentum=False), [0.9] * 6),
]  # fmt: skip


@pytest.mark.parametrize(("make", "needed", "settings", "expected"), MOMENTA)
def test_momenta_of_schedules(
    make: Any, needed: Any, settings: dict[str, Any], expected: list[float]
) -> None:
    assert rates(lambda o: make(o, **needed, **settings), 6, "momentum") == pytest.approx(expected)
    for keyword in settings:
        rest = {k: v for k, v in settings.items() if k != keyword}
        again = rates(lambda o, rest=rest: make(o, **needed, **rest), 6, "momentum")
        assert again != pytest.approx(expected), keyword


class Halves(schedules.LRScheduler):
    """A schedule of one's own."""

    def get_lr(self) -> list[float]:
        return [base * 0.5**self.last_epoch for base in self.base_lrs]


# What goes on at step 4 of the schedules that begin with the rate 1.
RESUMED: list[tuple[str, dict[str, int], Function]] = [
    ("ConstantLR", dict(last_epoch=3), lambda o, **k: schedules.ConstantLR(o, 0.5, 6, **k)),
    (
        "CosineAnnealingWarmRestarts",
        dict(last_epoch=3),
        lambda o, **k: schedules.CosineAnnealingWarmRestarts(o, 3, 2, **k),
    ),
    ("CyclicLR", dict(last_epoch=3), lambda o, **k: schedules.CyclicLR(o, 0.5, 2.0, 3, **k)),
    ("LRScheduler", dict(last_epoch=3), Halves),
    ("MultiStepLR", dict(last_epoch=3), lambda o, **k: schedules.MultiStepLR(o, [2, 5], 0.5, **k)),
    ("OneCycleLR", dict(last_epoch=3), lambda o, **k: schedules.OneCycleLR(o, 2.0, 12, **k)),
    ("StepLR", dict(last_epoch=3), lambda o, **k: schedules.StepLR(o, 2, 0.5, **k)),
]


@pytest.mark.parametrize(("name", "settings", "make"), RESUMED)
def test_schedules_go_on(name: str, settings: dict[str, int], make: Function) -> None:
    whole = rates(make, 8)
    group = dict(params=[nn.Parameter(wg.ones(1))], lr=1.0)
    first = optim.SGD([group], lr=1.0, momentum=0.9)
    schedule = make(first)
    for _ in range(3):
        first.step()
        schedule.step()
    # The settings of the group come along, as in the state of an optimiser; the next step is the fourth.
    second = optim.SGD([{**first.param_groups[0]}], lr=1.0, momentum=0.9)
    schedule, found = make(second, **settings), []
    for _ in range(4):
        found.append(second.param_groups[0]["lr"])
        second.step()
        schedule.step()
    assert found == pytest.approx(whole[4:8])
    assert whole[4:8] != pytest.approx(whole[:4])


def test_a_cosine_goes_on() -> None:
    """The rate that stands counts as the fourth step; the fifth multiplies its height above the least."""
    optimizer = optim.SGD([{"params": [nn.Parameter(wg.ones(1))], "initial_lr": 1.0}], lr=0.6)
    schedule = schedules.CosineAnnealingLR(optimizer, 7, eta_min=0.1, last_epoch=3)
    assert schedule.get_last_lr() == [0.6]
    schedule.step()
    height = (1 + math.cos(5 / 7 * math.pi)) / (1 + math.cos(4 / 7 * math.pi))
    assert schedule.get_last_lr() == pytest.approx([0.1 + 0.5 * height])


def test_combined_schedules_go_on() -> None:
    """A sequence stands at the step after `last_epoch`, its parts at their beginnings."""

    def make(optimizer: optim.Optimizer, **settings: Any) -> Any:
        parts = [schedules.ConstantLR(optimizer, 0.5, 100), schedules.ExponentialLR(optimizer, 0.9)]
        return schedules.SequentialLR(optimizer, parts, [4], **{"last_epoch": -1, **settings})

    assert rates(make, 6) == pytest.approx([0.5] * 4 + [1.0, 0.9])
    assert rates(lambda o: make(o, last_epoch=2), 4) == pytest.approx([0.5, 1.0, 0.9, 0.81])
    optimizer = optim.SGD([{"params": [nn.Parameter(wg.ones(1))], "initial_lr": 1.0}], lr=1.0)
    averaged = swa_utils.SWALR(optimizer, 0.0, anneal_epochs=4, anneal_strategy="linear", last_epoch=2)
    assert averaged.last_epoch == 3
    other = optim.SGD([nn.Parameter(wg.ones(1))], lr=1.0)
    part = schedules.ConstantLR(optimizer)
    assert schedules.ChainedScheduler([part], optimizer=optimizer).optimizer is optimizer
    with pytest.raises(ValueError, match="optimi"):
        schedules.ChainedScheduler([part], optimizer=other)


# Measurements, and the rates after each of them with a patience of 0.
PLATEAUS: list[tuple[Any, dict[str, Any], list[float], list[float]]] = [
    (schedules.ReduceLROnPlateau, dict(mode="max"), [1.0, 2.0, 3.0, 2.0], [1, 1, 1, 0.1]),
    (schedules.ReduceLROnPlateau, dict(threshold=0.5), [10.0, 8.0, 4.0], [1, 0.1, 0.1]),
    (schedules.ReduceLROnPlateau, dict(threshold=0.5, threshold_mode="abs"), [10.0, 8.0, 7.8], [1, 1, 0.1]),
    (schedules.ReduceLROnPlateau, dict(min_lr=0.3), [1.0, 1.0, 1.0], [1, 0.3, 0.3]),
    (schedules.ReduceLROnPlateau, dict(eps=0.5), [1.0, 1.0, 1.0], [1, 0.1, 0.1]),
    (schedules.ReduceLROnPlateau, dict(factor=0.5, cooldown=1), [1.0, 1.0, 1.0, 1.0], [1, 0.5, 0.5, 0.25]),
]


@pytest.mark.parametrize(("make", "settings", "metrics", "expected"), PLATEAUS)
def test_plateaus(make: Any, settings: dict[str, Any], metrics: list[float], expected: list[float]) -> None:
    def run(**settings: Any) -> list[float]:
        optimizer = optim.SGD([nn.Parameter(wg.ones(1))], lr=1.0)
        schedule, found = make(optimizer, patience=0, **settings), []
        for metric in metrics:
            schedule.step(metric)
            found.append(optimizer.param_groups[0]["lr"])
        return found

    assert run(**settings) == pytest.approx(expected)
    for keyword in settings:
        rest = {k: v for k, v in settings.items() if k != keyword}
        assert run(**rest) != pytest.approx(expected, abs=1e-3), keyword


def test_norms_of_gradients() -> None:
    assert nn.utils.get_total_norm([wg.tensor([3.0]), wg.tensor([-4.0])], norm_type=1.0).item() == 7.0
    assert nn.utils.get_total_norm([wg.tensor([3.0]), wg.tensor([np.inf])]).item() == np.inf
    with pytest.raises(RuntimeError, match="finite"):
        nn.utils.get_total_norm([wg.tensor([3.0]), wg.tensor([np.inf])], error_if_nonfinite=True)
    assert nn.utils.get_total_norm([wg.tensor([3.0]), wg.tensor([-4.0])], foreach=True).item() == 5.0
