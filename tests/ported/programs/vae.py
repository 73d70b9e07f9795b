"""A variational autoencoder of binary images."""

import numpy as np
import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader


class VAE(nn.Module):
    def __init__(self, pixels=36, hidden=20, latent=4):
        super(VAE, self).__init__()  # noqa: UP008
        self.fc1 = nn.Linear(pixels, hidden)
        self.fc21 = nn.Linear(hidden, latent)
        self.fc22 = nn.Linear(hidden, latent)
        self.fc3 = nn.Linear(latent, hidden)
        self.fc4 = nn.Linear(hidden, pixels)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar, eps):
        std = torch.exp(0.5 * logvar)
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x, eps):
        mu, logvar = self.encode(x.view(-1, 36))
        z = self.reparameterize(mu, logvar, eps)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    bce = F.binary_cross_entropy(recon_x, x.view(-1, 36), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


def main():
    rng = np.random.default_rng(1)
    prototypes = rng.random((5, 1, 6, 6)) > 0.6
    flips = rng.random((64, 1, 6, 6)) < 0.05
    images = torch.from_numpy((prototypes[rng.integers(0, 5, 64)] ^ flips).astype(np.float64))
    loader = DataLoader(images, batch_size=16, shuffle=False, drop_last=True)
    model = VAE().to(torch.float64)
    with torch.no_grad():
        for name, p in model.named_parameters():
            scale = 0.0 if name.endswith("bias") else 1 / np.sqrt(p.shape[1])
            p.copy_(torch.as_tensor(scale * rng.standard_normal(tuple(p.size()))))
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(6):
        model.train()
        train_loss = 0
        for data in loader:
            optimizer.zero_grad()
            eps = torch.from_numpy(rng.standard_normal((len(data), 4)))
            recon_batch, mu, logvar = model(data, eps)
            loss = loss_function(recon_batch, data, mu, logvar)
            loss.backward()
            train_loss += loss.item()
            optimizer.step()
            losses.append(loss.item() / len(data))
        losses.append(train_loss / len(loader.dataset))
    return losses


if __name__ == "__main__":
    print(main())
