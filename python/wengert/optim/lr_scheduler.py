"""Learning-rate schedules.

Each is a closed form: the rate at step t follows from t and the initial rate alone, so there is no drift, and
`SequentialLR` can enter any schedule at its own zero. `ReduceLROnPlateau` alone follows a measured quantity.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Any

from .optimizer import Optimizer

__all__ = [
    "LRScheduler",
    "LambdaLR",
    "StepLR",
    "MultiStepLR",
    "ConstantLR",
    "LinearLR",
    "ExponentialLR",
    "PolynomialLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "OneCycleLR",
    "SequentialLR",
    "ReduceLROnPlateau",
]


class LRScheduler:
    """Base class: a subclass defines `_lr(base, t, i)`, the rate of group i at step t.

    Args:
        optimizer: its groups' `lr` are set, at once and by each `step()`.
        last_epoch: the step to continue from; -1 starts.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        """Remembers the initial rates and sets those of the first step."""
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(self).__name__}: an Optimizer expected, got {type(optimizer).__name__}")
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(f"{type(self).__name__}: group {i} has no 'initial_lr' to continue from")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.step()

    def _lr(self, base: float, t: int, i: int) -> float:
        raise NotImplementedError(f"{type(self).__name__} has no _lr")

    def get_last_lr(self) -> list[float]:
        """The rates now in force, one per group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def step(self, epoch: int | None = None) -> None:
        """Goes to the next step, or to a given one."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        for i, group in enumerate(self.optimizer.param_groups):
            group["lr"] = self._lr(self.base_lrs[i], self.last_epoch, i)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser and functions."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer" and not callable(v)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state, and sets the rates that belong to it."""
        self.__dict__.update(state_dict)
        for i, group in enumerate(self.optimizer.param_groups):
            group["lr"] = self._lr(self.base_lrs[i], self.last_epoch, i)


class LambdaLR(LRScheduler):
    """The initial rate times `lr_lambda(t)`; one function, or one per group."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        """Functions of the step number."""
        count = len(optimizer.param_groups)
        functions = list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * count
        if len(functions) != count:
            raise ValueError(f"LambdaLR: {len(functions)} functions for {count} parameter groups")
        self._function = lambda i, t: functions[i](t)
        super().__init__(optimizer, last_epoch)

    def _lr(self, base: float, t: int, i: int) -> float:
        return base * self._function(i, t)


class StepLR(LRScheduler):
    """Multiplied by `gamma` every `step_size` steps."""

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        """Settings."""
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _lr(self, base: float, t: int, i: int) -> float:
        return base * self.gamma ** (t // self.step_size)


class MultiStepLR(LRScheduler):
    """Multiplied by `gamma` at each milestone."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        """Settings."""
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _lr(self, base: float, t: int, i: int) -> float:
        return base * self.gamma ** bisect_right(self.milestones, t)


class ConstantLR(LRScheduler):
    """`factor` times the rate for `total_iters` steps, then the rate."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3.0, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        """Settings."""
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _lr(self, base: float, t: int, i: int) -> float:
        return base * (self.factor if t < self.total_iters else 1.0)


class LinearLR(LRScheduler):
    """A factor that goes linearly from `start_factor` to `end_factor` in `total_iters` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3.0,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        """Settings."""
        if not 0.0 < start_factor <= 1.0 or not 0.0 <= end_factor <= 1.0:
            raise ValueError(
                f"LinearLR: start_factor in (0, 1] and end_factor in [0, 1] expected, got {start_factor}, "
                f"{end_factor}"
            )
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _lr(self, base: float, t: int, i: int) -> float:
        share = min(t, self.total_iters) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * share)


class ExponentialLR(LRScheduler):
    """Multiplied by `gamma` every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        """Settings."""
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _lr(self, base: float, t: int, i: int) -> float:
        return base * self.gamma**t


class PolynomialLR(LRScheduler):
    """`(1 - t / total_iters) ** power`, then 0."""

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        """Settings."""
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _lr(self, base: float, t: int, i: int) -> float:
        return base * (1.0 - min(t, self.total_iters) / self.total_iters) ** self.power


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
        last_epoch: int = -1,
    ) -> None:
        """`total_steps`, or `epochs` and `steps_per_epoch`."""
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("OneCycleLR: give total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0 or not 0.0 <= pct_start <= 1.0 or anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                "OneCycleLR: positive total_steps, pct_start in [0, 1] and anneal_strategy 'cos' or 'linear' "
                f"expected, got {total_steps}, {pct_start}, {anneal_strategy!r}"
            )
        if cycle_momentum and not {"momentum", "betas"} & set(optimizer.defaults):
            raise ValueError("OneCycleLR: cycle_momentum needs an optimiser with momentum or betas")
        self.total_steps, self.pct_start, self.anneal_strategy = total_steps, pct_start, anneal_strategy
        self.cycle_momentum, self.base_momentum, self.max_momentum = (
            cycle_momentum,
            base_momentum,
            max_momentum,
        )
        self.max_lr, self.div_factor, self.final_div_factor = max_lr, div_factor, final_div_factor
        super().__init__(optimizer, last_epoch)

    def _between(self, t: int, start: float, peak: float, end: float) -> float:
        top, last = self.pct_start * self.total_steps - 1.0, self.total_steps - 1.0
        if t <= top:
            low, high, share = start, peak, t / top if top > 0 else 1.0
        else:
            low, high, share = peak, end, (t - top) / (last - top) if last > top else 1.0
        return _cosine(low, high, share) if self.anneal_strategy == "cos" else low + (high - low) * share

    def _lr(self, base: float, t: int, i: int) -> float:
        if t > self.total_steps:
            raise ValueError(f"OneCycleLR: step {t} of a cycle of {self.total_steps}; make it longer")
        start = self.max_lr / self.div_factor
        if self.cycle_momentum:
            group = self.optimizer.param_groups[i]
            value = self._between(t, self.max_momentum, self.base_momentum, self.max_momentum)
            if "betas" in group:
                group["betas"] = (value, *group["betas"][1:])
            else:
                group["momentum"] = value
        return self._between(t, start, self.max_lr, start / self.final_div_factor)


class SequentialLR(LRScheduler):
    """One schedule after another; `milestones[k]` is the step at which schedule k + 1 starts from its
    zero.
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        """One milestone less than schedulers, all of them of the same optimiser."""
        if not schedulers or len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR: one milestone less than schedulers expected, got {len(milestones)} and "
                f"{len(schedulers)}"
            )
        if any(s.optimizer is not optimizer for s in schedulers):
            raise ValueError("SequentialLR: all schedulers must belong to the given optimiser")
        self._schedulers, self.milestones = schedulers, list(milestones)
        super().__init__(optimizer, last_epoch)

    def _lr(self, base: float, t: int, i: int) -> float:
        k = bisect_right(self.milestones, t)
        return self._schedulers[k]._lr(base, t - (self.milestones[k - 1] if k else 0), i)

    def state_dict(self) -> dict[str, Any]:
        """The own state; the schedules are closed forms and have none that matters."""
        return {k: v for k, v in super().state_dict().items() if k != "_schedulers"}


class ReduceLROnPlateau:
    """Multiplies the rates by `factor` when a measured quantity has not improved for `patience` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0.0,
        eps: float = 1e-8,
    ) -> None:
        """`mode`: "min" or "max"; `threshold_mode`: "rel" or "abs"."""
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: factor must be below 1, got {factor}")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(f"ReduceLROnPlateau: unknown mode {mode!r} or threshold_mode {threshold_mode!r}")
        self.optimizer = optimizer
        self.mode, self.factor, self.patience = mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.min_lr, self.eps = cooldown, min_lr, eps
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0

    def _better(self, value: float) -> bool:
        sign = 1.0 if self.mode == "min" else -1.0
        if math.isinf(self.best):
            return sign * value < sign * self.best
        margin = abs(self.best) * self.threshold if self.threshold_mode == "rel" else self.threshold
        return sign * value < sign * self.best - margin

    def step(self, metrics: Any) -> None:
        """Takes one measurement."""
        value = float(metrics)
        self.last_epoch += 1
        if self._better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group in self.optimizer.param_groups:
                lower = max(group["lr"] * self.factor, self.min_lr)
                if group["lr"] - lower > self.eps:
                    group["lr"] = lower
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def get_last_lr(self) -> list[float]:
        """The rates now in force, one per group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state."""
        self.__dict__.update(state_dict)
