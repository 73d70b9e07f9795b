"""Training on several ranks against one that sees the data of all: `DataParallel`, gradients bit for bit, in
buckets; `SyncBatchNorm`; `ZeroRedundancyOptimizer`.
"""

from pathlib import Path
from typing import Any

import pytest
from distributed.running import failing, run
from distributed.training import ran


@pytest.mark.parametrize("count", [1, 2, 3])
def test_gradients_are_averages(tmp_path: Path, count: int) -> None:
    assert ran(count, "averages", tmp_path) == ["averaged module.0.bias\n"] * count


def check_overlap(count: int, folder: Path, **environment: Any) -> None:
    """Fails unless all messages but the last leave during backward, and the first arrives."""
    layer = 4 * (400 * 400 + 400)
    sizes = [4 * 2005 + 2 * layer - 1600, 2 * layer, 2 * layer, 1600]
    expected = f"[9, 5, 1, 0] {[(size, size == 1600) for size in sizes]}\n"
    # With shards the last message has the loss and 14 counts, too.
    sizes = [4 * 2005 + 2 * layer, 2 * layer, layer, layer + 4 * 15]
    expected += f"{[(size, size == sizes[-1]) for size in sizes]}\n"
    assert ran(count, "overlap", folder, **environment) == [expected] * count


def test_gradients_travel_during_backward(tmp_path: Path) -> None:
    check_overlap(2, tmp_path)


def test_unused_parameters(tmp_path: Path) -> None:
    found = ran(2, "unused", tmp_path)
    for rank, text in enumerate(found):
        assert text == (
            f"DataParallel: backward on rank {rank} reaches no right.weight, right.bias, never.weight, "
            "never.bias, whose gradients the other ranks may wait for; use them, or pass "
            "find_unused_parameters=True\n"
            "DataParallel: no parameter of the model requires a gradient; call the model itself\n"
        )


def test_ranks_without_data_join(tmp_path: Path) -> None:
    assert ran(3, "joined", tmp_path) == ["joined\n"] * 3


def test_other_models_are_named(tmp_path: Path) -> None:
    ended = failing(2, "distributed.DataParallel(wg.nn.Linear(2, 3 + rank))", tmp_path)
    assert ended.code != 0
    assert "parameter or buffer 0 of rank 1 is ['weight', '(4, 2)', 'wengert.float32', True]" in ended.err, (
        ended.err
    )


def test_dropout_averages_and_halves(tmp_path: Path) -> None:
    pickled = "DataParallel: save model.module or model.state_dict(); ranks cannot be pickled\n"
    shards = "DataParallel: with grain= the gradients of ranks are averaged by model.backward(function\n"
    assert ran(2, "habits", tmp_path) == [pickled + shards + pickled + "agreed 2\n"] * 2


CAUGHT = """
import time
from wengert import nn

for grain in (None, size):
    net = nn.Sequential(*[nn.Linear(400, 400) for _ in range(3)], nn.BatchNorm1d(400))
    model = distributed.DataParallel(net, grain=grain, bucket_cap_mb=0.5)
    # One rank sends late; the other one waits for it in a thread.
    owner, name = (model.shards, "_mean") if grain else (model.reducer, "_average")
    plain = getattr(owner, name)
    setattr(owner, name, lambda *args: (time.sleep(0.3 * rank * (step == 1)), plain(*args))[1])
    def fail(grad):
        if step == 1:
            raise ValueError("in the middle of backward")
    net[0].weight.register_hook(fail)
    loss = lambda x: model(x).square().mean()
    for step in range(3):
        model.zero_grad()
        x = wg.ones(2, 400) * rank
        try:
            model.backward(loss, x) if grain else loss(x).backward()
        except ValueError as error:
            print(error)
"""


def test_a_backward_that_fails_on_all_ranks_can_be_left(tmp_path: Path) -> None:
    assert run(2, CAUGHT, tmp_path) == ["in the middle of backward\n" * 2] * 2


FAILS = """
from wengert.distributed import DataParallel

model = DataParallel(wg.nn.Sequential(*[wg.nn.Linear(400, 400) for _ in range(6)]), bucket_cap_mb=1.0)
for step in range(9):
    loss = model(wg.ones(2, 400)).sum()
    if rank == 1 and step == 4:
        raise ValueError("no more of it")
    loss.backward()
"""


def test_a_rank_that_fails_ends_those_that_wait_for_its_gradients(tmp_path: Path) -> None:
    ended = failing(3, FAILS, tmp_path)
    assert ended.code != 0
    assert ended.seconds < 30
    assert ended.err.count("Traceback") == 1
    assert ended.err.rstrip().endswith("ValueError: no more of it"), ended.err


def test_statistics_of_batches_are_those_of_all_ranks(tmp_path: Path) -> None:
    assert [round(float(text), 3) for text in ran(3, "norms", tmp_path)] == [-1.225, 0.0, 1.225]


@pytest.mark.parametrize("count", [1, 3])
def test_divided_steps_are_those_of_the_optimiser(tmp_path: Path, count: int) -> None:
    # All ranks together hold two moments of four bytes for each of 13010 elements.
    assert sum(map(int, ran(count, "steps", tmp_path))) == 8 * 13010
