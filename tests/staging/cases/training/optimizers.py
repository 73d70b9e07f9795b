"""Optimisers: their state, their hooks, one's own, several steps, rates that are read or set inside."""

import copy

import pytest
import wengert as wg
from staging.comparing import case, copied
from wengert import nn, optim
from wengert.nn import functional as F


def ones():
    return wg.ones(2)


def leaf():
    return wg.ones(2, requires_grad=True)


def every(name):
    """A case for an optimiser: training, other numbers, states and parameters that are loaded."""

    @pytest.mark.filterwarnings("ignore")
    def body(jit):
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        x = wg.randn(8, 4)
        y = x.square().sum(1, keepdim=True)
        params = [p for p in model.parameters() if name != "Muon" or p.ndim == 2]
        optimizer = getattr(optim, name)(params, lr=0.01)

        @jit
        def step(x, y):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        def state():
            return copied(model.state_dict()), copied(optimizer.state_dict())

        for _ in range(4):
            yield step(x, y)
            yield state()
        for group in optimizer.param_groups:
            group["lr"], group["weight_decay"] = 0.02, 0.1
        yield step(x, y)
        yield state()
        optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        yield step(x, y)
        yield state()
        model.load_state_dict({key: p * 0.5 for key, p in copied(model.state_dict()).items()})
        yield step(x, y)
        yield state()

    body.__name__ = f"every_{name}"
    # Muon takes the matrices alone, so what it leaves out has gradients that nobody zeroes.
    case(body, traces=2 if name == "Muon" else 1)


for name in sorted(dir(optim)):
    kind = getattr(optim, name)
    if isinstance(kind, type) and issubclass(kind, optim.Optimizer) and name not in ("Optimizer", "LBFGS"):
        every(name)


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


@case(traces=1)
def a_plain_step(jit):
    weight = leaf()
    step = training(jit, weight, optim.SGD([weight], lr=0.1, momentum=0.9))
    for k in range(5):
        yield step(ones() * k)
        yield weight, weight.grad


@case(traces=1)
def hooks_of_an_optimizer(jit):
    weight, calls = leaf(), [0]
    optimizer = optim.SGD([weight], lr=0.1)
    step = training(jit, weight, optimizer)
    yield step(ones())

    def count(*args):
        calls[0] += 1

    optimizer.register_step_post_hook(count)
    for _ in range(3):
        yield step(ones())
        yield calls
    handle = optimizer.register_step_pre_hook(lambda *args: [weight.grad.mul_(3)].clear())
    yield step(ones())
    yield step(ones())
    handle.remove()
    yield step(ones())
    yield calls


@case
def a_state_that_is_read(jit):
    weight = leaf()
    optimizer = optim.Adam([weight], lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()
        return optimizer.state[weight]["exp_avg"] * float(optimizer.state[weight]["step"])

    for _ in range(4):
        yield step(ones())


@case
def a_state_that_is_edited(jit):
    weight = leaf()
    optimizer = optim.Adam([weight], lr=0.1)
    step = training(jit, weight, optimizer)
    yield step(ones())
    yield step(ones())
    optimizer.state[weight]["exp_avg"].zero_()
    yield step(ones())
    optimizer.state.clear()
    yield step(ones())
    optimizer.state[weight]["exp_avg"] = wg.full((2,), 0.3)
    yield step(ones())
    yield copied(optimizer.state_dict())
    optimizer.param_groups[0]["params"] = []
    yield step(ones())
    yield weight


@case(traces=1)
def two_optimizers_with_two_steps_each(jit):
    first, second = leaf(), leaf()
    left, right = optim.Adam([first], lr=0.1), optim.Adam([second], lr=0.1)

    @jit
    def step(x):
        for _ in range(2):
            left.zero_grad()
            (first * x * second.detach()).sum().backward()
            left.step()
            right.zero_grad()
            (first.detach() * x * second).square().sum().backward()
            right.step()
        return first.detach() * second.detach()

    for _ in range(4):
        yield step(ones())
        yield first, second, first.grad, second.grad


@case
def two_optimizers_of_one_parameter(jit):
    weight, other = leaf(), leaf()
    left, right = optim.SGD([weight], lr=0.1), optim.SGD([weight, other], lr=0.01)

    @jit
    def step(x):
        left.zero_grad()
        (weight * x).sum().backward()
        left.step()
        (weight * other * x * 10).sum().backward()
        right.step()
        return x * 1

    for _ in range(3):
        yield step(ones())
        yield weight, other, weight.grad


@case(traces=1)
def two_backwards_and_two_steps(jit):
    weight = leaf()
    optimizer = optim.SGD([weight], lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        for scale in (1.0, 2.0):
            (weight * x * scale).sum().backward()
            optimizer.step()

    for _ in range(3):
        step(ones())
        yield weight, weight.grad


@case(traces=1)
def a_backward_after_the_step(jit):
    weight = leaf()
    optimizer = optim.SGD([weight], lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()
        (weight * x).sum().backward()

    for _ in range(3):
        step(ones())
        yield weight, weight.grad


@case(traces=1)
def a_gradient_zeroed_after_the_step(jit):
    weight = leaf()
    optimizer = optim.SGD([weight], lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()
        kept = weight.grad * 1
        weight.grad.zero_()
        return kept

    for i in range(3):
        yield step(ones() * i)
        yield weight.grad


@case(traces=2)
def a_step_that_is_skipped(jit):
    weight = leaf()
    optimizer = optim.SGD([weight], lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = (weight * x).sum()
        loss.backward()
        if wg.isfinite(weight.grad).all():
            optimizer.step()
        return loss.detach()

    for i in range(6):
        yield step(wg.full((2,), float("nan") if i % 3 == 1 else 1.0))
        yield weight


@case
def an_optimizer_made_inside(jit):
    weight = leaf()

    @jit
    def step(x):
        optimizer = optim.Adam([weight], lr=0.1)
        weight.grad = None
        (weight * weight * x).sum().backward()
        optimizer.step()
        return weight.detach() * 1

    @jit
    def fit(x):
        point = wg.zeros(2, requires_grad=True)
        optimizer = optim.Adam([point], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            ((point - x) ** 2).sum().backward()
            optimizer.step()
        return point.detach()

    for i in range(4):
        yield step(ones())
        yield weight
        yield fit(ones() * i)


@case
def the_type_of_an_optimizer(jit):
    weight = wg.ones(2, requires_grad=True)
    optimizer = optim.SGD([weight], lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()
        return x * (type(optimizer) is optim.SGD) * isinstance(optimizer, optim.SGD)

    for _ in range(3):
        yield step(ones())


@case
def optimizers_that_register_their_classes(jit):
    kinds = []

    class Own(optim.SGD):
        def __init_subclass__(cls, **settings):
            kinds.append(cls.__name__)

    weight = wg.ones(2, requires_grad=True)
    optimizer = Own([weight], lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()

    for _ in range(3):
        step(ones())
        yield weight, kinds
    yield len(Own.__subclasses__())
