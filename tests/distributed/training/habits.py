"""What training programs do besides: dropout, averages of weights, halves, accumulation into one gradient."""

import wengert as wg
import wengert.distributed as dist
from distributed.training.models import F, data, made, rank, size
from wengert import nn
from wengert.distributed import DataParallel
from wengert.distributed._tensors import gathered


def agree(tensor):
    every = gathered(tensor, dist.world())
    return all(bool((row == every[0]).all()) for row in every)


# Masks differ or agree, as the seeds do.
model = DataParallel(nn.Sequential(nn.Linear(4, 50), nn.Dropout(0.5)))
for seed, expected in ((rank, False), (7, True)):
    wg.manual_seed(seed)
    assert agree((model(wg.ones(1, 4)) == 0).to(wg.int8)) == expected

# Averages of weights are the same on all ranks; so are steps under autocast, with a common scale.
model = DataParallel(made(rank))
average = wg.optim.swa_utils.AveragedModel(
    model.module, multi_avg_fn=wg.optim.swa_utils.get_ema_multi_avg_fn(0.9)
)
adam = wg.optim.Adam(model.parameters(), lr=0.01)
scaler = wg.amp.GradScaler(init_scale=2.0**14)
for step in range(3):
    x, y = data(rank, step)
    adam.zero_grad(set_to_none=step != 1)
    with wg.autocast("cpu", dtype=wg.float16):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(adam)
    scaler.update()
    average.update_parameters(model.module)
for p, q in zip(model.parameters(), average.parameters()):
    assert agree(p)
    assert agree(q)
    assert not p.equal(q)
assert scaler.get_scale() == 2.0**14
print("agreed", size)
