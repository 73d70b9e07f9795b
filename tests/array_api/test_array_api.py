"""`wengert.numpy` against the array API standard: names, signatures, promotion, special values, results.

What a function returns is compared with `array_api_strict`, the standard's own minimal implementation over
NumPy.
"""

import inspect
import itertools
from typing import Any

import array_api_strict as reference
import numpy as np
import pytest
import wengert as wg
import wengert.numpy as xp
from hypothesis import given, strategies as st
from wengert.testing import gradcheck

import array_api.array_standard as standard
from array_api.cases import CASES, by_name

TABLES = {"": standard.MAIN, "linalg.": standard.LINALG, "fft.": standard.FFT}
SIGNATURES = {
    prefix + name: signature
    for prefix, table in TABLES.items()
    for name, signature in standard.signatures(table).items()
}


reference.set_array_api_strict_flags(api_version="2024.12")


def is_there(name: str) -> bool:
    """Whether the namespace has a name."""
    try:
        by_name(xp, name)
    except AttributeError:
        return False
    return True


def test_every_name_of_the_standard_is_there() -> None:
    names = {
        *SIGNATURES,
        *standard.DTYPES,
        *standard.CONSTANTS,
        "__array_api_version__",
        "__array_namespace_info__",
    }
    assert [name for name in names if not is_there(name)] == []


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name: str) -> None:
    """Every call of the standard is taken and means the same; NumPy's programs may say more, or by
    position."""
    found = inspect.signature(by_name(xp, name)).parameters
    either = inspect.Parameter.POSITIONAL_OR_KEYWORD
    used = []
    for place, wanted in enumerate(SIGNATURES[name].parameters.values()):
        by_place = wanted.kind not in (wanted.KEYWORD_ONLY, wanted.VAR_KEYWORD)
        own = list(found.values())[place] if by_place else found[wanted.name]
        assert own.kind in (wanted.kind, either), wanted.name
        assert wanted.kind == wanted.POSITIONAL_ONLY or own.name == wanted.name
        # Where the standard asks for an argument, NumPy may have a default.
        assert wanted.default in (own.default, wanted.empty), wanted.name
        used.append(own.name)
    assert all(p.default is not p.empty for n, p in found.items() if n not in used)


def test_all_lists_what_there_is() -> None:
    assert len(set(xp.__all__)) == len(xp.__all__)
    assert all(hasattr(xp, name) for name in xp.__all__)
    assert {name for name in SIGNATURES if "." not in name} <= set(xp.__all__)


PROMOTED = [
    (a, b, wanted)
    for a, b in itertools.combinations_with_replacement(standard.DTYPES, 2)
    if (wanted := standard.promoted(a, b)) is not None
]


@pytest.mark.parametrize(("a", "b", "wanted"), PROMOTED, ids=[f"{a}-{b}" for a, b, _ in PROMOTED])
def test_promotion(a: str, b: str, wanted: Any) -> None:
    x, y = getattr(xp, a), getattr(xp, b)
    assert xp.result_type(x, y) == xp.result_type(y, x) == wanted
    assert xp.can_cast(x, y) == (wanted == b)
    # The number of axes does not count.
    for shape, other in (((2,), (2,)), ((), (2,)), ((2,), ()), ((), ())):
        left, right = xp.ones(shape, dtype=x), xp.ones(other, dtype=y)
        assert xp.result_type(left, right) == wanted
        assert xp.where(xp.asarray(True), left, right).dtype == wanted
        if a != "bool":
            assert xp.multiply(left, right).dtype == xp.multiply(right, left).dtype == wanted
            assert xp.equal(left, right).dtype == xp.bool


@pytest.mark.parametrize("name", standard.DTYPES)
def test_kinds(name: str) -> None:
    for kind, names in standard.KINDS.items():
        assert xp.isdtype(getattr(xp, name), kind) == (name in names)
        assert xp.isdtype(getattr(xp, name), (kind, xp.bool)) == (name in [*names, "bool"])
    assert xp.isdtype(getattr(xp, name), getattr(xp, name))
    with pytest.raises(ValueError, match="'float' is no kind of dtypes"):
        xp.isdtype(getattr(xp, name), "float")


def test_numbers_adapt_to_tensors() -> None:
    for name in standard.KINDS["real floating"]:
        x = xp.ones(2, dtype=getattr(xp, name))
        assert xp.result_type(x, 1) == xp.result_type(x, 0.5) == xp.result_type(x, True) == name
        assert xp.subtract(0.1, x).tolist() == (np.float64(0.1).astype(name) - np.ones(2, name)).tolist()
        assert xp.add(x, 1).dtype == name
    assert xp.result_type(xp.uint8, 1) == xp.uint8
    with pytest.raises(ValueError, match="at least one tensor or dtype"):
        xp.result_type(1, 2.0)


@pytest.mark.parametrize("name", [name for name in standard.DTYPES if name in standard.KINDS["integral"]])
def test_integers_are_summed_in_64_bits_with_their_sign(name: str) -> None:
    x = xp.ones((2, 3), dtype=getattr(xp, name))
    wide = "uint64" if name in standard.KINDS["unsigned integer"] else "int64"
    for function in (xp.sum, xp.prod):
        assert function(x).dtype == wide
        assert function(x, dtype=xp.float32).dtype == "float32"
    for function in (xp.cumulative_sum, xp.cumulative_prod):
        assert function(x, axis=0).dtype == wide
    assert xp.max(x).dtype == name
    info, limits = xp.iinfo(x), np.iinfo(name)
    assert (info.bits, info.min, info.max, info.dtype) == (limits.bits, limits.min, limits.max, name)


@pytest.mark.parametrize("name", standard.KINDS["real floating"])
def test_limits(name: str) -> None:
    info, limits = xp.finfo(xp.ones(1, dtype=getattr(xp, name))), np.finfo(name)
    assert (info.bits, info.dtype) == (limits.bits, name)
    assert (info.eps, info.max, info.min) == (limits.eps, limits.max, limits.min)
    assert info.smallest_normal == limits.smallest_normal


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.0, -2.5, 3.0, -3.0, np.inf, -np.inf, np.nan, 1e-30, 1e30]
ELEMENTWISE = [n for n in SIGNATURES if list(SIGNATURES[n].parameters) in (["x"], ["x1", "x2"])]
# Functions of one or two tensors whose results are compared below, not on special values.
ELSEWHERE = set(
    """
    bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor conj imag matmul
    matrix_transpose nonzero positive real unique_all unique_counts unique_inverse unique_values
    """.split()
) | {name for name in ELEMENTWISE if "." in name}
# The reference does not follow the standard everywhere: `floor(x / y)` where `x` or `x / y` is infinite.
OPEN = {"floor_divide"}


def same(found: wg.Tensor, wanted: Any, tolerance: float, strictly: bool = False) -> None:
    """Equal dtypes, shapes and elements, NaN included, and on demand the smallest numbers and the sign of
    zero."""
    wanted = np.asarray(wanted)
    value = np.asarray(found)
    assert found.dtype == wanted.dtype.name
    assert value.shape == wanted.shape
    if wanted.dtype.kind in "fc":
        atol = 0.0 if strictly else 0.1 * tolerance
        np.testing.assert_allclose(value, wanted, rtol=tolerance, atol=atol, equal_nan=True)
        if strictly and wanted.dtype.kind == "f":
            zero = wanted == 0
            assert (np.signbit(value)[zero] == np.signbit(wanted)[zero]).all()
    else:
        np.testing.assert_array_equal(value, wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [n for n in ELEMENTWISE if n not in ELSEWHERE])
def test_special_values(name: str, dtype: str) -> None:
    values = np.array(SPECIAL, dtype)
    logical = name.startswith("logical")
    if len(SIGNATURES[name].parameters) == 1:
        arrays = [values != 0] if logical else [values]
    else:
        pair = np.meshgrid(values, values)
        arrays = [a != 0 for a in pair] if logical else pair
    if name in OPEN:
        with np.errstate(all="ignore"):
            keep = np.isfinite(arrays[0]) & np.isfinite(arrays[1]) & np.isfinite(arrays[0] / arrays[1])
        arrays = [a[keep] for a in arrays]
    with np.errstate(all="ignore"):
        wanted = by_name(reference, name)(*map(reference.asarray, arrays))
    found = by_name(xp, name)(*map(xp.asarray, arrays))
    same(found, wanted, 3e-6 if dtype == "float32" else 1e-13, strictly=True)


COMPLEX = """
    abs acos acosh asin asinh atan atanh conj cos cosh exp expm1 imag isfinite isinf isnan log log10 log1p log2 negative
    positive real reciprocal sign sin sinh sqrt square tan tanh
    """.split()


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_functions(name: str) -> None:
    parts = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -3.0, 0.25, 20.0]
    for dtype in standard.KINDS["complex floating"]:
        x = np.array([complex(a, b) for a in parts for b in parts], dtype)
        with np.errstate(all="ignore"):
            wanted = np.asarray(by_name(reference, name)(reference.asarray(x)))
        keep = np.isfinite(wanted)
        found = by_name(xp, name)(xp.asarray(x))
        same(found[xp.asarray(keep)], wanted[keep], 2e-5 if dtype == "complex64" else 1e-12)


@pytest.mark.parametrize("k", [2**31, -(2**40), 3, -2])
def test_diagonals_beyond_the_corners_are_empty(k: int) -> None:
    assert np.array_equal(xp.eye(2, 3, k=k).numpy(), np.eye(2, 3, k=k))


@pytest.mark.parametrize("name", CASES)
@given(data=st.data())
def test_results(name: str, data: st.DataObject) -> None:
    call = CASES[name](data.draw)
    with np.errstate(all="ignore"):
        wanted = call(reference, reference.asarray)
    found = call(xp, xp.asarray)
    several = isinstance(wanted, (tuple, list))
    pairs = zip(found, wanted, strict=True) if several else [(found, wanted)]
    for mine, other in pairs:
        dtype = np.asarray(other).dtype
        same(mine, other, 1e-4 if dtype in ("float32", "complex64") else 1e-10)


def test_every_function_has_a_case_or_special_values() -> None:
    creation = set("asarray empty empty_like from_dlpack can_cast finfo iinfo isdtype result_type".split())
    tested = {*CASES, *ELEMENTWISE, *creation}
    assert set(SIGNATURES) - tested == set()


def square(x: wg.Tensor) -> wg.Tensor:
    """A matrix that depends on a vector."""
    return xp.linalg.outer(x, x) + 2 * xp.eye(2, dtype=x.dtype)


POINTS = {"acosh": [1.5, 2.0], "acos": [0.3, -0.4], "asin": [0.3, -0.4], "atanh": [0.3, -0.4]}
SMOOTH = """
    abs acos acosh asin asinh atan atanh cos cosh exp expm1 log log10 log1p log2 negative reciprocal sin sinh sqrt
    square tan tanh
    """.split()
DIFFERENTIABLE: dict[str, Any] = {
    **{name: lambda x, f=name: by_name(xp, f)(x) for name in SMOOTH},
    "add": lambda x: xp.add(x, xp.multiply(2.0, x)),
    "atan2": lambda x: xp.atan2(x, 2.0),
    "clip": lambda x: xp.clip(x, min=xp.asarray([0.2, 0.7], dtype=xp.float64)),
    "concat": lambda x: xp.concat([x, x * x]),
    "cumulative_sum": lambda x: xp.cumulative_sum(x, include_initial=True),
    "diff": lambda x: xp.diff(x, prepend=x[:1] * 3),
    "flip": xp.flip,
    "hypot": lambda x: xp.hypot(3.0, x),
    "max": xp.max,
    "meshgrid": lambda x: xp.meshgrid(x, x * x)[0],
    "outer": lambda x: xp.linalg.outer(x, x),
    "prod": xp.prod,
    "repeat": lambda x: xp.repeat(x, xp.asarray([1, 2])),
    "roll": lambda x: xp.roll(x, 1),
    "sort": lambda x: xp.sort(x, descending=True),
    "std": lambda x: xp.std(x, correction=1),
    "take": lambda x: xp.take(x, xp.asarray([1, 1, 0])),
    "tensordot": lambda x: xp.tensordot(x, x, axes=1),
    "tile": lambda x: xp.tile(x, (2, 2)),
    "unique_all": lambda x: xp.unique_all(x).values,
    "var": lambda x: xp.var(x, axis=()) + xp.var(x),
    "vecdot": lambda x: xp.vecdot(x, x),
    "where": lambda x: xp.where(x > 0.5, x * x, 1.0),
    "linalg.det": lambda x: xp.linalg.det(square(x)),
    "linalg.matrix_norm": lambda x: xp.linalg.matrix_norm(square(x), ord="nuc"),
    "linalg.pinv": lambda x: xp.linalg.pinv(square(x), rtol=xp.asarray(1e-6, dtype=xp.float64)),
    "linalg.solve": lambda x: xp.linalg.solve(square(x), x),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_go_through(name: str) -> None:
    x = wg.tensor(POINTS.get(name, [0.3, 0.8]), dtype=wg.float64, requires_grad=True)
    assert gradcheck(DIFFERENTIABLE[name], (x,))


def test_no_reduction_over_no_axes() -> None:
    x = xp.asarray([[1, 2], [3, 4]], dtype=xp.int32)
    assert xp.sum(x, axis=()).tolist() == x.tolist()
    assert xp.sum(x, axis=()).dtype == "int64"
    assert xp.any(x == 1, axis=(), keepdims=True).tolist() == [[True, False], [False, False]]


def test_integers_that_only_uint64_holds() -> None:
    x = xp.full(2, 2**63, dtype=xp.uint64)
    assert x.tolist() == xp.full_like(x, 2**63).tolist() == [2**63] * 2
    assert xp.full((1,), 2**64 - 1).dtype == xp.uint64
    assert xp.add(x, 2**63 + 1).tolist() == xp.add(2**63 + 1, x).tolist() == [1, 1]
    assert xp.equal(x, 2**63).tolist() == [True, True]
    with pytest.raises(ValueError, match="9223372036854775808 does not fit into int32"):
        xp.add(xp.ones(2, dtype=xp.int32), 2**63)


def test_several_new_axes() -> None:
    assert xp.expand_dims(xp.ones((2, 3)), axis=(0, -1)).shape == (1, 2, 3, 1)
    assert xp.expand_dims(xp.ones((2, 3)), axis=(1, 2)).shape == (2, 1, 1, 3)


def test_copies() -> None:
    array = np.ones(3)
    shared = xp.asarray(array, copy=False)
    array[0] = 5.0
    assert shared.tolist() == [5.0, 1.0, 1.0]
    x = xp.asarray(array, copy=True)
    assert xp.asarray(x) is x
    assert xp.asarray(x, copy=False) is x
    assert xp.asarray(x, copy=True).data_ptr() != x.data_ptr()
    assert xp.from_dlpack(array).data_ptr() == shared.data_ptr()
    assert xp.from_dlpack(array, copy=True).data_ptr() != shared.data_ptr()
    assert xp.reshape(x, (3, 1), copy=True).data_ptr() != x.data_ptr()
    assert xp.reshape(x, (3, 1), copy=False).data_ptr() == x.data_ptr()
    assert xp.astype(x, xp.float64).data_ptr() != x.data_ptr()
    assert xp.astype(x, xp.float64, copy=False) is x
    with pytest.raises(ValueError, match="has no view of shape"):
        xp.reshape(xp.ones((2, 3)).mT, (6,), copy=False)
    for bad in ([1.0], 3.0):
        with pytest.raises(ValueError, match="asarray: a tensor without a copy of this"):
            xp.asarray(bad, copy=False)
    with pytest.raises(ValueError, match="asarray: a tensor without a copy of this Tensor"):
        xp.asarray(x, dtype=xp.float32, copy=False)


def test_the_array_object() -> None:
    x = xp.ones((2, 3))
    assert x.__array_namespace__() is x.__array_namespace__(api_version="2024.12") is xp
    with pytest.raises(ValueError) as error:
        x.__array_namespace__(api_version="2099.12")
    assert str(error.value) == (
        "__array_namespace__: version '2099.12' of the array API standard is not one of 2021.12, 2022.12, "
        "2023.12, 2024.12"
    )
    assert (x.size, x.ndim, x.shape, x.device, x.dtype) == (6, 2, (2, 3), "cpu", xp.float32)
    assert type(x.size + 0) is int
    assert (x.size(), x.size(-1), x.size(axis=0)) == ((2, 3), 3, 2)
    with pytest.raises(IndexError, match="size: axis 2 is out of range for a tensor with 2 axes"):
        x.size(2)
    assert x.to_device("cpu") is x
    with pytest.raises(ValueError, match="to_device: devices have no streams to choose from, got stream=1"):
        x.to_device("cpu", stream=1)
    assert (x.T.shape, x.mT.shape, x[xp.newaxis].shape) == ((3, 2), (3, 2), (1, 2, 3))
    assert x.__dlpack_device__() == (1, 0)
    assert [bool(xp.asarray(1)), int(xp.asarray(1.0)), float(xp.asarray(2))] == [True, 1, 2.0]
    assert range(5)[xp.asarray(3)] == 3


def test_what_the_namespace_says_of_itself() -> None:
    info = xp.__array_namespace_info__()
    assert info.capabilities() == {
        "boolean indexing": True,
        "data-dependent shapes": True,
        "max dimensions": 8,
    }
    assert info.default_device() == "cpu"
    assert info.devices()[0] == "cpu"
    assert info.default_dtypes()["real floating"] == xp.ones(1).dtype
    assert info.default_dtypes()["integral"] == xp.asarray([1]).dtype == info.default_dtypes()["indexing"]
    assert list(info.dtypes()) == standard.DTYPES
    for kind, names in standard.KINDS.items():
        assert list(info.dtypes(kind=kind)) == [name for name in names if name in standard.DTYPES]
    assert set(info.dtypes(kind=("bool", "real floating"))) == {"bool", "float32", "float64"}
    with pytest.raises(ValueError, match="dtypes: 'float' is no kind of dtypes"):
        info.dtypes(kind="float")
    assert set(info.dtypes(device="gpu")) <= set(standard.DTYPES)
    assert xp.__array_api_version__ == "2024.12"


def test_errors() -> None:
    with pytest.raises(
        ValueError, match=r"squeeze: axis 0 of shape \(2, 1\) has length 2; only axes of length 1 can go"
    ):
        xp.squeeze(xp.ones((2, 1)), axis=(0, 1))
    with pytest.raises(
        ValueError, match=r"cumulative_sum: a tensor of shape \(2, 1\) has several axes; say which"
    ):
        xp.cumulative_sum(xp.ones((2, 1)))
    with pytest.raises(ValueError, match="nonzero: a tensor with axes expected"):
        xp.nonzero(xp.asarray(1))
    with pytest.raises(ValueError, match=r"vecdot: axis -1 of shapes \(2,\) and \(3,\) differs in length"):
        xp.vecdot(xp.ones(2), xp.ones(3))
    with pytest.raises(ValueError, match=r"outer: two vectors expected, got shapes \(2, 1\) and \(3,\)"):
        xp.linalg.outer(xp.ones((2, 1)), xp.ones(3))


def test_broadcast_shapes() -> None:
    assert wg.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    assert [tuple(t.shape) for t in wg.broadcast_tensors(wg.ones(2, 1), wg.ones(3))] == [(2, 3), (2, 3)]


def test_functions_keep_the_digits_of_a_number_beside_a_tensor() -> None:
    x = wg.ones(2, dtype=wg.float64)
    assert wg.mul(0.1, x).tolist() == [0.1, 0.1]
    assert wg.sub(0.1, wg.ones(1)).dtype == wg.float32
    assert wg.pow(2, wg.tensor([1, 2])).tolist() == [2, 4]
