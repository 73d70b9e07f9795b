"""Numbers and 0-d tensors beside float16 and bfloat16: float32 inside, one rounding at the end.

What is expected is the exact result of the numbers as they are (float32 where tensors hold them),
rounded once by NumPy.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg

H, B = wg.float16, wg.bfloat16


def nearest(value: Any, dtype: Any) -> Any:
    """The nearest numbers of a half type, as float64."""
    if dtype == H:
        return np.asarray(value, np.float64).astype(np.float16).astype(np.float64)
    return np.array(wg.tensor(np.asarray(value, np.float64)).to(B).to(wg.float64).tolist())


CASES: dict[str, tuple[Any, float, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "over a large number": (H, 60000.0, lambda a: a / 1e5, lambda a: a / 1e5),
    "over a large integer": (H, 60000.0, lambda a: a / 100000, lambda a: a / 1e5),
    "times a small number": (H, 60000.0, lambda a: a * 1e-8, lambda a: a * 1e-8),
    "times a large number": (H, 1e-3, lambda a: a * 1e5, lambda a: a * 1e5),
    "a number times it": (H, 1e-3, lambda a: 1e5 * a, lambda a: a * 1e5),
    "a number over it": (H, 60000.0, lambda a: 1e5 / a, lambda a: 1e5 / a),
    "times a tenth": (H, 65504.0, lambda a: a * 0.1, lambda a: a * 0.1),
    "div": (H, 60000.0, lambda a: a.div(7e4), lambda a: a / 7e4),
    "minus a number": (H, 60000.0, lambda a: a - 70000.0, lambda a: a - 70000.0),
    "a number minus it": (H, 60000.0, lambda a: 70000.0 - a, lambda a: 70000.0 - a),
    "plus, with a factor": (H, 6.0, lambda a: wg.add(a, a, alpha=1e4), lambda a: a + 1e4 * a),
    "power": (H, 60000.0, lambda a: a**1e-5, lambda a: a**1e-5),
    "a number to its power": (H, 8.0, lambda a: 1e-5 ** (a * 0 + 1), lambda a: 1e-5),
    "remainder": (H, 60000.0, lambda a: a % 0.7, lambda a: a % np.float64(np.float32(0.7))),
    "times a 0-d tensor": (H, 60000.0, lambda a: a * wg.tensor(1e-8), lambda a: a * 1e-8),
    "over a 0-d float64": (H, 60000.0, lambda a: a / wg.tensor(7e4, dtype=wg.float64), lambda a: a / 7e4),
    "over a 0-d integer": (H, 60000.0, lambda a: a / wg.tensor(70000), lambda a: a / 7e4),
    "bfloat16 times a tenth": (B, 3.046875, lambda a: a * 0.1, lambda a: a * 0.1),
    "0-d halves": (H, 60000.0, lambda a: a[0] / 1e5, lambda a: a[0] / 1e5),
}


@pytest.mark.parametrize("name", CASES)
def test_rounded_once(name: str) -> None:
    dtype, value, f, exact = CASES[name]
    a = wg.full((3,), value, dtype=dtype)
    out = f(a)
    assert out.dtype == dtype
    held = np.array(a.to(wg.float64).tolist())
    np.testing.assert_array_equal(np.array(out.to(wg.float64).tolist()), nearest(exact(held), dtype))


@pytest.mark.parametrize("name", [n for n in CASES if n != "0-d halves"])
def test_the_same_in_transforms(name: str) -> None:
    dtype, value, f, _ = CASES[name]
    a = wg.full((3,), value, dtype=dtype)
    want = f(a)
    if "0-d" not in name:
        # Examples without axes meet tensors without axes as equals.
        assert wg.equal(wg.vmap(f)(a), want)
    assert wg.equal(wg.vmap(f)(a[None])[0], want)
    assert wg.equal(wg.jvp(f, (a,), (a,))[0], want)
    assert wg.equal(f(a.clone().requires_grad_()), want)
    for moved in (wg.jvp(f, (a,), (a,))[1], wg.grad(lambda a: f(a).float().sum())(a)):
        assert moved.dtype == dtype


SLOPES: dict[str, tuple[Callable[[Any], Any], float]] = {
    "over a large number": (lambda a: a / 1e5, 1e-5),
    "times a small number": (lambda a: a * 1e-6, 1e-6),
    "times a 0-d tensor": (lambda a: a * wg.tensor(1e-6), 1e-6),
    "a number over it": (lambda a: 1e5 / a, -1e5 / 60000.0**2),
    "power": (lambda a: a**0.1, 0.1 * 60000.0**-0.9),
}


@pytest.mark.parametrize("name", SLOPES)
def test_slopes(name: str) -> None:
    f, slope = SLOPES[name]
    a = wg.tensor([60000.0], dtype=H)
    leaf = a.clone().requires_grad_()
    f(leaf).sum().backward()
    pushed = wg.jvp(f, (a,), (wg.ones(1, dtype=H),))[1]
    lanes = wg.vmap(wg.grad(lambda a: f(a)))(a)
    line = wg.linearize(f, a)[1](wg.ones(1, dtype=H))
    for found in (leaf.grad, pushed, lanes, line):
        assert found.dtype == H
        # Units of a number below the normal ones of float16.
        np.testing.assert_allclose(found.float().item(), slope, rtol=2**-10, atol=2**-25)


def test_second_derivatives() -> None:
    a = wg.tensor([2.0], dtype=H)
    curvature = wg.grad(lambda a: wg.grad(lambda a: (a**3 * 1e-3).sum())(a).sum())(a)
    np.testing.assert_allclose(curvature.float().item(), 12e-3, rtol=2**-9)
    _, moved = wg.jvp(wg.grad(lambda a: (1e-3 * a**2.5).sum()), (a,), (wg.ones(1, dtype=H),))
    np.testing.assert_allclose(moved.float().item(), 1e-3 * 2.5 * 1.5 * 2**0.5, rtol=2**-9)


def test_a_0d_tensor_gets_its_gradient_in_float32() -> None:
    a, t = wg.tensor([60000.0, 3.0], dtype=H), wg.tensor(1e-8, requires_grad=True)
    (a * t).backward(wg.tensor([0.5, 2.0], dtype=H))
    assert t.grad.dtype == wg.float32
    assert t.grad.item() == 30006.0 or abs(t.grad.item() - 30006.0) <= 16
    out, tangent = wg.jvp(lambda t: a + t, (t.detach(),), (wg.tensor(1.0),))
    assert out.dtype == tangent.dtype == H
    assert tangent.tolist() == [1.0, 1.0]
    # A batch of them is one for each example.
    lanes = wg.vmap(lambda t: a * t)(wg.tensor([1e-8, 1e-7]))
    np.testing.assert_array_equal(lanes[0].tolist(), (a * 1e-8).tolist())


def test_in_place() -> None:
    a = wg.full((2,), 60000.0, dtype=H)
    a /= 1e5
    assert a.dtype == H
    np.testing.assert_array_equal(a.to(wg.float64).tolist(), nearest([0.6, 0.6], H))
    a.mul_(1e5).sub_(wg.tensor(6e4))
    assert abs(a[0].item()) <= 16
    turned = wg.full((3, 2), 60000.0, dtype=H).mT
    turned.mul_(1e-8)
    np.testing.assert_array_equal(turned.to(wg.float64).tolist(), nearest(np.full((2, 3), 6e-4), H))


def test_random_products_are_the_nearest() -> None:
    x = np.random.default_rng(0).standard_normal(2000)
    for dtype in (H, B):
        a = wg.tensor(x).to(dtype)
        held = np.array(a.to(wg.float64).tolist())
        found = np.array((a * 0.1).to(wg.float64).tolist())
        # float32 has so many more digits that rounding twice shows in none of these.
        np.testing.assert_array_equal(found, nearest(held * np.float64(np.float32(0.1)), dtype))


def test_float32_and_wider_are_as_they_were() -> None:
    assert (wg.ones(2) * 1e-50).tolist() == [0.0, 0.0]
    assert (wg.ones(2, dtype=wg.float64) * 0.1).tolist() == [0.1, 0.1]
    assert (wg.ones(2, dtype=H) + wg.ones(2)).dtype == wg.float32
    assert (wg.tensor(1.0, dtype=H) * wg.tensor(1.0)).dtype == wg.float32
    assert (wg.ones(2, dtype=H) * wg.ones(1)).dtype == wg.float32
    assert (wg.ones(2, dtype=H) * wg.tensor(2.0)).dtype == H
