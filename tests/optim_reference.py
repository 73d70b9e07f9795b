"""The update formulas of the optimisers in NumPy, and the settings they are compared with."""

import numpy as np
import wengert as wg
from wengert import optim

SHAPES = [(3, 2), (4,), ()]


def start(dtype=np.float64):
    rng = np.random.default_rng(0)
    return [np.asarray(rng.standard_normal(shape), dtype) for shape in SHAPES]


def gradients(count):
    rng = np.random.default_rng(1)
    return [[np.asarray(rng.standard_normal(shape)) for shape in SHAPES] for _ in range(count)]


def sgd(p, g, s, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False):
    g = g + weight_decay * p
    if momentum:
        s["v"] = momentum * s["v"] + (1 - dampening) * g if "v" in s else g
        g = g + momentum * s["v"] if nesterov else s["v"]
    return p - lr * g


def adam(p, g, s, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, decoupled=False):
    if decoupled:
        p = p * (1 - lr * weight_decay)
    else:
        g = g + weight_decay * p
    t = s["t"] = s.get("t", 0) + 1
    m = s["m"] = betas[0] * s.get("m", 0) + (1 - betas[0]) * g
    v = s["v"] = betas[1] * s.get("v", 0) + (1 - betas[1]) * g * g
    if amsgrad:
        v = s["top"] = np.maximum(s.get("top", 0), v)
    return p - lr * (m / (1 - betas[0] ** t)) / (np.sqrt(v / (1 - betas[1] ** t)) + eps)


CASES = {
    "sgd": (optim.SGD, sgd, dict(lr=0.1)),
    "sgd_decay": (optim.SGD, sgd, dict(lr=0.1, weight_decay=0.3)),
    "sgd_momentum": (optim.SGD, sgd, dict(lr=0.1, momentum=0.9, weight_decay=0.1)),
    "sgd_dampening": (optim.SGD, sgd, dict(lr=0.1, momentum=0.9, dampening=0.4)),
    "sgd_nesterov": (optim.SGD, sgd, dict(lr=0.1, momentum=0.9, nesterov=True)),
    "adam": (optim.Adam, adam, dict(lr=0.1)),
    "adam_decay": (optim.Adam, adam, dict(lr=0.1, weight_decay=0.2, betas=(0.8, 0.99), eps=1e-3)),
    "adam_amsgrad": (optim.Adam, adam, dict(lr=0.1, amsgrad=True)),
    "adamw": (optim.AdamW, lambda *a, **k: adam(*a, **k, decoupled=True), dict(lr=0.1, weight_decay=0.2)),
    "adamw_amsgrad": (
        optim.AdamW,
        lambda *a, **k: adam(*a, **k, decoupled=True),
        dict(lr=0.1, weight_decay=0.2, amsgrad=True, betas=(0.5, 0.6)),
    ),
}


def run(make, settings, dtype, steps=6, device="cpu"):
    params = [wg.tensor(p, dtype=dtype).to(device).requires_grad_() for p in start()]
    optimizer = make(params, **settings)
    for grads in gradients(steps):
        for param, g in zip(params, grads):
            param.grad = wg.tensor(g, dtype=dtype).to(device)
        optimizer.step()
    return params, optimizer
