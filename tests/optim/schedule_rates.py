"""Optimisers whose rates are looked at step by step. The lists of rates in the tests of schedules are worked
out by hand from each schedule's recurrence.
"""

import wengert as wg
from wengert import optim


def parameter():
    return wg.ones(1).requires_grad_()


def sgd(*rates, momentum=0.0):
    groups = [{"params": [parameter()], "lr": rate} for rate in rates]
    return optim.SGD(groups, lr=7.0, momentum=momentum)


def rates(optimizer):
    return [group["lr"] for group in optimizer.param_groups]


def walk(makes, steps, lr=1.0):
    """The rates after the construction and after each step."""
    optimizer = sgd(lr)
    made = [make(optimizer) for make in makes]
    found = rates(optimizer)
    for _ in range(steps):
        optimizer.step()
        for schedule in made:
            schedule.step()
        found += rates(optimizer)
    return found
