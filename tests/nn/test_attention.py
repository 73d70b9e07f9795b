"""Attention beyond the walk over the samples: tiles, masks, dropout, shared heads, memory, any order of
derivatives."""

from __future__ import annotations

import gc
import itertools
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import wengert as wg
from references.attention_reference import (
    MASKS,
    ORDERS,
    RNG,
    Derivative,
    attend,
    composed,
    first,
    forward,
    mixed,
    numbers,
    reference,
    second,
    tensors,
)
from support import array

#: Lengths on both sides of the borders of tiles, depths that are and are not whole vectors.
SIZES = [
    (1, 1, 1, 1),
    (7, 5, 3, 4),
    (64, 128, 32, 16),
    (65, 129, 33, 7),
    (130, 300, 16, 48),
    (200, 70, 8, 40),
]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_values_across_tiles(sizes: tuple[int, int, int, int], causal: bool) -> None:
    length, source, depth, width = sizes
    q, k, v = numbers(2, 3, length, depth), numbers(2, 3, source, depth), numbers(2, 3, source, width)
    want = reference(q, k, v, causal=causal)
    for dtype, tolerance in [
        (wg.float64, 1e-12),
        (wg.float32, 3e-6),
        (wg.float16, 3e-3),
        (wg.bfloat16, 3e-2),
    ]:
        got = attend(*tensors(q, k, v, dtype=dtype), is_causal=causal)
        assert got.dtype == dtype
        np.testing.assert_allclose(array(got.double()), want, atol=tolerance * max(1.0, abs(want).max()))


@pytest.mark.parametrize("shape", MASKS.values(), ids=MASKS)
def test_masks(shape: tuple[int, ...]) -> None:
    q, k, v = numbers(2, 3, 70, 9), numbers(2, 3, 140, 9), numbers(2, 3, 140, 5)
    take, add = RNG.random(shape) < 0.5, numbers(*shape)
    add = np.where(RNG.random(shape) < 0.2, -np.inf, add)
    for mask in (np.asarray(take), np.asarray(add)):
        got = attend(*tensors(q, k, v), attn_mask=wg.tensor(mask))
        np.testing.assert_allclose(array(got), reference(q, k, v, mask), atol=1e-12)
        got = attend(*tensors(q, k, v, dtype=wg.float32), attn_mask=wg.tensor(mask))
        np.testing.assert_allclose(array(got), reference(q, k, v, mask), atol=1e-5)


def test_rows_that_see_nothing_are_zero_and_so_are_their_gradients() -> None:
    q, k, v = tensors(numbers(5, 4), numbers(6, 4), numbers(6, 3), grad=True)
    take = wg.ones(5, 6) > 0
    take[2] = False
    infinite = wg.where(take, wg.zeros(5, 6), wg.full((), -math.inf))
    for mask in (take, infinite.double()):
        for x in (q, k, v):
            x.grad = None
        out = attend(q, k, v, attn_mask=mask)
        assert out[2].tolist() == [0.0] * 3
        (out**2).sum().backward()
        assert q.grad[2].tolist() == [0.0] * 4
        assert all(np.isfinite(array(x.grad)).all() for x in (q, k, v))
        still = [x.detach() for x in (q, k, v)]
        _, found = wg.jvp(lambda *x: attend(*x, attn_mask=mask), tuple(still), tuple(still))  # noqa: B023
        assert found[2].tolist() == [0.0] * 3
    assert attend(wg.ones(2, 3), wg.ones(0, 3), wg.ones(0, 4)).tolist() == [[0.0] * 4] * 2
    assert attend(wg.ones(0, 3), wg.ones(2, 3), wg.ones(2, 4)).shape == (0, 4)


@pytest.mark.parametrize("order", ORDERS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", ["plain", "causal", "mask", "shared mask", "dropout", "broadcast"])
def test_derivatives_equal_those_of_the_composition(order: Derivative, kind: str) -> None:
    batch = (2, 2)
    q, k, v = numbers(*batch, 70, 6), numbers(*batch, 131, 6), numbers(*batch, 131, 5)
    if kind == "broadcast":
        q, k, v = numbers(2, 1, 70, 6), numbers(2, 131, 6), numbers(3, 1, 2, 131, 5)
    x = tensors(q, k, v)
    f: Derivative = attend
    g: Derivative = composed
    if kind == "causal":
        f, g = (lambda *x: attend(*x, is_causal=True)), (lambda *x: composed(*x, causal=True))
    elif "mask" in kind:
        x += tensors(numbers(*(batch if kind == "mask" else ()), 70, 131))
    elif kind == "dropout":

        def f(*x: wg.Tensor) -> wg.Tensor:
            wg.manual_seed(3)
            return attend(*x, dropout_p=0.4)

        wg.manual_seed(3)
        keep = (wg.rand(*batch, 70, 131) >= 0.4).double() / 0.6

        def g(*x: wg.Tensor) -> wg.Tensor:
            return composed(*x, keep=keep)

    for got, want in zip(order(f, *x), order(g, *x), strict=True):
        want = array(want)
        np.testing.assert_allclose(array(got), want, atol=1e-10 * max(1.0, abs(want).max()))


@pytest.mark.parametrize("order", [first, forward, second, mixed], ids=lambda f: f.__name__)
def test_derivatives_in_float32(order: Derivative) -> None:
    arrays = numbers(2, 100, 16), numbers(2, 140, 16), numbers(2, 140, 32)
    single, double = tensors(*arrays, dtype=wg.float32), tensors(*arrays)
    for got, want in zip(order(attend, *single), order(composed, *double), strict=True):
        want = array(want)
        np.testing.assert_allclose(array(got), want, atol=2e-5 * max(1.0, abs(want).max()))


@pytest.mark.parametrize("order", [first, forward, second, mixed], ids=lambda f: f.__name__)
@pytest.mark.parametrize("axes", [a for a in itertools.product([0, 1, None], repeat=3) if a != (None,) * 3])
def test_batches_of_any_operands(order: Derivative, axes: tuple[int | None, ...]) -> None:
    shapes = [(4, 5), (6, 5), (6, 3)]
    x = tensors(*(numbers(*(s if a is None else (*s[:a], 3, *s[a:]))) for s, a in zip(shapes, axes)))

    def f(*x: wg.Tensor) -> tuple[wg.Tensor, ...]:
        return tuple(order(attend, *x))

    got = wg.vmap(f, in_axes=axes)(*x)
    for i in range(3):
        each = f(*(t if a is None else t.select(a, i) for t, a in zip(x, axes)))
        for all_, one in zip(got, each, strict=True):
            np.testing.assert_allclose(
                array(all_)[i], array(one), atol=1e-12 * max(1.0, abs(array(one)).max())
            )


@pytest.mark.parametrize("causal", [False, True])
def test_grouped_queries_share_heads(causal: bool) -> None:
    q, k, v = numbers(2, 6, 70, 8), numbers(2, 2, 90, 8), numbers(2, 2, 90, 16)
    want = reference(q, k.repeat(3, 1), v.repeat(3, 1), causal=causal)
    x = tensors(q, k, v)
    options = {"is_causal": causal, "enable_gqa": True}
    np.testing.assert_allclose(array(attend(*x, **options)), want, atol=1e-12)

    def spread(q: wg.Tensor, k: wg.Tensor, v: wg.Tensor) -> wg.Tensor:
        k, v = (wg.stack([x] * 3, 2).flatten(1, 2) for x in (k, v))
        return composed(q, k, v, causal=causal)

    for order in (first, forward, second):
        for got, expected in zip(order(lambda *x: attend(*x, **options), *x), order(spread, *x), strict=True):
            scale = max(1.0, abs(array(expected)).max())
            np.testing.assert_allclose(array(got), array(expected), atol=1e-10 * scale)
    mask = numbers(6, 70, 90)
    got = attend(*x, attn_mask=wg.tensor(mask), enable_gqa=True)
    np.testing.assert_allclose(array(got), reference(q, k.repeat(3, 1), v.repeat(3, 1), mask), atol=1e-12)


def test_scale_and_layouts() -> None:
    q, k, v = (numbers(2, 70, 4, 16) for _ in range(3))
    heads = [x.transpose(0, 2, 1, 3) for x in (q, k, v)]
    want = reference(*heads, scale=0.3)
    views = [t.transpose(1, 2) for t in tensors(q, k, v)]
    got = attend(*views, scale=0.3)
    np.testing.assert_allclose(array(got), want, atol=1e-12)
    # What came as heads beside each other goes back without a copy.
    assert got.transpose(1, 2).is_contiguous()
    turned = [t.transpose(-1, -2) for t in tensors(*(x.swapaxes(-1, -2).copy() for x in heads))]
    np.testing.assert_allclose(array(attend(*turned, scale=0.3)), want, atol=1e-12)


def test_dropout_uses_the_numbers_of_rand() -> None:
    q, k, v = tensors(numbers(3, 70, 8), numbers(3, 130, 8), numbers(3, 130, 8))
    wg.manual_seed(11)
    keep = (wg.rand(3, 70, 130) >= 0.25).double() / 0.75
    wg.manual_seed(11)
    got = attend(q, k, v, dropout_p=0.25)
    after = wg.rand(2)
    np.testing.assert_allclose(array(got), array(composed(q, k, v, keep=keep)), atol=1e-12)
    wg.manual_seed(11)
    wg.rand(3, 70, 130)
    assert wg.rand(2).tolist() == after.tolist()
    assert attend(q, k, v, dropout_p=1.0).abs().sum().item() == 0.0
    a, b = attend(q, k, v, dropout_p=0.25), attend(q, k, v, dropout_p=0.25)
    assert a.tolist() != b.tolist()


def test_dropout_in_batches() -> None:
    q, k, v = tensors(numbers(4, 6, 8), numbers(9, 8), numbers(9, 3))

    def f(q: wg.Tensor) -> wg.Tensor:
        return attend(q, k, v, dropout_p=0.5)

    def weights(shape: tuple[int, ...]) -> wg.Tensor:
        wg.manual_seed(2)
        return (wg.rand(*shape) >= 0.5).double() / 0.5

    with pytest.raises(
        RuntimeError, match="scaled_dot_product_attention: random numbers are drawn inside vmap"
    ):
        wg.vmap(f)(q)
    for randomness, shape in [("different", (4, 6, 9)), ("same", (6, 9))]:
        keep = weights(shape)
        wg.manual_seed(2)
        got = wg.vmap(f, randomness=randomness)(q)
        np.testing.assert_allclose(array(got), array(composed(q, k, v, keep=keep)), atol=1e-12)
        # Gradients see the numbers of the forward pass, inside the batch and around it.
        want = array(wg.grad(lambda q: (composed(q, k, v, keep=keep) ** 2).sum())(q))  # noqa: B023
        wg.manual_seed(2)
        inside = wg.vmap(wg.grad(lambda q: (f(q) ** 2).sum()), randomness=randomness)(q)
        np.testing.assert_allclose(array(inside), want, atol=1e-12)
        wg.manual_seed(2)
        around = wg.grad(lambda q: (wg.vmap(f, randomness=randomness)(q) ** 2).sum())(q)  # noqa: B023
        np.testing.assert_allclose(array(around), want, atol=1e-12)
    # No operand depends on the batch: the numbers do.
    one = q[0]
    wg.manual_seed(2)
    got = wg.vmap(lambda _: f(one), randomness="different")(wg.zeros(4))
    np.testing.assert_allclose(array(got), array(composed(one, k, v, keep=weights((4, 6, 9)))), atol=1e-12)
    # Batches in batches, of both kinds.
    keep = weights((4, 1, 6, 9))
    wg.manual_seed(2)
    got = wg.vmap(
        lambda q: wg.vmap(lambda v: attend(q, k, v, dropout_p=0.5), randomness="same")(wg.stack([v, 2 * v])),
        randomness="different",
    )(q)
    want_all = composed(q.unsqueeze(1), k, wg.stack([v, 2 * v]), keep=keep)
    np.testing.assert_allclose(array(got), array(want_all), atol=1e-12)


def test_a_checkpoint_repeats_the_dropout() -> None:
    from wengert.utils.checkpoint import checkpoint

    x = tensors(numbers(2, 5, 4), numbers(2, 6, 4), numbers(2, 6, 4), grad=True)

    def gradients(f: Derivative) -> list[list[float]]:
        for t in x:
            t.grad = None
        wg.manual_seed(4)
        (f(*x) ** 2).sum().backward()
        return [t.grad.tolist() for t in x]

    def f(*x: wg.Tensor) -> wg.Tensor:
        return attend(*x, dropout_p=0.5)

    assert gradients(f) == gradients(lambda *x: checkpoint(f, *x))


def test_adjoint_identity_and_symmetry_across_tiles() -> None:
    x = tensors(numbers(2, 90, 8), numbers(2, 150, 8), numbers(2, 150, 4))
    t = tensors(*(numbers(*y.shape) for y in x))
    u = wg.tensor(numbers(2, 90, 4))
    _, moved = wg.jvp(attend, tuple(x), tuple(t))
    _, pull = wg.vjp(attend, *x)
    left = (u * moved).sum().item()
    right = sum((a * b).sum().item() for a, b in zip(pull(u), t, strict=True))
    assert left == pytest.approx(right, rel=1e-11)
    s = tensors(*(numbers(*y.shape) for y in x))
    g = wg.grad(lambda *x: attend(*x).pow(2).sum(), argnums=(0, 1, 2))
    along = [wg.jvp(g, tuple(x), tuple(d))[1] for d in (s, t)]
    forms = [sum((a * b).sum().item() for a, b in zip(h, d, strict=True)) for h, d in zip(along, (t, s))]
    assert forms[0] == pytest.approx(forms[1], rel=1e-10)


def test_gradcheck_and_gradgradcheck() -> None:
    x = tensors(numbers(2, 3, 4), numbers(2, 5, 4), numbers(2, 5, 2), numbers(3, 5), grad=True)
    assert wg.autograd.gradcheck(lambda q, k, v, m: attend(q, k, v, attn_mask=m), tuple(x))
    assert wg.autograd.gradgradcheck(lambda q, k, v, m: attend(q, k, v, attn_mask=m), tuple(x))


def bits(threads: int) -> list[bytes]:
    """Everything attention computes, with this many threads."""
    wg.set_num_threads(threads)
    rng = np.random.default_rng(1)
    found = []
    for heads, length, source in [(1, 300, 400), (6, 130, 257), (20, 65, 64)]:
        x = [
            wg.tensor(rng.standard_normal((heads, n, 16)), dtype=wg.float32) for n in (length, source, source)
        ]
        mask = wg.tensor(rng.standard_normal((length, source)), dtype=wg.float32)
        for options in ({}, {"is_causal": True}, {"dropout_p": 0.2}, {"attn_mask": mask}):

            def f(*x: wg.Tensor, options: dict[str, Any] = options) -> wg.Tensor:
                wg.manual_seed(0)
                return attend(*x[:3], **(options if len(x) == 3 else {"attn_mask": x[3]}))

            every = (*x, mask) if "attn_mask" in options else tuple(x)
            found += [f(*every), *first(f, *every), *forward(f, *every), *second(f, *every)]
    return [array(y).tobytes() for y in found]


def test_the_same_bits_for_any_number_of_threads() -> None:
    before = wg.get_num_threads()
    try:
        assert bits(1) == bits(2) == bits(5)
    finally:
        wg.set_num_threads(before)


PEAK = """
import gc, wengert as wg, wengert.nn.functional as F
def step(kind, length):
    q, k, v = (wg.randn(2, length, 16, requires_grad=True) for _ in range(3))
    f = lambda *x: F.scaled_dot_product_attention(*x, is_causal=kind == "causal", dropout_p=0.1 * (kind == "dropout"))
    gc.collect()
    wg.memory.reset_peak()
    start = wg.memory.live_bytes()
    if kind == "jvp":
        wg.jvp(f, (q.detach(), k.detach(), v.detach()), (q.detach(), k.detach(), v.detach()))
    else:
        y = f(q, k, v)
        g = wg.autograd.grad((y * y).sum(), [q, k, v], create_graph=kind == "double")
        if kind == "double":
            sum((x * x).sum() for x in g).backward()
    return wg.memory.peak_bytes() - start
for kind in ("plain", "causal", "dropout", "jvp", "double"):
    print(kind, step(kind, 512), step(kind, 2048))
"""


def test_memory_grows_with_the_length_and_not_with_its_square() -> None:
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        kind, short, long = line.split()
        assert int(long) <= 4.2 * int(short), line
        # The scores of both heads would take 32 MiB.
        assert int(long) < 2 * 2048 * 2048 * 4 / 2, line
        assert kind


def test_what_is_saved() -> None:
    gc.collect()
    q, k, v = (wg.randn(2, 256, 16, requires_grad=True) for _ in range(3))
    start = wg.memory.live_bytes()
    y = attend(q, k, v)
    # Beside the operands: the result and one float32 per query.
    assert wg.memory.live_bytes() - start == (2 * 256 * 16 + 2 * 256) * 4
    assert y.grad_fn is not None


def test_autocast_computes_in_low_precision() -> None:
    q, k, v = (wg.randn(2, 6, 8, requires_grad=True) for _ in range(3))
    with wg.autocast("cpu", dtype=wg.bfloat16):
        y = attend(q, k, v)
    assert y.dtype == wg.bfloat16
    y.float().sum().backward()
    assert q.grad.dtype == wg.float32


ISA = """
import sys; sys.path.insert(0, {tests!r})
import nn.test_attention as t
for sizes in t.SIZES:
    for causal in (False, True):
        t.test_values_across_tiles(sizes, causal)
for order in (t.first, t.forward, t.second):
    t.test_derivatives_in_float32(order)
    t.test_derivatives_equal_those_of_the_composition(order, "mask")
t.test_the_same_bits_for_any_number_of_threads()
"""


@pytest.mark.parametrize("isa", ["baseline", "avx2"])
def test_every_instruction_set(isa: str) -> None:
    import os

    tests = os.path.dirname(os.path.dirname(__file__))
    environment = {**os.environ, "WENGERT_ISA": isa}
    subprocess.run([sys.executable, "-c", ISA.format(tests=tests)], check=True, env=environment)
