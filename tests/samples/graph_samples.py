"""Graphs that several test files draw."""

import wengert as wg


def small():
    """A logistic unit by hand, its parameters and its loss."""
    w = wg.tensor([[0.5], [-1.0]], requires_grad=True)
    b = wg.tensor([0.25], requires_grad=True)
    x = wg.tensor([[1.0, 2.0], [3.0, -1.0], [0.0, 1.0]])
    return w, b, (x @ w + b).sigmoid().sum()


def network(layers):
    """A deep network of equal layers and its loss."""
    wg.manual_seed(0)
    parts = [part for _ in range(layers) for part in (wg.nn.Linear(4, 4), wg.nn.ReLU())]
    model = wg.nn.Sequential(*parts, wg.nn.Linear(4, 1))
    return model, model(wg.randn(3, 4)).sum()
