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


def adagrad(p, g, s, lr=0.01, lr_decay=0.0, weight_decay=0.0, initial_accumulator_value=0.0, eps=1e-10):
    g = g + weight_decay * p
    t = s["t"] = s.get("t", 0) + 1
    s["sum"] = s.get("sum", initial_accumulator_value) + g * g
    return p - lr / (1 + (t - 1) * lr_decay) * g / (np.sqrt(s["sum"]) + eps)


def adadelta(p, g, s, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0.0):
    g = g + weight_decay * p
    s["g"] = rho * s.get("g", 0) + (1 - rho) * g * g
    delta = np.sqrt(s.get("d", 0) + eps) / np.sqrt(s["g"] + eps) * g
    s["d"] = rho * s.get("d", 0) + (1 - rho) * delta * delta
    return p - lr * delta


def rmsprop(p, g, s, lr=0.01, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False):
    g = g + weight_decay * p
    v = s["v"] = alpha * s.get("v", 0) + (1 - alpha) * g * g
    if centered:
        s["m"] = alpha * s.get("m", 0) + (1 - alpha) * g
        v = v - s["m"] ** 2
    step = s["b"] = momentum * s.get("b", 0) + g / (np.sqrt(v) + eps)
    return p - lr * step


def adamax(p, g, s, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    g = g + weight_decay * p
    t = s["t"] = s.get("t", 0) + 1
    m = s["m"] = betas[0] * s.get("m", 0) + (1 - betas[0]) * g
    u = s["u"] = np.maximum(betas[1] * s.get("u", 0), np.abs(g) + eps)
    return p - lr / (1 - betas[0] ** t) * m / u


def moments(p, g, s, betas, lr, weight_decay, decoupled):
    """The parameter and gradient after the decay, the number of the step, and both means."""
    p, g = (p * (1 - lr * weight_decay), g) if decoupled else (p, g + weight_decay * p)
    t = s["t"] = s.get("t", 0) + 1
    m = s["m"] = betas[0] * s.get("m", 0) + (1 - betas[0]) * g
    v = s["v"] = betas[1] * s.get("v", 0) + (1 - betas[1]) * g * g
    return p, g, t, m, v


def nadam(
    p, g, s, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, momentum_decay=4e-3,
    decoupled_weight_decay=False,
):  # fmt: skip
    p, g, t, m, v = moments(p, g, s, betas, lr, weight_decay, decoupled_weight_decay)
    mu = [betas[0] * (1 - 0.5 * 0.96 ** (k * momentum_decay)) for k in range(1, t + 2)]
    looked = mu[t] * m / (1 - np.prod(mu)) + (1 - mu[t - 1]) * g / (1 - np.prod(mu[:t]))
    return p - lr * looked / (np.sqrt(v / (1 - betas[1] ** t)) + eps)


def radam(p, g, s, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, decoupled_weight_decay=False):
    p, g, t, m, v = moments(p, g, s, betas, lr, weight_decay, decoupled_weight_decay)
    m = m / (1 - betas[0] ** t)
    most = 2 / (1 - betas[1]) - 1
    now = most - 2 * t * betas[1] ** t / (1 - betas[1] ** t)
    if now <= 5:
        return p - lr * m
    share = (now - 4) * (now - 2) * most / ((most - 4) * (most - 2) * now)
    return p - lr * m * np.sqrt(share) * np.sqrt(1 - betas[1] ** t) / (np.sqrt(v) + eps)


def rprop(p, g, s, lr=0.01, etas=(0.5, 1.2), step_sizes=(1e-6, 50)):
    agreed = np.sign(g * s.get("g", 0))
    size = s.get("size", np.full_like(p, lr)) * np.select([agreed > 0, agreed < 0], etas[::-1], 1.0)
    s["size"] = np.clip(size, *step_sizes)
    s["g"] = np.where(agreed < 0, 0, g)
    return p - np.sign(s["g"]) * s["size"]


def asgd(p, g, s, lr=0.01, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0.0):
    g = g + weight_decay * p
    t = s["t"] = s.get("t", 0) + 1
    # A rate that changes acts one step later: each step ends with the next one's eta.
    eta, s["eta"] = s.get("eta", lr), lr / (1 + lambd * lr * t) ** alpha
    p = p - lambd * eta * p - eta * g
    s["ax"] = p if t <= t0 + 1 else s["ax"] + (p - s["ax"]) / (t - 1 - t0)
    return p


def adafactor(p, g, s, lr=0.01, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0):
    t = s["t"] = s.get("t", 0) + 1
    least = np.finfo(np.float64).eps if eps[0] is None else eps[0]
    rms = lambda x: np.sqrt((x * x).mean())
    move = t**beta2_decay
    size = max(eps[1], rms(p)) * min(lr, 1 / np.sqrt(t))
    means = [(g * g).mean(axis, keepdims=True) for axis in (-1, -2)] if g.ndim > 1 else [g * g]
    s["v"] = [v + (m - v) * move for v, m in zip(s.get("v", [0.0] * len(means)), means)]
    v = s["v"][0] @ s["v"][1] / max(s["v"][0].mean(), least) if g.ndim > 1 else s["v"][0]
    u = g / np.sqrt(np.maximum(v, least**2))
    return p * (1 - lr * weight_decay) - size * u / max(1, rms(u) / d)


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
    "adagrad": (optim.Adagrad, adagrad, dict(lr=0.1)),
    "adagrad_start": (
        optim.Adagrad,
        adagrad,
        dict(lr=0.1, lr_decay=0.3, weight_decay=0.2, initial_accumulator_value=0.5),
    ),
    "adadelta": (optim.Adadelta, adadelta, dict(rho=0.7, eps=1e-3, weight_decay=0.1)),
    "rmsprop": (optim.RMSprop, rmsprop, dict(lr=0.1, weight_decay=0.1)),
    "rmsprop_centered": (optim.RMSprop, rmsprop, dict(lr=0.1, alpha=0.8, momentum=0.6, centered=True)),
    "adamax": (optim.Adamax, adamax, dict(lr=0.1, betas=(0.8, 0.9), weight_decay=0.1)),
    "nadam": (optim.NAdam, nadam, dict(lr=0.1, weight_decay=0.1, momentum_decay=0.1)),
    "nadam_decoupled": (
        optim.NAdam,
        nadam,
        dict(lr=0.1, weight_decay=0.1, decoupled_weight_decay=True),
    ),
    "radam": (optim.RAdam, radam, dict(lr=0.1, weight_decay=0.1)),
    "radam_rectified": (
        optim.RAdam,
        radam,
        dict(lr=0.1, betas=(0.8, 0.95), weight_decay=0.1, decoupled_weight_decay=True),
    ),
    "rprop": (optim.Rprop, rprop, dict(lr=0.1, etas=(0.4, 1.5), step_sizes=(0.02, 0.2))),
    "asgd": (optim.ASGD, asgd, dict(lr=0.1, lambd=0.1, alpha=0.6, t0=2, weight_decay=0.1)),
    "adafactor": (optim.Adafactor, adafactor, dict(lr=0.1)),
    "adafactor_bounded": (
        optim.Adafactor,
        adafactor,
        dict(lr=0.5, beta2_decay=-0.5, eps=(0.1, 0.5), d=1.5, weight_decay=0.1),
    ),
}
# Those whose step is one kernel.
FUSED = [name for name in CASES if name.startswith(("sgd", "adam")) and name != "adamax"]


def run(make, settings, dtype, steps=6, device="cpu"):
    params = [wg.tensor(p, dtype=dtype).to(device).requires_grad_() for p in start()]
    optimizer = make(params, **settings)
    for grads in gradients(steps):
        for param, g in zip(params, grads):
            param.grad = wg.tensor(g, dtype=dtype).to(device)
        optimizer.step()
    return params, optimizer
