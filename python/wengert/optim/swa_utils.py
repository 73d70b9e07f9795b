"""Averages of a model's weights over training, under the names of `torch.optim.swa_utils`.

Averaging the weights of the last epochs at a constant rate finds wider minima (P. Izmailov et al., "Averaging
weights leads to wider optima and better generalization", 2018); an exponential moving average is the same
with a fixed horizon (B. T. Polyak and A. B. Juditsky, 1992).

Example:
    >>> model = wg.nn.Linear(1, 1)
    >>> average = wg.optim.swa_utils.AveragedModel(model, avg_fn=wg.optim.swa_utils.get_ema_avg_fn(0.9))
    >>> average.update_parameters(model)
    >>> average.n_averaged.item()
    1
"""

import copy
import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import wengert as wg
from wengert import nn
from wengert._core import Tensor

from ..nn.modules.batch import _BatchNorm
from .lr_scheduler.schedule import Group, LRScheduler, check_optimizer, per_group, value_of_group
from .optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

#: From an average, a new value and the number of values before: the next average.
Average = Callable[[Tensor, Tensor, Tensor], Tensor]
#: The same for lists, in place.
Averages = Callable[[list[Tensor], list[Tensor], Tensor], None]


def _mean(average: Tensor, value: Tensor, count: Tensor) -> Tensor:
    return average + (value - average) / (count.to(value.dtype) + 1)


def _moving(decay: float, average: Tensor, value: Tensor, count: Tensor) -> Tensor:
    return average * decay + value * (1.0 - decay)


def _each(average: Average, averages: list[Tensor], values: list[Tensor], count: Tensor) -> None:
    """Writes the next average into each tensor of the first list."""
    for a, p in zip(averages, values):
        a.copy_(average(a, p, count.to(a.device)))


def get_swa_avg_fn() -> Average:
    """Returns the arithmetic mean of all values: `a + (p - a) / (n + 1)`, a being that of n before and p the
    new one.

    Example:
        >>> average = wg.optim.swa_utils.get_swa_avg_fn()
        >>> average(wg.tensor([0.0]), wg.tensor([1.0]), wg.tensor(1))
        tensor([0.5])
    """
    return _mean


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Returns an exponential moving average: `decay a + (1 - decay) p` of an average a and a new value p.

    Raises:
        ValueError: a decay outside of `[0, 1]`.

    Example:
        >>> average = wg.optim.swa_utils.get_ema_avg_fn(decay=0.5)
        >>> average(wg.tensor([0.0]), wg.tensor([1.0]), 1)
        tensor([0.5])
    """
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"get_ema_avg_fn: decay is between 0 and 1, got {decay}")
    return partial(_moving, decay)


def get_swa_multi_avg_fn() -> Averages:
    """Returns `get_swa_avg_fn` of lists, in place.

    Example:
        >>> averages = [wg.tensor([0.0])]
        >>> wg.optim.swa_utils.get_swa_multi_avg_fn()(averages, [wg.tensor([1.0])], wg.tensor(1))
        >>> averages
        [tensor([0.5])]
    """
    return partial(_each, get_swa_avg_fn())


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """Returns `get_ema_avg_fn(decay)` of lists, in place.

    Example:
        >>> averages = [wg.tensor([0.0])]
        >>> wg.optim.swa_utils.get_ema_multi_avg_fn(0.5)(averages, [wg.tensor([1.0])], wg.tensor(1))
        >>> averages
        [tensor([0.5])]
    """
    return partial(_each, get_ema_avg_fn(decay))


class AveragedModel(nn.Module):
    """A copy of a model whose parameters are averages of the model's.

    Args:
        model: the model; it is copied.
        device: where the averages lie; where the model lies by default.
        avg_fn: the average; `get_swa_avg_fn()` by default.
        multi_avg_fn: the average as a function of lists, in place of `avg_fn`.
        use_buffers: whether floating point buffers are averaged too; otherwise, and for others, the last are
            copied.

    Raises:
        TypeError: both functions given.

    Example:
        >>> model = wg.nn.Linear(1, 1)
        >>> averaged = wg.optim.swa_utils.AveragedModel(model)
        >>> averaged.update_parameters(model)
        >>> int(averaged.n_averaged)
        1
    """

    # See `wengert.jit`.
    _called_by_programs = ("update_parameters",)

    n_averaged: Tensor

    def __init__(
        self,
        model: nn.Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ) -> None:
        """Copies the model; nothing is averaged yet."""
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise TypeError("AveragedModel: avg_fn and multi_avg_fn given, one of them expected")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module.to(device)
        self.register_buffer("n_averaged", wg.zeros((), dtype=wg.int64, device="cpu"))
        self.use_buffers = use_buffers
        self._average = multi_avg_fn or partial(_each, avg_fn or get_swa_avg_fn())

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Returns what the averaged model computes."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: nn.Module) -> None:
        """Takes the parameters of a model into the averages; the first time they are the averages.

        Raises:
            ValueError: a model with other parameters or buffers.
        """
        pairs = _pairs("parameters", self.module.parameters(), model.parameters())
        buffers = _pairs("buffers", self.module.buffers(), model.buffers())
        averaged, copied = pairs, buffers
        if self.use_buffers:
            averaged = pairs + [(a, b) for a, b in buffers if a.is_floating_point()]
            copied = [(a, b) for a, b in buffers if not a.is_floating_point()]
        with wg.no_grad():
            if self.n_averaged.item() == 0:
                copied = copied + averaged
            else:
                values = [p.detach().to(a.device) for a, p in averaged]
                self._average([a for a, _ in averaged], values, self.n_averaged)
            for a, p in copied:
                a.copy_(p.detach().to(a.device))
            self.n_averaged.add_(1)


def _pairs(what: str, averages: Iterable[Tensor], values: Iterable[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Averages with the new values of the same shapes."""
    ours, theirs = list(averages), list(values)
    if [tuple(a.shape) for a in ours] != [tuple(p.shape) for p in theirs]:
        raise ValueError(
            f"AveragedModel: a model with {len(theirs)} {what} of shapes {[tuple(p.shape) for p in theirs]} "
            f"given, expected {[tuple(a.shape) for a in ours]} as in the model that was copied"
        )
    return list(zip(ours, theirs))


def update_bn(loader: Iterable[Any], model: nn.Module, device: Any = None) -> None:
    """Computes the running statistics of all batch normalisations anew, as averages over the batches of
    `loader`.

    Averaged weights have other activations than those that the statistics were taken of.

    Args:
        loader: gives inputs, or tuples or lists whose first element is the input.
        model: runs in training mode without recording gradients, and returns to its mode.
        device: where the inputs are moved, if given.

    Example:
        >>> model = wg.nn.BatchNorm1d(2)
        >>> wg.optim.swa_utils.update_bn([wg.ones(4, 2)], model)
        >>> model.running_mean
        tensor([1., 1.])
    """
    layers: dict[_BatchNorm, float | None] = {
        module: module.momentum
        for module in model.modules()
        if isinstance(module, _BatchNorm) and module.running_mean is not None
    }
    if not layers:
        return
    modes = {module: module.training for module in model.modules()}
    model.train()
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None
    try:
        with wg.no_grad():
            for batch in loader:
                x = batch[0] if isinstance(batch, (list, tuple)) else batch
                model(x if device is None else x.to(device))
    finally:
        for layer, momentum in layers.items():
            layer.momentum = momentum
        for module, mode in modes.items():
            module.__dict__["training"] = mode


class SWALR(LRScheduler):
    """Goes from the rates that it finds to a constant one, within `anneal_epochs` steps.

    Args:
        optimizer: whose rates it sets.
        swa_lr: the constant rate, or one per group.
        anneal_epochs: steps until then; 0 goes there at once.
        anneal_strategy: `"cos"` or `"linear"`.
        last_epoch: the step to continue from; -1 starts.

    Raises:
        ValueError: another strategy, negative or not whole steps, as many rates as no group.

    Example:
        >>> optimizer = wg.optim.SGD([wg.nn.Parameter(wg.ones(1))], lr=1.0)
        >>> schedule = wg.optim.swa_utils.SWALR(optimizer, swa_lr=0.0, anneal_epochs=2, anneal_strategy="linear")
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        """Leaves the rates as they are, unless `anneal_epochs` is 0."""
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"SWALR: anneal_strategy must be 'cos' or 'linear', got {anneal_strategy!r}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"SWALR: anneal_epochs is a whole number of at least 0, got {anneal_epochs!r}")
        optimizer = check_optimizer("SWALR", optimizer)
        self.swa_lrs = per_group("SWALR", "rates", optimizer, swa_lr)
        for group, rate in zip(optimizer.param_groups, self.swa_lrs):
            group["swa_lr"] = rate
        self.anneal_epochs, self.anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _part(self, t: int) -> float:
        """Which part of the way is done at step t."""
        part = max(0.0, min(1.0, t / max(1, self.anneal_epochs)))
        return (1.0 - math.cos(math.pi * part)) / 2.0 if self.anneal_strategy == "cos" else part

    def _next(self, group: Group, i: int) -> Any:
        t = self._step_count - 1 if self.anneal_epochs else max(1, self._step_count - 1)
        before, now = self._part(t - 1), self._part(t)
        goal = group.setdefault("swa_lr", value_of_group("SWALR", "rates", self.swa_lrs, i))
        # The rate that stands tells where the way began, also where other schedules have moved it.
        start = goal if before == 1.0 else (group["lr"] - before * goal) / (1.0 - before)
        return goal * now + start * (1.0 - now)


def __dir__() -> list[str]:
    """What is public."""
    return __all__
