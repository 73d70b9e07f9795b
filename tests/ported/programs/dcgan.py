"""Generative adversarial networks of convolutions: batch norm, transposed convolutions, two optimisers."""

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim


class Generator(nn.Module):
    def __init__(self, nz=6, ngf=4):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 2, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self, ndf=4):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, ndf, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf * 2, 3, 1, 1, bias=False),
            nn.BatchNorm2d(ndf * 2),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 2, 1, 4, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, input):
        return self.main(input).view(-1)


def main():
    rng = np.random.default_rng(2)

    def weights_init(m):
        classname = m.__class__.__name__
        if classname.find("Conv") != -1:
            m.weight.data.copy_(torch.from_numpy(0.2 * rng.standard_normal(tuple(m.weight.shape))))
        elif classname.find("BatchNorm") != -1:
            m.weight.data.copy_(torch.from_numpy(1 + 0.02 * rng.standard_normal(tuple(m.weight.shape))))
            m.bias.data.fill_(0)

    netG, netD = Generator().double(), Discriminator().double()
    netG.apply(weights_init)
    netD.apply(weights_init)
    criterion = nn.BCELoss()
    optimizerD = optim.Adam(netD.parameters(), lr=2e-3, betas=(0.5, 0.999))
    optimizerG = optim.Adam(netG.parameters(), lr=2e-3, betas=(0.5, 0.999))
    x, y = np.meshgrid(np.linspace(-1, 1, 8), np.linspace(-1, 1, 8))
    losses = []
    for _ in range(12):
        centers = rng.uniform(-0.5, 0.5, (2, 8, 1, 1))
        real = np.tanh(2 - 6 * np.hypot(x - centers[0], y - centers[1]))[:, None]
        netD.zero_grad()
        label = torch.full((8,), 1.0, dtype=torch.float64)
        errD_real = criterion(netD(torch.from_numpy(real)), label)
        errD_real.backward()
        fake = netG(torch.from_numpy(rng.standard_normal((8, 6, 1, 1))))
        label.fill_(0.0)
        errD_fake = criterion(netD(fake.detach()), label)
        errD_fake.backward()
        optimizerD.step()
        netG.zero_grad()
        label.fill_(1.0)
        errG = criterion(netD(fake), label)
        errG.backward()
        optimizerG.step()
        losses += [(errD_real + errD_fake).item(), errG.item()]
    netG.eval()
    with torch.no_grad():
        losses.append(netG(torch.ones(2, 6, 1, 1, dtype=torch.float64)).square().mean().item())
    return losses


if __name__ == "__main__":
    print(main())
