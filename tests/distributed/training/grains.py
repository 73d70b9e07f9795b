"""What `grain=` cannot do says so; and random numbers and complex buffers of shards."""

import wengert as wg
import wengert.distributed as dist
from wengert import nn
from wengert.distributed import DataParallel
from wengert.distributed._tensors import gather_tensors

rank, size = dist.world().rank, dist.world().size


def same(x):
    return all(row.equal(x) for row in gather_tensors(x, dist.world()))


model = DataParallel(nn.Linear(2, 1), grain=4)


def plain_backward():
    model(wg.ones(1, 2)).sum().backward()


def inside(block):
    with block:
        pass


for wrong in (plain_backward, lambda: inside(model.no_sync()), lambda: inside(model.join())):
    try:
        wrong()
    except RuntimeError as error:
        print(error)
inside(model.join(enable=False))
model.zero_grad()
model.backward(lambda: model(wg.randn(3, 2)).sum())

# Seeds that ranks set later differ; shards have that of rank 0, and the ranks keep their own.
wg.manual_seed(0 if rank == 0 else 100 + rank)
seen = []
for _ in range(2):
    model.backward(lambda: (seen.append(wg.randn(3)), model(wg.randn(3, 2)).sum())[1])
every = gather_tensors(wg.stack(seen), dist.world()).unflatten(1, (2, -1)).transpose(0, 1).flatten(0, 2)
wg.manual_seed(0)
alone = []
for _ in range(2):
    state = wg.get_rng_state()
    for shard in range(4):
        wg.set_rng_state((dist._grain._seed(*state, shard), 0))
        alone.append(wg.randn(3))
    wg.set_rng_state((state[0], state[1] + 1))
assert every.equal(wg.stack(alone))


# A complex buffer is averaged, as one of floats is.
class Turned(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(wg.ones(1))
        self.register_buffer("mean", wg.zeros(1, dtype=wg.complex64))

    def forward(self, x):
        with wg.no_grad():
            self.mean.add_(x.mean() * (1 + 2j))
        return (self.weight * x).sum()


turned = DataParallel(Turned(), grain=4)
turned.backward(lambda x: turned(x), wg.arange(4.0)[4 // size * rank :][: 4 // size])
assert turned.module.mean.tolist() == [1.5 + 3j]
