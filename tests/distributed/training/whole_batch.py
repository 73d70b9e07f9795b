"""Shards of a batch, and the tree that adds them."""

import wengert as wg
import wengert.distributed as dist
from wengert.distributed import DataParallel
from wengert.distributed._grain import Tree

rank, size = dist.world().rank, dist.world().size


# The tree adds neighbours first, and the average over shards is that over the batch.
class Pair(str):
    def __add__(self, other):
        return Pair(f"({self}{other})")


for count, expected in [(1, "0"), (3, "((01)2)"), (4, "((01)(23))"), (7, "(((01)(23))((45)6))")]:
    tree = Tree()
    for i in range(count - 1):
        tree.add([Pair(i)])
    assert tree.total(0, Pair(count - 1)) == expected
    # As the core's sums do, which add up what the ranks have.
    x = wg.randn(count, 50)
    tree = Tree()
    for row in x[:-1]:
        tree.add([row])
    assert wg.vmap(lambda x: wg.psum(x, "i"), axis_name="i", out_axes=None)(x).equal(tree.total(0, x[-1]))
x = wg.randn(8, 3)
net = wg.nn.Linear(3, 2)
loss = DataParallel(net, grain=4).backward(lambda x: net(x).square().mean(), x)
grads = [p.grad for p in net.parameters()]
net.zero_grad()
whole = net(x).square().mean()
whole.backward()
assert wg.allclose(loss, whole, rtol=1e-6)
for p, g in zip(net.parameters(), grads):
    assert wg.allclose(p.grad, g, rtol=1e-5)
# A function without arguments draws its own data, others in every shard and step.
seen = []
model = wg.nn.parallel.DistributedDataParallel(net, grain=4)
for _ in range(2):
    model.backward(lambda: (seen.append(wg.randn(3)), net(seen[-1]).sum())[1])
assert len({tuple(s.tolist()) for s in seen}) == 8
for wrong in (
    lambda: model.backward(lambda x: net(x).sum(), wg.ones(6, 3)),
    lambda: DataParallel(net).backward(lambda: None),
):
    try:
        wrong()
    except (ValueError, RuntimeError) as error:
        print(error)
