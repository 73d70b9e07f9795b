"""Records of normalisation and losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import wengert as wg
from scipy import special
from support import Arg, Array, Case, Domain, Grid, Integers, Real, Source

from samples.sample import ANY, Table

LOSSES = Table()
add = LOSSES.record


def layer_norm_case(s: Source) -> Case:
    shape = s.shape(1, 3, least=3)
    trailing = shape[len(shape) - s.integer(1, len(shape)) :]
    affine = s.choice([0, 2])
    # Rows of nearly equal numbers are no place for differences.
    return Case(
        (Arg(shape, Grid(distinct=True)), *[Arg(trailing)] * affine),
        {"shape": trailing, "eps": s.choice([1e-5, 1e-2])},
    )


def layer_norm_reference(x: Array, *affine: Array, shape: tuple[int, ...], eps: float) -> Array:
    axes = tuple(range(-len(shape), 0))
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
    return y * affine[0] + affine[1] if affine else y


def layer_norm(x: wg.Tensor, *affine: wg.Tensor, shape: tuple[int, ...], eps: float) -> wg.Tensor:
    return wg.nn.functional.layer_norm(x, shape, *affine, eps=eps)


add(
    "layer_norm",
    layer_norm,
    layer_norm_reference,
    layer_norm_case,
    rows=("LayerNorm", "LayerNormVjp"),
    scale=32,
    empty=False,
    gpu_scale=4,
)


def rms_case(s: Source) -> Case:
    shape = s.shape(1, 3, least=2)
    trailing = shape[len(shape) - s.integer(1, len(shape)) :]
    weight = [Arg(trailing)] * s.integer(0, 1)
    return Case((Arg(shape), *weight), {"shape": trailing, "eps": s.choice([1e-3, 1e-1])})


def rms_norm(x: wg.Tensor, *weight: wg.Tensor, shape: tuple[int, ...], eps: float) -> wg.Tensor:
    return wg.nn.functional.rms_norm(x, shape, *weight, eps=eps)


def rms_reference(x: Array, *weight: Array, shape: tuple[int, ...], eps: float) -> Array:
    y = x / np.sqrt((x**2).mean(tuple(range(-len(shape), 0)), keepdims=True) + eps)
    return y * weight[0] if weight else y


add(
    "rms_norm",
    rms_norm,
    rms_reference,
    rms_case,
    rows=("LayerNorm", "LayerNormVjp"),
    scale=8,
    empty=False,
)


def cross_entropy_case(s: Source) -> Case:
    classes, rest = s.integer(2, 5), s.shape(0, 2, least=1)
    shape = (rest[0], classes, *rest[1:]) if rest else (classes,)
    reduction, weighted = s.choice(["mean", "sum", "none"]), s.flag()
    # The class that is left out; a mean over nothing would be 0 / 0.
    targets = Integers(0, classes - (reduction == "mean"))
    args = (Arg(shape), Arg(rest, targets), *[Arg((classes,), Real(0.5, 2))] * weighted)
    kwargs = {"reduction": reduction, "label_smoothing": s.choice([0.0, 0.1])}
    return Case(args, {**kwargs, "ignore_index": classes})


def cross_entropy(x: wg.Tensor, t: wg.Tensor, *weight: wg.Tensor, **kw: Any) -> wg.Tensor:
    return wg.nn.functional.cross_entropy(x, t, weight=weight[0].detach() if weight else None, **kw)


def cross_entropy_reference(
    x: Array, t: Array, *weight: Array, reduction: str, label_smoothing: float, ignore_index: int
) -> Any:
    axis = 0 if x.ndim == 1 else 1
    log_p = np.moveaxis(special.log_softmax(x, axis), axis, -1)
    w = weight[0] if weight else np.ones(x.shape[axis])
    counts = t != ignore_index
    safe = np.where(counts, t, 0)
    hard = -np.take_along_axis(log_p, safe[..., None], -1)[..., 0] * w[safe]
    spread = -(log_p * w).sum(-1) / x.shape[axis]
    loss = np.where(counts, (1 - label_smoothing) * hard + label_smoothing * spread, 0)
    if reduction == "mean":
        with np.errstate(invalid="ignore"):
            return np.asarray(loss.sum() / (w[safe] * counts).sum())
    return loss.sum() if reduction == "sum" else loss


add(
    "cross_entropy",
    cross_entropy,
    cross_entropy_reference,
    cross_entropy_case,
    rows=("CrossEntropy", "CrossEntropyVjp"),
    scale=16,
    empty=False,
    extra={"constant": (2,)},
)


def nll_case(s: Source) -> Case:
    rows, classes = s.integer(1, 4), s.integer(2, 4)
    return Case(
        (Arg((rows, classes)), Arg((rows,), Integers(0, classes - 1))),
        {"reduction": s.choice(["mean", "sum", "none"])},
    )


def reduced(x: Array, how: str) -> Any:
    return {"mean": np.mean, "sum": np.sum, "none": np.asarray}[how](x)


def loss_case(second: Domain) -> Callable[[Source], Case]:
    def case(s: Source) -> Case:
        shape = s.shape(least=1)
        return Case((Arg(shape), Arg(shape, second)), {"reduction": s.choice(["mean", "sum", "none"])})

    return case


add(
    "nll_loss",
    lambda x, t, reduction: wg.nn.functional.nll_loss(x, t, reduction=reduction),
    lambda x, t, reduction: reduced(-np.take_along_axis(x, t[:, None], 1)[:, 0], reduction),
    nll_case,
    rows=("Gather",),
    scale=4,
    empty=False,
)
add(
    "mse_loss",
    lambda x, y, reduction: wg.nn.functional.mse_loss(x, y, reduction=reduction),
    lambda x, y, reduction: reduced((x - y) ** 2, reduction),
    loss_case(ANY),
    rows=("Map",),
    scale=8,
    empty=False,
)
add(
    "binary_cross_entropy_with_logits",
    lambda x, t, reduction: wg.nn.functional.binary_cross_entropy_with_logits(x, t, reduction=reduction),
    lambda x, t, reduction: reduced(np.logaddexp(0, x) - x * t, reduction),
    loss_case(Real(0, 1)),
    rows=("Map",),
    scale=8,
    empty=False,
)
