"""Random files, capsules, buffers, dtypes and shapes: what is true comes through,
and what is not is refused.
"""

from __future__ import annotations

import contextlib
import io
import math
import pickle
from typing import Any

import numpy as np
import wengert as wg
from exchange.capsules import Exporter
from hypothesis import given, strategies as st
from support import examples

DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
DTYPES += ["float16", "float32", "float64", "complex64", "complex128"]


def good() -> bytes:
    file = io.BytesIO()
    wg.save(
        {"a": wg.arange(6).reshape(2, 3), "b": [wg.nn.Parameter(wg.ones(2)), {"c": (1, 2.5, "x", {3})}]}, file
    )
    return file.getvalue()


GOOD = good()


@examples(300)
@given(st.data())
def test_files(data: st.DataObject) -> None:
    damaged = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        kind, at = data.draw(st.integers(0, 3)), data.draw(st.integers(0, len(damaged) - 1))
        if kind == 0:
            damaged[at] = data.draw(st.integers(0, 255))
        elif kind == 1:
            del damaged[at : at + data.draw(st.integers(1, 40))]
        elif kind == 2:
            damaged[at:at] = data.draw(st.binary(min_size=1, max_size=16))
        else:
            other = data.draw(st.integers(0, len(damaged) - 1))
            damaged[at : at + 8] = damaged[other : other + 8]
        if not damaged:
            break
    with contextlib.suppress(pickle.UnpicklingError):
        wg.load(io.BytesIO(bytes(damaged)))


@examples(150)
@given(st.binary(max_size=40))
def test_pickles(data: bytes) -> None:
    import zipfile

    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("wengert", "1")
        archive.writestr("data.pkl", b"\x80\x04" + data)
    file.seek(0)
    with contextlib.suppress(pickle.UnpicklingError):
        wg.load(file)


@examples(200)
@given(st.data())
def test_capsules(data: st.DataObject) -> None:
    """Descriptions inside of 64 numbers are read as NumPy reads them; far outside they are refused."""
    rank = data.draw(st.integers(0, 3))
    shape = data.draw(st.lists(st.integers(0, 3), min_size=rank, max_size=rank))
    strides = data.draw(st.lists(st.integers(-5, 5), min_size=rank, max_size=rank))
    low = sum(min(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True))
    offset = data.draw(st.integers(0, 20)) - low
    wild = data.draw(st.booleans()) and any(n > 1 for n in shape) and 0 not in shape
    if wild:
        axis = next(i for i, n in enumerate(shape) if n > 1)
        strides[axis] = data.draw(st.sampled_from([2**61, -(2**61), 2**62, -(2**63), 2**63 - 1]))
    exporter = Exporter(
        shape, strides, offset=8 * offset, version=data.draw(st.sampled_from([None, (1, 0), (1, 1)]))
    )
    try:
        x = wg.from_dlpack(exporter)
    except (BufferError, ValueError):
        assert wild
        return
    assert not wild
    memory = np.arange(64.0)[min(offset, 63) :]
    expected = np.lib.stride_tricks.as_strided(memory, shape, [8 * s for s in strides])
    np.testing.assert_array_equal(x.numpy(), expected)


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    """An array of any dtype and layout."""
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    base = rng.integers(0, 2 if dtype.kind == "b" else 100, [2 * n for n in shape]).astype(dtype)
    steps = tuple(slice(draw(st.integers(0, 1)), None, draw(st.sampled_from([1, 2, -1, -2]))) for _ in shape)
    view = base[steps]
    view = view.transpose(draw(st.permutations(range(len(shape)))))
    if draw(st.integers(0, 5)) == 0 and view.ndim < 6:
        view = np.broadcast_to(view, (2, *view.shape))
    return view


@examples(200)
@given(arrays())
def test_arrays_in_and_out(a: np.ndarray) -> None:
    for x in (wg.asarray(a), wg.tensor(a), wg.from_numpy(a)):
        assert (x.dtype.name, tuple(x.shape)) == (a.dtype.name, a.shape)
        for out in (
            x.numpy(),
            np.asarray(memoryview(x)) if a.dtype.kind != "c" else x.numpy(),
            np.from_dlpack(x),
        ):
            assert out.dtype.num == a.dtype.num
            np.testing.assert_array_equal(out, a)
    assert pickle.loads(pickle.dumps(wg.tensor(a))).tolist() == a.tolist()
    file = io.BytesIO()
    wg.save(wg.tensor(a), file)
    file.seek(0)
    np.testing.assert_array_equal(wg.load(file).numpy(), a)


@examples(200)
@given(arrays(), st.data())
def test_shapes(a: np.ndarray, data: st.DataObject) -> None:
    x = wg.asarray(a)
    factors = data.draw(st.permutations([n for n in a.shape if n != 1] + [1] * data.draw(st.integers(0, 2))))
    other = [*factors, *([2] if data.draw(st.integers(0, 3)) == 0 else [])]
    if math.prod(other) == a.size:
        np.testing.assert_array_equal(x.reshape(other).numpy(), a.reshape(other))
    else:
        try:
            x.reshape(other)
            raise AssertionError(other)
        except ValueError:
            pass
    lengths = data.draw(st.lists(st.integers(0, 4), max_size=4))
    try:
        expected: Any = np.broadcast_to(a, lengths)
    except ValueError:
        expected = None
    try:
        found = wg.broadcast_to(x, lengths)
    except ValueError:
        found = None
    assert (found is None) == (expected is None), (a.shape, lengths)
    if found is not None:
        np.testing.assert_array_equal(found.numpy(), expected)
    for name in ("sum", "any", "all"):
        np.testing.assert_allclose(
            getattr(x, name)().numpy(), getattr(a, name)(), rtol=1e-2 if a.dtype == np.float16 else 1e-5
        )
