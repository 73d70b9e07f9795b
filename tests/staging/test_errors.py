"""A call of a program that raises leaves everything as it was before the call."""

import copy

import numpy as np
import pytest
import wengert as wg
from wengert import nn
from wengert.nn import functional as F


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 6)
        self.norm = nn.BatchNorm1d(6)
        self.out = nn.Linear(6, 4)
        self.register_buffer("seen", wg.zeros(1))

    def forward(self, i):
        self.seen.add_(1.0)
        x = F.dropout(self.norm(self.table(i)), 0.2)
        return self.out(x)


def everything(net, optimizer):
    """Values, gradients, random numbers, state of the optimiser."""
    found = {name: x.detach().numpy().copy() for name, x in net.state_dict().items()}
    for name, p in net.named_parameters():
        found[f"gradient of {name}"] = None if p.grad is None else p.grad.numpy().copy()
    for name, state in enumerate(optimizer.state_dict()["state"].values()):
        for key, value in state.items():
            found[f"{key} {name}"] = np.array(value)
    found["random"] = np.array(wg.get_rng_state())
    return found


def same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if value is None:
            assert found[name] is None, name
        else:
            np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.parametrize("to_none", [True, False])
@pytest.mark.parametrize("optimizer", [wg.optim.SGD, wg.optim.Adam])
def test_a_training_step_with_bad_data(optimizer, to_none):
    wg.manual_seed(3)
    net = Net()
    opt = optimizer(net.parameters(), lr=0.1)

    def train(i, y):
        opt.zero_grad(set_to_none=to_none)
        loss = F.cross_entropy(net(i), y)
        loss.backward()
        opt.step()
        return loss

    step = wg.jit(train)
    i, y = wg.randint(0, 10, (8,)), wg.randint(0, 4, (8,))
    for _ in range(3):
        step(i, y)
    before = everything(net, opt)
    for bad in ((i + 9, y), (i, y + 9)):
        with pytest.raises(IndexError) as raised:
            step(*bad)
        # The function itself raises it: its line is in the traceback.
        assert any(entry.name == "train" for entry in raised.traceback)
        same(everything(net, opt), before)
    twin, other = copy.deepcopy((net, opt))
    state = wg.get_rng_state()
    loss = step(i, y)
    wg.set_rng_state(state)
    net, opt, expected = twin, other, None
    expected = train(i, y)
    assert loss.item() == expected.item()


def test_a_write_that_the_error_depends_on():
    kept = wg.zeros(3)

    def f(i):
        kept.add_(1.0)
        return (kept * 2)[i]

    step = wg.jit(f)
    # The first call is written down; it raises, too.
    for expected in (0.0, 2.0):
        with pytest.raises(IndexError):
            step(wg.tensor([0, 5]))
        assert kept.tolist() == [expected] * 3
        for _ in range(2):
            step(wg.tensor([0, 1]))
    assert kept.tolist() == [4.0] * 3
    assert step.traces == 2, step.why()


def test_a_decision_by_what_was_written():
    kept = wg.zeros(1)

    def f(x):
        kept.add_(x)
        return x * 2 if kept.sum() > 3 else x

    step = wg.jit(f)
    found = [step(wg.ones(1)).item() for _ in range(6)]
    assert found == [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]
    assert kept.item() == 6.0
    assert step.traces == 2, step.why()


@pytest.mark.parametrize("calls", [0, 2])
def test_memory_that_others_saved(calls):
    w, kept = wg.ones(2, requires_grad=True), wg.ones(2)

    def f(i):
        kept.mul_(2.0)
        return (kept + 1)[i]

    step = wg.jit(f)
    for _ in range(calls):
        step(wg.tensor([0]))
    loss = (w * kept).sum()
    with pytest.raises(IndexError):
        step(wg.tensor([3]))
    assert kept.tolist() == [2.0**calls] * 2
    loss.backward()
    assert w.grad.tolist() == [2.0**calls] * 2


def test_gradients_of_the_first_call():
    w = wg.ones(2, requires_grad=True)
    w.grad = wg.full((2,), 5.0)
    v = wg.ones(2, requires_grad=True)

    def f(x, fails):
        w.grad = None
        (w * v * x).sum().backward()
        if fails:
            raise ArithmeticError("on purpose")
        return x * 2

    state = wg.get_rng_state()
    with pytest.raises(ArithmeticError):
        wg.jit(f)(wg.ones(2), True)
    assert w.grad.tolist() == [5.0, 5.0]
    assert v.grad is None
    assert wg.get_rng_state() == state

    def g(x):
        (w * v * x).sum().backward()
        wg.rand(3)
        raise ArithmeticError("on purpose")

    with pytest.raises(ArithmeticError):
        wg.jit(g)(wg.ones(2))
    assert w.grad.tolist() == [5.0, 5.0]
    assert v.grad is None
    assert wg.get_rng_state() == state


@pytest.mark.parametrize("drop", ["none", "zero_grad", "optimizer"])
def test_gradients_that_were_made_and_dropped(drop):
    p = nn.Parameter(wg.ones(2))
    optimizer = wg.optim.SGD([p], lr=0.1)

    def f(x, fails):
        (p * x).sum().backward()
        if drop == "none":
            p.grad = None
        else:
            optimizer.zero_grad(set_to_none=drop == "optimizer")
        if fails:
            raise ValueError("on purpose")
        return x * 2

    step = wg.jit(f)
    with pytest.raises(ValueError, match="on purpose"):
        step(wg.ones(2), True)
    assert p.grad is None
    for _ in range(2):
        step(wg.ones(2), False)
    before = None if p.grad is None else p.grad.tolist()
    with pytest.raises(ValueError, match="on purpose"):
        step(wg.ones(2), True)
    assert (None if p.grad is None else p.grad.tolist()) == before


def test_dropping_what_backward_made_is_part_of_the_program():
    p = nn.Parameter(wg.ones(2))

    def f(x):
        loss = (p * x).sum()
        loss.backward()
        p.grad = None
        return x * 2

    step = wg.jit(f)
    for _ in range(3):
        step(wg.ones(2))
        assert p.grad is None
    assert step.traces == 1, step.why()


def test_decisions_behind_writes_that_they_do_not_read():
    norm = nn.BatchNorm1d(3)

    def f(x):
        y = norm(x).square().sum()
        return y * 2 if x.sum() > 0 else y

    step, twin = wg.jit(f), copy.deepcopy(norm)
    x = wg.ones(4, 3) + wg.randn(4, 3) * 0.01
    with wg.no_grad():
        for sign in (1, 1, -1, -1, 1):
            step(x * sign)
            twin(x * sign)
    assert step.traces == 2, step.why()
    for name, value in twin.state_dict().items():
        np.testing.assert_array_equal(norm.state_dict()[name].numpy(), value.numpy(), err_msg=name)


def test_writes_keep_their_order():
    a, b = wg.zeros(3), wg.ones(3)

    def f(x, i):
        a.add_(x)
        a.mul_(2.0)
        b.copy_(a)
        a.sub_(b * 0.5)
        y = x[i]
        b.add_(y.sum())
        return y

    step = wg.jit(f)
    x, i = wg.tensor([1.0, 2.0, 3.0]), wg.tensor([0, 2])
    for _ in range(3):
        step(x, i)
    found = a.tolist(), b.tolist()
    assert step.traces == 1, step.why()
    a.zero_()
    b.fill_(1.0)
    for _ in range(3):
        f(x, i)
    assert found == (a.tolist(), b.tolist())
    with pytest.raises(IndexError):
        step(x, i + 2)
    assert found == (a.tolist(), b.tolist())


def test_a_function_that_handles_the_error():
    kept = wg.zeros(2)

    def f(x, i):
        kept.add_(1.0)
        try:
            return x[i]
        except IndexError:
            return x * 0

    step = wg.jit(f)
    x = wg.ones(3)
    for _ in range(3):
        step(x, wg.tensor([0]))
    assert step.traces == 1, step.why()
    assert step(x, wg.tensor([7])).tolist() == [0.0, 0.0, 0.0]
    # It has returned: what it did stays.
    assert kept.tolist() == [4.0, 4.0]
