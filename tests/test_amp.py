"""Autocast in models, and loss scaling."""

import math

import numpy as np
import pytest
import wengert as wg
from wengert import nn, optim
from wengert.amp import GradScaler
from wengert.nn import functional as F


def tiny_gradient(scaler):
    """The gradient of `1e-8 x`, which passes through a float16 on its way back."""
    x = wg.tensor([1.0], requires_grad=True)
    optimizer = optim.SGD([x], lr=1.0)
    loss = (x.to(wg.float16) * 1.0).to(wg.float32).sum() * 1e-8
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    return x.grad.item()


def test_a_tiny_gradient_vanishes_without_scaling_and_survives_with_it():
    assert tiny_gradient(GradScaler(enabled=False)) == 0.0
    assert math.isclose(tiny_gradient(GradScaler()), 1e-8, rel_tol=1e-3)


def test_defaults_and_scale():
    scaler = GradScaler()
    assert scaler.get_scale() == 65536.0
    assert scaler.state_dict() == {
        "scale": 65536.0,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": 2000,
        "_growth_tracker": 0,
    }
    a, (b,) = scaler.scale((wg.tensor(1.0), [wg.tensor(2.0)]))
    assert (a.item(), b.item()) == (65536.0, 131072.0)
    with pytest.raises(TypeError, match="got str"):
        scaler.scale("loss")


def step(scaler, optimizer, param, factor=1.0):
    optimizer.zero_grad()
    scaler.scale((param * factor).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


def test_growth_backoff_and_skipped_steps():
    p = nn.Parameter(wg.zeros(2))
    optimizer, scaler = optim.SGD([p], lr=1.0), GradScaler(init_scale=8.0, growth_interval=2)
    step(scaler, optimizer, p)
    assert p.tolist() == [-1, -1]
    assert scaler.get_scale() == 8.0
    step(scaler, optimizer, p)
    assert scaler.get_scale() == 16.0
    step(scaler, optimizer, p, math.inf)
    assert p.tolist() == [-2, -2]
    assert scaler.get_scale() == 8.0
    step(scaler, optimizer, p, math.nan)
    assert p.tolist() == [-2, -2]
    assert scaler.get_scale() == 4.0
    step(scaler, optimizer, p)
    assert scaler.get_scale() == 4.0
    other = GradScaler()
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict()
    scaler.scale(p.sum())
    scaler.update(2.0)
    assert scaler.get_scale() == 2.0


def test_unscale_before_clipping():
    p = nn.Parameter(wg.zeros(2))
    optimizer, scaler = optim.SGD([p], lr=1.0), GradScaler()
    scaler.scale((p * wg.tensor([3.0, 4.0])).sum()).backward()
    scaler.unscale_(optimizer)
    np.testing.assert_allclose(nn.utils.clip_grad_norm_([p], 1.0).item(), 5.0, rtol=1e-6)
    scaler.step(optimizer)
    scaler.update()
    np.testing.assert_allclose(p.tolist(), [-0.6, -0.8], rtol=1e-5)


def test_two_optimizers_skip_separately():
    p, q = nn.Parameter(wg.zeros(1)), nn.Parameter(wg.zeros(1))
    first, second, scaler = optim.SGD([p], lr=1.0), optim.SGD([q], lr=1.0), GradScaler(init_scale=4.0)
    scaler.scale((p * math.inf + q).sum()).backward()
    scaler.step(first)
    scaler.step(second)
    scaler.update()
    assert (p.item(), q.item(), scaler.get_scale()) == (0.0, -1.0, 2.0)


def test_used_out_of_order():
    p = nn.Parameter(wg.zeros(1))
    optimizer = optim.SGD([p], lr=1.0)
    with pytest.raises(RuntimeError, match=r"step\(\) before scale\(\)"):
        GradScaler().step(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) before scale\(\)"):
        GradScaler().unscale_(optimizer)
    scaler = GradScaler()
    scaler.scale(p.sum()).backward()
    with pytest.raises(RuntimeError, match=r"update\(\) before any step\(\)"):
        scaler.update()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) a second time"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) a second time"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) after step\(\)"):
        scaler.unscale_(optimizer)
    scaler.update()
    with pytest.raises(RuntimeError, match=r"step\(\) before scale\(\)"):
        scaler.step(optimizer)


def test_half_precision_master_gradients_are_refused():
    p = nn.Parameter(wg.zeros(3, dtype=wg.float16))
    scaler = GradScaler(init_scale=2.0)
    scaler.scale(p.sum()).backward()
    with pytest.raises(RuntimeError, match=r"a gradient of shape \(3,\) is float16"):
        scaler.unscale_(optim.SGD([p], lr=1.0))


def test_disabled_passes_through():
    p = nn.Parameter(wg.zeros(1))
    optimizer, scaler = optim.SGD([p], lr=1.0), GradScaler(enabled=False)
    loss = p.sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert (p.item(), scaler.get_scale(), scaler.state_dict()) == (-1.0, 1.0, {})


@pytest.mark.parametrize(("dtype", "tol"), [(wg.float16, 4e-3), (wg.bfloat16, 4e-2)])
def test_autocast_model_stays_near_float32(dtype, tol):
    wg.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4))
    x, t = wg.randn(32, 8), wg.randint(0, 4, (32,))

    def gradients(context):
        net.zero_grad()
        with context:
            hidden = net[0](x)
            loss = F.cross_entropy(net(x), t)
        loss.backward()
        return hidden.dtype, loss, [p.grad for p in net.parameters()]

    _, full, expected = gradients(wg.autocast("cpu", dtype=dtype, enabled=False))
    low, loss, actual = gradients(wg.amp.autocast("cpu", dtype=dtype))
    assert low == dtype
    assert loss.dtype == wg.float32
    assert abs(loss.item() - full.item()) < tol
    for a, e in zip(actual, expected):
        assert a.dtype == wg.float32
        np.testing.assert_allclose(a.tolist(), e.tolist(), atol=tol)
