"""`Tensor(...)` takes lengths or data, as PyTorch's class does, and so do the classes of the other dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from wengert import Tensor

# What is given: dtype, shape and elements of the result.
GIVEN: dict[str, tuple[Callable[[], Tensor], Any, tuple[int, ...], Any]] = {
    "nothing": (lambda: Tensor(), wg.float32, (0,), []),
    "a length": (lambda: Tensor(3), wg.float32, (3,), [0, 0, 0]),
    "a NumPy length": (lambda: Tensor(np.int64(2)), wg.float32, (2,), [0, 0]),
    "lengths": (lambda: Tensor(1, 2), wg.float32, (1, 2), [[0, 0]]),
    "a size": (lambda: Tensor(wg.Size([2, 1])), wg.float32, (2, 1), [[0], [0]]),
    "integers": (lambda: Tensor([1, 2]), wg.float32, (2,), [1, 2]),
    "a tuple": (lambda: Tensor((2, 3)), wg.float32, (2,), [2, 3]),
    "truth values": (lambda: Tensor([True, False]), wg.float32, (2,), [1, 0]),
    "rows": (lambda: Tensor([[1.5, 2], [3, 4]]), wg.float32, (2, 2), [[1.5, 2], [3, 4]]),
    "an empty list": (lambda: Tensor([]), wg.float32, (0,), []),
    "an integer array": (lambda: Tensor(np.arange(3)), wg.float32, (3,), [0, 1, 2]),
    "a float64 array": (lambda: Tensor(np.ones(2)), wg.float32, (2,), [1, 1]),
    "a number as array": (lambda: Tensor(np.array(3.0)), wg.float32, (), 3),
    "a tensor": (lambda: Tensor(wg.arange(2)), wg.int64, (2,), [0, 1]),
    "data by name": (lambda: Tensor(data=[1, 2]), wg.float32, (2,), [1, 2]),
    "a range": (lambda: Tensor(range(3)), wg.float32, (3,), [0, 1, 2]),
    "FloatTensor": (lambda: wg.FloatTensor([1, 2]), wg.float32, (2,), [1, 2]),
    "DoubleTensor": (lambda: wg.DoubleTensor(1), wg.float64, (1,), [0]),
    "HalfTensor": (lambda: wg.HalfTensor([1.5]), wg.float16, (1,), [1.5]),
    "BFloat16Tensor": (lambda: wg.BFloat16Tensor([1.5]), wg.bfloat16, (1,), [1.5]),
    "LongTensor": (lambda: wg.LongTensor([1.9, 2]), wg.int64, (2,), [1, 2]),
    "LongTensor of lengths": (lambda: wg.LongTensor(1, 2), wg.int64, (1, 2), [[0, 0]]),
    "IntTensor": (lambda: wg.IntTensor(np.arange(2)), wg.int32, (2,), [0, 1]),
    "ShortTensor": (lambda: wg.ShortTensor([3]), wg.int16, (1,), [3]),
    "CharTensor": (lambda: wg.CharTensor([-3]), wg.int8, (1,), [-3]),
    "ByteTensor": (lambda: wg.ByteTensor([3]), wg.uint8, (1,), [3]),
    "BoolTensor": (lambda: wg.BoolTensor([1, 0]), wg.bool, (2,), [True, False]),
}


@pytest.mark.parametrize("name", GIVEN)
def test_what_is_made(name: str) -> None:
    make, dtype, shape, elements = GIVEN[name]
    made = make()
    assert type(made) is Tensor
    assert (made.dtype, tuple(made.shape), made.tolist()) == (dtype, shape, elements)


@pytest.mark.parametrize("value", [2.5, True, None, "ab", 1j, np.float32(3)], ids=repr)
def test_numbers_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=r"wengert\.tensor makes a tensor of a number"):
        Tensor(value)


def test_data_is_given_once() -> None:
    with pytest.raises(TypeError, match="give it once"):
        Tensor([1], data=[1])


def test_a_negative_length_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be negative"):
        Tensor(-1)
    with pytest.raises(TypeError, match="LongTensor: a tensor of int64 expected, got float32"):
        wg.LongTensor(wg.ones(2))


def test_memory_and_history() -> None:
    source = np.ones(2, dtype=np.float32)
    Tensor(source)[0] = 5.0
    assert source.tolist() == [5, 1]
    x = wg.ones(2, requires_grad=True)
    y = Tensor(x * 2)
    assert not y.requires_grad
    z = wg.ones(2)
    Tensor(z)[0] = 7.0
    assert z.tolist() == [7, 1]


def test_classes_tell_dtypes() -> None:
    assert isinstance(wg.ones(2), wg.FloatTensor)
    assert not isinstance(wg.ones(2), wg.LongTensor)
    assert not isinstance([1.0], wg.FloatTensor)


@pytest.mark.parametrize(
    "kind", ["torch.DoubleTensor", "DoubleTensor", wg.DoubleTensor, wg.float64, "float64"], ids=repr
)
def test_type_converts(kind: Any) -> None:
    assert wg.zeros(2).type(kind).dtype == wg.float64


def test_type_refuses_other_names() -> None:
    with pytest.raises(TypeError, match="not a dtype"):
        wg.zeros(2).type("torch.cuda.FloatTensor")


def test_size() -> None:
    size = wg.Size([2, 3, 4])
    assert size.numel() == 24
    assert size == (2, 3, 4)
    assert type(size[1:]) is wg.Size
    assert size[1:].numel() == 12
    assert type(size + wg.Size([5])) is wg.Size
    assert repr(size) == "Size([2, 3, 4])"
    assert wg.zeros(size).shape == size


def test_numbers_of_numpy_in_lists_keep_their_dtype() -> None:
    for number in (np.float64(1.5), np.float32(1.5), np.float16(1.5), np.complex128(1j), np.complex64(1j)):
        for make in (wg.tensor, wg.as_tensor, wg.asarray):
            made = make([number, number])
            assert (made.numpy().dtype, made.tolist()) == (number.dtype, [number.item()] * 2)
    assert wg.tensor([1.5, 1]).dtype == wg.float32
