"""The demo's picture: how a training run went, on one page. Needs matplotlib; draws without a display."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .style import COLORS, INK, MUTED, STYLE, require_matplotlib


def smooth(values: Sequence[float], width: int) -> np.ndarray:
    """Returns the centred moving mean of finite values; the window shrinks towards the ends.

    Example:
        >>> wg.plot.smooth([0.0, 1.0, 1.0, 0.0], 3)
        array([0.5       , 0.66666667, 0.66666667, 0.5       ])
    """
    x = np.asarray(values, dtype=float)
    finite = np.isfinite(x)
    window = np.ones(max(int(width), 1))
    weight = (
        np.convolve(finite, window, "same")[: len(x)]
        if len(x) >= len(window)
        else np.full(len(x), finite.sum())
    )
    filled = np.where(finite, x, 0.0)
    total = (
        np.convolve(filled, window, "same")[: len(x)]
        if len(x) >= len(window)
        else np.full(len(x), filled.sum())
    )
    return np.where(weight > 0, total / np.maximum(weight, 1), np.nan)


def _label_ends(axes: Any, ends: list[tuple[float, str, str]], x: float) -> None:
    """Names at the right ends of lines, moved apart where they would overlap. Logarithmic height."""
    low, high = (math.log(v) for v in axes.get_ylim())
    gap = 0.055 * (high - low)
    placed: list[float] = []
    for value, name, color in sorted(ends):
        at = max([math.log(value), *(p + gap for p in placed[-1:])])
        placed.append(at)
        points = (at - math.log(value)) / (high - low) * axes.bbox.height * 72 / axes.figure.dpi
        axes.annotate(
            name,
            (x, value),
            (8, points),
            textcoords="offset points",
            va="center",
            color=color,
            annotation_clip=False,
            fontsize=9,
        )


def _losses(axes: Any, history: Any) -> None:
    steps = history.steps_per_epoch
    epochs = np.arange(1, len(history.losses) + 1) / steps
    axes.plot(epochs, history.losses, color=COLORS[0], alpha=0.18, linewidth=0.8)
    train = smooth(history.losses, steps)
    axes.plot(epochs, train, color=COLORS[0], linewidth=2)
    at = np.arange(1, len(history.test_losses) + 1)
    axes.plot(at, history.test_losses, color=COLORS[1], linewidth=2)
    axes.set(title="Loss", xlabel="epoch", yscale="log")
    axes.margins(x=0)
    ends = [(float(train[-1]), "training", COLORS[0]), (history.test_losses[-1], "held out", COLORS[1])]
    _label_ends(axes, ends, float(at[-1]))


def _gradients(axes: Any, history: Any) -> None:
    steps = history.steps_per_epoch
    ends = []
    for (name, values), color in zip(history.gradients.items(), COLORS):
        epochs = np.arange(1, len(values) + 1) / steps
        axes.plot(epochs, values, color=color, alpha=0.12, linewidth=0.7)
        line = smooth(values, steps)
        axes.plot(epochs, line, color=color, linewidth=2)
        if np.isfinite(line[-1]) and line[-1] > 0:
            ends.append((float(line[-1]), name, color))
    axes.set(title="Gradient norm of each layer", xlabel="epoch", yscale="log")
    axes.margins(x=0)
    _label_ends(axes, ends, len(history.losses) / steps)


def _accuracy(axes: Any, history: Any) -> None:
    errors = 100.0 * (1.0 - np.asarray(history.accuracies))
    at = np.arange(1, len(errors) + 1)
    axes.plot(at, errors, color=COLORS[2], linewidth=2, marker="o", markersize=3)
    axes.set(title="Held-out errors, %", xlabel="epoch")
    axes.set_ylim(0, max(3.5, float(np.percentile(errors, 85)) * 1.3))
    axes.margins(x=0.02)
    axes.axhline(3.0, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    axes.annotate("goal", (at[0], 3.0), (0, 3), textcoords="offset points", color=MUTED, fontsize=8.5)
    axes.annotate(
        f"{errors[-1]:.2f} %",
        (at[-1], errors[-1]),
        (8, 0),
        textcoords="offset points",
        va="center",
        color=COLORS[2],
        annotation_clip=False,
        fontsize=9,
    )


def _mistakes(
    figure: Any, images: np.ndarray, labels: np.ndarray, predicted: np.ndarray, columns: int = 12
) -> None:
    wrong = np.flatnonzero(predicted != labels)
    shown = wrong[: 2 * columns]
    more = f", the first {len(shown)} shown" if len(shown) < len(wrong) else ""
    title = f"{len(wrong)} of {len(labels)} held-out digits misread (true → read{more})"
    figure.suptitle(title, x=0.013, ha="left", fontsize=11, fontweight="bold", color=INK)
    rows = max(1, -(-len(shown) // columns))
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid:
        axes.axis("off")
    for axes, i in zip(grid, shown):
        axes.imshow(images[i], cmap="gray_r", interpolation="nearest")
        axes.set_title(
            f"{labels[i]} → {predicted[i]}",
            loc="center",
            fontsize=10,
            pad=4,
            color=COLORS[4],
            fontweight="normal",
        )


def training(
    path: Path, history: Any, images: np.ndarray, labels: np.ndarray, predicted: np.ndarray, subtitle: str
) -> None:
    """Writes the picture of one run as PNG: loss, errors, gradient norms, and the digits that were
    misread.
    """
    require_matplotlib()
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        rows = 1 if np.count_nonzero(predicted != labels) <= 12 else 2
        heights = [0.75, 4.4, 0.4 + 1.35 * rows]
        figure = Figure(figsize=(13, sum(heights)), dpi=130, layout="constrained")
        FigureCanvasAgg(figure)
        parts: Any = figure.subfigures(3, 1, height_ratios=heights)
        head, top, bottom = parts
        accuracy = history.accuracies[-1]
        head.text(
            0.013, 0.5, f"Handwritten digits: {accuracy:.2%} right", fontsize=17, fontweight="bold", color=INK
        )
        head.text(0.013, 0.12, subtitle, fontsize=10, color=MUTED)
        left, middle, right = top.subplots(1, 3, width_ratios=[1.05, 0.85, 1.2])
        _losses(left, history)
        _accuracy(middle, history)
        _gradients(right, history)
        _mistakes(bottom, images, labels, predicted)
        figure.savefig(path)
