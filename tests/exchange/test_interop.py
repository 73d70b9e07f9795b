"""Tensors and other libraries: memory is shared where that is promised, copied where not, and kept alive."""

import copy
import gc
import importlib.util
import pickle

import ml_dtypes
import numpy as np
import pytest
import wengert as wg

INTEGERS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
DTYPES = ["bool", *INTEGERS, "float16", "float32", "float64"]


def some(dtype: str, shape: tuple[int, ...] = (3, 4)) -> np.ndarray:
    """Values that every dtype holds."""
    return (
        (np.arange(np.prod(shape)) % 2 if dtype == "bool" else np.arange(np.prod(shape)))
        .astype(dtype)
        .reshape(shape)
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_from_numpy_shares_memory(dtype: str) -> None:
    a = some(dtype)
    t = wg.from_numpy(a)
    assert str(t.dtype) == f"wengert.{dtype}"
    assert t.shape == a.shape
    a[0, 1] = int(a[0, 1] == 0)
    assert t[0, 1].item() == a[0, 1]
    t[1, 2] = 1
    assert a[1, 2] == 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_shares_memory(dtype: str) -> None:
    t = wg.tensor(some(dtype))
    a = t.numpy()
    assert a.dtype == np.dtype(dtype)
    assert np.array_equal(a, some(dtype))
    a[2, 3] = int(a[2, 3] == 0)
    assert t[2, 3].item() == a[2, 3]


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.T,
        lambda a: a[::2, 1:],
        lambda a: a[::-1, ::-1],
        lambda a: a[1],
        lambda a: a[:, None, ::-2],
        lambda a: np.broadcast_to(a[:1], (5, 4)),
        lambda a: a[:0],
        lambda a: a[2, 3],
    ],
)
def test_strides_cross_in_both_directions(view: object) -> None:
    a = some("float64")
    there = wg.from_numpy(np.asarray(view(a))) if view(a).flags.writeable else wg.as_tensor(view(a))
    assert np.array_equal(there.numpy(), view(a))
    back = wg.tensor(a)
    assert back.numpy().strides == a.strides
    transposed = back.mT.numpy()
    assert transposed.strides == a.T.strides
    assert np.array_equal(back.flip(0).numpy(), a[::-1])
    assert np.array_equal(back[:, ::2].numpy(), a[:, ::2])


def test_tensor_copies_and_as_tensor_shares() -> None:
    a = some("float32")
    copied, shared = wg.tensor(a), wg.as_tensor(a)
    a[0, 0] = 100
    assert copied[0, 0].item() == 0
    assert shared[0, 0].item() == 100


def test_memory_outlives_either_owner() -> None:
    t = wg.from_numpy(some("float64", (1000,)))
    gc.collect()
    assert t.sum().item() == 499500.0
    a = (wg.arange(1000, dtype=wg.float64) * 2).numpy()
    gc.collect()
    wg.zeros(1000, dtype=wg.float64)
    assert a.sum() == 999000.0


def test_lists_numbers_and_defaults() -> None:
    assert wg.tensor([1.5, 2]).dtype == wg.float32
    assert wg.tensor([1, 2]).dtype == wg.int64
    assert wg.tensor([True]).dtype == wg.bool
    assert wg.tensor(np.float64(2.0)).dtype == wg.float64
    assert wg.tensor([[1, 2], [3, 4]]).shape == (2, 2)
    assert wg.tensor([]).shape == (0,)
    assert wg.tensor(3).item() == 3
    assert wg.tensor([1, 2], dtype=wg.float16).tolist() == [1.0, 2.0]
    assert wg.tensor(2**62).item() == 2**62
    with pytest.raises((TypeError, ValueError)):
        wg.tensor([[1, 2], [3]])
    with pytest.raises(TypeError):
        wg.tensor(["a"])
    with pytest.raises(TypeError):
        wg.tensor(np.array(["a"]))


def test_bfloat16() -> None:
    t = wg.tensor([1.0, 2.5], dtype=wg.bfloat16)
    assert t.numpy().dtype == ml_dtypes.bfloat16
    assert t.numpy().astype("float32").tolist() == [1.0, 2.5]
    again = wg.tensor(np.array([1.0, 3.0], dtype=ml_dtypes.bfloat16))
    assert again.dtype == wg.bfloat16
    assert again.tolist() == [1.0, 3.0]


def test_buffer_protocol() -> None:
    t = wg.tensor(some("float64"))
    view = memoryview(t)
    assert (view.shape, view.strides, view.format, view.itemsize) == ((3, 4), (32, 8), "d", 8)
    assert np.array_equal(np.asarray(view), t.numpy())
    assert memoryview(t.mT).strides == (8, 32)
    assert bytes(memoryview(wg.tensor([1, 2], dtype=wg.uint8))) == b"\x01\x02"
    with pytest.raises(BufferError, match="detach"):
        memoryview(wg.ones(2, requires_grad=True))
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(wg.ones(2, dtype=wg.bfloat16))


def test_numpy_functions_accept_tensors() -> None:
    t = wg.tensor([1.0, 4.0])
    assert np.asarray(t).tolist() == [1.0, 4.0]
    assert np.array(t, dtype="float64").dtype == np.float64
    assert np.stack([t, t]).shape == (2, 2)
    # The tensor wins in mixed expressions, so that derivatives are not lost.
    mixed = np.ones(2, dtype="float32") * wg.ones(2, requires_grad=True)
    assert isinstance(mixed, wg.Tensor)
    assert mixed.requires_grad
    assert isinstance(np.float32(2) * wg.ones(2), wg.Tensor)
    with pytest.raises(RuntimeError, match=r"detach\(\)"):
        np.asarray(wg.ones(2, requires_grad=True))
    with pytest.raises(RuntimeError, match=r"detach\(\)"):
        wg.ones(2, requires_grad=True).numpy()


def test_dlpack_with_numpy() -> None:
    t = wg.tensor(some("float32"))
    a = np.from_dlpack(t)
    assert np.array_equal(a, t.numpy())
    assert np.shares_memory(a, t.numpy())
    b = some("int64")
    shared = wg.from_dlpack(b)
    b[0, 0] = 7
    assert shared[0, 0].item() == 7
    assert np.array_equal(np.from_dlpack(t.mT), t.numpy().T)
    with pytest.raises(BufferError):
        np.from_dlpack(wg.ones(2, requires_grad=True))
    del t
    gc.collect()
    assert a.sum() == 66.0


@pytest.mark.parametrize("name", ["jax.numpy"] if importlib.util.find_spec("jax") else [])
def test_dlpack_with_jax(name: str) -> None:
    jnp = importlib.import_module(name)
    j = jnp.arange(6, dtype="float32").reshape(2, 3)
    t = wg.from_dlpack(j)
    assert t.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert jnp.from_dlpack(wg.tensor([1.0, 2.0])).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
def test_pickle_and_copy(dtype: str) -> None:
    t = wg.tensor([[0, 1], [1, 0]], dtype=getattr(wg, dtype))
    for again in (pickle.loads(pickle.dumps(t)), copy.deepcopy(t), copy.copy(t)):
        assert again.dtype == t.dtype
        assert again.tolist() == t.tolist()
    separate = copy.deepcopy(t)
    separate[0, 0] = 1
    assert t[0, 0].item() == 0


def test_pickles_keep_requires_grad_and_drop_history() -> None:
    leaf = wg.ones(2, requires_grad=True)
    assert pickle.loads(pickle.dumps(leaf)).requires_grad
    assert copy.deepcopy(leaf).requires_grad
    memo = copy.deepcopy([leaf, leaf])
    assert memo[0] is memo[1]
    strided = wg.tensor(some("float64")).mT[1:]
    assert np.array_equal(pickle.loads(pickle.dumps(strided)).numpy(), strided.numpy())


def test_dtypes_are_singletons_that_print_and_pickle() -> None:
    for name in [*DTYPES, "bfloat16"]:
        dtype = getattr(wg, name)
        assert repr(dtype) == f"wengert.{name}"
        assert pickle.loads(pickle.dumps(dtype)) is dtype
        assert wg.zeros(1, dtype=name).dtype == dtype
    assert wg.float32 == np.float32
    assert wg.zeros(1, dtype=np.float64).dtype == wg.float64


def test_repr() -> None:
    assert repr(wg.tensor([[1.0, 2.0], [3.0, 4.0]])) == "tensor([[1., 2.],\n        [3., 4.]])"
    assert repr(wg.tensor([1, -2])) == "tensor([ 1, -2])"
    assert repr(wg.tensor([True, False])) == "tensor([ True, False])"
    assert "dtype=float64" in repr(wg.tensor([1.0], dtype=wg.float64))
    assert "requires_grad=True" in repr(wg.tensor([1.0], requires_grad=True))
    assert "grad_fn" in repr(wg.tensor([1.0], requires_grad=True) * 2)
    assert "..." in repr(wg.zeros(2000))
    assert len(repr(wg.zeros(500, 500))) < 2000
    shown = []
    wg.vmap(lambda x: (shown.append(repr(x)), x)[1])(wg.ones(2, 3))
    wg.jvp(lambda x: (shown.append(repr(x)), x)[1], (wg.ones(2),), (wg.ones(2),))
    assert "Batched" in shown[0]
    assert "Dual" in shown[1]
    assert repr(wg.tensor(1.5)) == "tensor(1.5)"
    assert f"{wg.tensor(1.5):.2f}" == "1.50"


def test_python_protocols() -> None:
    t = wg.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert len(t) == 2
    assert [row.tolist() for row in t] == [[1.0, 2.0], [3.0, 4.0]]
    assert 4.0 in t
    assert 5.0 not in t
    assert float(t[0, 1]) == 2.0
    assert int(t[1, 0]) == 3
    assert [10, 20, 30][wg.tensor(1)] == 20
    assert bool(wg.tensor([1.0]))
    assert not wg.tensor(0)
    assert hash(t) == hash(t)
    assert len({t, t}) == 1
    with pytest.raises(TypeError):
        len(wg.tensor(1.0))
    with pytest.raises(TypeError):
        iter(wg.tensor(1.0))
    first, second = t
    assert second.tolist() == [3.0, 4.0]
    assert first.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("byte", [1, 2, 255])
def test_any_byte_but_zero_is_true(byte: int) -> None:
    truth = wg.zeros(70, dtype=wg.bool)
    truth.numpy().view(np.uint8)[::2] = byte
    expected = np.arange(70) % 2 == 0
    assert truth.tolist() == expected.tolist()
    assert truth.sum().item() == 35
    assert truth.float().sum().item() == 35
    assert wg.where(truth, 1, 0).tolist() == expected.astype(int).tolist()
    assert (~truth).tolist() == (~expected).tolist()
    assert (truth & wg.tensor(expected)).tolist() == expected.tolist()
    assert (truth ^ wg.tensor(expected)).tolist() == [False] * 70
    assert truth.nonzero().tolist() == np.argwhere(expected).tolist()
    assert wg.arange(70)[truth].tolist() == np.arange(70)[expected].tolist()
    filled = wg.zeros(70)
    filled[truth] = 5.0
    assert filled.sum().item() == 175
    assert (truth == wg.tensor(expected)).all()


def test_memory_that_overlaps_itself_is_not_written() -> None:
    whole = np.arange(5.0)
    rows = wg.from_numpy(np.lib.stride_tricks.as_strided(whole, (4, 2), (8, 8)))
    assert rows.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]
    for write in (lambda: rows.copy_(wg.ones(4, 2)), rows.uniform_, lambda: rows.mul_(2), rows.zero_):
        with pytest.raises(RuntimeError, match="share memory"):
            write()
    assert whole.tolist() == [0, 1, 2, 3, 4]
    # Every other element, and elements in reverse order, are elements of their own.
    wg.from_numpy(whole[::-2]).mul_(10)
    assert whole.tolist() == [0, 1, 20, 3, 40]
