"""Schedules made of others."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer
from .schedule import LRScheduler

__all__ = ["ChainedScheduler", "SequentialLR"]


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


class ChainedScheduler(LRScheduler):
    """Several schedules at once: the initial rate times the factors of all."""

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None, last_epoch: int = -1
    ) -> None:
        """Schedules of one optimiser, which need not be given again."""
        schedules = list(schedulers)
        if not schedules:
            raise ValueError("ChainedScheduler: one schedule or more expected, got none")
        optimizer = schedules[0].optimizer if optimizer is None else optimizer
        if any(s.optimizer is not optimizer for s in schedules):
            raise ValueError("ChainedScheduler: all schedulers must belong to one optimiser")
        self._schedulers = schedules
        super().__init__(optimizer, last_epoch)

    def _lr(self, base: float, t: int, i: int) -> float:
        rate = base
        for schedule in self._schedulers:
            rate = schedule._lr(rate, t, i)
        return rate

    def state_dict(self) -> dict[str, Any]:
        """The own state; the schedules are closed forms and have none that matters."""
        return {k: v for k, v in super().state_dict().items() if k != "_schedulers"}
