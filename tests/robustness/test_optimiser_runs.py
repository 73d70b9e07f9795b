"""Random training runs: optimisers, settings of groups, schedules, rates set by hand, missing gradients,
groups that come later, and resumption, against recurrences of plain numbers.

The references know parameters, states and rates as arrays and numbers: `optim_reference.py` has the updates,
`schedule_reference.py` the rates.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import wengert as wg
from hypothesis import given, strategies as st
from references.optim_reference import CASES
from references.schedule_reference import moved
from support import examples
from wengert import optim
from wengert.optim import lr_scheduler

SHAPES = [(2, 2), (3,), ()]
NAMES = sorted(name for name in CASES if not name.startswith("adafactor"))
SHARES = st.floats(0.1, 1.0)


def settings_of(**values: Any) -> Any:
    return st.fixed_dictionaries(values)


#: The settings of each schedule, as a strategy.
SCHEDULES: dict[str, Any] = {
    "StepLR": settings_of(step_size=st.integers(1, 4), gamma=SHARES),
    "MultiStepLR": settings_of(milestones=st.lists(st.integers(0, 8), max_size=4), gamma=SHARES),
    "ConstantLR": settings_of(factor=SHARES, total_iters=st.integers(1, 5)),
    "LinearLR": settings_of(
        start_factor=SHARES, end_factor=st.floats(0.0, 1.0), total_iters=st.integers(1, 6)
    ),
    "ExponentialLR": settings_of(gamma=st.floats(0.3, 1.1)),
    "PolynomialLR": settings_of(total_iters=st.integers(1, 6), power=st.floats(0.5, 2.5)),
    "CosineAnnealingLR": settings_of(T_max=st.integers(1, 6), eta_min=st.sampled_from([0.0, 0.05])),
    "MultiplicativeLR": SHARES.map(lambda c: {"lr_lambda": lambda t: 1 - c / (1 + t)}),
    "LambdaLR": SHARES.map(lambda c: {"lr_lambda": lambda t: c**t}),
    "CosineAnnealingWarmRestarts": settings_of(
        T_0=st.integers(1, 4), T_mult=st.integers(1, 3), eta_min=st.sampled_from([0.0, 0.05])
    ),
    "CyclicLR": settings_of(
        base_lr=st.floats(0.01, 0.1),
        max_lr=st.floats(0.2, 1.0),
        step_size_up=st.integers(1, 4),
        mode=st.sampled_from(["triangular", "triangular2"]),
        cycle_momentum=st.just(False),
    ),
}
ONE_SCHEDULE = st.sampled_from(sorted(SCHEDULES)).flatmap(lambda n: st.tuples(st.just(n), SCHEDULES[n]))

EVENTS = ("step", "step", "step", "set by hand", "no gradient", "add a group", "resume")


class Model:
    """Groups of arrays with states and rates."""

    def __init__(self, case: str, plans: list[tuple[str, dict[str, Any]]]) -> None:
        self.case, self.plans, self.t = case, plans, 0
        self.values: list[list[Any]] = []
        self.states: list[list[dict[str, Any]]] = []
        self.rates: list[float] = []
        self.bases: list[float] = []

    def add(self, arrays: list[Any], rate: float) -> None:
        self.values.append([x.copy() for x in arrays])
        self.states.append([{} for _ in arrays])
        self.rates.append(rate)
        self.bases.append(rate)

    def update(self, grads: list[list[Any]]) -> None:
        _, formula, settings = CASES[self.case]
        for i, group in enumerate(grads):
            for k, g in enumerate(group):
                if g is not None:
                    given = {**settings, "lr": self.rates[i]}
                    self.values[i][k] = formula(self.values[i][k], g, self.states[i][k], **given)

    def schedule(self, t: int) -> None:
        self.t = t
        for name, settings in self.plans:
            for i, base in enumerate(self.bases):
                self.rates[i] = moved(name, settings, t, self.rates[i], base)


class Run:
    """The same run in the library and in the model."""

    def __init__(
        self, case: str, plans: list[tuple[str, dict[str, Any]]], rates: list[float], seed: int
    ) -> None:
        self.rng = np.random.default_rng(seed)
        self.model = Model(case, plans)
        groups = []
        for rate in rates:
            arrays = [np.asarray(self.rng.standard_normal(shape)) for shape in SHAPES]
            self.model.add(arrays, rate)
            groups.append({"params": [wg.tensor(x, requires_grad=True) for x in arrays], "lr": rate})
        self.optimizer = self.made(groups)
        self.schedules = self.scheduled(self.optimizer)
        # A cycle begins from rates of its own, which are the initial ones where no schedule came before.
        if plans and plans[0][0] == "CyclicLR":
            self.model.bases = [plans[0][1]["base_lr"]] * len(rates)
        self.model.schedule(0)

    def made(self, groups: list[dict[str, Any]]) -> optim.Optimizer:
        make, _, settings = CASES[self.model.case]
        return make(groups, **settings)

    def scheduled(self, optimizer: optim.Optimizer) -> list[lr_scheduler.LRScheduler]:
        return [getattr(lr_scheduler, name)(optimizer, **settings) for name, settings in self.model.plans]

    def step(self, missing: bool) -> None:
        grads: list[list[Any]] = []
        for i, group in enumerate(self.optimizer.param_groups):
            grads.append([np.asarray(self.rng.standard_normal(tuple(p.shape))) for p in group["params"]])
            if missing:
                grads[i][i % len(SHAPES)] = None
            for p, g in zip(group["params"], grads[i]):
                p.grad = None if g is None else wg.tensor(g)
        self.optimizer.step()
        self.model.update(grads)
        for schedule in self.schedules:
            schedule.step()
        self.model.schedule(self.model.t + 1)

    def add_group(self, rate: float) -> None:
        arrays = [np.asarray(self.rng.standard_normal(shape)) for shape in SHAPES]
        self.model.add(arrays, rate)
        params = [wg.tensor(x, requires_grad=True) for x in arrays]
        self.optimizer.add_param_group({"params": params, "lr": rate})

    def resume(self) -> None:
        """Goes on with new objects, which take over the states."""
        saved = copy.deepcopy([self.optimizer.state_dict(), *[s.state_dict() for s in self.schedules]])
        groups = [
            {"params": [p.detach().clone().requires_grad_() for p in group["params"]]}
            for group in self.optimizer.param_groups
        ]
        self.optimizer = self.made(groups)
        self.schedules = self.scheduled(self.optimizer)
        for schedule, state in zip(self.schedules, saved[1:]):
            schedule.load_state_dict(state)
        self.optimizer.load_state_dict(saved[0])

    def check(self) -> None:
        for i, group in enumerate(self.optimizer.param_groups):
            assert group["lr"] == pytest.approx(self.model.rates[i], rel=1e-9, abs=1e-12)
            for p, expected in zip(group["params"], self.model.values[i]):
                np.testing.assert_allclose(p.detach().numpy(), expected, rtol=1e-6, atol=1e-9)
        for schedule in self.schedules[-1:]:
            assert schedule.get_last_lr() == [group["lr"] for group in self.optimizer.param_groups]


@examples(100)
@given(
    case=st.sampled_from(NAMES),
    plans=st.lists(ONE_SCHEDULE, max_size=3),
    rates=st.lists(st.floats(0.01, 0.5), min_size=1, max_size=2),
    events=st.lists(st.tuples(st.sampled_from(EVENTS), st.floats(0.01, 0.5)), min_size=3, max_size=10),
    seed=st.integers(0, 2**32 - 1),
)
def test_runs(
    case: str,
    plans: list[tuple[str, dict[str, Any]]],
    rates: list[float],
    events: list[tuple[str, float]],
    seed: int,
) -> None:
    # Cycles set the rate they begin with, so only the first of the schedules may be one.
    plans = plans[:1] + [plan for plan in plans[1:] if plan[0] != "CyclicLR"]
    run = Run(case, plans, rates, seed)
    for name, rate in events:
        if name == "set by hand":
            run.optimizer.param_groups[0]["lr"] = run.model.rates[0] = rate
        elif name == "add a group":
            run.add_group(rate)
        elif name == "resume":
            run.resume()
        run.step(missing=name == "no gradient")
        run.check()
