"""The base class of schedules, and what the rates of parameter groups need. Read next:
`factors.py`, `cycles.py`.
"""

from collections.abc import Sequence
from typing import Any

import wengert as wg
from wengert._core import Tensor

from ..optimizer import Optimizer

__all__ = ["LRScheduler"]

Group = dict[str, Any]


class LRScheduler:
    """Base class of schedules, which set the rates `lr` of an optimiser's groups.

    A subclass defines `get_lr()`, the rates of step `last_epoch`. Most schedules multiply the rates that
    stand, so several act on one optimiser at once, beside rates that are set by hand. With
    `_get_closed_form_lr()` a subclass says what the rates of a step are when it is entered there, by
    `step(epoch)` or in a `SequentialLR`.

    Args:
        optimizer: its groups' `lr` are set, at once and by each `step()`, also those of groups added later.
        last_epoch: the step to continue from, with the rates that stand; -1 starts.

    Raises:
        TypeError: for something that is no optimiser.
        KeyError: if there is nothing to continue from.

    Example:
        >>> class Halved(wg.optim.lr_scheduler.LRScheduler):
        ...     def get_lr(self):
        ...         share = 0.5 if self.last_epoch > 0 else 1.0
        ...         return [group["lr"] * share for group in self.optimizer.param_groups]
        >>> schedule = Halved(wg.optim.SGD([wg.ones(1)], lr=1.0))
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    # See `wengert.jit`.
    _called_by_programs = ("step",)

    #: Whether the step under way is that of the constructor.
    _is_initial = False
    #: Whether `get_lr` is called by `step`, which a `get_lr` of a program's own may ask.
    _get_lr_called_within_step = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        """Remembers the initial rates and sets those of the first step."""
        self.optimizer = check_optimizer(type(self).__name__, optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(f"{type(self).__name__}: group {i} has no 'initial_lr' to continue from")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        """The step of the constructor, which sets what holds before the first `step()`."""
        self._step_count, self._is_initial = 0, True
        try:
            self.step()
        finally:
            self._is_initial = False

    def _undo(self) -> None:
        """Goes back one step, as a `SequentialLR` does that begins anew; the rates stay."""
        self.last_epoch -= 1

    def _restart(self) -> None:
        """Begins at step 0 once more, with the rates that stand."""
        self.last_epoch = -1
        self._initial_step()

    def get_lr(self) -> list[Any]:
        """Returns the rates of step `last_epoch`, one per group; `get_last_lr` tells those that were set
        last.
        """
        return [self._next(group, i) for i, group in enumerate(self.optimizer.param_groups)]

    def _next(self, group: Group, i: int) -> Any:
        """The rate of group i at step `last_epoch`."""
        raise NotImplementedError(f"{type(self).__name__} has no get_lr")

    def get_last_lr(self) -> list[Any]:
        """Returns the rates that this schedule set last, one per group."""
        return self._last_lr

    def step(self, epoch: Any = None) -> None:
        """Goes to the next step, or to the step `epoch`: where there is a closed form, from the initial rates
        alone.
        """
        self._step_count += 1
        self._update_lr(epoch)

    def _update_lr(self, epoch: Any = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        # Groups that came since then start from the rate they came with.
        for group in self.optimizer.param_groups[len(self.base_lrs) :]:
            self.base_lrs.append(group.setdefault("initial_lr", _copied(group["lr"])))
        closed = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
        self.__dict__["_get_lr_called_within_step"] = True
        try:
            rates = self.get_lr() if closed is None else closed()
        finally:
            del self.__dict__["_get_lr_called_within_step"]
        self._set(rates)

    def _set(self, rates: Sequence[Any]) -> None:
        """Sets the rates of the groups."""
        for group, rate in zip(self.optimizer.param_groups, rates):
            set_rate(group, rate)
        self._last_lr = rates_of(self.optimizer)

    def state_dict(self) -> dict[str, Any]:
        """Returns everything but the optimiser and functions."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer" and not callable(v)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state. The rates themselves belong to the optimiser, whose state dict has them."""
        if not isinstance(state_dict, dict) or not (state_dict.keys() & self.__dict__.keys()):
            found = list(state_dict) if isinstance(state_dict, dict) else type(state_dict).__name__
            raise ValueError(
                f"{type(self).__name__}.load_state_dict: what state_dict() returned expected, got {found}"
            )
        self.__dict__.update(state_dict)


def check_optimizer(name: str, optimizer: Any) -> Optimizer:
    """The optimiser.

    Raises:
        TypeError: for something else.
    """
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{name}: an Optimizer expected, got {type(optimizer).__name__}")
    return optimizer


def _copied(rate: Any) -> Any:
    """A rate that does not change with the group's own."""
    return rate.detach().clone() if isinstance(rate, Tensor) else rate


def set_rate(group: Group, rate: Any) -> None:
    """Sets the rate of a group, in place where it is a tensor."""
    if not isinstance(group["lr"], Tensor):
        group["lr"] = rate
        return
    with wg.no_grad():
        group["lr"].fill_(float(rate))


def rates_of(optimizer: Optimizer) -> list[Any]:
    """The rates of the groups as they stand."""
    return [_copied(group["lr"]) for group in optimizer.param_groups]


def per_group(name: str, what: str, optimizer: Optimizer, given: Any) -> list[Any]:
    """One value for each parameter group, from one for all or a list or tuple with one for each.

    Raises:
        ValueError: for a list of another length.
    """
    count = len(optimizer.param_groups)
    values = list(given) if isinstance(given, list | tuple) else [given] * count
    if len(values) != count:
        raise ValueError(f"{name}: {len(values)} {what} for {count} parameter groups")
    return values


def value_of_group(name: str, what: str, values: list[Any], i: int) -> Any:
    """The value of group i; a group that came later has that of all others.

    Raises:
        ValueError: for such a group where the others differ.
    """
    if i < len(values):
        return values[i]
    if any(value != values[0] for value in values):
        raise ValueError(
            f"{name}: {len(values)} {what} for {i + 1} parameter groups; one was added later, so make the "
            "schedule anew"
        )
    return values[0]
