"""Random calls of losses, of maps with weights, and of what moves elements,
with their definitions in NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import references.layer_reference as ref
import wengert as wg
from references import conv_reference
from wengert import nn
from wengert.nn import functional as F

from samples.layer_draws import Array, Call, Source


def elementwise_losses(s: Source) -> Call:
    shape, reduction = s.shape(s.size(0, 3)), s.one("mean", "sum", "none")
    x, y = s.normal(*shape), s.normal(*shape)
    signs = s.rng.choice([1.0, -1.0, 0.0], shape)
    chance = np.clip(s.rng.random(shape), 0.05, 0.95)
    delta, eps, margin = s.one(0.5, 1.0, 2.0), s.one(1e-8, 0.1), s.one(0.3, 1.0)
    log_input, full, log_target = s.one(True, False), s.one(True, False), s.one(True, False)
    count = np.abs(y) * 2
    stirling = np.where(count > 1, count * np.log(count) - count + 0.5 * np.log(2 * np.pi * count), 0.0)
    var = np.abs(s.normal(*[s.one(n, 1) for n in shape])) + 0.2
    share = np.log(chance) if log_target else chance
    t = wg.tensor
    table: dict[str, tuple[Any, Any]] = {
        "mse": (lambda x: F.mse_loss(x, t(y), reduction), lambda x: (x - y) ** 2),
        "l1": (lambda x: F.l1_loss(x, t(y), reduction), lambda x: np.abs(x - y)),
        "huber": (lambda x: F.huber_loss(x, t(y), reduction, delta), lambda x: ref.huber(x - y, delta)),
        "smooth_l1": (
            lambda x: F.smooth_l1_loss(x, t(y), reduction, delta),
            lambda x: ref.huber(x - y, delta) / delta,
        ),
        "hinge": (
            lambda x: F.hinge_embedding_loss(x, t(signs), margin, reduction),
            lambda x: np.where(signs != -1, x, 0) + np.where(signs != 1, np.maximum(margin - x, 0), 0),
        ),
        "ranking": (
            lambda x: F.margin_ranking_loss(x, t(y), t(signs), margin, reduction),
            lambda x: np.maximum(margin - signs * (x - y), 0),
        ),
        "soft_margin": (
            lambda x: F.soft_margin_loss(x, t(signs), reduction),
            lambda x: np.log1p(np.exp(-signs * x)),
        ),
        "poisson": (
            lambda x: F.poisson_nll_loss(
                x if log_input else x * x, t(count), log_input, full, eps, reduction
            ),
            lambda x: (
                (np.exp(x) - count * x if log_input else x * x - count * np.log(x * x + eps))
                + (stirling if full else 0)
            ),
        ),
        "gaussian": (
            lambda x: F.gaussian_nll_loss(x, t(y), t(var), full, eps, reduction),
            lambda x: (
                0.5 * (np.log(np.maximum(var, eps)) + (x - y) ** 2 / np.maximum(var, eps))
                + (0.5 * np.log(2 * np.pi) if full else 0)
            ),
        ),
        "logits": (
            lambda x: F.binary_cross_entropy_with_logits(x, t(chance), reduction=reduction),
            lambda x: np.logaddexp(0, x) - chance * x,
        ),
        "kl": (
            lambda x: F.kl_div(x, t(share), reduction, log_target),
            lambda x: chance * (np.log(chance) - x),
        ),
    }
    name = s.one(*table)
    function, loss = table[name]
    text = f"{name} {shape} {reduction} {delta} {eps} {margin} {log_input} {full} {log_target} {var.shape}"
    return Call(function, lambda x: ref.reduced(np.asarray(loss(x)), reduction), [x], text)


def class_losses(s: Source) -> Call:
    shape = (s.size(), s.size(2, 4), *s.shape(s.size(0, 2), 1, 3))
    t = s.rng.integers(0, shape[1], (shape[0], *shape[2:]))
    ignored = s.one(-100, 0, 1)
    t.flat[0] = 1 if ignored == 0 else 0
    weight = s.one(None, np.abs(s.normal(shape[1])) + 0.1)
    reduction, smoothing = s.one("mean", "sum", "none"), s.one(0.0, 0.3)
    w = None if weight is None else wg.tensor(weight)
    loss = nn.CrossEntropyLoss(w, ignored, reduction, smoothing)
    return Call(
        lambda x: loss(x, wg.tensor(t)),
        lambda x: ref.cross_entropy(x, t, weight, ignored, reduction, smoothing),
        [s.normal(*shape)],
        f"cross entropy {shape} weight={weight is not None} {ignored} {reduction} {smoothing}",
    )


def margins(s: Source) -> Call:
    shape, reduction = (s.size(), s.size(2, 4)), s.one("mean", "sum", "none")
    x, y, z = s.normal(*shape), s.normal(*shape), s.normal(*shape)
    margin, p, swap, eps = s.one(0.5, 1.0), s.one(1, 2), s.one(True, False), 1e-6
    labels = s.rng.integers(0, shape[1], shape[0])
    likely = s.rng.integers(0, 2, shape).astype(float)
    weight = s.one(None, np.abs(s.normal(shape[1])) + 0.1)
    signs = s.rng.choice([1.0, -1.0, 0.0], shape[0])
    w = None if weight is None else wg.tensor(weight)
    share = 1.0 if weight is None else weight
    distance = lambda a, b: ref.pairwise_distance(a, b, float(p), eps, False)
    many = np.stack([s.rng.permutation(shape[1]) for _ in range(shape[0])])
    for row in many:
        row[s.size(1, shape[1] - 1) :] = -1

    def of_classes(x: Array) -> Array:
        gaps = np.maximum(margin - x[range(len(x)), labels][:, None] + x, 0) ** p
        gaps[range(len(x)), labels] = 0
        return (gaps * (1.0 if weight is None else weight[labels][:, None])).sum(1) / shape[1]

    def of_labels(x: Array) -> Array:
        rows = []
        for values, row in zip(x, many):
            chosen = [j for j in row if j >= 0]
            others = [i for i in range(shape[1]) if i not in chosen]
            rows.append(sum(max(0, 1 - values[j] + values[i]) for j in chosen for i in others) / shape[1])
        return np.array(rows)

    def triplets(x: Array) -> Array:
        far = distance(x, z)
        return np.maximum(distance(x, y) - (np.minimum(far, distance(y, z)) if swap else far) + margin, 0)

    def cosines(x: Array) -> Array:
        cosine = ref.cosine_similarity(x, y, -1, 1e-8)
        return np.where(signs == 1, 1 - cosine, np.where(signs == -1, np.maximum(cosine - margin, 0), 0))

    t = wg.tensor
    table: dict[str, tuple[Any, Any]] = {
        "classes": (nn.MultiMarginLoss(p, margin, w, reduction), of_classes),
        "labels": (nn.MultiLabelMarginLoss(reduction), of_labels),
        "soft labels": (
            nn.MultiLabelSoftMarginLoss(w, reduction),
            lambda x: (share * (np.logaddexp(0, x) - likely * x)).mean(1),
        ),
        "triplets": (nn.TripletMarginLoss(margin, float(p), eps, swap, reduction), triplets),
        "cosines": (nn.CosineEmbeddingLoss(margin, reduction), cosines),
    }
    name = s.one(*table)
    loss, definition = table[name]
    rest = {
        "classes": (labels,),
        "labels": (many,),
        "soft labels": (likely,),
        "triplets": (y, z),
        "cosines": (y, signs),
    }
    return Call(
        lambda x: loss(x, *map(t, rest[name])),
        lambda x: ref.reduced(np.asarray(definition(x)), reduction),
        [x],
        f"{name} {shape} {reduction} {margin} {p} {swap} weight={weight is not None}",
    )


def maps(s: Source) -> Call:
    """Affine and bilinear maps, and convolutions with each kind of padding."""
    kind = s.one("linear", "vector", "bilinear", "conv")
    lead = s.shape(s.size(0, 2))
    if kind in ("linear", "vector"):
        x, w = s.normal(*lead, 3), s.normal(3) if kind == "vector" else s.normal(s.size(), 3)
        b = s.normal(*w.shape[:-1])
        return Call(F.linear, lambda x, w, b: x @ w.T + b, [x, w, b], f"{kind} {x.shape} {w.shape}")
    if kind == "bilinear":
        inputs = [s.normal(*lead, 2), s.normal(*lead, 3), s.normal(s.size(), 2, 3)]
        inputs.append(s.normal(inputs[2].shape[0]))
        definition = lambda x, y, w, b: np.einsum("...i,oij,...j->...o", x, w, y) + b
        return Call(F.bilinear, definition, inputs, f"bilinear {lead}")
    rank, groups = s.size(1, 2), s.size(1, 2)
    channels, out = groups * s.size(1, 2), groups * s.size(1, 2)
    kernel, dilation = s.shape(rank, 1, 3), s.shape(rank, 1, 2)
    padding: Any = s.one("same", "valid", s.shape(rank, 0, 2))
    stride = (1,) * rank if padding == "same" else s.shape(rank, 1, 2)
    mode = s.one("zeros", "reflect", "replicate", "circular")
    shape = (s.size(1, 2), channels, *s.shape(rank, 5, 6))
    layer = getattr(nn, f"Conv{rank}d")(
        channels, out, kernel, stride, padding, dilation, groups, s.one(True, False), mode, dtype=wg.float64
    )
    w = layer.weight.detach().numpy()
    b = None if layer.bias is None else layer.bias.detach().numpy()

    def convolved(x: Array) -> Array:
        widths = conv_reference.pairs(padding, kernel, dilation)
        flat = [n for pair in widths[::-1] for n in pair]
        x = ref.pad(x, flat, "constant" if mode == "zeros" else mode, 0.0)
        return conv_reference.conv(x, w, b, stride=stride, padding=0, dilation=dilation, groups=groups)

    text = f"conv{rank}d {shape} {out} {kernel} {stride} {padding} {dilation} {groups} {mode} "
    text += f"bias={b is not None}"
    return Call(layer, convolved, [s.normal(*shape)], text)


def tables(s: Source) -> Call:
    """Rows of tables, and bags of them."""
    rows, width = s.size(2, 5), s.size(1, 3)
    mode, padded = s.one("rows", "sum", "mean", "max"), s.one(None, s.size(-rows, rows - 1))
    given = s.some(padding_idx=(padded,))
    skipped = None if given.get("padding_idx") is None else given["padding_idx"] % rows
    table = s.normal(rows, width)
    if mode == "rows":
        index = s.rng.integers(0, rows, s.shape(s.size(0, 2)))
        return Call(
            lambda w: F.embedding(wg.tensor(index), w, **given),
            lambda w: w[index],
            [table],
            f"embedding {index.tolist()} {given}",
            smooth=skipped is None,
        )
    index = s.rng.integers(0, rows, s.size(1, 6))
    starts = sorted([0, *s.rng.integers(0, len(index) + 1, s.size(0, 3)).tolist()])
    weights = s.normal(len(index)) if mode == "sum" and s.one(True, False) else None

    def bags(w: Array) -> Array:
        out = np.zeros((len(starts), width))
        for i, (low, high) in enumerate(zip(starts, [*starts[1:], len(index)])):
            places = [k for k in range(low, high) if index[k] != skipped]
            if places:
                picked = w[index[places]] * (1.0 if weights is None else weights[places][:, None])
                out[i] = {"sum": picked.sum(0), "mean": picked.mean(0), "max": picked.max(0)}[mode]
        return out

    last = s.one(True, False)
    offsets = wg.tensor([*starts, len(index)] if last else starts)
    more = {} if weights is None else {"per_sample_weights": wg.tensor(weights)}
    return Call(
        lambda w: F.embedding_bag(
            wg.tensor(index), w, offsets, mode=mode, include_last_offset=last, **given, **more
        ),
        bags,
        [table],
        f"bags {mode} {index.tolist()} {starts} {given} weights={weights is not None} last={last}",
    )


def moves(s: Source) -> Call:
    """What moves elements between channels and space, and windows whose number is given."""
    kind, r = s.one("shuffle", "unshuffle", "channels", "adaptive"), s.size(1, 3)
    if kind == "adaptive":
        rank = s.size(1, 3)
        sizes = tuple(s.one(None, s.size(1, 4)) for _ in range(rank))
        x = s.normal(*s.shape(s.size(1, 2), 1, 2), *s.shape(rank, 1, 5))
        return Call(
            getattr(nn, f"AdaptiveAvgPool{rank}d")(sizes),
            lambda x: conv_reference.adaptive_avg_pool(x, output_size=sizes),
            [x],
            f"adaptive {x.shape} {sizes}",
        )
    lead, c, h, w = s.shape(s.size(0, 2), 1, 2), s.size(1, 2), s.size(), s.size()
    apart = lambda x: x.reshape(*lead, c, r, r, h, w)
    axes = len(lead)
    if kind == "shuffle":

        def definition(x: Array) -> Array:
            return np.moveaxis(apart(x), (-4, -3), (-3, -1)).reshape(*lead, c, h * r, w * r)

        return Call(
            nn.PixelShuffle(r), definition, [s.normal(*lead, c * r * r, h, w)], f"shuffle {lead} {c} {r}"
        )
    if kind == "unshuffle":

        def back(x: Array) -> Array:
            out = np.zeros((*lead, c * r * r, h, w))
            for k in np.ndindex(c, r, r):
                out[(..., k[0] * r * r + k[1] * r + k[2], slice(None), slice(None))] = x[
                    (..., k[0], slice(k[1], None, r), slice(k[2], None, r))
                ]
            return out

        return Call(
            nn.PixelUnshuffle(r), back, [s.normal(*lead, c, h * r, w * r)], f"unshuffle {lead} {c} {r} {axes}"
        )
    n = s.size()
    order = [g * c + k for k in range(c) for g in range(r)]
    return Call(
        nn.ChannelShuffle(r), lambda x: x[:, order], [s.normal(n, r * c, h)], f"channels {n} {r} {c} {h}"
    )
