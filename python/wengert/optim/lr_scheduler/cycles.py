"""Schedules that go up and down: cosines, and cycles between two rates."""

import math
from collections.abc import Callable
from typing import Any

from ..optimizer import Optimizer
from .factors import state_of
from .schedule import Group, LRScheduler, check_optimizer, per_group, set_rate, value_of_group

__all__ = ["CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR"]


def _cosine(high: float, low: float, share: float) -> float:
    """From `high` at share 0 to `low` at share 1 along half a cosine."""
    return low + (high - low) * 0.5 * (1.0 + math.cos(math.pi * share))


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the rate to `eta_min` in `T_max` steps, and back (Loshchilov and Hutter 2016).

    Each step multiplies what the rate is above `eta_min`. `optimizer` and `last_epoch` as of `LRScheduler`.

    Example:
        >>> optimizer = wg.optim.SGD([wg.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = wg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     scheduler.step()
        ...     print(round(scheduler.get_last_lr()[0], 4))
        0.8536
        0.5
        0.1464
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        """Settings."""
        if T_max <= 0:
            raise ValueError(f"CosineAnnealingLR: T_max must be positive, got {T_max}")
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _next(self, group: Group, i: int) -> Any:
        if self._is_initial:
            return group["lr"]
        t, height = self.last_epoch, lambda t: 1.0 + math.cos(math.pi * t / self.T_max)
        if (t - 1 - self.T_max) % (2 * self.T_max) == 0:
            # At the bottom nothing is left to multiply.
            return group["lr"] + (self.base_lrs[i] - self.eta_min) * height(t) / 2.0
        return self.eta_min + (group["lr"] - self.eta_min) * (height(t) / height(t - 1))

    def _get_closed_form_lr(self) -> list[Any]:
        return [_cosine(base, self.eta_min, self.last_epoch / self.T_max) for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosines of `T_0`, `T_0 T_mult`, ... steps, each from the initial rate down to `eta_min`
    (Loshchilov and Hutter 2016).

    `step(epoch)` takes fractions of epochs as well; `T_cur` is how far the cycle of `T_i` steps has come.
    `optimizer` and `last_epoch` as of `LRScheduler`.

    Example:
        >>> optimizer = wg.optim.SGD([wg.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = wg.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     scheduler.step()
        ...     print(round(scheduler.get_last_lr()[0], 4))
        0.5
        1.0
        0.5
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
        self._find(max(last_epoch, 0))
        super().__init__(optimizer, last_epoch)

    def _find(self, epoch: float) -> None:
        """Where in which cycle an epoch lies."""
        self.T_cur, self.T_i = epoch, self.T_0
        if self.T_mult == 1:
            self.T_cur %= self.T_0
        while self.T_cur >= self.T_i:
            self.T_cur, self.T_i = self.T_cur - self.T_i, self.T_i * self.T_mult

    def _update_lr(self, epoch: Any = None) -> None:
        if epoch is None and self.last_epoch >= 0:
            # A fraction that was given stays one.
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur - self.T_i, self.T_i * self.T_mult
            super()._update_lr()
            return
        epoch = 0 if epoch is None else epoch
        if epoch < 0:
            raise ValueError(f"CosineAnnealingWarmRestarts: an epoch of at least 0 expected, got {epoch}")
        self._find(epoch)
        super()._update_lr(math.floor(epoch))

    def _next(self, group: Group, i: int) -> Any:
        return _cosine(self.base_lrs[i], self.eta_min, self.T_cur / self.T_i)


class _Momenta(LRScheduler):
    """What cycles share that lead the momentum of the optimiser as well."""

    cycle_momentum: bool
    _low: list[float]
    _high: list[float]

    def _lead_momentum(self, low: Any, high: Any) -> None:
        """Keeps the bounds of momentum, of all groups or one of each.

        Raises:
            ValueError: for an optimiser without momentum.
        """
        name = type(self).__name__
        if not {"momentum", "betas"} & set(self.optimizer.defaults):
            raise ValueError(f"{name}: cycle_momentum needs an optimiser with momentum or betas")
        self._low = per_group(name, "base_momentum", self.optimizer, low)
        self._high = per_group(name, "max_momentum", self.optimizer, high)

    def _put_momentum(self, group: Group, i: int) -> None:
        """Writes the bounds into a group, which starts from the higher one."""
        name = type(self).__name__
        group["base_momentum"] = value_of_group(name, "base_momentum", self._low, i)
        group["max_momentum"] = value_of_group(name, "max_momentum", self._high, i)
        self._set_momentum(group, group["max_momentum"])

    def _set_momentum(self, group: Group, value: float) -> None:
        """Sets the momentum of a group, or the weight of its first moment."""
        if "betas" in group:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class OneCycleLR(_Momenta):
    """Up to `max_lr`, then far down, momentum the other way round; step it after every batch (Smith and Topin
    2017).

    The rate begins at `max_lr / div_factor`, its initial rate, and ends at that divided by
    `final_div_factor`. Groups keep `max_lr`, `initial_lr` and `min_lr`, the rate at the end.

    Args:
        optimizer: as of `LRScheduler`, also `last_epoch`; with momentum or betas, unless `cycle_momentum` is
            False.
        max_lr: the highest rate; this and the momenta are numbers, or one for each group.
        total_steps: the steps of the cycle; by default `epochs * steps_per_epoch`, which are given then.
        pct_start: the share of the steps, from 0 to 1, that go up.
        anneal_strategy: "cos" for half cosines between the rates, or "linear".
        cycle_momentum: whether momentum (or the first of betas) moves as well.
        base_momentum: the momentum at the highest rate.
        max_momentum: the momentum at both ends.
        div_factor: how many times lower than the highest the first rate is.
        final_div_factor: how many times lower than the first the last rate is.
        three_phase: go back to the first rate in as many steps as up, and to the last one in the rest.

    Example:
        >>> optimizer = wg.optim.SGD([wg.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = wg.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=4, cycle_momentum=False)
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     scheduler.step()
        ...     print(round(scheduler.get_last_lr()[0], 4))
        0.8117
        0.2831
        0.0
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        """Writes the rates and momenta of the cycle into the groups."""
        self.optimizer = check_optimizer("OneCycleLR", optimizer)
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("OneCycleLR: give total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0 or not 0.0 <= pct_start <= 1.0 or anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                "OneCycleLR: positive total_steps, pct_start in [0, 1] and anneal_strategy 'cos' or 'linear' "
                f"expected, got {total_steps}, {pct_start}, {anneal_strategy!r}"
            )
        self.total_steps, self.pct_start, self.anneal_strategy = total_steps, pct_start, anneal_strategy
        self.div_factor, self.final_div_factor, self.three_phase = div_factor, final_div_factor, three_phase
        self._peaks = per_group("OneCycleLR", "max_lr", optimizer, max_lr)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._lead_momentum(base_momentum, max_momentum)
        if last_epoch == -1:
            for i, group in enumerate(optimizer.param_groups):
                self._prepare(group, i)
        super().__init__(optimizer, last_epoch)

    def _prepare(self, group: Group, i: int) -> None:
        """Writes the rates and momenta of the cycle into a group."""
        group["max_lr"] = value_of_group("OneCycleLR", "max_lr", self._peaks, i)
        group["initial_lr"] = group["max_lr"] / self.div_factor
        group["min_lr"] = group["initial_lr"] / self.final_div_factor
        if self.cycle_momentum:
            self._put_momentum(group, i)

    def _between(self, t: int, values: list[float]) -> float:
        """The value at a step that goes from each of these to the next, phase by phase."""
        rise, last = self.pct_start * self.total_steps, self.total_steps - 1.0
        ends = [0.0, rise - 1.0, *([2.0 * rise - 2.0] if self.three_phase else []), last]
        k = 0
        while k < len(values) - 2 and t > ends[k + 1]:
            k += 1
        low, high, length = values[k], values[k + 1], ends[k + 1] - ends[k]
        share = (t - ends[k]) / length if length != 0 else 1.0
        return _cosine(low, high, share) if self.anneal_strategy == "cos" else low + (high - low) * share

    def _next(self, group: Group, i: int) -> Any:
        t = self.last_epoch
        if t > self.total_steps:
            raise ValueError(f"OneCycleLR: step {t} of a cycle of {self.total_steps}; make it longer")
        if "min_lr" not in group:
            self._prepare(group, i)
        first, top, last = group["initial_lr"], group["max_lr"], group["min_lr"]
        if self.cycle_momentum:
            low, high = group["base_momentum"], group["max_momentum"]
            value = self._between(t, [high, low, high, high] if self.three_phase else [high, low, high])
            self._set_momentum(group, value)
        return self._between(t, [first, top, first, last] if self.three_phase else [first, top, last])


class CyclicLR(_Momenta):
    """From `base_lr` up to `max_lr` and down again, over and over (Smith 2017). Step it after every batch.

    Args:
        optimizer: as of `LRScheduler`, also `last_epoch`; with momentum or betas, unless `cycle_momentum` is
            False.
        base_lr: the lowest rate; rates and momenta are numbers, or one for each group.
        max_lr: the highest rate.
        step_size_up: steps of the way up.
        step_size_down: steps of the way down; None: as many as up.
        mode: in each cycle the rise is the whole ("triangular"), half of that before ("triangular2"), or
            `gamma^t` times the whole at step t ("exp_range").
        gamma: the base of "exp_range".
        scale_fn: in place of `mode`, a function that returns the factor of the rise.
        scale_mode: what that is a function of: the number of the "cycle", from 1, or of the step
            ("iterations").
        cycle_momentum: whether momentum (or the first of betas) moves the other way round.
        base_momentum: the momentum at the highest rate.
        max_momentum: the momentum at the lowest rate.

    Example:
        >>> optimizer = wg.optim.SGD([wg.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = wg.optim.lr_scheduler.CyclicLR(optimizer, 0.1, max_lr=1.0, step_size_up=2, cycle_momentum=False)
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     scheduler.step()
        ...     print(round(scheduler.get_last_lr()[0], 4))
        0.55
        1.0
        0.55
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
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        """Sets the lowest rates and the highest momenta."""
        self.optimizer = check_optimizer("CyclicLR", optimizer)
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
        lows = per_group("CyclicLR", "base_lr", optimizer, base_lr)
        self.max_lrs = per_group("CyclicLR", "max_lr", optimizer, max_lr)
        self.step_size_up, self.step_size_down = step_size_up, down
        self.mode, self.gamma, self.scale_mode = mode, gamma, scale_mode
        self._scale_fn = scale_fn
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._lead_momentum(base_momentum, max_momentum)
        if last_epoch == -1:
            for i, (group, low) in enumerate(zip(optimizer.param_groups, lows)):
                set_rate(group, low)
                if cycle_momentum:
                    self._put_momentum(group, i)
        self._bottoms = lows
        super().__init__(optimizer, last_epoch)
        self.base_lrs = list(lows)

    def _scale(self, cycle: int, t: int) -> float:
        if self._scale_fn is not None:
            return self._scale_fn(cycle if self.scale_mode == "cycle" else t)
        if self.mode == "exp_range":
            return self.gamma**t
        return 1.0 if self.mode == "triangular" else 0.5 ** (cycle - 1)

    def _next(self, group: Group, i: int) -> Any:
        t, up, down = self.last_epoch, self.step_size_up, self.step_size_down
        whole, at = divmod(t, up + down)
        height = (at / up if at <= up else 1.0 - (at - up) / down) * self._scale(whole + 1, t)
        if self.cycle_momentum:
            if "max_momentum" not in group:
                self._put_momentum(group, i)
            low, high = (value_of_group("CyclicLR", "momenta", m, i) for m in (self._low, self._high))
            self._set_momentum(group, high - (high - low) * height)
        base = value_of_group("CyclicLR", "base_lr", self._bottoms, i)
        return base + (value_of_group("CyclicLR", "max_lr", self.max_lrs, i) - base) * height

    def state_dict(self) -> dict[str, Any]:
        """Returns the state; a `scale_fn` is saved if it is an object, by its attributes."""
        return {**super().state_dict(), "_scale_fn": state_of(self._scale_fn)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state."""
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn"})
        if state_dict.get("_scale_fn") is not None and self._scale_fn is not None:
            vars(self._scale_fn).update(state_dict["_scale_fn"])
