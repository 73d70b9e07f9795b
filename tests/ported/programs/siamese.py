"""A siamese network: two images through one network, and whether they show the same class."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, SubsetRandomSampler


class Pairs(Dataset):
    """Pairs of images; every second one is of two classes."""

    def __init__(self, rng, count):
        shapes = rng.standard_normal((4, 1, 8, 8))
        first = rng.integers(0, 4, count)
        second = np.where(np.arange(count) % 2 == 0, first, (first + rng.integers(1, 4, count)) % 4)
        noise = 0.3 * rng.standard_normal((2, count, 1, 8, 8))
        self.first, self.second = shapes[first] + noise[0], shapes[second] + noise[1]
        self.same = (first == second).astype(np.float64)

    def __len__(self):
        return len(self.same)

    def __getitem__(self, index):
        image, other = torch.from_numpy(self.first[index]), torch.from_numpy(self.second[index])
        return image, other, torch.tensor(self.same[index], dtype=torch.float64)


class Permutation(SubsetRandomSampler):
    """The order of an epoch, from NumPy."""

    def __init__(self, rng, count):
        super().__init__(range(count))
        self.rng, self.count = rng, count

    def __iter__(self):
        return iter(self.rng.permutation(self.count).tolist())


class SiameseNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn = nn.Sequential(
            nn.Conv2d(1, 4, kernel_size=3, padding=1, padding_mode="reflect"),
            nn.ReLU(inplace=True),
            nn.AvgPool2d(2),
            nn.Conv2d(4, 4, kernel_size=3),
            nn.GroupNorm(2, 4),
            nn.ReLU(inplace=True),
            nn.Flatten(),
            nn.Linear(16, 6),
        )
        self.fc = nn.Linear(12, 1)

    def forward(self, x, y):
        a, b = self.cnn(x), self.cnn(y)
        logit = self.fc(torch.cat((torch.abs(a - b), a * b), 1))
        return a, b, logit.squeeze(1)


def main():
    rng = np.random.default_rng(3)
    dataset = Pairs(rng, 48)
    loader = DataLoader(dataset, batch_size=16, sampler=Permutation(rng, len(dataset)))
    model = SiameseNetwork().double()
    for p in model.parameters():
        if p.dim() > 1:
            p.data = torch.from_numpy(rng.normal(0, 0.25, tuple(p.shape)))
        else:
            nn.init.zeros_(p) if p is not model.cnn[4].weight else nn.init.ones_(p)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-3, momentum=0.5)
    criterion = nn.BCEWithLogitsLoss()
    losses = []
    for _ in range(5):
        for x, y, same in loader:
            a, b, logit = model(x, y)
            distance = F.pairwise_distance(a, b)
            contrastive = torch.mean(same * distance.pow(2) + (1 - same) * F.relu(2.0 - distance).pow(2))
            loss = criterion(logit, same) + 0.1 * contrastive
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


if __name__ == "__main__":
    print(main())
