"""Programs of GPU tensors: the results of eager, and writes that reach their arguments."""

import numpy as np
import pytest
import wengert as wg
from wengert import nn

pytestmark = pytest.mark.gpu


def trained(staged):
    wg.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Dropout(0.25), nn.Linear(8, 1)).to("gpu")
    optimizer = wg.optim.Adam(model.parameters(), lr=0.01)

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    run = wg.jit(step) if staged else step
    draws = np.random.default_rng(0)
    data = [wg.tensor(draws.standard_normal((6, 5)), dtype=wg.float32).to("gpu") for _ in range(4)]
    losses = [run(x, x[:, :1]).item() for x in data]
    if staged:
        assert run.traces == 1, run.why()
    return losses + [float(p.detach().cpu().sum()) for p in model.parameters()]


def test_a_training_step_gives_what_eager_gives():
    assert trained(True) == pytest.approx(trained(False), rel=1e-5, abs=1e-6)


def test_writes_reach_the_arguments():
    step = wg.jit(lambda x: x.mul_(2).sum())
    for _ in range(3):
        x = wg.ones(3, device="gpu")
        assert step(x).item() == 6.0
        assert x.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("calls", [0, 2])
def test_a_call_that_raises_changes_nothing(calls):
    kept, w = wg.zeros(4, device="gpu"), wg.ones(4, device="gpu", requires_grad=True)

    def f(x, fails):
        kept.add_(x)
        kept[1:3].mul_(2.0)
        (w * x).sum().backward()
        if fails:
            raise ValueError("on purpose")
        return x * 2

    step, x = wg.jit(f), wg.ones(4, device="gpu")
    for _ in range(calls):
        step(x, False)
    found = kept.tolist(), None if w.grad is None else w.grad.tolist()
    with pytest.raises(ValueError, match="on purpose"):
        step(x, True)
    assert (kept.tolist(), None if w.grad is None else w.grad.tolist()) == found


def test_what_is_computed_twice_is_computed_once():
    x = wg.tensor(np.random.default_rng(0).standard_normal((40, 30)), dtype=wg.float32).to("gpu")

    def f(x):
        y = x * 0.5
        before = y.cumsum(0)
        y.add_(1)
        return (x @ x.T).sin() + (x @ x.T).cos(), before, y.cumsum(0).exp()

    step = wg.jit(f)
    for _ in range(3):
        for found, expected in zip(step(x), f(x), strict=True):
            np.testing.assert_array_equal(found.cpu().numpy(), expected.cpu().numpy())
    assert [step.operations(x).count(name) for name in ("matmul", "cumsum")] == [1, 2]
