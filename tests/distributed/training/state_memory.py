"""The memory of divided state."""

import wengert as wg
import wengert.distributed as dist
from wengert.distributed.optim import ZeroRedundancyOptimizer

rank, size = dist.world().rank, dist.world().size

sizes = [4000, 1000, 3000, 2000, 2500, 500, 10]
params = [wg.nn.Parameter(wg.ones(n)) for n in sizes]
adam = ZeroRedundancyOptimizer(params, wg.optim.Adam)
for p in params:
    p.grad = wg.ones_like(p)
before = wg.memory.live_bytes()
adam.step()
held = wg.memory.live_bytes() - before
own = sum(n for n, owner in zip(sizes, adam.owners) if owner == rank)
# Two moments of four bytes for each element that the rank has; the rest is small numbers.
assert held == 8 * own, (held, own)
assert 8 * own <= 8 * (sum(sizes) / size + max(sizes) / 2)
print(held)
