"""The model and the data of programs about training, and the gradients that they expect."""

import numpy as np
import wengert as wg
import wengert.distributed as dist
from wengert import nn

rank, size = dist.world().rank, dist.world().size

F = nn.functional


def made(seed=0):
    wg.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))


def data(r, step=0, rows=5):
    drawn = np.random.default_rng(100 * step + r)
    return wg.tensor(drawn.normal(size=(rows, 4)).astype("f4")), wg.tensor(drawn.integers(0, 3, rows))


def averaged(model, batches, count=None):
    # The gradients that each batch gives, added in the order of the ranks.
    every = []
    for batch in batches:
        model.zero_grad()
        for x, y in batch if isinstance(batch, list) else [batch]:
            F.cross_entropy(model(x), y).backward()
        every.append([p.grad for p in model.parameters()])
    model.zero_grad()
    return [wg.stack(list(grads)).sum(0) / (count or size) for grads in zip(*every)]


def same(model, expected):
    grads = [p.grad for p in model.parameters()]
    assert len(grads) == len(expected)
    for i, (g, e) in enumerate(zip(grads, expected)):
        assert g.shape == e.shape
        assert g.equal(e), (rank, i, g, e)
