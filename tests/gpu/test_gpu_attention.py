"""Attention on a GPU: the numbers of the CPU in every order of derivative, tiles, masks, dropout, and its
memory."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import wengert as wg
from references.attention_reference import (
    MASKS,
    Array,
    Derivative,
    attend,
    back_of_forward,
    first,
    forward,
    forward_twice,
    mixed,
    numbers,
    reference,
    second,
    third,
)
from support import array

DEVICE = "gpu"


def pair(*arrays: Array, dtype: wg.dtype = wg.float32) -> tuple[list[wg.Tensor], list[wg.Tensor]]:
    """The arrays on the CPU and on the GPU."""
    here = [wg.tensor(x, dtype=wg.bool if x.dtype == bool else dtype) for x in arrays]
    return here, [x.to(DEVICE) for x in here]


def same(got: wg.Tensor, want: wg.Tensor, tolerance: float = 2e-5) -> None:
    """Equal up to rounding, and where they should be."""
    assert (str(got.device), got.dtype, got.shape) == ("gpu:0", want.dtype, want.shape)
    wanted = array(want.double())
    scale = max(1.0, abs(wanted).max(initial=0.0))
    np.testing.assert_allclose(array(got.cpu().double()), wanted, atol=tolerance * scale)


#: Lengths around the borders of tiles, and depths and widths of more than one of them.
SIZES = [(1, 1, 1, 1), (7, 5, 3, 4), (64, 64, 32, 16), (65, 129, 70, 7), (130, 30, 16, 66), (9, 70, 131, 200)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_values_across_tiles(sizes: tuple[int, int, int, int], causal: bool) -> None:
    length, source, depth, width = sizes
    arrays = numbers(2, 2, length, depth), numbers(2, 2, source, depth), numbers(2, 2, source, width)
    want = reference(*arrays, causal=causal)
    for dtype, tolerance in [(wg.float32, 5e-6), (wg.float16, 3e-3), (wg.bfloat16, 3e-2)]:
        _, there = pair(*arrays, dtype=dtype)
        got = attend(*there, is_causal=causal)
        assert got.dtype == dtype
        atol = tolerance * max(1.0, abs(want).max())
        np.testing.assert_allclose(array(got.cpu().double()), want, atol=atol)


@pytest.mark.parametrize("shape", MASKS.values(), ids=MASKS)
def test_masks(shape: tuple[int, ...]) -> None:
    q, k, v = numbers(2, 3, 70, 9), numbers(2, 3, 140, 9), numbers(2, 3, 140, 5)
    rng = np.random.default_rng(8)
    add = np.where(rng.random(shape) < 0.2, -np.inf, rng.standard_normal(shape))
    for mask in (np.asarray(rng.random(shape) < 0.5), np.asarray(add)):
        here, there = pair(q, k, v, mask)
        same(attend(*there[:3], attn_mask=there[3]), attend(*here[:3], attn_mask=here[3]))

        def gradients(x: list[wg.Tensor]) -> list[wg.Tensor]:
            operands = x if x[3].dtype != wg.bool else x[:3]
            return first(lambda *y: attend(*y[:3], attn_mask=[*y, x[3]][3]), *operands)

        for got, want in zip(gradients(there), gradients(here), strict=True):
            same(got, want, 1e-4)


def test_rows_that_see_nothing_and_empty_operands() -> None:
    take = np.ones((5, 6), bool)
    take[2] = False
    q, k, v = numbers(5, 4), numbers(6, 4), numbers(6, 3)
    for mask in (take, np.where(take, 0.0, -math.inf)):
        _, there = pair(q, k, v, mask)

        def f(*x: wg.Tensor, mask: wg.Tensor = there[3]) -> wg.Tensor:
            return attend(*x, attn_mask=mask)

        assert f(*there[:3])[2].tolist() == [0.0] * 3
        found = first(f, *there[:3])
        assert found[0][2].tolist() == [0.0] * 4
        assert all(np.isfinite(array(x.cpu())).all() for x in [*found, *second(f, *there[:3])])
        assert forward(f, *there[:3])[0][2].tolist() == [0.0] * 3
    for sizes in [(2, 0, 3, 4), (0, 2, 3, 4), (2, 5, 0, 4), (2, 5, 3, 0)]:
        length, source, depth, width = sizes
        here, there = pair(numbers(3, length, depth), numbers(3, source, depth), numbers(3, source, width))
        same(attend(*there), attend(*here))
        for got, want in zip(first(attend, *there), first(attend, *here), strict=True):
            same(got, want)


KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"is_causal": True},
    "mask": {},
    "shared mask": {},
    "dropout": {"dropout_p": 0.4},
    "groups": {"enable_gqa": True},
    "broadcast": {},
}
ORDERS = [first, forward, second, mixed, back_of_forward, forward_twice]


@pytest.mark.parametrize("order", ORDERS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_are_those_of_the_cpu(order: Derivative, kind: str) -> None:
    q, k, v = numbers(2, 2, 70, 6), numbers(2, 2, 67, 6), numbers(2, 2, 67, 5)
    if kind == "broadcast":
        q, k, v = numbers(2, 1, 10, 6), numbers(2, 67, 6), numbers(3, 1, 2, 67, 5)
    if kind == "groups":
        k, v = k[:, :1], v[:, :1]
    arrays = [q, k, v]
    if "mask" in kind:
        arrays.append(numbers(*((2, 2) if kind == "mask" else ()), 70, 67))

    def f(*x: wg.Tensor) -> wg.Tensor:
        wg.manual_seed(3)
        return attend(*x[:3], attn_mask=x[3] if len(x) > 3 else None, **KINDS[kind])

    here, there = pair(*arrays)
    for got, want in zip(order(f, *there), order(f, *here), strict=True):
        same(got, want, 2e-4)


def test_the_third_derivative_is_by_the_composition() -> None:
    here, there = pair(numbers(5, 3), numbers(6, 3), numbers(6, 2))
    for got, want in zip(third(attend, *there), third(attend, *here), strict=True):
        same(got, want, 2e-3)


@pytest.mark.parametrize(("dtype", "width"), [(wg.float16, 4), (wg.float16, 5), (wg.bfloat16, 5)])
def test_halves_have_gradients_of_their_dtype(dtype: wg.dtype, width: int) -> None:
    arrays = numbers(2, 9, width), numbers(2, 70, width), numbers(2, 70, width)
    tolerance = 1e-2 if dtype == wg.float16 else 8e-2
    here, there = pair(*arrays, dtype=dtype)
    for order in (first, forward, second):
        for got, want in zip(order(attend, *there), order(attend, *here), strict=True):
            same(got, want, tolerance)


@pytest.mark.parametrize("p", [0.25, 1.0])
def test_dropout_uses_the_numbers_of_the_cpu(p: float) -> None:
    # Lengths that are no multiple of four: the numbers of a row begin in the middle of a counter's four.
    here, there = pair(numbers(3, 70, 8), numbers(3, 67, 8), numbers(3, 67, 8))
    found = []
    for x in (there, here):
        wg.manual_seed(11)
        found.append((attend(*x, dropout_p=p), wg.rand(2, device=x[0].device).tolist()))
    same(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]
    for randomness in ("same", "different"):

        def f(q: wg.Tensor, k: wg.Tensor, v: wg.Tensor) -> wg.Tensor:
            wg.manual_seed(5)
            return wg.vmap(lambda *x: attend(*x, dropout_p=p), randomness=randomness)(q, k, v)  # noqa: B023

        same(f(*there), f(*here))


def test_layouts() -> None:
    arrays = [numbers(2, 70, 4, 16) for _ in range(3)]
    here, there = pair(*arrays)
    got = attend(*(x.transpose(1, 2) for x in there))
    same(got, attend(*(x.transpose(1, 2) for x in here)))
    # What came as heads beside each other goes back without a copy, and so do the gradients.
    assert got.transpose(1, 2).is_contiguous()
    turned = [x.transpose(1, 2).transpose(-1, -2).contiguous().transpose(-1, -2) for x in there]
    same(attend(*turned), attend(*(x.transpose(1, 2) for x in here)))
    flipped = [x[:, 3:, 1:, ::2].flip(1).transpose(1, 2) for x in there]
    same(attend(*flipped), attend(*(x[:, 3:, 1:, ::2].flip(1).transpose(1, 2) for x in here)))
    # A cotangent without memory of its own, and a tangent of an expanded operand.
    for order in (first, forward):
        small = [x[:, :5, :1].expand(2, 5, 4, 16).transpose(1, 2) for x in there]
        want = order(attend, *(x[:, :5, :1].expand(2, 5, 4, 16).transpose(1, 2) for x in here))
        for a, b in zip(order(attend, *small), want, strict=True):
            same(a, b)


def test_batches() -> None:
    here, there = pair(numbers(3, 4, 5), numbers(6, 5), numbers(6, 3, 3))
    for order in (first, forward, second):

        def f(*x: wg.Tensor) -> tuple[wg.Tensor, ...]:
            return tuple(order(attend, *x))  # noqa: B023

        batched = wg.vmap(f, in_axes=(0, None, 1))
        for got, want in zip(batched(*there), batched(*here), strict=True):
            same(got, want, 1e-4)


def test_adjoint_identity_across_tiles() -> None:
    x, t = (pair(numbers(90, 8), numbers(150, 8), numbers(150, 4))[1] for _ in range(2))
    u = wg.tensor(numbers(90, 4), dtype=wg.float32).to(DEVICE)
    _, moved = wg.jvp(attend, tuple(x), tuple(t))
    _, pull = wg.vjp(attend, *x)
    left = (u * moved).sum().item()
    right = sum((a * b).sum().item() for a, b in zip(pull(u), t, strict=True))
    assert left == pytest.approx(right, rel=1e-4, abs=1e-3)


def test_one_dispatch_forward_and_three_backward() -> None:
    _, x = pair(numbers(2, 70, 8), numbers(2, 70, 8), numbers(2, 70, 8))
    x = [y.requires_grad_() for y in x]
    g = wg.ones(2, 70, 8, device=DEVICE)

    def dispatches() -> int:
        return wg.gpu.memory_stats()["dispatches"]

    start = dispatches()
    y = attend(*x, is_causal=True)
    assert dispatches() - start == 1
    start = dispatches()
    y.backward(g)
    assert dispatches() - start == 3


def test_the_same_bits_every_time() -> None:
    _, x = pair(numbers(2, 4, 130, 8), numbers(2, 1, 70, 8), numbers(2, 1, 70, 8), numbers(130, 70))

    def f(*x: wg.Tensor) -> wg.Tensor:
        wg.manual_seed(0)
        return attend(*x[:3], attn_mask=x[3], dropout_p=0.2)

    def bits() -> list[bytes]:
        return [array(y.cpu()).tobytes() for y in [*first(f, *x), *forward(f, *x), *second(f, *x)]]

    assert bits() == bits()


PEAK = """
import sys, wengert as wg, wengert.nn.functional as F
kind, gpu = sys.argv[1], "gpu"
def step(length):
    q, k, v = (wg.randn(1, length, 8, device=gpu, requires_grad=True) for _ in range(3))
    take = wg.ones(length, device=gpu, requires_grad=True) if kind == "mask" else None
    f = lambda *x: F.scaled_dot_product_attention(
        *x, attn_mask=take, is_causal=kind == "causal", dropout_p=0.1 * (kind == "dropout"))
    wg.gpu.synchronize()
    start = wg.gpu.memory_stats()["live_bytes"]
    if kind == "jvp":
        wg.jvp(f, (q.detach(), k.detach(), v.detach()), (q.detach(), k.detach(), v.detach()))
    else:
        y = f(q, k, v)
        g = wg.autograd.grad((y * y).sum(), [q, k, v] + [take] * (take is not None), create_graph=kind == "double")
        if kind == "double":
            sum((x * x).sum() for x in g).backward()
    wg.gpu.synchronize()
    return wg.gpu.memory_stats()["peak_bytes"] - start
print(step(256), step(1024))
"""


@pytest.mark.parametrize("kind", ["plain", "causal", "mask", "dropout", "jvp", "double"])
def test_memory_grows_with_the_length_and_not_with_its_square(kind: str) -> None:
    done = subprocess.run([sys.executable, "-c", PEAK, kind], capture_output=True, text=True, check=True)
    short, long = map(int, done.stdout.split())
    assert long <= 4.5 * short, (short, long)
    # The scores would take 4 MiB.
    assert long < 1024 * 1024 * 4 / 2, (short, long)
