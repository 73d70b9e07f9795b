"""Records of pools, norms, shrinking and attention of several heads, which are made of other operations."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special
from support import Arg, Array, Case, Grid, Integers, Real, Source, Truth
from wengert.nn import functional as F

from samples.sample import Table

SHAPED = Table()
distinct = Grid(step=0.11, distinct=True)


def add(name: str, fn: Any, reference: Any, case: Callable[[Source], Case], **more: Any) -> None:
    """A record that covers no entry of the compiled list."""
    SHAPED.record(name, fn, reference, case, **{"rows": (), "empty": False, "scale": 16, **more})


# ---- windows ----


def cut(x: Array, spans: list[list[tuple[int, int]]], f: Callable[[Array], Any]) -> Array:
    """`f` of every box of the last axes, the spans of each axis being given."""
    lead = x.ndim - len(spans)
    out = np.zeros((*x.shape[:lead], *map(len, spans)))
    for place in itertools.product(*(range(len(s)) for s in spans)):
        box = tuple(slice(*spans[k][i]) for k, i in enumerate(place))
        out[(..., *place)] = f(x[(..., *box)].reshape(*x.shape[:lead], -1))
    return out


def adaptive(x: Array, output_size: tuple[int, ...]) -> Array:
    sizes = x.shape[-len(output_size) :]
    spans = [
        [(i * n // o, -(-(i + 1) * n // o)) for i in range(o)]
        for n, o in zip(sizes, output_size, strict=True)
    ]
    return cut(x, spans, lambda box: box.max(-1))


def adaptive_case(rank: int) -> Callable[[Source], Case]:
    def case(s: Source) -> Case:
        sizes = [s.integer(1, 5) for _ in range(rank)]
        front = (s.integer(1, 2),) * s.integer(0, 1)
        out = tuple(s.integer(1, n + 1) for n in sizes)
        return Case((Arg((*front, 2, *sizes), distinct),), {"output_size": out})

    return case


ADAPTIVE = {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}
for _rank, _pool in ADAPTIVE.items():
    add(_pool.__name__, _pool, adaptive, adaptive_case(_rank), order=1)


def lp(x: Array, norm_type: float, kernel_size: tuple[int, ...], stride: int) -> Array:
    sizes = x.shape[-len(kernel_size) :]
    spans = [
        [(i, i + k) for i in range(0, n - k + 1, stride)] for n, k in zip(sizes, kernel_size, strict=True)
    ]
    return cut(x, spans, lambda box: (box**norm_type).sum(-1) ** (1 / norm_type))


def lp_case(rank: int) -> Callable[[Source], Case]:
    def case(s: Source) -> Case:
        kernel = tuple(s.integer(1, 3) for _ in range(rank))
        sizes = [k + s.integer(0, 2) for k in kernel]
        p = s.choice([1.0, 2.0, 3.0, 0.5])
        return Case(
            (Arg((s.integer(1, 2), 2, *sizes), Real(0.3, 2.0)),),
            {"norm_type": p, "kernel_size": kernel, "stride": s.integer(1, 2)},
        )

    return case


for _rank, _pool in {1: F.lp_pool1d, 2: F.lp_pool2d, 3: F.lp_pool3d}.items():
    add(_pool.__name__, _pool, lp, lp_case(_rank))


def unpooled(x: Array, index: Array, kernel_size: int) -> Array:
    out = np.zeros((*x.shape[:2], x.shape[2] * kernel_size))
    for n, c in np.ndindex(*x.shape[:2]):
        for value, place in zip(x[n, c], index[n, c], strict=True):
            out[n, c, place] = value
    return out


def unpool_case(s: Source) -> Case:
    kernel, shape = s.integer(1, 3), (s.integer(1, 2), 2, s.integer(1, 4))
    return Case(
        (Arg(shape, distinct), Arg(shape, Integers(0, kernel * shape[2] - 1))), {"kernel_size": kernel}
    )


add("max_unpool1d", lambda x, i, **kw: F.max_unpool1d(x, i, **kw), unpooled, unpool_case)


def fractional(x: Array, samples: Array, kernel_size: int, output_size: int) -> Array:
    out = np.zeros((*x.shape[:2], output_size, output_size))
    for n, c in np.ndindex(*x.shape[:2]):
        starts = []
        # The first number is that of the last axis.
        for u, size in zip(samples[n, c][::-1], x.shape[2:], strict=True):
            alpha = (size - kernel_size) / (output_size - 1) if output_size > 1 else 0.0
            first = [int((i + u) * alpha) - int(u * alpha) for i in range(output_size - 1)]
            starts.append([*first, size - kernel_size])
        spans = [[(a, a + kernel_size) for a in line] for line in starts]
        out[n, c] = cut(x[n, c], spans, lambda box: box.max(-1))
    return out


def fractional_case(s: Source) -> Case:
    kernel, out = s.integer(1, 2), s.integer(1, 3)
    lead = (s.integer(1, 2), s.integer(1, 2))
    shape = (*lead, kernel + out + s.integer(0, 2), kernel + out)
    steps = Grid(step=1 / 16, offset=0.51, steps=7)
    return Case((Arg(shape, distinct), Arg((*lead, 2), steps)), {"kernel_size": kernel, "output_size": out})


add(
    "fractional_max_pool2d",
    lambda x, u, **kw: F.fractional_max_pool2d(x, _random_samples=u, **kw),
    fractional,
    fractional_case,
    order=1,
)

# ---- norms ----


def instance(x: Array, w: Array, b: Array) -> Array:
    axes = tuple(range(2, x.ndim))
    per_channel = (-1, *[1] * (x.ndim - 2))
    out = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)
    return out * w.reshape(per_channel) + b.reshape(per_channel)


def instance_case(s: Source) -> Case:
    c = s.integer(1, 2)
    shape = (s.integer(1, 2), c, *(s.integer(2, 3) for _ in range(s.integer(1, 2))))
    # Numbers apart, so that no variance is near 0, where slopes are steep.
    return Case((Arg(shape, distinct), Arg((c,)), Arg((c,))))


add("instance_norm", lambda x, w, b: F.instance_norm(x, weight=w, bias=b), instance, instance_case, scale=256)


def neighbours(x: Array, size: int, alpha: float, beta: float, k: float) -> Array:
    padded = np.pad(x**2, [(0, 0), (size // 2, (size - 1) // 2), *[(0, 0)] * (x.ndim - 2)])
    mean = sum(padded[:, i : i + x.shape[1]] for i in range(size)) / size
    return x / (k + alpha * mean) ** beta


add(
    "local_response_norm",
    lambda x, **kw: F.local_response_norm(x, **kw),
    neighbours,
    lambda s: Case(
        (Arg((s.integer(1, 2), s.integer(1, 4), s.integer(1, 3))),),
        {"size": s.integer(1, 4), "alpha": 0.3, "beta": 0.75, "k": 1.5},
    ),
)

# ---- elements ----

off_the_kinks = Grid(step=0.25, offset=0.1)
shaped = lambda s: Case((Arg(s.shape(0, 3, least=1), off_the_kinks),))
add("threshold", lambda x: F.threshold(x, 0.3, -2.0), lambda x: np.where(x > 0.3, x, -2.0), shaped)
add(
    "hardshrink",
    lambda x: F.hardshrink(x, 0.7),
    lambda x: np.where(np.abs(x) > 0.7, x, 0),
    shaped,
    rows=("hardshrink",),
)
add(
    "softshrink",
    lambda x: F.softshrink(x, 0.7),
    lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.7, 0),
    shaped,
    rows=("softshrink",),
)
add("rrelu", lambda x: F.rrelu(x, 0.1, 0.3), lambda x: np.where(x > 0, x, 0.2 * x), shaped)


def over_time(x: Array, w: Array, b: Array, pad: int) -> Array:
    padded = np.pad(x, [(pad, pad), (0, 0), (0, 0)])
    steps = padded.shape[0] - len(w) + 1
    return np.stack([np.einsum("knc,kco->no", padded[t : t + len(w)], w) + b for t in range(steps)])


add(
    "conv_tbc",
    lambda x, w, b, pad: F.conv_tbc(x, w, b, pad),
    over_time,
    lambda s: Case(
        (
            Arg((s.integer(2, 4), s.integer(1, 2), c := s.integer(1, 3))),
            Arg((s.integer(1, 2), c, o := s.integer(1, 3))),
            Arg((o,)),
        ),
        {"pad": s.integer(0, 1)},
    ),
)

# ---- attention ----

HEADS = 2


def heads(
    x: Array, y: Array, w: Array, b: Array, o: Array, blocked: Array, padding: Array, **_: Any
) -> Array:
    """Attention of `x` to `y`, `(batch, sequence, features)`, one head after another."""
    width = x.shape[-1] // HEADS
    parts = [z @ m.T + n for z, m, n in zip((x, y, y), np.split(w, 3), np.split(b, 3), strict=True)]
    out = []
    for h in range(HEADS):
        q, k, v = (part[..., h * width : (h + 1) * width] for part in parts)
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(width)
        scores = np.where(blocked | padding[:, None], -np.inf, scores)
        seen = np.isfinite(scores).any(-1, keepdims=True)
        out.append(np.where(seen, special.softmax(np.where(seen, scores, 0.0), -1) @ v, 0.0))
    return np.concatenate(out, -1) @ o.T


def attention_case(need_weights: bool) -> Callable[[Source], Case]:
    def case(s: Source) -> Case:
        batch, targets, sources, e = (
            s.integer(1, 2),
            s.integer(1, 3),
            s.integer(1, 3),
            HEADS * s.integer(1, 2),
        )
        shapes = [(batch, targets, e), (batch, sources, e), (3 * e, e), (3 * e,), (e, e)]
        masks = [Arg((targets, sources), Truth()), Arg((batch, sources), Truth())]
        return Case((*(Arg(x, Real(-1, 1)) for x in shapes), *masks), {"need_weights": need_weights})

    return case


def attended(x: Any, y: Any, w: Any, b: Any, o: Any, blocked: Any, padding: Any, need_weights: bool) -> Any:
    found = F.multi_head_attention_forward(
        x, y, y, x.shape[-1], HEADS, w, b, None, None, False, 0.0, o, None, False, padding, need_weights, blocked,
        batch_first=True,
    )  # fmt: skip
    return found[0]


for _name, _wanted in (("fused", False), ("with_weights", True)):
    add(f"multi_head_attention_{_name}", attended, heads, attention_case(_wanted), scale=64)

__all__ = ["SHAPED"]
