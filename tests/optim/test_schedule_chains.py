"""Several schedules on one optimiser, and schedules of schedules; `schedule_rates.py` says where their rates
come from.
"""

import copy
from collections import Counter

import pytest
import wengert as wg
from optim.schedule_rates import rates, sgd, walk
from wengert.optim import lr_scheduler as schedules
from wengert.optim.swa_utils import SWALR

PAIRS = {
    "exponential and milestones": (
        lambda o: schedules.ExponentialLR(o, 0.5),
        lambda o: schedules.MultiStepLR(o, [2]),
        [1, 0.5, 0.025, 0.0125, 0.00625],
    ),
    "a milestone given twice": (
        lambda o: schedules.MultiStepLR(o, [1, 3, 1], gamma=0.5),
        lambda o: schedules.StepLR(o, 2, 0.1),
        [1, 0.25, 0.025, 0.0125, 0.00125],
    ),
    "warm-up and decay": (
        lambda o: schedules.LinearLR(o, 0.1, total_iters=4),
        lambda o: schedules.ExponentialLR(o, 0.9),
        [0.1, 0.325 * 0.9, 0.55 * 0.81, 0.775 * 0.729, 0.6561, 0.59049],
    ),
    "constant and polynomial": (
        lambda o: schedules.ConstantLR(o, 0.5, 2),
        lambda o: schedules.PolynomialLR(o, 4, power=2.0),
        [0.5, 0.5 * 9 / 16, 4 / 16, 1 / 16, 0, 0],
    ),
    "multiplicative and steps": (
        lambda o: schedules.MultiplicativeLR(o, lambda t: 1 / t),
        lambda o: schedules.StepLR(o, 2, 10.0),
        [1, 1, 5, 5 / 3, 50 / 12],
    ),
    "the last of what is set absolutely": (
        lambda o: schedules.ExponentialLR(o, 0.5),
        lambda o: schedules.LambdaLR(o, lambda t: 0.9**t),
        [1, 0.9, 0.81, 0.729],
    ),
    "a bottom of zero": (
        lambda o: schedules.CosineAnnealingLR(o, 2),
        lambda o: schedules.StepLR(o, 3, 0.5),
        # At the bottom nothing stands, so the way up begins with the initial rate:
        # 0 + 1 (1 - cos(pi / 2)) / 2.
        [1, 0.5, 0, 0.25, 0.5, 0.25],
    ),
    "a factor of zero": (
        lambda o: schedules.ConstantLR(o, 0.0, 2),
        lambda o: schedules.ExponentialLR(o, 0.5),
        [0, 0, 0.5, 0.25],
    ),
}


@pytest.mark.parametrize("name", list(PAIRS))
@pytest.mark.parametrize("chained", [False, True])
def test_two_schedules_act_on_one_rate(name, chained):
    first, second, expected = PAIRS[name]
    makes = [lambda o: schedules.ChainedScheduler([first(o), second(o)])] if chained else [first, second]
    assert walk(makes, len(expected) - 1) == pytest.approx(expected, abs=1e-15)


CHAINS = {
    "constant, lambda": (
        lambda o: [schedules.ConstantLR(o, 0.1, 3), schedules.LambdaLR(o, lambda t: 0.9**t)],
        [1, 0.9, 0.81],
    ),
    "linear, cosine with a floor": (
        lambda o: [
            schedules.LinearLR(o, 0.1, total_iters=3),
            schedules.CosineAnnealingLR(o, 10, eta_min=0.05),
        ],
        [0.1, 0.39143, 0.63878, 0.80706, 0.67414],
    ),
    "a schedule within": (
        lambda o: [
            schedules.ChainedScheduler([schedules.StepLR(o, 2, 0.5)]),
            schedules.ExponentialLR(o, 0.5),
        ],
        [1, 0.5, 0.125, 0.0625],
    ),
}


@pytest.mark.parametrize("name", list(CHAINS))
def test_chained_schedules(name):
    makes, expected = CHAINS[name]
    found = walk([lambda o: schedules.ChainedScheduler(makes(o), o)], len(expected) - 1)
    assert found == pytest.approx(expected, abs=6e-6)


SEQUENCES = {
    # The step at which a schedule begins sets the initial rate times its own factor.
    "closed forms": (
        lambda o: (
            [schedules.ConstantLR(o, 0.1, 9), schedules.ExponentialLR(o, 0.5), schedules.StepLR(o, 1, 0.3)],
            [2, 4],
        ),
        [0.1, 0.1, 1, 0.5, 1, 0.3, 0.09],
    ),
    "without a closed form": (
        lambda o: ([schedules.ConstantLR(o, 0.5, 2), schedules.MultiplicativeLR(o, lambda t: 0.9)], [3]),
        [0.5, 0.5, 1, 0.9, 0.81],
    ),
    "warm restarts": (
        lambda o: ([schedules.ConstantLR(o, 0.5, 9), schedules.CosineAnnealingWarmRestarts(o, 2)], [2]),
        [0.5, 0.5, 1, 0.5, 1, 0.5],
    ),
    "a chain first": (
        lambda o: (
            [
                schedules.ChainedScheduler([schedules.ConstantLR(o, 0.5, 2),
                    schedules.ExponentialLR(o, 0.5)]),
                schedules.ConstantLR(o, 0.1, 9),
            ],
            [3],
        ),
        [0.5, 0.25, 0.25, 0.1],
    ),
    "a chain later": (
        lambda o: (
            [
                schedules.ConstantLR(o, 0.1, 9),
                schedules.ChainedScheduler([schedules.ConstantLR(o, 0.5, 2),
                    schedules.ExponentialLR(o, 0.5)]),
            ],
            [1],
        ),
        [0.1, 0.5, 0.25, 0.25, 0.125],
    ),
    "a sequence within": (
        lambda o: (
            [
                schedules.ConstantLR(o, 0.1, 9),
                schedules.SequentialLR(o, [schedules.ConstantLR(o, 0.2, 9), schedules.ExponentialLR(o, 0.5)],
                    [1]),
            ],
            [2],
        ),
        [0.1, 0.1, 0.2, 1, 0.5, 0.25],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(SEQUENCES))
def test_sequences(name):
    makes, expected = SEQUENCES[name]
    found = walk([lambda o: schedules.SequentialLR(o, *makes(o))], len(expected) - 1)
    assert found == pytest.approx(expected, abs=1e-15)


def test_a_sequence_and_its_state():
    def make(optimizer):
        return schedules.SequentialLR(
            optimizer,
            [schedules.LinearLR(optimizer, 0.5, total_iters=2), schedules.ExponentialLR(optimizer, 0.5)],
            [3],
        )

    optimizer = sgd(1.0)
    schedule = make(optimizer)
    for _ in range(4):
        schedule.step()
    other = sgd(1.0)
    again = make(other)
    again.load_state_dict(copy.deepcopy(schedule.state_dict()))
    other.load_state_dict(optimizer.state_dict())
    for _ in range(2):
        schedule.step()
        again.step()
    assert rates(other) == rates(optimizer) == [0.125]


STATES = {
    "milestones": lambda o: schedules.MultiStepLR(o, [4, 2, 4]),
    "lambda": lambda o: schedules.LambdaLR(o, lambda t: 1 / (1 + t)),
    "restarts": lambda o: schedules.CosineAnnealingWarmRestarts(o, 1, 2),
    "cycles": lambda o: schedules.CyclicLR(o, 0.1, 1.0, 2, base_momentum=0.5),
    "one cycle": lambda o: schedules.OneCycleLR(o, 1.0, 10),
    "average": lambda o: SWALR(o, 0.1, 4),
    "sequence": lambda o: schedules.SequentialLR(
        o, [schedules.LinearLR(o), schedules.ChainedScheduler([schedules.CosineAnnealingLR(o, 3)])], [2]
    ),
}


@pytest.mark.parametrize("name", list(STATES))
def test_states_are_saved_in_files(name, tmp_path):
    optimizer, other = sgd(1.0, momentum=0.9), sgd(1.0, momentum=0.9)
    schedule, again = STATES[name](optimizer), STATES[name](other)
    for _ in range(3):
        schedule.step()
    wg.save([schedule.state_dict(), optimizer.state_dict()], tmp_path / "states")
    states = wg.load(tmp_path / "states")
    again.load_state_dict(states[0])
    other.load_state_dict(states[1])
    for _ in range(3):
        schedule.step()
        again.step()
    assert again.get_last_lr() == schedule.get_last_lr() == rates(other)


def test_milestones_that_are_counted():
    schedule = schedules.MultiStepLR(sgd(1.0), [2, 4, 4])
    schedule.load_state_dict({**schedule.state_dict(), "milestones": Counter([4, 1, 4])})
    assert schedule.milestones == [1, 4, 4]


def test_a_rate_set_by_hand_stays():
    optimizer = sgd(1.0)
    schedule = schedules.StepLR(optimizer, 10)
    optimizer.param_groups[0]["lr"] = 0.5
    assert schedule.get_last_lr() == [1.0]
    schedule.step()
    assert rates(optimizer) == schedule.get_last_lr() == [0.5]


def test_a_later_schedule_goes_on_from_an_earlier_one():
    optimizer = sgd(1.0)
    first = schedules.ExponentialLR(optimizer, 0.5)
    for _ in range(3):
        first.step()
    schedules.ExponentialLR(optimizer, 0.9).step()
    assert rates(optimizer) == pytest.approx([0.1125])


def test_no_iterations_of_a_constant():
    # The factor is taken off again by the step to `total_iters`, which is the first one already.
    assert walk([lambda o: schedules.ConstantLR(o, 0.5, total_iters=0)], 2) == [0.5, 0.5, 0.5]
    assert walk([lambda o: schedules.LinearLR(o, 0.5, total_iters=0)], 2) == [0.5, 0.5, 0.5]
