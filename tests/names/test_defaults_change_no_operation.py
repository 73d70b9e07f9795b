"""Operations do not depend on defaults: with tensors of float32 on the CPU, each record of the suite gives
the same bits whatever the dtype of floats is, and wherever new tensors lie.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import wengert as wg
from samples.op_samples import SAMPLES
from samples.sample import OpSample
from support import array, outputs, random_source

# Functions of numbers, which follow the default on purpose.
MADE = {"linspace", "logspace", "arange", "eye", "full"}


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    wg.set_default_dtype(wg.float32)
    wg.set_default_device(None)


def results(sample: OpSample, change: Callable[[], Any]) -> list[tuple[str, Any]]:
    """Values and gradients of a record, with defaults that `change` sets."""
    source, rng = random_source(3)
    case = sample.case(source)
    values = case.sample(rng)
    wg.set_default_dtype(wg.float32)
    wg.set_default_device(None)
    wg.manual_seed(0)
    kinds = [np.float32 if v.dtype == np.float64 else v.dtype for v in values]
    tensors = [wg.as_tensor(v.astype(kind)) for v, kind in zip(values, kinds, strict=True)]
    for x in tensors:
        if x.is_floating_point():
            x.requires_grad_()
    change()
    found = outputs(sample.fn(*tensors, **case.kwargs))
    told = [(str(y.dtype), y.detach()) for y in found]
    roots = [y for y in found if y.requires_grad]
    if roots:
        wg.autograd.backward(roots, [wg.ones_like(y) for y in roots])
        told += [(str(x.grad.dtype), x.grad) for x in tensors if x.requires_grad and x.grad is not None]
    return [(dtype, array(y)) for dtype, y in told]


def changed() -> None:
    """Another dtype, and a device that is not there: making a tensor on it raises."""
    wg.set_default_dtype(wg.float64)
    wg.set_default_device("gpu:200")


@pytest.mark.parametrize(
    "sample", [s for s in SAMPLES if s.name not in MADE and "float32" in s.dtypes], ids=str
)
def test_records(sample: OpSample) -> None:
    expected = results(sample, lambda: None)
    got = results(sample, changed)
    assert [dtype for dtype, _ in got] == [dtype for dtype, _ in expected]
    for (_, y), (_, reference) in zip(got, expected, strict=True):
        np.testing.assert_array_equal(y, reference)


def trained(kind: str, change: Callable[[], Any]) -> list[Any]:
    """Parameters after three steps of a small network, made before `change`."""
    wg.set_default_dtype(wg.float32)
    wg.set_default_device(None)
    wg.manual_seed(0)
    net = wg.nn.Sequential(
        wg.nn.Linear(4, 6),
        wg.nn.LayerNorm(6),
        wg.nn.GELU(),
        wg.nn.Dropout(0.2),
        wg.nn.Linear(6, 3, bias=False),
    )
    matrices = [p for p in net.parameters() if p.ndim == 2]
    optimizer = getattr(wg.optim, kind)(matrices if kind == "Muon" else net.parameters(), lr=0.01)
    schedule = wg.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3)
    x, target = wg.randn(5, 4), wg.tensor([0, 1, 2, 0, 1])
    change()

    def closure() -> wg.Tensor:
        optimizer.zero_grad()
        loss = wg.nn.functional.cross_entropy(net(x), target)
        loss.backward()
        wg.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        return loss

    for _ in range(3):
        optimizer.step(closure)
        schedule.step()
    return [p.detach().numpy() for p in net.parameters()]


KINDS = [name for name in wg.optim.__all__ if name[0].isupper() and name != "Optimizer"]


@pytest.mark.parametrize("kind", KINDS)
def test_training(kind: str) -> None:
    expected = trained(kind, lambda: None)
    for y, reference in zip(trained(kind, changed), expected, strict=True):
        assert y.dtype == np.float32
        np.testing.assert_array_equal(y, reference)
