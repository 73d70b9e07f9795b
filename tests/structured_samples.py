"""Records of operations with structure: products, views, joins, indexing, normalisation, losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import wengert as wg
from sample import ANY, Table
from scipy import special
from support import Arg, Array, Case, Domain, Grid, Integers, Real, Source, Truth

STRUCTURED = Table()
add = STRUCTURED.record

# ---- matrix products ---------------------------------------------------------------------------------------


def matmul_case(s: Source) -> Case:
    b, c, m, k, n = (s.integer(1, s.most) for _ in range(5))
    shapes = [
        ((m, k), (k, n)),
        ((k,), (k,)),
        ((k,), (k, n)),
        ((m, k), (k,)),
        ((b, m, k), (k, n)),
        ((b, m, k), (b, k, n)),
        ((m, k), (b, k, n)),
        ((c, 1, m, k), (b, k, n)),
        ((b, m, k), (k,)),
    ]
    x, y = s.choice(shapes)
    return Case((Arg(x), Arg(y)))


add("matmul", lambda x, y: x @ y, np.matmul, matmul_case, rows=("Matmul",), scale=8, empty=False)

# ---- views and joins ---------------------------------------------------------------------------------------


def reshape_case(s: Source) -> Case:
    shape = s.shape(0, 3)
    flat = [d for d in shape if d != 1]
    targets = [tuple(reversed(shape)), (*shape, 1), (1, *flat)]
    if 0 not in shape:
        targets += [(-1,), (*shape[:1], -1) if shape else (1, -1)]
    return Case((Arg(shape),), {"shape": s.choice(targets)})


def permutation(s: Source, rank: int) -> tuple[int, ...]:
    rest, order = list(range(rank)), []
    while rest:
        order.append(rest.pop(s.integer(0, len(rest) - 1)))
    return tuple(i - rank if s.flag() else i for i in order)


def permute_case(s: Source) -> Case:
    shape = s.shape(0, 4)
    return Case((Arg(shape),), {"dims": permutation(s, len(shape))})


def transpose_case(s: Source) -> Case:
    shape = s.shape(1, 3)
    return Case((Arg(shape),), {"a": s.axis(len(shape)), "b": s.axis(len(shape))})


def expand_case(s: Source) -> Case:
    target = s.shape(0, 3)
    shape = tuple(1 if s.flag() else d for d in target)[s.integer(0, len(target)) :]
    return Case((Arg(shape),), {"shape": target})


def squeeze_case(s: Source) -> Case:
    shape = tuple(1 if s.flag() else d for d in s.shape(1, 4))
    return Case((Arg(shape),), {"dim": s.choice([None, s.axis(len(shape))])})


def squeeze_reference(x: Array, dim: int | None) -> Array:
    return x.squeeze() if dim is None else (x.squeeze(dim) if x.shape[dim] == 1 else x)


def unsqueeze_case(s: Source) -> Case:
    shape = s.shape()
    return Case((Arg(shape),), {"dim": s.integer(-len(shape) - 1, len(shape))})


def flatten_case(s: Source) -> Case:
    shape = s.shape(1, 4)
    start = s.integer(0, len(shape) - 1)
    return Case((Arg(shape),), {"start": start, "end": s.choice([-1, s.integer(start, len(shape) - 1)])})


def flatten_reference(x: Array, start: int, end: int) -> Array:
    end %= x.ndim
    return x.reshape(*x.shape[:start], int(np.prod(x.shape[start : end + 1])), *x.shape[end + 1 :])


def flip_case(s: Source) -> Case:
    shape = s.shape(1, 3)
    return Case((Arg(shape),), {"dims": tuple(i for i in range(len(shape)) if s.flag())})


def pad_case(s: Source) -> Case:
    shape = s.shape(1, 3)
    count = s.integer(1, len(shape))
    return Case(
        (Arg(shape),), {"pad": [s.integer(0, 2) for _ in range(2 * count)], "value": s.choice([0.0, 1.5])}
    )


def pad_reference(x: Array, pad: list[int], value: float) -> Array:
    last = [(pad[2 * i], pad[2 * i + 1]) for i in range(len(pad) // 2)]
    return np.pad(x, [(0, 0)] * (x.ndim - len(last)) + last[::-1], constant_values=value)


def triangle_case(s: Source) -> Case:
    return Case((Arg((*s.shape(0, 1), *s.shape(2, 2))),), {"diagonal": s.integer(-2, 2)})


add(
    "reshape",
    lambda x, shape: x.reshape(shape),
    lambda x, shape: x.reshape(shape),
    reshape_case,
    rows=("Reshape",),
)
add(
    "permute",
    lambda x, dims: x.permute(*dims),
    lambda x, dims: x.transpose(dims),
    permute_case,
    rows=("Permute",),
)
add(
    "transpose",
    lambda x, a, b: x.transpose(a, b),
    lambda x, a, b: x.swapaxes(a, b),
    transpose_case,
    rows=("Permute",),
)
add(
    "expand",
    lambda x, shape: x.expand(*shape),
    lambda x, shape: np.broadcast_to(x, shape),
    expand_case,
    rows=("Expand",),
)
add(
    "squeeze",
    lambda x, dim: x.squeeze() if dim is None else x.squeeze(dim),
    squeeze_reference,
    squeeze_case,
    rows=("Reshape",),
)
add(
    "unsqueeze",
    lambda x, dim: x.unsqueeze(dim),
    lambda x, dim: np.expand_dims(x, dim),
    unsqueeze_case,
    rows=("Reshape",),
)
add(
    "flatten", lambda x, start, end: x.flatten(start, end), flatten_reference, flatten_case, rows=("Reshape",)
)
add("flip", lambda x, dims: x.flip(dims), lambda x, dims: np.flip(x, dims), flip_case, rows=("Slice",))
add(
    "pad",
    lambda x, pad, value: wg.nn.functional.pad(x, pad, value=value),
    pad_reference,
    pad_case,
    rows=("Unslice",),
)
add(
    "tril",
    lambda x, diagonal: x.tril(diagonal),
    lambda x, diagonal: np.tril(x, diagonal),
    triangle_case,
    rows=("Triangle",),
)
add(
    "triu",
    lambda x, diagonal: x.triu(diagonal),
    lambda x, diagonal: np.triu(x, diagonal),
    triangle_case,
    rows=("Triangle",),
)


def cat_case(s: Source) -> Case:
    shape = s.shape(1, 3)
    axis = s.axis(len(shape))
    parts = []
    for _ in range(s.integer(1, 4)):
        part = list(shape)
        part[axis] = s.integer(0, 3)
        parts.append(Arg(tuple(part)))
    return Case(tuple(parts), {"dim": axis})


def stack_case(s: Source) -> Case:
    shape = s.shape(0, 2)
    return Case((Arg(shape),) * s.integer(1, 4), {"dim": s.integer(-len(shape) - 1, len(shape))})


def split_case(s: Source) -> Case:
    shape = s.shape(1, 3)
    axis = s.axis(len(shape))
    first = s.integer(0, shape[axis])
    return Case((Arg(shape),), {"sections": [first, shape[axis] - first], "dim": axis})


add(
    "cat", lambda *x, dim: wg.cat(x, dim=dim), lambda *x, dim: np.concatenate(x, dim), cat_case, rows=("Cat",)
)
add(
    "stack", lambda *x, dim: wg.stack(x, dim=dim), lambda *x, dim: np.stack(x, dim), stack_case, rows=("Cat",)
)
add(
    "split",
    lambda x, sections, dim: tuple(x.split(sections, dim)),
    lambda x, sections, dim: tuple(np.split(x, [sections[0]], dim)),
    split_case,
    rows=("Slice",),
)

# ---- indexing ----------------------------------------------------------------------------------------------


def basic_index(s: Source, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Integers, slices with any step, `None` and `...`."""
    index: list[Any] = []
    for d in shape[: s.integer(0, len(shape))]:
        kind = s.integer(0, 3)
        if kind == 0 and d > 0:
            index.append(s.integer(-d, d - 1))
        elif kind == 1:
            index.append(slice(s.choice([None, s.integer(-d - 1, d + 1)]), None, s.choice([1, 2, -1, -2])))
        elif kind == 2:
            index.append(slice(s.integer(-d - 1, d + 1), s.integer(-d - 1, d + 1)))
        else:
            index.append(slice(None))
    for extra in (None, Ellipsis):
        if s.integer(0, 2) == 0:
            index.insert(s.integer(0, len(index)) if extra is None else len(index), extra)
    return tuple(index)


def getitem_case(s: Source) -> Case:
    shape = s.shape(0, 3)
    return Case((Arg(shape),), {"index": basic_index(s, shape)})


def advanced_case(s: Source) -> Case:
    shape = s.shape(2, 3, least=1)
    count = s.shape(0, 2, least=1)
    i, j = (Arg(count, Integers(-d, d - 1)) for d in (shape[0], shape[-1]))
    kind = s.choice(["first", "last", "both", "outer"])
    chosen = {
        "first": (i,),
        "last": (j,),
        "both": (i, Arg(count, Integers(-shape[1], shape[1] - 1))),
        "outer": (i, j),
    }
    return Case((Arg(shape), *chosen[kind]), {"kind": kind})


def advanced(x: Any, *index: Any, kind: str) -> Any:
    """NumPy's advanced indexing."""
    if kind == "first":
        return x[index[0]]
    if kind == "last":
        return x[..., index[0]]
    if kind == "both":
        return x[index[0], index[1]]
    return x[index[0], ..., index[1]]


def mask_case(s: Source) -> Case:
    shape = s.shape(1, 3)
    return Case((Arg(shape), Arg(shape[: s.integer(1, len(shape))], Truth())))


def index_select_case(s: Source) -> Case:
    shape = s.shape(1, 3, least=1)
    axis = s.axis(len(shape))
    return Case(
        (Arg(shape), Arg((s.integer(1, 5),), Integers(0, shape[axis] - 1, s.choice(["int64", "int32"])))),
        {"dim": axis},
    )


def gather_shapes(s: Source) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    shape = s.shape(1, 3, least=1)
    axis = s.axis(len(shape))
    index = [s.integer(1, d) for d in shape]
    index[axis] = s.integer(1, 4)
    return shape, tuple(index), axis


def gather_case(s: Source) -> Case:
    shape, index, axis = gather_shapes(s)
    return Case((Arg(shape), Arg(index, Integers(0, shape[axis] - 1))), {"dim": axis})


def gather_reference(x: Array, index: Array, dim: int) -> Array:
    kept = tuple(slice(None) if i == dim % x.ndim else slice(n) for i, n in enumerate(index.shape))
    return np.take_along_axis(x[kept], index, dim)


def scatter_case(s: Source) -> Case:
    shape, index, axis = gather_shapes(s)
    source = tuple(d + s.integer(0, 1) for d in index)
    return Case((Arg(shape), Arg(index, Integers(0, shape[axis] - 1)), Arg(source)), {"dim": axis})


def scatter_reference(x: Array, index: Array, source: Array, dim: int) -> Array:
    out = np.array(x)
    for at in np.ndindex(index.shape):
        to = list(at)
        to[dim] = index[at]
        out[tuple(to)] += source[at]
    return out


def embedding_case(s: Source) -> Case:
    rows, width = s.integer(1, 5), s.integer(1, 4)
    return Case((Arg(s.shape(0, 2), Integers(0, rows - 1)), Arg((rows, width))))


add("getitem", lambda x, index: x[index], lambda x, index: x[index], getitem_case, rows=("Slice",))
add("getitem_index", advanced, advanced, advanced_case, rows=("Take", "TakeAdd"), empty=False)
add(
    "getitem_mask",
    lambda x, mask: x[mask],
    lambda x, mask: x[mask],
    mask_case,
    rows=("Take", "TakeAdd"),
    vmap=False,
)
add(
    "index_select",
    lambda x, index, dim: x.index_select(dim, index),
    lambda x, index, dim: np.take(x, index, dim),
    index_select_case,
    rows=("Take", "TakeAdd"),
    empty=False,
)
add(
    "gather",
    lambda x, index, dim: x.gather(dim, index),
    gather_reference,
    gather_case,
    rows=("Gather", "ScatterAdd"),
    empty=False,
)
add(
    "scatter_add",
    lambda x, i, y, dim: x.scatter_add(dim, i, y),
    scatter_reference,
    scatter_case,
    rows=("ScatterAdd",),
    empty=False,
    scale=4,
)
add(
    "embedding",
    lambda i, w: wg.nn.functional.embedding(i, w),
    lambda i, w: w[i],
    embedding_case,
    rows=("Take", "TakeAdd"),
    empty=False,
)

# ---- normalisation and losses ------------------------------------------------------------------------------


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
