"""Calls of the everyday functions that cannot be: each prints what it says."""

from datetime import timedelta

import numpy as np
import wengert as wg
import wengert.distributed as d

group = d.world()
rank, size = group.rank, group.size


def refused(f, *args, **kwargs):
    try:
        f(*args, **kwargs)
    except (TypeError, ValueError, RuntimeError, TimeoutError) as error:
        print(f"{type(error).__name__}: {error}")
    else:
        print("nothing was raised")


x = wg.ones(2, 3)
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
assert work.is_completed()
assert not work.is_success()
assert isinstance(work.exception(), ValueError)
refused(d.all_to_all, [x], [x])
refused(d.all_to_all, [x, x], [x, x.double()])
refused(d.all_to_all, [wg.zeros(3), x], [x, x])
refused(d.all_to_all, [x, x], [wg.zeros(3), x])
# No derivative gets lost: whatever is differentiated is refused, and what is not is taken.
weight = wg.ones(2, 3, requires_grad=True)
d.all_reduce(weight)
with wg.no_grad():
    d.all_reduce(weight * 2)
d.all_reduce((weight * 2).detach())
refused(d.all_reduce, weight * 2)
refused(d.broadcast, weight * 2, 0)
refused(d.all_gather, [x, x], weight * 2)
refused(d.reduce_scatter_tensor, wg.zeros(3), weight * 2)
refused(d.scatter, wg.zeros(2, 3), [weight * 2] * 2)
refused(wg.grad(lambda x: (d.all_reduce(x), x.sum())[1]), x)
refused(wg.jit(wg.grad(lambda x: (d.all_reduce(x * 2), x.sum())[1])), x)
refused(wg.jvp, lambda x: (d.all_reduce(x), x)[1], (x,), (x,))
refused(wg.vmap(wg.grad(lambda x: (d.all_reduce(x), x.sum())[1])), x)
refused(d.all_reduce, np.ones(2))
refused(d.all_reduce, [x])
refused(d.all_gather, [np.ones(2)] * 2, x)
