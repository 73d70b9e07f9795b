"""What the tests of attention share: its definition, it as other operations, and derivatives of every
order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import wengert as wg
import wengert.nn.functional as F

Array = np.ndarray[Any, Any]
Derivative = Callable[..., Any]
attend = F.scaled_dot_product_attention
RNG = np.random.default_rng(5)

MASKS = {
    "rows": (1, 1, 70, 1),
    "columns": (140,),
    "heads": (3, 1, 140),
    "all": (2, 3, 70, 140),
    "one": (),
    "plane": (70, 140),
}


def numbers(*shape: int) -> Array:
    """Normal numbers."""
    return RNG.standard_normal(shape)


def tensors(*arrays: Array, grad: bool = False, dtype: wg.dtype = wg.float64) -> list[wg.Tensor]:
    """The arrays as tensors of `dtype`."""
    return [wg.tensor(x, dtype=dtype, requires_grad=grad) for x in arrays]


def reference(
    q: Array, k: Array, v: Array, mask: Array | None = None, causal: bool = False, scale: float | None = None
) -> Array:
    """Attention by definition in float64; a row that sees nothing is 0."""
    scores = q @ k.swapaxes(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    top = scores.max(-1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total == 0, 1.0, total) @ v


def composed(
    q: wg.Tensor,
    k: wg.Tensor,
    v: wg.Tensor,
    mask: wg.Tensor | None = None,
    causal: bool = False,
    keep: wg.Tensor | None = None,
) -> wg.Tensor:
    """Attention by other operations, for derivatives."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if causal:
        take = wg.ones(scores.shape[-2], scores.shape[-1]).tril() > 0
        scores = wg.where(take, scores, wg.full((), -1e30, dtype=scores.dtype))
    if mask is not None:
        scores = scores + mask
    weights = scores.softmax(-1)
    return (weights if keep is None else weights * keep) @ v


# ---- derivatives ---------------------------------------------------------------------------------


def second(f: Derivative, *x: wg.Tensor) -> list[wg.Tensor]:
    """Gradients of a function of all first gradients."""

    def penalty(*x: wg.Tensor) -> wg.Tensor:
        firsts = wg.grad(lambda *x: (f(*x) ** 2).sum(), argnums=tuple(range(len(x))))(*x)
        return sum((g * g * (i + 1)).sum() for i, g in enumerate(firsts))

    return list(wg.grad(penalty, argnums=tuple(range(len(x))))(*x))


def first(f: Derivative, *x: wg.Tensor) -> list[wg.Tensor]:
    """Gradients."""
    return list(wg.grad(lambda *x: (f(*x) ** 2).sum(), argnums=tuple(range(len(x))))(*x))


def forward(f: Derivative, *x: wg.Tensor) -> list[wg.Tensor]:
    """A tangent."""
    return [wg.jvp(f, x, tuple((y * 3).sin() for y in x))[1]]


def mixed(f: Derivative, *x: wg.Tensor) -> list[wg.Tensor]:
    """Tangents of gradients: products with the Hessian."""
    g = wg.grad(lambda *x: (f(*x) ** 2).sum(), argnums=tuple(range(len(x))))
    return list(wg.jvp(g, x, tuple((y * 3).sin() for y in x))[1])


def back_of_forward(f: Derivative, *x: wg.Tensor) -> list[wg.Tensor]:
    """Gradients of a tangent, also with respect to the direction."""
    t = tuple((y * 3).sin() for y in x)
    n = len(x)

    def total(*xt: wg.Tensor) -> wg.Tensor:
        return (wg.jvp(f, xt[:n], xt[n:])[1] ** 2).sum()

    return list(wg.grad(total, argnums=tuple(range(2 * n)))(*x, *t))


def forward_twice(f: Derivative, *x: wg.Tensor) -> list[wg.Tensor]:
    """A second derivative along a direction."""
    t = tuple((y * 3).sin() for y in x)
    return [wg.jvp(lambda *x: wg.jvp(f, x, t)[1], x, t)[1]]


def third(f: Derivative, *x: wg.Tensor) -> list[wg.Tensor]:
    """A tangent of second derivatives."""
    return list(wg.jvp(lambda *x: tuple(second(f, *x)), x, tuple((y * 3).sin() for y in x))[1])


ORDERS = [first, forward, second, mixed, back_of_forward, forward_twice, third]
