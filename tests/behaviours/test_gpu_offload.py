"""Offloading what is saved from a GPU to the host: device memory against transfers."""

import numpy as np
import pytest
import wengert as wg
from behaviours.tape import live
from wengert.autograd.graph import save_on_cpu

N = 1 << 16


@pytest.fixture(autouse=True)
def adapter() -> None:
    """Any adapter will do."""
    wg.ones(1, device="gpu")


def run(x: wg.Tensor) -> wg.Tensor:
    """Eight values to keep."""
    for _ in range(8):
        x = x.tanh()
    return x


def test_offloading_moves_the_bytes_to_the_host_and_back() -> None:
    x = wg.full((N,), 0.5, device="gpu", requires_grad=True)
    held = lambda: wg.gpu.memory_stats()["live_bytes"]
    before = held()
    y = run(x)
    plain = held() - before
    assert plain >= 8 * 4 * N
    (expected,) = wg.autograd.grad(y.sum(), x)
    del y
    before = held()
    with save_on_cpu():
        y = run(x)
    assert held() - before <= plain / 4
    (found,) = wg.autograd.grad(y.sum(), x)
    np.testing.assert_array_equal(found.cpu().numpy(), expected.cpu().numpy())

    def offloaded() -> wg.Tensor:
        with save_on_cpu():
            return run(x)

    assert live(offloaded) >= 8 * 4 * N
