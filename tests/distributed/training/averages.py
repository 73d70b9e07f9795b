"""Gradients, in buckets of several sizes, against those of one model that sees the data of all ranks."""

import wengert as wg
import wengert.distributed as dist
from distributed.training.models import F, averaged, data, made, rank, same, size
from wengert import nn
from wengert.distributed import DataParallel
from wengert.distributed._tensors import gather_tensors

# Models start with other values on each rank, and have those of rank 0 afterwards.
plain = made()
for megabytes in (25.0, 1e-4, 0.0):
    model = DataParallel(
        made(rank), process_group=dist.world(), broadcast_buffers=False, bucket_cap_mb=megabytes
    )
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

# The same class, as PyTorch calls it.
model = nn.parallel.DistributedDataParallel(
    made(rank), process_group=dist.world(), bucket_cap_mb=1e-4, find_unused_parameters=True
)
x, y = data(rank)
F.cross_entropy(model(x), y).backward()
same(model, averaged(plain, [data(r) for r in range(size)]))

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
assert bool((gather_tensors(norm, dist.world()) == norm).all())
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
    assert p.grad is not None
    assert bool((gather_tensors(p.grad, dist.world()) == p.grad).all())
print("averaged", sorted(model.state_dict())[0])
