"""Autocast in models, and loss scaling."""

import copy
import math
import pickle

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


RULES = {
    "SGD": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5),
    "SGD, Nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "AdamW": lambda p: optim.AdamW(p, lr=0.1, amsgrad=True),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.1),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("hooks", [False, True])
def test_a_skipped_step_leaves_no_trace(rule, hooks):
    """Steps with overflows in between equal the good steps alone, bit for bit."""
    results = []
    for factors in ([math.inf, 1.0, math.nan, math.nan, 2.0, 3.0], [1.0, 2.0, 3.0]):
        p = nn.Parameter(wg.tensor([1.0, -2.0, 3.0]))
        optimizer = RULES[rule]([p])
        calls = []
        if hooks:
            optimizer.register_step_post_hook(lambda *_: calls.append(None))  # noqa: B023
        # A power of two scales without rounding.
        scaler = GradScaler(init_scale=2.0**10)
        for factor in factors:
            step(scaler, optimizer, p, factor)
        state = [
            x.tolist() if isinstance(x, wg.Tensor) else x
            for entry in optimizer.state.values()
            for x in entry.values()
        ]
        results.append((p.tolist(), state, len(calls)))
    assert results[0] == results[1]
    assert results[0][2] == (3 if hooks else 0)


def overflow(optimizer, p, scaler=None):
    """A scaler whose next `step` finds an overflow in the gradient of `p`."""
    scaler = scaler or GradScaler(init_scale=8.0)
    optimizer.zero_grad()
    scaler.scale((p * math.inf).sum()).backward()
    return scaler


def test_a_state_of_ones_own_survives_a_skipped_step():
    p = nn.Parameter(wg.ones(2))
    optimizer = optim.Adam([p])
    optimizer.state["calls"] = 5
    scaler = overflow(optimizer, p)
    scaler.step(optimizer)
    scaler.update()
    assert dict(optimizer.state) == {"calls": 5}


def test_a_skipped_step_is_no_write():
    p = nn.Parameter(wg.ones(2))
    optimizer, y = optim.SGD([p], lr=0.1), (p * p).sum()
    scaler = overflow(optimizer, p)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    y.backward()
    assert p.grad.tolist() == [2, 2]


def test_a_state_loaded_after_a_skipped_step_stays():
    p = nn.Parameter(wg.ones(2))
    optimizer = optim.Adam([p])
    p.grad = wg.ones(2)
    optimizer.step()
    saved = optimizer.state_dict()
    saved["state"][0]["step"] = 77
    scaler = overflow(optimizer, p)
    scaler.step(optimizer)
    optimizer.load_state_dict(saved)
    scaler.update()
    assert optimizer.state[p]["step"] == 77


def test_a_skipped_step_that_raises_leaves_no_trace():
    p, q = nn.Parameter(wg.ones(2)), nn.Parameter(wg.ones(2))
    optimizer = optim.Adam([{"params": [p]}, {"params": [q]}])
    scaler = overflow(optimizer, p)
    q.grad = wg.ones(2)
    optimizer.param_groups[1]["betas"] = (0.9,)
    with pytest.raises(IndexError):
        scaler.step(optimizer)
    assert not optimizer.state


def test_an_update_of_ones_own_does_not_run_on_overflow():
    class Counting(optim.SGD):
        count = 0

        def _update(self, group):
            super()._update(group)
            self.count += 1

    p = nn.Parameter(wg.zeros(2))
    optimizer, scaler = Counting([p], lr=1.0), GradScaler(init_scale=8.0)
    for factor in (1.0, math.inf, 1.0):
        step(scaler, optimizer, p, factor)
    assert (optimizer.count, p.tolist()) == (2, [-2, -2])


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


#: Rows of the tables that run in float32: PyTorch's list, and what takes logarithms besides.
IN_FLOAT32 = """
    acos asin cosh entr erfcx erfinv exp expm1 log log10 log1p log2 log_ndtr logit ndtri pow reciprocal rsqrt
    sinh softplus tan
    xlog1py xlogy
    """.split()


@pytest.mark.parametrize("low", [wg.float16, wg.bfloat16])
def test_every_elementwise_function_has_its_precision(low):
    rows = {row["name"]: row for row in wg._core._op_formulas()}
    assert sorted(name for name, row in rows.items() if row["precision"] == "F32") == IN_FLOAT32
    arguments = {"clamp": {"min": 0.0, "max": 1.0}, "clamp_min": {"min": 0.0}, "clamp_max": {"max": 1.0}}
    arguments["polygamma"] = {"n": 1}
    arguments |= {
        "elu": {"alpha": 1.0, "scale": 1.0},
        "celu": {"alpha": 1.0},
        "leaky_relu": {"negative_slope": 0.1},
    }
    arguments |= {"softshrink": {"lambd": 0.2}, "hardshrink": {"lambd": 0.2}}
    methods = {
        "elu": "_elu",
        "celu": "_celu",
        "leaky_relu": "_leaky_relu",
        "softshrink": "_softshrink",
        "hardshrink": "_hardshrink",
        "gelu_exact": "gelu",
        "gelu_tanh": "gelu",
        "clamp_min": "clamp",
        "clamp_max": "clamp",
    }

    def run(name, x):
        beside = (x,) if rows[name]["inputs"] == 2 else ()
        return getattr(x, methods.get(name, name))(*beside, **arguments.get(name, {}))

    x = wg.full((2,), 0.5, dtype=low)
    for name in rows:
        plain = run(name, x)
        with wg.autocast(dtype=low):
            out, wide = run(name, x), run(name, x.double())
        assert plain.dtype == low, name
        assert out.dtype == (wg.float32 if name in IN_FLOAT32 else low), name
        assert wide.dtype == wg.float64, name
        tolerance = 1e-6 if name in IN_FLOAT32 else 1e-2
        np.testing.assert_allclose(out.float().tolist(), wide.tolist(), rtol=tolerance)


def test_an_exponential_of_halves_does_not_overflow():
    x = wg.tensor([12.0], dtype=wg.float16, requires_grad=True)
    with wg.autocast(dtype=wg.float16):
        y = x.exp()
    np.testing.assert_allclose(y.item(), math.exp(12.0), rtol=1e-6)
    (y * 1e-4).sum().backward()
    assert x.grad.dtype == wg.float16
    np.testing.assert_allclose(x.grad.item(), math.exp(12.0) * 1e-4, rtol=1e-3)
    _, pushed = wg.jvp(wg.autocast(dtype=wg.float16)(wg.exp), (x.detach(),), (wg.ones(1, dtype=wg.float16),))
    np.testing.assert_allclose(pushed.item(), math.exp(12.0), rtol=1e-6)
    with wg.autocast(dtype=wg.float16), wg.no_grad():
        assert x.exp_().dtype == wg.float16


A, B, V, W = wg.ones(2, 3), wg.ones(3, 2), wg.ones(3), wg.ones(2)
IMAGE = wg.ones(1, 2, 4, 4)

#: Functions that run in the low precision of the region, from float32.
LOW = {
    "matmul": lambda: A @ B,
    "addmm": lambda: wg.addmm(wg.zeros(2, 2), A, B),
    "addmv": lambda: wg.addmv(W, A, V),
    "addr": lambda: wg.addr(A, W, V),
    "baddbmm": lambda: wg.baddbmm(wg.ones(2, 2), A[None], B[None]),
    "addbmm": lambda: wg.addbmm(wg.ones(2, 2), A[None], B[None]),
    "vecdot": lambda: wg.linalg.vecdot(V, V),
    "einsum": lambda: wg.einsum("ij,jk->ik", A, B),
    "chain_matmul": lambda: wg.chain_matmul(A, B, A),
    "linear": lambda: F.linear(A, A, W),
    "conv": lambda: F.conv2d(IMAGE, wg.ones(3, 2, 2, 2), wg.ones(3)),
    "prelu": lambda: F.prelu(A, wg.ones(1)),
    "attention": lambda: F.scaled_dot_product_attention(IMAGE, IMAGE, IMAGE),
    "RNN": lambda: nn.RNN(3, 2)(A)[0],
    "GRU": lambda: nn.GRU(3, 2)(A)[0],
    "LSTM": lambda: nn.LSTM(3, 2)(A)[0],
    "LSTM cells": lambda: nn.LSTM(3, 2)(A)[1][1],
    "LSTM projected": lambda: nn.LSTM(3, 2, 2, proj_size=1, bidirectional=True)(A)[1][0],
    "LSTMCell": lambda: nn.LSTMCell(3, 2)(A)[1],
    "GRUCell": lambda: nn.GRUCell(3, 2)(A, wg.ones(2, 2)),
}


@pytest.mark.parametrize("name", list(LOW))
def test_runs_in_the_low_precision(name):
    full = LOW[name]().dtype
    with wg.autocast(dtype=wg.float16):
        low = LOW[name]().dtype
    assert (full, low) == (wg.float32, wg.float16)


H = wg.ones(2, 3, dtype=wg.float16)
#: Functions that run in float32, from halves.
WIDE = {
    "sum": lambda: H.sum(0),
    "mean": lambda: H.mean(0),
    "prod": lambda: H.prod(0),
    "norm": lambda: (H * 300).norm(dim=0),
    "std": lambda: H.std(0),
    "cumsum": lambda: H.cumsum(0),
    "logsumexp": lambda: H.logsumexp(0),
    "softmax": lambda: H.softmax(0),
    "layer_norm": lambda: F.layer_norm(H, (3,)),
    "rms_norm": lambda: F.rms_norm(H, (3,)),
    "group_norm": lambda: F.group_norm(H, 1),
    "cosine_similarity": lambda: F.cosine_similarity(H, H),
    "cdist": lambda: F.cdist(H, H),
    "pdist": lambda: F.pdist(H),
    "dist": lambda: H.dist(H),
    "interpolate": lambda: F.interpolate(H[None], scale_factor=2),
    "mse_loss": lambda: F.mse_loss(H, H, reduction="none"),
    "l1_loss": lambda: F.l1_loss(H, H, reduction="none"),
    "smooth_l1_loss": lambda: F.smooth_l1_loss(H, H, reduction="none"),
    "kl_div": lambda: F.kl_div(H, H, reduction="none"),
    "nll_loss": lambda: F.nll_loss(H, wg.tensor([0, 1]), reduction="none"),
    "bce_with_logits": lambda: F.binary_cross_entropy_with_logits(H, H, reduction="none"),
    "soft_margin_loss": lambda: F.soft_margin_loss(H, H, reduction="none"),
}


@pytest.mark.parametrize("name", list(WIDE))
def test_runs_in_float32(name):
    plain = WIDE[name]().dtype
    with wg.autocast(dtype=wg.float16):
        wide = WIDE[name]().dtype
    assert (plain, wide) == (wg.float16, wg.float32)


FULL = wg.ones(2, 3)
FIRST = wg.tensor([0])
#: Functions that run in the widest type of their operands, here of float16 and float32.
WIDEST = {
    "addcmul": lambda: H.addcmul(FULL, H),
    "addcdiv": lambda: H.addcdiv(FULL, H),
    "atan2": lambda: H.atan2(FULL),
    "cross": lambda: wg.cross(H, FULL),
    "dot": lambda: H[0].dot(FULL[0]),
    "vdot": lambda: FULL[0].vdot(H[0]),
    "tensordot": lambda: wg.tensordot(H, FULL.mT, 1),
    "bilinear": lambda: F.bilinear(H, FULL, wg.ones(4, 3, 3)),
    "scatter_add": lambda: H.scatter_add(0, wg.tensor([[0, 1, 0]]), FULL),
    "index_put": lambda: H.index_put((FIRST, FIRST), wg.ones(1)),
    "index_put, accumulated": lambda: H.index_put((FIRST, FIRST), wg.ones(1), accumulate=True),
    "index_copy": lambda: H.index_copy(0, FIRST, FULL[:1]),
    "cat": lambda: wg.cat([H, FULL]),
}


@pytest.mark.parametrize("name", list(WIDEST))
def test_runs_in_the_widest_type(name):
    with wg.autocast(dtype=wg.float16):
        assert WIDEST[name]().dtype == wg.float32


@pytest.mark.parametrize("name", ["elu", "celu", "selu", "mish", "logsigmoid", "gelu", "silu", "hardswish"])
def test_activations_keep_the_type_they_are_given(name):
    with wg.autocast(dtype=wg.float16):
        assert getattr(F, name)(H).dtype == wg.float16
        assert getattr(F, name)(FULL).dtype == wg.float32


def scaled(scaler):
    """A loss of 1, scaled by a program."""
    return wg.jit(lambda x: scaler.scale(x * 1))


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
@pytest.mark.parametrize("inference", [False, True])
def test_the_factor_of_a_copy_is_its_own(make, inference):
    class Named(GradScaler):
        name = "mine"

    kind = GradScaler if make not in (copy.copy, copy.deepcopy) else Named
    scaler = kind(init_scale=4.0)
    scaler.label = "a"
    with wg.inference_mode(inference):
        copied = make(scaler)
    assert type(copied) is kind
    assert copied.label == "a"
    assert copied.state_dict() == scaler.state_dict()
    ours, theirs = scaled(scaler), scaled(copied)
    for factor, other in ((4.0, 4.0), (2.0, 4.0), (2.0, 16.0)):
        if factor != scaler.get_scale():
            scaler.update(factor)
        if other != copied.get_scale():
            copied.update(other)
        for _ in range(2):
            assert (ours(wg.ones(())).item(), theirs(wg.ones(())).item()) == (factor, other)
    assert ours.why() == theirs.why() == []


def test_a_scaler_of_inference_mode():
    with wg.inference_mode():
        scaler = GradScaler(init_scale=4.0)
        assert scaler.get_scale() == 4.0
    step = scaled(scaler)
    assert [step(wg.ones(())).item() for _ in range(2)] == [4.0, 4.0]
    scaler.update(8.0)
    assert [step(wg.ones(())).item() for _ in range(2)] == [8.0, 8.0]
    with wg.inference_mode():
        scaler.update(2.0)
    assert scaler.get_scale() == 2.0
    assert [step(wg.ones(())).item() for _ in range(2)] == [2.0, 2.0]
    assert (step.traces, step.why()) == (1, [])


def test_a_factor_that_is_another_tensor_is_seen():
    scaler = GradScaler(init_scale=4.0)
    step = scaled(scaler)
    assert [step(wg.ones(())).item() for _ in range(2)] == [4.0, 4.0]
    scaler.__dict__.update(copy.deepcopy(GradScaler(init_scale=16.0)).__dict__)
    assert [step(wg.ones(())).item() for _ in range(2)] == [16.0, 16.0]
    assert step.traces == 2


def test_the_factor_may_be_set_between_a_loss_and_its_backward():
    def train(jit):
        weight, scaler = nn.Parameter(wg.ones(2)), GradScaler(init_scale=4.0)

        @jit
        def step(x):
            weight.grad = None
            loss = scaler.scale((weight * x).sum())
            scaler.update(8.0)
            loss.backward()
            return weight.grad.clone()

        found = []
        for _ in range(3):
            found.append(step(wg.ones(2)).tolist())
            scaler.update(2.0)
        return found

    assert train(lambda f: f) == train(wg.jit) == [[4.0, 4.0], [2.0, 2.0], [2.0, 2.0]]
