"""When messages leave, and in which thread."""

import threading

import wengert as wg
from distributed.training.models import rank
from wengert import nn
from wengert.distributed import DataParallel

wide = nn.Sequential(*[nn.Linear(400, 400) for _ in range(6)], nn.Linear(400, 5))
model = DataParallel(wide, bucket_cap_mb=1.0)
events, plain = [], model.reducer._average


def noted(parts, line):
    size = sum(part.nbytes for part in parts)
    events.append((size, threading.current_thread() is threading.main_thread()))
    return plain(parts, line)


model.reducer._average = noted
starts, begin = [], model.reducer._start


def started(bucket):
    starts.append(len(model.reducer._waiting))
    begin(bucket)


model.reducer._start = started
for _ in range(2):
    events.clear()
    starts.clear()
    model(wg.full((3, 400), rank + 1.0)).sum().backward()
# The first message leaves while 9 gradients are not there yet; the last one, which nothing is left to be
# hidden behind, is small.
print(starts, events)
