"""Learning-rate schedules as recurrences of plain numbers: what each step makes of the rates that stand."""

import math
from collections.abc import Callable
from typing import Any

# From the settings and the step: what the initial rate is multiplied by, were the schedule alone.
FACTORS: dict[str, Callable[[dict[str, Any], int], float]] = {
    "StepLR": lambda s, t: s["gamma"] ** (t // s["step_size"]),
    "MultiStepLR": lambda s, t: s["gamma"] ** sum(m <= t for m in s["milestones"]),
    "ConstantLR": lambda s, t: s["factor"] if t < s["total_iters"] else 1.0,
    "LinearLR": lambda s, t: (
        s["start_factor"] + (s["end_factor"] - s["start_factor"]) * min(t / s["total_iters"], 1.0)
    ),
    "ExponentialLR": lambda s, t: s["gamma"] ** t,
    "PolynomialLR": lambda s, t: max(0.0, 1 - t / s["total_iters"]) ** s["power"],
    "MultiplicativeLR": lambda s, t: math.prod(s["lr_lambda"](k) for k in range(1, t + 1)),
}


def cosine(share: float) -> float:
    return (1 + math.cos(math.pi * share)) / 2


def restarted(s: dict[str, Any], t: int) -> float:
    length = s["T_0"]
    while t >= length:
        t, length = t - length, length * s["T_mult"]
    return cosine(t / length)


def triangle(s: dict[str, Any], t: int) -> float:
    """Height over the base, as in Smith 2017: `max(0, 1 - |x|)` with x from -1 to 1 in each cycle."""
    cycle = 1 + t // (2 * s["step_size_up"])
    x = abs(t / s["step_size_up"] - 2 * cycle + 1)
    return max(0.0, 1 - x) * (0.5 ** (cycle - 1) if s["mode"] == "triangular2" else 1.0)


def moved(name: str, s: dict[str, Any], t: int, rate: float, base: float) -> float:
    """The rate after step t of a schedule, t = 0 being its construction, from the one that stands."""
    if name in FACTORS:
        now = FACTORS[name](s, t)
        if t == 0:
            return rate * now
        before = FACTORS[name](s, t - 1)
        return rate * (now / before) if before else rate
    if name == "CosineAnnealingLR":
        now, low = cosine(t / s["T_max"]), s["eta_min"]
        if t == 0:
            return rate
        before = cosine((t - 1) / s["T_max"])
        return (
            low + (rate - low) * (now / before)
            if (t - 1) % (2 * s["T_max"]) != s["T_max"]
            else (rate + (base - low) * now)
        )
    if name == "LambdaLR":
        return base * s["lr_lambda"](t)
    if name == "CosineAnnealingWarmRestarts":
        return s["eta_min"] + (base - s["eta_min"]) * restarted(s, t)
    if name == "CyclicLR":
        return s["base_lr"] + (s["max_lr"] - s["base_lr"]) * triangle(s, t)
    raise KeyError(name)
