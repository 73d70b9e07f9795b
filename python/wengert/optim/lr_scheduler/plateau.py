"""The schedule that follows a measured quantity."""

import math
from typing import Any

from ..optimizer import Optimizer
from .schedule import LRScheduler, check_optimizer, per_group, rates_of, set_rate, value_of_group

__all__ = ["ReduceLROnPlateau"]


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rates by `factor` when a measured quantity has not improved for `patience` steps.

    A quantity improves that is below `best * (1 - threshold)`, with `mode="max"` above
    `best * (1 + threshold)`; with `threshold_mode="abs"` below `best - threshold` or above
    `best + threshold`. For negative quantities the relative bounds are therefore on the other side of the
    best.

    Args:
        optimizer: its groups' `lr` are set.
        mode: "min" for a quantity that should fall, "max" for one that should rise.
        factor: below 1.
        patience: so many steps without improvement are let pass; the next one reduces.
        threshold: the least improvement that counts.
        threshold_mode: "rel" or "abs", see above.
        cooldown: for so many steps after a change nothing counts as bad.
        min_lr: the least rate, of all groups or one for each.
        eps: changes of the rate of at most this are left out.

    Example:
        >>> optimizer = wg.optim.SGD([wg.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = wg.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
        >>> for loss in (1.0, 0.5, 0.7):
        ...     scheduler.step(loss)
        ...     print(scheduler.get_last_lr())
        [1.0]
        [1.0]
        [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        """Leaves the rates as they are until the first `step(metrics)`."""
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: factor must be below 1, got {factor}")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(f"ReduceLROnPlateau: unknown mode {mode!r} or threshold_mode {threshold_mode!r}")
        self.optimizer = check_optimizer("ReduceLROnPlateau", optimizer)
        self.mode, self.factor, self.patience = mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.eps = cooldown, eps
        self.min_lrs = per_group("ReduceLROnPlateau", "least rates", optimizer, min_lr)
        self._last_lr = rates_of(optimizer)
        self.last_epoch = 0
        self._reset()

    def _reset(self) -> None:
        """Forgets what was measured."""
        self.best = math.inf if self.mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether bad steps do not count."""
        return self.cooldown_counter > 0

    def _better(self, value: float) -> bool:
        sign = 1.0 if self.mode == "min" else -1.0
        if math.isinf(self.best) or self.threshold_mode == "abs":
            return sign * value < sign * self.best - self.threshold
        return sign * value < sign * self.best * (1.0 - sign * self.threshold)

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Takes one measurement `metrics`, a number, as that of the next step or of the step `epoch`."""
        value = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = rates_of(self.optimizer)

    def _reduce(self) -> None:
        """Multiplies the rates by the factor."""
        for i, group in enumerate(self.optimizer.param_groups):
            present = float(group["lr"])
            least = value_of_group("ReduceLROnPlateau", "least rates", self.min_lrs, i)
            lower = max(present * self.factor, least)
            if present - lower > self.eps:
                set_rate(group, lower)
