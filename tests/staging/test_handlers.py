"""Which functions handle errors themselves: their programs keep the place of operations that may fail."""

import contextlib

import numpy as np
import pytest
import wengert as wg
from wengert import nn
from wengert.jit._handlers import handles
from wengert.nn import functional as F

amp = wg.amp


def code_of(text):
    variables = {"wg": wg, "amp": amp, "nn": nn, "contextlib": contextlib, "kept": wg.no_grad()}
    variables.update(no_grad=wg.no_grad, suppress=contextlib.suppress, nullcontext=contextlib.nullcontext)
    exec(f"def function(x, c, made=None):\n    {text}\n    return x", variables)
    return variables["function"].__code__, variables


@pytest.mark.parametrize(
    "text",
    [
        "x = x + 1",
        "with wg.no_grad(): x = x + 1",
        "with no_grad(): x = x + 1",
        "with wg.autocast('cpu', dtype=wg.bfloat16, enabled=bool(c)): x = x + 1",
        "with wg.autocast(\n        'cpu',\n        dtype=wg.bfloat16,\n    ): x = x + 1",
        "with amp.autocast('cpu'), wg.no_grad(): x = x + 1",
        "with wg.enable_grad() as m:\n        with nullcontext(): x = x + 1",
        "with wg.set_grad_enabled(c > 0 and x.ndim > 1): x = x + 1",
        "x = [y for y in x]",
        "x = sum(y for y in x)",
    ],
)
def test_known_to_let_errors_pass(text):
    assert not handles(*code_of(text))


@pytest.mark.parametrize(
    "text",
    [
        "try: x = x + 1\n    except IndexError: pass",
        "try: x = x + 1\n    finally: c = 1",
        "with suppress(IndexError): x = x + 1",
        "with contextlib.suppress(IndexError): x = x + 1",
        "with wg.no_grad(), suppress(IndexError): x = x + 1",
        "with made: x = x + 1",
        "with made(): x = x + 1",
        "with kept: x = x + 1",
        "with c.no_grad(): x = x + 1",
        "with (wg.no_grad() if c else made): x = x + 1",
        "with (made if c else wg.no_grad()): x = x + 1",
        "with made or wg.no_grad(): x = x + 1",
        "with wg.no_grad().clone(): x = x + 1",
        "with unknown(): x = x + 1",
        "with unknown.no_grad(): x = x + 1",
        "with made[wg.no_grad()]: x = x + 1",
        "with wg.no_grad(*c): x = x + 1",
        "with wg.no_grad():\n        try: x = x + 1\n        except ValueError: pass",
    ],
)
def test_taken_for_a_handler(text):
    assert handles(*code_of(text))


@pytest.mark.parametrize("enabled", [True, False])
def test_a_step_under_autocast_with_classes_for_targets_is_one_program(enabled):
    def run(staged):
        wg.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 5))
        optimizer = wg.optim.SGD(net.parameters(), lr=0.01)

        def step(x, y):
            optimizer.zero_grad()
            with wg.autocast("cpu", dtype=wg.bfloat16, enabled=enabled):
                loss = F.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            return loss

        call = wg.jit(step) if staged else step
        losses = [call(wg.randn(8, 3), wg.randint(0, 5, (8,))).item() for _ in range(6)]
        if staged:
            assert call.traces == 1, call.why()
        return losses, [p.detach().numpy() for p in net.state_dict().values()]

    (losses, state), (expected, values) = run(True), run(False)
    assert losses == expected
    for found, value in zip(state, values, strict=True):
        np.testing.assert_array_equal(found, value)


def test_an_error_under_autocast_is_raised_as_the_function_raises_it():
    net = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5))

    def loss(x, y):
        with wg.autocast("cpu", dtype=wg.bfloat16), wg.no_grad():
            return F.cross_entropy(net(x), y)

    step = wg.jit(loss)
    x, y = wg.randn(8, 3), wg.randint(0, 5, (8,))
    step(x, y)
    assert step(x, y).isfinite()
    for _ in range(2):
        with pytest.raises(IndexError, match="target 9"):
            step(x, y + 9)
    assert not wg.is_autocast_enabled()
    assert wg.is_grad_enabled()
    assert step(x, y).isfinite()


def test_why_names_the_operation_and_its_line():
    net = nn.BatchNorm1d(5)
    optimizer = wg.optim.SGD(net.parameters(), lr=0.1)

    def loss(x, y):
        net(x).sum().backward()
        optimizer.step()
        try:
            with wg.no_grad():
                return F.cross_entropy(net(x), y)
        except ValueError:
            return x.sum()

    step = wg.jit(loss)
    step(wg.randn(8, 5), wg.randint(0, 5, (8,)))
    (reason,) = step.why()
    assert "cross_entropy, which may fail, after a call such as the step of an optimiser" in str(reason)
    assert "test_handlers.py" in str(reason)


def test_why_names_the_line_that_decides_behind_a_step():
    w = nn.Parameter(wg.ones(2))
    optimizer = wg.optim.SGD([w], lr=0.1)

    def train(x):
        loss = (w * x).sum()
        loss.backward()
        optimizer.step()
        return x * 2 if loss > 1 else x

    step = wg.jit(train)
    step(wg.ones(2))
    (reason,) = step.why()
    assert "looked at after a call such as the step of an optimiser" in str(reason)
    assert "test_handlers.py" in str(reason)
