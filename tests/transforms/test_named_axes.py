"""Sums, means and gathers over the axis of a batch, and transposes of linear functions."""

from typing import Any

import numpy as np
import pytest
import wengert as wg
from support import array, assert_near
from wengert import nn

F64 = wg.float64
RNG = np.random.default_rng(5)
X = RNG.normal(size=(4, 3))


def tensor(x: Any) -> wg.Tensor:
    return wg.tensor(np.asarray(x), dtype=F64)


# ---- values --------------------------------------------------------------------------------------


def test_reductions_over_the_axis() -> None:
    x = tensor(X)
    total = X.sum(0)
    cases = {
        "psum": (lambda x: wg.psum(x, "i"), total),
        "pmean": (lambda x: wg.pmean(x, "i"), total / 4),
        "pmax": (lambda x: wg.pmax(x, "i"), X.max(0)),
        "pmin": (lambda x: wg.pmin(x, "i"), X.min(0)),
        "all_gather": (lambda x: wg.all_gather(x, "i"), X),
    }
    for name, (f, want) in cases.items():
        assert_near(wg.vmap(f, axis_name="i", out_axes=None)(x), want, 1e-12, name)
        assert_near(wg.vmap(f, axis_name="i")(x), np.stack([want] * 4), 1e-12, name)
        assert_near(wg.vmap(f, in_axes=1, axis_name="i", out_axes=None)(tensor(X.T)), want, 1e-12, name)
    assert wg.vmap(lambda x: wg.axis_index("i"), axis_name="i")(x).tolist() == [0, 1, 2, 3]
    assert wg.vmap(lambda x: wg.psum(1, "i"), axis_name="i", out_axes=None)(x).item() == 4
    assert wg.vmap(lambda x: x * wg.axis_size("i"), axis_name="i")(x).tolist() == (4 * x).tolist()
    tree = wg.vmap(lambda d: wg.psum(d, "i"), axis_name="i", out_axes=None)({"a": x, "b": (x[:, 0],)})
    assert_near(tree["a"], total, 1e-12)
    assert_near(tree["b"][0], total[0], 1e-12)
    # What is the same for all examples counts once for each.
    assert_near(
        wg.vmap(lambda x: wg.psum(x[0] * 0 + tensor([2.0]), "i"), axis_name="i")(x), [[8.0]] * 4, 1e-12
    )
    assert_near(wg.vmap(lambda _: wg.psum(tensor([2.0]), "i"), axis_name="i")(x), [[8.0]] * 4, 1e-12)


@pytest.mark.parametrize(("a", "b"), [(0, 1), (1, 0)])
def test_nested_axes_are_told_apart(a: int, b: int) -> None:
    x = RNG.normal(size=(3, 4, 2))
    names = ("outer", "inner")

    def f(x: wg.Tensor) -> tuple[wg.Tensor, ...]:
        return wg.psum(x, names[a]), wg.psum(wg.psum(x * x, names[a]), names[b]), wg.all_gather(x, names[b])

    inner = wg.vmap(f, axis_name="inner")
    first, both, rows = wg.vmap(inner, axis_name="outer")(tensor(x))
    assert_near(first, np.broadcast_to(x.sum(a, keepdims=True), x.shape), 1e-12)
    assert_near(both, np.broadcast_to((x * x).sum((0, 1)), x.shape), 1e-12)
    want = np.stack([np.take(x, k, b) for k in range(x.shape[b])])
    want = np.moveaxis(np.expand_dims(want, b + 1), 0, 2)
    assert_near(rows, np.broadcast_to(want, (3, 4, x.shape[b], 2)), 1e-12)


def test_softmax_over_a_batch() -> None:
    def softmax(x: wg.Tensor) -> wg.Tensor:
        e = (x - wg.pmax(x, "i").detach()).exp()
        return e / wg.psum(e, "i")

    f = wg.vmap(softmax, axis_name="i")
    assert_near(f(tensor(X)), array(tensor(X).softmax(0)), 1e-12)
    weight = tensor(RNG.normal(size=(4, 3)))
    got = wg.grad(lambda x: (f(x) * weight).sum())(tensor(X))
    assert_near(got, array(wg.grad(lambda x: (x.softmax(0) * weight).sum())(tensor(X))), 1e-12)
    got = wg.hessian(lambda x: (f(x) * weight).sum())(tensor(X))
    assert_near(got, array(wg.hessian(lambda x: (x.softmax(0) * weight).sum())(tensor(X))), 1e-11)
    t = tensor(np.cos(X))
    assert_near(
        wg.jvp(f, (tensor(X),), (t,))[1], array(wg.jvp(lambda x: x.softmax(0), (tensor(X),), (t,))[1]), 1e-12
    )


# ---- derivatives ---------------------------------------------------------------------------------

MIXES = {
    "psum": (lambda x: wg.psum(x.sin(), "i") * x, lambda x: x.sin().sum(0) * x),
    "pmean": (lambda x: (x - wg.pmean(x, "i")).square(), lambda x: (x - x.mean(0)).square()),
    "all_gather": (
        lambda x: (wg.all_gather(x, "i") * x).pow(2).sum(0),
        lambda x: (x.unsqueeze(0) * x.unsqueeze(1)).pow(2).sum(0),
    ),
    "pmax": (lambda x: wg.pmax(x, "i") * x, lambda x: x.amax(0) * x),
    "index": (
        lambda x: wg.psum(x * (wg.axis_index("i") + 1), "i") * x,
        lambda x: (x * wg.arange(1, 5, dtype=F64).unsqueeze(1)).sum(0) * x,
    ),
}


@pytest.mark.parametrize("name", MIXES)
def test_derivatives_around_the_batch(name: str) -> None:
    one, whole = MIXES[name]
    f = wg.vmap(one, axis_name="i")
    x, t = tensor(X), tensor(np.cos(X))
    assert_near(f(x), array(whole(x)), 1e-12)
    loss = lambda g: lambda x: (g(x) * t.exp()).sum()
    assert_near(wg.grad(loss(f))(x), array(wg.grad(loss(whole))(x)), 1e-11)
    assert_near(wg.jvp(f, (x,), (t,))[1], array(wg.jvp(whole, (x,), (t,))[1]), 1e-11)
    assert_near(wg.jacrev(f)(x), array(wg.jacrev(whole)(x)), 1e-11)
    assert_near(wg.hessian(loss(f))(x), array(wg.hessian(loss(whole))(x)), 1e-10)
    leaf = x.clone().requires_grad_()
    loss(f)(leaf).backward()
    assert_near(leaf.grad, array(wg.grad(loss(whole))(x)), 1e-11)


@pytest.mark.parametrize("name", MIXES)
def test_derivatives_inside_the_batch(name: str) -> None:
    """The transpose of a sum over the axis is a sum over the axis: the gradient is that of all results
    together."""
    one, whole = MIXES[name]
    x, t = tensor(X), tensor(np.cos(X))
    inside = wg.vmap(wg.grad(lambda x, t: (one(x) * t).sum()), axis_name="i")
    assert_near(inside(x, t), array(wg.grad(lambda x: (whole(x) * t).sum())(x)), 1e-11)
    pushed = wg.vmap(lambda x, t: wg.jvp(one, (x,), (t,))[1], axis_name="i")(x, t)
    assert_near(pushed, array(wg.jvp(whole, (x,), (t,))[1]), 1e-11)
    second = wg.vmap(lambda x, t: wg.jvp(wg.grad(lambda x: one(x).sum()), (x,), (t,))[1], axis_name="i")(x, t)
    assert_near(second, array(wg.hvp(lambda x: whole(x).sum(), (x,), (t,))[1]), 1e-10)

    def eager(x: wg.Tensor, t: wg.Tensor) -> wg.Tensor:
        leaf = x.clone().requires_grad_()
        (one(leaf) * t).sum().backward()
        return leaf.grad

    assert_near(wg.vmap(eager, axis_name="i")(x, t), array(inside(x, t)), 1e-12)


def test_normalisation_by_the_batch_one_example_at_a_time() -> None:
    def normed(x: wg.Tensor) -> wg.Tensor:
        centred = x - wg.pmean(x, "batch")
        return centred / (wg.pmean(centred.square(), "batch") + 1e-5).sqrt()

    x = tensor(RNG.normal(size=(6, 3)))
    layer = nn.BatchNorm1d(3, affine=False, dtype=F64)
    f = wg.vmap(normed, axis_name="batch")
    assert_near(f(x), array(layer(x)), 1e-12)
    loss = lambda g: lambda x: (g(x).pow(3)).sum()
    assert_near(wg.grad(loss(f))(x), array(wg.grad(loss(layer))(x)), 1e-11)


def test_errors_of_named_axes() -> None:
    with pytest.raises(ValueError, match=r"psum: there is no axis 'i' here; vmap\(..., axis_name='i'\)"):
        wg.psum(wg.ones(2), "i")
    with pytest.raises(ValueError, match=r"axis_index: there is no axis 'j' here.*Known here: 'i'"):
        wg.vmap(lambda x: wg.axis_index("j"), axis_name="i")(wg.ones(2))
    with pytest.raises(TypeError, match="psum: axis_name must be a string, got int"):
        wg.psum(wg.ones(2), 0)
    # A name ends with its batch, also after an exception.
    with pytest.raises(ValueError):
        wg.axis_size("i")
    with pytest.raises(ValueError, match="axis_name needs all examples at once; leave out chunk_size"):
        wg.vmap(lambda x: x, axis_name="i", chunk_size=2)


# ---- transposes ----------------------------------------------------------------------------------

A = RNG.normal(size=(3, 4))
LINEAR = {
    "matrix": (lambda x: tensor(A) @ x, (4,), lambda u: A.T @ u, (3,)),
    "slice": (lambda x: x[1:] * 2 - x[:-1], (4,), None, (3,)),
    "sum": (lambda x: x.sum(0), (3, 2), lambda u: np.stack([u] * 3), (2,)),
    "take": (
        lambda x: x.take(wg.tensor([0, 0, 2]), 0),
        (4,),
        lambda u: np.array([u[0] + u[1], 0, u[2], 0]),
        (3,),
    ),
    "conv": (lambda x: nn.functional.conv1d(x, tensor(A[None])), (3, 6), None, (1, 3)),
    "cumsum": (lambda x: x.cumsum(0), (4,), lambda u: u[::-1].cumsum()[::-1], (4,)),
}


@pytest.mark.parametrize("name", LINEAR)
def test_transposes(name: str) -> None:
    f, shape, want, out = LINEAR[name]
    x, u = tensor(RNG.normal(size=shape)), tensor(RNG.normal(size=out))
    transpose = wg.linear_transpose(f, wg.zeros(shape, dtype=F64))
    (found,) = transpose(u)
    assert (found * x).sum().item() == pytest.approx((u * f(x)).sum().item(), rel=1e-12)
    if want is not None:
        assert_near(found, want(array(u)), 1e-12)
    # The transpose of the transpose is the function, and both go through other transforms.
    back = wg.linear_transpose(lambda u: transpose(u)[0], wg.zeros(out, dtype=F64))
    assert_near(back(x)[0], array(f(x)), 1e-12)
    many = tensor(RNG.normal(size=(5, *out)))
    assert_near(wg.vmap(lambda u: transpose(u)[0])(many)[2], array(transpose(many[2])[0]), 1e-12)
    assert_near(wg.jvp(lambda u: transpose(u)[0], (u,), (u * 3,))[1], array(3 * found), 1e-12)
    inside = wg.vmap(lambda u: wg.linear_transpose(f, x)(u)[0])(many)
    assert_near(inside[1], array(transpose(many[1])[0]), 1e-12)


def test_transposes_of_trees() -> None:
    f = lambda a, d: {"y": d["w"] @ tensor(A) + a, "z": a.sum()}
    a, d = wg.zeros(4, dtype=F64), {"w": wg.zeros(3, dtype=F64)}
    transpose = wg.linear_transpose(f, a, d)
    g = {"y": tensor(RNG.normal(size=4)), "z": tensor(2.0)}
    found = transpose(g)
    assert_near(found[0], array(g["y"]) + 2.0, 1e-12)
    assert_near(found[1]["w"], A @ array(g["y"]), 1e-12)
    with pytest.raises(ValueError, match="linear_transpose: cotangents of structure"):
        transpose(g["y"])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * x, lambda x: x.exp() - 1, lambda x: x.relu(), lambda x: x.abs(), lambda x: x.norm(),
        lambda x: wg.where(x > 0, x, 2 * x), lambda x: x.sort().values, lambda x: x.amax(), lambda x: x * x.detach(),
    ],
)  # fmt: skip
def test_what_is_not_linear_has_no_transpose(f: Any) -> None:
    with pytest.raises(ValueError, match="linear_transpose: <lambda> is not linear: <u, f"):
        wg.linear_transpose(f, wg.zeros(4, dtype=F64))
    assert wg.linear_transpose(f, wg.zeros(4, dtype=F64), check=False) is not None


def test_what_is_affine_has_no_transpose() -> None:
    with pytest.raises(ValueError, match="at zero its result is not zero but has elements up to 1"):
        wg.linear_transpose(lambda x: x + 1, wg.zeros(4))
    with pytest.raises(TypeError, match="linear_transpose: only floating point inputs"):
        wg.linear_transpose(lambda x: x, wg.zeros(4, dtype=wg.int64))
    # float32 rounds, which is not taken for a curve.
    wg.linear_transpose(lambda x: wg.tensor(A, dtype=wg.float32) @ x * 1000, wg.zeros(4))


@pytest.mark.gpu
def test_named_axes_and_masks_on_a_gpu() -> None:
    x = wg.tensor(X, dtype=wg.float32)
    f = wg.vmap(lambda x: x / wg.psum(x.square(), "i") + wg.axis_index("i") * wg.pmax(x, "i"), axis_name="i")
    assert_near(f(x.gpu()).cpu(), array(f(x)), 1e-5)
    g = wg.vmap(wg.grad(lambda x: wg.psum(x.sin() * x, "i").sum()), axis_name="i")
    assert_near(g(x.gpu()).cpu(), array(g(x)), 1e-5)
    h = wg.vmap(wg.grad(lambda x: (x[x > 0].log() * x[x < 0.5].mean()).sum()))
    assert_near(h(x.gpu()).cpu(), array(h(x)), 1e-5)


# ---- what results are ------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3])
def test_results_have_memory_of_their_own(size: int) -> None:
    """A write into what a collective returned changes neither its operand nor what others got."""
    functions = {
        "psum": lambda x: wg.psum(x, "i"),
        "all_gather": lambda x: wg.all_gather(x, "i"),
        "psum_scatter": lambda x: wg.psum_scatter(x, "i"),
        "all_to_all": lambda x: wg.all_to_all(x, "i", 0, 1),
        "ppermute": lambda x: wg.ppermute(x, "i", [(i, i) for i in range(size)]),
        "pbroadcast": lambda x: wg.pbroadcast(x, "i", 0),
    }
    for name, function in functions.items():
        for share in (False, True):
            x = tensor(RNG.normal(size=(size, 2) if share else (size, size, 2)))
            x = tensor(RNG.normal(size=(size, 2))) if share else x
            before = x.clone()

            def run(x: wg.Tensor, function: Any = function) -> tuple[wg.Tensor, wg.Tensor]:
                made = function(x)
                made += 100
                return x, made

            in_axes = None if share else 0
            after, _ = wg.vmap(run, in_axes=in_axes, axis_name="i", axis_size=size)(x)
            assert x.equal(before), (name, share)
            assert after.equal(wg.stack([before] * size) if share else before), (name, share)


def test_rules_keep_the_names_of_their_call() -> None:
    """A rule that exchanges runs among the members of its forward, whatever has names when it runs."""

    @wg.custom_vjp
    def centred(x: wg.Tensor) -> wg.Tensor:
        return x - wg.pmean(x, "i")

    centred.defvjp(lambda x: (centred(x), None), lambda _, g: (g - wg.pmean(g, "i"),))
    plain = lambda x: x - wg.pmean(x, "i")
    weight = tensor(RNG.normal(size=(4, 3)))

    def outer(function: Any) -> wg.Tensor:
        return wg.grad(lambda x: (wg.vmap(function, axis_name="i")(x.sin()) * weight).sum())(tensor(X))

    assert_near(outer(centred), array(outer(plain)), 1e-12)
    x = tensor(X).requires_grad_()
    y = (wg.vmap(centred, axis_name="i")(x) * weight).sum()
    # Another axis of the same name is around where the rule runs.
    wg.vmap(lambda _: y.backward() if x.grad is None else None, axis_name="i")(wg.zeros(2))
    assert_near(
        x.grad, array(wg.grad(lambda x: (wg.vmap(plain, axis_name="i")(x) * weight).sum())(tensor(X))), 1e-12
    )


def test_means_of_halves_and_counts() -> None:
    large = wg.full((2,), 40000.0, dtype=wg.float16)
    mean = lambda x: wg.vmap(lambda x: wg.pmean(x, "i"), axis_name="i", out_axes=None)(x)
    assert mean(large).tolist() == 40000.0
    assert mean(wg.full((2,), 200, dtype=wg.uint8)).tolist() == 200.0
    assert mean(wg.tensor([True, False])).tolist() == 0.5
    scattered = wg.vmap(lambda x: wg.psum_scatter(x, "i"), axis_name="i")(wg.ones(2, 2, dtype=wg.bool))
    assert scattered.dtype == wg.int64
    assert scattered.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda x: wg.psum(x, ()), ValueError, "one name or several different ones"),
        (lambda x: wg.psum(x, ("i", "i")), ValueError, "one name or several different ones"),
        (lambda x: wg.psum(x, {"i"}), TypeError, "axis_name must be a string"),
        (lambda x: wg.axis_index(()), ValueError, "one name or several"),
        (lambda x: wg.psum_scatter(x, (), tiled=True), ValueError, "one name or several"),
        (lambda x: wg.psum_scatter(x, "i"), ValueError, "for 4 members it must be 4"),
        (lambda x: wg.psum_scatter(x, "i", tiled=True), ValueError, "must be a multiple of 4"),
        (lambda x: wg.all_gather(x, "i", axis=2), IndexError, "axis 2 is out of range"),
        (lambda x: wg.all_gather(x, "i", axis=0.5), TypeError, "an integer, got 0.5"),
        (lambda x: wg.ppermute(x, "i", [1, 0]), TypeError, "pairs of positions"),
        (lambda x: wg.ppermute(x, "i", [(0, 1, 2)]), TypeError, "pairs of positions"),
        (lambda x: wg.ppermute(x, "i", ["01"]), TypeError, "pairs of positions"),
        (lambda x: wg.ppermute(x, "i", [(0.5, 1)]), TypeError, "an integer, got 0.5"),
        (lambda x: wg.ppermute(x, "i", [(0, 1), (0, 2)]), ValueError, "no permutation of 4 members"),
        (lambda x: wg.ppermute(x, "i", [(0, 4)]), ValueError, "no permutation of 4 members"),
        (lambda x: wg.pbroadcast(x, "i", 4), IndexError, "member 4 is out of range"),
        (lambda x: wg.pbroadcast(x, "i", "a"), TypeError, "an integer, got 'a'"),
        (lambda x: wg.all_to_all(x, "i", 0, 3), IndexError, "axis 3 is out of range"),
    ],
)
def test_wrong_calls(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        wg.vmap(call, axis_name="i")(tensor(X))
    assert wg.vmap(lambda x: wg.all_gather(x, "i", axis=np.int64(1)), axis_name="i")(tensor(X)).shape == (
        4,
        3,
        4,
    )
