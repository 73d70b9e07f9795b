"""When messages leave and arrive, and in which thread."""

import os
import threading

import wengert as wg
from distributed.training.models import rank, size
from wengert import _core, nn
from wengert.distributed import DataParallel

device = os.environ.get("DEVICE", "cpu")
events, starts = [], []
arrived = threading.Event()


def wide():
    return nn.Sequential(*[nn.Linear(400, 400) for _ in range(6)], nn.Linear(400, 5)).to(device)


def wait_for_the_first(grad):
    """The first message arrives while the last gradient is not there yet, though nobody waits for it."""
    assert arrived.wait(60.0)


def noted(parts):
    events.append((sum(part.nbytes for part in parts), threading.current_thread() is threading.main_thread()))


model = DataParallel(wide(), bucket_cap_mb=1.0)
average, begin = model.reducer._average, model.reducer._start
in_place = _core._average_gradients


def averaged(parts, line):
    noted(parts)
    found = average(parts, line)
    # On a GPU, the sums are there as well.
    found.cpu()
    arrived.set()
    return found


def averaged_in_place(params, members, divisor):
    """The last message, when the backward has ended."""
    assert all(param.grad is not None for param in params)
    noted(params)
    return in_place(params, members, divisor)


def started(bucket):
    starts.append(len(model.reducer._waiting))
    begin(bucket)


model.reducer._average, model.reducer._start = averaged, started
_core._average_gradients = averaged_in_place
model.module[0].weight.register_hook(wait_for_the_first)
for _ in range(2):
    for noticed in (events, starts, arrived):
        noticed.clear()
    model(wg.full((3, 400), rank + 1.0, device=device)).sum().backward()
# The first message leaves while 9 gradients are not there yet; the last one, which nothing is left to be
# hidden behind, is small.
print(starts, events)

# With shards, messages of the last one of the rank.
model = DataParallel(wide(), grain=2 * size, bucket_cap_mb=1.0)
mean = model.shards._mean


def mean_noted(vector):
    noted([vector])
    found = mean(vector)
    found.cpu()
    arrived.set()
    return found


model.shards._mean = mean_noted
for noticed in (events, arrived):
    noticed.clear()
shard = iter([0, 1])


def in_the_last_shard(grad):
    if next(shard):
        wait_for_the_first(grad)


model.module[0].weight.register_hook(in_the_last_shard)
model.backward(lambda x: model(x).sum(), wg.full((2, 400), rank + 1.0, device=device))
print(sorted(events, key=lambda event: event[1]))
