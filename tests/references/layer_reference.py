"""Layers and losses by definition, in NumPy: plain loops and formulas, none of the library's own steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softplus(x: Array) -> Array:
    return np.logaddexp(0, x)


def elu(x: Array, alpha: float = 1.0, width: float = 1.0) -> Array:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / width))


ACTIVATIONS: dict[str, Callable[..., Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x, negative_slope=0.01: np.where(x > 0, x, negative_slope * x),
    "elu": lambda x, alpha=1.0: elu(x, alpha),
    "celu": lambda x, alpha=1.0: elu(x, alpha, alpha),
    "selu": lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772),
    "silu": lambda x: x * sigmoid(x),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "hardtanh": lambda x, min_val=-1.0, max_val=1.0: np.clip(x, min_val, max_val),
    "hardsigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hardswish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "threshold": lambda x, threshold, value: np.where(x > threshold, x, value),
    "softplus": lambda x, beta=1.0, threshold=20.0: np.where(
        beta * x > threshold, x, softplus(beta * x) / beta
    ),
    "hardshrink": lambda x, lambd=0.5: np.where(np.abs(x) > lambd, x, 0),
    "softshrink": lambda x, lambd=0.5: np.sign(x) * np.maximum(np.abs(x) - lambd, 0),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "logsigmoid": lambda x: -softplus(-x),
    "tanhshrink": lambda x: x - np.tanh(x),
}


def cosine_similarity(x: Array, y: Array, dim: int, eps: float) -> Array:
    x, y = np.broadcast_arrays(x, y)
    lengths = [np.maximum(np.sqrt((a * a).sum(dim)), eps) for a in (x, y)]
    return (x * y).sum(dim) / (lengths[0] * lengths[1])


def pairwise_distance(x: Array, y: Array, p: float, eps: float, keepdim: bool) -> Array:
    size = np.abs(x - y + eps)
    if p == math.inf:
        return size.max(-1, keepdims=keepdim)
    return (size**p).sum(-1, keepdims=keepdim) ** (1 / p)


def pad(x: Array, widths: list[int], mode: str, value: float) -> Array:
    """Cropping first, then NumPy's padding; reflections see what is cropped."""
    for i in range(len(widths) // 2):
        axis = x.ndim - 1 - i
        before, after = widths[2 * i : 2 * i + 2]
        grow = [(0, 0)] * x.ndim
        grow[axis] = (max(before, 0), max(after, 0))
        low, high = max(-before, 0), max(-after, 0)
        crop = lambda a, low=low, high=high, axis=axis: np.take(a, range(low, a.shape[axis] - high), axis)
        if mode == "circular":
            x = np.pad(crop(x), grow, mode="wrap")
        elif mode == "constant":
            x = crop(np.pad(x, grow, constant_values=value))
        else:
            x = crop(np.pad(x, grow, mode={"reflect": "reflect", "replicate": "edge"}[mode]))
    return x


def batch_norm(x: Array, weight: Any, bias: Any, mean: Any, var: Any, eps: float) -> Array:
    shape = (1, -1, *[1] * (x.ndim - 2))
    axes = tuple(i for i in range(x.ndim) if i != 1)
    mean = x.mean(axes) if mean is None else mean
    var = x.var(axes) if var is None else var
    out = (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + eps)
    out = out if weight is None else out * weight.reshape(shape)
    return out if bias is None else out + bias.reshape(shape)


def group_norm(x: Array, groups: int, weight: Any, bias: Any, eps: float) -> Array:
    rows = x.reshape(x.shape[0], groups, -1)
    out = ((rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + eps)).reshape(
        x.shape
    )
    shape = (1, -1, *[1] * (x.ndim - 2))
    out = out if weight is None else out * weight.reshape(shape)
    return out if bias is None else out + bias.reshape(shape)


def resample(x: Array, axis: int, out: int, mode: str, aligned: bool, scale: float | None) -> Array:
    """One axis at another resolution, each output by itself."""
    n = x.shape[axis]
    taken = lambda i: np.take(x, min(max(i, 0), n - 1), axis)
    rows = []
    for i in range(out):
        step = 1 / scale if scale else n / out
        if mode == "nearest":
            rows.append(taken(math.floor(i * step)))
            continue
        if mode == "nearest-exact":
            rows.append(taken(math.floor((i + 0.5) * step)))
            continue
        if mode == "area":
            rows.append(np.take(x, range(i * n // out, -(-(i + 1) * n // out)), axis).mean(axis))
            continue
        at = i * ((n - 1) / (out - 1) if out > 1 else 0.0) if aligned else (i + 0.5) * step - 0.5
        if mode == "cubic":
            low = math.floor(at)
            rows.append(sum(keys(at - low - k) * taken(low + k) for k in (-1, 0, 1, 2)))
            continue
        at = max(at, 0.0)
        low = min(math.floor(at), n - 1)
        rows.append((1 - (at - low)) * taken(low) + (at - low) * taken(low + 1))
    return np.stack(rows, axis)


def keys(d: float) -> float:
    """The kernel of Keys (1981) with a = -0.75."""
    d = abs(d)
    if d <= 1:
        return 1.25 * d**3 - 2.25 * d**2 + 1
    return -0.75 * (d**3 - 5 * d**2 + 8 * d - 4) if d < 2 else 0.0


def reduced(loss: Array, reduction: str) -> Array:
    return {"mean": loss.mean, "sum": loss.sum, "none": lambda: loss}[reduction]()


def log_softmax(x: Array, axis: int) -> Array:
    x = x - x.max(axis, keepdims=True)
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def cross_entropy(
    x: Array, t: Array, weight: Any, ignore_index: int, reduction: str, smoothing: float
) -> Array:
    """Of logits `(N, C, d...)` and class indices, one row at a time."""
    logs, classes = log_softmax(x, 1), x.shape[1]
    weight = np.ones(classes) if weight is None else weight
    losses, shares = np.zeros(t.shape), np.zeros(t.shape)
    for at in np.ndindex(*t.shape):
        if t[at] == ignore_index:
            continue
        row = logs[(at[0], slice(None), *at[1:])]
        even = -(weight * row).sum() / classes
        losses[at] = -(1 - smoothing) * weight[t[at]] * row[t[at]] + smoothing * even
        shares[at] = weight[t[at]]
    return losses.sum() / shares.sum() if reduction == "mean" else reduced(losses, reduction)


def huber(d: Array, delta: float) -> Array:
    return np.where(np.abs(d) <= delta, d * d / 2, delta * (np.abs(d) - delta / 2))


def recurrent(
    kind: str, x: Array, state: list[Array], parts: Callable[[str], Any], settings: dict[str, Any]
) -> tuple[Array, list[Array]]:
    """Outputs `(time, batch, ..)` and last states, step by step, layer by layer."""
    last: list[list[Array]] = [[] for _ in state]
    directions = ["", "_reverse"] if settings["bidirectional"] else [""]
    for layer in range(settings["num_layers"]):
        outputs = []
        for suffix in directions:
            w_ih, w_hh, b_ih, b_hh, w_hr = (
                parts(f"{name}_l{layer}{suffix}")
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
            )
            now = [s[len(last[0])] for s in state]
            rows = []
            for t in range(len(x))[:: -1 if suffix else 1]:
                gates = x[t] @ w_ih.T + (0 if b_ih is None else b_ih)
                inner = now[0] @ w_hh.T + (0 if b_hh is None else b_hh)
                now = step(kind, gates, inner, now, settings.get("nonlinearity", "tanh"))
                if w_hr is not None:
                    now = [now[0] @ w_hr.T, *now[1:]]
                rows.append(now[0])
            outputs.append(np.stack(rows[:: -1 if suffix else 1]))
            for found, s in zip(last, now, strict=True):
                found.append(s)
        x = np.concatenate(outputs, -1)
    return x, [np.stack(found) for found in last]


def step(kind: str, gates: Array, inner: Array, state: list[Array], nonlinearity: str) -> list[Array]:
    """One step of a cell from the parts of its gates."""
    if kind == "RNN":
        total = gates + inner
        return [np.tanh(total) if nonlinearity == "tanh" else np.maximum(total, 0)]
    if kind == "GRU":
        (r, z, n), (hr, hz, hn) = np.split(gates, 3, -1), np.split(inner, 3, -1)
        new = np.tanh(n + sigmoid(r + hr) * hn)
        z = sigmoid(z + hz)
        return [(1 - z) * new + z * state[0]]
    i, f, g, o = np.split(gates + inner, 4, -1)
    cell = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
    return [sigmoid(o) * np.tanh(cell), cell]
