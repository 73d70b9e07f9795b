"""The figures of gradient flow: bars for one moment, heat maps over time."""

import io
import math
from typing import Any

import numpy as np

from .flow import FlowTable, LayerFlow, Thresholds
from .style import COLORS, INK, MUTED, STYLE, new_figure, require_matplotlib

__all__ = ["bars", "heat_maps", "png"]

GOOD, BAD = COLORS[0], COLORS[4]
# What a step usually changes, relative to the weights.
USUAL = 1e-3


def png(figure: Any) -> bytes:
    """A figure as notebooks show it."""
    out = io.BytesIO()
    figure.savefig(out, format="png")
    return out.getvalue()


def _short(name: str) -> str:
    """The end of a long name."""
    return name if len(name) <= 28 else "…" + name[-27:]


def _label(row: LayerFlow) -> str:
    """Name and class of a layer."""
    return f"{_short(row.name)}  {row.kind}".strip()


def _positive(x: float | None) -> float:
    """A value for a logarithmic axis; NaN draws nothing."""
    return x if x is not None and x > 0 and math.isfinite(x) else math.nan


def _bars(axes: Any, rows: list[LayerFlow], values: list[float | None], flags: tuple[str, ...]) -> None:
    """Horizontal bars on a logarithmic axis; text where a value has no length."""
    drawn = [_positive(x) for x in values]
    colors = [BAD if set(row.flags) & set(flags) else GOOD for row in rows]
    known = [x for x in drawn if not math.isnan(x)]
    axes.set_xscale("log")
    low, high = (min(known), max(known)) if known else (0.1, 1.0)
    low = 10 ** (math.floor(math.log10(low)) - 0.5)
    axes.set_xlim(low, 10 ** (math.ceil(math.log10(high)) + 0.2))
    places = range(len(rows))
    axes.barh(places, [x - low for x in drawn], left=low, color=colors, height=0.62)
    for place, x, value in zip(places, drawn, values):
        if math.isnan(x):
            text = "none" if value is None else f"{value:g}"
            axes.annotate(
                text, (low, place), (4, 0), textcoords="offset points", va="center", color=BAD, fontsize=8.5
            )


def bars(table: FlowTable, thresholds: Thresholds, title: str) -> Any:
    """Gradient norms, update ratios and shares of dead and saturated units, the first layer on top."""
    quantities = [
        ("Gradient norm", "grad_norm", ("no gradient", "not finite", "zero", "vanishing", "exploding")),
        ("Gradient / weight", "relative", ("vanishing", "exploding")),
        ("Update / weight", "update_ratio", ()),
    ]
    rows = table.rows
    panels = [
        panel for panel in quantities if panel[1] == "grad_norm" or any(getattr(r, panel[1]) for r in rows)
    ]
    shares = any(row.dead is not None or row.saturated is not None for row in rows)
    figure = new_figure(3.6 * (len(panels) + shares) + 2.6, 1.5 + 0.34 * len(rows))
    from matplotlib import rc_context

    with rc_context(STYLE):
        figure.set_facecolor("white")
        figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold", color=INK)
        grid = np.atleast_1d(figure.subplots(1, len(panels) + shares, sharey=True))
        for axes, (name, field, flags) in zip(grid, panels):
            _bars(axes, rows, [getattr(row, field) for row in rows], flags)
            axes.set_title(name)
            axes.grid(False, axis="y")
            if field == "update_ratio":
                axes.axvline(USUAL, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
            if field == "relative":
                axes.axvline(thresholds.exploding, color=BAD, linewidth=1, linestyle=(0, (4, 3)), alpha=0.6)
        if shares:
            _shares(grid[-1], rows)
        grid[0].set_yticks(range(len(rows)), [_label(row) for row in rows])
        grid[0].set_ylim(len(rows) - 0.4, -0.6)
        for place, row in enumerate(rows):
            if row.flags:
                axes = grid[-1]
                axes.annotate(
                    ", ".join(row.flags),
                    (1.02, place),
                    xycoords=("axes fraction", "data"),
                    va="center",
                    color=BAD,
                    fontsize=9,
                    annotation_clip=False,
                )
    return figure


def _shares(axes: Any, rows: list[LayerFlow]) -> None:
    places = np.arange(len(rows))
    kinds = [("dead", COLORS[3]), ("saturated", COLORS[1])]
    known = [(name, color) for name, color in kinds if any(getattr(row, name) is not None for row in rows)]
    height = 0.62 / len(known)
    for k, (name, color) in enumerate(known):
        at = places + (k - (len(known) - 1) / 2) * height
        values = [getattr(row, name) for row in rows]
        axes.barh(at, [100 * (x or 0.0) for x in values], height=height, color=color, label=name)
        for y, x in zip(at, values):
            if x is not None:
                axes.annotate(
                    f"{x:.0%}", (100 * x, y), (3, 0), textcoords="offset points", va="center", fontsize=8
                )
    axes.set(title=" and ".join(name for name, _ in known).capitalize() + " units, %", xlim=(0, 112))
    axes.set_xticks(range(0, 101, 25))
    axes.grid(False, axis="y")
    if len(known) > 1:
        axes.legend(loc="lower right", fontsize=8.5)


def heat_maps(names: list[str], maps: dict[str, Any], broken: Any, title: str) -> Any:
    """One map for each quantity that is known: layers from top to bottom, updates from left to right.

    `broken` marks gradients that were not finite.
    """
    titles = {
        "grad_norm": "Gradient norm",
        "update_ratio": "Update / weight",
        "dead": "Dead units, %",
        "saturated": "Saturated outputs, %",
    }
    known = {key: values for key, values in maps.items() if np.isfinite(values).any() or key == "grad_norm"}
    figure = new_figure(11, 0.9 + (0.9 + 0.26 * len(names)) * len(known))
    matplotlib = require_matplotlib()

    with matplotlib.rc_context(STYLE):
        figure.set_facecolor("white")
        figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold", color=INK)
        grid = np.atleast_1d(figure.subplots(len(known), 1, sharex=True))
        for axes, (key, values) in zip(grid, known.items()):
            _heat_map(figure, axes, values, key in ("dead", "saturated"), titles[key])
            axes.set_yticks(range(len(names)), [_short(name) for name in names])
        steps, layers = np.nonzero(broken)
        if len(steps):
            grid[0].plot(steps + 1, layers, "x", color=BAD, markersize=6, markeredgewidth=1.6)
            grid[0].set_title(grid[0].get_title(loc="left") + " (crosses: not finite)")
        grid[-1].set_xlabel("update")
        grid[-1].xaxis.get_major_locator().set_params(integer=True)
    return figure


def _heat_map(figure: Any, axes: Any, values: Any, share: bool, title: str) -> None:
    """One map; zero is black on a logarithmic scale, unknown is grey."""
    import matplotlib
    from matplotlib.colors import LogNorm, Normalize

    low, high = (0.0, 100.0) if share else _span(values)
    shown = np.where(np.isfinite(values), 100 * values if share else np.maximum(values, low / 10), np.nan)
    shown[~np.isfinite(values)] = np.nan
    colors = matplotlib.colormaps["magma_r" if share else "viridis"]
    image = axes.imshow(
        np.ma.masked_invalid(shown.T),
        aspect="auto",
        interpolation="nearest",
        cmap=colors.with_extremes(bad="#d9dce1", under="black"),
        norm=Normalize(low, high) if share else LogNorm(low, high),
        extent=(0.5, len(values) + 0.5, values.shape[1] - 0.5, -0.5),
    )
    axes.set_title(title + (" (black: zero)" if not share and (values == 0).any() else ""))
    axes.grid(False)
    bar = figure.colorbar(image, ax=axes, pad=0.01, aspect=12)
    bar.outline.set_visible(False)


def _span(values: Any) -> tuple[float, float]:
    """Limits of a logarithmic scale: all positive values, and a decade at least."""
    positive = values[np.isfinite(values) & (values > 0)]
    low, high = (float(positive.min()), float(positive.max())) if positive.size else (0.1, 1.0)
    widen = max(math.sqrt(10 * low / high), 1.0) if high / low < 10 else 1.0
    return low / widen, high * widen
