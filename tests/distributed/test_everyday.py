"""PyTorch's everyday functions: what each writes, against NumPy on what all ranks have."""

from pathlib import Path

from distributed.running import failing, run

OPERATIONS = """
import functools, operator
from datetime import timedelta
import numpy as np
import torch_like as dist

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
for op, of in dict(BAND=np.bitwise_and, BOR=np.bitwise_or, BXOR=np.bitwise_xor).items():
    t = x(np.int32)
    dist.all_reduce(t, getattr(dist.ReduceOp, op))
    assert same(t, functools.reduce(of, [own(r, dtype=np.int32) for r in range(size)])), op
t = x()
dist.all_reduce(t, dist.ReduceOp.AVG)
assert np.allclose(t.numpy(), sum(every) / size, rtol=1e-6)
# A column of a matrix, and a parameter.
big = wg.zeros(2, 3)
big[:, 1] = wg.tensor(own(rank)[:, 1])
dist.all_reduce(big[:, 1])
assert same(big, np.stack([0 * e for e in every]).sum(0) + np.pad(sum(every)[:, 1:2], [(0, 0), (1, 1)]))
weight = wg.nn.Parameter(x())
dist.all_reduce(weight)
assert weight.requires_grad and same(weight.detach(), sum(every))

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
works = [
    dist.all_reduce(t, async_op=True),
    dist.all_reduce(t, dist.ReduceOp.MAX, async_op=True),
    dist.broadcast(u, 1, async_op=True),
    dist.barrier(async_op=True),
]
assert all(work.wait() for work in works) and all(work.is_completed() and work.is_success() for work in works)
assert same(t, sum(every)) and same(u, every[1].astype(np.int64))
t = x()
work = dist.all_reduce(t, async_op=True)
# The program talks at the same time.
dist.all_reduce(x())
assert work.wait(timedelta(seconds=50)) and same(t, sum(every))

# Groups.
last = dist.new_group([size - 1, 0], timeout=timedelta(seconds=50))
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
    assert last.timeout == 50
dist.barrier(group=last)
assert dist.get_node_local_rank() == rank
assert dist.get_backend() == "mpi"
print("all of it")
dist.destroy_process_group()
assert not dist.is_initialized()
"""

# Programs say `import torch.distributed as dist`.
BEGIN = """
assert not distributed.is_initialized()
distributed.init_process_group("gloo", init_method="env://", world_size=size, rank=rank)
assert distributed.is_initialized() and distributed.get_rank() == rank and distributed.get_world_size() == size
sys.modules["torch_like"] = distributed
"""


def test_what_they_write(tmp_path: Path) -> None:
    assert run(3, BEGIN + OPERATIONS, tmp_path) == ["all of it\n"] * 3


def test_calls_that_cannot_be(tmp_path: Path) -> None:
    text = """
from datetime import timedelta
def refused(f, *args, **kwargs):
    try:
        f(*args, **kwargs)
    except (TypeError, ValueError, RuntimeError, TimeoutError) as error:
        print(f"{type(error).__name__}: {error}")
    else:
        print("nothing was raised")

d, x = distributed, wg.ones(2, 3)
refused(d.get_rank)
refused(d.all_reduce, x)
refused(d.init_process_group, "carrier pigeons")
refused(d.init_process_group, world_size=5)
refused(d.init_process_group, rank=1 - rank)
refused(d.init_process_group, timeout=0)
d.init_process_group(timeout=timedelta(minutes=1))
assert group.timeout == 60
refused(d.init_process_group)
refused(d.all_reduce, x, op="sum")
refused(d.all_reduce, x, group="everyone")
refused(d.all_gather, [x], x)
refused(d.all_gather, [x, x.double()], x)
refused(d.all_gather_into_tensor, wg.zeros(2, 3), x)
refused(d.reduce_scatter, wg.zeros(3), [x, x])
refused(d.broadcast, x, src=2)
refused(d.broadcast, x, 0, group_src=0)
refused(d.broadcast, x, group_src=2)
refused(d.all_to_all_single, wg.zeros(3), wg.zeros(3))
refused(d.all_to_all_single, wg.zeros(3), wg.zeros(3), [1, 1], [1, 2])
refused(d.all_gather_object, [None], 1)
refused(d.new_group, [0, 0])
refused(d.new_group, [2])
refused(d.get_global_rank, group, 2)
refused(d.get_group_rank, group, 2)
work = d.all_reduce(x, async_op=True)
work.wait()
held = d.Work()
refused(held.wait, 0.01)
work = d.all_gather([x], x, async_op=True)
refused(work.wait)
assert work.is_completed() and not work.is_success() and isinstance(work.exception(), ValueError)
"""
    out = run(2, text, tmp_path)
    assert out[0] == out[1].replace(
        "rank 0 is expected, but MPI numbers this one 1", "rank 1 is expected, but MPI numbers this one 0"
    )
    assert out[0].splitlines() == [
        "ValueError: there is no default group of ranks; call wengert.distributed.init_process_group() first",
        "ValueError: there is no default group of ranks; call wengert.distributed.init_process_group() first",
        "ValueError: init_process_group: backend is one of mpi, gloo, nccl, ucc, cpu:gloo,cuda:nccl, got 'carrier pigeons'",
        "ValueError: init_process_group: 5 ranks are expected, but MPI runs 2; start the program with mpirun -n 5 "
        "python ..., which takes the place of torchrun",
        "ValueError: init_process_group: rank 1 is expected, but MPI numbers this one 0",
        "ValueError: timeout: a positive number of seconds or a timedelta expected, got 0",
        "RuntimeError: init_process_group: it was called before; destroy_process_group() undoes it",
        "TypeError: all_reduce: op= is a wengert.distributed.ReduceOp, got 'sum'",
        "TypeError: group= is what new_group returns, or None, got str",
        "ValueError: all_gather: tensor_list needs 2 tensors of wengert.float32 (2, 3), got wengert.float32 (2, 3)",
        "ValueError: all_gather: tensor_list needs 2 tensors of wengert.float32 (2, 3), got wengert.float32 (2, 3), wengert.float64 (2, 3)",
        "ValueError: all_gather_into_tensor: output_tensor needs 12 elements of wengert.float32, got 6 of wengert.float32",
        "ValueError: reduce_scatter: input_list needs 2 tensors of wengert.float32 (3,), got wengert.float32 (2, 3), wengert.float32 (2, 3)",
        "ValueError: get_group_rank: the group has the ranks [0, 1] of the default group, got 2",
        "ValueError: broadcast: src= or group_src= expected, got both",
        "ValueError: broadcast: group_src= is a rank of 0..1, got 2",
        "ValueError: all_to_all_single: 3 rows of output cannot be cut into 2 equal parts",
        "ValueError: all_to_all_single: output_split_sizes need 2 numbers whose sum is 3, got [1, 1]",
        "ValueError: all_gather_object: a list of 2 places expected, got 1",
        "ValueError: new_group: different ranks of 0..1 expected, got [0, 0]",
        "ValueError: new_group: different ranks of 0..1 expected, got [2]",
        "ValueError: get_global_rank: the group has the ranks 0..1, got 2",
        "ValueError: get_group_rank: the group has the ranks [0, 1] of the default group, got 2",
        "TimeoutError: wait: the operation was not done after 0.01 s",
        "ValueError: all_gather: tensor_list needs 2 tensors of wengert.float32 (2, 3), got wengert.float32 (2, 3)",
    ]


def test_what_fails_beside_the_program_is_raised_where_it_is_waited_for(tmp_path: Path) -> None:
    text = """
distributed.init_process_group(timeout=1)
work = distributed.all_reduce(wg.ones(2 + rank), async_op=True)
"""
    ran = failing(2, text + "work.wait()\n", tmp_path)
    assert ran.code == 1
    assert ran.err.count("Traceback") == 1
    assert f"  rank 0: all_reduce (sum) of float32[2], at {tmp_path}/script.py, line 4\n" in ran.err
    assert f"  rank 1: all_reduce (sum) of float32[3], at {tmp_path}/script.py, line 4\n" in ran.err
    # Nobody waits: the end of the program does.
    ran = failing(2, text, tmp_path)
    assert ran.code == 1
    assert f"  rank 1: all_reduce (sum) of float32[3], at {tmp_path}/script.py, line 4\n" in ran.err


def test_torchrun_in_the_environment(tmp_path: Path) -> None:
    ran = failing(1, "distributed.init_process_group()\n", tmp_path, WORLD_SIZE="4")
    assert ran.code == 1
    assert "4 ranks are expected, but MPI runs 1; start the program with mpirun -n 4 python" in ran.err
