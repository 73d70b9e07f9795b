"""Rates of optimisers that are set, read, returned or used inside of a program."""

import wengert as wg
from staging.comparing import case, copied
from wengert import optim


def ones():
    return wg.ones(2)


def leaf():
    return wg.ones(2, requires_grad=True)


def training(jit, weight, optimizer, loss=lambda weight, x: (weight * weight * x).sum()):
    """A staged step."""

    @jit
    def step(x):
        optimizer.zero_grad()
        value = loss(weight, x)
        value.backward()
        optimizer.step()
        return weight.detach() * 1

    return step


@case
def a_rate_set_inside(jit):
    weight = leaf()
    optimizer = optim.SGD([weight], lr=0.1)

    @jit
    def step(x, i):
        for group in optimizer.param_groups:
            group["lr"] = 0.1 * min(1, (i + 1) / 4)
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()
        return weight.detach().clone()

    for i in (0, 1, 2, 3, 4, 5, 0, 0):
        yield step(ones(), i)
        yield optimizer.param_groups[0]["lr"]
    optimizer.param_groups[0]["lr"] = 77.0
    yield step(ones(), 0)
    yield optimizer.param_groups[0]["lr"]


@case
def a_rate_given(jit):
    weight = leaf()
    optimizer = optim.SGD([weight], lr=0.1)

    @jit
    def step(x, rate):
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()

    for rate in (1.0, 2.0, 1.0, 2.0):
        step(ones(), rate)
        yield weight, optimizer.param_groups[0]["lr"]


@case
def a_rate_that_falls_after_the_step(jit):
    weight = leaf()
    optimizer = optim.SGD([weight], lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()
        optimizer.param_groups[0]["lr"] *= 0.5
        return weight.detach().clone()

    for _ in range(5):
        yield step(ones())
        yield optimizer.param_groups[0]["lr"]


@case
def a_rate_that_falls_before_the_step(jit):
    weight = leaf()
    optimizer = optim.SGD([weight], lr=0.1)

    @jit
    def step(x):
        optimizer.param_groups[0]["lr"] *= 0.5
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()
        return weight.detach().clone()

    for _ in range(5):
        yield step(ones())


@case
def a_rate_of_a_counter(jit):
    weight, count = leaf(), wg.tensor(0)
    optimizer = optim.SGD([weight], lr=0.1)

    @jit
    def step(x):
        count.add_(1)
        optimizer.param_groups[0]["lr"] = 0.1 / (1 + count.item())
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()
        return weight.detach().clone()

    for _ in range(5):
        yield step(ones())
        yield optimizer.param_groups[0]["lr"]


@case
def a_rate_that_is_returned(jit):
    weight, history = leaf(), []
    optimizer = optim.SGD([weight], lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = (weight * weight * x).sum()
        loss.backward()
        optimizer.step()
        rate = optimizer.param_groups[0]["lr"]
        return {"loss": loss.detach(), "rate": rate, "scaled": x * rate, "steps": len(history)}

    for _ in range(4):
        optimizer.param_groups[0]["lr"] *= 0.5
        history.append(step(ones()))
        yield history[-1]


@case
def a_rate_in_the_loss(jit):
    weight = leaf()
    optimizer = optim.SGD([weight], lr=0.1)
    step = training(
        jit, weight, optimizer, lambda weight, x: (weight * x).sum() * optimizer.param_groups[0]["lr"]
    )
    for optimizer.param_groups[0]["lr"] in (0.1, 0.2, 0.2, 0.1):
        yield step(ones())


@case
def a_tensor_as_a_rate(jit):
    rate, weight = wg.tensor(0.1), leaf()
    optimizer = optim.SGD([weight], lr=rate)
    step = training(jit, weight, optimizer)
    for _ in range(3):
        yield step(ones())
    rate.mul_(2)
    yield step(ones())
    optimizer.param_groups[0]["lr"] = 0.5
    yield step(ones())
    optimizer.param_groups[0]["momentum"] = 0.5
    yield step(ones())
    yield step(ones())
    optimizer.add_param_group({"params": [leaf()]})
    yield step(ones())


@case(traces=1)
def options_beside_the_rate(jit):
    weight = leaf()
    optimizer = optim.Adam([weight], lr=0.1)
    step = training(jit, weight, optimizer)
    for name, value in (
        ("lr", 0.2),
        ("betas", (0.5, 0.9)),
        ("eps", 0.1),
        ("weight_decay", 0.1),
        ("maximize", True),
        ("amsgrad", True),
    ):
        optimizer.param_groups[0][name] = value
        for _ in range(2):
            yield step(ones())
            yield copied(optimizer.state_dict())


@case
def rates_of_groups(jit):
    first, second = leaf(), leaf()
    optimizer = optim.SGD([{"params": [first]}, {"params": [second], "lr": 0.5}], lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        (first * second * x).sum().backward()
        optimizer.step()

    for k in (1, 2, 3, 4):
        step(ones())
        yield first, second
        optimizer.param_groups[k % 2]["lr"] *= 0.5
    optimizer.param_groups.reverse()
    step(ones())
    yield first, second


@case
def a_rate_that_is_compared(jit):
    weight = leaf()
    optimizer = optim.SGD([weight], lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        if optimizer.param_groups[0]["lr"] > 0.05:
            optimizer.step()

    for optimizer.param_groups[0]["lr"] in (0.1, 0.01, 0.1, 0.2):
        step(ones())
        yield weight
