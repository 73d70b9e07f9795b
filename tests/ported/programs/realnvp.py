"""RealNVP: a flow of masked affine couplings that learns two moons."""

import numpy as np
import torch
from torch import distributions, nn
from torch.nn.parameter import Parameter


class RealNVP(nn.Module):
    def __init__(self, nets, nett, masks, prior):
        super().__init__()
        self.prior = prior
        self.mask = nn.Parameter(masks, requires_grad=False)
        self.t = torch.nn.ModuleList([nett() for _ in range(len(masks))])
        self.s = torch.nn.ModuleList([nets() for _ in range(len(masks))])

    def g(self, z):
        x = z
        for i in range(len(self.t)):
            x_ = x * self.mask[i]
            s = self.s[i](x_) * (1 - self.mask[i])
            t = self.t[i](x_) * (1 - self.mask[i])
            x = x_ + (1 - self.mask[i]) * (x * torch.exp(s) + t)
        return x

    def f(self, x):
        log_det_J, z = x.new_zeros(x.shape[0]), x
        for i in reversed(range(len(self.t))):
            z_ = self.mask[i] * z
            s = self.s[i](z_) * (1 - self.mask[i])
            t = self.t[i](z_) * (1 - self.mask[i])
            z = (1 - self.mask[i]) * (z - t) * torch.exp(-s) + z_
            log_det_J -= s.sum(dim=1)
        return z, log_det_J

    def log_prob(self, x):
        z, logp = self.f(x)
        return self.prior.log_prob(z) + logp


def moons(rng, count):
    angles, upper = rng.uniform(0, np.pi, count), rng.random(count) < 0.5
    x = np.where(upper, np.cos(angles), 1 - np.cos(angles))
    y = np.where(upper, np.sin(angles), 0.5 - np.sin(angles))
    return np.stack([x, y], axis=1) + 0.05 * rng.standard_normal((count, 2))


def main():
    rng = np.random.default_rng(13)
    nets = lambda: nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(), nn.Linear(16, 2), nn.Tanh())
    nett = lambda: nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(), nn.Linear(16, 2))
    masks = torch.from_numpy(np.array([[0, 1], [1, 0]] * 3).astype(np.float64))
    prior = distributions.MultivariateNormal(
        torch.zeros(2, dtype=torch.float64), torch.eye(2, dtype=torch.float64)
    )
    flow = RealNVP(nets, nett, masks, prior).to(torch.float64)
    for p in flow.parameters():
        if p.requires_grad:
            p.data.copy_(torch.from_numpy(rng.uniform(-0.5, 0.5, tuple(p.shape))))
    optimizer = torch.optim.Adam([p for p in flow.parameters() if p.requires_grad], lr=5e-3)
    losses = []
    for _ in range(15):
        loss = -flow.log_prob(torch.from_numpy(moons(rng, 40))).mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        losses.append(loss.item())
    noise = torch.from_numpy(rng.standard_normal((20, 2)))
    x = flow.g(noise)
    z = flow.f(x)[0].detach().numpy()
    assert np.allclose(z, noise.numpy())
    assert isinstance(flow.mask, Parameter)
    return [*losses, *x.mean(0).tolist(), x.std(0).norm().item()]


if __name__ == "__main__":
    print(main())
