"""What training programs do besides: dropout, averages of weights, halves, accumulation into one gradient."""

import copy
import gc
import io
import weakref

import wengert as wg
import wengert.distributed as dist
from distributed.training.models import F, data, made, rank, size
from wengert import nn
from wengert.distributed import DataParallel
from wengert.distributed._tensors import gather_tensors


def agree(tensor):
    every = gather_tensors(tensor, dist.world())
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

# Averages of halves stay in their range, which sums leave.
half = DataParallel(nn.Linear(2, 2, bias=False).half())
(half(wg.full((1, 2), 200.0).half()) * 200.0).sum().backward()
assert half.module.weight.grad.tolist() == [[40000.0] * 2] * 2

# A copy trains on the same ranks by itself; averages of weights may be of the parallel model.
for settings in ({}, {"grain": 4}):
    model = DataParallel(nn.Linear(2, 1), **settings)
    average = wg.optim.swa_utils.AveragedModel(model)
    copied = copy.deepcopy(model)
    x = wg.full((1, 2), rank + 1.0)
    if settings:
        copied.backward(lambda x, copied=copied: copied(x).sum(), wg.ones(4 // size, 2))
        try:
            copied(x).sum().backward()
        except RuntimeError as error:
            print(str(error).split(";")[0].split(",")[0])
    else:
        copied(x).sum().backward()
        assert copied.module.weight.grad.tolist() == [[(size + 1) / 2] * 2]
    assert model.module.weight.grad is None
    average.update_parameters(copied)
    assert average.module.module.weight.equal(copied.module.weight)
    try:
        wg.save(model, io.BytesIO())
    except TypeError as error:
        print(error)
del average, copied

# A model that nobody has any more leaves nothing behind.
model = DataParallel(made(), bucket_cap_mb=1e-4)
for x, y in (data(rank), data(rank, 1)):
    F.cross_entropy(model(x), y).backward()
left = weakref.ref(model.module[0].weight)
del model, adam, scaler, p, q, loss
gc.collect()
assert left() is None
print("agreed", size)
