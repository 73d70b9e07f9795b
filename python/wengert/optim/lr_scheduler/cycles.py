"""Schedules that go up and down: cosines, and cycles between two rates."""

import math
from collections.abc import Callable
from typing import Any

from ..optimizer import Optimizer
from .schedule import LRScheduler

__all__ = ["CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR"]


def _set_momentum(group: dict[str, Any], value: float) -> None:
    """Sets the momentum of a group, or the weight of its first moment."""
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def _check_momentum(name: str, optimizer: Optimizer) -> None:
    """Raises unless the optimiser has momentum of some kind."""
    if not {"momentum", "betas"} & set(optimizer.defaults):
        raise ValueError(f"{name}: cycle_momentum needs an optimiser with momentum or betas")


def _cosine(high: float, low: float, share: float) -> float:
    """From `high` at share 0 to `low` at share 1 along half a cosine."""
    return low + (high - low) * 0.5 * (1.0 + math.cos(math.pi * share))


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the rate to `eta_min` in `T_max` steps, and back (Loshchilov and Hutter 2016)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        """Settings."""
        if T_max <= 0:
            raise ValueError(f"CosineAnnealingLR: T_max must be positive, got {T_max}")
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _lr(self, base: float, t: int, i: int) -> float:
        return _cosine(base, self.eta_min, t / self.T_max)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosines of `T_0`, `T_0 T_mult`, ... steps, each from the full rate (Loshchilov and Hutter
    2016).
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        """Settings."""
        if T_0 <= 0 or T_mult < 1:
            raise ValueError(
                f"CosineAnnealingWarmRestarts: positive T_0 and T_mult expected, got {T_0}, {T_mult}"
            )
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def _lr(self, base: float, t: int, i: int) -> float:
        length = self.T_0
        if self.T_mult == 1:
            t %= length
        while t >= length:
            t, length = t - length, length * self.T_mult
        return _cosine(base, self.eta_min, t / length)


class OneCycleLR(LRScheduler):
    """Up to `max_lr`, then far down, momentum the other way round; step it after every batch (Smith and Topin
    2017).
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        """`total_steps`, or `epochs` and `steps_per_epoch`. With `three_phase` the way back to the first rate takes as
        many steps as the way up, and the rest goes on from there.
        """
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("OneCycleLR: give total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0 or not 0.0 <= pct_start <= 1.0 or anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                "OneCycleLR: positive total_steps, pct_start in [0, 1] and anneal_strategy 'cos' or 'linear' "
                f"expected, got {total_steps}, {pct_start}, {anneal_strategy!r}"
            )
        if cycle_momentum:
            _check_momentum("OneCycleLR", optimizer)
        self.total_steps, self.pct_start, self.anneal_strategy = total_steps, pct_start, anneal_strategy
        self.cycle_momentum, self.base_momentum, self.max_momentum = (
            cycle_momentum,
            base_momentum,
            max_momentum,
        )
        self.max_lr, self.div_factor, self.final_div_factor = max_lr, div_factor, final_div_factor
        self.three_phase = three_phase
        super().__init__(optimizer, last_epoch)

    def _between(self, t: int, values: list[float]) -> float:
        """The value at a step that goes from each of these to the next, phase by phase."""
        rise, last = self.pct_start * self.total_steps, self.total_steps - 1.0
        ends = [0.0, rise - 1.0, *([2.0 * rise - 2.0] if self.three_phase else []), last]
        k = 0
        while k < len(values) - 2 and t > ends[k + 1]:
            k += 1
        low, high, length = values[k], values[k + 1], ends[k + 1] - ends[k]
        share = (t - ends[k]) / length if length > 0 else 1.0
        return _cosine(low, high, share) if self.anneal_strategy == "cos" else low + (high - low) * share

    def _lr(self, base: float, t: int, i: int) -> float:
        if t > self.total_steps:
            raise ValueError(f"OneCycleLR: step {t} of a cycle of {self.total_steps}; make it longer")
        start, low, high = self.max_lr / self.div_factor, self.base_momentum, self.max_momentum
        end = start / self.final_div_factor
        if self.cycle_momentum:
            value = self._between(t, [high, low, high, high] if self.three_phase else [high, low, high])
            _set_momentum(self.optimizer.param_groups[i], value)
        return self._between(
            t, [start, self.max_lr, start, end] if self.three_phase else [start, self.max_lr, end]
        )


class CyclicLR(LRScheduler):
    """From `base_lr` up to `max_lr` and down again, over and over (Smith 2017).

    `mode`: in each cycle the rise is the whole ("triangular"), half of that before ("triangular2"), or `gamma^t` times
    the whole ("exp_range"). Momentum goes the other way round. Step it after every batch.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        """`scale_fn`, a function of the number of the cycle or, with `scale_mode="iterations"`, of the step, stands in
        place of `mode`. `step_size_down` is `step_size_up` by default; rates are numbers, or one for each group.
        """
        down = step_size_up if step_size_down is None else step_size_down
        if min(step_size_up, down) < 1:
            raise ValueError(
                f"CyclicLR: positive step_size_up and step_size_down expected, got {step_size_up}, {down}"
            )
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise ValueError(
                f"CyclicLR: mode must be 'triangular', 'triangular2' or 'exp_range', got {mode!r}"
            )
        if scale_mode not in ("cycle", "iterations"):
            raise ValueError(f"CyclicLR: scale_mode must be 'cycle' or 'iterations', got {scale_mode!r}")
        if cycle_momentum:
            _check_momentum("CyclicLR", optimizer)
        count = len(optimizer.param_groups)
        lows, highs = (list(x) if isinstance(x, list | tuple) else [x] * count for x in (base_lr, max_lr))
        if not len(lows) == len(highs) == count:
            raise ValueError(f"CyclicLR: {len(lows)} and {len(highs)} rates for {count} parameter groups")
        self.max_lrs, self.step_size_up, self.step_size_down = highs, step_size_up, down
        self.mode, self.gamma, self.scale_mode = mode, gamma, scale_mode
        self.cycle_momentum, self.base_momentum, self.max_momentum = (
            cycle_momentum,
            base_momentum,
            max_momentum,
        )
        self._scale_fn = scale_fn
        if last_epoch == -1:
            for group, low in zip(optimizer.param_groups, lows):
                group["lr"] = group["initial_lr"] = low
        super().__init__(optimizer, last_epoch)

    def _scale(self, cycle: int, t: int) -> float:
        if self._scale_fn is not None:
            return self._scale_fn(cycle if self.scale_mode == "cycle" else t)
        if self.mode == "exp_range":
            return self.gamma**t
        return 1.0 if self.mode == "triangular" else 0.5 ** (cycle - 1)

    def _lr(self, base: float, t: int, i: int) -> float:
        whole, at = divmod(t, self.step_size_up + self.step_size_down)
        up, down = self.step_size_up, self.step_size_down
        height = (at / up if at <= up else 1.0 - (at - up) / down) * self._scale(whole + 1, t)
        if self.cycle_momentum:
            value = self.max_momentum - (self.max_momentum - self.base_momentum) * height
            _set_momentum(self.optimizer.param_groups[i], value)
        return base + (self.max_lrs[i] - base) * height
