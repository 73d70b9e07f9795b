"""Random calls of layers: of elements, distances, padding, pooling, norms, images and sequences,
with definitions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import references.layer_reference as ref
import wengert as wg
from references import conv_reference
from wengert import nn
from wengert.nn import functional as F

from samples.layer_draws import Array, Call, Source

INPLACE = frozenset(
    "relu relu6 leaky_relu elu celu selu silu mish hardtanh hardsigmoid hardswish threshold".split()
)


def activations(s: Source) -> Call:
    name = s.one(*ref.ACTIVATIONS)
    settings: dict[str, Any] = {
        "leaky_relu": s.some(negative_slope=(0.2, -0.5, 0.0)),
        "elu": s.some(alpha=(0.5, 2.0, -1.0)),
        "celu": s.some(alpha=(0.5, 2.0)),
        "hardtanh": s.some(min_val=(-0.5, -2.0), max_val=(0.25, 1.5)),
        "threshold": {"threshold": s.one(0.1, -0.7), "value": s.one(3.0, -2.0)},
        "softplus": s.some(beta=(0.5, 3.0), threshold=(1.0, 20.0)),
        "hardshrink": s.some(lambd=(0.2, 1.0)),
        "softshrink": s.some(lambd=(0.2, 1.0)),
    }.get(name, {})
    inplace = name in INPLACE and s.one(True, False)

    def function(x: wg.Tensor) -> wg.Tensor:
        if not inplace:
            return getattr(F, name)(x, **settings)
        y = x * 1.0
        out = getattr(F, name)(y, **settings, inplace=True)
        assert out is y
        return y

    x = s.normal(*s.shape(s.size(0, 3))) * 2
    return Call(function, lambda x: ref.ACTIVATIONS[name](x, **settings), [x], f"{name} {settings} {inplace}")


def similarities(s: Source) -> Call:
    """Operands that broadcast, over any axis."""
    shape = s.shape(s.size(1, 3))
    pair = [tuple(s.one(n, 1) for n in shape) for _ in range(2)]
    shape = np.broadcast_shapes(*pair)
    pair[1] = pair[1][s.size(0, len(shape)) :] if s.one(True, False) else pair[1]
    shape = np.broadcast_shapes(*pair)
    inputs = [s.normal(*part) + 0.1 for part in pair]
    if s.one(True, False):
        dim, eps = s.size(-len(shape), len(shape) - 1), s.one(1e-8, 0.5)
        return Call(
            nn.CosineSimilarity(dim, eps),
            lambda x, y: ref.cosine_similarity(x, y, dim, eps),
            inputs,
            f"cosine {pair} dim={dim} eps={eps}",
        )
    p, eps, keep = s.one(1.0, 2.0, 3.0, math.inf, 0.5), s.one(1e-6, 0.1), s.one(True, False)
    return Call(
        nn.PairwiseDistance(p, eps, keep),
        lambda x, y: ref.pairwise_distance(x, y, p, eps, keep),
        inputs,
        f"distance {pair} p={p} eps={eps} keepdim={keep}",
    )


def paddings(s: Source) -> Call:
    axes, mode = s.size(1, 3), s.one("constant", "reflect", "replicate", "circular")
    shape = s.shape(axes + s.size(1, 2), 2, 4)
    widths = []
    for n in shape[::-1][:axes]:
        before, after = s.size(-1, n - 1), s.size(-1, n - 1)
        left = n + min(before, 0) + min(after, 0)
        most = left if mode == "circular" else n - 1
        before, after = min(before, most), min(after, most)
        widths += [before, after] if left > 0 else [0, 0]
    value = s.one(0.0, -1.5)
    keep = (
        {}
        if mode == "constant" and value == 0.0
        else {"value": value}
        if mode == "constant"
        else {"mode": mode}
    )
    return Call(
        lambda x: F.pad(x, widths, **keep),
        lambda x: ref.pad(x, widths, mode, value),
        [s.normal(*shape)],
        f"pad {shape} {widths} {keep}",
    )


def poolings(s: Source) -> Call:
    rank, kind = s.size(1, 3), s.one("max", "avg", "lp")
    kernel, ceil = s.shape(rank, 1, 4), s.one(True, False)
    stride = s.one(None, s.shape(rank, 1, 4))
    pads = tuple(s.size(0, k // 2) for k in kernel) if kind != "lp" else (0,) * rank
    dilation = s.shape(rank, 1, 3) if kind == "max" else (1,) * rank
    steps = stride or kernel
    # Long enough for one window, which with `ceil_mode` may end outside, but steps over no axis altogether.
    least = [
        max(d, d * (k - 1) + 1 - 2 * p - (step - 1 if ceil else 0))
        for d, k, p, step in zip(dilation, kernel, pads, steps)
    ]
    x = s.normal(*s.shape(s.size(1, 2)), *(n + s.size(0, 3) for n in least))
    text = f"{kind}_pool{rank}d {x.shape} {kernel} {stride} {pads} {dilation} ceil={ceil}"
    whole = {"kernel_size": kernel, "stride": steps, "padding": pads}
    if kind == "max":
        return Call(
            lambda x: getattr(F, f"max_pool{rank}d")(x, kernel, stride, pads, dilation, ceil),
            lambda x: conv_reference.max_pool(x, **whole, dilation=dilation, ceil_mode=ceil),
            [x],
            text,
        )
    if kind == "avg":
        counted = s.one(True, False)
        return Call(
            getattr(nn, f"AvgPool{rank}d")(kernel, stride, pads, ceil, counted),
            lambda x: conv_reference.avg_pool(x, **whole, ceil_mode=ceil, count_include_pad=counted),
            [x],
            f"{text} count_include_pad={counted}",
        )
    p = s.one(1.0, 2.0, 3.0)
    means = lambda x: conv_reference.avg_pool(x, **whole, ceil_mode=ceil)
    return Call(
        getattr(nn, f"LPPool{rank}d")(p, kernel, stride, ceil),
        lambda x: (means(x**p) * math.prod(kernel)) ** (1 / p),
        [np.abs(x) + 0.1],
        f"{text} p={p}",
    )


def norms(s: Source) -> Call:
    kind, eps = s.one("batch", "group", "instance", "layer", "rms"), s.one(1e-5, 0.1)
    groups = s.size(1, 3)
    channels = groups * s.size(1, 2)
    shape = (s.size(2, 4), channels, *s.shape(s.size(0 if kind == "batch" else 1, 2), 2, 3))
    x, affine, biased = s.normal(*shape), s.one(True, False), s.one(True, False)
    size = shape[-1:] if kind in ("layer", "rms") else (channels,)
    weight = s.normal(*size) if affine else None
    bias = s.normal(*size) if affine and biased and kind != "rms" else None
    tensors = [None if a is None else wg.tensor(a) for a in (weight, bias)]
    text = f"{kind}_norm {shape} groups={groups} eps={eps} affine={affine} bias={biased}"
    if kind == "batch":
        mean, var = (
            (s.normal(channels), np.abs(s.normal(channels)) + 0.1) if s.one(True, False) else (None, None)
        )
        running = [None if a is None else wg.tensor(a) for a in (mean, var)]
        return Call(
            lambda x: F.batch_norm(x, *running, *tensors, eps=eps),
            lambda x: ref.batch_norm(x, weight, bias, mean, var, eps),
            [x],
            f"{text} running={mean is not None}",
        )
    if kind in ("group", "instance"):
        parts = groups if kind == "group" else channels
        function = (
            (lambda x: F.group_norm(x, groups, *tensors, eps))
            if kind == "group"
            else (lambda x: F.instance_norm(x, None, None, *tensors, eps=eps))
        )
        return Call(function, lambda x: ref.group_norm(x, parts, weight, bias, eps), [x], text)
    scaled = lambda y: (y if weight is None else y * weight) + (0 if bias is None else bias)
    if kind == "layer":
        return Call(
            lambda x: F.layer_norm(x, size, *tensors, eps),
            lambda x: scaled((x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)),
            [x],
            text,
        )
    return Call(
        lambda x: F.rms_norm(x, size, tensors[0], eps),
        lambda x: scaled(x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)),
        [x],
        text,
    )


MODES = {1: ("nearest", "linear"), 2: ("nearest", "bilinear", "bicubic"), 3: ("nearest", "trilinear")}


def resamplings(s: Source) -> Call:
    axes = s.size(1, 3)
    mode = s.one(*MODES[axes], "nearest-exact", "area")
    shape = (*s.shape(2, 1, 2), *s.shape(axes, 1, 5))
    plain = mode in ("area", "nearest", "nearest-exact")
    aligned = s.one(True, False) and not plain
    if s.one(True, False):
        sizes = s.shape(axes, 1, 7)
        given, scales = {"size": sizes}, [None] * axes
    else:
        factors = [s.one(1.0, 1.3, 2.0, 0.7, 1.1) if n > 1 else s.one(1.0, 2.0) for n in shape[2:]]
        sizes = tuple(math.floor(n * f) for n, f in zip(shape[2:], factors))
        given, scales = {"scale_factor": tuple(factors)}, factors
        if s.one(True, False):
            given["recompute_scale_factor"], scales = True, [None] * axes
    given = given | ({"align_corners": True} if aligned else {})
    short = {"linear": "linear", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}.get(
        mode, mode
    )
    follows = mode in ("bicubic", "nearest-exact") or (mode == "nearest" and axes != 2)

    def definition(x: Array) -> Array:
        for i, (n, scale) in enumerate(zip(sizes, scales)):
            if n != shape[2 + i] or follows:
                x = ref.resample(x, 2 + i, n, short, aligned, scale)
        return x

    return Call(
        lambda x: F.interpolate(x, mode=mode, **given),
        definition,
        [s.normal(*shape)],
        f"{mode} {shape} {given}",
    )


def recurrences(s: Source) -> Call:
    kind, time, batch = s.one("RNN", "LSTM", "GRU"), s.size(1, 3), s.size(1, 3)
    width, hidden = s.size(1, 3), s.size(2, 3)
    settings: dict[str, Any] = {"num_layers": s.size(1, 2), "bias": s.one(True, False)}
    settings |= {"bidirectional": s.one(True, False), "batch_first": s.one(True, False)}
    if kind == "RNN":
        settings["nonlinearity"] = s.one("tanh", "relu")
    out = hidden
    if kind == "LSTM" and s.one(True, False):
        out = settings["proj_size"] = 1
    layer = getattr(nn, kind)(width, hidden, dtype=wg.float64, **settings)
    count = settings["num_layers"] * (2 if settings["bidirectional"] else 1)
    widths = [out, hidden] if kind == "LSTM" else [out]
    state = [s.normal(count, batch, n) for n in widths] if s.one(True, False) else None
    start = state or [np.zeros((count, batch, n)) for n in widths]
    part = lambda name: None if getattr(layer, name, None) is None else getattr(layer, name).detach().numpy()

    def function(x: wg.Tensor) -> wg.Tensor:
        given = None if state is None else tuple(map(wg.tensor, state))
        y, last = layer(x, given if given is None or kind == "LSTM" else given[0])
        last = last if kind == "LSTM" else (last,)
        return wg.cat([y.reshape(-1), *(h.reshape(-1) for h in last)])

    def definition(x: Array) -> Array:
        y, last = ref.recurrent(
            kind, x.swapaxes(0, 1) if settings["batch_first"] else x, start, part, settings
        )
        y = y.swapaxes(0, 1) if settings["batch_first"] else y
        return np.concatenate([y.reshape(-1), *(h.reshape(-1) for h in last)])

    shape = (batch, time, width) if settings["batch_first"] else (time, batch, width)
    return Call(
        function,
        definition,
        [s.normal(*shape)],
        f"{kind} {shape} {hidden} {settings} state={state is not None}",
    )
