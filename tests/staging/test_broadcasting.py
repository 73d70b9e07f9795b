"""Operands of groups that broadcast: rows, columns, masks and whatever expands to the shape of the others."""

from collections.abc import Callable

import numpy as np
import pytest
import wengert as wg
from hypothesis import given, strategies as st
from wengert import Tensor

SHAPE = (5, 40, 30)
PARTS = [(30,), (1, 30), (40, 30), (5, 1, 30), (40, 1), (5, 1, 1), (1,), (), (5, 40, 1), (1, 40, 30), SHAPE]


def numbers(shape: tuple[int, ...], dtype: wg.dtype = wg.float32, seed: int = 0) -> Tensor:
    return wg.tensor(np.random.default_rng(seed).standard_normal(shape), dtype=dtype)


def alike(f: Callable[..., tuple[Tensor, ...]], *args: Tensor) -> wg.jit.Staged:
    """Compares the bits of a program with those of the function, at one and two threads."""
    step, before = wg.jit(f), wg.get_num_threads()
    try:
        for threads in (1, 2):
            wg.set_num_threads(threads)
            for found, expected in zip((*step(*args), *step(*args)), (*f(*args), *f(*args)), strict=True):
                assert found.shape == expected.shape
                np.testing.assert_array_equal(found.numpy(), expected.numpy())
    finally:
        wg.set_num_threads(before)
    assert step.traces == 1 or before != 1, step.why()
    return step


@pytest.mark.parametrize("part", PARTS, ids=str)
@pytest.mark.parametrize("dtype", [wg.float32, wg.float64], ids=str)
def test_every_part_of_a_shape(part, dtype):
    x, y = numbers(SHAPE, dtype), numbers(part, dtype, 1)
    step = alike(lambda x, y: ((x * y + x).tanh() - y,), x, y)
    assert step.fused(x, y) == [["mul", "add", "tanh", "sub"]]


def test_masks():
    x, mask = numbers((2, 3, 64, 64)), wg.ones(64, 64, dtype=wg.bool).tril()

    def f(x, mask):
        return (wg.where(mask, x * 0.125, -float("inf")).exp() + 1,)

    assert alike(f, x, mask).fused(x, mask) == [["mul", "where", "exp", "add"]]


def test_short_rows_and_columns_are_steps_of_their_own():
    x, y = numbers((50, 3)), numbers((3,), seed=1)
    step = alike(lambda x, y: ((x * y).exp(), (x.T * y[:, None]) + 1), x, y)
    assert ["mul", "exp"] not in step.fused(x, y)


def test_views_that_broadcast():
    x, w = numbers((64, 48)), numbers((100, 3), seed=1)
    alike(lambda x, w: (x * w[7:71, 1:2] + w[3:51, 2] * 2,), x, w)
    alike(lambda x, w: ((x * w[:48, 0].expand(64, 48)).sin() * x.mean(1, keepdim=True),), x, w)


def test_one_value_that_is_read_in_several_ways():
    x, y = numbers((32, 32)), numbers((32,), seed=1)
    alike(lambda x, y: (x * y + x * y[:, None] - y.view(1, 32),), x, y)
    # What the group makes itself is read whole only.
    alike(lambda x: ((x * 2 + 1) - (x * 2 + 1)[:1], (x + 1).exp() * (x + 1)[:, :1]), x)


def test_what_broadcasts_is_written_by_the_program():
    x, y = numbers((40, 40)), numbers((40,), seed=1)

    def f(x, y):
        z = y * 2
        a = (x * z).exp()
        z.add_(1.0)
        return (a + x * z - 1,)

    alike(f, x, y)


def test_more_than_one_tile_and_rows_that_cross_tiles():
    for shape in [(3, 1000), (7, 1025), (70, 37), (1, 5000)]:
        x, y, z = numbers(shape), numbers(shape[-1:], seed=1), numbers((shape[0], 1), seed=2)
        alike(lambda x, y, z: ((x * y + z).sigmoid() * x, ((x - z) * y).sum(0)), x, y, z)


def test_results_beyond_the_cache():
    x, y = numbers((3000, 1500)), numbers((1500,), seed=1)
    alike(lambda x, y: (x * y + 0.5, (x - y) * y), x, y)


def test_layer_norm_by_hand_and_its_gradient():
    x, w = numbers((60, 50)), numbers((50,), seed=1)

    def f(x, w):
        def loss(x, w):
            centred = x - x.mean(1, keepdim=True)
            scale = (centred.square().mean(1, keepdim=True) + 1e-5).rsqrt()
            return ((centred * scale * w).tanh()).sum()

        return wg.grad(loss, argnums=(0, 1))(x, w)

    alike(f, x, w)


UNARY = [Tensor.exp, Tensor.sin, Tensor.square, Tensor.neg, Tensor.abs]
BINARY = [wg.add, wg.mul, wg.sub, wg.maximum, lambda x, y: wg.where(x < y, x, y)]
STEPS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 99), st.integers(0, 99)), min_size=2, max_size=12
)


@given(
    steps=STEPS,
    shapes=st.lists(st.sampled_from([(20,), (1,), (18, 20), (18, 1), (3, 18, 20), (3, 1, 20)]), min_size=2),
)
def test_random_programs(steps, shapes):
    def f(*tensors):
        values = list(tensors)
        for which, i, j in steps:
            x, y = values[i % len(values)], values[j % len(values)]
            values.append(UNARY[which](x.clamp(-5, 5)) if which < 5 else BINARY[which - 5](x, y))
        return (values[-1], values[len(values) // 2].sum(-1), values[-1].mean())

    alike(f, *(numbers(shape, seed=i) for i, shape in enumerate(shapes[:4])))
