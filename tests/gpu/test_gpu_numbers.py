"""A number that changes compiles no kernel."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import wengert as wg

F = wg.nn.functional
RNG = np.random.default_rng(3)


def on_gpu(*shape: int) -> wg.Tensor:
    return wg.tensor(RNG.uniform(0.2, 2, shape).astype("float32")).to("gpu").requires_grad_()


#: What takes a number `a`, of a tensor.
OF_A_NUMBER: dict[str, Callable[[wg.Tensor, float], wg.Tensor]] = {
    "add": lambda x, a: x + a,
    "mul": lambda x, a: a * x,
    "divide": lambda x, a: a / x,
    "pow": lambda x, a: x ** (a + 0.3),
    "rpow": lambda x, a: a**x,
    "clamp": lambda x, a: x.clamp(a, a + 0.5),
    "clamp_min": lambda x, a: x.clamp(min=a),
    "clamp_max": lambda x, a: x.clamp(max=a),
    "softplus": lambda x, a: F.softplus(x, beta=a),
    "elu": lambda x, a: F.elu(x, alpha=a),
    "celu": lambda x, a: F.celu(x, alpha=a),
    "leaky_relu": lambda x, a: F.leaky_relu(x, a),
    "hardtanh": lambda x, a: F.hardtanh(x, -a, a),
    "softshrink": lambda x, a: F.softshrink(x, a),
    "hardshrink": lambda x, a: F.hardshrink(x, a),
    "threshold": lambda x, a: F.threshold(x, a, a),
    "logit": lambda x, a: (x / 4).logit(a / 10),
    "huber_loss": lambda x, a: F.huber_loss(x, x.detach() * 2, delta=a),
    "layer_norm": lambda x, a: F.layer_norm(x, (8,), eps=a),
    "rms_norm": lambda x, a: F.rms_norm(x, (8,), eps=a),
    "cross_entropy": lambda x, a: F.cross_entropy(x, x.detach().softmax(-1), label_smoothing=a / 4),
    "where": lambda x, a: wg.where(x.detach() > a, x, a),
    "masked_fill": lambda x, a: x.masked_fill(x.detach() > a, a),
    "nan_to_num": lambda x, a: x.nan_to_num(a),
    "lerp": lambda x, a: x.lerp(x.detach(), a),
    "addcmul": lambda x, a: x.addcmul(x, x, value=a),
    "full_like": lambda x, a: x * wg.full_like(x.detach(), a),
    "dropout": lambda x, a: F.dropout(x, a / 4),
    "pad": lambda x, a: F.pad(x, (1, 2), value=a),
    "norm": lambda x, a: x.norm(a + 2),
    "item assignment": lambda x, a: x.clone().index_fill(0, wg.tensor([1]).int().to("gpu"), a),
}


@pytest.mark.parametrize("dtype", [wg.float32, wg.float16, wg.bfloat16], ids=str)
def test_the_next_number_has_the_bits_of_the_cpu(dtype: wg.dtype) -> None:
    hard = [0.0, 1.0, 65504.0, 6e-8, 1e-40, 3.4e38, float("inf")]
    every = np.append([*hard, *(-x for x in hard), float("nan")], RNG.standard_normal(10))
    x, y = (wg.tensor(v.ravel().astype("float32")).to(dtype) for v in np.meshgrid(every, every))
    on = x.gpu(), y.gpu()
    with wg.gpu.profile() as found:
        got = wg.nextafter(*on)
    assert [launch.kernel for launch in found.launches] == ["nextafter"]
    assert got.dtype is dtype
    want = wg.nextafter(x, y).float().numpy()
    np.testing.assert_array_equal(got.cpu().float().numpy(), want)
    np.testing.assert_array_equal(np.signbit(got.cpu().float().numpy()), np.signbit(want))
    assert wg.nextafter(on[0][:3], 2.0).shape == (3,)


def compiled() -> int:
    return wg.gpu.memory_stats()["pipelines_created"]


@pytest.mark.parametrize("name", OF_A_NUMBER)
def test_a_function_of_a_number(name: str) -> None:
    x = on_gpu(6, 8)

    def run(a: float) -> list[float]:
        (grad,) = wg.autograd.grad(OF_A_NUMBER[name](x, a).sum(), [x], create_graph=True)
        return [grad.sum().item()]

    run(0.4)
    before = compiled()
    for a in (0.5, 0.7, 0.9):
        run(a)
    assert compiled() == before


@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD", "RMSprop", "Adagrad", "NAdam"])
def test_an_optimiser(name: str) -> None:
    x = on_gpu(6, 8)
    optimiser = getattr(wg.optim, name)([x], lr=0.1, weight_decay=0.01)

    def step(lr: float) -> None:
        optimiser.param_groups[0].update(lr=lr, weight_decay=lr / 2)
        optimiser.zero_grad()
        (x * x).sum().backward()
        optimiser.step()
        wg.nn.utils.clip_grad_norm_([x], lr)

    step(0.1)
    before = compiled()
    for lr in (0.2, 0.3, 0.4):
        step(lr)
    assert compiled() == before


def test_integers_and_creation() -> None:
    x = wg.arange(24, dtype=wg.int32).to("gpu")

    def run(a: int) -> None:
        y = ((x + a) * a // (a + 1)) % (a + 2)
        (y & a, y ^ a, y << a, y.clamp(a, a + 3), y > a, y.roll(a), y.maximum(wg.full_like(y, a)))
        wg.arange(a, a + 24, a, dtype=wg.int32, device="gpu")
        wg.randint(a, a + 9, (24,), dtype=wg.int32, device="gpu")
        wg.rand(24, device="gpu").uniform_(a, a + 1)
        wg.full((5, 5), a, device="gpu").tril(a)
        wg.eye(5, device="gpu")[a:]
        wg.gpu.synchronize()

    run(1)
    before = compiled()
    for a in (2, 3, 4):
        run(a)
    assert compiled() == before


def test_recurrences_whose_first_decay_is_infinite() -> None:
    decay = wg.tensor([[math.inf, 2.0], [math.nan, 3.0]], device="gpu")
    start = wg.tensor([[1.0, 0.0], [2.0, 1.0]], device="gpu")
    assert start.linear_recurrence(decay, 1).tolist() == [[1, 2], [2, 7]]
    assert start.flip(1).linear_recurrence(decay.flip(1), 1, reverse=True).flip(1).tolist() == [
        [1, 2],
        [2, 7],
    ]
    grown = wg.tensor([math.inf, 2.0], device="gpu", requires_grad=True).cumprod(0)
    assert grown.tolist() == [math.inf, math.inf]
