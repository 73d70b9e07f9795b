"""PyTorch's everyday functions on three ranks: what each writes, against NumPy on what all ranks have."""

import functools
from datetime import timedelta

import numpy as np
import wengert as wg
import wengert.distributed as dist

assert not dist.is_initialized()
rank, size = dist.world().rank, dist.world().size
dist.init_process_group(
    "gloo",
    init_method="env://",
    timeout=timedelta(seconds=50),
    world_size=size,
    rank=rank,
    store=None,
    group_name="all",
    pg_options=None,
    device_id=None,
)
assert dist.is_available()
assert dist.is_initialized()
assert (dist.get_rank(), dist.get_world_size(), dist.world().timeout) == (rank, size, 50)


def own(r, shape=(2, 3), dtype=np.float32):
    return (np.arange(np.prod(shape)).reshape(shape) * (r + 1) - 4 * r).astype(dtype)


every = [own(r) for r in range(size)]
x = lambda dtype=np.float32: wg.tensor(own(rank, dtype=dtype))
same = lambda got, expected: np.array_equal(got.numpy(), expected) or print(got, expected)

# Reductions, in the dtype of the tensor.
for op, of in dict(SUM=np.add, PRODUCT=np.multiply, MIN=np.minimum, MAX=np.maximum).items():
    for dtype in (np.float32, np.float64, np.int32, np.int64):
        t = x(dtype)
        assert dist.all_reduce(t, op=getattr(dist.ReduceOp, op)) is None
        assert same(t, functools.reduce(of, [own(r, dtype=dtype) for r in range(size)])), op
for op, of in dict(BAND=np.bitwise_and, BOR=np.bitwise_or, BXOR=np.bitwise_xor, MAX=np.maximum).items():
    for shape in ((2, 3), (7,), (), (0,), (30_001,)):
        t = wg.tensor(own(rank, shape, np.int32))
        dist.all_reduce(t, getattr(dist.ReduceOp, op))
        assert same(t, functools.reduce(of, [own(r, shape, np.int32) for r in range(size)])), (op, shape)
t = x()
dist.all_reduce(t, dist.ReduceOp.AVG)
assert np.allclose(t.numpy(), sum(every) / size, rtol=1e-6)
# Averages of halves stay in their range, which sums leave.
t = wg.full((size,), 40000.0).half()
dist.all_reduce(t, dist.ReduceOp.AVG)
assert np.allclose(t.float().numpy(), 40000, rtol=1e-3)
found = wg.zeros(1).half()
dist.reduce_scatter_tensor(found, wg.full((size,), 40000.0).half(), dist.ReduceOp.AVG)
assert np.allclose(found.float().numpy(), 40000, rtol=1e-3)
# Sums have the bits of `psum`.
drawn = wg.tensor(np.random.default_rng(rank).normal(size=(1000,)).astype(np.float32))
t = drawn.clone()
dist.all_reduce(t)
with dist.axis("i"):
    assert t.equal(wg.psum(drawn, "i"))
# A column of a matrix, and a parameter.
big = wg.zeros(2, 3)
big[:, 1] = wg.tensor(own(rank)[:, 1])
dist.all_reduce(big[:, 1])
assert same(big, np.stack([0 * e for e in every]).sum(0) + np.pad(sum(every)[:, 1:2], [(0, 0), (1, 1)]))
weight = wg.nn.Parameter(x())
dist.all_reduce(weight)
assert weight.requires_grad
assert same(weight.detach(), sum(every))

t = x()
dist.reduce(t, dst=1)
assert same(t, sum(every) if rank == 1 else own(rank))
t = x()
dist.reduce(t, 0, dist.ReduceOp.MAX)
assert same(t, np.maximum.reduce(every) if rank == 0 else own(rank))
t = x()
dist.reduce(t, group_dst=2)
assert same(t, sum(every) if rank == 2 else own(rank))

found = [wg.zeros(2, 3) for _ in range(size)]
dist.all_gather(found, x())
assert all(same(f, e) for f, e in zip(found, every))
for shape in ((2 * size, 3), (size, 2, 3)):
    one = wg.zeros(shape)
    dist.all_gather_into_tensor(one, x())
    assert same(one, np.concatenate(every).reshape(shape))
found = [wg.zeros(2, 3) for _ in range(size)] if rank == 1 else None
dist.gather(x(), found, dst=1)
assert found is None or all(same(f, e) for f, e in zip(found, every))

for root in range(size):
    t = x()
    dist.broadcast(t, src=root)
    assert same(t, every[root])
t = x().T
dist.broadcast(t, group_src=1)
assert same(t, every[1].T)
parts = [wg.tensor(own(7 * r)) for r in range(size)]
t = wg.zeros(2, 3)
dist.scatter(t, parts if rank == 1 else None, src=1)
assert same(t, own(7 * rank))

lists = [[own(r + 10 * i) for i in range(size)] for r in range(size)]
t = wg.zeros(2, 3)
dist.reduce_scatter(t, [wg.tensor(p) for p in lists[rank]])
assert same(t, sum(lists[r][rank] for r in range(size)))
dist.reduce_scatter_tensor(t, wg.tensor(np.concatenate(lists[rank])), op=dist.ReduceOp.MAX)
assert same(t, np.maximum.reduce([lists[r][rank] for r in range(size)]))
t = wg.zeros(size * 2, 3)
dist.all_to_all_single(t, wg.tensor(np.concatenate(lists[rank])))
assert same(t, np.concatenate([lists[r][rank] for r in range(size)]))
# Rank r sends r + i rows to rank i.
rows = np.random.default_rng(rank).normal(size=(sum(rank + i for i in range(size)), 2))
t = wg.zeros(sum(r + rank for r in range(size)), 2, dtype=wg.float64)
dist.all_to_all_single(t, wg.tensor(rows), [r + rank for r in range(size)], [rank + i for i in range(size)])


def piece(r, i):
    before = sum(r + j for j in range(i))
    sent = np.random.default_rng(r).normal(size=(sum(r + j for j in range(size)), 2))
    return sent[before : before + r + i]


assert same(t, np.concatenate([piece(r, rank) for r in range(size)]))

found = [wg.zeros(r + 1, rank + 2) for r in range(size)]
sent = [wg.full((rank + 1, i + 2), 10.0 * rank + i) for i in range(size)]
dist.all_to_all(output_tensor_list=found, input_tensor_list=sent)
assert all(f.equal(wg.full((r + 1, rank + 2), 10.0 * r + rank)) for r, f in enumerate(found))
dist.all_to_all([f.zero_() for f in found], sent, group=None, async_op=True).wait()
assert all(f.equal(wg.full((r + 1, rank + 2), 10.0 * r + rank)) for r, f in enumerate(found))

objects = [None] * size
dist.all_gather_object(objects, {"rank": rank, "text": "x" * 1000 * rank})
assert objects == [{"rank": r, "text": "x" * 1000 * r} for r in range(size)]
objects = ["a", {1: 2}, [3] * 100_000] if rank == 1 else [None] * 3
dist.broadcast_object_list(objects, src=1)
assert objects == ["a", {1: 2}, [3] * 100_000]
objects = [rank]
dist.broadcast_object_list(objects, group_src=2)
assert objects == [2]

# Beside the program, in the order of the calls.
t, u = x(), x(np.int64)
v, w, one, two = x(), x(), wg.zeros(2, 3), wg.zeros(2, 3)
three, four, five = (wg.zeros(2 * size, 3) for _ in range(3))
listed, kept = ([wg.zeros(2, 3) for _ in range(size)] for _ in range(2))
joined = wg.tensor(np.concatenate(lists[rank]))
works = [
    dist.all_reduce(t, async_op=True),
    dist.all_reduce(t, dist.ReduceOp.MAX, async_op=True),
    dist.broadcast(u, 1, async_op=True),
    dist.barrier(async_op=True, device_ids=[0]),
    dist.reduce(v, 0, async_op=True),
    dist.all_gather(listed, x(), async_op=True),
    dist.all_gather_into_tensor(three, x(), async_op=True),
    dist.gather(x(), kept if rank == 2 else None, group_dst=2, async_op=True),
    dist.scatter(w, parts if rank == 2 else None, group_src=2, async_op=True),
    dist.reduce_scatter(one, [wg.tensor(p) for p in lists[rank]], async_op=True),
    dist.reduce_scatter_tensor(two, joined, async_op=True),
    dist.all_to_all_single(four, joined, async_op=True),
    dist.all_to_all_single(five, joined, [2] * size, input_split_sizes=[2] * size, async_op=True),
]
assert all(work.wait() for work in works)
assert all(work.is_completed() and work.is_success() and work.exception() is None for work in works)
assert same(t, sum(every))
assert same(u, every[1].astype(np.int64))
assert same(v, sum(every) if rank == 0 else own(rank))
assert same(w, own(7 * rank))
assert all(same(f, e) for f, e in zip(listed, every))
assert same(three, np.concatenate(every))
assert all(same(f, e if rank == 2 else 0 * e) for f, e in zip(kept, every))
assert same(one, sum(lists[r][rank] for r in range(size)))
assert same(two, one.numpy())
assert same(four, np.concatenate([lists[r][rank] for r in range(size)]))
assert same(five, four.numpy())
t = x()
work = dist.all_reduce(t, async_op=True)
# The program talks at the same time.
dist.all_reduce(x())
assert work.wait(timedelta(seconds=50))
assert same(t, sum(every))

# Groups.
last = dist.new_group(
    ranks=[size - 1, 0],
    timeout=timedelta(seconds=40),
    backend="gloo",
    pg_options=None,
    use_local_synchronization=False,
    group_desc="the ends",
    device_id=None,
)
assert rank in (0, size - 1) or last is dist.GroupMember.NON_GROUP_MEMBER
assert dist.get_world_size(last) == (2 if rank in (0, size - 1) else -1)
assert dist.get_rank(last) == {0: 0, size - 1: 1}.get(rank, -1)
t = x()
dist.all_reduce(t, group=last)
assert same(t, every[0] + every[-1] if rank in (0, size - 1) else own(rank))
t = x()
dist.broadcast(t, src=size - 1, group=last)
assert same(t, every[-1] if rank == 0 else own(rank))
if last is not dist.GroupMember.NON_GROUP_MEMBER:
    assert dist.get_process_group_ranks(last) == [0, size - 1]
    assert (dist.get_global_rank(last, 1), dist.get_group_rank(last, size - 1)) == (size - 1, 1)
    assert last.timeout == 40
    found = [wg.zeros(2, 3) for _ in range(2)]
    dist.all_gather(found, x(), group=last)
    assert same(found[1], every[-1])
    one = wg.zeros(4, 3)
    dist.all_gather_into_tensor(one, x(), group=last)
    assert same(one, np.concatenate([every[0], every[-1]]))
    dist.reduce_scatter(t, found, op=dist.ReduceOp.SUM, group=last)
    assert same(t, 2 * every[rank])
    dist.reduce_scatter_tensor(t, one, op=dist.ReduceOp.SUM, group=last)
    assert same(t, 2 * every[rank])
    dist.all_to_all_single(one, one.clone(), output_split_sizes=[2, 2], input_split_sizes=[2, 2], group=last)
    assert same(one[:2], every[rank])
    objects = [None, None]
    dist.all_gather_object(objects, rank, group=last)
    assert objects == [0, size - 1]
    dist.broadcast_object_list(objects, src=size - 1, group=last)
    t = x()
    dist.all_reduce(t, op=dist.ReduceOp.MIN, group=last, async_op=True).wait()
    assert same(t, np.minimum(every[0], every[-1]))
    dist.destroy_process_group(group=last)
    assert dist.is_initialized()
dist.barrier(group=last)
assert dist.get_node_local_rank(fallback_rank=0) == rank
assert dist.get_backend() == "mpi"
print("all of it")
dist.destroy_process_group()
assert not dist.is_initialized()
