"""The second run of a checkpoint casts as the first did, whatever region backward is in."""

from collections.abc import Callable
from typing import Any

import pytest
import wengert as wg
from wengert import nn
from wengert.nn import functional as F
from wengert.utils.checkpoint import checkpoint

W = wg.tensor([[0.5, -0.3, 0.2], [0.1, 0.7, -0.6], [-0.4, 0.3, 0.9]])
V = wg.tensor([1.003, 0.501, -0.252])


def layer(
    make: Callable[[], Any], call: Callable[[Any, wg.Tensor], wg.Tensor]
) -> Callable[[wg.Tensor], wg.Tensor]:
    """A layer with the same parameters each time, without gradients of its own."""
    wg.manual_seed(0)
    module = make().requires_grad_(False)
    return lambda x: call(module, x)


#: Functions that are made of several operations, and ask whether they are in a region.
COMPOSED: dict[str, Callable[[wg.Tensor], wg.Tensor]] = {
    "rms_norm": lambda x: F.rms_norm(x @ W, (3,), V),
    "prelu": lambda x: F.prelu(x @ W, V[:1]),
    "selu": lambda x: F.selu(x @ W),
    "addmm": lambda x: wg.addmm(x, x, W),
    "addr": lambda x: wg.addr(x @ W, V, V),
    "baddbmm": lambda x: wg.baddbmm(x[None], x[None], W[None]),
    "tensordot": lambda x: wg.tensordot(x @ W, W, 1),
    "bilinear": lambda x: F.bilinear(x, x @ W, wg.ones(2, 3, 3)),
    "vecdot": lambda x: wg.linalg.vecdot(x, x @ W),
    "RNN": layer(lambda: nn.RNN(3, 2), lambda m, x: m(x)[0]),
    "GRU": layer(lambda: nn.GRU(3, 2), lambda m, x: m(x)[0]),
    "LSTM": layer(lambda: nn.LSTM(3, 2), lambda m, x: m(x)[0]),
    "GRUCell": layer(lambda: nn.GRUCell(3, 2), lambda m, x: m(x, wg.ones(3, 2))),
    "LSTMCell": layer(lambda: nn.LSTMCell(3, 2), lambda m, x: m(x, (wg.ones(3, 2), wg.ones(3, 2)))[0]),
    "asks": lambda x: x @ W if wg.is_autocast_enabled() else (x @ W).exp(),
    "asks for the type": lambda x: (x * V).to(wg.get_autocast_dtype() or wg.float32) @ W,
}


def gradient(f: Callable[[wg.Tensor], wg.Tensor], made: Any, walked: Any) -> wg.Tensor:
    """The gradient of a sum, made in one region (or none) and walked in another."""
    x = wg.tensor([[0.31, -0.42, 0.53], [0.64, 0.75, -0.86], [0.97, 0.18, 0.29]], requires_grad=True)
    with wg.autocast(dtype=made or wg.bfloat16, enabled=made is not None):
        y = f(x)
    with wg.autocast(dtype=walked or wg.bfloat16, enabled=walked is not None):
        y.backward(wg.tensor([1.5, -2.0, 0.75])[: y.shape[-1]].to(y.dtype).expand(y.shape))
    return x.grad


@pytest.mark.parametrize("walked", [None, wg.float16, wg.bfloat16], ids=str)
@pytest.mark.parametrize("made", [None, wg.bfloat16], ids=str)
@pytest.mark.parametrize("name", COMPOSED)
def test_as_without_the_checkpoint(name: str, made: Any, walked: Any) -> None:
    f = COMPOSED[name]
    # What the walk itself casts is the same for both.
    assert wg.equal(gradient(lambda x: checkpoint(f, x), made, walked), gradient(f, made, walked))


def test_a_region_within_the_function() -> None:
    def f(x: wg.Tensor) -> wg.Tensor:
        with wg.autocast(dtype=wg.float16):
            return F.prelu(x @ W, V[:1])

    plain = gradient(f, None, None)
    assert wg.equal(gradient(lambda x: checkpoint(f, x), None, None), plain)
    assert wg.equal(gradient(lambda x: checkpoint(f, x), wg.bfloat16, None), gradient(f, wg.bfloat16, None))


def test_questions_take_a_device_type() -> None:
    assert not wg.is_autocast_enabled("cpu")
    with wg.autocast("cpu", dtype=wg.float16):
        assert wg.is_autocast_enabled("cpu")
        assert wg.get_autocast_dtype("gpu") == wg.float16
