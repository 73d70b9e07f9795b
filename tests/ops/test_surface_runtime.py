"""What surrounds the tensors: random streams, threads, memory."""

import wengert as wg
from wengert.testing import assert_close

F64 = wg.float64


def test_random_streams() -> None:
    wg.manual_seed(1)
    a = wg.randn(5)
    state = wg.get_rng_state()
    b = wg.rand(5)
    wg.manual_seed(1)
    assert_close(wg.randn(5), a)
    wg.set_rng_state(state)
    assert_close(wg.rand(5), b)
    assert sorted(wg.randperm(10).tolist()) == list(range(10))
    assert wg.randint(3, (100,)).max().item() == 2
    assert wg.randint(5, 7, (100,)).min().item() == 5
    assert abs(wg.normal(3.0, 0.1, (2000,)).mean().item() - 3) < 0.02
    assert wg.rand_like(wg.ones(2, dtype=F64)).dtype == F64


def test_threads_and_memory() -> None:
    before = wg.get_num_threads()
    wg.set_num_threads(1)
    assert wg.get_num_threads() == 1
    wg.set_num_threads(before)
    live = wg.memory.live_bytes()
    x = wg.zeros(1000)
    assert wg.memory.live_bytes() - live == 4000
    del x
    assert wg.memory.live_bytes() == live
