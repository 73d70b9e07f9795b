"""Optimisers, averages and norms at their corners on a GPU."""

import math

import numpy as np
import pytest
import wengert as wg
from references.optim_reference import CASES, FUSED
from wengert import nn
from wengert.nn.utils import get_total_norm
from wengert.optim import swa_utils


@pytest.mark.parametrize("dtype", [wg.float32, wg.float16])
@pytest.mark.parametrize("name", FUSED)
def test_without_decay_an_infinite_parameter_stays_infinite(name, dtype):
    make, _, settings = CASES[name]
    settings = {**settings, "weight_decay": 0.0}
    found = []
    for device in ("gpu", "cpu"):
        p = wg.tensor([math.inf, 1.0], dtype=dtype, device=device).requires_grad_()
        p.grad = wg.ones_like(p.detach())
        optimizer = make([p], **settings)
        for _ in range(2):
            optimizer.step()
        moments = [
            v.cpu().isfinite().all().item() for v in optimizer.state[p].values() if isinstance(v, wg.Tensor)
        ]
        assert all(moments)
        found.append(p.detach().cpu())
    assert found[0][0].item() == math.inf
    assert wg.allclose(found[0][1], found[1][1], rtol=1e-3)


@pytest.mark.parametrize("dtype", [wg.float32, wg.bfloat16])
@pytest.mark.parametrize("name", CASES)
def test_every_rule_as_on_the_cpu(name, dtype):
    make, _, settings = CASES[name]
    start, found = np.random.default_rng(1).standard_normal((3, 40)), []
    for device in ("gpu", "cpu"):
        numbers = np.random.default_rng(2)
        params = [wg.tensor(x, dtype=dtype, device=device).requires_grad_() for x in (start, start[0])]
        optimizer = make(params, **settings)
        for _ in range(5):
            for p in params:
                p.grad = wg.tensor(numbers.standard_normal(tuple(p.shape)), dtype=dtype, device=device)
            optimizer.step()
        found.append([p.detach().cpu().float().numpy() for p in params])
    for gpu, cpu in zip(*found):
        tolerance = 1e-4 if dtype == wg.float32 else 0.05
        np.testing.assert_allclose(gpu, cpu, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "settings", [{}, {"avg_fn": lambda a, p, n: a + (p - a) / (n + 1)}], ids=["default", "own"]
)
def test_the_average_of_a_model(settings):
    model = nn.Linear(2, 1, bias=False).to("gpu")
    average = swa_utils.AveragedModel(model, **settings)
    for value in (1.0, 2.0, 6.0):
        nn.init.constant_(model.weight, value)
        average.update_parameters(model)
    assert str(average.module.weight.device) == "gpu:0"
    assert average.module.weight.tolist() == [[3.0, 3.0]]


@pytest.mark.parametrize("p", [0, 1, 3, math.inf, -math.inf, -1])
def test_norms(p):
    tensors = [wg.tensor([1.0, -2.0]), wg.tensor([3.0])]
    found = get_total_norm([x.gpu() for x in tensors], p)
    assert found.item() == pytest.approx(get_total_norm(tensors, p).item(), rel=1e-5)
