"""`DataParallel` against one model that sees the data of all ranks: gradients bit for bit, in buckets."""

from pathlib import Path

import pytest
from distributed.running import failing, run

MODELS = """
import copy
import numpy as np
from wengert import nn
from wengert.distributed import DataParallel

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
        assert g.shape == e.shape and g.equal(e), (rank, i, g, e)
"""

AVERAGES = (
    MODELS
    + """
# Models start with other values on each rank, and have those of rank 0 afterwards.
plain = made()
for megabytes in (25.0, 1e-4, 0.0):
    model = DataParallel(made(rank), bucket_cap_mb=megabytes)
    for p, q in zip(model.parameters(), plain.parameters()):
        assert p.equal(q)
    reducer = model.reducer
    assert (reducer is None) == (size == 1)
    for step in range(3):
        model.zero_grad()
        x, y = data(rank, step)
        F.cross_entropy(model(x), y).backward()
        same(model, averaged(plain, [data(r, step) for r in range(size)]))
    if reducer:
        count = {25.0: 1, 1e-4: 4, 0.0: 6}[megabytes]
        assert len(reducer.buckets) == count, reducer.buckets
        # The order of the first backward, in which weights come before biases.
        assert [i for b in reducer.buckets for i in b] == [4, 5, 2, 3, 0, 1], reducer.buckets

# Gradients add up without messages, and are averaged at the end.
model.zero_grad()
with model.no_sync():
    x, y = data(rank, 7)
    F.cross_entropy(model(x), y).backward()
x, y = data(rank, 8)
F.cross_entropy(model(x), y).backward()
same(model, averaged(plain, [[data(r, 7), data(r, 8)] for r in range(size)]))

# Clipping sees the averages, so that all ranks agree; so does the scaler about overflow.
norm = nn.utils.clip_grad_norm_(model.parameters(), 0.01)
from wengert.distributed._tensors import gathered
assert bool((gathered(norm, group) == norm).all())
scaler = wg.amp.GradScaler(init_scale=4.0)
adam = wg.optim.SGD(model.parameters(), lr=0.1)
before = [p.clone() for p in model.parameters()]
model.zero_grad()
loss = F.cross_entropy(model(x), y)
scaler.scale(loss * (float("inf") if rank == size - 1 else 1.0)).backward()
scaler.step(adam)
scaler.update()
assert scaler.get_scale() == 2.0
for p, q in zip(model.parameters(), before):
    assert p.equal(q)

# Dtypes have buckets of their own; one dtype's order is not that of all.
mixed = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3).double(), "c": nn.Linear(3, 2)})
mixed = DataParallel(mixed)
a, b, c = (mixed.module[name] for name in "abc")
z = wg.full((2, 3), float(rank))
c(b(a(z).double()).float()).sum().backward()
for p in mixed.parameters():
    assert p.grad is not None and bool((gathered(p.grad, group) == p.grad).all())
print("averaged", sorted(model.state_dict())[0])
"""
)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_gradients_are_averages(tmp_path: Path, count: int) -> None:
    assert run(count, AVERAGES, tmp_path) == ["averaged module.0.bias\n"] * count


OVERLAP = (
    MODELS
    + """
import threading
from wengert.distributed import _reducer

wide = nn.Sequential(*[nn.Linear(400, 400) for _ in range(6)], nn.Linear(400, 5))
model = DataParallel(wide, bucket_cap_mb=1.0)
events, plain = [], _reducer.summed

def noted(flat, *rest):
    events.append((flat.nbytes, threading.current_thread() is threading.main_thread()))
    return plain(flat, *rest)

_reducer.summed = noted
starts, begin = [], model.reducer._start

def started(bucket):
    starts.append(len(model.reducer._waiting))
    begin(bucket)

model.reducer._start = started
for step in range(2):
    events.clear()
    starts.clear()
    model(wg.full((3, 400), rank + 1.0)).sum().backward()
# The first message leaves while 9 gradients are not there yet; the last one, which nothing is left to be
# hidden behind, is small.
print(starts, events)
"""
)


def test_gradients_travel_during_backward(tmp_path: Path) -> None:
    layer = 4 * (400 * 400 + 400)
    sizes = [4 * 2005 + 2 * layer - 1600, 2 * layer, 2 * layer, 1600]
    expected = f"[9, 5, 1, 0] {[(size, size == 1600) for size in sizes]}\n"
    for text in run(2, OVERLAP, tmp_path):
        assert text == expected


UNUSED = (
    MODELS
    + """
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right, self.never = nn.Linear(2, 1), nn.Linear(2, 1), nn.Linear(2, 1)

    def forward(self, x, which):
        return getattr(self, which)(x).sum()

model = DataParallel(Two(), find_unused_parameters=True)
for _ in range(2):
    model.zero_grad()
    model(wg.full((1, 2), rank + 1.0), "left" if rank == 0 else "right").backward()
    assert model.module.left.weight.grad.tolist() == [[0.5, 0.5]]
    assert model.module.right.weight.grad.tolist() == [[1.0, 1.0]]
    assert model.module.never.weight.grad is None

model = DataParallel(Two())
try:
    model(wg.ones(1, 2), "left").backward()
except RuntimeError as error:
    print(error)
"""
)


def test_unused_parameters(tmp_path: Path) -> None:
    found = run(2, UNUSED, tmp_path)
    for rank, text in enumerate(found):
        assert text == (
            f"DataParallel: backward on rank {rank} reaches no right.weight, right.bias, never.weight, "
            "never.bias, whose gradients the other ranks may wait for; use them, or pass "
            "find_unused_parameters=True\n"
        )


JOIN = (
    MODELS
    + """
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
print("joined")
"""
)


def test_ranks_without_data_join(tmp_path: Path) -> None:
    assert run(3, JOIN, tmp_path) == ["joined\n"] * 3


def test_other_models_are_named(tmp_path: Path) -> None:
    text = MODELS + "DataParallel(nn.Linear(2, 3 + rank))"
    ran = failing(2, text, tmp_path)
    assert ran.code != 0
    assert "parameter or buffer 0 of rank 1 is ['weight', '(4, 2)', 'wengert.float32', True]" in ran.err, (
        ran.err
    )
