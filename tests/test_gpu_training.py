"""Training on the GPU: layers, optimisers, loss scaling and checkpoints give what they give on the CPU."""

import math

import numpy as np
import pytest
import wengert as wg
from optim_reference import CASES, run
from wengert import nn, optim
from wengert.amp import GradScaler
from wengert.nn import functional as F
from wengert.utils.checkpoint import checkpoint


def close(actual, expected, tol):
    np.testing.assert_allclose(np.asarray(actual.tolist()), np.asarray(expected.tolist()), rtol=tol, atol=tol)


@pytest.mark.parametrize("name", CASES)
def test_optimizer_steps_equal_the_cpu(name):
    make, _, settings = CASES[name]
    expected, _ = run(make, settings, wg.float32)
    actual, _ = run(make, settings, wg.float32, device="gpu")
    for a, e in zip(actual, expected):
        assert str(a.device) == "gpu:0"
        close(a, e, 2e-6)


def test_scaler_skips_overflowed_steps():
    p = nn.Parameter(wg.zeros(2, device="gpu"))
    optimizer, scaler = optim.SGD([p], lr=1.0), GradScaler(init_scale=8.0)
    for factor, value, scale in (
        (1.0, -1.0, 8.0),
        (math.inf, -1.0, 4.0),
        (math.nan, -1.0, 2.0),
        (1.0, -2.0, 2.0),
    ):
        optimizer.zero_grad()
        scaler.scale((p * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert (p.tolist(), scaler.get_scale()) == ([value, value], scale)


def model():
    wg.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.GELU(), nn.Dropout(0.0), nn.Linear(16, 4))


def train(device, forward=lambda net, x: net(x)):
    net = model().to(device)
    optimizer = optim.AdamW(net.parameters(), lr=0.05)
    x = wg.tensor(np.random.default_rng(0).standard_normal((20, 6)), dtype=wg.float32).to(device)
    t = wg.tensor(np.arange(20) % 4, dtype=wg.int32).to(device)
    for _ in range(10):
        optimizer.zero_grad()
        loss = F.cross_entropy(forward(net, x), t, label_smoothing=0.1)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    return loss, net


def test_training_equals_the_cpu():
    (loss, net), (expected, on_cpu) = train("gpu"), train("cpu")
    close(loss, expected, 1e-4)
    for a, e in zip(net.parameters(), on_cpu.parameters()):
        close(a, e, 1e-3)


def test_checkpointed_training_is_the_same_to_the_bit():
    loss, _ = train("gpu")
    again, _ = train("gpu", checkpoint)
    assert again.item() == loss.item()


@pytest.mark.parametrize("dtype", [wg.float16, wg.bfloat16])
def test_autocast_lowers_products_only(dtype):
    net, x = model().to("gpu"), wg.ones(3, 6, device="gpu")
    with wg.autocast("gpu", dtype=dtype):
        assert net[0](x).dtype == dtype
        loss = F.cross_entropy(net(x), wg.tensor([0, 1, 2], dtype=wg.int32).to("gpu"))
    assert loss.dtype == wg.float32
    loss.backward()
    assert all(p.grad.dtype == wg.float32 and bool(p.grad.isfinite().all()) for p in net.parameters())


def test_state_goes_from_device_to_device():
    net, other = model().to("gpu"), model()
    with wg.no_grad():
        net[0].bias.fill_(0.5)
    other.load_state_dict({name: value.cpu() for name, value in net.state_dict().items()})
    assert other[0].bias.tolist() == [0.5] * 16
    net.cpu()
    assert {str(p.device) for p in net.parameters()} == {"cpu"}
