"""A convolutional network for digits, trained by Adadelta and tested after each epoch."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 3, 1)
        self.conv2 = nn.Conv2d(6, 8, 3, 1)
        self.fc1 = nn.Linear(32, 16)
        self.fc2 = nn.Linear(16, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        return F.log_softmax(self.fc2(x), dim=1)


def digits(rng, shapes, count):
    labels = rng.integers(0, 10, count)
    images = shapes[labels] + 0.4 * rng.standard_normal((count, 8, 8))
    return TensorDataset(torch.from_numpy(images).unsqueeze(1), torch.from_numpy(labels))


def train(model, device, loader, optimizer, losses):
    model.train()
    for data, target in loader:
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())


def test(model, device, loader):
    model.eval()
    test_loss = 0
    correct = 0
    with torch.no_grad():
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    return [test_loss / len(loader.dataset), correct / len(loader.dataset)]


def main():
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    shapes = (rng.random((10, 8, 8)) > 0.5).astype(np.float64)
    train_loader = DataLoader(digits(rng, shapes, 160), batch_size=16)
    test_loader = DataLoader(digits(rng, shapes, 60), batch_size=60)
    model = Net().double().to(device)
    for p in model.parameters():
        bound = 1.7 / np.sqrt(p.numel() / len(p))
        p.data.copy_(torch.from_numpy(rng.uniform(-bound, bound, tuple(p.shape)) * (p.dim() > 1)))
    optimizer = optim.Adadelta(model.parameters(), lr=2.0)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    losses = []
    for _ in range(4):
        train(model, device, train_loader, optimizer, losses)
        losses += test(model, device, test_loader)
        scheduler.step()
    return losses


if __name__ == "__main__":
    print(main())
