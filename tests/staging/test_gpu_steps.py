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


@pytest.mark.parametrize("dtype", [wg.float32, wg.float16, wg.bfloat16])
def test_sums_in_place_take_one_launch(dtype):
    """Of whole tensors, of broadcast rows, and of float32 parts: gradients that add up."""

    def launches(f):
        with wg.gpu.profile() as profile:
            f()
        return [launch.kernel for launch in profile.launches]

    rng = np.random.default_rng(0)
    for shape in [(6,), (5, 8), (3, 7, 4)]:
        x, y, row = (rng.standard_normal(s).astype(np.float32) for s in (shape, shape, shape[-1:]))
        total = wg.tensor(x, dtype=dtype).to("gpu")
        expected = total.float().cpu().numpy()
        y, row = (wg.tensor(v, dtype=dtype).to("gpu") for v in (y, row))
        is_whole = dtype == wg.float32 or total.numel() % 2 == 0
        assert len(launches(lambda: total.add_(y))) == (1 if is_whole else 2)  # noqa: B023
        total += row
        total.add_(total)
        expected = 2 * (expected + y.float().cpu().numpy() + row.float().cpu().numpy())
        scale = {wg.float32: 1e-6, wg.float16: 4e-3, wg.bfloat16: 3e-2}[dtype]
        np.testing.assert_allclose(total.float().cpu(), expected, rtol=scale, atol=scale)
    parts = wg.zeros(6, 10, device="gpu", dtype=dtype)
    parts[:, 4:7].add_(wg.ones(6, 3, device="gpu", dtype=dtype))
    parts.t()[1].add_(2)
    expected = np.zeros((6, 10))
    expected[:, 4:7], expected[:, 1] = 1, 2
    np.testing.assert_array_equal(parts.float().cpu(), expected)
    q = wg.ones(4, 9, device="gpu", dtype=dtype, requires_grad=True)
    loss = sum(wg.exp(part).sum() * (k + 1) for k, part in enumerate(q.chunk(3, dim=1)))
    made = launches(loss.backward)
    assert made.count("add_into") == (2 if dtype == wg.float32 else 0)
    expected = np.e * np.repeat([1.0, 2.0, 3.0], 3)[None].repeat(4, 0)
    np.testing.assert_allclose(q.grad.float().cpu(), expected, rtol=1e-2)


@pytest.mark.parametrize("name", ["layer", "products", "halves", "two results"])
def test_results_have_a_history(name):
    wg.manual_seed(0)
    layer = nn.Linear(5, 3).to("gpu")
    f = {
        "layer": lambda x: layer(x).tanh(),
        "products": lambda x: (x @ layer.weight.T).softmax(-1) @ layer.weight,
        "halves": lambda x: (x.half() @ layer.weight.half().T).float().relu(),
        "two results": lambda x: (layer(x).exp(), (x * x).sum()),
    }[name]
    step, draws = wg.jit(f), np.random.default_rng(0)
    for _ in range(4):
        found = []
        data = wg.tensor(draws.standard_normal((6, 5)), dtype=wg.float32).to("gpu")
        for function in (f, step):
            layer.zero_grad()
            x = data.clone().requires_grad_()
            out = function(x)
            out = out if isinstance(out, tuple) else (out,)
            sum((y * y).sum() for y in out).backward()
            values = [*out, x.grad, layer.weight.grad, layer.bias.grad]
            found.append([v.detach().cpu().numpy() for v in values if v is not None])
        for x, y in zip(*found, strict=True):
            np.testing.assert_allclose(y, x, rtol=1e-5, atol=1e-6)
    assert (step.traces, step.why()) == (1, [])
