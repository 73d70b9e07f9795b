"""Ranks whose data end sooner."""

import copy

import wengert as wg
from distributed.training.models import F, data, rank, size
from wengert import nn
from wengert.distributed import DataParallel


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.out = nn.BatchNorm1d(4), nn.Linear(4, 3)

    def forward(self, x):
        return self.out(self.norm(x))


for divides_by_all in (True, False):
    wg.manual_seed(0)
    model = DataParallel(Normed())
    plain = copy.deepcopy(model.module)
    steps = {0: 1, 1: 3, 2: 2}
    sgd = wg.optim.SGD(model.parameters(), lr=0.1)
    with model.join(divide_by_initial_world_size=divides_by_all):
        for step in range(steps[rank]):
            model.zero_grad()
            x, y = data(rank, step)
            F.cross_entropy(model(x), y).backward()
            sgd.step()
    # All of it on one rank.
    other = wg.optim.SGD(plain.parameters(), lr=0.1)
    for step in range(3):
        active = [r for r in range(size) if step < steps[r]]
        statistics = [b.clone() for b in plain.buffers()]
        every, kept = [], None
        for r in range(size):
            for b, s in zip(plain.buffers(), statistics):
                b.copy_(s)
            plain.zero_grad()
            x, y = data(r, step)
            F.cross_entropy(plain(x), y).backward()
            every.append([p.grad if r in active else wg.zeros_like(p) for p in plain.parameters()])
            # The first rank that has data in the next step gives its statistics to all.
            if r == ([q for q in active if step + 1 < steps[q]] or active)[0]:
                kept = [b.clone() for b in plain.buffers()]
        for b, s in zip(plain.buffers(), kept):
            b.copy_(s)
        for p, grads in zip(plain.parameters(), zip(*every)):
            p.grad = wg.stack(list(grads)).sum(0) / (size if divides_by_all else len(active))
        other.step()
    for (name, p), q in zip(model.module.state_dict().items(), plain.state_dict().values()):
        assert p.equal(q), (rank, name, p, q)

# Several forwards for one backward are one step; a last forward without one does not leave others waiting.
wg.manual_seed(0)
model = DataParallel(nn.Linear(4, 3))
plain = copy.deepcopy(model.module)
with model.join():
    for step in range(steps[rank]):
        model.zero_grad()
        (
            F.cross_entropy(model(data(rank, step)[0]), data(rank, step)[1]) + model(wg.ones(1, 4)).sum()
        ).backward()
        if step == 0:
            grads = [p.grad.clone() for p in model.parameters()]
    if rank == 2:
        model(wg.ones(1, 4))
expected = [wg.zeros_like(p) for p in plain.parameters()]
for r in range(size):
    plain.zero_grad()
    (F.cross_entropy(plain(data(r)[0]), data(r)[1]) + plain(wg.ones(1, 4)).sum()).backward()
    expected = [e + p.grad / size for e, p in zip(expected, plain.parameters())]
for g, e in zip(grads, expected):
    assert wg.allclose(g, e, rtol=1e-5, atol=1e-6)
print("joined")
