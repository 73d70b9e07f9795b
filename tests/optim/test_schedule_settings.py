"""Schedules that go on from somewhere, groups added later, plateaus, momenta, schedules of one's own, and
errors; `schedule_rates.py` says where their rates come from.
"""

import pytest
import wengert as wg
from optim.schedule_rates import parameter, rates, sgd, walk
from wengert import optim
from wengert.optim import lr_scheduler as schedules
from wengert.optim.swa_utils import SWALR


def test_a_step_that_is_named():
    optimizer = sgd(1.0)
    schedule = schedules.ExponentialLR(optimizer, 0.5)
    schedule.step(3)
    assert rates(optimizer) == [0.125]
    schedule.step()
    assert (rates(optimizer), schedule.last_epoch) == ([0.0625], 4)
    restarts = schedules.CosineAnnealingWarmRestarts(sgd(1.0), 2, 2)
    restarts.step(2.5)
    assert restarts.get_last_lr() == pytest.approx([(1 + 2**0.5 * (2 + 2**0.5) ** 0.5 / 2 / 2**0.5) / 2])
    assert (restarts.T_cur, restarts.T_i, restarts.last_epoch) == (0.5, 4, 2)
    restarts.step()
    assert (restarts.T_cur, restarts.last_epoch) == (1.5, 3)


RESUMED = {
    "exponential": (lambda o, e: schedules.ExponentialLR(o, 0.9, last_epoch=e), 0.729, 0.6561),
    "multiplicative": (
        lambda o, e: schedules.MultiplicativeLR(o, lambda t: 0.9, last_epoch=e),
        0.729,
        0.6561,
    ),
    "linear": (lambda o, e: schedules.LinearLR(o, 0.2, total_iters=8, last_epoch=e), 0.5, 0.5 * 0.7 / 0.6),
    "polynomial": (lambda o, e: schedules.PolynomialLR(o, 8, last_epoch=e), 5 / 8, 5 / 8 * 3 / 4),
    "lambda": (lambda o, e: schedules.LambdaLR(o, lambda t: 1 / (1 + t), last_epoch=e), 1 / 5, 1 / 6),
    "steps": (lambda o, e: schedules.StepLR(o, 2, 0.5, last_epoch=e), 0.25, 0.25),
    "restarts": (lambda o, e: schedules.CosineAnnealingWarmRestarts(o, 2, last_epoch=e), 1.0, 0.5),
}


@pytest.mark.parametrize("name", list(RESUMED))
def test_going_on_from_an_epoch(name):
    """The rate that was loaded stands after the construction, which counts as a step,
    and the next step moves it.
    """
    make, stands, after = RESUMED[name]
    first = sgd(1.0)
    schedule = make(first, -1)
    for _ in range(3):
        schedule.step()
    second = sgd(9.0)
    second.load_state_dict(first.state_dict())
    schedule = make(second, 3)
    assert (rates(second), schedule.last_epoch) == (pytest.approx([stands]), 4)
    schedule.step()
    assert rates(second) == pytest.approx([after])
    with pytest.raises(KeyError, match="group 0 has no 'initial_lr' to continue from"):
        make(sgd(1.0), 3)


LATER = {
    "steps": (lambda o: schedules.StepLR(o, 1, 0.5), [0.25, 0.2]),
    "exponential": (lambda o: schedules.ExponentialLR(o, 0.1), [0.05, 0.04]),
    "lambda": (lambda o: schedules.LambdaLR(o, lambda t: 0.3**t), [0.15, 0.12]),
    "cosine": (lambda o: schedules.CosineAnnealingLR(o, 2), [0.25, 0.2]),
    "restarts": (lambda o: schedules.CosineAnnealingWarmRestarts(o, 2), [0.25, 0.2]),
    "cycles": (lambda o: schedules.CyclicLR(o, 0.1, 0.5, 2, cycle_momentum=False), [0.3, 0.3]),
    "one cycle": (lambda o: schedules.OneCycleLR(o, 1.0, 10, cycle_momentum=False), [0.52, 0.52]),
    "chain": (
        lambda o: schedules.ChainedScheduler([schedules.StepLR(o, 1, 0.5), schedules.ExponentialLR(o, 0.1)]),
        [0.025, 0.02],
    ),
    "average": (lambda o: SWALR(o, 0.1, anneal_epochs=2, anneal_strategy="linear"), [0.3, 0.25]),
}


@pytest.mark.parametrize("name", list(LATER))
def test_groups_added_later_are_scheduled(name):
    make, expected = LATER[name]
    optimizer = sgd(0.5)
    schedule = make(optimizer)
    optimizer.add_param_group({"params": [parameter()], "lr": 0.4})
    schedule.step()
    assert schedule.get_last_lr() == pytest.approx(expected)


def test_a_group_added_later_where_each_has_its_own():
    optimizer = sgd(1.0, 1.0)
    schedule = schedules.LambdaLR(optimizer, [lambda t: 0.5, lambda t: 0.25])
    optimizer.add_param_group({"params": [parameter()]})
    with pytest.raises(ValueError, match="LambdaLR: 2 functions for 3 parameter groups; one was added later"):
        schedule.step()


def test_plateaus_beside_other_schedules():
    optimizer = sgd(1.0)
    decay = schedules.ExponentialLR(optimizer, 0.9)
    plateau = schedules.ReduceLROnPlateau(optimizer, patience=0)
    assert isinstance(plateau, schedules.LRScheduler)
    assert isinstance(plateau, schedules._LRScheduler)
    found = []
    for _ in range(4):
        decay.step()
        plateau.step(1.0)
        found += plateau.get_last_lr()
    assert found == pytest.approx([0.9, 0.081, 0.00729, 0.0006561])


@pytest.mark.parametrize(
    ("mode", "threshold_mode", "values", "bad"),
    [
        # Better is below 0.9 times the best: -4.5, -4.32, -3.96; or above 1.1 times: -5.5, -5.72, -6.16.
        ("min", "rel", [-5, -4.8, -4.4, -3.9, -4.0], [0, 0, 0, 1, 0]),
        ("max", "rel", [-5, -5.2, -5.6, -6.2, -5.0], [0, 0, 0, 1, 0]),
        ("min", "abs", [-5, -5.05, -5.2, -5.15], [0, 1, 0, 1]),
        ("max", "rel", [5, 5.4, 5.6], [0, 1, 0]),
    ],
)
def test_what_a_plateau_counts_as_better(mode, threshold_mode, values, bad):
    settings = dict(mode=mode, threshold_mode=threshold_mode, threshold=0.1, patience=5)
    plateau = schedules.ReduceLROnPlateau(sgd(1.0), **settings)
    for value, expected in zip(values, bad):
        before = plateau.num_bad_epochs
        plateau.step(value)
        assert plateau.num_bad_epochs == (before + 1 if expected else 0), value


def test_least_rates_of_groups():
    optimizer = sgd(1.0, 1.0)
    plateau = schedules.ReduceLROnPlateau(optimizer, patience=0, min_lr=[0.5, 0.01])
    for _ in range(4):
        plateau.step(1.0)
    assert rates(optimizer) == pytest.approx([0.5, 0.01])


def test_one_cycle_of_groups():
    optimizer = sgd(1.0, 1.0, momentum=0.9)
    schedule = schedules.OneCycleLR(
        optimizer, [1.0, 2.0], 10, base_momentum=[0.8, 0.7], max_momentum=[0.9, 0.95]
    )
    for group, top, low, high in zip(optimizer.param_groups, (1.0, 2.0), (0.8, 0.7), (0.9, 0.95)):
        assert (group["max_lr"], group["initial_lr"], group["min_lr"]) == pytest.approx(
            (top, top / 25, top / 25e4)
        )
        assert (group["lr"], group["momentum"]) == pytest.approx((top / 25, high))
        assert (group["base_momentum"], group["max_momentum"]) == (low, high)
    schedule.step()
    # Half of the way up, which takes 0.3 * 10 - 1 = 2 steps.
    assert rates(optimizer) == pytest.approx([0.52, 1.04])
    assert [group["momentum"] for group in optimizer.param_groups] == pytest.approx([0.85, 0.825])
    with pytest.raises(ValueError, match="OneCycleLR: 1 max_lr for 2 parameter groups"):
        schedules.OneCycleLR(optimizer, [1.0], 10)


def test_momenta_of_cycles():
    optimizer = sgd(1.0, 1.0, momentum=0.9)
    schedule = schedules.CyclicLR(optimizer, 0.1, 1.0, 2, base_momentum=[0.8, 0.6], max_momentum=[0.9, 0.8])
    schedule.step()
    assert [group["momentum"] for group in optimizer.param_groups] == pytest.approx([0.85, 0.7])


class Counted:
    """A function with a state."""

    def __init__(self, rate):
        self.rate, self.calls = rate, 0

    def __call__(self, t):
        self.calls += 1
        return self.rate**t


@pytest.mark.parametrize(
    "make",
    [
        lambda o, f: schedules.LambdaLR(o, f),
        lambda o, f: schedules.MultiplicativeLR(o, f),
        lambda o, f: schedules.CyclicLR(
            o, 0.1, 1.0, 2, scale_fn=f, scale_mode="iterations", cycle_momentum=False
        ),
    ],
    ids=["lambda", "multiplicative", "cyclic"],
)
def test_functions_that_are_objects_are_saved(make):
    function, other = Counted(0.5), Counted(0.9)
    schedule = make(sgd(1.0), function)
    schedule.step()
    make(sgd(1.0), other).load_state_dict(schedule.state_dict())
    assert (other.rate, other.calls) == (0.5, function.calls)
    make(sgd(1.0), lambda t: 1.0).load_state_dict(make(sgd(1.0), lambda t: 0.5).state_dict())


class Halved(schedules.LRScheduler):
    """A schedule of one's own."""

    def get_lr(self):
        share = 1.0 if self.last_epoch == 0 else 0.5
        return [group["lr"] * share for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self):
        return [base * 0.5**self.last_epoch for base in self.base_lrs]


def test_a_schedule_of_ones_own():
    assert walk([Halved, lambda o: schedules.StepLR(o, 2, 0.1)], 3) == pytest.approx([1, 0.5, 0.025, 0.0125])
    sequence = lambda o: schedules.SequentialLR(o, [schedules.ConstantLR(o, 0.1, 9), Halved(o)], [2])
    assert walk([sequence], 4) == pytest.approx([0.1, 0.1, 1, 0.5, 0.25])
    with pytest.raises(NotImplementedError, match="LRScheduler has no get_lr"):
        schedules.LRScheduler(sgd(1.0))


def test_rates_that_are_tensors_change_in_place():
    rate = wg.tensor(1.0)
    p = parameter()
    p.grad = wg.ones(1)
    optimizer = optim.SGD([p], lr=rate)
    schedule = schedules.ExponentialLR(optimizer, 0.5)
    schedule.step()
    optimizer.step()
    assert optimizer.param_groups[0]["lr"] is rate
    assert (rate.item(), optimizer.param_groups[0]["initial_lr"].item(), p.item()) == (0.5, 1.0, 0.5)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda o: schedules.StepLR("sgd", 1), TypeError, "StepLR: an Optimizer expected, got str"),
        (lambda o: schedules.StepLR(o, 0), ValueError, "StepLR: step_size must be positive, got 0"),
        (lambda o: schedules.ConstantLR(o, 2.0), ValueError,
            r"ConstantLR: factor in \[0, 1\] expected, got 2.0"),
        (lambda o: schedules.LambdaLR(o, 0.5), TypeError,
            "LambdaLR: a function of the step expected, got float"),
        (lambda o: schedules.LambdaLR(o, [abs, abs]), ValueError,
            "LambdaLR: 2 functions for 1 parameter groups"),
        (
            lambda o: schedules.ChainedScheduler([schedules.ReduceLROnPlateau(o)]),
            ValueError,
            "ChainedScheduler: ReduceLROnPlateau needs a measurement at each step; step it by itself",
        ),
        (
            lambda o: schedules.SequentialLR(o, [schedules.StepLR(sgd(1.0), 1)], []),
            ValueError,
            "SequentialLR: all schedulers must belong to one optimiser, the given one",
        ),
        (lambda o: schedules.ChainedScheduler([]), ValueError,
            "ChainedScheduler: one schedule or more expected"),
        (lambda o: schedules.ReduceLROnPlateau(3), TypeError,
            "ReduceLROnPlateau: an Optimizer expected, got int"),
    ],
)  # fmt: skip
def test_errors(make, error, text):
    with pytest.raises(error, match=text):
        make(sgd(1.0))
