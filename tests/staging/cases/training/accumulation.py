"""Gradients that accumulate over calls, and what is done with them in between."""

import wengert as wg
from staging.comparing import case, copied
from wengert import nn


def ones():
    return wg.ones(2)


def leaf():
    return wg.ones(2, requires_grad=True)


@case(traces=2)
def accumulated_from_none(jit):
    weight = leaf()

    @jit
    def micro(x):
        loss = (weight * weight * x).sum()
        loss.backward()
        return loss.detach()

    for _ in range(4):
        weight.grad = None
        for k in (1, 2, 3):
            yield micro(ones() * k)
            yield weight.grad


@case(traces=1)
def accumulated_from_zeros(jit):
    weight = leaf()
    weight.grad = wg.zeros(2)

    @jit
    def micro(x):
        loss = (weight * weight * x).sum()
        loss.backward()
        return loss.detach()

    for _ in range(4):
        weight.grad.zero_()
        for k in (1, 2, 3):
            yield micro(ones() * k)
            yield weight.grad


@case(traces=2)
def accumulated_and_replaced(jit):
    weight = leaf()

    @jit
    def micro(x):
        (weight * weight * x).sum().backward()

    for _ in range(3):
        micro(ones())
        yield weight.grad
    weight.grad = None
    micro(ones())
    kept = weight.grad
    micro(ones())
    yield kept
    weight.grad = wg.full((2,), 100.0)
    micro(ones())
    yield weight.grad, kept
    weight.grad = kept[:]
    micro(ones())
    yield kept


@case
def accumulated_in_steps(jit):
    model = nn.Linear(4, 1)
    optimizer = wg.optim.SGD(model.parameters(), lr=0.1)
    count = [0]

    @jit
    def step(x):
        loss = model(x).square().mean()
        loss.backward()
        count[0] += 1
        if count[0] % 2 == 0:
            optimizer.step()
            optimizer.zero_grad()
        return loss.detach()

    for _ in range(6):
        yield step(wg.randn(3, 4))
        yield copied(model.state_dict()), count


@case
def accumulated_by_two_functions(jit):
    model = nn.Linear(4, 1)
    optimizer = wg.optim.SGD(model.parameters(), lr=0.1)

    @jit
    def micro(x):
        loss = model(x).square().mean()
        loss.backward()
        return loss

    for to_none in (False, True, True, False):

        @jit
        def finish():
            optimizer.step()
            optimizer.zero_grad(set_to_none=to_none)  # noqa: B023 (called in this turn)

        for _ in range(2):
            yield micro(wg.randn(3, 4))
            yield micro(wg.randn(3, 4))
            finish()
            yield [p.grad for p in model.parameters()], copied(model.state_dict())


@case(traces=1)
def gradients_that_are_kept(jit):
    weight, kept = leaf(), []

    @jit
    def f(x):
        weight.grad = None
        (weight * weight * x).sum().backward()

    for i in range(4):
        f(ones() * i)
        kept.append(weight.grad)
    yield kept


@case(traces=1)
def gradients_that_are_returned(jit):
    weight, kept = leaf(), []

    @jit
    def f(x):
        weight.grad = None
        (weight * x).sum().backward()
        return weight.grad

    for i in range(3):
        kept.append(f(ones() * i))
        yield kept
        kept[-1].add_(1)
        yield weight.grad


@case
def gradients_that_are_scaled(jit):
    weight = leaf()

    @jit
    def f(x):
        (weight * x).sum().backward()
        weight.grad = weight.grad * 0.5
        return x * 1

    for _ in range(4):
        yield f(ones())
        yield weight.grad


@case(traces=1)
def gradients_that_are_clipped(jit):
    weight = leaf()

    @jit
    def f(x):
        weight.grad = None
        (weight * x).sum().backward()
        norm = nn.utils.clip_grad_norm_([weight], 1.0)
        nn.utils.clip_grad_value_([weight], 0.3)
        return norm

    for i in range(4):
        yield f(wg.full((2,), i * 2.0))
        yield weight.grad


@case(traces=4)
def a_bound_of_clipping_that_changes(jit):
    weight, bound = leaf(), [1.0]

    @jit
    def f(x):
        weight.grad = None
        (weight * x).sum().backward()
        return nn.utils.clip_grad_norm_([weight], bound[0])

    for bound[0] in (0.5, 1.5, 2.5, 3.5):
        yield f(ones() * 2)
        yield weight.grad


@case(traces=1)
def parts_of_gradients_that_are_written(jit):
    weight = wg.ones(4, requires_grad=True)

    @jit
    def f(x):
        weight.grad = None
        first, second = weight[:2], weight[2:]
        (first * second * x).sum().backward()
        weight.grad[0] = 0
        weight.grad[1:3].mul_(2)
        return weight.grad.sum()

    for k in (1, 2, 3):
        yield f(ones() * k)
        yield weight.grad


@case(traces=1)
def gradients_of_what_is_written_in_place(jit):
    weight = wg.ones(4, requires_grad=True)

    @jit
    def f(x):
        weight.grad = None
        y = weight * 2
        y[1:3] = x
        y.relu_()
        y.mul_(y.detach())
        y[0] += y[3]
        y.sum().backward()
        return y.detach()

    for k in (1, -2, 3):
        yield f(ones() * k)
        yield weight.grad


@case(traces=2)
def gradients_that_are_given(jit):
    weight = leaf()
    optimizer = wg.optim.Adam([weight], lr=0.1)

    @jit
    def copied_in(g):
        weight.grad = g.clone()
        optimizer.step()
        optimizer.zero_grad()
        return weight.detach().clone()

    @jit
    def put_in(g):
        weight.grad = g
        optimizer.step()
        return weight.detach().clone()

    for k in (1, 2, 3):
        yield copied_in(ones() * k)
        yield weight.grad
    for k in (1, 2, 3):
        g = ones() * k
        yield put_in(g)
        yield weight.grad is g, weight.grad
