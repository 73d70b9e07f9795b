"""Writes into views: random programs against the same programs without writes, under every transform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import wengert as wg
from hypothesis import given
from wengert import Tensor
from wengert.testing import assert_close

SHAPE = (3, 4)
SIZE = 12

Step = tuple[Any, ...]
Program = list[Step]

# ---- programs ------------------------------------------------------------------------------------
# A program works on a list of arrays that begins with one root, and returns a weighted sum of what it reads.
# Views are made by functions that NumPy and wengert share.


def view_of(kind: str, i: int, x: Any) -> Any:
    """The view of this kind; `i` picks an index or a start."""
    match kind:
        case "transpose":
            return x.T
        case "tail":
            return x[i % x.shape[0] :]
        case "last":
            return x[..., -1:]
        case "step":
            return x[::2]
        case "reverse":
            return x[::-1]
        case "row":
            return x[i % x.shape[0]]
        case "column":
            return x[..., i % x.shape[-1]]
        case "new":
            return x[None]
        case "diagonal":
            diagonal = x.diagonal()
            if isinstance(diagonal, np.ndarray):
                diagonal.flags.writeable = True
            return diagonal
    raise AssertionError(kind)


def views_for(x: np.ndarray) -> list[str]:
    """The kinds of views that an array of this shape has."""
    if x.ndim == 0 or 0 in x.shape:
        return []
    kinds = ["transpose", "tail", "last", "step", "reverse", "row", "column"]
    if x.ndim < 3:
        kinds.append("new")
    if x.ndim == 2:
        kinds.append("diagonal")
    return kinds


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A random program: views, writes and reads."""
    index = [np.arange(SIZE).reshape(SHAPE)]
    program: Program = []
    for _ in range(draw(st.integers(2, 8))):
        k = draw(st.integers(0, len(index) - 1))
        action = draw(st.sampled_from(["view", "view", "write", "write", "assign", "read"]))
        if action == "view" and (kinds := views_for(index[k])):
            kind, i = draw(st.sampled_from(kinds)), draw(st.integers(0, 3))
            index.append(view_of(kind, i, index[k]))
            program.append(("view", k, kind, i))
        elif action == "write":
            how = draw(st.sampled_from(["sin", "scale", "add", "fill", "copy", "square", "iadd"]))
            program.append(("write", k, how, draw(st.integers(0, SIZE - 1))))
        elif action == "assign" and index[k].ndim:
            program.append(("assign", k, draw(st.integers(0, 3)), draw(st.integers(0, SIZE - 1))))
        else:
            program.append(("read", k))
    return program


def written(how: str, old: Any, x: Any, i: int) -> Any:
    """The new value of what is written, as a function of the old one and of the program's input."""
    sin = np.sin if isinstance(old, np.ndarray) else wg.sin
    match how:
        case "sin":
            return sin(old)
        case "scale":
            return old * x[i]
        case "add" | "iadd":
            return old + x[i] * x[i]
        case "fill":
            return old * 0 + 0.5
        case "copy":
            return old * 0 + x[i] * 3
        case "square":
            return old * old
    raise AssertionError(how)


def in_place(program: Program, x: Any) -> Any:
    """The program as a user would write it; the same code runs on NumPy arrays."""
    arrays = [x.reshape(SHAPE) * 2]
    total = x[0] * 0
    for step in [*program, ("read", 0)]:
        target = arrays[step[1]]
        if step[0] == "view":
            arrays.append(view_of(step[2], step[3], target))
        elif step[0] == "assign":
            target[step[2] % target.shape[0]] = x[step[3]] * 2 + target[0]
        elif step[0] == "read":
            # A copy, for what is read is saved, and may be written later.
            value = target.copy() if isinstance(x, np.ndarray) else target.clone()
            total = total + (value * value + value).sum() * (1 + step[1])
        elif isinstance(x, np.ndarray):
            target[...] = written(step[2], target, x, step[3])
        else:
            i = step[3]
            match step[2]:
                case "sin":
                    target.sin_()
                case "scale":
                    target.mul_(x[i])
                case "add":
                    target.add_(x[i] * x[i])
                case "iadd":
                    target += x[i] * x[i]
                case "fill":
                    target.fill_(0.5)
                case "copy":
                    target.copy_(x[i] * 3)
                case "square":
                    target.pow_(2)
    return total


def functional(program: Program, x: Tensor) -> Tensor:
    """The same function without a write or a view: the root is a vector, a view a list of its elements."""
    index = [np.arange(SIZE).reshape(SHAPE)]
    root = x * 2
    total = x[0] * 0

    def pick(places: np.ndarray) -> Tensor:
        return wg.tensor(np.eye(SIZE)[places.reshape(-1)].copy()) @ root

    def put(places: np.ndarray, value: Tensor) -> Tensor:
        columns = np.eye(SIZE)[places.reshape(-1)]
        keep = wg.tensor(1.0 - columns.sum(0))
        return root * keep + wg.tensor(columns.T.copy()) @ value

    for step in [*program, ("read", 0)]:
        places = index[step[1]]
        if step[0] == "view":
            index.append(view_of(step[2], step[3], places))
        elif step[0] == "assign":
            value = x[step[3]] * 2 + pick(places[0])
            root = put(places[step[2] % places.shape[0]], value)
        elif step[0] == "read":
            value = pick(places)
            total = total + (value * value + value).sum() * (1 + step[1])
        else:
            root = put(places, written(step[2], pick(places), x, step[3]))
    return total


def point(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1.2, 1.2, SIZE)


@given(programs(), st.integers(0, 100))
def test_values_are_those_of_numpy(program: Program, seed: int) -> None:
    x = point(seed)
    assert_close(in_place(program, wg.tensor(x)), in_place(program, x), rtol=1e-9)


def backward_of(f: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The gradient of `f` by `.backward()`."""

    def gradient(x: Tensor) -> Tensor:
        leaf = x.detach().clone().requires_grad_()
        f(leaf).backward()
        return leaf.grad

    return gradient


def directional(f: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The derivative of `f` along a fixed direction."""
    return lambda x: wg.jvp(f, (x,), (wg.tensor(point(-1 % 1000)),))[1]


WAYS: dict[str, Callable[[Callable[[Tensor], Tensor]], Callable[[Tensor], Any]]] = {
    "backward": backward_of,
    "grad": wg.grad,
    "jvp": directional,
    "vmap": lambda f: lambda x: wg.vmap(f)(wg.stack([x, x * 0.5, -x])),
    "vmap_grad": lambda f: lambda x: wg.vmap(wg.grad(f))(wg.stack([x, x * 0.5, -x])),
    "grad_of_sum_of_vmap": lambda f: wg.grad(lambda x: wg.vmap(f)(wg.stack([x, x * 0.5])).sum()),
    "jvp_of_grad": lambda f: lambda x: wg.jvp(wg.grad(f), (x,), (wg.tensor(point(7)),))[1],
    "grad_of_jvp": lambda f: wg.grad(lambda x: directional(f)(x)),
    "jacfwd": wg.jacfwd,
    "checkpoint": lambda f: wg.grad(lambda x: wg.utils.checkpoint.checkpoint(f, x)),
}


@pytest.mark.parametrize("way", WAYS)
@given(programs(), st.integers(0, 100))
def test_derivatives_are_those_of_the_rewrite(way: str, program: Program, seed: int) -> None:
    x = wg.tensor(point(seed))
    got = WAYS[way](lambda x: in_place(program, x))(x)
    expected = WAYS[way](lambda x: functional(program, x))(x)
    scale = max(1.0, float(expected.abs().max()))
    assert_close(got / scale, expected / scale, rtol=1e-9, atol=1e-9)


# ---- situations ----------------------------------------------------------------------------------


def test_a_view_made_before_a_recorded_write_has_its_history() -> None:
    x = wg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    buffer = wg.zeros(3)
    first, rest = buffer[0], buffer[1:]
    rest.copy_(x[:2])
    assert first.requires_grad
    assert buffer.grad_fn.name() == "PutBackward"
    (buffer * wg.tensor([5.0, 6.0, 7.0])).sum().backward()
    assert x.grad.tolist() == [6.0, 7.0, 0.0]


def test_several_views_of_one_call() -> None:
    x = wg.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    y = x * 1
    a, b = y.chunk(2)
    a += b
    for row in y.view(2, 2):
        row.mul_(2)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 4.0, 4.0]


def test_hooks_and_kept_gradients_of_a_renewed_view() -> None:
    x = wg.ones(4, requires_grad=True)
    y = x * 2
    view = y[1:]
    y.mul_(3)
    view.retain_grad()
    seen: list[list[float]] = []
    view.register_hook(lambda g: seen.append(g.tolist()))
    (view * 5).sum().backward()
    assert view.grad.tolist() == [5.0, 5.0, 5.0]
    assert seen == [[5.0, 5.0, 5.0]]
    assert x.grad.tolist() == [0.0, 30.0, 30.0, 30.0]


def test_a_view_of_a_leaf_is_written_under_no_grad_only() -> None:
    w = wg.ones(2, 2, requires_grad=True)
    row = w[0]
    with pytest.raises(RuntimeError, match="view of a leaf"):
        row.mul_(2)
    with wg.no_grad():
        row.mul_(2)
        quiet = w[1]
    with pytest.raises(RuntimeError, match="view of a leaf"):
        quiet += 1
    assert w.tolist() == [[2.0, 2.0], [1.0, 1.0]]
    assert w.is_leaf
    assert w.requires_grad


def test_a_write_that_is_not_recorded_keeps_every_history() -> None:
    x = wg.ones(3, requires_grad=True)
    y = x * 2
    view = y[:2]
    with wg.no_grad():
        view.fill_(7.0)
        y[2] = 9.0
    assert y.tolist() == [7.0, 7.0, 9.0]
    assert y.grad_fn.name() == "MulBackward"
    (y.sum() + view.sum()).backward()
    assert x.grad.tolist() == [4.0, 4.0, 2.0]


def test_what_is_not_recorded_takes_no_history_along() -> None:
    target, source = wg.zeros(3, requires_grad=True), wg.ones(3, requires_grad=True)
    with wg.no_grad():
        target.copy_(source)
        target[0] = source[1]
    assert target.is_leaf
    (target * 2).sum().backward()
    assert target.grad.tolist() == [2.0, 2.0, 2.0]
    assert source.grad is None


def test_a_leaf_made_of_a_view_is_no_view_any_more() -> None:
    base = wg.zeros(4)
    leaf = base[:2].requires_grad_()
    base.mul_(wg.ones(4, requires_grad=True))
    assert leaf.is_leaf
    assert leaf.grad_fn is None
    leaf.sum().backward()
    assert leaf.grad.tolist() == [1.0, 1.0]


def test_exchanged_data_leaves_old_views_alone() -> None:
    x = wg.zeros(3)
    view = x[:2]
    x.data = wg.ones(3)
    view.copy_(wg.full((2,), 5.0, requires_grad=True) * 1)
    assert x.tolist() == [1.0, 1.0, 1.0]
    assert not x.requires_grad
    assert view.tolist() == [5.0, 5.0]


def test_a_root_in_another_order() -> None:
    x = wg.tensor(np.arange(6.0).reshape(2, 3).T, requires_grad=True)
    y = wg.from_numpy(np.asfortranarray(np.zeros((3, 2))))
    column = y[:, 1]
    column.copy_((x * x)[:, 0])
    (y * wg.tensor([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]])).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0], [4.0, 0.0], [12.0, 0.0]]


def test_shared_elements_cannot_be_written() -> None:
    y = wg.ones(1, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="share memory"):
        y.expand(3).mul_(2)
    with pytest.raises(RuntimeError, match="share memory"):
        wg.vmap(lambda x: x.expand(3).mul_(2))(wg.ones(2, 1))


def test_masks_that_only_vmap_knows() -> None:
    def clipped(x: Tensor) -> Tensor:
        y = x * 1
        y[x > 1] = 0.0
        return y

    x = wg.tensor([[0.5, 2.0], [3.0, 0.0]])
    assert wg.vmap(clipped)(x).tolist() == [[0.5, 0.0], [0.0, 0.0]]
    assert wg.vmap(wg.grad(lambda x: clipped(x).sum()))(x).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_loop_of_writes_costs_memory_in_proportion() -> None:
    """Each write keeps no copy of the whole."""
    x = wg.ones(100, requires_grad=True)
    out = wg.zeros(1000, 100)
    before = wg.memory.stats()["live_bytes"]
    for t in range(1000):
        out[t] = x * t
    assert wg.memory.stats()["live_bytes"] - before < 4 * out.nbytes
    out.sum().backward()
    assert x.grad[0].item() == 999 * 500
