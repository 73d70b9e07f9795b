"""Parameters that a backward leaves out."""

import wengert as wg
from distributed.training.models import rank
from wengert import nn
from wengert.distributed import DataParallel


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right, self.never = nn.Linear(2, 1), nn.Linear(2, 1), nn.Linear(2, 1)

    def forward(self, x, which):
        return getattr(self, which)(x).sum()


model = DataParallel(Two(), find_unused_parameters=True)
for _ in range(2):
    model.zero_grad()
    model(wg.full((1, 2), rank + 1.0), "left" if rank == 0 else "right").backward()
    assert model.module.left.weight.grad.tolist() == [[0.5, 0.5]]
    assert model.module.right.weight.grad.tolist() == [[1.0, 1.0]]
    assert model.module.never.weight.grad is None

model = DataParallel(Two())
try:
    model(wg.ones(1, 2), "left").backward()
except RuntimeError as error:
    print(error)

try:
    DataParallel(Two().requires_grad_(False))
except ValueError as error:
    print(error)
