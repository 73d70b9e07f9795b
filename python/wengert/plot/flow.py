"""What is measured about gradients, layer by layer, and the table of it. Needs no matplotlib.

Read next: `gradient_flow.py`, which collects tables over time and draws them.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import wengert as wg
from wengert import nn
from wengert._core import Tensor

__all__ = ["FlowTable", "LayerFlow", "Thresholds", "Units", "measure"]


@dataclass(frozen=True)
class Thresholds:
    """When a layer is remarked upon.

    Attributes:
        vanishing: its gradient, relative to its weights, is below this share of the model's largest.
        exploding: its gradient is more than so many times its weights: with 10, a step of learning rate 0.1
            replaces them altogether. Values that are not finite count, too.
        dead: at least this share of its units was zero for every sample.
        saturated: at least this share of its outputs was within 1 % of the limits of the activation.
    """

    vanishing: float = 1e-4
    exploding: float = 10.0
    dead: float = 0.5
    saturated: float = 0.5


@dataclass(frozen=True)
class LayerFlow:
    """One layer: a module that owns parameters.

    Attributes:
        name, kind, parameters: its dotted name, its class, how many numbers it owns.
        weight_norm, grad_norm: Euclidean norms over all its parameters; None without a gradient.
        relative: `grad_norm / weight_norm`; None where the weights are zero.
        update_ratio: norm of the change of one step, over the norm of the weights.
        dead: share of the units behind it that a ReLU made zero for every sample; None where none was seen.
        saturated: share of outputs at the limits of a bounded activation; None where none was seen.
        silent: share of the rows of a linear layer's weight whose gradient is exactly zero.
        flags: remarks: "no gradient", "not finite", "zero", "vanishing", "exploding", "dead", "saturated".
    """

    name: str
    kind: str
    parameters: int
    weight_norm: float
    grad_norm: float | None
    relative: float | None = None
    update_ratio: float | None = None
    dead: float | None = None
    saturated: float | None = None
    silent: float | None = None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class FlowTable:
    """The layers of a model in order; `print` shows them as text."""

    rows: list[LayerFlow]

    def __iter__(self) -> Iterator[LayerFlow]:
        """Its rows."""
        return iter(self.rows)

    def __len__(self) -> int:
        """How many layers there are."""
        return len(self.rows)

    def __getitem__(self, name: str) -> LayerFlow:
        """The layer of this name."""
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(
            f"no layer {name!r} in the table; there are {', '.join(row.name for row in self.rows)}"
        )

    @property
    def flags(self) -> dict[str, tuple[str, ...]]:
        """The layers that were remarked upon."""
        return {row.name: row.flags for row in self.rows if row.flags}

    def __str__(self) -> str:
        """Aligned columns; a column that nothing is known of is left out."""
        columns = {
            "layer": [row.name or "(model)" for row in self.rows],
            "kind": [row.kind for row in self.rows],
            "parameters": [f"{row.parameters:,}" for row in self.rows],
            "|weight|": [_number(row.weight_norm) for row in self.rows],
            "|gradient|": [_number(row.grad_norm) for row in self.rows],
            "gradient/weight": [_number(row.relative) for row in self.rows],
            "update/weight": [_number(row.update_ratio) for row in self.rows],
            "dead": [_share(row.dead) for row in self.rows],
            "saturated": [_share(row.saturated) for row in self.rows],
            "without gradient": [_share(row.silent) for row in self.rows],
            "remarks": [", ".join(row.flags) for row in self.rows],
        }
        lines = [""] * (len(self.rows) + 1)
        for title, cells in columns.items():
            if all(cell in ("", "-") for cell in cells) and title not in ("layer", "|gradient|"):
                continue
            width = max(map(len, [title, *cells]))
            left = title in ("layer", "kind", "remarks")
            for k, cell in enumerate([title, *cells]):
                lines[k] += ("  " if lines[k] else "") + (cell.ljust(width) if left else cell.rjust(width))
        return "\n".join(line.rstrip() for line in lines)


def _number(x: float | None) -> str:
    return "-" if x is None else f"{x:.2e}"


def _share(x: float | None) -> str:
    return "-" if x is None else f"{x:.0%}"


# The limits of bounded activations.
_LIMITS: tuple[tuple[Any, Any], ...] = (
    (nn.Sigmoid, lambda module: (0.0, 1.0)),
    (nn.Hardsigmoid, lambda module: (0.0, 1.0)),
    (nn.Tanh, lambda module: (-1.0, 1.0)),
    (nn.Softsign, lambda module: (-1.0, 1.0)),
    (nn.Hardtanh, lambda module: (module.min_val, module.max_val)),
)
_DYING = (nn.ReLU, nn.ReLU6)


@dataclass
class Units:
    """What forward hooks saw of the activations since `clear`: which units lived, how many outputs were
    saturated.

    An activation belongs to the layer that ran last before it. Units lie along the last axis.
    """

    alive: dict[tuple[str, int], Any] = field(default_factory=dict)
    saturated: dict[str, list[int]] = field(default_factory=dict)
    _last: str | None = None
    _handles: list[Any] = field(default_factory=list)

    def watch(self, model: Any) -> None:
        """Hooks into every layer and activation of `model`."""
        for name, module in model.named_modules():
            if _own(module):
                self._handles.append(module.register_forward_hook(self._layer(name)))
            if isinstance(module, _DYING) or any(isinstance(module, kind) for kind, _ in _LIMITS):
                self._handles.append(module.register_forward_hook(self._activation))

    def unwatch(self) -> None:
        """Removes the hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def clear(self) -> None:
        """Forgets what was seen."""
        self.alive.clear()
        self.saturated.clear()
        self._last = None

    def _layer(self, name: str) -> Any:
        def hook(module: Any, args: Any, out: Any) -> None:
            self._last = name

        return hook

    def _activation(self, module: Any, args: Any, out: Any) -> None:
        if self._last is None or not isinstance(out, Tensor) or not out.shape or not out.numel():
            return
        try:
            values = out.detach().cpu().double().numpy()
        except (RuntimeError, TypeError):
            return  # no single value: a forward inside vmap or jvp
        values = values.reshape(-1, values.shape[-1])
        if isinstance(module, _DYING):
            key = (self._last, values.shape[-1])
            seen = (values != 0).any(0)
            self.alive[key] = seen | self.alive[key] if key in self.alive else seen
            return
        low, high = next(limits(module) for kind, limits in _LIMITS if isinstance(module, kind))
        edge = 0.01 * (high - low)
        count = self.saturated.setdefault(self._last, [0, 0])
        count[0] += int(((values < low + edge) | (values > high - edge)).sum())
        count[1] += values.size

    def dead_share(self, layer: str) -> float | None:
        """Share of the units behind `layer` that never lived."""
        masks = [mask for (name, _), mask in self.alive.items() if name == layer]
        return 1.0 - sum(int(m.sum()) for m in masks) / sum(m.size for m in masks) if masks else None

    def saturated_share(self, layer: str) -> float | None:
        """Share of the outputs behind `layer` that were at a limit."""
        hit, total = self.saturated.get(layer, (0, 0))
        return hit / total if total else None


def norm(tensors: list[Tensor]) -> float:
    """The Euclidean norm of all tensors together, in float64."""
    with wg.no_grad():
        return math.sqrt(sum(float((t.detach().cpu().double() ** 2).sum().item()) for t in tensors))


def _own(module: Any) -> list[Tensor]:
    """The parameters that a module owns itself."""
    return list(module.parameters(recurse=False))


def _silent(module: Any) -> float | None:
    if not isinstance(module, nn.Linear) or module.weight.grad is None:
        return None
    rows = module.weight.grad.detach().cpu().double().numpy()
    return float((rows == 0).all(axis=1).mean()) if len(rows) else None


def measure(
    model: Any, units: Units, updates: Mapping[str, float], rates: Mapping[int, float], thresholds: Thresholds
) -> FlowTable:
    """The table of a model as it stands; `updates` are measured ratios, `rates` learning rates by
    parameter."""
    rows: list[dict[str, Any]] = []
    for name, module in model.named_modules():
        params = _own(module)
        if not params:
            continue
        grads = [p.grad for p in params if p.grad is not None]
        weight_norm = norm(params)
        grad_norm = norm(grads) if grads else None
        relative = grad_norm / weight_norm if grad_norm is not None and weight_norm > 0 else None
        update = updates.get(name)
        if update is None and relative is not None and all(id(p) in rates for p in params):
            moved = math.sqrt(sum((rates[id(p)] * norm([p.grad])) ** 2 for p in params if p.grad is not None))
            update = moved / weight_norm
        rows.append(
            dict(
                name=name,
                kind=type(module).__name__,
                parameters=sum(p.numel() for p in params),
                weight_norm=weight_norm,
                grad_norm=grad_norm,
                relative=relative,
                update_ratio=update,
                dead=units.dead_share(name),
                saturated=units.saturated_share(name),
                silent=_silent(module),
            )
        )
    finite = [
        row["relative"] for row in rows if row["relative"] is not None and math.isfinite(row["relative"])
    ]
    largest = max(finite, default=0.0)
    return FlowTable([LayerFlow(**row, flags=_flags(row, largest, thresholds)) for row in rows])


def _flags(row: dict[str, Any], largest: float, thresholds: Thresholds) -> tuple[str, ...]:
    grad, relative = row["grad_norm"], row["relative"]
    flags = []
    if grad is None:
        flags.append("no gradient")
    elif not math.isfinite(grad):
        flags.append("not finite")
    elif grad == 0:
        flags.append("zero")
    elif relative is not None and relative < thresholds.vanishing * largest:
        flags.append("vanishing")
    if grad is not None and (
        not math.isfinite(grad) or (relative is not None and relative > thresholds.exploding)
    ):
        flags.append("exploding")
    if row["dead"] is not None and row["dead"] >= thresholds.dead:
        flags.append("dead")
    if row["saturated"] is not None and row["saturated"] >= thresholds.saturated:
        flags.append("saturated")
    return tuple(flags)
