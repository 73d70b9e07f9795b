"""Training with `grain=`: prints losses and parameters."""

import os

import numpy as np
import wengert as wg
import wengert.distributed as dist
from wengert import nn
from wengert.distributed import DataParallel

rank, size = dist.world().rank, dist.world().size


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        # Gradients travel from the last parameter on, up to one that has none.
        self.never, self.first, self.norm = nn.Linear(2, 2), nn.Linear(6, 16), nn.BatchNorm1d(16)
        self.drop, self.out = nn.Dropout(0.3), nn.Linear(16, 3)
        self.scale = nn.Parameter(wg.ones(3).bfloat16())

    def forward(self, x):
        return self.out(self.drop(self.norm(self.first(x)).relu())) * self.scale


wg.manual_seed(rank)  # rank 0 decides
# On several ranks gradients travel in many messages.
model = DataParallel(Net(), grain=int(os.environ["GRAIN"]), bucket_cap_mb=1e-4)
for param in model.parameters():
    # Behind the hooks of the shards: what travels is what it leaves.
    param.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(0.5))
adam = wg.optim.Adam(model.parameters(), lr=0.01)
scaler = wg.amp.GradScaler(init_scale=8.0, growth_interval=2)
drawn = np.random.default_rng(0)
for step in range(4):
    x, y = drawn.normal(size=(48, 6)).astype("f4"), drawn.integers(0, 3, 48)
    x, y = (wg.tensor(a[48 // size * rank : 48 // size * (rank + 1)]) for a in (x, y))

    def loss_of(x, y):
        return scaler.scale(nn.functional.cross_entropy(model(x + 0.1 * wg.randn_like(x)), y))

    adam.zero_grad()
    loss = model.backward(loss_of, x, y)
    if step == 2:
        loss = loss + model.backward(loss_of, x, y)  # gradients add up
    scaler.step(adam)
    scaler.update()
    print(loss.item().hex(), scaler.get_scale())
assert model.module.never.weight.grad is None
assert model.module.norm.num_batches_tracked.item() == 5
for name, value in model.state_dict().items():
    print(name, value.double().flatten().tolist())
for param in model.parameters():
    param.requires_grad_(False)
x = wg.ones(48 // size, 6, requires_grad=True)
print(model.backward(lambda x: model(x).sum(), x).item().hex(), x.grad is not None)
try:
    model.backward(lambda x: 1.0, x)
except TypeError as error:
    print(error)
