"""Denoising diffusion of images: a small U-Net with times, a cosine schedule of noise, an average of the
weights."""

import copy
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class SinusoidalPosEmb(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        half_dim = self.dim // 2
        emb = math.log(10000) / (half_dim - 1)
        emb = torch.exp(torch.arange(half_dim, device=x.device) * -emb)
        emb = x[:, None] * emb[None, :]
        return torch.cat((emb.sin(), emb.cos()), dim=-1)


class Block(nn.Module):
    def __init__(self, dim, dim_out, time_dim):
        super().__init__()
        self.mlp = nn.Sequential(nn.SiLU(), nn.Linear(time_dim, dim_out * 2))
        self.proj = nn.Conv2d(dim, dim_out, 3, padding=1)
        self.norm = nn.GroupNorm(2, dim_out)

    def forward(self, x, time):
        scale, shift = self.mlp(time)[..., None, None].chunk(2, dim=1)
        return F.silu(self.norm(self.proj(x)) * (scale + 1) + shift)


class Unet(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.time_mlp = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8))
        self.embed = SinusoidalPosEmb(8)
        self.enter, self.inner, self.leave = Block(1, dim, 8), Block(dim, dim, 8), Block(2 * dim, dim, 8)
        self.down = nn.Conv2d(dim, dim, 2, stride=2)
        self.up = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(dim, dim, 3, padding=1))
        self.final_conv = nn.Conv2d(dim, 1, 1)

    def forward(self, x, time):
        t = self.time_mlp(self.embed(time).type(x.dtype))
        x = self.enter(x, t)
        skip = x.clone()
        x = self.up(self.inner(self.down(x), t))
        return self.final_conv(self.leave(torch.cat((x, skip), dim=1), t))


def cosine_beta_schedule(timesteps, s=0.008):
    x = torch.linspace(0, timesteps, timesteps + 1, dtype=torch.float64)
    alphas_cumprod = torch.cos(((x / timesteps) + s) / (1 + s) * math.pi * 0.5) ** 2
    alphas_cumprod = alphas_cumprod / alphas_cumprod[0]
    betas = 1 - (alphas_cumprod[1:] / alphas_cumprod[:-1])
    return torch.clip(betas, 0, 0.5)


def extract(a, t, x_shape):
    b, *_ = t.shape
    return a.gather(-1, t).reshape(b, *((1,) * (len(x_shape) - 1)))


@torch.no_grad()
def p_sample_loop(model, img, betas, alphas_cumprod, rng):
    previous = F.pad(alphas_cumprod[:-1], (1, 0), value=1.0)
    variance = betas * (1.0 - previous) / (1.0 - alphas_cumprod)
    for i in reversed(range(len(betas))):
        t = torch.full((img.shape[0],), i, dtype=torch.long)
        noise = model(img, t)
        mean = (img - betas[i] / (1 - alphas_cumprod[i]).sqrt() * noise) / torch.sqrt(1 - betas[i])
        img = mean if i == 0 else mean + variance[i].sqrt() * torch.from_numpy(rng.standard_normal(img.shape))
    return img


def main():
    rng = np.random.default_rng(14)
    model = Unet().double()
    for p in model.parameters():
        p.data.copy_(torch.from_numpy(rng.uniform(-0.3, 0.3, tuple(p.shape))))
    ema = copy.deepcopy(model).eval().requires_grad_(False)
    betas = cosine_beta_schedule(10)
    alphas_cumprod = torch.cumprod(1.0 - betas, dim=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, betas=(0.9, 0.99))
    losses = []
    for _ in range(15):
        x_start = torch.from_numpy(np.sign(rng.standard_normal((8, 1, 1, 8))) * np.ones((1, 1, 8, 1)))
        t = torch.from_numpy(rng.integers(0, 10, 8))
        noise = torch.from_numpy(rng.standard_normal(x_start.shape))
        x = extract(alphas_cumprod.sqrt(), t, x_start.shape) * x_start
        x = x + extract((1.0 - alphas_cumprod).sqrt(), t, x_start.shape) * noise
        loss = F.mse_loss(model(x, t), noise, reduction="none").mean(dim=(1, 2, 3)).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        for average, p in zip(ema.parameters(), model.parameters()):
            average.lerp_(p.detach(), 0.2)
        losses.append(loss.item())
    img = torch.from_numpy(rng.standard_normal((2, 1, 8, 8)))
    sample = p_sample_loop(ema, img, betas, alphas_cumprod, rng)
    return [*losses, sample.abs().mean().item(), *sample.flatten(1).std(dim=1).tolist()]


if __name__ == "__main__":
    print(main())
