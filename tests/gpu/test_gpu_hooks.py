"""Hooks and modes where values lie on a GPU."""

import gc
import weakref

import numpy as np
import pytest
import wengert as wg
from wengert.autograd import graph


def leaf() -> wg.Tensor:
    return wg.tensor([0.5, 1.0, 2.0], device="gpu").requires_grad_()


def test_save_on_cpu_offloads_and_brings_back() -> None:
    x = leaf()
    with graph.save_on_cpu():
        y = x.exp() * x
    assert y.is_gpu
    devices: list[str] = []
    node = y.grad_fn
    while node is not None and not node.is_leaf:
        node.register_prehook(lambda gs: devices.append(str(gs[0].device)))
        node = node.next_functions[0][0]
    y.sum().backward()
    values = x.detach().cpu().numpy()
    np.testing.assert_allclose(x.grad.cpu().numpy(), np.exp(values) * (1 + values), rtol=1e-5)
    assert x.grad.is_gpu
    assert set(devices) == {"gpu:0"}


def test_what_is_kept_lies_in_host_memory() -> None:
    x = leaf()
    kept: list[wg.Tensor] = []

    class Watch(graph.save_on_cpu):
        def __init__(self) -> None:
            super().__init__()
            pack = self.pack

            def watched(t: wg.Tensor):
                packed = pack(t)
                kept.append(packed[1])
                return packed

            self.pack = watched

    with Watch():
        y = x.exp()
    assert [t.is_gpu for t in kept] == [False]
    assert y.grad_fn.saved_bytes == 12


def test_hooks_replace_gradients_on_their_device() -> None:
    x = leaf()
    x.register_hook(lambda g: g * 2)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [6.0] * 3
    x.register_hook(lambda g: g.cpu())
    with pytest.raises(RuntimeError, match="a gradient of device cpu, expected gpu:0 as it was given"):
        (x * 3).sum().backward()
    with pytest.raises(RuntimeError, match="shape, dtype and device must agree"):
        x.grad = wg.ones(3)


def test_constants_made_in_inference_mode_can_be_saved_later() -> None:
    with wg.inference_mode():
        y = wg.ones(3, device="gpu") * 1.2345
    assert y.is_inference()
    x = leaf()
    (x * 1.2345 + x**1.2345).sum().backward()
    assert x.grad is not None


def test_data_of_gpu_memory() -> None:
    x = leaf()
    x.data.mul_(2)
    assert x.tolist() == [1.0, 2.0, 4.0]
    assert x._version == 0


def test_random_numbers_of_a_batch() -> None:
    rows = wg.vmap(lambda x: x + wg.rand(3, device="gpu"), randomness="different")(
        wg.zeros(4, 3, device="gpu")
    )
    assert len({tuple(row) for row in rows.tolist()}) == 4


def test_a_cycle_is_collected() -> None:
    x = leaf()
    x.register_hook(lambda g, x=x: None)
    watch = weakref.ref(x)
    del x
    gc.collect()
    assert watch() is None
