"""Training on the GPU: layers, optimisers, loss scaling and checkpoints give what they give on the CPU."""

import math

import numpy as np
import pytest
import wengert as wg
from references.optim_reference import CASES, run
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


def dispatches(call):
    """How many kernels `call` launches."""
    before = wg.gpu.memory_stats()["dispatches"]
    call()
    return wg.gpu.memory_stats()["dispatches"] - before


@pytest.mark.parametrize(("make", "bound"), [(optim.SGD, 2), (optim.Adam, 4)])
def test_a_step_is_one_dispatch_for_a_group(make, bound):
    params = [nn.Parameter(wg.ones(3, k + 1, device="gpu")) for k in range(5)]
    optimizer = make(params, lr=0.5)
    for _ in range(2):
        for param in params:
            param.grad = wg.ones_like(param.detach())
        found = dispatches(optimizer.step)
    # As many parameters at once as the adapter has bindings for, 56 at most.
    at_once = min((wg.gpu.info()["limits"]["max_storage_buffers_per_shader_stage"] - 1) // bound, 56)
    assert found == math.ceil(5 / at_once)
    assert [p[0, 0].item() for p in params] == [0.0] * 5
    params[2].grad = None
    assert dispatches(optimizer.step) == math.ceil(4 / at_once)
    halves = [p.detach().half().requires_grad_() for p in params]
    mixed = optim.SGD([*params, *halves], lr=1.0)
    for param in [*params, *halves]:
        param.grad = wg.ones_like(param.detach())
    before = [p.tolist() for p in halves]
    mixed.step()
    for half, old in zip(halves, before):
        np.testing.assert_allclose(half.tolist(), np.asarray(old) - 1.0)


def test_norm_and_scaling_take_one_dispatch_each():
    params = [nn.Parameter(wg.zeros(k + 1, device="gpu")) for k in range(4)]
    for param in params:
        param.grad = wg.ones_like(param.detach())
    grads = [p.grad for p in params]
    assert dispatches(lambda: wg._core._scale(grads, wg.tensor(3.0).to("gpu"))) == 1
    assert wg._core._norms(grads)[0].item() == pytest.approx(math.sqrt(90.0))
    # One to sum squares within tensors, one to add what it leaves, one for the root.
    assert dispatches(lambda: wg._core._norms(grads)) == 3
    assert dispatches(lambda: wg._core._amp_unscale(grads, 1 / 3)) == 2
    assert nn.utils.clip_grad_norm_(params, 1e-3).item() == pytest.approx(math.sqrt(10))
    # Gradients on several devices meet on the first one's.
    host = nn.Parameter(wg.zeros(2))
    host.grad = wg.full((2,), 2.0)
    params[0].grad = wg.full((1,), 1.0, device="gpu")
    total = nn.utils.clip_grad_norm_([params[0], host], 1.5)
    assert (total.item(), str(total.device)) == (3.0, "gpu:0")
    np.testing.assert_allclose(host.grad.tolist(), [1.0, 1.0], rtol=1e-5)
    np.testing.assert_allclose(params[0].grad.tolist(), [0.5], rtol=1e-5)


def test_one_memory_under_two_names_steps_twice():
    a = nn.Parameter(wg.zeros(3, device="gpu"))
    b = a.detach().requires_grad_()
    a.grad, b.grad = wg.ones(3, device="gpu"), wg.ones(3, device="gpu")
    optim.SGD([a, b], lr=1.0).step()
    assert a.tolist() == [-2.0] * 3
    # A gradient may be the parameter itself.
    a.grad = a.detach()
    optim.SGD([a], lr=0.5).step()
    assert a.tolist() == [-1.0] * 3


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
