"""MAML on sine waves: gradients through gradient steps, by torch.func over a batch of tasks."""

import math

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, grad, grad_and_value, vmap
from torch.nn import functional as F


class ThreeLayerNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(1, 16)
        self.fc2 = nn.Linear(16, 16)
        self.fc3 = nn.Linear(16, 1)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = torch.tanh(self.fc2(x))
        return self.fc3(x)


def sample_tasks(rng, outer_batch_size, inner_batch_size):
    amplitudes = rng.uniform(0.5, 3.0, outer_batch_size)
    phases = rng.uniform(0.0, math.pi, outer_batch_size)

    def get_batch():
        xs = rng.uniform(-5.0, 5.0, (outer_batch_size, inner_batch_size, 1))
        ys = amplitudes[:, None, None] * np.sin(xs + phases[:, None, None])
        return torch.from_numpy(xs), torch.from_numpy(ys)

    return (*get_batch(), *get_batch())


def main():
    rng = np.random.default_rng(16)
    model = ThreeLayerNet().double()
    names = [name for name, _ in model.named_parameters()]
    params = {
        name: torch.from_numpy(rng.normal(0, 0.4, tuple(p.shape))).requires_grad_()
        for name, p in model.named_parameters()
    }
    optimizer = torch.optim.Adam(params.values(), lr=1e-2)
    alpha = 0.1

    def compute_loss(params, x, y):
        return F.mse_loss(functional_call(model, params, (x,)), y)

    def get_loss_for_task(params, x1, y1, x2, y2):
        grads = grad(compute_loss)(params, x1, y1)
        new_params = {k: params[k] - alpha * grads[k] for k in params}
        return compute_loss(new_params, x2, y2)

    losses = []
    for it in range(12):
        tasks = sample_tasks(rng, 4, 8)
        if it % 2 == 0:
            # The tape goes through the transforms.
            inner_losses = vmap(get_loss_for_task, in_dims=(None, 0, 0, 0, 0))(params, *tasks)
            loss2 = sum(inner_losses) / len(inner_losses)
            optimizer.zero_grad()
            loss2.backward()
        else:
            # One transform around another.
            mean = lambda p, *tasks: vmap(get_loss_for_task, in_dims=(None, 0, 0, 0, 0))(p, *tasks).mean()
            detached = {k: p.detach() for k, p in params.items()}
            gradients, loss2 = grad_and_value(mean)(detached, *tasks)
            for name in names:
                params[name].grad = gradients[name]
        optimizer.step()
        losses.append(loss2.item())
    x1, y1, x2, y2 = (each[0] for each in sample_tasks(rng, 1, 8))
    fast, steps = dict(params), []
    for _ in range(3):
        loss = compute_loss(fast, x1, y1)
        slopes = torch.autograd.grad(loss, tuple(fast.values()), create_graph=True)
        fast = {k: p - alpha * g for (k, p), g in zip(fast.items(), slopes)}
        steps.append(compute_loss(fast, x2, y2))
    torch.stack(steps).sum().backward()
    return losses + [step.item() for step in steps] + [params[name].grad.norm().item() for name in names]


if __name__ == "__main__":
    print(main())
