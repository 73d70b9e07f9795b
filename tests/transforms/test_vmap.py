"""Batching of every operation against a loop: any axis in, any axis out, under and over differentiation."""

from collections import OrderedDict

import numpy as np
import pytest
import wengert as wg
from hypothesis import given
from messages import Situations, message_tests
from samples.op_samples import DIFFERENTIABLE, SAMPLES
from samples.sample import OpSample
from support import Array, Case, Drawn, array, assert_near, drawn, examples, floats, outputs

BATCHED = [s for s in SAMPLES if s.vmap]
by_sample = pytest.mark.parametrize("sample", BATCHED, ids=str)


def batched(d: Drawn, case: Case, size: int) -> tuple[list[Array], list[int | None], list[list[Array]]]:
    """Operands with a batch axis somewhere (`None`: shared), and each batch element's own operands."""
    sets = [case.sample(d.rng) for _ in range(size)]
    axes: list[int | None] = []
    stacked = []
    for first in sets[0]:
        axis = d.source.integer(-1, first.ndim)
        axes.append(None if axis < 0 else axis)
    if all(axis is None for axis in axes):
        axes[d.source.integer(0, len(axes) - 1)] = 0
    for i, axis in enumerate(axes):
        if axis is None:
            for values in sets:
                values[i] = sets[0][i]
            stacked.append(sets[0][i])
        else:
            stacked.append(np.stack([values[i] for values in sets], axis))
    return stacked, axes, sets


def looped(fn: object, sets: list[list[Array]]) -> list[list[Array]]:
    """Per output, the value for each batch element."""
    rows = [[array(y) for y in outputs(fn(*[wg.tensor(v) for v in values]))] for values in sets]
    return [list(column) for column in zip(*rows, strict=True)]


def expect_stack(got: object, expected: list[list[Array]], axis: int, what: str) -> None:
    """Compares batched outputs with the stacked results of a loop."""
    found = outputs(got)
    assert len(found) == len(expected)
    for y, column in zip(found, expected, strict=True):
        assert_near(y, np.stack(column, axis), 1e-10, what)


@by_sample
def test_against_a_loop(sample: OpSample) -> None:
    @examples(20)
    @given(drawn(sample.case, most=3))
    def run(d: Drawn) -> None:
        stacked, axes, sets = batched(d, d.case, d.source.integer(1, 3))

        def fn(*x: wg.Tensor) -> object:
            return sample.fn(*x, **d.case.kwargs)

        expected = looped(fn, sets)
        out = d.source.integer(0, min(column[0].ndim for column in expected))
        got = wg.vmap(fn, in_dims=tuple(axes), out_dims=out)(*[wg.tensor(v) for v in stacked])
        expect_stack(got, expected, out, f"vmap of {sample.name}, in {axes}, out {out}")

    run()


@pytest.mark.parametrize("sample", [s for s in DIFFERENTIABLE if s.vmap], ids=str)
def test_gradients_against_a_loop(sample: OpSample) -> None:
    @examples(6)
    @given(drawn(sample.case, most=3))
    def run(d: Drawn) -> None:
        wrt = tuple(i for i in d.case.real if i not in sample.extra.get("constant", ()))
        stacked, axes, sets = batched(d, d.case, d.source.integer(1, 3))

        def total(*x: wg.Tensor) -> wg.Tensor:
            parts = [(y * y).sum() for y in floats(sample.fn(*x, **d.case.kwargs))]
            return sum(parts[1:], parts[0])

        if not wrt or not floats(sample.fn(*[wg.tensor(v) for v in sets[0]], **d.case.kwargs)):
            return
        fn = wg.grad(total, argnums=wrt)
        expected = looped(fn, sets)
        tensors = [wg.tensor(v) for v in stacked]
        expect_stack(
            wg.vmap(fn, in_dims=tuple(axes))(*tensors), expected, 0, f"vmap(grad({sample.name})), in {axes}"
        )
        # Differentiating the batched function is the same, but for shared operands, which collect the sum.
        whole = wg.grad(lambda *x: wg.vmap(total, in_dims=tuple(axes))(*x).sum(), argnums=wrt)(*tensors)
        for i, got, column in zip(wrt, whole, expected, strict=True):
            axis = axes[i]
            want = sum(column) if axis is None else np.stack(column, axis)
            assert_near(got, want, 1e-10, f"grad(vmap({sample.name}))")

    run()


@pytest.mark.parametrize("sample", [s for s in DIFFERENTIABLE if s.vmap], ids=str)
def test_tangents_against_a_loop(sample: OpSample) -> None:
    @examples(5)
    @given(drawn(sample.case, most=3))
    def run(d: Drawn) -> None:
        real = d.case.real
        stacked, axes, sets = batched(d, d.case, 2)
        if not real or not floats(sample.fn(*[wg.tensor(v) for v in sets[0]], **d.case.kwargs)):
            return

        def tangent(*x: wg.Tensor) -> tuple[wg.Tensor, ...]:
            def f(*r: wg.Tensor) -> tuple[wg.Tensor, ...]:
                args = list(x)
                for i, value in zip(real, r, strict=True):
                    args[i] = value
                return tuple(floats(sample.fn(*args, **d.case.kwargs)))

            primals = tuple(x[i] for i in real)
            return wg.jvp(f, primals, tuple(p.cos() for p in primals))[1]

        expected = looped(tangent, sets)
        got = wg.vmap(tangent, in_dims=tuple(axes))(*[wg.tensor(v) for v in stacked])
        expect_stack(got, expected, 0, f"vmap(jvp({sample.name})), in {axes}")

    run()


@pytest.mark.parametrize("sample", [s for s in DIFFERENTIABLE if s.vmap and s.order > 1], ids=str)
def test_second_derivatives_under_an_outer_tape(sample: OpSample) -> None:
    """A tensor outside of the batch that requires a gradient takes every operation through a tape below the
    batch."""

    @examples(4)
    @given(drawn(sample.case, most=3))
    def run(d: Drawn) -> None:
        wrt = tuple(i for i in d.case.real if i not in sample.extra.get("constant", ()))
        stacked, axes, sets = batched(d, d.case, 2)
        if not wrt or not floats(sample.fn(*[wg.tensor(v) for v in sets[0]], **d.case.kwargs)):
            return

        def second(one: wg.Tensor) -> object:
            def total(*x: wg.Tensor) -> wg.Tensor:
                args = [v * one if i in wrt else v for i, v in enumerate(x)]
                # Cotangents and tangents that all examples share: what batches is only what the rules read.
                parts = [(y * one).sum() for y in floats(sample.fn(*args, **d.case.kwargs))]
                return sum(parts[1:], parts[0])

            def slope(*x: wg.Tensor) -> wg.Tensor:
                terms = [g.sum() for g in wg.grad(total, argnums=wrt)(*x)]
                return sum(terms[1:], terms[0])

            return wg.grad(slope, argnums=wrt)

        leaf = wg.tensor(1.0, dtype=wg.float64, requires_grad=True)
        expected = looped(second(leaf.detach()), sets)
        got = wg.vmap(second(leaf), in_dims=tuple(axes))(*[wg.tensor(v) for v in stacked])
        expect_stack(got, expected, 0, f"vmap of second derivatives of {sample.name}, in {axes}")

    run()


@by_sample
def test_nested_batches(sample: OpSample) -> None:
    @examples(5)
    @given(drawn(sample.case, most=2))
    def run(d: Drawn) -> None:
        count = len(d.case.args)
        # The outer batch maps some operands, the inner one others.
        outer = [d.source.flag() for _ in range(count)]
        inner = [d.source.flag() for _ in range(count)]
        outer[0], inner[-1] = True, True
        sets = [[d.case.sample(d.rng) for _ in range(2)] for _ in range(3)]
        stacked = []
        for i in range(count):
            for a in range(3):
                for b in range(2):
                    sets[a][b][i] = sets[a if outer[i] else 0][b if inner[i] else 0][i]
            rows = [
                np.stack([sets[a][b][i] for b in range(2)]) if inner[i] else sets[a][0][i] for a in range(3)
            ]
            stacked.append(np.stack(rows) if outer[i] else rows[0])

        def fn(*x: wg.Tensor) -> object:
            return sample.fn(*x, **d.case.kwargs)

        axes = [tuple(0 if mapped else None for mapped in level) for level in (outer, inner)]
        got = outputs(
            wg.vmap(wg.vmap(fn, in_dims=axes[1]), in_dims=axes[0])(*[wg.tensor(v) for v in stacked])
        )
        for k, y in enumerate(got):
            want = [
                [array(outputs(fn(*[wg.tensor(v) for v in values]))[k]) for values in row] for row in sets
            ]
            assert_near(y, np.array(want), 1e-10, f"vmap(vmap({sample.name}))")

    run()


def test_negative_axes_pytrees_and_both_spellings() -> None:
    x = wg.tensor(np.arange(6.0).reshape(2, 3))
    tree = {"a": x, "b": [x + 1, 2.0]}

    def f(tree: dict) -> dict:
        return {"sum": tree["a"].sum() + tree["b"][1], "both": (tree["a"] * tree["b"][0],)}

    axes = {"a": -1, "b": [-1, None]}
    got = wg.vmap(f, in_axes=(axes,), out_axes={"sum": 0, "both": (1,)})(tree)
    assert_near(got["sum"], array(x).sum(0) + 2, 1e-12)
    assert_near(got["both"][0], array(x) * (array(x) + 1), 1e-12)
    assert_near(wg.vmap(lambda x: x.sum(), in_dims=1)(x), array(x).sum(0), 1e-12)


def test_batch_of_one_hundred_models() -> None:
    rng = np.random.default_rng(0)
    w, x = rng.normal(size=(100, 5, 4)), rng.normal(size=(3, 5))

    def loss(w: wg.Tensor, x: wg.Tensor) -> wg.Tensor:
        return wg.nn.functional.layer_norm((x @ w).tanh(), (4,)).square().mean()

    got = wg.vmap(wg.grad(loss), in_dims=(0, None))(wg.tensor(w), wg.tensor(x))
    for i in (0, 50, 99):
        assert_near(got[i], array(wg.grad(loss)(wg.tensor(w[i]), wg.tensor(x))), 1e-10)


def test_errors_name_the_sizes() -> None:
    with pytest.raises(ValueError, match=r"2.*3"):
        wg.vmap(lambda x, y: x + y)(wg.ones(2), wg.ones(3))
    with pytest.raises(ValueError):
        wg.vmap(lambda x: x, in_axes=None)(wg.ones(2))
    with pytest.raises((ValueError, IndexError)):
        wg.vmap(lambda x: x, in_dims=2)(wg.ones(2))


# ---- trees of axes -------------------------------------------------------------------------------


def test_trees_of_axes_correspond_by_their_keys() -> None:
    rows, whole = wg.arange(6.0).reshape(3, 2), wg.tensor([1.0, 10.0])
    f = lambda d: (d["rows"] * d["whole"]).sum()
    want = [(array(row) * array(whole)).sum() for row in rows]
    for axes in ({"whole": None, "rows": 0}, OrderedDict(whole=None, rows=0)):
        for tree in ({"rows": rows, "whole": whole}, OrderedDict(whole=whole, rows=rows)):
            assert_near(wg.vmap(f, in_axes=(axes,))(tree), np.array(want), 0.0)
    back = wg.vmap(lambda d: {"b": d["rows"], "a": d["whole"]}, in_axes=({"rows": 0, "whole": None},),
                   out_axes={"a": None, "b": 1})({"rows": rows, "whole": whole})  # fmt: skip
    assert back["b"].shape == (2, 3)
    assert back["a"].shape == (2,)


MISFITS: Situations = {
    "other keys": (
        lambda: wg.vmap(lambda d: d["w"], in_axes=({"x": 0, "w": None},))({"w": wg.ones(3), "y": wg.ones(3)}),
        ValueError,
        "vmap in_axes: ({'x': 0, 'w': None},) does not fit the structure TreeDef(({'w': *, 'y': *},)); give "
        "one entry for all of it, or containers of the same classes with the same keys",
    ),
    "one other key": (
        lambda: wg.vmap(lambda d: d["a"], in_axes=({"zz": 0},))({"a": wg.ones(3)}),
        ValueError,
        "vmap in_axes: ({'zz': 0},) does not fit the structure TreeDef(({'a': *},)); give one entry for all "
        "of it, or containers of the same classes with the same keys",
    ),
    "a list for a tuple": (
        lambda: wg.vmap(lambda t: t[0], in_axes=([0, None],))((wg.ones(3), wg.ones(3))),
        ValueError,
        "vmap in_axes: ([0, None],) does not fit the structure TreeDef(((*, *),)); give one entry for all of "
        "it, or containers of the same classes with the same keys",
    ),
    "a tree for a tensor": (
        lambda: wg.vmap(lambda x: x, in_axes=({"a": 0},))(wg.ones(3)),
        ValueError,
        "vmap in_axes: ({'a': 0},) does not fit the structure TreeDef((*,)); an axis is an integer or None, "
        "got {'a': 0}",
    ),
    "two places for one result": (
        lambda: wg.vmap(lambda x: x, out_axes=(0, 1))(wg.ones(3)),
        ValueError,
        "vmap out_axes: (0, 1) does not fit the structure TreeDef(*); an axis is an integer or None, got (0, "
        "1)",
    ),
    "another size": (
        lambda: wg.vmap(lambda x: x, axis_size=7)(wg.ones(3)),
        ValueError,
        "vmap: batch sizes differ: axis_size: 7; argument 0 of shape (3,), axis 0: 3",
    ),
    "a negative size": (
        lambda: wg.vmap(lambda: wg.ones(3), axis_size=-1),
        ValueError,
        "vmap: axis_size is an integer of at least 0, or None, got -1",
    ),
    "no chunks": (
        lambda: wg.vmap(lambda x: x, chunk_size=0),
        ValueError,
        "vmap: chunk_size is an integer of at least 1, or None, got 0",
    ),
    "negative chunks": (
        lambda: wg.jacrev(lambda x: x, chunk_size=-1),
        ValueError,
        "jacrev: chunk_size is an integer of at least 1, or None, got -1",
    ),
    "no chunks forward": (
        lambda: wg.jacfwd(lambda x: x, chunk_size=0),
        ValueError,
        "jacfwd: chunk_size is an integer of at least 1, or None, got 0",
    ),
}

test_misfit = message_tests(MISFITS)


def test_a_size_that_is_that_of_the_arguments() -> None:
    assert wg.vmap(lambda x: x * 2, axis_size=3)(wg.ones(3)).tolist() == [2.0] * 3
    assert wg.vmap(lambda: wg.ones(2), axis_size=3)().shape == (3, 2)


def test_messages_name_arguments_and_settings_as_they_were_given() -> None:
    inputs = wg.ones(2, 3), {"w": wg.ones(4, 3)}
    with pytest.raises(ValueError, match=r"axis 0: 2; argument 1 at \['w'\] of shape \(4, 3\), axis 0: 4"):
        wg.vmap(lambda x, y: x)(*inputs)
    with pytest.raises(ValueError, match="at least one entry of in_dims must not be None"):
        wg.vmap(lambda x, y: x, in_dims=None)(*inputs)
    with pytest.raises(ValueError, match="in_dims has 1 entries for 2 arguments"):
        wg.vmap(lambda x, y: x, in_dims=(0,))(*inputs)
    with pytest.raises(ValueError, match="vmap out_dims: 'a' does not fit"):
        wg.vmap(lambda x: x, out_dims="a")(wg.ones(2, 3))
    with pytest.raises(TypeError, match="vmap: axis_name is a string, got 3"):
        wg.vmap(lambda x: x, axis_name=3)
