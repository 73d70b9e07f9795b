"""PyTorch's everyday functions on tensors of a GPU: they write there, what travels goes through the host."""

from pathlib import Path

from distributed.running import run

SCRIPT = """
distributed.init_process_group()
x = wg.tensor([[1.0, 2.0], [3.0, 4.0]], device="gpu") * (rank + 1)
t = x.clone()
distributed.all_reduce(t)
assert t.is_gpu and t.cpu().equal(wg.tensor([[3.0, 6.0], [9.0, 12.0]]))
t = x.clone()
distributed.all_reduce(t.T, distributed.ReduceOp.MAX)
distributed.broadcast(t, src=1)
assert t.is_gpu and t.cpu().equal(wg.tensor([[2.0, 4.0], [6.0, 8.0]]))
found = [wg.zeros(2, 2, device="gpu") for _ in range(size)]
distributed.all_gather(found, x)
assert [f.cpu()[1, 1].item() for f in found] == [4.0, 8.0]
one = wg.zeros(1, 2, device="gpu")
distributed.reduce_scatter_tensor(one, x)
assert one.is_gpu and one.cpu().equal(wg.tensor([[3.0, 6.0], [9.0, 12.0]])[rank : rank + 1])
both = wg.zeros(2, 2, device="gpu")
distributed.all_to_all_single(both, x, async_op=True).wait()
assert both.cpu().equal(wg.tensor([[1.0, 2.0], [2.0, 4.0]] if rank == 0 else [[3.0, 4.0], [6.0, 8.0]]))
distributed.all_to_all_single(both, x, [1, 1], [1, 1])
assert both.is_gpu and both.cpu()[1, 0].item() == (2.0 if rank == 0 else 6.0)
print("all of it")
"""


def test_two_ranks(tmp_path: Path) -> None:
    assert run(2, SCRIPT, tmp_path, limit=120.0, WENGERT_GPU="software") == ["all of it\n"] * 2
