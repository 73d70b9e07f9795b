"""Functions made of several operations, of halves: one rounding, and nothing beyond range on the way.

Expected values are those of the formulas in float64, rounded by NumPy where every bit is meant.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from wengert.nn import functional as F

H, B = wg.float16, wg.bfloat16
EPS = {H: 2.0**-11, B: 2.0**-8}


def sigmoid(x: Any) -> Any:
    """The logistic function."""
    return 1 / (1 + np.exp(-x))


SELU = (1.6732632423543772, 1.0507009873554805)
POINTS = np.array([-14.0, -5.5, -2.984375, -1.3, -0.7, -0.02, 0.03, 0.6, 1.9, 2.984375, 7.1])

#: Functions with their values and slopes in float64.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "hardsigmoid": (
        F.hardsigmoid,
        lambda x: np.clip(x / 6 + 0.5, 0, 1),
        lambda x: np.where(np.abs(x) < 3, 1 / 6, 0),
    ),
    "hardswish": (
        F.hardswish,
        lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
        lambda x: np.where(np.abs(x) < 3, (2 * x + 3) / 6, x > 0),
    ),
    "softsign": (F.softsign, lambda x: x / (1 + np.abs(x)), lambda x: (1 + np.abs(x)) ** -2.0),
    "selu": (
        F.selu,
        lambda x: SELU[1] * np.where(x > 0, x, SELU[0] * np.expm1(x)),
        lambda x: SELU[1] * np.where(x > 0, 1, SELU[0] * np.exp(x)),
    ),
    "elu": (
        lambda x: F.elu(x, 1.7),
        lambda x: np.where(x > 0, x, 1.7 * np.expm1(x)),
        lambda x: np.where(x > 0, 1, 1.7 * np.exp(x)),
    ),
    "mish": (
        F.mish,
        lambda x: x * np.tanh(np.log1p(np.exp(x))),
        lambda x: np.tanh(np.log1p(np.exp(x))) + x * (1 - np.tanh(np.log1p(np.exp(x))) ** 2) * sigmoid(x),
    ),
    "sinc": (
        wg.sinc,
        np.sinc,
        lambda x: (np.cos(math.pi * x) - np.sinc(x)) / x,
    ),
}


def held(x: Any, dtype: Any) -> Any:
    """The nearest numbers of a half type, as float64."""
    return np.array(wg.tensor(np.asarray(x, np.float64)).to(dtype).to(wg.float64).tolist())


@pytest.mark.parametrize("dtype", [H, B], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_activations(name: str, dtype: Any) -> None:
    f, value, slope = FUNCTIONS[name]
    x = held(POINTS, dtype)
    t = wg.tensor(x).to(dtype).requires_grad_()
    out = f(t)
    out.sum().backward()
    assert out.dtype == t.grad.dtype == dtype
    # Half a unit of the result, and what float32 adds to it.
    for found, want in ((out, value(x)), (t.grad, slope(x))):
        found = np.array(found.detach().to(wg.float64).tolist())
        np.testing.assert_allclose(
            found, want, rtol=1.01 * EPS[dtype], atol=2.0**-25 + 3e-6 * (name == "sinc")
        )


def test_a_gate_that_is_nearly_shut() -> None:
    found = F.glu(wg.tensor([60000.0, -14.0], dtype=H))
    assert found.item() == float(np.float16(60000.0 * sigmoid(-14.0)))


@pytest.mark.parametrize("dtype", [H, B], ids=str)
def test_under_autocast_types_stay(dtype: Any) -> None:
    with wg.autocast(dtype=dtype):
        for f in (F.hardswish, F.softsign, F.hardsigmoid, F.glu, wg.sinc):
            assert f(wg.ones(2, dtype=dtype)).dtype == dtype
            assert f(wg.ones(2)).dtype == wg.float32
        x = wg.full((2,), 300.0, dtype=H)
        assert (x**2).tolist() == x.pow(2.0).tolist() == [90000.0] * 2


def test_powers_of_windows() -> None:
    x = wg.full((1, 1, 6), 200.0, dtype=H)
    found = F.lp_pool1d(x, 2, 3)
    assert found.dtype == H
    assert found.flatten().tolist() == [float(np.float16(200 * 3**0.5))] * 2
    found = F.lp_pool2d(wg.full((1, 1, 2, 2), 300.0, dtype=H), 3, 2)
    assert found.item() == float(np.float16(300 * 4 ** (1 / 3)))


def test_the_order_of_products() -> None:
    found = wg.zeros(1).addcmul(wg.tensor([3.4e38]), wg.tensor([1.5]), value=0.33)
    np.testing.assert_allclose(found.item(), 1.683e38, rtol=1e-6)
    found = wg.zeros(1).addcdiv(wg.tensor([3e38]), wg.tensor([0.5]), value=0.25)
    np.testing.assert_allclose(found.item(), 1.5e38, rtol=1e-6)


TERNARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "addcmul": (lambda a, b, c: a.addcmul(b, c, value=0.37), lambda a, b, c: a + 0.37 * b * c),
    "addcdiv": (lambda a, b, c: a.addcdiv(b, c, value=0.37), lambda a, b, c: a + 0.37 * b / c),
    "lerp": (lambda a, b, c: a.lerp(b, 0.37), lambda a, b, c: a + 0.37 * (b - a)),
    "lerp with tensors": (lambda a, b, c: a.lerp(b, c), lambda a, b, c: a + c * (b - a)),
    "add": (lambda a, b, c: a.add(b, alpha=0.37), lambda a, b, c: a + 0.37 * b),
    "sub": (lambda a, b, c: a.sub(b, alpha=0.37), lambda a, b, c: a - 0.37 * b),
    "xlogy": (lambda a, b, c: wg.xlogy(a, b), lambda a, b, c: a * np.log(b)),
    "ldexp": (lambda a, b, c: wg.ldexp(a * 2**-7, wg.tensor(17)), lambda a, b, c: a * 2.0**10),
}


@pytest.mark.parametrize("dtype", [H, B], ids=str)
@pytest.mark.parametrize("name", TERNARY)
def test_functions_of_three(name: str, dtype: Any) -> None:
    f, exact = TERNARY[name]
    rng = np.random.default_rng(0)
    a, b, c = (held(rng.uniform(0.3, 2.0, 50), dtype) for _ in range(3))
    out = f(*[wg.tensor(x).to(dtype) for x in (a, b, c)])
    assert out.dtype == dtype
    want = exact(a, b, c)
    # Where terms cancel, float32 has lost digits of the sum.
    error = np.abs(np.array(out.to(wg.float64).tolist()) - want)
    assert (error <= 1.01 * EPS[dtype] * np.abs(want) + 1e-6).all()


def test_a_0d_tensor_follows_the_halves() -> None:
    a = wg.ones(2, dtype=H)
    assert a.addcmul(a, wg.tensor(2.0)).dtype == H
    assert a.lerp(a, wg.tensor(0.5)).dtype == H
    assert a.lerp(wg.ones(2), 0.5).dtype == wg.float32


@pytest.mark.parametrize("dtype", [wg.int64, wg.uint64], ids=str)
def test_large_integers_to_halves(dtype: Any) -> None:
    # One more than the middle of two numbers of bfloat16: the nearest is the larger, also by way of float64.
    middle = 0b1_0111_0001 * 2**46
    values = [middle + 1, middle, middle - 1, 25966066601558017, 3]
    if dtype == wg.int64:
        values += [-middle - 1, -(2**63)]
    found = wg.tensor(values, dtype=dtype).to(B).to(wg.float64).tolist()
    unit = 2**47
    up, down = (middle // unit + 1) * unit, middle // unit * unit
    even = down if down // unit % 2 == 0 else up
    assert found[:3] == [float(up), float(even), float(down)]
    assert abs(found[3] - values[3]) <= 2**46
    assert found[4] == 3.0
    if dtype == wg.int64:
        assert found[5:] == [-float(up), -(2.0**63)]


def test_least_squares_under_autocast() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((5, 2)), rng.standard_normal((5, 1))
    want, rest, *_ = np.linalg.lstsq(a, b, rcond=None)
    with wg.autocast(dtype=B):
        found = wg.linalg.lstsq(wg.tensor(a, dtype=wg.float32), wg.tensor(b, dtype=wg.float32))
        q = wg.linalg.householder_product(wg.tensor(a, dtype=wg.float32), wg.tensor([0.3, 0.7]))
        halves = wg.linalg.lstsq(wg.tensor(a).to(B), wg.tensor(b).to(B))
    np.testing.assert_allclose(found.solution.tolist(), want, rtol=1e-5)
    np.testing.assert_allclose(found.residuals.tolist(), rest, rtol=1e-5)
    assert q.dtype == halves.solution.dtype == wg.float32
    plain = wg.linalg.householder_product(wg.tensor(a, dtype=wg.float32), wg.tensor([0.3, 0.7]))
    assert wg.equal(q, plain)


def test_the_loss_of_halves_is_scaled_in_float32() -> None:
    scaler = wg.amp.GradScaler()
    scaled = scaler.scale(wg.tensor(0.25, dtype=H))
    assert (scaled.dtype, scaled.item()) == (wg.float32, 16384.0)
    assert scaler.scale(wg.tensor(0.25, dtype=wg.float64)).dtype == wg.float64
    # With axes it stays what it is, and is rounded once.
    assert scaler.scale(wg.tensor([2.0**-20], dtype=H)).tolist() == [2.0**-4]
    assert scaler.scale(wg.tensor([2.0**-20], dtype=H)).dtype == H


def test_arguments_of_a_step_are_handed_on() -> None:
    seen = []

    class Own(wg.optim.SGD):
        """Takes note of its arguments."""

        def step(self, *args: Any, **kwargs: Any) -> Any:
            seen.append((args, kwargs))
            return super().step()

    p = wg.nn.Parameter(wg.ones(2))
    for enabled in (True, False):
        scaler = wg.amp.GradScaler(enabled=enabled)
        scaler.scale((p * p).sum()).backward()
        scaler.step(Own([p], lr=0.1), 3, scale=0.5)
    assert seen == [((3,), {"scale": 0.5})] * 2
    scaler = wg.amp.GradScaler()
    scaler.scale((p * p).sum()).backward()
    for call in (lambda o: scaler.step(o, lambda: 0.0), lambda o: scaler.step(o, closure=lambda: 0.0)):
        with pytest.raises(RuntimeError, match="closures are not supported"):
            call(Own([p], lr=0.1))
