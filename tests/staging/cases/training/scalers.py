"""Gradient scalers, averaged models and closures of optimisers in a step."""

import math

import wengert as wg
from staging.comparing import case, copied, raised
from wengert import nn, optim
from wengert.optim import swa_utils


def network():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


def kept(optimizer):
    return copied(optimizer.state_dict()["state"])


@case(traces=1)
def mixed_precision_with_clipping(jit):
    model, scaler = network(), wg.amp.GradScaler(init_scale=2.0**20, growth_interval=2)
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    schedule = optim.lr_scheduler.StepLR(optimizer, 3)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        with wg.autocast("cpu", dtype=wg.float16):
            loss = nn.functional.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        return loss.detach(), norm

    for i in range(12):
        # Some overflow, some do not.
        yield step(wg.randn(3, 4) * (math.inf if i in (3, 7) else 1.0), wg.randn(3, 1))
        yield (
            copied(model.state_dict()),
            kept(optimizer),
            scaler.state_dict(),
            [p.grad for p in model.parameters()],
        )
        if i == 8:
            scaler.load_state_dict({**scaler.state_dict(), "scale": 4.0})


@case(traces=1)
def gradients_that_accumulate_scaled(jit):
    model, scaler = network(), wg.amp.GradScaler(init_scale=8.0, growth_interval=1)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    @jit
    def step(x):
        optimizer.zero_grad(set_to_none=False)
        for part in x.split(2):
            scaler.scale(model(part).square().mean()).backward()
        scaler.step(optimizer)
        scaler.update()

    for p in model.parameters():
        p.grad = wg.zeros_like(p)
    for i in range(6):
        step(wg.randn(4, 4) * (math.nan if i == 2 else 1.0))
        yield copied(model.state_dict()), kept(optimizer), scaler.get_scale()


# The first trace of the step raises.
@case(traces=3)
def a_scale_in_one_function_and_a_step_in_another(jit):
    model, scaler = network(), wg.amp.GradScaler(init_scale=16.0)
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    @jit
    def backward(x):
        losses = scaler.scale([model(x).square().mean(), {"b": model(x).sum()}["b"]])
        (losses[0] + losses[1]).backward()
        return [loss.detach() for loss in losses]

    @jit
    def step():
        scaler.step(optimizer)
        scaler.update(16.0)

    for p in model.parameters():
        p.grad = wg.zeros_like(p)
    yield str(raised(step))
    for i in range(4):
        if i == 2:
            scaler.update(2.0)
        yield backward(wg.randn(2, 4))
        yield str(raised(step))
        yield copied(model.state_dict()), scaler.get_scale()
    yield str(raised(step))


@case(traces=2)
def two_optimizers_and_a_scaler(jit):
    models = [network(), network()]
    optimizers = [optim.SGD(models[0].parameters(), lr=0.1), optim.AdamW(models[1].parameters(), lr=0.1)]
    scaler = wg.amp.GradScaler(init_scale=4.0, growth_interval=3)

    @jit
    def step(x, y):
        for optimizer in optimizers:
            optimizer.zero_grad()
        first, second = (model(z).square().mean() for model, z in zip(models, (x, y)))
        scaler.scale(first).backward()
        scaler.scale(second).backward()
        for optimizer in optimizers:
            scaler.step(optimizer)
        scaler.update(new_scale=None)

    for i in range(6):
        step(*(wg.randn(2, 4) * (math.inf if i == bad else 1.0) for bad in (1, 3)))
        yield [copied(model.state_dict()) for model in models], scaler.get_scale()
    # Of another class its own step is called.
    optimizers[0] = optim.Rprop(models[0].parameters(), lr=0.01)
    for _ in range(2):
        step(wg.randn(2, 4), wg.randn(2, 4))
        yield [copied(model.state_dict()) for model in models]


@case
def scalers_that_a_program_cannot_follow(jit):
    model = network()
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    class Louder(wg.amp.GradScaler):
        def scale(self, outputs):
            return super().scale(outputs * 2)

    for scaler in (wg.amp.GradScaler(init_scale=2.0, growth_interval=1), Louder(init_scale=2.0)):

        @jit
        def step(x):
            optimizer.zero_grad()
            loss = scaler.scale(model(x).square().mean())  # noqa: B023 (called in this turn)
            loss.backward()
            scaler.step(optimizer)  # noqa: B023
            scaler.update()  # noqa: B023
            return loss.detach() / scaler.get_scale()  # noqa: B023

        for _ in range(4):
            yield step(wg.randn(2, 4))
            yield copied(model.state_dict()), scaler.get_scale()


@case(traces=2)
def a_scaler_that_is_off(jit):
    model, scaler = network(), wg.amp.GradScaler(enabled=False)
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        if scaler.is_enabled():
            loss = loss * 2
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    for i in range(5):
        if i == 3:
            scaler._enabled = True
        yield step(wg.randn(2, 4))
        yield copied(model.state_dict()), scaler._scaled


@case(traces=2)
def a_moving_average_that_is_evaluated(jit):
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    average = swa_utils.AveragedModel(
        model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9), use_buffers=True
    )
    optimizer = optim.Adam(model.parameters(), lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        with wg.no_grad():
            wanted = average(x) * 0.5
        loss = (model(x) - wanted).square().mean()
        loss.backward()
        optimizer.step()
        average.update_parameters(model=model)
        with wg.no_grad():
            return loss.detach(), average.module(x), average(x)

    for i in range(6):
        if i == 4:
            average.eval()
        yield step(wg.randn(5, 4))
        yield copied(average.state_dict()), copied(model.state_dict())


@case(traces=1)
def averages_by_a_function_of_the_program(jit):
    model, share = nn.Linear(2, 1), wg.tensor(0.5)
    average = swa_utils.AveragedModel(model, avg_fn=lambda a, value, n: a + (value - a) * (share / (n + 1)))
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()
        average.update_parameters(model)

    for _ in range(4):
        step(wg.randn(3, 2))
        share.mul_(0.9)
        yield copied(average.state_dict())


@case
def averages_that_a_program_cannot_follow(jit):
    model, count = nn.Linear(2, 1), [0]

    def mean(average, value, n):
        count[0] += 1
        return average + (value - average) * (0.5 / count[0])

    average = swa_utils.AveragedModel(model, avg_fn=mean)

    @jit
    def step(x):
        with wg.no_grad():
            for p in model.parameters():
                p.add_(x)
        average.update_parameters(model)

    @jit
    def of_another(x):
        average.update_parameters(nn.Linear(2, 1))
        return x * 1

    for _ in range(3):
        step(wg.tensor(0.5))
        yield of_another(wg.ones(1))
        yield copied(average.state_dict()), count[0]


@case(traces=3)
def a_step_with_a_closure(jit):
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
    optimizer = optim.Adam(model.parameters(), lr=0.1)

    @jit
    def step(x):
        def closure():
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            return loss

        return optimizer.step(closure)

    @jit
    def by_name(x):
        def closure():
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            return {"loss": loss.detach(), "x": x}

        with wg.no_grad():
            return optimizer.step(closure=closure)

    for _ in range(3):
        yield step(wg.randn(3, 4))
        yield by_name(wg.randn(3, 4))
        yield copied(model.state_dict()), kept(optimizer)
    optimizer.param_groups[0]["lr"] = 0.01
    yield step(wg.randn(3, 4))
    # What comes between is seen.
    x = wg.randn(3, 4)
    optimizer.state.clear()
    optimizer.register_step_post_hook(lambda *_: model[0].bias.detach().zero_()).remove()
    model.eval()
    yield step(x)
    yield copied(model.state_dict()), kept(optimizer)


@case
def closures_that_stay_python(jit):
    weight = wg.ones(2, requires_grad=True)
    seen = []

    class Twice(optim.SGD):
        def step(self, closure=None):
            closure()
            return super().step(closure)

    hooked = optim.SGD([weight], lr=0.1)
    for optimizer in (optim.LBFGS([weight], lr=0.1), Twice([weight], lr=0.1), hooked):

        @jit
        def step(x):
            def closure():
                optimizer.zero_grad()  # noqa: B023 (called in this turn)
                loss = ((weight - x) ** 2).sum()
                loss.backward()
                return loss

            return optimizer.step(closure).detach()  # noqa: B023

        for i in range(4):
            if optimizer is hooked and i == 2:
                hooked.register_step_pre_hook(lambda *given: seen.append(len(given[1])))
            yield step(wg.tensor([1.0, float(i)]))
            yield weight, list(seen)
