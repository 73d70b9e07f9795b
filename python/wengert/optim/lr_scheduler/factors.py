"""Schedules that multiply the rates step by step."""

import types
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from ..optimizer import Optimizer
from .schedule import Group, LRScheduler, per_group, value_of_group

__all__ = [
    "ConstantLR",
    "ExponentialLR",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "PolynomialLR",
    "StepLR",
]

Factor = Callable[[int], float]


class _Lambdas(LRScheduler):
    """Schedules of functions, one per group. Of functions that are objects,
    the attributes are part of the state.
    """

    lr_lambdas: list[Factor]

    def __init__(self, optimizer: Optimizer, lr_lambda: Factor | list[Factor], last_epoch: int = -1) -> None:
        """Functions of the step number: one, or one per group."""
        name = type(self).__name__
        self.lr_lambdas = per_group(name, "functions", optimizer, lr_lambda)
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(f"{name}: a function of the step expected, got {type(function).__name__}")
        super().__init__(optimizer, last_epoch)

    def _factor(self, i: int) -> float:
        return value_of_group(type(self).__name__, "functions", self.lr_lambdas, i)(self.last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """The state; functions are saved if they are objects, by their attributes."""
        return {**super().state_dict(), "lr_lambdas": [state_of(f) for f in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state."""
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for function, state in zip(self.lr_lambdas, state_dict.get("lr_lambdas", [])):
            if state is not None:
                function.__dict__.update(state)


def state_of(function: Any) -> dict[str, Any] | None:
    """The attributes of a callable object; None for a plain function."""
    is_plain = isinstance(function, types.FunctionType) or not hasattr(function, "__dict__")
    return None if is_plain else dict(function.__dict__)


class LambdaLR(_Lambdas):
    """The initial rate times `lr_lambda(t)` at step t; one function, or one per group. `optimizer` and
    `last_epoch` as of `LRScheduler`.

    Example:
        >>> optimizer = wg.optim.SGD([wg.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = wg.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     scheduler.step()
        ...     print(round(scheduler.get_last_lr()[0], 4))
        0.5
        0.3333
        0.25
    """

    def _next(self, group: Group, i: int) -> Any:
        return self.base_lrs[i] * self._factor(i)


class MultiplicativeLR(_Lambdas):
    """The rate times `lr_lambda(t)` at step t, from 1 on; one function, or one per group. `optimizer` and
    `last_epoch` as of `LRScheduler`.

    Example:
        >>> optimizer = wg.optim.SGD([wg.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = wg.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     scheduler.step()
        ...     print(round(scheduler.get_last_lr()[0], 4))
        0.5
        0.25
        0.125
    """

    def _next(self, group: Group, i: int) -> Any:
        return group["lr"] if self._is_initial else group["lr"] * self._factor(i)


class _Factors(LRScheduler):
    """The initial rate times `_factor(t)`,
    reached by multiplying what stands with `_ratio(t)` at each step.
    """

    def _ratio(self, t: int) -> float:
        raise NotImplementedError

    def _factor(self, t: int) -> float:
        raise NotImplementedError

    def _next(self, group: Group, i: int) -> Any:
        ratio = self._ratio(self.last_epoch)
        return group["lr"] if ratio == 1.0 else group["lr"] * ratio

    def _get_closed_form_lr(self) -> list[Any]:
        factor = self._factor(self.last_epoch)
        return [base * factor for base in self.base_lrs]


class StepLR(_Factors):
    """Multiplies the rates by `gamma` every `step_size` steps. `optimizer` and `last_epoch` as of
    `LRScheduler`.

    Example:
        >>> optimizer = wg.optim.SGD([wg.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = wg.optim.lr_scheduler.StepLR(optimizer, step_size=2)
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     scheduler.step()
        ...     print(round(scheduler.get_last_lr()[0], 4))
        1.0
        0.1
        0.1
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        """Settings; ValueError unless `step_size` is positive."""
        if not step_size > 0:
            raise ValueError(f"StepLR: step_size must be positive, got {step_size}")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _ratio(self, t: int) -> float:
        return self.gamma if t != 0 and t % self.step_size == 0 else 1.0

    def _factor(self, t: int) -> float:
        return self.gamma ** (t // self.step_size)


class MultiStepLR(_Factors):
    """Multiplies the rates by `gamma` at each of the steps `milestones`, twice at one that is given twice.
    `optimizer` and `last_epoch` as of `LRScheduler`.

    Example:
        >>> optimizer = wg.optim.SGD([wg.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = wg.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3])
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     scheduler.step()
        ...     print(round(scheduler.get_last_lr()[0], 4))
        0.1
        0.1
        0.01
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        """Settings."""
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _ratio(self, t: int) -> float:
        return self.gamma ** self.milestones.count(t)

    def _factor(self, t: int) -> float:
        return self.gamma ** bisect_right(self.milestones, t)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state, also one of PyTorch, which counts the milestones."""
        super().load_state_dict(state_dict)
        self.milestones = sorted(Counter(self.milestones).elements())


class ConstantLR(_Factors):
    """`factor` times the rate before step `total_iters`; the step to there divides by it again.

    `optimizer` and `last_epoch` as of `LRScheduler`.

    Example:
        >>> optimizer = wg.optim.SGD([wg.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = wg.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     scheduler.step()
        ...     print(round(scheduler.get_last_lr()[0], 4))
        0.5
        1.0
        1.0
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3.0, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        """Settings; ValueError for a factor outside of `[0, 1]`."""
        if not 0.0 <= factor <= 1.0:
            raise ValueError(f"ConstantLR: factor in [0, 1] expected, got {factor}")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _next(self, group: Group, i: int) -> Any:
        # Nothing is left of a rate times zero.
        ends = self.factor == 0.0 and self.last_epoch == self.total_iters != 0
        return self.base_lrs[i] if ends else super()._next(group, i)

    def _ratio(self, t: int) -> float:
        if t == 0:
            return self.factor
        return 1.0 / self.factor if t == self.total_iters else 1.0

    def _factor(self, t: int) -> float:
        return self.factor if t < self.total_iters else 1.0


class LinearLR(_Factors):
    """A factor that goes linearly from `start_factor` to `end_factor` in `total_iters` steps, and stays
    there.

    `optimizer` and `last_epoch` as of `LRScheduler`.

    Example:
        >>> optimizer = wg.optim.SGD([wg.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = wg.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.25, total_iters=3)
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     scheduler.step()
        ...     print(round(scheduler.get_last_lr()[0], 4))
        0.5
        0.75
        1.0
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3.0,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        """Settings; ValueError for factors outside of `(0, 1]` and `[0, 1]`."""
        if not 0.0 < start_factor <= 1.0 or not 0.0 <= end_factor <= 1.0:
            raise ValueError(
                f"LinearLR: start_factor in (0, 1] and end_factor in [0, 1] expected, got {start_factor}, "
                f"{end_factor}"
            )
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _ratio(self, t: int) -> float:
        if t == 0:
            return self.start_factor
        if self._is_initial or t > self.total_iters:
            return 1.0
        change = self.end_factor - self.start_factor
        return 1.0 + change / (self.total_iters * self.start_factor + (t - 1) * change)

    def _factor(self, t: int) -> float:
        share = min(t, self.total_iters) / self.total_iters if self.total_iters else 0.0
        return self.start_factor + (self.end_factor - self.start_factor) * share


class ExponentialLR(_Factors):
    """Multiplies the rates by `gamma` every step. `optimizer` and `last_epoch` as of `LRScheduler`.

    Example:
        >>> optimizer = wg.optim.SGD([wg.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = wg.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     scheduler.step()
        ...     print(round(scheduler.get_last_lr()[0], 4))
        0.5
        0.25
        0.125
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        """Settings."""
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _ratio(self, t: int) -> float:
        return 1.0 if self._is_initial else self.gamma

    def _factor(self, t: int) -> float:
        return self.gamma**t


class PolynomialLR(_Factors):
    """The initial rate times `(1 - t / total_iters) ** power` at step t, then 0. `optimizer` and `last_epoch`
    as of `LRScheduler`.

    Example:
        >>> optimizer = wg.optim.SGD([wg.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = wg.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     scheduler.step()
        ...     print(round(scheduler.get_last_lr()[0], 4))
        0.75
        0.5
        0.25
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        """Settings."""
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _ratio(self, t: int) -> float:
        if self._is_initial or t > self.total_iters:
            return 1.0
        return ((self.total_iters - t) / (self.total_iters - (t - 1.0))) ** self.power

    def _factor(self, t: int) -> float:
        left = 1.0 - min(t, self.total_iters) / self.total_iters if self.total_iters else 1.0
        return left**self.power
