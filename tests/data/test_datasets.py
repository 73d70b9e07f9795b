"""Datasets: their samples against lists, and what they say of arguments that do not fit."""

import itertools
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
import wengert as wg
from wengert.utils.data import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)


class Count(IterableDataset[int]):
    def __init__(self, n: int) -> None:
        self.n = n

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.n))

    def __len__(self) -> int:
        return self.n


class Batched(Dataset[int]):
    """Counts how often it is asked."""

    def __init__(self, n: int, wrong: bool = False) -> None:
        self.n, self.wrong, self.calls = n, wrong, 0

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> int:
        return index * 10

    def __getitems__(self, indices: list[int]) -> list[int]:
        self.calls += 1
        return [index * 10 for index in indices][self.wrong :]


def test_what_a_subclass_must_define() -> None:
    class Nothing(Dataset[Any]):
        pass

    class NoOrder(IterableDataset[Any]):
        pass

    with pytest.raises(NotImplementedError, match=r"Nothing: define __getitem__\(self, index\)"):
        Nothing()[0]
    with pytest.raises(NotImplementedError, match=r"NoOrder: define __iter__\(self\)"):
        iter(NoOrder())
    assert not hasattr(Nothing(), "__len__")
    assert Dataset[int].__origin__ is Dataset  # type: ignore[attr-defined]


def test_tensor_dataset() -> None:
    x, y = wg.arange(6).reshape(3, 2), wg.tensor([5, 6, 7])
    data = TensorDataset(x, y)
    assert len(data) == 3
    assert data.tensors == (x, y)
    assert [(a.tolist(), b.item()) for a, b in (data[i] for i in range(3))] == [
        ([0, 1], 5),
        ([2, 3], 6),
        ([4, 5], 7),
    ]
    assert data[-1][1].item() == 7
    assert pickle.loads(pickle.dumps(data))[2][0].tolist() == [4, 5]


def test_tensor_dataset_says_which_tensor_differs() -> None:
    with pytest.raises(
        ValueError, match=r"^TensorDataset: tensor 2 has 3 rows, tensor 0 has 4; the first axes"
    ):
        TensorDataset(wg.ones(4), wg.ones(4, 2), wg.ones(3))
    with pytest.raises(ValueError, match="tensor 1 has no axes"):
        TensorDataset(wg.ones(4), wg.tensor(1.0))
    with pytest.raises(ValueError, match="at least one tensor expected, got none"):
        TensorDataset()


def test_stack_dataset() -> None:
    assert StackDataset("abc", [1, 2, 3])[1] == ("b", 2)
    named = StackDataset(x="abc", y=[1, 2, 3])
    assert len(named) == 3
    assert named[2] == {"x": "c", "y": 3}
    assert named.__getitems__([2, 0]) == [{"x": "c", "y": 3}, {"x": "a", "y": 1}]
    inner = Batched(3)
    assert StackDataset(inner, "abc").__getitems__([2, 1]) == [(20, "c"), (10, "b")]
    assert inner.calls == 1
    with pytest.raises(ValueError, match=r"Batched.__getitems__ returned 1 samples for 2 indices"):
        StackDataset(Batched(3, wrong=True)).__getitems__([0, 1])
    with pytest.raises(ValueError, match=r"dataset 'y' has 2 samples, dataset 'x' has 3"):
        StackDataset(x="abc", y=[1, 2])
    with pytest.raises(ValueError, match=r"dataset 1 has 2 samples, dataset 0 has 3"):
        StackDataset("abc", [1, 2])
    for arguments, keywords in ((["a"], {"x": "a"}), ([], {})):
        with pytest.raises(
            ValueError, match="datasets are given by position, which makes tuples, or by keyword"
        ):
            StackDataset(*arguments, **keywords)


def test_subset() -> None:
    inner = Batched(9)
    part = Subset(inner, [7, 2, 4])
    assert len(part) == 3
    assert [part[i] for i in range(3)] == [70, 20, 40]
    assert part.__getitems__([2, 0]) == [40, 70]
    assert inner.calls == 1
    assert Subset("abcdef", [5, 0]).__getitems__([1, 0]) == ["a", "f"]
    rows = Subset(wg.arange(10) * 10, [7, 2, 4])
    assert rows[[0, 2]].tolist() == [70, 40]


def test_concat_dataset() -> None:
    parts = ["ab", "", "cdef", "g"]
    data = ConcatDataset(parts)
    everything = "".join(parts)
    assert data.cumulative_sizes == [2, 2, 6, 7] == ConcatDataset.cumsum(parts)
    assert [data[i] for i in range(-7, 7)] == [everything[i] for i in range(-7, 7)]
    assert list(data) == list(everything)  # type: ignore[call-overload]
    for index in (7, -8):
        with pytest.raises(IndexError, match=f"index {index} is outside of a dataset of 7 samples"):
            data[index]
    both = Batched(2) + Batched(3)
    assert isinstance(both, ConcatDataset)
    assert [both[i] for i in range(5)] == [0, 10, 0, 10, 20]
    with pytest.raises(ValueError, match="at least one dataset expected"):
        ConcatDataset([])
    with pytest.raises(
        TypeError, match="dataset 1 is an IterableDataset, which has no indices; use ChainDataset"
    ):
        ConcatDataset(["ab", Count(2)])


def test_chain_dataset() -> None:
    data = Count(2) + Count(3)
    assert isinstance(data, ChainDataset)
    assert list(data) == [0, 1, 0, 1, 2]
    assert len(data) == 5
    with pytest.raises(TypeError, match="dataset 1 is a list, an IterableDataset expected"):
        list(ChainDataset([Count(1), [1]]))


@pytest.mark.parametrize(
    ("n", "lengths", "expected"),
    [
        (10, [3, 7], [3, 7]),
        (10, [0.5, 0.5], [5, 5]),
        (10, [0.3, 0.3, 0.4], [3, 3, 4]),
        # Rounded down to 2, 2, 2; the sample that is left goes to the first.
        (7, [1 / 3, 1 / 3, 1 / 3], [3, 2, 2]),
        (11, [0.25, 0.25, 0.25, 0.25], [3, 3, 3, 2]),
        (4, [4, 0], [4, 0]),
        (1, [1], [1]),
        (0, [0, 0], [0, 0]),
    ],
)
def test_random_split(n: int, lengths: list[float], expected: list[int]) -> None:
    parts = random_split(range(n), lengths)
    assert [len(part) for part in parts] == expected
    assert sorted(itertools.chain.from_iterable(part.indices for part in parts)) == list(range(n))


def test_random_split_draws_from_the_stream() -> None:
    def drawn() -> list[int]:
        return [*random_split(range(100), [60, 40])[0].indices]

    wg.manual_seed(1)
    first, second = drawn(), drawn()
    wg.manual_seed(1)
    assert drawn() == first != second


def test_random_split_draws_from_a_generator() -> None:
    state = wg.get_rng_state()
    one, two = (
        random_split(range(100), [60, 40], generator=wg.Generator().manual_seed(seed))[0].indices
        for seed in (4, 4)
    )
    assert one == two
    assert wg.get_rng_state() == state


def test_random_split_arguments() -> None:
    text = r"lengths \[3, 3\] given; numbers that sum to 10, as many as there are samples, or fractions that sum to 1"
    with pytest.raises(ValueError, match=text):
        random_split(range(10), [3, 3])
    for lengths in ([12, -2], [0.5, 0.4], [2.5, 7.5]):
        with pytest.raises(ValueError, match="or fractions that sum to 1 expected"):
            random_split(range(10), lengths)
    with pytest.raises(ValueError, match=r"fraction 0 is 1.5, between 0 and 1 expected"):
        random_split(range(10), [1.5, -0.5])
    with pytest.warns(UserWarning, match="subset 1 has no samples"):
        random_split(range(2), [0.9, 0.1])
