"""Tensors and other objects: data, NumPy, memory views, dtypes, copies, numbers, printing."""

import copy
import pickle

import numpy as np
import pytest
import wengert as wg

F64 = wg.float64


def test_data_becomes_tensors_of_the_expected_dtype() -> None:
    assert wg.tensor([1.0, 2.0]).dtype == wg.float32
    assert wg.tensor([[1, 2], [3, 4]]).dtype == wg.int64
    assert wg.tensor([True, False]).dtype == wg.bool
    assert wg.tensor([1, 2.5]).dtype == wg.float32
    assert wg.tensor(np.ones(2)).dtype == wg.float64
    assert wg.tensor(np.float32(1.5)).dtype == wg.float32
    assert wg.tensor([]).shape == (0,)
    assert wg.tensor([[], []]).shape == (2, 0)
    assert wg.tensor(0.1, dtype=F64).item() == 0.1
    assert wg.tensor(2**60 + 1).item() == 2**60 + 1
    assert wg.tensor([wg.ones(2), wg.zeros(2)]).tolist() == [[1.0, 1.0], [0.0, 0.0]]


@pytest.mark.parametrize("data", [[[1, 2], [3]], [[1], 2], [1, [2]], [[1, 2], 3]])
def test_ragged_lists_raise(data: list[object]) -> None:
    with pytest.raises(ValueError, match="nested lists of unequal"):
        wg.tensor(data)


def test_what_is_no_data_raises() -> None:
    with pytest.raises(TypeError, match="str cannot become a tensor"):
        wg.tensor("text")
    with pytest.raises(TypeError, match="arrays of dtype str32 are not accepted"):
        wg.tensor(np.array(["a"]))
    with pytest.raises(TypeError, match="is not a dtype"):
        wg.zeros(2, dtype="float31")


INTEGERS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]


@pytest.mark.parametrize("name", ["bool", *INTEGERS, "float16", "float32", "float64"])
def test_numpy_shares_memory_both_ways(name: str) -> None:
    a = np.arange(24).astype(name).reshape(2, 3, 4)
    for view in (a, a[:, ::-1, ::2], a.T, a[1], a[..., 1:1]):
        t = wg.from_numpy(view)
        assert t.shape == view.shape
        np.testing.assert_array_equal(t.numpy(), view)
        assert t.dtype == view.dtype
        if view.size:
            assert np.shares_memory(t.numpy(), view)
    t = wg.from_numpy(a)
    t[0, 0, 0] = 1
    assert a[0, 0, 0] == 1
    out = wg.tensor(a)
    out[0, 0, 0] = 0
    assert a[0, 0, 0] == 1


def test_bfloat16_goes_through_ml_dtypes() -> None:
    ml = pytest.importorskip("ml_dtypes")
    t = wg.tensor([1.0, 2.5], dtype=wg.bfloat16)
    assert t.numpy().dtype == ml.bfloat16
    assert wg.tensor(t.numpy()).dtype == wg.bfloat16
    assert pickle.loads(pickle.dumps(t)).tolist() == [1.0, 2.5]


def test_read_only_arrays_are_copied() -> None:
    a = np.broadcast_to(np.float32(1), (3,))
    t = wg.as_tensor(a)
    t += 1
    assert t.tolist() == [2.0, 2.0, 2.0]
    assert a.tolist() == [1.0, 1.0, 1.0]


def test_an_array_outlives_its_name() -> None:
    t = wg.from_numpy(np.arange(100000.0))
    np.ones(100000)
    assert t.sum().item() == 4999950000.0


def test_memory_view_and_dlpack() -> None:
    t = wg.arange(6.0).reshape(2, 3)
    assert memoryview(t).tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert memoryview(t.T).strides == (4, 12)
    a = np.from_dlpack(t)
    a[0, 0] = 7
    assert t[0, 0].item() == 7
    b = wg.from_dlpack(np.arange(4.0)[::2])
    assert b.tolist() == [0.0, 2.0]
    assert b.dtype == F64
    with pytest.raises(BufferError, match="requires a gradient"):
        np.from_dlpack(wg.ones(2, requires_grad=True))


def test_export_of_recorded_tensors_raises() -> None:
    x = wg.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="call detach"):
        x.numpy()
    with pytest.raises(RuntimeError, match="call detach"):
        np.asarray(x)
    assert x.numpy(force=True).tolist() == [1.0, 1.0]


def test_dtype_objects() -> None:
    assert wg.float32 is wg.ones(1).dtype
    assert wg.float32 == np.float32
    assert wg.float32 == np.dtype("float32")
    assert wg.float32 == "float32"
    assert wg.float32 != wg.float64
    assert wg.float is wg.float32
    assert wg.long is wg.int64
    assert {wg.float32: 1}[wg.float32] == 1
    assert pickle.loads(pickle.dumps(wg.int32)) is wg.int32
    assert repr(wg.bfloat16) == "wengert.bfloat16"
    assert wg.finfo(wg.float64).eps == np.finfo(np.float64).eps
    assert wg.finfo(wg.float32).max == float(np.finfo(np.float32).max)
    assert wg.iinfo(wg.int32).min == -(2**31)
    assert wg.device("gpu:1").index == 1
    assert wg.ones(1).device == "cpu"


def test_copies() -> None:
    x = wg.ones(2, requires_grad=True)
    x.grad = wg.ones(2)
    y = copy.deepcopy(x)
    assert y.requires_grad
    assert y.grad.tolist() == [1.0, 1.0]
    assert y.data_ptr() != x.data_ptr()
    z = pickle.loads(pickle.dumps(x))
    assert z.requires_grad
    assert z.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="leaf"):
        copy.deepcopy(x * 2)


def test_numbers_and_truth() -> None:
    assert float(wg.tensor(1.5)) == 1.5
    assert int(wg.tensor(7)) == 7
    assert [10, 20][wg.tensor(1)] == 20
    assert bool(wg.tensor([True]))
    assert len(wg.ones(3, 2)) == 3
    assert [row.tolist() for row in wg.ones(2, 1)] == [[1.0], [1.0]]
    assert f"{wg.tensor(1.23456):.2f}" == "1.23"
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(wg.ones(2))
    with pytest.raises(ValueError, match="one element"):
        wg.ones(2).item()
    with pytest.raises(TypeError, match="without axes"):
        len(wg.tensor(1.0))
    assert len({wg.ones(1), wg.ones(1)}) == 2


def test_printing() -> None:
    assert repr(wg.tensor([1.0, 2.5])) == "tensor([1.0, 2.5])"
    assert repr(wg.tensor([[1.0, 2.0], [3.0, 4.0]])) == "tensor([[1., 2.],\n        [3., 4.]])"
    assert repr(wg.tensor([1, -20])) == "tensor([  1, -20])"
    assert repr(wg.tensor([True, False])) == "tensor([ True, False])"
    assert repr(wg.tensor(1.5, dtype=F64)) == "tensor(1.5, dtype=float64)"
    assert repr(wg.ones(1, requires_grad=True)) == "tensor([1.], requires_grad=True)"
    assert repr(wg.ones(1, requires_grad=True).exp()) == "tensor([2.7183], grad_fn=<ExpBackward>)"
    assert repr(wg.tensor([1e-9, 1.0])) == "tensor([1.0000e-09, 1.0000e+00])"
    assert repr(wg.tensor([float("nan"), float("-inf")])) == "tensor([ nan, -inf])"
    assert repr(wg.zeros(0, 2)) == "tensor([], shape=(0, 2))"
    assert repr(wg.arange(2000)).startswith("tensor([   0,    1,    2, ..., 1997, 1998, 1999]")
    assert repr(wg.ones(50, 50)).count("\n") == 6
    shown = []
    wg.vmap(lambda x: (shown.append(repr(x)), x)[1])(wg.ones(3, 2))
    assert shown == ["Batched(shape=(2,), of a batch of 3)"]
    wg.jvp(lambda x: (shown.append(repr(x)), x)[1], (wg.ones(2),), (wg.ones(2),))
    assert shown[1] == "Dual(shape=(2,))"
