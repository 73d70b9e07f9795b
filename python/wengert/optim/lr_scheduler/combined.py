"""Schedules made of others."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer
from .plateau import ReduceLROnPlateau
from .schedule import LRScheduler, rates_of, set_rate

__all__ = ["ChainedScheduler", "SequentialLR"]


class _Combined(LRScheduler):
    """What schedules of schedules share: the state is that of all of them."""

    _schedulers: list[LRScheduler]

    def _take(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> None:
        """Keeps the schedules.

        Raises:
            TypeError: for one that is no schedule.
            ValueError: for none, those of another optimiser, or one that needs a measurement.
        """
        name, schedules = type(self).__name__, list(schedulers)
        for schedule in schedules:
            if isinstance(schedule, ReduceLROnPlateau):
                raise ValueError(
                    f"{name}: ReduceLROnPlateau needs a measurement at each step; step it by itself"
                )
            if not isinstance(schedule, LRScheduler):
                raise TypeError(f"{name}: schedules expected, got {type(schedule).__name__}")
        if not schedules:
            raise ValueError(f"{name}: one schedule or more expected, got none")
        self.optimizer = schedules[0].optimizer if optimizer is None else optimizer
        if any(s.optimizer is not self.optimizer for s in schedules):
            raise ValueError(f"{name}: all schedulers must belong to one optimiser, the given one")
        self._schedulers = schedules

    def _to_initial_rates(self) -> None:
        """Sets the initial rates."""
        for group in self.optimizer.param_groups:
            set_rate(group, group.setdefault("initial_lr", group["lr"]))

    def _undo(self) -> None:
        for schedule in self._schedulers:
            schedule._undo()

    def _update_lr(self, epoch: Any = None) -> None:
        """Enters the schedule anew, as a `SequentialLR` does that comes to it."""
        if epoch != 0:
            raise ValueError(f"{type(self).__name__}: only the next step can be taken, got epoch={epoch}")
        self._to_initial_rates()
        self._restart()

    def state_dict(self) -> dict[str, Any]:
        """The own state, and under `_schedulers` those of the schedules."""
        return {**super().state_dict(), "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state. The rates themselves belong to the optimiser, whose state dict has them."""
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for schedule, state in zip(self._schedulers, state_dict["_schedulers"]):
            schedule.load_state_dict(state)


class SequentialLR(_Combined):
    """One schedule of `schedulers` after another; `milestones[k]` is the step at which schedule k + 1 starts
    from its zero.

    There it starts from the initial rates, if it has a closed form, and otherwise multiplies those that
    stand. All belong to the `optimizer`; `last_epoch` is the step to begin with, less one.

    Example:
        >>> optimizer = wg.optim.SGD([wg.ones(1, requires_grad=True)], lr=1.0)
        >>> first = wg.optim.lr_scheduler.ConstantLR(optimizer, 0.1)
        >>> then = wg.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        >>> scheduler = wg.optim.lr_scheduler.SequentialLR(optimizer, [first, then], milestones=[2])
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     scheduler.step()
        ...     print(round(scheduler.get_last_lr()[0], 4))
        0.1
        1.0
        0.5
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
        self._take(schedulers, optimizer)
        self._milestones = list(milestones)
        self.last_epoch = last_epoch + 1
        # What the constructors of the schedules did is undone, and the first one begins.
        self._to_initial_rates()
        self._undo()
        self._first()._initial_step()
        self._last_lr = rates_of(self.optimizer)

    def _first(self) -> LRScheduler:
        return self._schedulers[bisect_right(self._milestones, 0)]

    def _initial_step(self) -> None:
        self._restart()

    def _restart(self) -> None:
        self.last_epoch = 0
        self._to_initial_rates()
        self._first()._restart()
        self._last_lr = rates_of(self.optimizer)

    def step(self) -> None:  # type: ignore[override]
        """Goes to the next step."""
        self.last_epoch += 1
        k = bisect_right(self._milestones, self.last_epoch)
        schedule = self._schedulers[k]
        if k > 0 and self._milestones[k - 1] == self.last_epoch:
            schedule._update_lr(0)
        else:
            schedule.step()
        self._last_lr = schedule.get_last_lr()


class ChainedScheduler(_Combined):
    """Several `schedulers` that step together, each on the rates that the one before it has left.

    All belong to one `optimizer`, which need not be given.

    Example:
        >>> optimizer = wg.optim.SGD([wg.ones(1, requires_grad=True)], lr=1.0)
        >>> parts = [wg.optim.lr_scheduler.ExponentialLR(optimizer, 0.5), wg.optim.lr_scheduler.StepLR(optimizer, 2)]
        >>> scheduler = wg.optim.lr_scheduler.ChainedScheduler(parts)
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     scheduler.step()
        ...     print(round(scheduler.get_last_lr()[0], 4))
        0.5
        0.025
        0.0125
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        """Schedules of one optimiser, which need not be given again."""
        self._take(schedulers, optimizer)
        self._last_lr = rates_of(self.optimizer)

    def _initial_step(self) -> None:
        self._each("_initial_step")

    def _restart(self) -> None:
        self._each("_restart")

    def step(self) -> None:  # type: ignore[override]
        """Goes to the next step."""
        self._each("step")

    def _each(self, name: str) -> None:
        """Calls a method of every schedule."""
        for schedule in self._schedulers:
            getattr(schedule, name)()
        self._last_lr = rates_of(self.optimizer)
