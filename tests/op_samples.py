"""One record per public operation: how to call it, what NumPy says it is, and where to draw its inputs from.

Everything that must hold for every operation (values, derivatives, batching, layouts, dtypes, devices, threads) is tested
by walks over `SAMPLES`; `test_ops.py` fails when the compiled list of operations has an entry without a record.
A record's `rows` names the table rows and list entries it stands for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import special
from support import Arg, Array, Case, Domain, Grid, Integers, Real, Source, Truth

import wengert as wg

ANY = Real(-3.0, 3.0)
POSITIVE = Real(0.3, 4.0)
NONZERO = Real(-3.0, 3.0, avoid=(0.0,), gap=0.3)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 30.0, -30.0, 1e4, -1e4, math.inf, -math.inf, math.nan)


@dataclass(frozen=True)
class OpSample:
    """An operation and everything needed to test it."""

    name: str
    #: Called with tensors and the keyword arguments of a case.
    fn: Callable[..., Any]
    #: The same on NumPy arrays in float64.
    reference: Callable[..., Any]
    #: Draws shapes, domains and attributes.
    case: Callable[[Source], Case]
    #: Entries of the compiled list of operations, and rows of its tables, that this record covers.
    rows: tuple[str, ...] = ()
    #: The highest derivative that is compared with differences.
    order: int = 2
    #: Values at which an elementwise function is also compared, alone or in pairs.
    special: tuple[float, ...] = ()
    #: Whether integers are computed as integers, by the same reference.
    integers: bool = False
    #: Rounding errors that pile up, relative to one operation.
    scale: float = 1.0
    #: Whether the shape of the result follows from the shapes of the inputs, which batching needs.
    vmap: bool = True
    #: Whether axes of length 0 make sense.
    empty: bool = True
    #: Whether it runs on GPUs, and with which factor on the float32 tolerance.
    gpu: bool = True
    gpu_scale: float = 1.0
    extra: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


SAMPLES: list[OpSample] = []


def add(name: str, fn: Callable[..., Any], reference: Callable[..., Any], case: Callable[[Source], Case], **more: Any) -> None:
    """Puts a record on the list."""
    SAMPLES.append(OpSample(name, fn, reference, case, **{"rows": (name,), **more}))


# ---- elementwise: one operand ----------------------------------------------------------------------------------------


def unary(name: str, reference: Callable[..., Any], domain: Domain = ANY, **more: Any) -> None:
    """A function of one variable."""
    settings = {"rows": (name, "Map", "MapVjp"), "special": SPECIAL, **more}
    add(name, lambda x: getattr(x, name)(), reference, lambda s: Case((Arg(s.shape(), domain),)), **settings)


def sigmoid(x: Array) -> Array:
    """The logistic function."""
    return special.expit(x)


def normal_cdf(x: Array) -> Array:
    """The standard normal distribution function."""
    return 0.5 * (1 + special.erf(x / math.sqrt(2)))


def gelu_tanh(x: Array) -> Array:
    """GELU's tanh approximation."""
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


unary("neg", np.negative, integers=True)
unary("abs", np.abs, NONZERO, integers=True)
unary("sign", np.sign, NONZERO, integers=True)
unary("square", np.square, integers=True)
unary("sqrt", np.sqrt, POSITIVE)
unary("rsqrt", lambda x: 1 / np.sqrt(x), POSITIVE, special=(1.0, 4.0, 1e4, math.inf, -1.0, math.nan))
unary("reciprocal", lambda x: 1 / x, NONZERO)
unary("exp", np.exp)
unary("expm1", np.expm1)
unary("log", np.log, POSITIVE)
unary("log1p", np.log1p, Real(-0.6, 4.0))
unary("sin", np.sin, special=(0.0, 1.0, -30.0, 1e4, math.inf, math.nan))
unary("cos", np.cos, special=(0.0, 1.0, -30.0, 1e4, math.inf, math.nan))
unary("tanh", np.tanh)
unary("erf", special.erf)
unary("sigmoid", sigmoid)
unary("relu", lambda x: np.maximum(x, 0), NONZERO, integers=True)
finite = tuple(v for v in SPECIAL if not math.isinf(v))
unary("silu", lambda x: x * sigmoid(x), special=finite)
unary("floor", np.floor, Real(-3, 3, avoid=(-3, -2, -1, 0, 1, 2, 3)), integers=True)
unary("ceil", np.ceil, Real(-3, 3, avoid=(-3, -2, -1, 0, 1, 2, 3)), integers=True)
unary("round", np.round, Real(-3, 3, avoid=(-2.5, -1.5, -0.5, 0.5, 1.5, 2.5)), integers=True)


def gelu_case(s: Source) -> Case:
    return Case((Arg(s.shape(), ANY),), {"approximate": s.choice(["none", "tanh"])})


add(
    "gelu",
    lambda x, approximate: wg.nn.functional.gelu(x, approximate=approximate),
    lambda x, approximate: x * normal_cdf(x) if approximate == "none" else gelu_tanh(x),
    gelu_case,
    rows=("gelu_exact", "gelu_tanh"),
)


def softplus_case(s: Source) -> Case:
    return Case((Arg(s.shape(), ANY),), {"beta": s.choice([1.0, 2.0, 0.5]), "threshold": s.choice([20.0, 30.0])})


add(
    "softplus",
    lambda x, beta, threshold: wg.nn.functional.softplus(x, beta=beta, threshold=threshold),
    lambda x, beta, threshold: np.where(beta * x > threshold, x, np.logaddexp(0, beta * x) / beta),
    softplus_case,
)


def clamp_case(s: Source) -> Case:
    bounds = s.choice([{"min": -1.0, "max": 1.5}, {"min": -1.0}, {"max": 1.5}])
    return Case((Arg(s.shape(), Real(-3, 3, avoid=(-1.0, 1.5))),), bounds)


add(
    "clamp",
    lambda x, **bounds: x.clamp(**bounds),
    lambda x, min=None, max=None: np.clip(x, min, max),
    clamp_case,
    rows=("clamp", "clamp_min", "clamp_max"),
)

# ---- elementwise: two operands ---------------------------------------------------------------------------------------


def binary(name: str, reference: Callable[..., Any], left: Domain = ANY, right: Domain = ANY, **more: Any) -> None:
    """A function of two variables, broadcast."""

    def case(s: Source) -> Case:
        a, b = s.broadcast(2)
        return Case((Arg(a, left), Arg(b, right)))

    settings = {"rows": (name, "Map", "MapVjp"), "special": SPECIAL, **more}
    add(name, lambda x, y: getattr(x, name)(y), reference, case, **settings)


binary("add", np.add, integers=True)
binary("sub", np.subtract, integers=True)
binary("mul", np.multiply, integers=True)
binary("div", np.divide, ANY, NONZERO)
binary("pow", np.power, Real(0.3, 2.5), Real(-2, 3), special=(0.0, 1.0, 2.0, 0.5, 3.0), scale=4)
binary("maximum", np.maximum, Grid(), Grid(offset=0.1), integers=True, special=(0.0, 1.0, -2.5, math.inf, -math.inf, math.nan))
binary("minimum", np.minimum, Grid(), Grid(offset=0.1), integers=True, special=(0.0, 1.0, -2.5, math.inf, -math.inf, math.nan))
binary("floor_divide", lambda x, y: np.floor(x / y), Grid(offset=0.1), Grid(step=0.5, offset=0.25), special=(1.0, -2.5, 2.0))
binary("remainder", np.remainder, Grid(offset=0.1), Grid(step=0.5, offset=0.25), special=(1.0, -2.5, 2.0, 0.5), scale=8)


def compare(name: str, reference: Callable[..., Any]) -> None:
    """A comparison; ties occur."""

    def case(s: Source) -> Case:
        a, b = s.broadcast(2)
        return Case((Arg(a, Grid(steps=2)), Arg(b, Grid(steps=2))))

    more = {"rows": (name, "Compare"), "special": (0.0, -0.0, 1.0, math.inf, math.nan), "integers": True}
    add(name, lambda x, y: getattr(x, name)(y), reference, case, **more)


compare("lt", np.less)
compare("le", np.less_equal)
compare("eq", np.equal)
compare("ne", np.not_equal)
compare("gt", np.greater)
compare("ge", np.greater_equal)


def logical(name: str, reference: Callable[..., Any]) -> None:
    """A connective of truth values; numbers are true where they are not 0."""

    def case(s: Source) -> Case:
        a, b = s.broadcast(2)
        return Case((Arg(a, Truth()), Arg(b, s.choice([Truth(), Integers(-1, 1)]))))

    add(name, lambda x, y: getattr(x, name)(y), reference, case, rows=(name, "Logical"))


logical("logical_and", np.logical_and)
logical("logical_or", np.logical_or)
logical("logical_xor", np.logical_xor)
add("logical_not", lambda x: x.logical_not(), np.logical_not, lambda s: Case((Arg(s.shape(), Truth()),)), rows=("Logical",))


def where_case(s: Source) -> Case:
    a, b, c = s.broadcast(3)
    return Case((Arg(a, Truth()), Arg(b), Arg(c)))


add("where", wg.where, np.where, where_case, rows=("Select",))


def masked_fill_case(s: Source) -> Case:
    shape = s.shape()
    return Case((Arg(shape), Arg(shape[s.integer(0, len(shape)) :], Truth())), {"value": s.choice([0.0, -1.5, math.inf])})


add("masked_fill", lambda x, mask, value: x.masked_fill(mask, value), lambda x, mask, value: np.where(mask, value, x), masked_fill_case, rows=("Select",))
add("clone", lambda x: x.clone(), np.copy, lambda s: Case((Arg(s.shape()),)), rows=("Contiguous",))
add("cast", lambda x: x.to(wg.float64), np.copy, lambda s: Case((Arg(s.shape()),)), rows=("Cast",), gpu=False)
add("double", lambda x: x.double().float().double(), lambda x: np.float64(np.float32(x)), lambda s: Case((Arg(s.shape()),)), rows=("Cast",), order=0, gpu=False)

# ---- reductions ------------------------------------------------------------------------------------------------------


def reduction(name: str, reference: Callable[..., Any], domain: Domain = ANY, *, fn: Callable[..., Any] | None = None, least: int | None = None, **more: Any) -> None:
    """A reduction over one axis, several or all."""

    def case(s: Source) -> Case:
        shape = s.shape(least=least)
        return Case((Arg(shape, domain),), {"dim": s.axes(len(shape)), "keepdim": s.flag()})

    def call(x: wg.Tensor, dim: Any, keepdim: bool) -> Any:
        return getattr(x, name)(dim=dim, keepdim=keepdim)

    def expected(x: Array, dim: Any, keepdim: bool) -> Any:
        return reference(x, axis=dim, keepdims=keepdim)

    add(name, fn or call, expected, case, **{"scale": 8, **more})


reduction("sum", np.sum, rows=("Sum", "Expand"), integers=True)
reduction("mean", np.mean, rows=("Sum",), least=1)
reduction("prod", np.prod, NONZERO, rows=("Prod",))
reduction("amax", np.max, Grid(distinct=True), rows=("Extremum",), least=1)
reduction("amin", np.min, Grid(distinct=True), rows=("Extremum",), least=1)
reduction("logsumexp", lambda x, **kw: special.logsumexp(x, **kw), rows=("Sum", "Extremum"), least=1)
reduction("any", np.any, Truth(), rows=("Sum",))
reduction("all", np.all, Truth(), rows=("Sum",))


def deviation(name: str, reference: Callable[..., Any]) -> None:
    """Variance or standard deviation, with its correction."""

    def case(s: Source) -> Case:
        shape = s.shape(1, 3, least=3)
        return Case((Arg(shape),), {"dim": s.axes(len(shape)), "correction": s.choice([0, 1, 2]), "keepdim": s.flag()})

    def expected(x: Array, dim: Any, correction: int, keepdim: bool) -> Any:
        return reference(x, axis=dim, ddof=correction, keepdims=keepdim)

    add(name, lambda x, **kw: getattr(x, name)(**kw), expected, case, rows=("Sum",), scale=16, empty=False)


deviation("var", np.var)
deviation("std", np.std)


def along(name: str, fn: Callable[..., Any], reference: Callable[..., Any], domain: Domain, **more: Any) -> None:
    """A function along one axis, without losing it or with `keepdim`."""
    keeps = more.pop("keepdim", False)

    def case(s: Source) -> Case:
        shape = s.shape(1, 3, least=1)
        kwargs = {"dim": s.axis(len(shape))}
        return Case((Arg(shape, domain),), {**kwargs, "keepdim": s.flag()} if keeps else kwargs)

    add(name, fn, reference, case, **{"empty": False, **more})


def kept(x: Array, dim: int, keepdim: bool) -> Array:
    """The reduced axis put back."""
    return np.expand_dims(x, dim) if keepdim else x


distinct = Grid(distinct=True)
along("argmax", lambda x, **kw: x.argmax(**kw), lambda x, dim, keepdim: kept(x.argmax(dim), dim, keepdim), Grid(steps=2), keepdim=True, rows=("ArgExtremum",), integers=True)
along("argmin", lambda x, **kw: x.argmin(**kw), lambda x, dim, keepdim: kept(x.argmin(dim), dim, keepdim), Grid(steps=2), keepdim=True, rows=("ArgExtremum",), integers=True)
along(
    "max",
    lambda x, **kw: tuple(x.max(**kw)),
    lambda x, dim, keepdim: (kept(x.max(dim), dim, keepdim), kept(x.argmax(dim), dim, keepdim)),
    distinct,
    keepdim=True,
    rows=("ArgExtremum", "Gather"),
)
along(
    "min",
    lambda x, **kw: tuple(x.min(**kw)),
    lambda x, dim, keepdim: (kept(x.min(dim), dim, keepdim), kept(x.argmin(dim), dim, keepdim)),
    distinct,
    keepdim=True,
    rows=("ArgExtremum", "Gather"),
)
along("cumsum", lambda x, dim: x.cumsum(dim), lambda x, dim: np.cumsum(x, dim), ANY, rows=("CumSum",), scale=8, integers=True)
along("softmax", lambda x, dim: x.softmax(dim), lambda x, dim: special.softmax(x, dim), ANY, rows=("Softmax", "SoftmaxVjp"), scale=4)
along("log_softmax", lambda x, dim: x.log_softmax(dim), lambda x, dim: special.log_softmax(x, dim), ANY, rows=("Softmax", "SoftmaxVjp"), scale=4)

# ---- matrix products -------------------------------------------------------------------------------------------------


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

# ---- views and joins -------------------------------------------------------------------------------------------------


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
    return Case((Arg(shape),), {"pad": [s.integer(0, 2) for _ in range(2 * count)], "value": s.choice([0.0, 1.5])})


def pad_reference(x: Array, pad: list[int], value: float) -> Array:
    last = [(pad[2 * i], pad[2 * i + 1]) for i in range(len(pad) // 2)]
    return np.pad(x, [(0, 0)] * (x.ndim - len(last)) + last[::-1], constant_values=value)


def triangle_case(s: Source) -> Case:
    return Case((Arg((*s.shape(0, 1), *s.shape(2, 2))),), {"diagonal": s.integer(-2, 2)})


add("reshape", lambda x, shape: x.reshape(shape), lambda x, shape: x.reshape(shape), reshape_case, rows=("Reshape",))
add("permute", lambda x, dims: x.permute(*dims), lambda x, dims: x.transpose(dims), permute_case, rows=("Permute",))
add("transpose", lambda x, a, b: x.transpose(a, b), lambda x, a, b: x.swapaxes(a, b), transpose_case, rows=("Permute",))
add("expand", lambda x, shape: x.expand(*shape), lambda x, shape: np.broadcast_to(x, shape), expand_case, rows=("Expand",))
add("squeeze", lambda x, dim: x.squeeze() if dim is None else x.squeeze(dim), squeeze_reference, squeeze_case, rows=("Reshape",))
add("unsqueeze", lambda x, dim: x.unsqueeze(dim), lambda x, dim: np.expand_dims(x, dim), unsqueeze_case, rows=("Reshape",))
add("flatten", lambda x, start, end: x.flatten(start, end), flatten_reference, flatten_case, rows=("Reshape",))
add("flip", lambda x, dims: x.flip(dims), lambda x, dims: np.flip(x, dims), flip_case, rows=("Slice",))
add("pad", lambda x, pad, value: wg.nn.functional.pad(x, pad, value=value), pad_reference, pad_case, rows=("Unslice",))
add("tril", lambda x, diagonal: x.tril(diagonal), lambda x, diagonal: np.tril(x, diagonal), triangle_case, rows=("Triangle",))
add("triu", lambda x, diagonal: x.triu(diagonal), lambda x, diagonal: np.triu(x, diagonal), triangle_case, rows=("Triangle",))


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


add("cat", lambda *x, dim: wg.cat(x, dim=dim), lambda *x, dim: np.concatenate(x, dim), cat_case, rows=("Cat",))
add("stack", lambda *x, dim: wg.stack(x, dim=dim), lambda *x, dim: np.stack(x, dim), stack_case, rows=("Cat",))
add(
    "split",
    lambda x, sections, dim: tuple(x.split(sections, dim)),
    lambda x, sections, dim: tuple(np.split(x, [sections[0]], dim)),
    split_case,
    rows=("Slice",),
)

# ---- indexing --------------------------------------------------------------------------------------------------------


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
    chosen = {"first": (i,), "last": (j,), "both": (i, Arg(count, Integers(-shape[1], shape[1] - 1))), "outer": (i, j)}
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
    return Case((Arg(shape), Arg((s.integer(1, 5),), Integers(0, shape[axis] - 1, s.choice(["int64", "int32"])))), {"dim": axis})


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
add("getitem_mask", lambda x, mask: x[mask], lambda x, mask: x[mask], mask_case, rows=("Take", "TakeAdd"), vmap=False)
add("index_select", lambda x, index, dim: x.index_select(dim, index), lambda x, index, dim: np.take(x, index, dim), index_select_case, rows=("Take", "TakeAdd"), empty=False)
add("gather", lambda x, index, dim: x.gather(dim, index), gather_reference, gather_case, rows=("Gather", "ScatterAdd"), empty=False)
add("scatter_add", lambda x, i, y, dim: x.scatter_add(dim, i, y), scatter_reference, scatter_case, rows=("ScatterAdd",), empty=False, scale=4)
add("embedding", lambda i, w: wg.nn.functional.embedding(i, w), lambda i, w: w[i], embedding_case, rows=("Take", "TakeAdd"), empty=False)

# ---- normalisation and losses ----------------------------------------------------------------------------------------


def layer_norm_case(s: Source) -> Case:
    shape = s.shape(1, 3, least=3)
    trailing = shape[len(shape) - s.integer(1, len(shape)) :]
    affine = s.choice([0, 2])
    return Case((Arg(shape), *[Arg(trailing)] * affine), {"shape": trailing, "eps": s.choice([1e-5, 1e-2])})


def layer_norm_reference(x: Array, *affine: Array, shape: tuple[int, ...], eps: float) -> Array:
    axes = tuple(range(-len(shape), 0))
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
    return y * affine[0] + affine[1] if affine else y


def layer_norm(x: wg.Tensor, *affine: wg.Tensor, shape: tuple[int, ...], eps: float) -> wg.Tensor:
    return wg.nn.functional.layer_norm(x, shape, *affine, eps=eps)


add("layer_norm", layer_norm, layer_norm_reference, layer_norm_case, rows=("LayerNorm", "LayerNormVjp"), scale=32, empty=False, gpu_scale=4)


def cross_entropy_case(s: Source) -> Case:
    classes, rest = s.integer(2, 5), s.shape(0, 2, least=1)
    shape = (rest[0], classes, *rest[1:]) if rest else (classes,)
    targets = Integers(0, classes - 1) if s.flag() else Integers(0, classes)
    weighted = s.flag()
    args = (Arg(shape), Arg(rest, targets), *[Arg((classes,), Real(0.5, 2))] * weighted)
    kwargs = {"reduction": s.choice(["mean", "sum", "none"]), "label_smoothing": s.choice([0.0, 0.1])}
    return Case(args, {**kwargs, "ignore_index": classes})


def cross_entropy(x: wg.Tensor, t: wg.Tensor, *weight: wg.Tensor, **kw: Any) -> wg.Tensor:
    return wg.nn.functional.cross_entropy(x, t, weight=weight[0].detach() if weight else None, **kw)


def cross_entropy_reference(x: Array, t: Array, *weight: Array, reduction: str, label_smoothing: float, ignore_index: int) -> Any:
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
    return Case((Arg((rows, classes)), Arg((rows,), Integers(0, classes - 1))), {"reduction": s.choice(["mean", "sum", "none"])})


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

BY_NAME = {sample.name: sample for sample in SAMPLES}
DIFFERENTIABLE = [s for s in SAMPLES if s.order > 0]
