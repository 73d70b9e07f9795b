"""Values of every operation against NumPy: dtypes, layouts, special values, empty tensors, threads,
processors."""

import inspect
import operator

import numpy as np
import pytest
import wengert as wg
from hypothesis import given, strategies as st
from samples.op_samples import SAMPLES
from samples.sample import OpSample
from support import (
    LAYOUTS,
    TOLERANCE,
    Array,
    Case,
    Drawn,
    array,
    assert_near,
    drawn,
    examples,
    laid_out,
    outputs,
    random_source,
    rounded,
    tensor,
)
from wengert import _core

by_sample = pytest.mark.parametrize("sample", SAMPLES, ids=str)
# Operations that compute with the inputs' values; the others only move them and are exact in every dtype.
BY_NAME = {sample.name: sample for sample in SAMPLES}
# Transfers are tested where devices are, custom operations in tests of their own
# (test_custom_composition.py).
INTERNAL = {"Transfer", "Custom"}


def check(sample: OpSample, values: list[Array], case: Case, got: object, dtype: str) -> None:
    """Compares with the reference, at the precision of `dtype`."""
    with np.errstate(all="ignore"):
        expected = sample.reference(*values, **case.kwargs)
    expected = expected if isinstance(expected, (tuple, list)) else [expected]
    found = outputs(got)
    assert len(found) == len(expected)
    for y, reference in zip(found, expected, strict=True):
        assert_near(y, np.asarray(reference), TOLERANCE[dtype] * sample.scale, f"{sample.name} {case}")


# ---- the list of operations is complete ----------------------------------------------------------


def test_every_compiled_operation_has_a_record() -> None:
    # What has no derivative and is no method: its values are compared where it is used.
    # `x.view(dtype)` is in `test_bytes_as_dtypes.py`.
    # `nonzero` is in `test_surface_indexing.py` and the cases of `tests/staging`.
    underived = {"Bitcast", "Nonzero", "Random", "Create", "Update", "Unscale", "Rescale", "TotalNorm"}
    # Its exchanges, with all derivatives, on batches and on ranks: `test_one_axis.py`.
    on_axes = {"Collective", "CollectiveExtremum"}
    covered = {row for sample in SAMPLES for row in sample.rows} | INTERNAL | underived | on_axes
    kinds = {name for name, _, _ in _core.op_kinds()}
    rows = {name for name, _, _ in _core.op_rows()}
    assert kinds | rows == (kinds | rows) & covered, sorted((kinds | rows) - covered)


def test_records_are_unique_and_mean_something() -> None:
    names = [sample.name for sample in SAMPLES]
    assert len(names) == len(set(names))
    known = {name for name, _, _ in _core.op_kinds()} | {name for name, _, _ in _core.op_rows()}
    claimed = {row for sample in SAMPLES for row in sample.rows}
    assert claimed <= known, sorted(claimed - known)


ROWS = [row for row in _core.op_rows() if row[2] != "Parametric"]


@pytest.mark.parametrize(("name", "doc", "table"), ROWS, ids=[row[0] for row in ROWS])
def test_every_table_row_is_a_documented_method_and_function(name: str, doc: str, table: str) -> None:
    method, function = getattr(wg.Tensor, name), getattr(wg, name)
    assert doc.splitlines()[0] in inspect.getdoc(method)
    x = wg.tensor([0.5, 0.25])
    more = (x,) if table == "Binary" else ()
    assert np.array_equal(array(method(x, *more)), array(function(x, *more)), equal_nan=True)


def test_mean_of_losses_without_those_left_out() -> None:
    x, t = wg.tensor([[1.0, 2.0], [0.5, 0.0], [3.0, 3.0]], requires_grad=True), wg.tensor([1, -100, 0])
    loss = wg.nn.functional.cross_entropy(x, t)
    rows = wg.nn.functional.cross_entropy(x, t, reduction="none")
    assert rows[1].item() == 0.0
    assert loss.item() == pytest.approx((rows[0].item() + rows[2].item()) / 2)
    assert wg.autograd.grad(loss, [x])[0][1].tolist() == [0.0, 0.0]


# ---- values --------------------------------------------------------------------------------------


def in_dtypes(sample: OpSample) -> list[str]:
    """The floating point types that a record is called with."""
    return [d for d in sample.dtypes if sample.name not in ("cast", "double") or d in ("float64", "float32")]


@pytest.mark.parametrize(
    ("sample", "dtype"),
    [pytest.param(s, dtype, id=f"{s}-{dtype}") for s in SAMPLES for dtype in in_dtypes(s)],
)
def test_value(sample: OpSample, dtype: str) -> None:
    @examples(20 if dtype == "float64" else 8)
    @given(drawn(sample.case), st.sampled_from(LAYOUTS))
    def run(d: Drawn, layout: str) -> None:
        laid = [laid_out(v, layout, dtype) for v in d.case.sample(d.rng)]
        values = rounded([np.array(v) for _, v in laid], dtype)
        tensors = [t for t, _ in laid]
        before = [array(t) for t in tensors]
        check(sample, values, d.case, sample.fn(*tensors, **d.case.kwargs), dtype)
        for t, v in zip(tensors, before, strict=True):
            assert np.array_equal(array(t), v, equal_nan=v.dtype.kind == "f"), "an input was changed"

    run()


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.empty], ids=str)
def test_empty(sample: OpSample) -> None:
    @examples(15)
    @given(drawn(sample.case, most=2, least=0))
    def run(d: Drawn) -> None:
        values = d.case.sample(d.rng)
        check(sample, values, d.case, sample.fn(*[tensor(v) for v in values], **d.case.kwargs), "float64")

    run()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.special], ids=str)
def test_special_values(sample: OpSample, dtype: str) -> None:
    arity = len(sample.case(random_source(0)[0]).args)
    grid = np.meshgrid(*[np.array(sample.special)] * arity)
    values = rounded([g.ravel() for g in grid], dtype)
    with np.errstate(all="ignore"):
        expected = np.asarray(sample.reference(*values))
        if dtype == "float32":
            expected = expected.astype(np.float32)
    got = array(sample.fn(*[tensor(v, dtype) for v in values]))
    if got.dtype.kind == "b":
        assert np.array_equal(got, expected)
        return
    np.testing.assert_allclose(got, expected, rtol=TOLERANCE[dtype] * sample.scale, atol=TOLERANCE[dtype])


INTEGERS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.integers], ids=str)
def test_integers(sample: OpSample, dtype: str) -> None:
    low = 0 if dtype.startswith("u") else -9

    @examples(10)
    @given(drawn(sample.case))
    def run(d: Drawn) -> None:
        values = [np.asarray(d.rng.integers(low, 10, arg.shape)).astype(dtype) for arg in d.case.args]
        if dtype.startswith("u") and sample.name in ("neg", "sub", "cumsum", "sum"):
            values = [v.astype("int64") for v in values]
        with np.errstate(all="ignore"):
            expected = sample.reference(*values, **d.case.kwargs)
        for y, reference in zip(
            outputs(sample.fn(*[wg.tensor(v) for v in values], **d.case.kwargs)), [expected], strict=True
        ):
            assert not y.dtype.is_floating_point
            assert_near(y, np.asarray(reference), 0.0)

    run()


@pytest.mark.parametrize(("x", "y"), [(7, 2), (-7, 2), (7, -2), (-7, -2), (0, 3), (6, 3), (-6, 3)])
@pytest.mark.parametrize("dtype", ["int64", "int32", "float32", "float64"])
def test_division_rounds_down_as_in_python(x: int, y: int, dtype: str) -> None:
    a, b = wg.tensor([x], dtype=getattr(wg, dtype)), wg.tensor([y], dtype=getattr(wg, dtype))
    assert (a // b).item() == x // y
    assert (a % b).item() == x % y
    assert (a / b).item() == pytest.approx(x / y)


def test_promotion_of_every_pair_of_dtypes() -> None:
    order = [*INTEGERS, "float16", "bfloat16", "float32", "float64"]
    for i, a in enumerate(order):
        for j, b in enumerate(order):
            x, y = (wg.ones(2, dtype=getattr(wg, name)) for name in (a, b))
            expected = "float32" if {a, b} == {"float16", "bfloat16"} else order[max(i, j)]
            if a in INTEGERS and b in INTEGERS:
                expected = np.promote_types(a, b).name
            assert (x + y).dtype == getattr(wg, expected), (a, b)
            # A 0-d tensor and a Python scalar only win by category.
            floating = "float" in a or "float" in b
            if ("float" in a) == ("float" in b):
                assert (x + y[0]).dtype == x.dtype, (a, b)
            elif floating:
                assert (x + y[0]).dtype == (x.dtype if "float" in a else y.dtype), (a, b)
        x = wg.ones(2, dtype=getattr(wg, a))
        assert (x + 1).dtype == x.dtype
        assert (2.0 * x).dtype == (x.dtype if "float" in a else wg.float32)


CASTS = ["bool", *INTEGERS, "float16", "bfloat16", "float32", "float64"]


@pytest.mark.parametrize("to", CASTS)
@pytest.mark.parametrize("source", CASTS)
def test_casts_between_all_dtypes(source: str, to: str) -> None:
    import ml_dtypes

    numpy_types = {name: np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name) for name in CASTS}
    # Values that every type holds, and fractions that rounding must get right in floats.
    exact = np.array([0, 1, 2, 3, 100, 17, 1, 0, 64] * 5)
    x = wg.tensor(exact).to(getattr(wg, source)).to(getattr(wg, to))
    assert x.dtype == getattr(wg, to)
    expected = exact.astype(numpy_types[source]).astype(numpy_types[to])
    assert np.array_equal(array(x).astype("float64"), expected.astype("float64"))
    if "float" in source and "float" in to:
        fractions = np.random.default_rng(0).normal(0, 10, 257).astype(numpy_types[source])
        x = wg.tensor(fractions.astype("float64")).to(getattr(wg, source)).to(getattr(wg, to))
        assert np.array_equal(array(x).astype("float64"), fractions.astype(numpy_types[to]).astype("float64"))
    elif "float" in source and to == "int64":
        assert wg.tensor([-1.9, 1.9, 0.5]).to(getattr(wg, source)).to(wg.int64).tolist() == [-1, 1, 0]


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "argmax", "softmax", "cumsum", "std"])
def test_axis_names_of_both_conventions(name: str) -> None:
    x = wg.tensor(np.random.default_rng(1).normal(size=(3, 4)))
    assert np.array_equal(array(getattr(x, name)(dim=1)), array(getattr(x, name)(axis=1)))
    if name not in ("softmax", "cumsum"):
        assert np.array_equal(
            array(getattr(x, name)(dim=0, keepdim=True)), array(getattr(x, name)(axis=0, keepdims=True))
        )


def test_ties_and_nan_in_extremes() -> None:
    x = wg.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 0.0]])
    assert x.argmax(dim=1).tolist() == [1, 0]
    assert x.max(dim=1).indices.tolist() == [1, 0]
    assert (-x).argmin(dim=1).tolist() == [1, 0]
    with_nan = wg.tensor([1.0, float("nan"), 3.0])
    assert np.isnan(with_nan.amax().item())
    assert with_nan.argmax().item() == 1


def test_products_and_logarithms_do_not_overflow_early() -> None:
    x = wg.tensor([1000.0, 1000.0])
    assert x.logsumexp(0).item() == pytest.approx(1000 + np.log(2))
    assert wg.tensor([-np.inf, -np.inf]).logsumexp(0).item() == -np.inf
    assert array(x.softmax(0)).tolist() == [0.5, 0.5]
    assert array(wg.tensor([-200.0, 0.0]).log_softmax(0)).tolist() == [-200.0, 0.0]


def test_low_precision_accumulates_in_float32() -> None:
    for dtype in (wg.float16, wg.bfloat16):
        x = wg.ones(4096, dtype=dtype)
        assert x.sum().item() == 4096
        assert (x.reshape(1, -1) @ x.reshape(-1, 1)).item() == 4096
        assert wg.full((3000,), 1e-3, dtype=wg.float16).mean().item() == pytest.approx(1e-3, rel=1e-3)


# ---- writing through an index
# ----------------------------------------------------------------------------------------


@examples(150)
@given(drawn(BY_NAME["getitem"].case), st.booleans())
def test_assignment_to_a_region(d: Drawn, scalar: bool) -> None:
    (a,) = d.case.sample(d.rng)
    index = d.case.kwargs["index"]
    value = 7.0 if scalar else d.rng.normal(size=np.shape(a[index]))
    x = wg.tensor(a)
    x[index] = value if scalar else wg.tensor(value)
    a[index] = value
    assert np.array_equal(array(x), a)


@examples(80)
@given(drawn(BY_NAME["getitem_index"].case))
def test_assignment_and_gradients_by_index_tensors(d: Drawn) -> None:
    a, *index = d.case.sample(d.rng)
    at = {
        "first": lambda i: i[0],
        "last": lambda i: (..., i[0]),
        "both": tuple,
        "outer": lambda i: (i[0], ..., i[1]),
    }
    where = at[d.case.kwargs["kind"]]
    x = wg.tensor(a)
    x[where([wg.tensor(i) for i in index])] = 5.0
    a[where(index)] = 5.0
    assert np.array_equal(array(x), a)


@examples(50)
@given(drawn(BY_NAME["getitem_mask"].case))
def test_assignment_by_masks(d: Drawn) -> None:
    a, mask = d.case.sample(d.rng)
    x, leaf = wg.tensor(a), wg.tensor(a, requires_grad=True)
    x[wg.tensor(mask)] = -1.0
    y = leaf * 2
    y[wg.tensor(mask)] = 0.0
    (g,) = wg.autograd.grad(y.sum(), [leaf])
    a[mask] = -1.0
    assert np.array_equal(array(x), a)
    expected = np.full(a.shape, 2.0)
    expected[mask] = 0.0
    assert np.array_equal(array(g), expected)


# ---- the ends of the range -----------------------------------------------------------------------


def test_integers_wrap_and_never_trap() -> None:
    low, high = -(2**63), 2**63 - 1
    x = wg.tensor([low])
    assert (x // -1).item() == low
    assert (x % -1).item() == 0
    assert x.abs().item() == (-x).item() == low
    assert (wg.tensor([high]) + 1).item() == low
    assert (wg.tensor([high]) * wg.tensor([high])).item() == 1
    assert (wg.tensor([2]) ** wg.tensor([62])).item() == 2**62
    for dtype in INTEGERS:
        one, zero = (wg.tensor([v], dtype=getattr(wg, dtype)) for v in (1, 0))
        for divide in (operator.floordiv, operator.mod):
            with pytest.raises(ZeroDivisionError, match=f"{dtype} cannot be divided by zero"):
                divide(one, zero)
    assert (wg.tensor([True]) ** 2).dtype == wg.int64


def test_empty_products_and_reductions() -> None:
    assert array(wg.ones(2, 0) @ wg.ones(0, 3)).tolist() == [[0.0] * 3] * 2
    assert (wg.ones(0) @ wg.ones(0)).item() == 0.0
    assert (wg.ones(3, 0, 2) @ wg.ones(2, 4)).shape == (3, 0, 4)
    assert wg.ones(0).prod().item() == 1.0
    assert wg.ones(0).logsumexp(0).item() == -np.inf
    assert np.isnan(wg.ones(0).mean().item())
    assert wg.ones(0, 3).softmax(1).shape == (0, 3)
    assert wg.ones(0, 3).max(1).indices.shape == (0,)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(MemoryError):
        wg.zeros(2**31, 2**31)
    with pytest.raises((MemoryError, ValueError)):
        wg.ones(3).expand(2**20, 2**15, 3).exp()
    with pytest.raises(ValueError):
        wg.arange(0, 1e18)
    assert wg.ones(2).sum().item() == 2.0
