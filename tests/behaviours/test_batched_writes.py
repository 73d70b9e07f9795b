"""Partial writes inside transforms, where a value is no memory: they take memory for what is written as long
as nobody else holds the value, and whoever holds it keeps it as it was.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from behaviours.test_partial_writes import peak
from wengert import memory

BATCH, LENGTH = 8, 20_000


def _set(x: Any, i: int, v: Any) -> None:
    x[i] = v


def _add(x: Any, i: int, v: Any) -> None:
    x[i] += v


def _of_view(x: Any, i: int, v: Any) -> None:
    view = x[2:]
    view[i] = v
    view[i] = v + 1


# The write of a value to place `i`, and the same with NumPy.
WRITES: dict[str, tuple[Callable[[Any, int, Any], Any], Callable[[Any, int, Any], Any]]] = {
    "element": (_set, _set),
    "element of a view": (_of_view, _of_view),
    "slice": (lambda x, i, v: _set(x, slice(i, i + 6, 3), v), lambda x, i, v: _set(x, slice(i, i + 6, 3), v)),
    "copy_ into a view": (
        lambda x, i, v: x[i : i + 2].copy_(v),
        lambda x, i, v: _set(x, slice(i, i + 2), v),
    ),
    "fill_ of a view": (lambda x, i, v: x[i : i + 2].fill_(3), lambda x, i, v: _set(x, slice(i, i + 2), 3)),
    "add_ to a view": (lambda x, i, v: x[i].add_(v), _add),
    "addition": (_add, _add),
    "rows": (
        lambda x, i, v: _set(x, wg.tensor([i, 7]), v),
        lambda x, i, v: _set(x, np.array([i, 7]), v),
    ),
    "index_add_": (lambda x, i, v: x.index_add_(0, wg.tensor([i]), v.reshape(1)), _add),
    "index_fill_": (lambda x, i, v: x.index_fill_(0, wg.tensor([i]), 4), lambda x, i, v: _set(x, i, 4)),
    "scatter_": (lambda x, i, v: x.scatter_(0, wg.tensor([i]), v.reshape(1)), _set),
    "scatter_add_": (lambda x, i, v: x.scatter_add_(0, wg.tensor([i]), v.reshape(1)), _add),
}
# How a function of an example of `x` and a value runs: what its results are.
Transform = Callable[[Callable[..., Any], wg.Tensor, wg.Tensor], Any]
TRANSFORMS: dict[str, Transform] = {
    "vmap": lambda f, x, v: wg.vmap(f)(x, v),
    "vmap along the last axis": lambda f, x, v: wg.vmap(f, in_dims=(1, 0), out_dims=1)(x.t(), v).t(),
    "vmap of values": lambda f, x, v: wg.vmap(lambda v: f(x[0], v))(v),
    "nested vmap": lambda f, x, v: wg.vmap(wg.vmap(f))(x.reshape(2, -1, LENGTH), v.reshape(2, -1)).reshape(
        x.shape
    ),
    "jvp in vmap": lambda f, x, v: wg.vmap(lambda x, v: wg.jvp(f, (x, v), (x, v))[0])(x, v),
    "vmap in jvp": lambda f, x, v: wg.jvp(wg.vmap(f), (x, v), (x, v))[0],
    "vjp in vmap": lambda f, x, v: wg.vmap(lambda x, v: wg.vjp(f, x, v)[0])(x, v),
    "vmap in vjp": lambda f, x, v: wg.vjp(wg.vmap(f), x, v)[0],
}


def inputs() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    x = rng.integers(-8, 8, (BATCH, LENGTH)).astype("float32")
    return x, rng.integers(-8, 8, BATCH).astype("float32")


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", WRITES)
def test_writes_take_memory_for_what_is_written(name: str, transform: str) -> None:
    write, reference = WRITES[name]
    values, v = inputs()
    most: list[int] = []

    def f(x: wg.Tensor, v: wg.Tensor) -> wg.Tensor:
        y = x + 0
        # The first may copy: what differs between the examples has room for all of them from then on.
        write(y, 11, v)
        for i in (5, 19_000):
            gc.collect()
            most.append(peak(lambda i=i: write(y, i, v)))
        return y

    out = TRANSFORMS[transform](f, wg.tensor(values), wg.tensor(v))
    expected = values.copy() if transform != "vmap of values" else np.tile(values[0], (BATCH, 1))
    for row, value in zip(expected, v, strict=True):
        for i in (11, 5, 19_000):
            reference(row, i, value)
    np.testing.assert_array_equal(out.numpy(), expected)
    # Views find where they lie in memory of a byte for each element of an example.
    room = LENGTH if "view" in name or name == "addition" else 0
    assert max(most) < 16_384 + room < values.nbytes / 8


def test_who_holds_the_value_keeps_it() -> None:
    x, v = wg.zeros(3, 4), wg.tensor([1.0, 2.0, 3.0])

    def f(x: wg.Tensor, v: wg.Tensor) -> tuple[wg.Tensor, ...]:
        y = x + 1
        copy, before, total = y.detach().clone(), y * 1, y.sum()
        held = y.exp()  # saves nothing of y, but what follows uses both
        kept = [y.clone(), y + 0]
        y[0] = v
        z = y + 0
        y[1] = v
        y.narrow(0, 2, 1).copy_(v)
        return y, z, copy, before, held, *kept, total

    y, z, copy, before, held, *kept, total = wg.vmap(f)(x, v)
    assert y.tolist() == [[k, k, k, 1.0] for k in (1.0, 2.0, 3.0)]
    assert z.tolist() == [[k, 1.0, 1.0, 1.0] for k in (1.0, 2.0, 3.0)]
    for t in (copy, before, *kept):
        assert t.tolist() == [[1.0] * 4] * 3
    assert total.tolist() == [4.0] * 3
    np.testing.assert_allclose(held.numpy(), np.e * np.ones((3, 4)), rtol=1e-6)
    assert x.tolist() == [[0.0] * 4] * 3


@pytest.mark.parametrize("order", ["vmap in grad", "grad in vmap"])
def test_what_a_tape_saved_stays(order: str) -> None:
    # y is saved by the square, then written: its gradient is that of the values then.
    x, v = wg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), wg.tensor([10.0, 20.0])

    def f(x: wg.Tensor, v: wg.Tensor) -> wg.Tensor:
        y = x * 1
        saved = (y * y * y).sum()
        y[0] = v * v
        again = (y * y).sum()
        y[1] = v
        return saved + again + (y * x).sum()

    if order == "vmap in grad":
        gx, gv = wg.grad(lambda x, v: wg.vmap(f)(x, v).sum(), argnums=(0, 1))(x, v)
    else:
        gx, gv = wg.vmap(wg.grad(f, argnums=(0, 1)))(x, v)
    for row, value, got, slope in zip(x.tolist(), v.tolist(), gx.tolist(), gv.tolist(), strict=True):
        a, b, c = row
        # d/dx of x^3 each; y = (v^2, x1, x2) squared; then y * x with y = (v^2, v, x2).
        expected = [3 * a * a + value**2, 3 * b * b + 2 * b + value, 3 * c * c + 2 * c + 2 * c]
        np.testing.assert_allclose(got, expected, rtol=1e-6)
        np.testing.assert_allclose(slope, 4 * value**3 + 2 * value * a + b, rtol=1e-6)


def test_tangents_are_written_as_values_are() -> None:
    x, v = wg.tensor([1.0, 2.0, 3.0]), wg.tensor(5.0)

    def f(x: wg.Tensor, v: wg.Tensor) -> tuple[wg.Tensor, wg.Tensor]:
        y = x * 2
        z = y * y
        y[0] = v * v
        y[1:2].copy_(y[0] + v)
        return y, z

    (y, z), (dy, dz) = wg.jvp(f, (x, v), (wg.tensor([1.0, 10.0, 100.0]), wg.tensor(1.0)))
    assert y.tolist() == [25.0, 30.0, 6.0]
    assert z.tolist() == [4.0, 16.0, 36.0]
    assert dy.tolist() == [10.0, 11.0, 200.0]
    assert dz.tolist() == [8.0, 160.0, 2400.0]


def test_views_of_all_ages_see_what_is_written() -> None:
    def f(x: wg.Tensor, v: wg.Tensor) -> tuple[wg.Tensor, ...]:
        y = x + 0
        first, last, whole = y[:2], y[2:], y.reshape(2, 2)
        first[0] = v
        seen = whole.clone()
        last.fill_(7)
        whole[0, 1] = v + 1
        last[1] = last[0] + v
        return first.clone(), last.clone(), whole.clone(), seen, y

    first, last, whole, seen, y = wg.vmap(f)(wg.zeros(2, 4), wg.tensor([1.0, 5.0]))
    assert first.tolist() == [[1.0, 2.0], [5.0, 6.0]]
    assert last.tolist() == [[7.0, 8.0], [7.0, 12.0]]
    assert seen.tolist() == [[[1.0, 0.0], [0.0, 0.0]], [[5.0, 0.0], [0.0, 0.0]]]
    assert whole.reshape(2, 4).tolist() == y.tolist() == [[1.0, 2.0, 7.0, 8.0], [5.0, 6.0, 7.0, 12.0]]


def test_views_that_are_kept_do_not_make_writes_dear() -> None:
    most: list[int] = []

    def f(x: wg.Tensor, v: wg.Tensor) -> tuple[wg.Tensor, ...]:
        y = x + 0
        head, rows = y[:10], list(y[-6:].reshape(3, 2))
        y[0] = v
        for row in rows:
            row[0] = v
            head[1] = row[0] + head[0]
        for i in range(3):
            most.append(peak(lambda i=i: _set(y, i, head[i] + 1)))
            most.append(peak(lambda i=i: _set(rows[i], 1, head[i] - v)))
        return head.clone(), y[-6:].clone(), y[10:-6].abs().sum()

    head, tail, rest = wg.vmap(f)(wg.zeros(BATCH, LENGTH), wg.arange(1.0, BATCH + 1))
    for k, (found, last) in enumerate(zip(head.tolist(), tail.tolist(), strict=True), start=1):
        # 0 and 1 are k and 2 k, then each is one more.
        assert found == [k + 1, 2 * k + 1, 1, *[0] * 7]
        assert last == [k, 1, k, k + 1, k, 1 - k]
    assert rest.tolist() == [0.0] * BATCH
    assert max(most) < 4096 + 2 * LENGTH


def test_a_write_that_fails_leaves_values_and_views_as_they_were() -> None:
    def f(x: wg.Tensor, v: wg.Tensor) -> tuple[wg.Tensor, ...]:
        y = x + 1
        y[0] = v
        view = y[1:]
        with pytest.raises(ValueError, match="cannot be broadcast"):
            y[1:3] = wg.ones(3)
        with pytest.raises(IndexError):
            y[wg.tensor([1, 9])] = v
        with pytest.raises(wg.ShapeError):
            view.copy_(wg.ones(7))
        with pytest.raises(TypeError):
            view.add_(v * 1j)
        return y, view

    y, view = wg.vmap(f)(wg.zeros(2, 4), wg.tensor([2.0, 3.0]))
    assert y.tolist() == [[2.0, 1.0, 1.0, 1.0], [3.0, 1.0, 1.0, 1.0]]
    assert view.tolist() == [[1.0] * 3] * 2


def test_an_element_that_is_assigned_to_itself() -> None:
    def f(x: wg.Tensor, v: wg.Tensor) -> wg.Tensor:
        y = x * 2
        y[0] = y[0]
        y[1] = y[0]
        y[0] += v
        y[0] *= v
        return y

    x, v = wg.tensor([[1.0, 2.0], [3.0, 4.0]]), wg.tensor([5.0, 6.0])
    assert wg.vmap(f)(x, v).tolist() == [[35.0, 2.0], [72.0, 6.0]]
    gx, gv = wg.vmap(wg.grad(lambda x, v: f(x, v).sum(), argnums=(0, 1)))(x, v)
    # (2 x0 + v) v + 2 x0
    assert gx.tolist() == [[12.0, 0.0], [14.0, 0.0]]
    assert gv.tolist() == [12.0, 18.0]


def test_memory_is_given_back() -> None:
    values, v = inputs()
    gc.collect()
    before = memory.live_bytes()

    def f(x: wg.Tensor, v: wg.Tensor) -> wg.Tensor:
        y = x + 0
        for i in range(20):
            y[i] = v
            y[i : i + 2].copy_(v)
        return y.sum()

    wg.vmap(f)(wg.tensor(values), wg.tensor(v))
    gc.collect()
    assert memory.live_bytes() <= before
