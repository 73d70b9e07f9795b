"""`gradient_flow`: how gradients pass the layers of a model at one moment; `GradientFlow`: the same, step by
step.

What is measured stands in `flow.py`, the figures in `flow_figures.py`.
"""

import dataclasses
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import wengert as wg
from wengert._core import Tensor

from . import flow_figures
from .flow import FlowTable, Thresholds, Units, measure, norm

__all__ = ["FlowReport", "GradientFlow", "gradient_flow"]


class FlowReport:
    """A table and its figure; `print` shows the table, and `figure, table = report` takes it apart.

    Attributes:
        table: a `FlowTable`.
    """

    def __init__(self, table: FlowTable, thresholds: Thresholds, title: str) -> None:
        """Holds `table`; `gradient_flow` makes it."""
        self.table, self.thresholds, self.title = table, thresholds, title

    @cached_property
    def figure(self) -> Any:
        """Draws a matplotlib figure; raises ImportError without matplotlib."""
        return flow_figures.bars(self.table, self.thresholds, self.title)

    @property
    def flags(self) -> dict[str, tuple[str, ...]]:
        """The layers that were remarked upon."""
        return self.table.flags

    def __iter__(self) -> Iterator[Any]:
        """The figure, then the table."""
        yield self.figure
        yield self.table

    def save(self, path: str | Path) -> None:
        """Writes the figure; the suffix tells the format."""
        self.figure.savefig(path)

    def __str__(self) -> str:
        """The table."""
        return str(self.table)

    __repr__ = __str__

    def _repr_png_(self) -> bytes:
        return flow_figures.png(self.figure)


def _require_layers(model: Any, what: str) -> None:
    if not isinstance(model, wg.nn.Module):
        raise TypeError(f"{what}: a module expected, got {type(model).__name__}")
    if next(iter(model.parameters()), None) is None:
        raise ValueError(f"{what}: {type(model).__name__} has no parameters, so there is nothing to show")


def _rates(model: Any, optimizer: Any, lr: float | None) -> dict[int, float]:
    """The learning rate of each parameter, by identity."""
    if lr is not None:
        return {id(p): float(lr) for p in model.parameters()}
    groups = optimizer.param_groups if optimizer is not None else ()
    return {id(p): float(group["lr"]) for group in groups for p in group["params"]}


def _require_gradients(table: FlowTable, what: str) -> FlowTable:
    if all(row.grad_norm is None for row in table):
        raise RuntimeError(
            f"{what}: no parameter has a gradient; call loss.backward() before it, and zero_grad() only "
            f"after it"
        )
    return table


def gradient_flow(
    model: Any,
    inputs: Any = None,
    *,
    optimizer: Any = None,
    lr: float | None = None,
    thresholds: Thresholds | None = None,
    title: str | None = None,
) -> FlowReport:
    """Shows how gradients reach the layers of a model, after a backward: norms, update ratios, dead units,
    remarks.

    Args:
        model: a module whose parameters have gradients.
        inputs: what to call the model with (a tensor, or a tuple of arguments) to look at its activations;
            without it, shares of dead and saturated units are unknown. It is called without recording;
            buffers and the random stream are put back.
        optimizer: gives learning rates; update ratios are then those of plain gradient descent,
            `lr |g| / |w|`. `GradientFlow` measures what the optimiser really does. About 1e-3 is usual.
        lr: one learning rate for all, instead.
        thresholds: when a layer is remarked upon; see `Thresholds`.
        title: the heading of the figure.

    Returns:
        A `FlowReport`: `.table` prints without matplotlib, `.figure` needs it, and `figure, table = report`
        works.

    Raises:
        TypeError: for something else than a module.
        ValueError: for a module without parameters.
        RuntimeError: if no parameter has a gradient.

    Example:
        >>> model = wg.nn.Sequential(wg.nn.Linear(2, 4), wg.nn.ReLU(), wg.nn.Linear(4, 1))
        >>> model(wg.ones(3, 2)).sum().backward()
        >>> [row.name for row in wg.plot.gradient_flow(model).table]
        ['0', '2']
    """
    _require_layers(model, "gradient_flow")
    thresholds = thresholds or Thresholds()
    units = Units()
    if inputs is not None:
        _look(model, inputs, units)
    table = measure(model, units, {}, _rates(model, optimizer, lr), thresholds)
    _require_gradients(table, "gradient_flow")
    return FlowReport(table, thresholds, title or f"Gradients of {type(model).__name__}")


def _look(model: Any, inputs: Any, units: Units) -> None:
    """Calls the model to see its activations, and puts back what that changed."""
    kept = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    stream = wg.get_rng_state()
    units.watch(model)
    try:
        with wg.no_grad():
            model(*(inputs if isinstance(inputs, (tuple, list)) else (inputs,)))
    finally:
        units.unwatch()
        wg.set_rng_state(stream)
        with wg.no_grad():
            for buffer, before in kept:
                buffer.copy_(before)


class GradientFlow:
    """Records a `FlowTable` at each `update()` and draws them over time.

    Call `update()` once per step, after `backward()` and before the next `zero_grad()`; before or after
    `optimizer.step()`, as you like. Activations are looked at in every forward between two updates: that
    costs a copy of each to the host, and with an optimiser a copy of the parameters at each step. `remove()`,
    or the end of a `with` block, takes all hooks away. Forwards inside `vmap` and `jvp` are not seen.

    Args:
        model: the module to watch.
        optimizer: whose steps to measure; update ratios are `|change| / |weight|` of the real step.
        lr: without an optimiser, the learning rate for ratios `lr |g| / |w|`.
        thresholds: when a layer is remarked upon; see `Thresholds`.

    Attributes:
        tables: one `FlowTable` for each update.

    Example:
        >>> model = wg.nn.Sequential(wg.nn.Linear(2, 4), wg.nn.ReLU(), wg.nn.Linear(4, 1))
        >>> optimizer = wg.optim.SGD(model.parameters(), lr=0.1)
        >>> with wg.plot.GradientFlow(model, optimizer) as flow:
        ...     for _ in range(3):
        ...         optimizer.zero_grad()
        ...         model(wg.ones(3, 2)).square().mean().backward()
        ...         optimizer.step()
        ...         table = flow.update()
        >>> flow.history("grad_norm").shape
        (3, 2)
    """

    def __init__(
        self,
        model: Any,
        optimizer: Any = None,
        *,
        lr: float | None = None,
        thresholds: Thresholds | None = None,
    ) -> None:
        """Begins to watch."""
        _require_layers(model, "GradientFlow")
        self.model, self.optimizer, self.lr = model, optimizer, lr
        self.thresholds = thresholds or Thresholds()
        self.tables: list[FlowTable] = []
        self._units = Units()
        self._units.watch(model)
        self._before: dict[str, list[Tensor]] = {}
        self._measured: dict[str, float] = {}
        # Whether the last table still waits for the step that follows it.
        self._waiting = False
        self._handles = []
        if optimizer is not None:
            self._handles = [
                optimizer.register_step_pre_hook(self._before_step),
                optimizer.register_step_post_hook(self._after_step),
            ]

    def _layers(self) -> Iterator[tuple[str, list[Tensor]]]:
        for name, module in self.model.named_modules():
            yield name, list(module.parameters(recurse=False))

    def _before_step(self, *_: Any) -> None:
        self._before = {
            name: [p.detach().clone() for p in params] for name, params in self._layers() if params
        }

    def _after_step(self, *_: Any) -> None:
        measured = {}
        for name, params in self._layers():
            before = self._before.get(name, [])
            size = norm(before)
            if before and size > 0:
                with wg.no_grad():
                    measured[name] = norm([p.detach() - old for p, old in zip(params, before)]) / size
        self._before = {}
        if not self._waiting:
            self._measured = measured
            return
        rows = [dataclasses.replace(row, update_ratio=measured.get(row.name)) for row in self.tables[-1]]
        self.tables[-1] = FlowTable(rows)
        self._waiting = False

    def update(self) -> FlowTable:
        """Adds a table of the gradients as they are, and of the activations since the last update; returns
        it.

        Raises:
            RuntimeError: if no parameter has a gradient.
        """
        rates = _rates(self.model, None, self.lr)
        table = measure(self.model, self._units, self._measured, rates, self.thresholds)
        self.tables.append(_require_gradients(table, "GradientFlow.update"))
        self._waiting = self.optimizer is not None and not self._measured
        self._measured = {}
        self._units.clear()
        return table

    @property
    def table(self) -> FlowTable:
        """The last table."""
        if not self.tables:
            raise RuntimeError("GradientFlow: nothing is recorded; call update() after a backward")
        return self.tables[-1]

    def history(self, field: str) -> Any:
        """Returns a field of `LayerFlow` as an array (updates, layers), NaN where it is unknown."""
        fields = ("weight_norm", "grad_norm", "relative", "update_ratio", "dead", "saturated", "silent")
        if field not in fields:
            raise ValueError(
                f"GradientFlow.history: unknown field {field!r}; expected one of {', '.join(fields)}"
            )
        rows = [[getattr(row, field) for row in table] for table in self.tables]
        return np.array([[np.nan if x is None else x for x in row] for row in rows], dtype=float)

    @property
    def flags(self) -> dict[str, dict[str, int]]:
        """Per layer and remark, in how many updates it was made."""
        count: dict[str, dict[str, int]] = {}
        for table in self.tables:
            for name, flags in table.flags.items():
                for flag in flags:
                    count.setdefault(name, {})[flag] = count.get(name, {}).get(flag, 0) + 1
        return count

    @property
    def figure(self) -> Any:
        """A new matplotlib figure: heat maps of all updates, a row for each layer; needs matplotlib."""
        names = [f"{row.name}  {row.kind}".strip() for row in self.table]
        maps = {field: self.history(field) for field in ("grad_norm", "update_ratio", "dead", "saturated")}
        broken = np.array([["not finite" in row.flags for row in table] for table in self.tables])
        return flow_figures.heat_maps(names, maps, broken, f"Gradients of {type(self.model).__name__}")

    def save(self, path: str | Path) -> None:
        """Writes the figure; the suffix tells the format."""
        self.figure.savefig(path)

    def remove(self) -> None:
        """Takes all hooks away; a second call does nothing."""
        self._units.unwatch()
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> "GradientFlow":
        """Itself."""
        return self

    def __exit__(self, *_: Any) -> None:
        """Takes the hooks away."""
        self.remove()

    def __str__(self) -> str:
        """The last table, and how often each remark was made."""
        lines = (
            [f"after {len(self.tables)} updates", str(self.table)] if self.tables else ["nothing recorded"]
        )
        for name, flags in self.flags.items():
            said = ", ".join(f"{flag} in {times} of {len(self.tables)}" for flag, times in flags.items())
            lines.append(f"{name or '(model)'}: {said}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_png_(self) -> bytes:
        return flow_figures.png(self.figure)
