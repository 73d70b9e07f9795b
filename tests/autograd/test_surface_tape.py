"""The tape: backward, hooks, modes, in-place writes, checkpoints, saved tensors."""

import threading
import warnings

import numpy as np
import pytest
import wengert as wg
from wengert.testing import assert_close, gradcheck, gradgradcheck

F64 = wg.float64


def test_in_place_and_the_tape() -> None:
    w = wg.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="no_grad"):
        w += 1
    with wg.no_grad():
        w += 1
    assert w.is_leaf
    y = w * 2
    y.mul_(w)
    y.exp_()
    y.sum().backward()
    assert_close(w.grad, 8 * np.exp(8.0) * np.ones(3), rtol=1e-5)
    z = w.exp()
    z.add_(1)
    with pytest.raises(RuntimeError, match="modified in place"):
        z.sum().backward()
    u = (w * 2)[0]
    u.add_(1)
    assert u.grad_fn.name() == "AsStridedBackward"


def test_backward_and_grad() -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    y = (x**3).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        y.backward()
    assert x.grad.tolist() == [3.0, 12.0]
    (x * 2).sum().backward()
    assert x.grad.tolist() == [5.0, 14.0]
    x.grad = None
    (x * x).backward(gradient=wg.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2.0, 40.0]
    (g,) = wg.autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = wg.autograd.grad(g.sum(), x)
    assert h.tolist() == [6.0, 12.0]
    other = wg.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="allow_unused=True"):
        wg.autograd.grad((x * x).sum(), other)
    assert wg.autograd.grad((x * x).sum(), other, allow_unused=True) == (None,)
    assert wg.autograd.grad((x * x).sum(), other, materialize_grads=True)[0].tolist() == [0.0]
    with pytest.raises(RuntimeError, match="has no graph"):
        wg.ones(1).backward()
    with pytest.raises(RuntimeError, match="reduce it first"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="only floating point"):
        wg.ones(1, dtype=wg.int64).requires_grad_()
    assert (x * 2).grad_fn.name() == "MulBackward"
    assert x.grad_fn is None


def test_grad_of_a_result_warns_unless_retained() -> None:
    x = wg.ones(2, requires_grad=True)
    y = x * 2
    with pytest.warns(UserWarning, match="retain_grad"):
        assert y.grad is None
    y.retain_grad()
    (y * y).sum().backward()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert y.grad.tolist() == [4.0, 4.0]


def test_hooks() -> None:
    x = wg.ones(2, requires_grad=True)
    seen = []
    handle = x.register_hook(lambda g: g * 10)
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t is x))
    (x * 3).sum().backward()
    assert x.grad.tolist() == [30.0, 30.0]
    handle.remove()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [33.0, 33.0]
    assert seen == [True, True]
    y = x * 2

    def bad(g: wg.Tensor) -> None:
        raise KeyError("from the hook")

    y.register_hook(bad)
    with pytest.raises(KeyError, match="from the hook"):
        y.sum().backward()


def test_recording_modes() -> None:
    x = wg.ones(1, requires_grad=True)
    with wg.no_grad():
        assert not (x * 2).requires_grad
        with wg.enable_grad():
            assert (x * 2).requires_grad
        assert wg.grad(lambda t: (t * t).sum())(x.detach()).tolist() == [2.0]
    assert (x * 2).requires_grad

    @wg.no_grad()
    def f() -> bool:
        return wg.is_grad_enabled()

    @wg.no_grad
    def g():
        yield wg.is_grad_enabled()
        yield wg.is_grad_enabled()

    assert f() is False
    for state in g():
        assert state is False
        assert wg.is_grad_enabled()
    with wg.set_grad_enabled(False):
        assert not wg.is_grad_enabled()
    with wg.inference_mode():
        assert not (x * 2).requires_grad
    assert wg.is_grad_enabled()


def test_modes_belong_to_threads() -> None:
    seen = []
    with wg.no_grad():
        thread = threading.Thread(target=lambda: seen.append(wg.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_autocast() -> None:
    w = wg.ones(2, 2, requires_grad=True)
    with wg.autocast(dtype=wg.bfloat16):
        y = w @ wg.ones(2, 2)
        assert y.dtype == wg.bfloat16
        with wg.autocast(enabled=False):
            assert (w @ w).dtype == wg.float32
        loss = y.exp().sum()
    assert loss.dtype == wg.float32
    loss.backward()
    assert w.grad.dtype == wg.float32


def test_checkpoint() -> None:
    x = wg.randn(5, dtype=F64)
    f = lambda x: wg.checkpoint(lambda t: t.sin().exp().sin(), x)
    gradcheck(f, x)
    gradgradcheck(f, x)
    assert_close(wg.vmap(wg.grad(lambda t: f(t)))(x), wg.vmap(wg.grad(lambda t: t.sin().exp().sin()))(x))


def test_saved_tensor_hooks() -> None:
    packed = []
    hooks = wg.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t.shape) or t * 1, lambda t: t)
    x = wg.randn(3, dtype=F64)

    def f(x: wg.Tensor) -> wg.Tensor:
        with hooks:
            return (x.exp() * x).sum()

    assert_close(wg.grad(f)(x), x.exp() * (x + 1))
    assert packed == [(3,), (3,), (3,)]
    gradcheck(f, x)
    gradgradcheck(f, x)
    y = x.clone().requires_grad_()
    with (
        wg.autograd.graph.saved_tensors_hooks(lambda t: 1 / 0, lambda t: t),
        pytest.raises(ZeroDivisionError),
    ):
        y.exp()
    with wg.autograd.graph.save_on_cpu():
        z = y.exp()
    z.sum().backward()
    assert_close(y.grad, x.exp())
