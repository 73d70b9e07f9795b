"""Checkpointing: same numbers, less memory, and it works everywhere."""

import gc

import numpy as np
import pytest
import wengert as wg
from wengert import nn
from wengert.utils.checkpoint import checkpoint, checkpoint_sequential, set_checkpoint_early_stop


def model(layers=4, width=8):
    wg.manual_seed(0)
    parts = []
    for _ in range(layers):
        parts += [nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()]
    return nn.Sequential(*parts)


def gradients(net, run):
    net.zero_grad()
    x = wg.tensor(np.random.default_rng(0).standard_normal((5, 8)), dtype=wg.float32, requires_grad=True)
    out = run(x)
    out.square().sum().backward()
    return out.tolist(), x.grad.tolist(), [p.grad.tolist() for p in net.parameters()]


def test_same_gradients_also_of_closed_over_parameters():
    net = model()
    assert gradients(net, lambda x: checkpoint(net, x)) == gradients(net, net)
    assert gradients(net, lambda x: checkpoint(lambda x: net[3:](net[:3](x)), x)) == gradients(net, net)


def test_each_argument_is_passed_on():
    x = wg.ones(2, requires_grad=True)

    def f(x, factor, *, shift, parts):
        return x * factor + shift + parts[0]["y"], x.exp()

    out, other = checkpoint(f, x, 3.0, shift=x * x, parts=[{"y": x}])
    assert out.tolist() == [5, 5]
    (out + other).sum().backward()
    np.testing.assert_allclose(x.grad.tolist(), [6 + np.e] * 2, rtol=1e-6)


def test_dropout_has_the_same_mask_when_run_again():
    wg.manual_seed(3)
    x = wg.ones(1000, requires_grad=True)
    y = checkpoint(lambda x: nn.functional.dropout(x, 0.5) * x.exp(), x)
    after = wg.rand(3).tolist()
    y.sum().backward()
    kept = np.asarray(y.tolist()) != 0
    np.testing.assert_allclose(x.grad.tolist(), np.where(kept, 4 * np.e, 0), rtol=1e-6)
    wg.manual_seed(3)
    nn.functional.dropout(wg.ones(1000), 0.5)
    assert wg.rand(3).tolist() == after


def live_after_forward(run, x):
    gc.collect()
    before = wg.memory.live_bytes()
    out = run(x)
    used = wg.memory.live_bytes() - before
    out.sum().backward()
    return used


def test_less_memory_is_live_between_forward_and_backward():
    net = model(layers=8, width=8)
    x = wg.randn(1000, 8, requires_grad=True)
    plain = live_after_forward(net, x)
    saved = live_after_forward(lambda x: checkpoint(net, x), x)
    pieces = live_after_forward(lambda x: checkpoint_sequential(net, 4, x), x)
    one = x.nbytes
    assert saved <= 2 * one
    assert saved < pieces < plain
    assert plain > 8 * one


def test_sequential_equals_the_plain_run():
    net = model()
    for segments in (1, 2, 3, 12):
        run = lambda x, segments=segments: checkpoint_sequential(net, segments, x, use_reentrant=False)
        assert gradients(net, run) == gradients(net, net)
    with pytest.raises(ValueError, match="between 1 and 12 segments expected, got 13"):
        checkpoint_sequential(net, 13, wg.ones(1, 8))


def f(x):
    return (x.sin() * x.exp()).tanh()


def test_inside_transforms():
    x = wg.tensor(np.linspace(-1, 1, 6).reshape(2, 3))
    plain, checked = f, lambda x: checkpoint(f, x)
    total = lambda g: lambda x: g(x).sum()
    for transform in (
        lambda g: wg.grad(total(g))(x),
        lambda g: wg.vmap(g)(x),
        lambda g: wg.vmap(wg.grad(total(g)))(x),
        lambda g: wg.jvp(g, (x,), (wg.ones_like(x),))[1],
        lambda g: wg.grad(total(wg.grad(total(g))))(x),
        lambda g: wg.hessian(total(g))(x[0]),
        lambda g: wg.jacrev(g)(x[0]),
        lambda g: wg.jacfwd(g)(x[0]),
        lambda g: wg.grad(total(wg.vmap(g)))(x),
    ):
        np.testing.assert_allclose(transform(checked).tolist(), transform(plain).tolist(), rtol=1e-12)
    np.testing.assert_allclose(
        checkpoint(lambda x: wg.grad(total(f))(x), x).tolist(), wg.grad(total(f))(x).tolist(), rtol=1e-12
    )


def test_nested_and_double_backward():
    inner = lambda x: checkpoint(f, x) * x
    outer = lambda x: checkpoint(inner, x).exp()
    plain = lambda x: (f(x) * x).exp()
    x = wg.tensor([0.3, -0.7, 1.1], dtype=wg.float64, requires_grad=True)

    def second(g):
        (first,) = wg.autograd.grad(g(x).sum(), x, create_graph=True)
        (again,) = wg.autograd.grad(first.sum(), x)
        return first.tolist(), again.tolist()

    for a, b in zip(second(outer), second(plain)):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_a_second_backward_through_a_retained_graph():
    x = wg.tensor([0.5], requires_grad=True)
    y = checkpoint(f, x).sum()
    y.backward(retain_graph=True)
    once = x.grad.item()
    y.backward()
    assert x.grad.item() == pytest.approx(2 * once)


def test_a_function_that_changes_raises():
    calls = []

    def changing(x):
        calls.append(1)
        return x.exp() if len(calls) == 1 else x.sin()

    y = checkpoint(changing, wg.ones(2, requires_grad=True))
    with pytest.raises(wg.CheckpointError, match=r"the recomputation saved .* for sin where .* for exp"):
        y.sum().backward()
    calls.clear()

    def shorter(x):
        calls.append(1)
        return x.exp().sin() if len(calls) == 1 else x.exp()

    y = checkpoint(shorter, wg.ones(2, requires_grad=True))
    with pytest.raises(wg.CheckpointError, match="the recomputation ended before saving"):
        y.sum().backward()


def test_an_error_in_the_function_passes_through():
    calls = []

    def failing(x):
        calls.append(1)
        if len(calls) == 2:
            raise KeyError("second run")
        return x.exp()

    y = checkpoint(failing, wg.ones(2, requires_grad=True))
    with pytest.raises(KeyError, match="second run"):
        y.sum().backward()


def test_no_gradient_no_second_run():
    calls = []

    def counted(x):
        calls.append(1)
        return x.exp()

    with wg.no_grad():
        checkpoint(counted, wg.ones(2))
    checkpoint(counted, wg.ones(2))
    assert len(calls) == 2


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="use_reentrant=True is not available"):
        checkpoint(f, wg.ones(2), use_reentrant=True)
    with pytest.raises(TypeError, match="a function expected, got int"):
        checkpoint(3)


def test_the_name_at_the_top_is_the_same_function() -> None:
    assert wg.checkpoint is checkpoint
    x = wg.ones(3, requires_grad=True)
    wg.checkpoint(lambda x: x.exp().sin(), x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.cos(np.e) * np.e * np.ones(3), rtol=1e-5)


def test_early_stop_is_a_context_in_which_a_second_run_gives_the_same() -> None:
    runs = []

    def counted(x):
        y = x.exp().sin()
        runs.append("end")
        return y

    for enable in (True, False):
        x = wg.ones(3, requires_grad=True)
        with set_checkpoint_early_stop(enable):
            y = checkpoint(counted, x)
        y.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), np.cos(np.e) * np.e * np.ones(3), rtol=1e-5)
    assert runs == ["end"] * 4
    with pytest.raises(TypeError, match="set_checkpoint_early_stop: True or False expected, got function"):
        set_checkpoint_early_stop(counted).__enter__()
