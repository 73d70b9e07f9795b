"""Collating against NumPy's stacking and against plain Python, and the errors of samples that do not fit."""

import re
from collections import OrderedDict, UserDict, UserList, defaultdict
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest
import wengert as wg
from wengert.utils.data import default_collate, default_convert


class Point(NamedTuple):
    x: Any
    y: Any


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
def test_tensors_and_arrays(dtype: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    arrays = [np.asarray(rng.integers(0, 2, shape)).astype(dtype) for _ in range(4)]
    for samples in (arrays, [wg.tensor(a) for a in arrays]):
        batch = default_collate(samples)
        assert batch.dtype is getattr(wg, dtype)
        np.testing.assert_array_equal(batch.numpy(), np.stack(arrays))


def test_arrays_of_any_layout() -> None:
    array = np.arange(12.0).reshape(3, 4)
    samples = [array.T, array[::-1, ::-1].T]
    np.testing.assert_array_equal(default_collate(samples).numpy(), np.stack(samples))


@pytest.mark.parametrize(
    ("samples", "dtype"),
    [
        ([1, 2, -3], wg.int64),
        ([True, False], wg.bool),
        ([1.5, 2.5], wg.float64),
        ([np.float32(1.5), np.float32(2)], wg.float32),
        ([np.float64(1.5), np.float64(2)], wg.float64),
        ([np.int32(1), np.int32(2)], wg.int32),
        ([np.bool_(True), np.bool_(False)], wg.bool),
    ],
)
def test_numbers(samples: list[Any], dtype: Any) -> None:
    batch = default_collate(samples)
    assert batch.dtype is dtype
    assert batch.tolist() == samples


def test_texts_stay() -> None:
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([b"a", b"b"]) == [b"a", b"b"]
    assert default_collate([np.str_("a")]) == ["a"]


def test_structures() -> None:
    samples = [{"a": (i, [float(i), "t"]), "p": Point(wg.full((2,), i), {"z": i})} for i in range(3)]
    batch = default_collate(samples)
    assert list(batch) == ["a", "p"]
    first, (second, texts) = batch["a"]
    assert isinstance(batch["a"], list)
    assert first.tolist() == [0, 1, 2]
    assert (second.dtype, second.tolist()) == (wg.float64, [0, 1, 2])
    assert list(texts) == ["t", "t", "t"]
    assert isinstance(batch["p"], Point)
    assert batch["p"].x.tolist() == [[0, 0], [1, 1], [2, 2]]
    assert batch["p"].y["z"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "make", [dict, OrderedDict, UserDict, lambda d: defaultdict(int, d), lambda d: MappingProxyType(d)]
)
def test_mappings_keep_their_kind(make: Any) -> None:
    batch = default_collate([make({"a": 1}), make({"a": 2})])
    assert type(batch) is type(make({}))
    assert batch["a"].tolist() == [1, 2]
    assert type(default_convert(make({"a": np.ones(1)}))) is type(make({}))


def test_mappings_and_sequences_that_cannot_be_made_again() -> None:
    class Odd(UserDict[str, Any]):
        def __copy__(self) -> Any:
            raise TypeError

    class OddList(UserList[Any]):
        def __copy__(self) -> Any:
            raise TypeError

    assert type(default_collate([Odd(a=1)])) is dict
    assert type(default_collate([OddList([1])])) is list
    assert type(default_collate([UserList([1])])) is UserList
    assert type(default_collate([range(2), range(2)])) is list


def test_samples_are_not_changed() -> None:
    sample = {"a": [1, 2]}
    default_collate([sample, sample])
    default_convert(sample)
    assert sample == {"a": [1, 2]}


def test_keys_of_the_first_sample_count() -> None:
    assert list(default_collate([{"a": 1}, {"a": 2, "b": 3}])) == ["a"]


@pytest.mark.parametrize(
    ("samples", "kind", "text"),
    [
        (
            [wg.ones(3), wg.ones(3), wg.ones(2)],
            wg.ShapeError,
            "sample 2 has shape (2,), sample 0 has (3,); make them equal in the dataset, or pad them",
        ),
        (
            [{"x": (0, np.ones(1))}, {"x": (0, np.ones((1, 1)))}],
            wg.ShapeError,
            "sample 1['x'][1] has shape (1, 1), sample 0 has (1,)",
        ),
        ([[1, 2], [3]], wg.ShapeError, "sample 1 is a list of length 1, sample 0 is a list of length 2"),
        ([{"x": [1]}, {"x": 3}], wg.ShapeError, "sample 1['x'] is an int, sample 0 is a list of length 1"),
        (
            [wg.ones(1), 2.0],
            TypeError,
            "sample 1 is a float, sample 0 is a Tensor; samples must be of one type",
        ),
        ([1, "a"], TypeError, "sample 1 is a str, sample 0 is an int"),
        ([1.0, None], TypeError, "sample 1 is None, sample 0 is a float"),
        ([(1, None), (2, None)], TypeError, "but sample 0[1] is None; use a collate_fn of your own"),
        ([np.array(["a"])], TypeError, "but sample 0 is a ndarray of dtype <U1"),
        ([np.array([None])], TypeError, "but sample 0 is a ndarray of dtype object"),
        ([object()], TypeError, "but sample 0 is an object"),
        ([{"a": 1}, {"b": 1}], KeyError, "sample 1 has no 'a', which sample 0 has"),
        ([{"a": 1}, 3], KeyError, "sample 1 has no 'a', which sample 0 has"),
        ([], ValueError, "at least one sample expected, got none"),
    ],
)
def test_errors_say_where(samples: list[Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=re.escape(text)) as caught:
        default_collate(samples)
    assert "default_collate: " in str(caught.value)


def test_convert() -> None:
    x = wg.ones(2)
    assert default_convert(x) is x
    array = np.arange(3)
    assert default_convert(array).tolist() == [0, 1, 2]
    assert default_convert(np.float32(2)).dtype is wg.float32
    text = np.array(["a"])
    assert default_convert(text) is text
    for same in (1, 2.5, "a", b"a", None, {1, 2}):
        assert default_convert(same) is same
    converted = default_convert({"p": Point(array, "t"), "l": [array], "t": (array, 1)})
    assert isinstance(converted["p"], Point)
    assert isinstance(converted["p"].x, wg.Tensor)
    assert converted["p"].y == "t"
    assert isinstance(converted["l"][0], wg.Tensor)
    assert isinstance(converted["t"], list)
    assert isinstance(converted["t"][0], wg.Tensor)


def test_gradients_go_through() -> None:
    x = wg.ones(2, 3, requires_grad=True)
    default_collate([x[0], x[1] * 2]).sum().backward()
    assert x.grad.tolist() == [[1, 1, 1], [2, 2, 2]]
