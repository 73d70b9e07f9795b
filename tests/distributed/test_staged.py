"""Exchanges in programs of `jit`: each stays, in its place, since other processes wait for it."""

from typing import Any

import pytest
import wengert as wg
from wengert import distributed


def exchanges(function: Any, *args: Any, calls: int) -> list[tuple[str, int]]:
    """What so many calls exchange as one of 4 ranks, the others of which are simulated."""

    def step() -> None:
        for _ in range(calls):
            function(*args)

    return distributed.cost(step, axis_size=4).exchanges


def repeated(x: wg.Tensor) -> wg.Tensor:
    """The same sum twice, one that nobody needs, one of a constant, and gathers between loops of elements."""
    first = wg.psum(x, "data")
    wg.psum(x.exp(), "data")
    chain = (x * 2).tanh()
    late = wg.all_gather(chain.sin() + first, "data")
    early = wg.ppermute(x * 3, "data", [(0, 1), (1, 0)])
    constant = wg.psum(wg.ones(3), "data")
    again = wg.psum(x, "data")
    return late.sum(0) * early + again + constant + first


def test_none_is_left_out_merged_or_moved() -> None:
    x = wg.tensor([1.0, 2.0, 3.0])
    expected = exchanges(repeated, x, calls=1)
    assert [what.split()[0] for what, _, _ in expected] == [
        "psum",
        "psum",
        "all_gather",
        "ppermute",
        "psum",
        "psum",
    ]
    staged = wg.jit(repeated)
    assert exchanges(staged, x, calls=3) == 3 * expected
    assert staged.traces == 1
    assert not staged.why()


def test_backward_exchanges_as_eager_does() -> None:
    x = wg.tensor([1.0, 2.0, 3.0])
    loss = lambda x: repeated(x.sin()).square().sum()
    expected = exchanges(wg.grad(loss), x, calls=1)
    assert exchanges(wg.jit(wg.grad(loss)), x, calls=2) == 2 * expected
    again = wg.grad(lambda x: wg.utils.checkpoint.checkpoint(loss, x))
    # Recomputing exchanges once more.
    assert sorted(exchanges(again, x, calls=1)) == sorted(expected + exchanges(loss, x, calls=1))


def test_another_group_is_another_program() -> None:
    x = wg.tensor([1.0, 2.0, 3.0])
    staged = wg.jit(lambda x: wg.psum(x, "data") / wg.axis_size("data"))
    for size in (2, 4, 2, 4):
        told = distributed.cost(lambda: staged(x), axis_size=size)
        assert told.exchanges == [("psum of float32[3]", 12 * (size - 1), size)]
    found = wg.vmap(staged, axis_name="data")(wg.stack([x, 3 * x]))
    assert found.tolist() == [(2 * x).tolist()] * 2
    with pytest.raises(ValueError, match="there is no axis 'data'"):
        staged(x)


def test_shapes_need_no_exchange() -> None:
    x = wg.tensor([1.0, 2.0, 3.0])

    def step() -> None:
        found = wg.eval_shape(lambda x: wg.all_gather(x, "data"), x)
        assert found.shape == (4, 3)

    assert distributed.cost(step, axis_size=4).exchanges == []


def test_a_step_of_data_parallel_says_why_it_is_no_program() -> None:
    model = distributed.DataParallel(wg.nn.Linear(3, 1))
    staged = wg.jit(lambda x: model(x).sum())
    staged(wg.ones(2, 3))
    [reason] = staged.why()
    assert reason.startswith("a group of ranks, such as DataParallel has")
