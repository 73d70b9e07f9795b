"""Records of layers and losses that are made of others: resampling, sequences, distances, bags, margins."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import ndimage, spatial, special
from support import Arg, Array, Case, Grid, Integers, Real, Source, Truth
from wengert import nn
from wengert.nn import functional as F

from samples.sample import ANY, Table

LAYERS = Table()


def add(name: str, fn: Any, reference: Any, case: Callable[[Source], Case], **more: Any) -> None:
    """A record that covers no entry of the compiled list."""
    LAYERS.record(name, fn, reference, case, **{"rows": (), "empty": False, "scale": 16, **more})


# ---- images ----


def line(size: int, out: int, mode: str, align_corners: bool) -> Array:
    """The matrix that resamples one axis."""
    matrix = np.zeros((out, size))
    for i in range(out):
        if align_corners:
            at = i * (size - 1) / (out - 1) if out > 1 else 0.0
        else:
            at = (i + 0.5) * size / out - 0.5
        if mode == "nearest":
            matrix[i, min(int(i * size / out), size - 1)] += 1
        elif mode == "area":
            low, high = i * size // out, -((-(i + 1) * size) // out)
            matrix[i, low:high] += 1 / (high - low)
        elif mode == "bicubic":
            low = int(np.floor(at))
            for k in range(-1, 3):
                d = abs(at - low - k)
                near, far = (1.25 * d - 2.25) * d * d + 1, ((-0.75 * d + 3.75) * d - 6) * d + 3
                matrix[i, min(max(low + k, 0), size - 1)] += near if d <= 1 else far
        else:
            at = max(at, 0.0)
            low = min(int(at), size - 1)
            matrix[i, low] += 1 - (at - low)
            matrix[i, min(low + 1, size - 1)] += at - low
    return matrix


def resampled(x: Array, size: tuple[int, int], mode: str, align_corners: bool | None) -> Array:
    rows, columns = (line(n, m, mode, bool(align_corners)) for n, m in zip(x.shape[2:], size))
    return np.einsum("ai,bj,ncij->ncab", rows, columns, x)


def resampling_case(s: Source) -> Case:
    mode = s.choice(["nearest", "bilinear", "bicubic", "area"])
    aligned = s.flag() if mode[0] == "b" and mode != "area" else None
    size = (s.integer(1, 6), s.integer(1, 6))
    shape = (s.integer(1, 2), s.integer(1, 2), s.integer(1, 5), s.integer(1, 5))
    return Case((Arg(shape),), {"size": size, "mode": mode, "align_corners": aligned})


add("interpolate", lambda x, **kw: F.interpolate(x, **kw), resampled, resampling_case)


def sampled(x: Array, grid: Array, padding_mode: str, align_corners: bool) -> Array:
    height, width = x.shape[2:]
    places = []
    for k, n in ((1, height), (0, width)):
        g = grid[..., k]
        places.append((g + 1) * (n - 1) / 2 if align_corners else ((g + 1) * n - 1) / 2)
    outside = {
        "zeros": "grid-constant",
        "border": "nearest",
        "reflection": "mirror" if align_corners else "reflect",
    }
    out = np.zeros((*x.shape[:2], *grid.shape[1:3]))
    for b, c in np.ndindex(*x.shape[:2]):
        at = np.stack([p[b] for p in places])
        out[b, c] = ndimage.map_coordinates(x[b, c], at, order=1, mode=outside[padding_mode])
    return out


def sampling_case(s: Source) -> Case:
    count = s.integer(1, 2)
    # Off the lines between the centres of elements, where the slope jumps.
    grid = Grid(step=0.25, offset=0.11, steps=5)
    image, places = (count, s.integer(1, 2), 4, 4), (count, s.integer(1, 2), s.integer(1, 3), 2)
    padding = s.choice(["zeros", "border", "reflection"])
    return Case((Arg(image), Arg(places, grid)), {"padding_mode": padding, "align_corners": s.flag()})


add("grid_sample", lambda x, g, **kw: F.grid_sample(x, g, **kw), sampled, sampling_case, order=1)


def shuffled(x: Array, upscale_factor: int) -> Array:
    r = upscale_factor
    n, c, h, w = x.shape
    out = np.zeros((n, c // r**2, h * r, w * r))
    for i, j in np.ndindex(r, r):
        out[:, :, i::r, j::r] = x[:, i * r + j :: r * r]
    return out


def shuffle_case(s: Source) -> Case:
    r = s.integer(1, 2)
    shape = (s.integer(1, 2), r * r * s.integer(1, 2), s.integer(1, 3), s.integer(1, 3))
    return Case((Arg(shape),), {"upscale_factor": r})


add("pixel_shuffle", lambda x, **kw: F.pixel_shuffle(x, **kw), shuffled, shuffle_case)
add(
    "pixel_unshuffle",
    lambda x, upscale_factor: F.pixel_unshuffle(F.pixel_shuffle(x, upscale_factor), upscale_factor),
    lambda x, upscale_factor: x,
    shuffle_case,
)

# ---- sequences ----


def sigmoid(x: Array) -> Array:
    return special.expit(x)


def numpy_step(kind: str, gates: Array, inner: Array, state: list[Array]) -> list[Array]:
    """The next state from the gates of the input and of the hidden state."""
    if kind == "RNN":
        return [np.tanh(gates + inner)]
    parts = np.split(gates, {"LSTM": 4, "GRU": 3}[kind], -1)
    own = np.split(inner, len(parts), -1)
    if kind == "LSTM":
        i, f, g, o = (a + b for a, b in zip(parts, own))
        cell = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
        return [sigmoid(o) * np.tanh(cell), cell]
    r, z = sigmoid(parts[0] + own[0]), sigmoid(parts[1] + own[1])
    n = np.tanh(parts[2] + r * own[2])
    return [(1 - z) * n + z * state[0]]


def numpy_recurrent(kind: str) -> Callable[..., Any]:
    def run(x: Array, w: Array, u: Array, b: Array, c: Array) -> tuple[Array, ...]:
        hidden = u.shape[1]
        state = [np.zeros((x.shape[1], hidden)) for _ in range(2 if kind == "LSTM" else 1)]
        outputs = []
        for row in x:
            state = numpy_step(kind, row @ w.T + b, state[0] @ u.T + c, state)
            outputs.append(state[0])
        return np.stack(outputs), *(s[None] for s in state)

    return run


# Made beforehand: new layers draw numbers, which `vmap` does not allow without being told what they mean.
SIZES = list(itertools.product(("RNN", "LSTM", "GRU"), range(1, 4), range(1, 4)))
NETS = {(kind, n, m): getattr(nn, kind)(n, m) for kind, n, m in SIZES}


def recurrent(kind: str) -> Callable[..., Any]:
    def run(x: Any, *weights: Any) -> tuple[Any, ...]:
        net = NETS[kind, x.shape[2], weights[1].shape[1]]
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        out, last = nn.functional_call(net, dict(zip(names, weights)), (x,))
        return out, *(last if isinstance(last, tuple) else (last,))

    return run


def recurrent_case(gates: int) -> Callable[[Source], Case]:
    def case(s: Source) -> Case:
        time, batch, width, hidden = (s.integer(1, 3) for _ in range(4))
        rows = gates * hidden
        shapes = [(time, batch, width), (rows, width), (rows, hidden), (rows,), (rows,)]
        return Case(tuple(Arg(shape, Real(-1, 1)) for shape in shapes))

    return case


for _kind, _gates in (("RNN", 1), ("LSTM", 4), ("GRU", 3)):
    add(
        _kind.lower(),
        recurrent(_kind),
        numpy_recurrent(_kind),
        recurrent_case(_gates),
        rows=("Recurrent", "RecurrentVjp"),
        scale=32,
    )


def cell_case(kind: str) -> Callable[[Source], Case]:
    gates, states = {"LSTM": (4, 2), "GRU": (3, 1)}[kind]

    def case(s: Source) -> Case:
        width, hidden, lead = s.integer(1, 3), s.integer(1, 3), s.shape(0, 1)
        rows = gates * hidden
        shapes = [(*lead, width), *[(*lead, hidden)] * states, (rows, width), (rows, hidden)]
        shapes += [(rows,)] * 2 * s.integer(0, 1)
        return Case(tuple(Arg(shape, Real(-1, 1)) for shape in shapes))

    return case


CELLS = {
    (kind, n, m, bias): getattr(nn, kind + "Cell")(n, m, bias)
    for kind, n, m, bias in itertools.product(("LSTM", "GRU"), range(1, 4), range(1, 4), (True, False))
}
STATES = {"LSTM": 2, "GRU": 1}


def cell(kind: str) -> Callable[..., Any]:
    def run(x: Any, *rest: Any) -> Any:
        states, weights = rest[: STATES[kind]], rest[STATES[kind] :]
        net = CELLS[kind, x.shape[-1], states[0].shape[-1], len(weights) == 4]
        named = dict(zip(("weight_ih", "weight_hh", "bias_ih", "bias_hh"), weights))
        return nn.functional_call(net, named, (x, states if kind == "LSTM" else states[0]))

    return run


def numpy_cell(kind: str) -> Callable[..., Any]:
    def run(x: Array, *rest: Array) -> Any:
        states, (w, u, *biases) = list(rest[: STATES[kind]]), rest[STATES[kind] :]
        b, c = biases or (0.0, 0.0)
        after = numpy_step(kind, x @ w.T + b, states[0] @ u.T + c, states)
        return tuple(after) if kind == "LSTM" else after[0]

    return run


for _kind in STATES:
    add(
        f"{_kind.lower()}_cell",
        cell(_kind),
        numpy_cell(_kind),
        cell_case(_kind),
        rows=("Cell", "CellVjp"),
        scale=32,
    )

LABELS = 3


def alignments(length: int) -> Any:
    """Every sequence of classes, 0 the blank, and what it reads as."""
    for path in itertools.product(range(LABELS), repeat=length):
        yield path, [c for c, _ in itertools.groupby(path) if c]


def ctc(x: Array, targets: Array) -> Array:
    """The sum over all alignments, one by one."""
    losses = []
    for scores, labels in zip(np.moveaxis(special.log_softmax(x, -1), 1, 0), targets):
        likely = [
            sum(scores[t, c] for t, c in enumerate(path))
            for path, read in alignments(len(scores))
            if read == list(labels)
        ]
        losses.append(-special.logsumexp(likely))
    return np.array(losses)


def ctc_case(s: Source) -> Case:
    batch = s.integer(1, 2)
    return Case((Arg((4, batch, LABELS)), Arg((batch, 2), Integers(1, LABELS - 1))))


add(
    "ctc_loss",
    lambda x, t: F.ctc_loss(x.log_softmax(-1), t, [4] * x.shape[1], [2] * x.shape[1], reduction="none"),
    ctc,
    ctc_case,
    scale=64,
)

# ---- distances and bags ----


def pairs_case(s: Source) -> Case:
    lead, p, r, m = s.shape(0, 1, least=1), s.integer(1, 3), s.integer(1, 3), s.integer(1, 3)
    # Apart in every coordinate, for the kinks of the 1-norm.
    first, second = Grid(step=0.5), Grid(step=0.5, offset=0.2)
    return Case((Arg((*lead, p, m), first), Arg((*lead, r, m), second)), {"p": s.choice([1.0, 2.0, 3.0])})


def distances(x: Array, y: Array, p: float) -> Array:
    return (np.abs(x[..., :, None, :] - y[..., None, :, :]) ** p).sum(-1) ** (1 / p)


add("cdist", lambda x, y, p: F.cdist(x, y, p), distances, pairs_case)
add(
    "pdist",
    F.pdist,
    spatial.distance.pdist,
    lambda s: Case((Arg((s.integer(2, 4), 3), Grid(distinct=True)),)),
)


def bag_case(s: Source) -> Case:
    rows = s.integer(1, 4)
    return Case(
        (Arg((s.integer(1, 3), s.integer(1, 4)), Integers(0, rows - 1)), Arg((rows, 2), ANY)),
        {"mode": s.choice(["sum", "mean"])},
    )


add(
    "embedding_bag",
    lambda i, w, mode: F.embedding_bag(i, w, mode=mode),
    lambda i, w, mode: getattr(np, mode)(w[i], 1),
    bag_case,
)

# ---- margins ----


def classes_case(s: Source) -> Case:
    n, c = s.integer(1, 3), s.integer(1, 4)
    return Case(
        (Arg((n, c), Grid(offset=0.03, distinct=True)), Arg((n,), Integers(0, c - 1))), {"p": s.integer(1, 2)}
    )


def multi_margin(x: Array, t: Array, p: int) -> Array:
    gap = np.maximum(0, 0.7 - np.take_along_axis(x, t[:, None], 1) + x) ** p
    gap[np.arange(len(t)), t] = 0
    return (gap.sum(1) / x.shape[1]).mean()


add(
    "multi_margin_loss",
    lambda x, t, p: F.multi_margin_loss(x, t, p, 0.7),
    multi_margin,
    classes_case,
    order=1,
)


def labels_margin(x: Array, t: Array) -> Array:
    total = 0.0
    for row, labels in zip(x, t):
        ones = list(itertools.takewhile(lambda j: j >= 0, labels))
        total += sum(
            max(0.0, 1 - row[j] + row[i]) for j in ones for i in range(len(row)) if i not in ones
        ) / len(row)
    return np.asarray(total / len(x))


def labels_case(s: Source) -> Case:
    n, c = s.integer(1, 3), s.integer(1, 4)
    return Case((Arg((n, c), Grid(offset=0.03, distinct=True)), Arg((n, c), Integers(-1, c - 1))))


add("multilabel_margin_loss", F.multilabel_margin_loss, labels_margin, labels_case, order=1)
add(
    "multilabel_soft_margin_loss",
    lambda x, t: F.multilabel_soft_margin_loss(x, t.to(x.dtype)),
    lambda x, t: -np.where(t, special.log_expit(x), special.log_expit(-x)).mean(-1).mean(),
    lambda s: Case((Arg(shape := (s.integer(1, 3), s.integer(1, 3))), Arg(shape, Truth()))),
)
add(
    "linear_cross_entropy",
    lambda x, w, t: F.linear_cross_entropy(x, w, t, chunk_size=2),
    lambda x, w, t: -np.take_along_axis(special.log_softmax(x @ w.T, -1), t[:, None], 1).mean(),
    lambda s: Case((Arg((n := s.integer(1, 5), 3)), Arg((4, 3)), Arg((n,), Integers(0, 3)))),
    scale=64,
)
