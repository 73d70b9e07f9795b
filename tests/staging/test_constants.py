"""What is the same in all calls of a program is computed once, as the program is made."""

import abc
import dataclasses
import functools
import gc
import types

import numpy as np
import pytest
import wengert as wg


def names(step, *args):
    return [name for row in step.program(*args).steps for name in row.names]


def test_operations_on_constants_are_no_steps():
    step = wg.jit(lambda x: x @ (wg.eye(3) * 2.0 + wg.ones(3, 3).tril()))
    x = wg.randn(4, 3)
    expected = x.numpy() @ (2 * np.eye(3) + np.tril(np.ones((3, 3)))).astype(np.float32)
    for _ in range(3):
        np.testing.assert_array_equal(step(x).numpy(), expected)
    assert names(step, x) == ["matmul"]


def test_what_backward_begins_with_is_no_step():
    step = wg.jit(wg.grad(lambda x: (x * x).mean()))
    x = wg.tensor([1.0, -2.0, 3.0])
    for _ in range(3):
        np.testing.assert_array_equal(step(x).numpy(), wg.grad(lambda x: (x * x).mean())(x).numpy())
    assert "expand" not in names(step, x)


def test_large_constants_take_no_memory_between_calls():
    step = wg.jit(lambda x: wg.eye(200) + x)
    x = wg.tensor(1.0)
    step(x)
    # What other tests left behind would be let go of at any time.
    gc.collect()
    before = wg.memory.live_bytes()
    y = step(x)
    np.testing.assert_array_equal(y.numpy(), np.eye(200, dtype=np.float32) + 1)
    assert "eye" in names(step, x)
    del y
    assert wg.memory.live_bytes() == before


@pytest.mark.parametrize(
    "function",
    [
        lambda x: wg.eye(2),
        lambda x: wg.eye(2)[0],
        lambda x: wg.eye(2).T,
        lambda x: (wg.ones(2) * 3.0, x + 1),
        lambda x: wg.zeros(2).add_(x),
        lambda x: wg.zeros(2, 2).fill_diagonal_(3.0) + x,
        lambda x: (wg.ones(2) + 1).mul_(x).sum(),
    ],
)
def test_results_and_written_memory_are_made_anew(function):
    step, x = wg.jit(function), wg.tensor([1.0, 2.0])
    expected = [y.numpy().copy() for y in wg.tree.leaves(function(x))]
    for _ in range(4):
        found = wg.tree.leaves(step(x))
        for y, z in zip(found, expected, strict=True):
            np.testing.assert_array_equal(y.numpy(), z)
        for y in found:
            y.fill_(-7.0)


def test_random_numbers_are_drawn_anew():
    step = wg.jit(lambda x: x + wg.rand(3))
    wg.manual_seed(3)
    found = [step(wg.zeros(3)).numpy() for _ in range(3)]
    wg.manual_seed(3)
    np.testing.assert_array_equal(found, [wg.rand(3).numpy() for _ in range(3)])


def test_memory_of_outside_is_no_constant():
    array = np.ones(3, np.float32)
    held = wg.tensor([1.0, 1.0, 1.0])
    step = wg.jit(lambda x: x + wg.from_numpy(array) * 2 + held * 2)
    x = wg.zeros(3)
    for value in (1.0, 5.0, 2.0):
        array[:] = value
        held.fill_(value)
        np.testing.assert_array_equal(step(x).numpy(), np.full(3, 4 * value))


def test_errors_of_constants_are_raised():
    step = wg.jit(lambda x: x + wg.tensor([1, 2]).div(wg.tensor([0, 1]), rounding_mode="floor"))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            step(wg.zeros(2))


def test_wrappers_of_the_library_are_not_compared():
    """A function that a transform returns reads nothing of its own; the user's within it is watched."""
    scale = {"by": 2.0}
    step = wg.jit(wg.grad(lambda x: (x * x).sum() * scale["by"]))
    x = wg.tensor([1.0, 2.0])
    np.testing.assert_array_equal(step(x).numpy(), [4.0, 8.0])
    scale["by"] = 3.0
    np.testing.assert_array_equal(step(x).numpy(), [6.0, 12.0])
    assert step.traces == 2


def test_views_of_constants_are_constants():
    step = wg.jit(lambda x: x + (wg.ones(3) * 3.0).expand(2, 3) * 2.0 + wg.eye(3).T[:2] * 5.0)
    x = wg.zeros(2, 3)
    for _ in range(2):
        np.testing.assert_array_equal(step(x).numpy(), 6.0 + 5.0 * np.eye(3)[:2])
    assert names(step, x) == ["add", "add"]


@pytest.mark.parametrize("transform", [wg.grad, wg.vmap])
def test_attributes_of_functions_that_transforms_return(transform):
    inner = transform(lambda x: x * x * x)
    inner.scale = 2.0
    step = wg.jit(lambda x: inner(x) * inner.scale)
    x = wg.tensor(1.0) if transform is wg.grad else wg.tensor([1.0, 1.0])
    first = step(x).numpy()
    inner.scale = 6.0
    np.testing.assert_array_equal(step(x).numpy(), 3 * first)


class Other:
    """Takes the name and the module of a layer over below."""

    scale = 2.0


@pytest.mark.parametrize(
    "kind",
    [
        dataclasses.make_dataclass("Made", [("scale", float, 2.0)]),
        types.new_class("New", (), {}, lambda names: names.update(scale=2.0)),
        abc.ABCMeta("Abstract", (), {"scale": 2.0}),
        functools.wraps(wg.nn.Linear, updated=())(Other),
    ],
)
def test_attributes_of_classes_whose_module_is_another(kind):
    step = wg.jit(lambda x: x * kind.scale)
    assert step(wg.tensor(1.0)).item() == 2.0
    kind.scale = 3.0
    assert step(wg.tensor(1.0)).item() == 3.0


def test_an_error_draws_no_random_numbers():
    def function(kept, x, i):
        kept.add_(1.0)
        y = wg.rand(2)
        return y + x[i] * wg.rand(2) + wg.rand(1)

    def found(function, calls):
        wg.manual_seed(0)
        kept, results = wg.zeros(3), []
        for i in calls:
            try:
                results.append(function(kept, wg.ones(3), wg.tensor(i)).tolist())
            except IndexError:
                assert i[1] > 2
        return results, kept.tolist()

    calls = [[0, 1], [0, 9], [1, 1], [0, 7], [2, 0]]
    assert found(wg.jit(function), calls) == found(function, [i for i in calls if i[1] < 3])
