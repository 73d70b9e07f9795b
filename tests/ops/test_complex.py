"""Complex tensors: numbers in and out, functions, shapes and products, against NumPy."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from references.complex_reference import BINARY, UNARY, near, some
from support import array

TYPES = ["complex64", "complex128"]
TOLERANCE = {"complex64": 3e-5, "complex128": 1e-12}


def layouts(x: Any) -> list[wg.Tensor]:
    """The same matrix in several layouts."""
    double = np.repeat(np.repeat(x, 2, 0), 2, 1)
    return [
        wg.tensor(x),
        wg.tensor(np.ascontiguousarray(x.T)).mT,
        wg.tensor(double)[::2, ::2],
        wg.tensor(x).flip(0).flip(0),
    ]


# ---- values and conversion -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_go_in_and_out_unchanged(dtype: str) -> None:
    x = some(dtype)
    t = wg.from_numpy(x)
    assert t.dtype == getattr(wg, dtype)
    assert t.is_complex()
    assert not t.is_floating_point()
    assert np.array_equal(t.numpy(), x)
    assert np.shares_memory(t.numpy(), x)
    assert np.array_equal(wg.tensor(x.T).numpy(), x.T)
    assert np.array_equal(np.from_dlpack(t), x)
    assert np.array_equal(wg.from_dlpack(x).numpy(), x)
    assert t.tolist() == x.tolist()
    assert np.array_equal(wg.tensor(x.tolist(), dtype=t.dtype).numpy(), x)
    assert t[1, 2].item() == x[1, 2]
    assert np.array_equal(t.real.numpy(), x.real)
    assert np.array_equal(t.imag.numpy(), x.imag)
    assert np.shares_memory(t.real.numpy(), x)
    assert t.element_size() == x.itemsize
    assert np.array_equal(pickle.loads(pickle.dumps(t)).numpy(), x)
    assert np.array_equal(copy.deepcopy(t).numpy(), x)


def test_numbers_of_python() -> None:
    assert wg.tensor(1 + 2j).dtype == wg.complex64
    assert wg.tensor([1, 2.5, 1j]).tolist() == [1, 2.5, 1j]
    assert wg.tensor([1, 2j], dtype=wg.complex128).dtype == wg.cdouble
    assert wg.tensor([1, 2], dtype=complex).dtype == wg.complex128
    assert complex(wg.tensor(3 - 1j).item()) == 3 - 1j
    assert wg.full((2,), 1 + 1j).tolist() == [1 + 1j] * 2
    assert wg.zeros(2, dtype=wg.complex64).tolist() == [0, 0]
    assert (wg.tensor([1.0, 2.0]) * 1j).tolist() == [1j, 2j]
    assert (wg.tensor([1.0], dtype=wg.float64) + 1j).dtype == wg.complex128
    assert (1j - wg.tensor([1, 2])).tolist() == [-1 + 1j, -2 + 1j]
    assert (wg.ones(2, dtype=wg.complex64) * 2.5).dtype == wg.complex64
    assert wg.finfo(wg.complex128).eps == wg.finfo(wg.float64).eps
    assert wg.finfo(wg.complex64).dtype == wg.float32
    with pytest.raises(TypeError, match="complex numbers do not fit into float32"):
        wg.tensor([1j], dtype=wg.float32)


def test_how_they_print() -> None:
    assert repr(wg.tensor([1 + 2j, 0.25 - 0.5j])) == "tensor([1.00+2.0j, 0.25-0.5j])"
    assert repr(wg.tensor([1j], dtype=wg.complex128)) == "tensor([0.+1.j], dtype=complex128)"
    assert repr(wg.tensor(complex(1, float("nan")))) == "tensor(1.+nanj)"
    assert repr(wg.tensor([1e-9 - 1j])) == "tensor([1.0000e-09-1.j])"


def test_promotion() -> None:
    x = wg.ones(2, dtype=wg.complex64)
    for name, expected in (
        ("float32", "complex64"),
        ("float64", "complex128"),
        ("int64", "complex64"),
        ("float16", "complex64"),
    ):
        assert (x + wg.ones(2, dtype=getattr(wg, name))).dtype == getattr(wg, expected)
    assert (x + wg.ones(2, dtype=wg.complex128)).dtype == wg.complex128
    assert wg.where(wg.tensor([True, False]), x, wg.zeros(2)).dtype == wg.complex64
    assert wg.cat([x, wg.zeros(1)]).dtype == wg.complex64


def test_conversions() -> None:
    x = wg.tensor([1.5 - 2j, 0j, 3j])
    assert x.to(wg.complex128).tolist() == x.tolist()
    assert x.to(wg.float64).tolist() == [1.5, 0, 0]
    assert x.bool().tolist() == [True, False, True]
    assert wg.tensor([1, 2]).to(wg.complex64).tolist() == [1, 2]
    assert wg.complex(wg.tensor([1.0, 2.0]), wg.tensor(3.0)).tolist() == [1 + 3j, 2 + 3j]
    near(wg.polar(wg.tensor([2.0]), wg.tensor([np.pi / 2])), np.array([2j], "complex64"), 1e-6)
    assert wg.view_as_real(x).tolist() == [[1.5, -2], [0, 0], [0, 3]]
    assert wg.view_as_complex(wg.tensor([[1.0, 2.0]])).tolist() == [1 + 2j]
    pairs = wg.zeros(3, 2)
    wg.view_as_complex(pairs)[1] = 5 - 1j
    assert pairs.tolist() == [[0, 0], [5, -1], [0, 0]]


# ---- functions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name: str, dtype: str) -> None:
    for scale in (0.02, 1.0, 5.0):
        z = (some(dtype) * scale).astype(dtype)
        expected = UNARY[name](z.astype("complex128"))
        expected = expected.astype(
            {"complex64": {"c": "complex64", "f": "float32", "b": "bool"}}.get(dtype, {}).get(
                expected.dtype.kind, expected.dtype
            )
        )
        for x in layouts(z):
            got = getattr(x, name)()
            assert got.dtype == getattr(wg, expected.dtype.name)
            size = np.abs(expected).max() if expected.dtype.kind in "fc" else 1.0
            np.testing.assert_allclose(
                array(got), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * size * 0.1
            )


CUTS = ["sqrt", "log", "log2", "log10", "log1p", "asin", "acos", "atan", "asinh", "acosh", "atanh", "angle"]


@pytest.mark.parametrize("name", CUTS)
def test_branch_cuts_are_those_of_numpy(name: str) -> None:
    reals = [complex(a, b) for a in (-3.0, -2.0, -0.5, 0.5, 2.0, 3.0) for b in (0.0, -0.0)]
    imaginary = [complex(a, b) for b in (-3.0, -2.0, -0.5, 0.5, 2.0, 3.0) for a in (0.0, -0.0)]
    z = np.array([*reals, *imaginary])
    with np.errstate(all="ignore"):
        expected = UNARY[name](z)
    np.testing.assert_allclose(array(getattr(wg.tensor(z), name)()), expected, rtol=1e-12, atol=1e-14)


# Where the sign of a result is open: the angle, of which only sine and cosine matter, is infinite. (Tangents
# at infinity have the sign of the angle in the array API standard, of its double's sine in C99.)
ENDLESS: dict[str, Callable[[complex], bool]] = {
    **dict.fromkeys(["exp", "sinh", "cosh", "tan"], lambda z: np.isinf(z.imag)),
    **dict.fromkeys(["sin", "cos", "tanh"], lambda z: np.isinf(z.real)),
}


@pytest.mark.parametrize(
    "name", ["sqrt", "exp", "log", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh", *CUTS[5:11]]
)
def test_infinities_and_nans_are_those_of_c99(name: str) -> None:
    parts = [0.0, -0.0, 1.5, -1.5, 800.0, -800.0, np.inf, -np.inf, np.nan]
    z = np.array([complex(a, b) for a in parts for b in parts])
    with np.errstate(all="ignore"):
        expected = UNARY[name](z)
    got = array(getattr(wg.tensor(z), name)())
    for part in ("real", "imag"):
        a, b = getattr(expected, part), getattr(got, part)
        np.testing.assert_allclose(np.abs(b), np.abs(a), rtol=1e-12, atol=1e-15, err_msg=part)
        signed = ~np.isnan(z) & ~np.isnan(a) & ~np.array([ENDLESS.get(name, lambda _: False)(w) for w in z])
        assert np.array_equal(np.signbit(a[signed]), np.signbit(b[signed])), part


def test_expm1_at_infinities() -> None:
    inf, nan = np.inf, np.nan
    cases = [
        (complex(-0.0, 0.0), 0.0, 0.0),
        (complex(inf, 0.0), inf, 0.0),
        (complex(-inf, 2.0), -1.0, 0.0),
        (complex(inf, inf), inf, nan),
        (complex(inf, nan), inf, nan),
        (complex(-inf, inf), -1.0, 0.0),
        (complex(-inf, nan), -1.0, 0.0),
        (complex(nan, 0.0), nan, 0.0),
        (complex(nan, 1.0), nan, nan),
        (complex(1.0, inf), nan, nan),
    ]
    got = array(wg.tensor([z for z, _, _ in cases], dtype=wg.complex128).expm1())
    np.testing.assert_array_equal(got.real, [re for _, re, _ in cases])
    np.testing.assert_array_equal(got.imag, [im for _, _, im in cases])


@pytest.mark.parametrize("dtype", TYPES)
def test_distinct_numbers(dtype: str) -> None:
    z = np.array([[1 + 2j, 1 - 2j, -1j, 0], [1 + 2j, complex(-0.0, 0.0), 3, -1j]], dtype)
    wanted = np.unique(z, return_inverse=True, return_counts=True)
    got = wg.unique(wg.tensor(z), return_inverse=True, return_counts=True)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(array(a), b)
    rows = wg.unique(wg.tensor(z[[1, 0, 1]]), dim=0)
    np.testing.assert_array_equal(array(rows), np.unique(z, axis=0))
    assert wg.unique(wg.tensor([complex(np.nan, 1), complex(np.nan, 1)])).numel() == 2


@pytest.mark.parametrize("name", ["asin", "acos", "atan", "asinh", "acosh", "atanh", "log", "log1p", "sqrt"])
def test_no_digits_are_lost_beside_branch_points(name: str) -> None:
    near = [complex(a, b) for a in (-1.0, 1.0, 0.0) for b in (0.001, -0.001)]
    z = np.array([*near, *(1j * w for w in near)], np.complex64)
    if name == "log1p":
        z = z[np.abs(z + 1) > 0.01]
    expected = UNARY[name](z.astype(np.complex128))
    got = array(getattr(wg.tensor(z), name)())
    assert (np.abs(got - expected) <= 2e-6 * np.abs(expected)).all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers(name: str, dtype: str) -> None:
    f, a, b = BINARY[name], some(dtype), some(dtype, seed=1)
    b[0] = a[0]
    for x in layouts(a):
        for y in layouts(b):
            near(f(x, y), f(a, b), TOLERANCE[dtype])
    near(f(wg.tensor(a), wg.tensor(b[0])), f(a, b[0]), TOLERANCE[dtype])
    real = b.real.copy()
    near(f(wg.tensor(a), wg.tensor(real)), f(a, real), TOLERANCE[dtype])


def test_powers_and_quotients_at_zero_and_far_out() -> None:
    z = np.array([0, 1j, -2, 1 + 1j])
    for n in (0, 1, 2, 3, 7, -1, -3):
        with np.errstate(all="ignore"):
            expected = z**n
        np.testing.assert_allclose(array(wg.tensor(z) ** n)[1:], expected[1:], atol=1e-14)
    assert array(wg.tensor(z) ** wg.zeros(4, dtype=wg.complex128)).tolist() == [1, 1, 1, 1]
    assert array(wg.tensor(z) ** (0.5 + 0j))[0] == 0
    far = np.array([1e300 + 1e300j, 1e-300 - 1e-300j, 1e200])
    np.testing.assert_allclose(array(wg.tensor(far) / wg.tensor(far)), np.ones(3), rtol=1e-12)
    np.testing.assert_allclose(array(wg.tensor(far).abs()), np.abs(far), rtol=1e-12)
    np.testing.assert_allclose(array(wg.tensor(far).sqrt()), np.sqrt(far), rtol=1e-12)
    near_one = np.exp(1j * np.linspace(0.1, 3, 7)) * (1 + 1e-9)
    np.testing.assert_allclose(array(wg.tensor(near_one).log().real), np.full(7, 1e-9), rtol=1e-6)


def test_there_is_no_order() -> None:
    x = wg.tensor([1j, 2])
    for f in (lambda: x < x, lambda: x >= 0, lambda: wg.ones(2) > x):
        with pytest.raises(TypeError, match="complex numbers have no order"):
            f()
    for f in (
        x.amax,
        x.floor,
        x.erf,
        lambda: x.sort(),
        lambda: x.softmax(0),
        lambda: wg.maximum(x, x),
        x.argmax,
    ):
        with pytest.raises(TypeError, match="complex64"):
            f()
    with pytest.raises(TypeError, match="imag: a complex tensor expected, got float32"):
        _ = wg.ones(2).imag


# ---- shapes, reductions, products
# ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
def test_what_moves_elements(dtype: str) -> None:
    z = some(dtype, (4, 6))
    i = np.array([3, 0, 3])
    for x in layouts(z):
        near(x.reshape(3, 8), z.reshape(3, 8), 0)
        near(x.T.contiguous(), z.T, 0)
        near(x[1:, ::2], z[1:, ::2], 0)
        near(x[wg.tensor(i)], z[i], 0)
        near(x[wg.tensor(z.real > 0)], z[z.real > 0], 0)
        near(wg.cat([x, x], 1), np.concatenate([z, z], 1), 0)
        near(wg.stack([x, x]), np.stack([z, z]), 0)
        near(x.flip(1), np.flip(z, 1), 0)
        near(x.roll(2, 1), np.roll(z, 2, 1), 0)
        near(x.tril(), np.tril(z), 0)
        near(
            x.gather(1, wg.tensor([[0, 5], [1, 1], [2, 3], [4, 0]])),
            np.take_along_axis(z, np.array([[0, 5], [1, 1], [2, 3], [4, 0]]), 1),
            0,
        )
        near(wg.where(wg.tensor(z.real > 0), x, 0), np.where(z.real > 0, z, 0), 0)
        near(x.expand(2, 4, 6).clone(), np.broadcast_to(z, (2, 4, 6)), 0)
        near(x.masked_fill(wg.tensor(z.real > 0), 1j), np.where(z.real > 0, np.asarray(1j, dtype), z), 0)
        near(x.diagonal(), np.diagonal(z), 0)
        near(wg.nn.functional.pad(x, (1, 2)), np.pad(z, ((0, 0), (1, 2))), 0)
    y = wg.tensor(z)
    y[1] = 2 - 1j
    y[:, 0] += 1
    z[1] = 2 - 1j
    z[:, 0] += 1
    near(y, z, 0)


def index_written(name: str, z: Any, rows: Any, columns: Any) -> tuple[Any, Any]:
    """A call that writes where an index says, and the same by NumPy."""
    i, c, out = wg.tensor(rows), wg.tensor(columns), z.copy()
    part, lines = z[:2] * 2j, np.arange(len(z))[:, None]
    w, p = wg.tensor(z), wg.tensor(part)
    if name == "index_fill":
        out[rows] = 2 - 1j
        return w.index_fill(0, i, 2 - 1j), out
    if name == "index_copy":
        out[rows] = part
        return w.index_copy(0, i, p), out
    if name == "index_add":
        np.add.at(out, rows, part)
        return w.index_add(0, i, p), out
    if name == "index_put":
        out[rows] = part
        return w.index_put((i,), p), out
    source = z[:, : columns.shape[1]] * 2j
    if name == "scatter":
        out[lines, columns] = source
        return w.scatter(1, c, wg.tensor(source)), out
    if name == "scatter_add":
        np.add.at(out, (lines, columns), source)
        return w.scatter_add(1, c, wg.tensor(source)), out
    if name == "scatter_reduce, mean":
        count = np.ones(z.shape)
        np.add.at(out, (lines, columns), source)
        np.add.at(count, (lines, columns), 1)
        return w.scatter_reduce(1, c, wg.tensor(source), "mean"), (out / count).astype(z.dtype)
    np.multiply.at(out, (lines, columns), source)
    return w.scatter_reduce(1, c, wg.tensor(source), "prod"), out


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "name",
    [
        *("index_fill", "index_copy", "index_add", "index_put"),
        *("scatter", "scatter_add", "scatter_reduce, prod", "scatter_reduce, mean"),
    ],
)
def test_what_an_index_writes(name: str, dtype: str) -> None:
    """Few and many places, which are written by different loops."""
    for width, columns in (
        (6, [[0, 5], [1, 2], [2, 3], [4, 0]]),
        (20, [[3], [0], [19], [7]]),
    ):
        z = some(dtype, (4, width))
        got, expected = index_written(name, z, np.array([3, 1]), np.array(columns))
        near(got, expected, 1e-6)


@pytest.mark.parametrize("dtype", TYPES)
def test_reductions_and_scans(dtype: str) -> None:
    z, tolerance = some(dtype, (4, 6)), TOLERANCE[dtype] * 10
    for x in layouts(z):
        for name in ("sum", "mean", "prod"):
            near(getattr(x, name)(), np.asarray(getattr(z, name)()), tolerance)
            for axis in (0, 1):
                near(getattr(x, name)(axis=axis), getattr(z, name)(axis=axis), tolerance)
                near(
                    getattr(x, name)(axis=axis, keepdims=True),
                    getattr(z, name)(axis=axis, keepdims=True),
                    tolerance,
                )
        near(x.std(), np.asarray(z.std(ddof=1)), tolerance)
        near(x.var(0), z.var(0, ddof=1), tolerance)
        for axis in (0, 1):
            near(x.cumsum(axis), z.cumsum(axis), tolerance)
            near(x.cumprod(axis), z.cumprod(axis), tolerance)
    assert wg.zeros(0, dtype=wg.complex64).sum().item() == 0
    assert wg.zeros(0, dtype=wg.complex64).prod().item() == 1
    holes = wg.tensor([1 + 1j, complex(np.nan, 2)], dtype=getattr(wg, dtype))
    assert holes.nansum().tolist() == 1 + 1j
    assert wg.nan_to_num(holes).tolist() == [1 + 1j, 2j]
    assert wg.zeros(2, 0, dtype=wg.complex64).exp().shape == (2, 0)
    assert bool((wg.tensor([0j, 1j]) != 0).any())


@pytest.mark.parametrize("dtype", TYPES)
def test_products_of_matrices(dtype: str) -> None:
    a, b = some(dtype, (4, 6)), some(dtype, (6, 3), seed=1)
    for x in layouts(a):
        for y in layouts(b):
            near(x @ y, a @ b, TOLERANCE[dtype])
    near(wg.tensor(a) @ wg.tensor(b[:, 0]), a @ b[:, 0], TOLERANCE[dtype])
    near(wg.tensor(a).mH, a.conj().T, 0)
    near(wg.tensor(a).H @ wg.tensor(a), a.conj().T @ a, TOLERANCE[dtype] * 10)
    batch = some(dtype, (5, 3, 4), seed=2)
    near(wg.tensor(batch) @ wg.tensor(a), batch @ a, TOLERANCE[dtype])
    near(wg.einsum("ij,jk->ik", wg.tensor(a), wg.tensor(b)), a @ b, TOLERANCE[dtype])
    near(wg.tensor(a).norm(), np.asarray(np.linalg.norm(a)), TOLERANCE[dtype])
    near(wg.tensor(a).norm(3, 1), np.linalg.norm(a, 3, 1), TOLERANCE[dtype])
    near(wg.tensor(a) @ wg.tensor(b.real.copy()).to(getattr(wg, dtype)), a @ b.real, TOLERANCE[dtype])


def test_errors_say_what_to_do() -> None:
    with pytest.raises(wg.ShapeError, match="view_as_complex: a last axis of length 2 expected"):
        wg.view_as_complex(wg.ones(3))
    with pytest.raises(TypeError, match="view_as_complex: a float32 or float64 tensor expected, got int64"):
        wg.view_as_complex(wg.ones(3, 2, dtype=wg.int64))
    with pytest.raises(TypeError, match="view_as_real: a complex tensor expected, got float32"):
        wg.view_as_real(wg.ones(3))
    with pytest.raises(
        TypeError, match="the result is complex64 and cannot be stored in a tensor of float32"
    ):
        wg.ones(2).add_(1j)
    with pytest.raises(TypeError, match="complex numbers do not fit into a float32 tensor"):
        wg.ones(2)[0] = 1j
    with pytest.raises(TypeError, match="complex numbers do not fit into a float32 tensor"):
        wg.ones(2)[0] = wg.tensor(1j)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("equal_nan", [False, True])
def test_both_parts_must_be_close(dtype: str, equal_nan: bool) -> None:
    nan, inf = float("nan"), float("inf")
    parts = [0.0, 1.0, 1.0 + 1e-6, -1.0, 1e9, inf, -inf, nan]
    numbers = np.array([complex(re, im) for re in parts for im in parts]).astype(dtype)
    x, y = (each.ravel() for each in np.meshgrid(numbers, numbers))
    got = wg.isclose(wg.tensor(x), wg.tensor(y), equal_nan=equal_nan)
    # NumPy adds infinities up to NaN in its bound.
    with np.errstate(invalid="ignore"):
        want = np.isclose(x, y, equal_nan=equal_nan)
    np.testing.assert_array_equal(got.numpy(), want)
    assert not wg.allclose(wg.tensor([0j]), wg.tensor([5j]))
    assert not wg.isclose(wg.tensor([1.0]), 1 + 1j)
