"""Steps of an optimiser whose state is divided, against its own."""

import wengert as wg
import wengert.distributed as dist
from wengert import nn, optim
from wengert.distributed.optim import ZeroRedundancyOptimizer

rank, size = dist.world().rank, dist.world().size


def made():
    wg.manual_seed(0)
    return nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 20), nn.Tanh(), nn.Linear(20, 7))


# The data are the same on all ranks, and so are the gradients.
def steps(model, optimizer, schedule, begin, end):
    for step in range(begin, end):
        wg.manual_seed(step)
        optimizer.zero_grad()
        model(wg.randn(4, 20)).square().mean().backward()
        optimizer.step()
        schedule.step()


def groups(model):
    params = list(model.parameters())
    return [{"params": params[:1], "lr": 0.02}, {"params": params[1:]}]


for make in (
    lambda params, **given: optim.Adam(params, lr=0.01, **given),
    lambda params, **given: optim.SGD(params, lr=0.1, momentum=0.9, **given),
    lambda params, **given: optim.Adafactor(params, **given),
    lambda params, **given: optim.RMSprop(params, centered=True, **given),
):
    plain, parallel = made(), made()
    own = make(groups(plain), weight_decay=0.01)
    zero = ZeroRedundancyOptimizer(groups(parallel), make, weight_decay=0.01)
    schedules = [optim.lr_scheduler.StepLR(o, 1, 0.5) for o in (own, zero)]
    steps(plain, own, schedules[0], 0, 3)
    steps(parallel, zero, schedules[1], 0, 3)
    # What is saved goes on, in the optimiser itself too, with these and with other ranks.
    state = zero.state_dict()
    again = make(groups(parallel), weight_decay=0.01)
    again.load_state_dict(state)
    fresh = ZeroRedundancyOptimizer(groups(parallel), make, process_group=dist.world())
    fresh.load_state_dict(state)
    schedules[1].optimizer = fresh
    steps(plain, own, schedules[0], 3, 5)
    steps(parallel, fresh, schedules[1], 3, 5)
    for p, q in zip(plain.parameters(), parallel.parameters()):
        assert p.equal(q), make
    expected = own.state_dict()
    found = fresh.state_dict()
    assert found["param_groups"] == expected["param_groups"]
    assert found["state"].keys() == expected["state"].keys() == again.state_dict()["state"].keys()
    for i, entry in expected["state"].items():
        for key, value in entry.items():
            got = found["state"][i][key]
            assert got.equal(value) if isinstance(value, wg.Tensor) else got == value, (i, key)
# Parameters that come later, with settings of their own.
plain, parallel = made(), made()
own, zero = (
    make(model[:3].parameters(), lr=0.01)
    for model, make in (
        (plain, optim.Adam),
        (parallel, lambda params, **given: ZeroRedundancyOptimizer(params, optim.Adam, **given)),
    )
)
for step in range(4):
    for model, optimizer in ((plain, own), (parallel, zero)):
        if step == 2:
            optimizer.add_param_group({"params": list(model[3:].parameters()), "lr": 0.5})
        optimizer.zero_grad()
        wg.manual_seed(step)
        model(wg.randn(4, 20)).square().mean().backward()
        optimizer.step()
for p, q in zip(plain.parameters(), parallel.parameters()):
    assert p.equal(q)
found, expected = zero.state_dict(), own.state_dict()
assert found["param_groups"] == expected["param_groups"]
assert found["state"].keys() == expected["state"].keys()
zero.load_state_dict(found)
try:
    zero.add_param_group({"params": [wg.nn.Parameter(wg.ones(2))], "lr": -1.0})
except ValueError:
    assert len(zero.param_groups) == len(zero.optim.param_groups) == 2
    assert len(zero.owners) == 6
else:
    raise AssertionError
# The memory of divided state.
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
