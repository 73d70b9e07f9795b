"""Two moons told apart by a small network: the demonstration of micrograd, on tensors and number by number.

The data are two interleaved half circles with a little noise. A network 2 - 16 - 16 - 1 with ReLU is trained
by plain gradient descent on the hinge loss of a support vector machine, `max(0, 1 - label * score)`, plus a
small penalty on the squares of the weights, for 100 steps on all points at once.

With `--scalars` the same network is written as micrograd writes it: every weight is a tensor without axes,
every neuron a Python sum, and one step puts some sixty thousand entries on the tape. Both give the same
numbers.

This is a PyTorch program; only the import below differs.

Run it: python examples/moons.py [--scalars]
"""

import argparse
import itertools
import math
import time
from pathlib import Path

import numpy as np
import wengert as torch
import wengert.nn as nn

LAYERS = [2, 16, 16, 1]


def make_moons(count, noise, seed):
    """`count` points on two interleaved half circles, and their labels, -1 and 1."""
    rng = np.random.default_rng(seed)
    half = count // 2
    upper, lower = np.linspace(0.0, math.pi, half), np.linspace(0.0, math.pi, count - half)
    first = np.stack([np.cos(upper), np.sin(upper)], 1)
    second = np.stack([1.0 - np.cos(lower), 0.5 - np.sin(lower)], 1)
    points = np.concatenate([first, second]) + rng.normal(0.0, noise, (count, 2))
    labels = np.concatenate([-np.ones(half), np.ones(count - half)])
    order = rng.permutation(count)
    return points[order].astype(np.float32), labels[order].astype(np.float32)


class Network(nn.Module):
    """2 - 16 - 16 - 1 with ReLU, as layers."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(n, m) for n, m in itertools.pairwise(LAYERS))
        for layer in self.layers:
            nn.init.uniform_(layer.weight, -1.0, 1.0)
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x).squeeze(-1)


class Neuron:
    """One unit: a weight for each input, and a bias, all tensors without axes."""

    def __init__(self, weights, bias, nonlinear):
        self.weights = [torch.tensor(w, requires_grad=True) for w in weights]
        self.bias = torch.tensor(bias, requires_grad=True)
        self.nonlinear = nonlinear

    def __call__(self, x):
        total = sum((w * v for w, v in zip(self.weights, x)), self.bias)
        return total.relu() if self.nonlinear else total

    def parameters(self):
        return [*self.weights, self.bias]


class ScalarNetwork:
    """The same network number by number; it starts with the weights of a `Network`."""

    def __init__(self, network):
        self.layers = []
        for layer in network.layers:
            rows = zip(layer.weight.tolist(), layer.bias.tolist())
            self.layers.append([Neuron(w, b, layer is not network.layers[-1]) for w, b in rows])

    def __call__(self, x):
        for layer in self.layers:
            x = [neuron(x) for neuron in layer]
        return x[0]

    def parameters(self):
        return [p for layer in self.layers for neuron in layer for p in neuron.parameters()]


def tensor_loss(network, points, labels, penalty):
    """Loss and scores of all points in one pass."""
    scores = network(torch.tensor(points))
    data_loss = (1.0 - torch.tensor(labels) * scores).relu().mean()
    return data_loss + penalty * sum((p * p).sum() for p in network.parameters()), scores.detach().numpy()


def scalar_loss(network, points, labels, penalty):
    """The same, one number at a time."""
    scores = [network([torch.tensor(v) for v in row]) for row in points.tolist()]
    data_loss = sum((1.0 - label * s).relu() for label, s in zip(labels.tolist(), scores)) * (
        1.0 / len(scores)
    )
    return data_loss + penalty * sum(p * p for p in network.parameters()), np.array(
        [s.item() for s in scores]
    )


def train(network, loss_of, points, labels, steps, penalty=1e-4):
    """Gradient descent on all points; the learning rate falls from 1 to 0.1. Returns losses and
    accuracies."""
    optimizer = torch.optim.SGD(network.parameters(), lr=1.0)
    losses, accuracies = [], []
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 1.0 - 0.9 * step / steps
        loss, scores = loss_of(network, points, labels, penalty)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        accuracies.append(float(((scores > 0) == (labels > 0)).mean()))
        if step % 10 == 0 or step == steps - 1:
            print(f"{step:>5} {losses[-1]:>10.4f} {accuracies[-1]:>9.1%}", flush=True)
    return losses, accuracies


def draw(path, network, points, labels, losses):
    """Writes the decision boundary with its margins, and the loss, as PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    low, high = points.min(0) - 0.5, points.max(0) + 0.5
    across, up = np.meshgrid(np.linspace(low[0], high[0], 240), np.linspace(low[1], high[1], 200))
    grid = np.stack([across.ravel(), up.ravel()], 1).astype(np.float32)
    with torch.no_grad():
        scores = network(torch.tensor(grid)).numpy().reshape(across.shape)
    figure = Figure(figsize=(11, 4.6), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=[1.5, 1])
    left.contourf(
        across, up, np.clip(scores, -3, 3), levels=np.linspace(-3, 3, 25), cmap="RdBu_r", alpha=0.65
    )
    left.contour(across, up, scores, levels=[-1, 0, 1], colors="#22262b", linewidths=[0.8, 1.8, 0.8])
    for label, color, name in ((-1, "#2563eb", "label −1"), (1, "#dc2626", "label +1")):
        part = points[labels == label]
        left.scatter(part[:, 0], part[:, 1], s=26, color=color, edgecolor="white", linewidth=0.7, label=name)
    left.set_title("Score, its zero and its margins", loc="left", fontweight="bold")
    left.legend(loc="lower left", framealpha=0.9, edgecolor="none")
    right.plot(range(1, len(losses) + 1), losses, color="#2563eb", linewidth=2)
    right.set_yscale("log")
    right.set_xlabel("step")
    right.set_title("Hinge loss and penalty", loc="left", fontweight="bold")
    right.grid(color="#e5e7eb")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


def parse(arguments=None):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--scalars", action="store_true", help="number by number, as micrograd does")
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the picture (default: here)")
    return parser.parse_args(arguments)


def main(arguments=None):
    """Trains, prints a table, draws; returns the losses and accuracies."""
    options = parse(arguments)
    torch.manual_seed(options.seed)
    points, labels = make_moons(options.points, 0.1, options.seed)
    network = Network()
    model, loss_of = (ScalarNetwork(network), scalar_loss) if options.scalars else (network, tensor_loss)
    count = sum(p.numel() for p in model.parameters())
    print(f"{count} parameters, {len(points)} points, {'scalars' if options.scalars else 'tensors'}")
    print(f"{'step':>5} {'loss':>10} {'accuracy':>9}")
    start = time.perf_counter()
    losses, accuracies = train(model, loss_of, points, labels, options.steps)
    print(f"{accuracies[-1]:.1%} right after {time.perf_counter() - start:.2f} s")
    if not options.scalars:
        options.out.mkdir(parents=True, exist_ok=True)
        path = options.out / "moons.png"
        draw(path, model, points, labels, losses)
        print(f"picture: {path.resolve()}")
    return losses, accuracies


if __name__ == "__main__":
    main()
