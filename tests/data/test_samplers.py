"""Samplers: permutations, frequencies and grouping against closed forms; what random orders depend on."""

import itertools
from collections import Counter
from typing import Any

import pytest
import wengert as wg
from wengert.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

#: Samplers of random orders, made with or without a generator.
RANDOM: dict[str, Any] = {
    "permutation": lambda **given: RandomSampler(range(50), **given),
    "longer": lambda **given: RandomSampler(range(50), num_samples=120, **given),
    "replacement": lambda **given: RandomSampler(range(50), replacement=True, **given),
    "subset": lambda **given: SubsetRandomSampler(range(100, 150), **given),
    "weights": lambda **given: WeightedRandomSampler([1.0, 2.0, 3.0] * 10, 50, **given),
    "weights, each once": lambda **given: WeightedRandomSampler([1.0] * 60, 50, replacement=False, **given),
}


def test_sequential() -> None:
    assert list(SequentialSampler("abcd")) == [0, 1, 2, 3]
    assert len(SequentialSampler("abcd")) == 4
    with pytest.raises(NotImplementedError, match=r"Sampler: define __iter__\(self\)"):
        iter(Sampler("abcd"))


def test_permutations() -> None:
    sampler = RandomSampler(range(100))
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(100))
    assert first != second
    assert len(sampler) == 100
    assert sorted(SubsetRandomSampler([9, 3, 5])) == [3, 5, 9]
    assert len(SubsetRandomSampler([9, 3, 5])) == 3


def test_every_permutation_is_as_likely() -> None:
    counts = Counter(tuple(RandomSampler("abc")) for _ in range(1200))
    assert set(counts) == set(itertools.permutations(range(3)))
    # 200 of each expected with a deviation of 13.
    assert all(130 < count < 270 for count in counts.values())


def test_num_samples_without_replacement_are_permutations_one_after_another() -> None:
    sampler = RandomSampler(range(4), num_samples=10)
    drawn = list(sampler)
    assert len(drawn) == len(sampler) == 10
    assert sorted(drawn[:4]) == sorted(drawn[4:8]) == [0, 1, 2, 3]
    assert len(set(drawn[8:])) == 2
    assert len(set(RandomSampler(range(10), num_samples=3))) == 3


def test_replacement() -> None:
    sampler = RandomSampler(range(5), replacement=True, num_samples=5000)
    counts = Counter(sampler)
    assert len(sampler) == sum(counts.values()) == 5000
    # 1000 of each expected with a deviation of 28.
    assert sorted(counts) == [0, 1, 2, 3, 4]
    assert all(860 < count < 1140 for count in counts.values())
    endless = RandomSampler(range(5), replacement=True, num_samples=10**15)
    assert len(list(itertools.islice(endless, 10))) == 10


def test_weights() -> None:
    counts = Counter(WeightedRandomSampler([1.0, 0.0, 3.0], 4000))
    assert sorted(counts) == [0, 2]
    # 1000 expected with a deviation of 27.
    assert 860 < counts[0] < 1140
    once = WeightedRandomSampler(wg.tensor([0.1, 5.0, 2.0]), 3, replacement=False)
    assert sorted(once) == [0, 1, 2]
    assert len(once) == 3


@pytest.mark.parametrize("n", [0, 1, 6, 7, 8])
@pytest.mark.parametrize("size", [1, 3, 4, 10])
@pytest.mark.parametrize("drop_last", [False, True])
def test_batches(n: int, size: int, drop_last: bool) -> None:
    expected = [list(range(start, min(start + size, n))) for start in range(0, n, size)]
    if drop_last:
        expected = [batch for batch in expected if len(batch) == size]
    sampler = BatchSampler(SequentialSampler(range(n)), size, drop_last)
    assert list(sampler) == expected
    assert len(sampler) == len(expected)


@pytest.mark.parametrize("name", RANDOM)
def test_an_order_depends_on_the_seed(name: str) -> None:
    sampler = RANDOM[name]()
    wg.manual_seed(3)
    first, second = list(sampler), list(sampler)
    wg.manual_seed(3)
    assert list(sampler) == first != second


@pytest.mark.parametrize("name", RANDOM)
def test_an_order_depends_on_the_generator_alone(name: str) -> None:
    orders = []
    for seed in (1, 2):
        wg.manual_seed(seed)
        state = wg.get_rng_state()
        orders.append(list(RANDOM[name](generator=wg.Generator().manual_seed(7))))
        assert wg.get_rng_state() == state
    assert orders[0] == orders[1]


@pytest.mark.parametrize("name", RANDOM)
def test_what_a_program_draws_in_between_changes_no_order(name: str) -> None:
    orders = []
    for draws in (False, True):
        wg.manual_seed(5)
        order = []
        for index in RANDOM[name]():
            order.append(index)
            if draws:
                wg.rand(1)
        orders.append(order)
    assert orders[0] == orders[1]


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "2"])
def test_counts_are_positive_integers(value: Any) -> None:
    for make in (
        lambda: RandomSampler("abc", num_samples=value),
        lambda: WeightedRandomSampler([1.0], value),
        lambda: BatchSampler("abc", value, False),
    ):
        with pytest.raises(ValueError, match=f"is a positive integer, got {value!r}"):
            make()


def test_flags_are_bools() -> None:
    with pytest.raises(TypeError, match="RandomSampler: replacement is True or False, got 1"):
        RandomSampler("abc", replacement=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="WeightedRandomSampler: replacement is True or False, got None"):
        WeightedRandomSampler([1.0], 1, replacement=None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="BatchSampler: drop_last is True or False, got 0"):
        BatchSampler("abc", 1, 0)  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"weights in one axis expected, one of each sample, got shape \(2, 1\)"
    ):
        WeightedRandomSampler([[1.0], [2.0]], 1)
    with pytest.raises(ValueError, match="num_samples is a positive integer, got 0"):
        RandomSampler("")


def test_samplers_draw_from_the_generator_that_they_are_given() -> None:
    def drawn(make: Any) -> list[int]:
        return list(make(wg.Generator().manual_seed(3)))

    state = wg.get_rng_state()
    for make in (
        lambda g: RandomSampler(range(20), generator=g),
        lambda g: SubsetRandomSampler(range(20), generator=g),
        lambda g: WeightedRandomSampler([1.0] * 20, 20, generator=g),
    ):
        assert drawn(make) == drawn(make)
    assert wg.get_rng_state() == state


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(("length", "count"), [(12, 3), (13, 3), (14, 4), (2, 5), (1, 1), (0, 2)])
def test_ranks_share_the_indices(length: int, count: int, shuffle: bool, drop_last: bool) -> None:
    samplers = [
        DistributedSampler(
            range(length), num_replicas=count, rank=rank, shuffle=shuffle, seed=7, drop_last=drop_last
        )
        for rank in range(count)
    ]
    shares = [list(sampler) for sampler in samplers]
    assert {len(share) for share in shares} == {len(sampler) for sampler in samplers}
    each = length // count if drop_last else -(-length // count)
    assert len(shares[0]) == each
    together = [index for turn in zip(*shares) for index in turn]
    if shuffle:
        assert set(Counter(together).values()) <= {
            len(together) // max(length, 1),
            -(-len(together) // max(length, 1)),
        }
    else:
        assert together == [i % length for i in range(each * count)]
    if not drop_last:
        assert set(together) == set(range(length))
    # Each epoch has its own order, the same on all ranks.
    for sampler in samplers:
        sampler.set_epoch(3)
    third = [index for turn in zip(*map(list, samplers)) for index in turn]
    assert sorted(third[:length]) == sorted(together[:length]) or drop_last
    if shuffle and length > 10:
        assert third != together
    assert [list(sampler) for sampler in samplers] == [list(sampler) for sampler in samplers]


def test_orders_of_ranks_depend_on_the_seed_and_the_epoch_alone() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        sampler = DistributedSampler(range(50), 2, 0, seed=seed)
        sampler.set_epoch(epoch)
        return list(sampler)

    first = order(0, 0)
    wg.manual_seed(5)
    assert order(0, 0) == first
    assert order(1, 0) != first
    assert order(0, 1) != first
    for rank in (-1, 2):
        with pytest.raises(ValueError, match=f"DistributedSampler: rank is one of 0..1, got {rank}"):
            DistributedSampler(range(5), 2, rank)
