"""One record per public operation: how to call it, what NumPy says it is, and where to draw its inputs from.

Everything that must hold for every operation (values, derivatives, batching, layouts, dtypes, devices,
threads) is tested by walks over `SAMPLES`; `test_ops.py` fails when the compiled list of operations has an
entry without a record. A record's `rows` names the table rows and list entries it stands for. Operations with
structure are in `view_samples.py`, `index_samples.py`, `sort_samples.py` and `loss_samples.py`, those made of
others in `composite_samples.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import wengert as wg
from scipy import special
from support import Arg, Array, Case, Domain, Grid, Integers, Real, Source, Truth

from samples.composed_samples import COMPOSED
from samples.composite_samples import COMPOSITE
from samples.conv_samples import CONVOLUTIONS
from samples.fft_samples import FOURIER
from samples.index_samples import INDEXING
from samples.layer_samples import SHAPED
from samples.linalg_samples import LINALG
from samples.loss_samples import LOSSES
from samples.namespace_samples import NAMESPACES
from samples.nn_samples import LAYERS
from samples.placing_samples import PLACING
from samples.sample import ANY, SPECIAL, Table
from samples.scan_samples import SCANS
from samples.sort_samples import SORTING
from samples.special_samples import SPECIAL_FUNCTIONS
from samples.view_samples import VIEWS

POSITIVE = Real(0.3, 4.0)
NONZERO = Real(-3.0, 3.0, avoid=(0.0,), gap=0.3)


SAMPLES = Table()
add = SAMPLES.record

# ---- elementwise: one operand --------------------------------------------------------------------


unary, binary = SAMPLES.unary, SAMPLES.binary


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
    return Case(
        (Arg(s.shape(), ANY),), {"beta": s.choice([1.0, 2.0, 0.5]), "threshold": s.choice([20.0, 30.0])}
    )


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

# ---- elementwise: two operands -------------------------------------------------------------------

binary("add", np.add, integers=True)
binary("sub", np.subtract, integers=True)
binary("mul", np.multiply, integers=True)
binary("div", np.divide, ANY, NONZERO)
binary("pow", np.power, Real(0.3, 2.5), Real(-2, 3), special=(0.0, 1.0, 2.0, 0.5, 3.0), scale=4)
binary(
    "maximum",
    np.maximum,
    Grid(),
    Grid(offset=0.1),
    integers=True,
    special=(0.0, 1.0, -2.5, math.inf, -math.inf, math.nan),
)
binary(
    "minimum",
    np.minimum,
    Grid(),
    Grid(offset=0.1),
    integers=True,
    special=(0.0, 1.0, -2.5, math.inf, -math.inf, math.nan),
)
DIVISION = (1.0, -2.5, 2.0, 0.5, 1e4, -1e-3, math.inf, -math.inf, math.nan)
tenths, quarters = Grid(offset=0.1), Grid(step=0.5, offset=0.25)
binary("floor_divide", np.floor_divide, tenths, quarters, special=DIVISION)
binary("remainder", np.remainder, tenths, quarters, special=DIVISION, scale=8)
binary("fmod", np.fmod, tenths, quarters, special=DIVISION, scale=8)

EXTREMES = (0.0, 1.0, -2.5, math.inf, -math.inf, math.nan)
binary("fmax", np.fmax, Grid(), Grid(offset=0.1), special=EXTREMES)
binary("fmin", np.fmin, Grid(), Grid(offset=0.1), special=EXTREMES)
binary("logaddexp", np.logaddexp, special=(0.0, 1.0, -90.0, math.inf, -math.inf, math.nan), scale=4)
binary("hypot", np.hypot, Real(0.3, 3), Real(-3, -0.3), special=(0.0, 1.0, -2.5, math.inf), scale=4)
binary("copysign", np.copysign, NONZERO, NONZERO, special=(0.0, -0.0, 1.0, -2.5, math.inf, -math.inf))
binary("heaviside", np.heaviside, NONZERO, ANY, special=(0.0, 1.0, -2.5, math.inf))


def compare(name: str, reference: Callable[..., Any]) -> None:
    """A comparison; ties occur."""

    def case(s: Source) -> Case:
        a, b = s.broadcast(2)
        return Case((Arg(a, Grid(steps=2)), Arg(b, Grid(steps=2))))

    more = {"rows": ("Compare",), "special": (0.0, -0.0, 1.0, math.inf, math.nan), "integers": True}
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

    add(name, lambda x, y: getattr(x, name)(y), reference, case, rows=("Logical",))


logical("logical_and", np.logical_and)
logical("logical_or", np.logical_or)
logical("logical_xor", np.logical_xor)
add(
    "logical_not",
    lambda x: x.logical_not(),
    np.logical_not,
    lambda s: Case((Arg(s.shape(), Truth()),)),
    rows=("Logical",),
)


def where_case(s: Source) -> Case:
    a, b, c = s.broadcast(3)
    return Case((Arg(a, Truth()), Arg(b), Arg(c)))


add("where", wg.where, np.where, where_case, rows=("Select",))


def masked_fill_case(s: Source) -> Case:
    shape = s.shape()
    return Case(
        (Arg(shape), Arg(shape[s.integer(0, len(shape)) :], Truth())),
        {"value": s.choice([0.0, -1.5])},
    )


add(
    "masked_fill",
    lambda x, mask, value: x.masked_fill(mask, value),
    lambda x, mask, value: np.where(mask, value, x),
    masked_fill_case,
    rows=("Select",),
)
add("clone", lambda x: x.clone(), np.copy, lambda s: Case((Arg(s.shape()),)), rows=("Contiguous",))
add("cast", lambda x: x.to(wg.float64), np.copy, lambda s: Case((Arg(s.shape()),)), rows=("Cast",), gpu=False)
add(
    "double",
    lambda x: x.double().float().double(),
    lambda x: np.float64(np.float32(x)),
    lambda s: Case((Arg(s.shape()),)),
    rows=("Cast",),
    order=0,
    gpu=False,
)

# ---- reductions ----------------------------------------------------------------------------------


def reduction(
    name: str,
    reference: Callable[..., Any],
    domain: Domain = ANY,
    *,
    fn: Callable[..., Any] | None = None,
    least: int | None = None,
    **more: Any,
) -> None:
    """A reduction over one axis, several or all."""

    def case(s: Source) -> Case:
        shape = s.shape(least=least)
        return Case((Arg(shape, domain),), {"dim": s.axes(len(shape)), "keepdim": s.flag()})

    def call(x: wg.Tensor, dim: Any, keepdim: bool) -> Any:
        return getattr(x, name)(dim=dim, keepdim=keepdim)

    def expected(x: Array, dim: Any, keepdim: bool) -> Any:
        return reference(x, axis=dim, keepdims=keepdim)

    add(name, fn or call, expected, case, **{"scale": 8, **more})


reduction("sum", np.sum, rows=("Sum", "Spread"), integers=True)
reduction("mean", np.mean, rows=("Mean", "Spread"), least=1)
reduction("prod", np.prod, NONZERO, rows=("Prod",))
reduction("amax", np.max, Grid(distinct=True), rows=("Extremum",), least=1)
reduction("amin", np.min, Grid(distinct=True), rows=("Extremum",), least=1)
reduction("logsumexp", lambda x, **kw: np.log(np.sum(np.exp(x), **kw)), rows=("Sum", "Extremum"), least=1)
reduction("any", np.any, Truth(), rows=("Extremum", "CountNonzero"))
reduction("all", np.all, Truth(), rows=("Extremum", "CountNonzero"))


def deviation(name: str, reference: Callable[..., Any]) -> None:
    """Variance or standard deviation, with its correction."""

    def case(s: Source) -> Case:
        shape = s.shape(1, 3, least=3)
        return Case(
            (Arg(shape),), {"dim": s.axes(len(shape)), "correction": s.choice([0, 1, 2]), "keepdim": s.flag()}
        )

    def expected(x: Array, dim: Any, correction: int, keepdim: bool) -> Any:
        return reference(x, axis=dim, ddof=correction, keepdims=keepdim)

    add(name, lambda x, **kw: getattr(x, name)(**kw), expected, case, rows=("Sum",), scale=16, empty=False)


deviation("var", np.var)
deviation("std", np.std)


def along(
    name: str, fn: Callable[..., Any], reference: Callable[..., Any], domain: Domain, **more: Any
) -> None:
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
along(
    "argmax",
    lambda x, **kw: x.argmax(**kw),
    lambda x, dim, keepdim: kept(x.argmax(dim), dim, keepdim),
    Grid(steps=2),
    keepdim=True,
    rows=("ArgExtremum",),
    integers=True,
)
along(
    "argmin",
    lambda x, **kw: x.argmin(**kw),
    lambda x, dim, keepdim: kept(x.argmin(dim), dim, keepdim),
    Grid(steps=2),
    keepdim=True,
    rows=("ArgExtremum",),
    integers=True,
)
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
along(
    "cumsum",
    lambda x, dim: x.cumsum(dim),
    lambda x, dim: np.cumsum(x, dim),
    ANY,
    rows=("CumSum",),
    scale=8,
    integers=True,
)
along(
    "softmax",
    lambda x, dim: x.softmax(dim),
    lambda x, dim: special.softmax(x, dim),
    ANY,
    rows=("Softmax", "SoftmaxVjp"),
    scale=4,
)
along(
    "log_softmax",
    lambda x, dim: x.log_softmax(dim),
    lambda x, dim: special.log_softmax(x, dim),
    ANY,
    rows=("Softmax", "SoftmaxVjp"),
    scale=4,
)

SAMPLES += SPECIAL_FUNCTIONS
SAMPLES += VIEWS
SAMPLES += INDEXING
SAMPLES += LOSSES
SAMPLES += SORTING
SAMPLES += COMPOSITE
SAMPLES += SCANS
SAMPLES += COMPOSED
SAMPLES += PLACING
SAMPLES += LAYERS
SAMPLES += SHAPED
SAMPLES += CONVOLUTIONS
SAMPLES += LINALG
SAMPLES += FOURIER
SAMPLES += NAMESPACES
DIFFERENTIABLE = [sample for sample in SAMPLES if sample.order > 0]
