"""NumPy's functions of tensors, compared with the same functions of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from support import array
from wengert import Tensor

X, Y = np.linspace(0.5, 2.0, 6).reshape(2, 3), np.linspace(-1.0, 1.5, 6).reshape(2, 3)

# Each of tensors is a tensor, and equal to that of arrays.
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "sin": lambda x, y: np.sin(x),
    "add": lambda x, y: np.add(x, y),
    "power": lambda x, y: np.power(x, 2.5),
    "arctan2": lambda x, y: np.arctan2(y, x),
    "isfinite": lambda x, y: np.isfinite(x),
    "concatenate": lambda x, y: np.concatenate([x, y], axis=1),
    "stack": lambda x, y: np.stack([x, y]),
    "vstack": lambda x, y: np.vstack([x, y]),
    "where": lambda x, y: np.where(y > 0, x, y),
    "mean": lambda x, y: np.mean(x, axis=0, keepdims=True),
    "sum": lambda x, y: np.sum(x),
    "max": lambda x, y: np.max(x, axis=1),
    "var": lambda x, y: np.var(x, axis=0),
    "clip": lambda x, y: np.clip(y, -0.5, 0.5),
    "reshape": lambda x, y: np.reshape(x, (3, 2)),
    "einsum": lambda x, y: np.einsum("ij,kj->ik", x, y),
    "tensordot": lambda x, y: np.tensordot(x, y, axes=2),
    "norm": lambda x, y: np.linalg.norm(x, axis=1),
    "inv": lambda x, y: np.linalg.inv(np.matmul(x, x.T)),
    "array + tensor": lambda x, y: X + y,
    "array - tensor": lambda x, y: X - y,
    "array / tensor": lambda x, y: Y / x,
    "array @ tensor": lambda x, y: X @ y.T,
    "array < tensor": lambda x, y: y > X,
    "array ** tensor": lambda x, y: X**y,
    "number * tensor": lambda x, y: np.float64(3.0) * x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_tensors_are_those_of_arrays(name: str) -> None:
    got = FUNCTIONS[name](wg.tensor(X), wg.tensor(Y))
    assert isinstance(got, Tensor)
    np.testing.assert_allclose(array(got), FUNCTIONS[name](X, Y), rtol=1e-12)


def test_they_are_differentiated() -> None:
    x = wg.tensor(X, requires_grad=True)
    np.sin(np.concatenate([x, x])).sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(array(x.grad), 2 * np.cos(X), rtol=1e-12)
    batched = wg.vmap(lambda row: np.mean(np.exp(row)))(wg.tensor(X))
    np.testing.assert_allclose(array(batched), np.exp(X).mean(1), rtol=1e-12)


def test_functions_without_a_counterpart_take_the_elements() -> None:
    got = np.unwrap(wg.tensor(X), axis=0)
    assert type(got) is np.ndarray
    np.testing.assert_allclose(got, np.unwrap(X, axis=0))
    np.testing.assert_allclose(np.add.reduce(wg.tensor(X)), X.sum(0))
    np.testing.assert_allclose(np.std(wg.tensor(X), ddof=1), np.std(X, ddof=1))


def test_what_would_lose_a_derivative_raises() -> None:
    x = wg.tensor(X, requires_grad=True)
    for lose in (np.unwrap, np.add.reduce):
        with pytest.raises(RuntimeError, match=r"call detach\(\) first"):
            lose(x)


def test_arrays_are_written_in_place() -> None:
    sums, before = X.copy(), X + Y
    same = sums
    same += wg.tensor(Y)
    assert same is sums
    np.testing.assert_allclose(sums, before)
    np.testing.assert_allclose(np.multiply(wg.tensor(X), 2.0, out=sums), 2 * X)


def test_pictures_take_tensors() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, axes = pyplot.subplots()
    x = wg.arange(4.0)
    axes.plot(x, x * x)
    axes.scatter(x, wg.rand(4))
    axes.hist(wg.rand(30))
    axes.imshow(wg.rand(3, 3))
    axes.fill_between(x, x, x + 1)
    figure.canvas.draw()
    pyplot.close(figure)


def test_what_our_functions_do_not_take_is_numpy_s() -> None:
    x = wg.tensor([[3.0, 1.0], [2.0, 4.0]])
    for mine, theirs in (
        (np.sort(x, axis=None), np.sort(x.numpy(), axis=None)),
        (np.take(x, [0, 3]), np.take(x.numpy(), [0, 3])),
        (np.outer(x, x), np.outer(x.numpy(), x.numpy())),
        (np.mean(wg.tensor([1, 2])), 1.5),
    ):
        np.testing.assert_array_equal(np.asarray(mine), theirs)
    row = np.take(x, 1, axis=0)
    assert isinstance(row, wg.Tensor)
    assert row.tolist() == [2.0, 4.0]


def test_what_neither_takes_is_told_in_our_words() -> None:
    with pytest.raises(ValueError, match=r"concatenate|concat|cat: "):
        np.concatenate([wg.ones(2, 3), wg.ones(2, 4)])
    with pytest.raises(RuntimeError, match=r"requires a gradient|detach"):
        np.unwrap(wg.ones(3, requires_grad=True))
