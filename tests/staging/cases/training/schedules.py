"""Schedules of rates, of the library and one's own, inside and outside of a program."""

import wengert as wg
from staging.comparing import case
from wengert import optim
from wengert.optim import lr_scheduler as schedules


def ones():
    return wg.ones(2)


def trained(jit, optimizer, schedule, weight):
    """A staged step with a schedule inside."""

    @jit
    def step(x):
        optimizer.zero_grad()
        (weight * weight * x).sum().backward()
        optimizer.step()
        schedule.step()
        return weight.detach() * 1

    return step


def sgd(**settings):
    weight = wg.ones(2, requires_grad=True)
    return weight, optim.SGD([weight], lr=0.1, **settings)


def scheduled(name, make):
    """A case for a schedule, which is part of a program."""

    def body(jit):
        weight, optimizer = sgd(momentum=0.9)
        schedule = make(optimizer)
        step = trained(jit, optimizer, schedule, weight)
        for _ in range(8):
            yield step(ones())
            yield optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"]
        yield schedule.last_epoch if hasattr(schedule, "last_epoch") else None

    body.__name__ = name
    case(body, traces=1)


def sequence(optimizer):
    parts = [schedules.ConstantLR(optimizer, 0.1, 2), schedules.ExponentialLR(optimizer, 0.9)]
    return schedules.SequentialLR(optimizer, parts, [2])


def chain(optimizer):
    return schedules.ChainedScheduler(
        [schedules.ConstantLR(optimizer, 0.1, 2), schedules.ExponentialLR(optimizer, 0.9)]
    )


scheduled("cosine", lambda optimizer: schedules.CosineAnnealingLR(optimizer, 5))
scheduled("warm_restarts", lambda optimizer: schedules.CosineAnnealingWarmRestarts(optimizer, 2))
scheduled("by_a_function", lambda optimizer: schedules.LambdaLR(optimizer, lambda epoch: 1 / (epoch + 1)))
scheduled("by_factors", lambda optimizer: schedules.MultiplicativeLR(optimizer, lambda epoch: 0.9))
scheduled("in_sequence", sequence)
scheduled("chained", chain)
scheduled("cyclic", lambda optimizer: schedules.CyclicLR(optimizer, 0.01, 0.1, 2))
scheduled("one_cycle", lambda optimizer: schedules.OneCycleLR(optimizer, max_lr=0.1, total_steps=12))
scheduled("at_milestones", lambda optimizer: schedules.MultiStepLR(optimizer, [2, 4]))
scheduled("in_steps", lambda optimizer: schedules.StepLR(optimizer, 2))
scheduled("linear", lambda optimizer: schedules.LinearLR(optimizer))
scheduled("polynomial", lambda optimizer: schedules.PolynomialLR(optimizer, 4))
scheduled("exponential", lambda optimizer: schedules.ExponentialLR(optimizer, 0.5))


@case(traces=1)
def by_a_function_that_changes(jit):
    weight, optimizer = sgd()
    scale = [1.0]
    schedule = schedules.LambdaLR(optimizer, lambda epoch: scale[0] / (epoch + 1))
    step = trained(jit, optimizer, schedule, weight)
    for i in range(6):
        scale[0] = i + 1.0
        yield step(ones())
        yield optimizer.param_groups[0]["lr"]


@case
def on_a_plateau_inside(jit):
    weight, optimizer = sgd()
    schedule = schedules.ReduceLROnPlateau(optimizer, patience=1, factor=0.5, threshold=0.5)

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = (weight * weight * x).sum()
        loss.backward()
        optimizer.step()
        schedule.step(loss.detach())
        return loss.detach()

    for _ in range(10):
        yield step(ones())
        yield optimizer.param_groups[0]["lr"], schedule.num_bad_epochs


@case(traces=1)
def on_a_plateau_outside(jit):
    weight, optimizer = sgd()
    schedule = schedules.ReduceLROnPlateau(optimizer, patience=1, factor=0.5, threshold=0.5)

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = (weight * weight * x).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(10):
        loss = step(ones())
        schedule.step(loss.item())
        yield loss
        yield optimizer.param_groups[0]["lr"]


@case
def a_rate_used_beside_the_optimizer(jit):
    weight, optimizer = sgd()
    schedule = schedules.ExponentialLR(optimizer, 0.5)

    @jit
    def step(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()
        weight.data.sub_(optimizer.param_groups[0]["lr"] * 0.1 * weight.data)
        schedule.step()
        return weight.detach().clone()

    for _ in range(5):
        yield step(ones())
        yield optimizer.param_groups[0]["lr"]


@case
def the_last_rate_that_is_read(jit):
    weight, optimizer = sgd()
    schedule = schedules.ExponentialLR(optimizer, 0.5)

    @jit
    def step(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()
        schedule.step()
        return weight.detach() * schedule.get_last_lr()[0]

    for _ in range(5):
        yield step(ones())


@case
def the_last_epoch_that_is_read(jit):
    weight, optimizer = sgd()
    schedule = schedules.StepLR(optimizer, 2)

    @jit
    def step(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()
        schedule.step()
        return weight.detach() * (schedule.last_epoch if schedule.last_epoch < 3 else 100)

    for _ in range(5):
        yield step(ones())


@case(traces=1)
def gradients_zeroed_before_the_schedule(jit):
    weight, optimizer = sgd()
    schedule = schedules.StepLR(optimizer, 10)
    weight.grad = wg.zeros(2)

    @jit
    def step(x):
        optimizer.zero_grad(set_to_none=False)
        schedule.step()
        (weight * x).sum().backward()

    for _ in range(3):
        step(ones())
        yield weight.grad


@case
def ones_own(jit):
    class Falling:
        def __init__(self, optimizer):
            self.optimizer, self.steps = optimizer, 0

        def step(self):
            self.steps += 1
            self.optimizer.param_groups[0]["lr"] = 0.1 / self.steps

    weight, optimizer = sgd()
    step = trained(jit, optimizer, Falling(optimizer), weight)
    for _ in range(6):
        yield step(ones())
        yield optimizer.param_groups[0]["lr"]


@case(traces=1)
def ones_own_of_the_base_class(jit):
    class Falling(schedules.LRScheduler):
        def get_lr(self):
            return [rate / (self.last_epoch + 1) for rate in self.base_lrs]

    weight, optimizer = sgd()
    step = trained(jit, optimizer, Falling(optimizer), weight)
    for _ in range(6):
        yield step(ones())
        yield optimizer.param_groups[0]["lr"]


@case
def a_warmup_that_owns_the_optimizer(jit):
    class Warmup:
        def __init__(self, optimizer):
            self.optimizer, self.steps, self.rate = optimizer, 0, 0

        def step(self):
            self.steps += 1
            self.rate = min(self.steps**-0.5, self.steps * 4**-1.5)
            for group in self.optimizer.param_groups:
                group["lr"] = self.rate
            self.optimizer.step()

    weight = wg.ones(2, requires_grad=True)
    warmup = Warmup(optim.Adam([weight], lr=0.0))

    @jit
    def step(x):
        weight.grad = None
        (weight * weight * x).sum().backward()
        warmup.step()
        return weight.detach() * 1

    for _ in range(6):
        yield step(ones())
        yield warmup.rate


@case(traces=1)
def an_average_of_weights(jit):
    weight = wg.nn.Linear(2, 1)
    optimizer = optim.SGD(weight.parameters(), lr=0.1, momentum=0.9)
    average = optim.swa_utils.AveragedModel(weight)

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = weight(x).square().sum()
        loss.backward()
        optimizer.step()
        average.update_parameters(weight)
        return loss.detach()

    for _ in range(6):
        yield step(ones())
        yield list(average.state_dict().values())
