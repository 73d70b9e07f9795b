"""Reductions read their operand where it lies: they need no copy of it in another dtype. Values are
NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import wengert as wg
from behaviours.test_partial_writes import peak

COUNT = 100_000
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
HALVES = ["float16", "bfloat16"]
SINGLE = ["sum", "prod", "amax", "amin", "any", "all", "count_nonzero"]


def drawn(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Small numbers of both signs (where there are any) and zeros, exact in every dtype, as NumPy's int64."""
    least = 0 if dtype.startswith("u") or dtype == "bool" else -5
    most = 2 if dtype == "bool" else 6
    return np.random.default_rng(3).integers(least, most, shape)


def reference(name: str, x: np.ndarray, axis: Any, dtype: str) -> np.ndarray:
    if name == "prod":
        out = np.multiply.reduce(x.astype("uint64" if dtype == "uint64" else "int64"), axis)
    elif name == "count_nonzero":
        out = np.asarray(np.count_nonzero(x, axis))
    else:
        out = np.asarray(getattr(np, name)(x, axis=axis))
    return out


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *HALVES, "float32", "float64", "complex64"])
@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_no_copy_is_made(name: str, dtype: str, axis: int | None) -> None:
    if dtype == "complex64" and name not in ("any", "all", "count_nonzero", "sum"):
        pytest.skip("complex numbers have no order, and their products are composed")
    values = drawn(dtype, (COUNT // 20, 20))
    x = wg.tensor(values).to(getattr(wg, dtype))
    dims = () if axis is None else (axis,)
    out: list[wg.Tensor] = []
    needed = peak(lambda: out.append(getattr(x, name)(*dims)))
    # The result, the parts of it that threads find, and one byte for what is compared with zero.
    assert needed <= 24 * max(1, out[0].numel()) + 8192 * 4 < COUNT or axis == 1
    assert axis != 1 or needed <= 24 * out[0].numel() + 8192
    if name == "prod" and dtype in (*HALVES, "float32", "float64"):
        return
    expected = reference(name, values, axis, dtype)
    found = out[0].to(wg.complex128).real if dtype == "complex64" else out[0]
    if dtype in (*HALVES, "float32", "float64", "complex64") and name == "sum":
        np.testing.assert_allclose(found.double().numpy(), expected, rtol=1e-2, atol=1)
    else:
        np.testing.assert_array_equal(found.double().numpy(), expected.astype("float64"))


@pytest.mark.parametrize(
    "dtype", ["bool", *INTEGERS, *HALVES, "float32", "float64", "complex64", "complex128"]
)
def test_truth_of_every_layout(dtype: str) -> None:
    values = drawn(dtype, (6, 5, 7)) * (np.random.default_rng(4).random((6, 5, 7)) < 0.5)
    x = wg.tensor(values).to(getattr(wg, dtype))
    views = {
        "plain": lambda t: t,
        "transposed": lambda t: t.transpose(0, 2) if isinstance(t, wg.Tensor) else t.transpose(2, 1, 0),
        "strided": lambda t: t[::2, 1:, ::3],
        "empty": lambda t: t[:, :0],
        "stretched": lambda t: (
            t[:, :1].expand(6, 4, 7) if isinstance(t, wg.Tensor) else np.broadcast_to(t[:, :1], (6, 4, 7))
        ),
    }
    for view in views.values():
        ours, theirs = view(x), view(values)
        for axis in (None, 0, 1, 2, (0, 2)):
            over = () if axis is None else (axis,)
            for name in ("any", "all", "count_nonzero"):
                got = getattr(ours, name)(*over)
                assert got.dtype == (wg.int64 if name == "count_nonzero" else wg.bool)
                np.testing.assert_array_equal(got.numpy(), getattr(np, name)(theirs, axis=axis))
            np.testing.assert_array_equal(
                ours.any(*over, keepdim=True).numpy(), theirs.any(axis, keepdims=True)
            )
    batched = wg.vmap(lambda t: (t.any(0), t.all(1), t.count_nonzero()), in_dims=1)(x)
    for got, expected in zip(
        batched,
        (values.any(0), values.all(2).T, np.count_nonzero(values, (0, 2))),
        strict=True,
    ):
        np.testing.assert_array_equal(got.numpy(), expected)


@pytest.mark.parametrize("dtype", [*HALVES, "float32", "float64"])
def test_what_is_not_zero(dtype: str) -> None:
    tiny = {"float16": 6e-8, "bfloat16": 1e-40, "float32": 1e-45, "float64": 5e-324}[dtype]
    x = wg.tensor([0.0, -0.0, float("nan"), float("inf"), -tiny, tiny], dtype=wg.float64).to(
        getattr(wg, dtype)
    )
    assert x.count_nonzero().item() == 4
    assert [x[i].any().item() for i in range(6)] == [False, False, True, True, True, True]
    assert [x[i].all().item() for i in range(6)] == [False, False, True, True, True, True]
    z = wg.tensor([0j, complex(-0.0, 0.0), 1j, complex(float("nan"), 0), 1 + 0j])
    assert z.count_nonzero().item() == 3
    assert not z.all().item()
    assert z[2:].all().item()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_extremes_of_the_dtype(dtype: str) -> None:
    limits = np.iinfo(dtype)
    values = np.array([[limits.max, limits.min, 3], [1, 2, limits.max]], dtype)
    x = wg.from_numpy(values.copy())
    for axis in (None, 0, 1):
        over = () if axis is None else (axis,)
        for name, fold in (("amax", np.max), ("amin", np.min)):
            got = getattr(x, name)(*over)
            assert got.dtype == getattr(wg, dtype)
            np.testing.assert_array_equal(got.numpy(), fold(values, axis=axis))
    # Products wrap as NumPy's do.
    wide = "uint64" if dtype == "uint64" else "int64"
    np.testing.assert_array_equal(x.prod(1).numpy(), np.multiply.reduce(values.astype(wide), 1))
    assert str(x.prod().dtype).endswith(wide)
