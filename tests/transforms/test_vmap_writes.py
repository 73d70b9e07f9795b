"""Masks, in-place writes and other arguments inside `vmap`: what has a shape works, what has none says so."""

import gc
from typing import Any

import numpy as np
import pytest
import wengert as wg
from support import array, assert_near
from wengert import nn

F64 = wg.float64
X = np.array([[1.0, -2.0, 3.0], [-1.0, -4.0, 0.5], [-1.0, -2.0, -3.0], [2.0, 1.0, 4.0]])


def tensor(x: Any) -> wg.Tensor:
    return wg.tensor(np.asarray(x), dtype=F64)


# ---- masks ---------------------------------------------------------------------------------------

REDUCTIONS = {
    "sum": lambda x: x[x > 0].sum(),
    "mean": lambda x: x[x > 0].mean(),
    "prod": lambda x: x[x > 0].prod(),
    "max": lambda x: x[x < 2.5].max(),
    "amin": lambda x: x[x < 2.5].amin(),
    "norm": lambda x: x[x > 0].norm(),
    "var": lambda x: x[x < 2.5].var(correction=0),
    "logsumexp": lambda x: x[x < 2.5].exp().log().sum() + x[x < 2.5].sum().exp(),
    "functions": lambda x: ((x[x > 0] * 2 + 1).log().sin() ** 2).sum(),
    "reflected": lambda x: (1 - 2 / (x[x != 0] + 7)).sum(),
    "masked_select": lambda x: x.masked_select(x > 0).sum(),
    "method": lambda x: wg.masked_select(x, x > 0).exp().sum(),
    "as_functions": lambda x: wg.sum(wg.exp(wg.abs(x[x < 2.5])) + 1),
    "twice": lambda x: (x[m := x > 0] * x[m]).sum(),
    "any": lambda x: (x[x > 0] > 2).any().to(x.dtype),
    "all": lambda x: (x[x > 0] > 0.7).all().to(x.dtype),
    "count": lambda x: (x[x > 0] > 0.7).sum().to(x.dtype),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_what_a_mask_selects(name: str) -> None:
    f, x = REDUCTIONS[name], tensor(X[[0, 1, 3]])
    assert_near(wg.vmap(f)(x), np.array([array(f(row)) for row in x]), 1e-12)
    if name in ("any", "all", "count"):
        return
    want = np.stack([array(wg.grad(f)(row)) for row in x])
    assert_near(wg.vmap(wg.grad(f))(x), want, 1e-12)
    assert_near(wg.grad(lambda x: wg.vmap(f)(x).sum())(x), want, 1e-12)
    t = x.cos()
    pushed = np.array([array(wg.jvp(f, (row,), (d,))[1]) for row, d in zip(x, t)])
    assert_near(wg.vmap(lambda x, t: wg.jvp(f, (x,), (t,))[1])(x, t), pushed, 1e-12)
    assert_near(wg.jvp(wg.vmap(f), (x,), (t,))[1], pushed, 1e-12)
    second = np.stack([array(wg.hessian(f)(row)) for row in x])
    assert_near(wg.vmap(wg.hessian(f))(x), second, 1e-10)


def test_masks_of_leading_axes() -> None:
    x = tensor(np.arange(24.0).reshape(2, 3, 4))
    mask = wg.tensor([[True, False, True], [False, False, True]])
    assert wg.vmap(lambda x, m: x[m].sum())(x, mask).tolist() == [
        x[0, [0, 2]].sum().item(),
        x[1, 2].sum().item(),
    ]
    assert wg.vmap(lambda x, m: x[m].numel())(x, mask).tolist() == [8, 4]
    assert wg.vmap(lambda x, m: x[m].sum(), in_axes=(None, 0))(x[0], mask).tolist() == [
        x[0, [0, 2]].sum().item(),
        x[0, 2].sum().item(),
    ]
    integers = wg.vmap(lambda x: (x[x > 0].amax(), x[x > 0].sum()))(wg.tensor(X).long())
    assert [y.tolist() for y in integers] == [[3, -(2**63), -(2**63), 4], [4, 0, 0, 7]]


def test_what_is_not_selected_need_not_be_in_the_domain() -> None:
    f = lambda x, w: (x[x > 0].log() * w).sum()
    x, w = tensor(X), tensor(2.0)
    slopes = wg.vmap(wg.grad(f, argnums=(0, 1)), in_axes=(0, None))(x, w)
    with np.errstate(all="ignore"):
        assert_near(slopes[0], np.where(X > 0, 2 / X, 0.0), 1e-12)
        assert_near(slopes[1], np.where(X > 0, np.log(X), 0.0).sum(1), 1e-12)


def test_no_elements() -> None:
    found = wg.vmap(lambda x: (x[x > 9].sum(), x[x > 9].mean(), x[x > 9].amax(), x[x > 9].numel()))(tensor(X))
    assert [y[0].item() for y in found[:1]] == [0.0]
    assert found[1].isnan().all().item()
    assert found[2].tolist() == [-np.inf] * 4
    assert found[3].tolist() == [0] * 4


def test_what_is_selected_is_written_back() -> None:
    def doubled(x: wg.Tensor) -> wg.Tensor:
        y = x.clone()
        y[y > 0] *= 2
        y[y < -2.5] = 7.0
        m = y < 0
        y[m] = y[m].exp() + y[m]
        return y

    x = tensor(X)
    assert_near(wg.vmap(doubled)(x), np.stack([array(doubled(row)) for row in x]), 1e-12)
    total = lambda x: (doubled(x) * x).sum()
    want = np.stack([array(wg.grad(total)(row)) for row in x])
    assert_near(wg.vmap(wg.grad(total))(x), want, 1e-12)
    assert_near(wg.grad(lambda x: wg.vmap(total)(x).sum())(x), want, 1e-12)


SHAPELESS = {
    "len": lambda x: len(x[x > 0]),
    "bool": lambda x: x if x[x > 0] else -x,
    "iter": lambda x: list(x[x > 0]),
    "indexing": lambda x: x[x > 0][0],
    "sort": lambda x: x[x > 0].sort(),
    "shape": lambda x: x[x > 0].shape,
    "cumsum": lambda x: x[x > 0].cumsum(0),
}


@pytest.mark.parametrize("name", SHAPELESS)
def test_what_needs_a_shape_says_so(name: str) -> None:
    with pytest.raises(TypeError) as caught:
        wg.vmap(SHAPELESS[name])(tensor(X))
    assert str(caught.value) == (
        f"{name}: inside vmap a mask selects as many elements as each example has, so there is no shape; "
        "reduce them, for example with .sum(), or use where() on all elements"
    )


def test_selections_without_partners() -> None:
    with pytest.raises(
        TypeError, match=r"__add__: .* and a selection by another mask, whose elements have no partners"
    ):
        wg.vmap(lambda x: (x[x > 0] + x[x > 1]).sum())(tensor(X))
    with pytest.raises(
        TypeError, match=r"__mul__: .* and a tensor of shape \(3,\), whose elements have no partners"
    ):
        wg.vmap(lambda x: (x[x > 0] * wg.ones(3)).sum())(tensor(X))

    def elsewhere(x: wg.Tensor) -> wg.Tensor:
        y = x.clone()
        y[x > 1] = x[x > 0]
        return y

    with pytest.raises(
        ValueError, match="what a mask selected inside vmap can be assigned to the same mask only"
    ):
        wg.vmap(elsewhere)(tensor(X))
    with pytest.raises(
        TypeError,
        match="vmap: the function's result is Selection, expected a tensor or a tree of tensors; inside vmap",
    ):
        wg.vmap(lambda x: x[x > 0])(tensor(X))


@pytest.mark.parametrize(
    "f", [wg.unique, wg.nonzero, lambda x: x.bincount(), lambda x: x.repeat_interleave(x, 0)]
)
def test_results_whose_shape_depends_on_the_data(f: Any) -> None:
    with pytest.raises(TypeError, match="depends on the batch element"):
        wg.vmap(f)(wg.tensor([[1, 2], [3, 3]]))


# ---- writes --------------------------------------------------------------------------------------


def test_writes_to_what_was_made_inside() -> None:
    def f(x: wg.Tensor) -> wg.Tensor:
        z = wg.zeros(2, 3, dtype=F64)
        z[0] = x
        z[1].add_(x.square()).mul_(2)
        z.mT[0].sub_(x[1])
        z[:, 2:].copy_(z[:, :1])
        return z

    x = tensor(X)
    assert_near(wg.vmap(f)(x), np.stack([array(f(row)) for row in x]), 1e-12)
    g = wg.grad(lambda x: (f(x) * f(x)).sum())
    assert_near(wg.vmap(g)(x), np.stack([array(g(row)) for row in x]), 1e-12)


def test_writes_to_arguments() -> None:
    x, shared = tensor(X), tensor([1.0, 2.0, 3.0])
    assert_near(wg.vmap(lambda b, x: b.add_(x), in_axes=(None, 0))(shared, x), array(shared + x), 1e-12)
    assert shared.tolist() == [1, 2, 3]
    own = x.clone()
    assert_near(wg.vmap(lambda b, x: b.mul_(x))(own, x), X * X, 1e-12)
    assert_near(own, X, 0)


def outer(write: Any, value: wg.Tensor | None = None) -> tuple[wg.Tensor, Any]:
    buffer = tensor([1.0, 2.0, 3.0]) if value is None else value

    def f(x: wg.Tensor) -> wg.Tensor:
        write(buffer, x)
        return buffer * x

    return buffer, f


def part(b: wg.Tensor, x: wg.Tensor) -> None:
    b[1:] = x[:2]


WRITES = {
    "add_": lambda b, x: b.add_(x),
    "copy_": lambda b, x: b.copy_(x),
    "exp": lambda b, x: b.copy_(x).exp_(),
}


@pytest.mark.parametrize("name", ["add_", "copy_", "exp", "x[...] = value"])
@pytest.mark.parametrize("plain", [True, False])
def test_writes_to_what_was_made_outside(name: str, plain: bool) -> None:
    buffer, f = outer(WRITES.get(name, part))
    with pytest.raises(RuntimeError) as caught:
        wg.vmap(f, **({} if plain else {"chunk_size": 10}))(tensor(X))
    op = "copy_" if name == "exp" else name
    assert str(caught.value) == (
        f"{op}: a tensor of shape (3,) from outside of vmap was written with a value that differs between "
        f"the 4 "
        "examples, and has room for one; it keeps the value that it had before. Return the value instead, or "
        "pass the tensor as an argument"
    )
    assert buffer.tolist() == [1, 2, 3]
    assert (buffer + 1).tolist() == [2, 3, 4]


def test_writes_that_all_examples_share_go_through() -> None:
    buffer, f = outer(lambda b, x: b.mul_(2))
    assert_near(wg.vmap(f)(tensor(X)), X * [2, 4, 6], 1e-12)
    assert buffer.tolist() == [2, 4, 6]


def test_nested_batches_and_buffers() -> None:
    x, y = tensor(X), tensor([10.0, 20.0])

    def f(x: wg.Tensor) -> wg.Tensor:
        buffer = wg.zeros(3, dtype=F64)

        def g(y: wg.Tensor) -> wg.Tensor:
            buffer.copy_(x)
            return buffer * y

        # The inner batch writes what all of its examples share.
        return wg.vmap(g)(y) + buffer

    assert_near(wg.vmap(f)(x), X[:, None] * np.array([[10.0], [20.0]]) + X[:, None], 1e-12)

    def h(x: wg.Tensor) -> wg.Tensor:
        buffer = wg.zeros(3, dtype=F64)
        return wg.vmap(lambda y: buffer.add_(x * y))(y)

    with pytest.raises(RuntimeError, match="differs between the 2 examples"):
        wg.vmap(h)(x)
    kept, inner = outer(lambda b, x: b.add_(x))
    with pytest.raises(RuntimeError, match="differs between the 4 examples"):
        wg.vmap(lambda x: wg.vmap(lambda y: inner(x) * y)(y))(x)
    assert kept.tolist() == [1, 2, 3]


def test_cycles_made_inside_are_no_outside() -> None:
    def f(x: wg.Tensor) -> wg.Tensor:
        found = wg.zeros(3, dtype=F64)

        def fill(i: int) -> None:
            if i < 3:
                found[i] = x[i] * i
                fill(i + 1)

        fill(0)
        return found

    gc.disable()
    try:
        assert_near(wg.vmap(f)(tensor(X)), X * [0, 1, 2], 1e-12)
    finally:
        gc.enable()


def test_an_exception_leaves_nothing_behind() -> None:
    buffer, f = outer(lambda b, x: b.add_(x))

    def g(x: wg.Tensor) -> wg.Tensor:
        try:
            f(x)
        except RuntimeError as error:
            raise KeyError("mine") from error
        return x

    with pytest.raises(KeyError, match="mine"):
        wg.vmap(g)(tensor(X))
    assert buffer.tolist() == [1, 2, 3]


def test_batch_norm_in_training() -> None:
    x = tensor(np.random.default_rng(0).normal(size=(4, 5, 3)))
    free = nn.BatchNorm1d(3, track_running_stats=False, dtype=F64)
    assert_near(wg.vmap(free)(x), np.stack([array(free(row)) for row in x]), 1e-12)
    layer = nn.BatchNorm1d(3, dtype=F64)
    with pytest.raises(RuntimeError, match=r"copy_: a tensor of shape \(3,\) from outside of vmap"):
        wg.vmap(layer)(x)
    assert layer.running_mean.tolist() == [0.0] * 3
    # Each example with statistics of its own.
    weights, buffers = nn.stack_module_state([layer] * 4)

    def call(weights: Any, buffers: Any, x: wg.Tensor) -> tuple[wg.Tensor, Any]:
        return nn.functional_call(layer, {**weights, **buffers}, (x,)), buffers

    out, after = wg.vmap(call)(weights, buffers, x)
    for i in range(4):
        single = nn.BatchNorm1d(3, dtype=F64)
        assert_near(out[i], array(single(x[i])), 1e-12)
        assert_near(after["running_mean"][i], array(single.running_mean), 1e-12)
        assert_near(after["running_var"][i], array(single.running_var), 1e-12)


# ---- arguments -----------------------------------------------------------------------------------


def test_shared_arguments_may_be_anything() -> None:
    x = tensor(X)
    f = lambda x, how, scale: getattr(x, how["name"])(0) * scale
    found = wg.vmap(f, in_axes=(0, None, None))(x, {"name": "sum", "other": [len]}, 2.0)
    assert_near(found, 2 * X.sum(1), 1e-12)
    chunked = wg.vmap(f, in_axes=(0, None, None), chunk_size=3)(x, {"name": "sum"}, 2.0)
    assert_near(chunked, 2 * X.sum(1), 1e-12)
    with pytest.raises(TypeError, match="vmap: an argument, \\[1\\], is str, expected a tensor"):
        wg.vmap(lambda x, s: x, in_axes=(0, 0))(x, "text")


@pytest.mark.parametrize("chunk", [None, 1, 3, 4, 9])
def test_trees_of_axes_and_chunks(chunk: int | None) -> None:
    x, y = tensor(X), tensor(np.arange(8.0).reshape(2, 4))

    def f(d: Any, z: wg.Tensor) -> Any:
        a, (b,) = d["a"], d["b"]
        return {"sum": a.sum() + b.sum(), "rows": (a * z, wg.ones(2, dtype=F64))}

    found = wg.vmap(
        f,
        in_axes=({"a": 0, "b": [1]}, None),
        out_axes={"sum": 0, "rows": (1, None)},
        chunk_size=chunk,
    )({"a": x, "b": [y]}, tensor([1.0, 2.0, 3.0]))
    assert_near(found["sum"], X.sum(1) + np.arange(8.0).reshape(2, 4).sum(0), 1e-12)
    assert_near(found["rows"][0], (X * [1, 2, 3]).T, 1e-12)
    assert found["rows"][1].tolist() == [1, 1]
