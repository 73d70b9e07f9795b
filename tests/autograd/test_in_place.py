"""Methods that end in an underscore, `out=`, assignment, and copies on write."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import wengert as wg
from wengert import Tensor, _core
from wengert.autograd.graph import allow_mutation_on_saved_tensors
from wengert.testing import assert_close

TABLES = {name: table for name, _, table in _core.op_rows() if hasattr(wg.Tensor, f"{name}_")}
TWO = {name for name, _, table in _core.op_rows() if table == "Binary"}


def arguments(name: str) -> list[Any]:
    """What an operation takes besides its first tensor."""
    return [wg.tensor([2.0, 0.5, 1.5])] if name in TWO else []


def test_every_row_of_the_tables_has_an_in_place_form() -> None:
    missing = [name for name, _, table in _core.op_rows() if table != "Parametric" and name not in TABLES]
    assert not missing


@pytest.mark.parametrize("name", sorted(name for name, table in TABLES.items() if table != "Parametric"))
def test_in_place_forms(name: str) -> None:
    values = wg.tensor([0.25, 0.5, 0.75])
    x = values.clone()
    same = getattr(x, f"{name}_")(*arguments(name))
    assert same is x
    assert_close(x, getattr(values, name)(*arguments(name)).to(x.dtype), equal_nan=True)

    def derivative(method: str) -> Tensor:
        leaf = values.clone().requires_grad_()
        y = leaf * 1
        out = getattr(y, method)(*arguments(name)).float()
        if out.requires_grad:
            (out * wg.tensor([1.0, 2.0, 3.0])).sum().backward()
        return leaf.grad if leaf.grad is not None else wg.zeros(3)

    assert_close(derivative(f"{name}_"), derivative(name), equal_nan=True)


def test_comparisons_and_others_in_place() -> None:
    x = wg.tensor([1.0, -2.0, 3.0])
    assert x.clone().gt_(0.0).tolist() == [1.0, 0.0, 1.0]
    assert x.clone().logical_and_(wg.tensor([1.0, 1.0, 0.0])).tolist() == [1.0, 1.0, 0.0]
    assert_close(x.clone().softmax_(0), x.softmax(0))
    assert wg.tensor([1, 2]).floor_divide_(2).tolist() == [0, 1]
    with pytest.raises(TypeError, match="cannot be stored in a tensor of int64"):
        wg.tensor([1, 2]).exp_()


# ---- out= ----------------------------------------------------------------------------------------


def test_out() -> None:
    a, b, out = wg.tensor([1.0, 2.0]), wg.tensor([3.0, 4.0]), wg.zeros(2)
    memory = out.numpy()
    assert wg.add(a, b, out=out) is out
    assert memory.tolist() == [4.0, 6.0]
    wide = wg.zeros(4)
    wg.cat([a, b], out=wide)
    assert wide.tolist() == [1.0, 2.0, 3.0, 4.0]
    wg.mul(a, b, out=wide[1:3])
    assert wide.tolist() == [1.0, 3.0, 8.0, 4.0]
    values, indices = wg.zeros(()), wg.zeros((), dtype=wg.int64)
    wg.max(wide, 0, out=(values, indices))
    assert (values.item(), indices.item()) == (8.0, 2)
    with pytest.raises(wg.ShapeError, match=r"add: out has shape \(4,\), expected \(2,\) as the result"):
        wg.add(a, b, out=wide)
    with pytest.raises(TypeError, match="add: out must be a tensor, got list"):
        wg.add(a, b, out=[0.0, 0.0])
    with pytest.raises(TypeError, match="out must be 2 tensors"):
        wg.max(wide, 0, out=values)


def test_out_takes_the_history() -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    out = wg.zeros(3)
    wg.exp(x, out=out[1:])
    (out * out).sum().backward()
    assert_close(x.grad, 2 * (2 * x.detach()).exp())


# ---- copies on write -----------------------------------------------------------------------------


def test_saved_values_survive_writes() -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    with allow_mutation_on_saved_tensors():
        y = x.exp()
        z = y * y
        y.zero_()
        y[0] = 5.0
        z.sum().backward()
    assert y.tolist() == [5.0, 0.0]
    assert_close(x.grad, 2 * (2 * x.detach()).exp())


def test_only_what_is_written_is_copied_and_once() -> None:
    x = wg.ones(1000, requires_grad=True)
    with allow_mutation_on_saved_tensors():
        y = x.exp()
        outs = [y * y for _ in range(5)]
        before = wg.memory.stats()["live_bytes"]
        with wg.no_grad():
            y.mul_(2.0)
            once = wg.memory.stats()["live_bytes"] - before
            y.mul_(2.0)
        assert wg.memory.stats()["live_bytes"] - before == once
        sum(outs).sum().backward()
    assert_close(x.grad, 10 * (2 * x.detach()).exp())


def test_plain_values_and_views_survive_too() -> None:
    w, x = wg.ones(4, requires_grad=True), wg.tensor([1.0, 2.0, 3.0, 4.0])
    with allow_mutation_on_saved_tensors():
        loss = (w * x).sum() + (w[:2] * x[2:]).sum()
        x[1:3] = 0.0
        loss.backward()
    assert w.grad.tolist() == [4.0, 6.0, 3.0, 4.0]


def test_copies_on_write_inside_transforms() -> None:
    def f(x: Tensor) -> Tensor:
        with allow_mutation_on_saved_tensors():
            y = x * 1
            z = y * y
            y.zero_()
            return (z + y).sum()

    x = wg.tensor([1.0, 2.0])
    assert wg.grad(f)(x).tolist() == [2.0, 4.0]
    assert wg.vmap(wg.grad(f))(wg.stack([x, 2 * x])).tolist() == [[2.0, 4.0], [4.0, 8.0]]
    assert wg.hessian(f)(x).tolist() == [[2.0, 0.0], [0.0, 2.0]]


def test_a_step_of_an_optimiser_is_a_write() -> None:
    w = wg.tensor([1.0, 2.0], requires_grad=True)
    optimizer = wg.optim.SGD([w], lr=0.5)

    def losses() -> tuple[Tensor, Tensor]:
        return (w * w).sum(), (w * w * w).sum()

    first, second = losses()
    first.backward()
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified in place by a step of SGD "):
        second.backward()
    w.grad = None
    with wg.no_grad():
        w.copy_(wg.tensor([1.0, 2.0]))
    with allow_mutation_on_saved_tensors():
        first, second = losses()
        first.backward()
        optimizer.step()
        w.grad = None
        second.backward()
    assert w.tolist() == [0.0, 0.0]
    assert w.grad.tolist() == [3.0, 12.0]


def test_a_write_outside_the_region_is_an_error() -> None:
    x = wg.ones(2, requires_grad=True)
    with allow_mutation_on_saved_tensors():
        y = x.exp()
    loss = y.sum()
    y.zero_()
    with pytest.raises(
        RuntimeError, match=r"backward of exp: its saved output 0 .* was modified in place by zero_"
    ):
        loss.backward()


def test_the_error_names_both_operations() -> None:
    x = wg.ones(3, requires_grad=True)
    for write, name in [
        (lambda y: y[:2].mul_(2), "mul_"),
        (lambda y: y.__setitem__(0, 1.0), r"x\[...\] = value"),
        (lambda y: wg.sin(y.detach(), out=y), "sin_"),
    ]:
        y = x.exp()
        loss = y.sum()
        write(y)
        with pytest.raises(
            RuntimeError, match=f"backward of exp: its saved output 0 .* modified in place by {name} "
        ):
            loss.backward()


def test_a_constant_keeps_the_graph() -> None:
    x = wg.ones(2, requires_grad=True)
    y = (x * 2).zero_()
    assert y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


# ---- assignment by indices that vmap batches -----------------------------------------------------


def test_assignment_at_batched_indices() -> None:
    def f(x: Tensor, i: Tensor) -> Tensor:
        y = x * 1
        y[i] = y[0] * 10
        return y

    x, i = wg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), wg.tensor([1, 2])
    assert wg.vmap(f)(x, i).tolist() == [[1.0, 10.0, 3.0], [4.0, 5.0, 40.0]]
    gradient = wg.vmap(wg.grad(lambda x, i: f(x, i).sum()))(x, i)
    assert gradient.tolist() == [[11.0, 0.0, 1.0], [11.0, 1.0, 0.0]]


def test_assignment_at_batched_index_vectors() -> None:
    rows = np.array([[0, 2, 0], [1, 1, 1]])

    def f(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
        y = x.clone()
        y[i, 1] = v
        return y

    x, v = wg.arange(12.0).reshape(2, 3, 2), wg.tensor([[10.0, 20.0, 30.0], [40.0, 50.0, float("inf")]])
    expected = x.numpy().copy()
    for k in range(2):
        expected[k][rows[k], 1] = v.numpy()[k]
    assert wg.vmap(f)(x, wg.tensor(rows), v).tolist() == expected.tolist()
