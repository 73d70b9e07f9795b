"""A model on a GPU: gradients travel by way of the host, and steps agree with those on the CPU."""

import wengert as wg
from distributed.training.models import F, data, made, rank, size
from wengert.distributed import DataParallel

models = {device: DataParallel(made(rank).to(device), bucket_cap_mb=1e-4) for device in ("cpu", "gpu")}
for device, model in models.items():
    sgd = wg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(3):
        x, y = (part.to(device) for part in data(rank, step))
        sgd.zero_grad()
        F.cross_entropy(model(x), y).backward()
        sgd.step()
for p, q in zip(*(model.parameters() for model in models.values())):
    assert q.is_gpu
    assert wg.allclose(p, q.cpu(), rtol=1e-5, atol=1e-6)
print("the same", size)
