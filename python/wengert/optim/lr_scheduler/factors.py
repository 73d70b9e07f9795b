"""Schedules that multiply the initial rate by a function of the step."""

from bisect import bisect_right
from collections.abc import Callable, Iterable

from ..optimizer import Optimizer
from .schedule import LRScheduler

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


def _per_group(name: str, optimizer: Optimizer, given: Factor | list[Factor]) -> list[Factor]:
    """One function for each parameter group, from one for all or one for each."""
    count = len(optimizer.param_groups)
    functions = list(given) if isinstance(given, list | tuple) else [given] * count
    if len(functions) != count:
        raise ValueError(f"{name}: {len(functions)} functions for {count} parameter groups")
    return functions


class LambdaLR(LRScheduler):
    """The initial rate times `lr_lambda(t)`; one function, or one per group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Factor | list[Factor], last_epoch: int = -1) -> None:
        """Functions of the step number."""
        functions = _per_group("LambdaLR", optimizer, lr_lambda)
        self._function = lambda i, t: functions[i](t)
        super().__init__(optimizer, last_epoch)

    def _lr(self, base: float, t: int, i: int) -> float:
        return base * self._function(i, t)


class MultiplicativeLR(LRScheduler):
    """The initial rate times `lr_lambda(1) lr_lambda(2) ... lr_lambda(t)`; one function, or one per group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Factor | list[Factor], last_epoch: int = -1) -> None:
        """Functions of the step number."""
        functions = _per_group("MultiplicativeLR", optimizer, lr_lambda)
        self._function = lambda i, t: functions[i](t)
        # Products known so far, by group: a step asks for one factor more.
        self._products = [[1.0] for _ in functions]
        super().__init__(optimizer, last_epoch)

    def _lr(self, base: float, t: int, i: int) -> float:
        known = self._products[i]
        while len(known) <= t:
            known.append(known[-1] * self._function(i, len(known)))
        return base * known[t]


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
