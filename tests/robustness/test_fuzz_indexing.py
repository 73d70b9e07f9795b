"""Random keys, read and assigned, against NumPy: values, gradients of what was read, and refusals."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import wengert as wg
from hypothesis import given, strategies as st
from support import examples

Item = Any
WIDTHS = ("int64", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64")


@st.composite
def indexed(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[Item, ...], int]:
    """A shape, a key for it, and a seed. Some keys are wrong; arrays have any integer dtype."""
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=4)))
    if draw(st.integers(0, 7)) == 0:
        # Positions in merged axes that no 8 bits hold.
        shape = (20, 20, *shape[2:])
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    common = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    key: list[Item] = []
    axis = 0
    while axis < len(shape) and draw(st.integers(0, 4)):
        length, kind = shape[axis], draw(st.integers(0, 8))
        if kind == 0:
            key.append(None)
            continue
        if kind == 1:
            key.append(draw(st.integers(-length - 1, length)))
        elif kind in (2, 3):
            bound = st.none() | st.integers(-length - 2, length + 2)
            key.append(slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2, -1, -2, 3]))))
        elif kind == 4:
            rank = draw(st.integers(1, len(shape) - axis))
            lengths = tuple(n if rng.random() < 0.9 else 0 for n in shape[axis : axis + rank])
            key.append(rng.random(lengths) < 0.5)
            axis += rank - 1
        elif length:
            worst = draw(st.sampled_from([0, 0, 0, 0, 0, 0, 1]))
            lengths = tuple(
                1 if rng.random() < 0.2 else n for n in common[draw(st.integers(0, len(common))) :]
            )
            dtype = draw(st.sampled_from(WIDTHS))
            least = 0 if dtype.startswith("u") else -length
            key.append(rng.integers(least, length + worst, lengths).astype(dtype))
        else:
            key.append(slice(None))
        axis += 1
    if draw(st.integers(0, 3)) == 0:
        key.insert(draw(st.integers(0, len(key))), Ellipsis)
    return shape, tuple(key), draw(st.integers(0, 2**32 - 1))


def axes(shape: tuple[int, ...], key: tuple[Item, ...]) -> int:
    """How many axes there are before anything is selected: those of the tensor and the new ones."""
    return len(shape) + sum(item is None for item in key)


def ours(key: tuple[Item, ...]) -> tuple[Item, ...]:
    return tuple(wg.tensor(item) if isinstance(item, np.ndarray) else item for item in key)


def attempt(f: Any, *args: Any) -> Any:
    """The result, or None where it is refused as an index or a shape is."""
    try:
        return f(*args)
    except (IndexError, ValueError):
        return None


@examples(250)
@given(indexed(), st.booleans())
def test_reading(case: tuple[tuple[int, ...], tuple[Item, ...], int], turned: bool) -> None:
    shape, key, _ = case
    values = np.arange(float(np.prod(shape))).reshape(shape)
    if turned:
        values = np.asfortranarray(values)
    # A tensor has at most eight axes.
    if axes(shape, key) > 8:
        return
    x = wg.tensor(values, requires_grad=True)
    expected, found = attempt(operator.getitem, values, key), attempt(operator.getitem, x, ours(key))
    if expected is not None and expected.ndim > 8:
        return
    assert (expected is None) == (found is None), (shape, key)
    if expected is None:
        return
    assert found.shape == expected.shape, (shape, key)
    np.testing.assert_array_equal(found.detach().numpy(), expected)
    weights = np.random.default_rng(0).normal(size=expected.shape)
    (found * wg.tensor(weights)).sum().backward()
    slope = np.zeros(shape)
    np.add.at(slope, key, weights)
    np.testing.assert_allclose(x.grad.numpy(), slope, atol=1e-12)


@examples(400)
@given(
    indexed(),
    st.sampled_from(["plain", "turned", "view", "recorded", "recorded view", "vmap"]),
    st.integers(0, 3),
)
def test_assigning(case: tuple[tuple[int, ...], tuple[Item, ...], int], how: str, kind: int) -> None:
    shape, key, seed = case
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape)
    picked = attempt(operator.getitem, values, key)
    # A tensor has at most eight axes, a batch in front of them included.
    if axes(shape, key) > 7 or (picked is not None and picked.ndim > 7):
        return
    lengths = (
        () if picked is None else picked.shape[len(picked.shape) - rng.integers(0, len(picked.shape) + 1) :]
    )
    new = rng.normal(size=tuple(1 if kind == 2 else n for n in lengths)) if kind else np.array(2.5)
    expected = values.copy()
    fits = attempt(lambda: operator.setitem(expected, key, new) or True)
    leaf = wg.zeros(shape, dtype=wg.float64, requires_grad=True)
    if how == "vmap":
        if fits is None:
            return

        def write(x: wg.Tensor, v: wg.Tensor) -> wg.Tensor:
            y = x.clone()
            y[ours(key)] = v
            return y

        out = wg.vmap(write)(wg.tensor(np.stack([values, values])), wg.tensor(np.stack([new, new])))
        np.testing.assert_array_equal(out.numpy(), np.stack([expected, expected]))
        return
    if how == "plain":
        x = wg.tensor(values)
    elif how == "turned":
        x = wg.tensor(np.ascontiguousarray(values.T)).permute(*range(len(shape))[::-1])
    elif how == "view":
        x = wg.zeros(shape[0] + 2, *shape[1:], dtype=wg.float64)[1:-1]
        x.copy_(wg.tensor(values))
    else:
        x = wg.tensor(values) + leaf
        if how == "recorded view":
            x = wg.cat([x, x])[: shape[0]]
    v = wg.tensor(new, requires_grad="recorded" in how)
    done = attempt(lambda: operator.setitem(x, ours(key), v) or True)
    assert (done is None) == (fits is None), (shape, key, new.shape)
    np.testing.assert_array_equal(x.detach().numpy(), expected)
    if done is None or "recorded" not in how:
        return
    weights = rng.normal(size=shape)
    (x * wg.tensor(weights)).sum().backward()
    # Numbers that say where each element came from.
    source = np.full(shape, -1.0)
    source[key] = np.arange(float(new.size)).reshape(new.shape)
    np.testing.assert_array_equal(leaf.grad.numpy(), np.where(source < 0, weights, 0))
    into = np.array([weights[source == i].sum() for i in range(new.size)]).reshape(new.shape)
    np.testing.assert_allclose(
        v.grad.numpy() if v.grad is not None else np.zeros(new.shape), into, atol=1e-12
    )
