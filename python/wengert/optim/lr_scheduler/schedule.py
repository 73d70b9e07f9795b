"""The base class of schedules: the rate at step t follows from t and the initial rate alone."""

from typing import Any

from ..optimizer import Optimizer

__all__ = ["LRScheduler"]


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
