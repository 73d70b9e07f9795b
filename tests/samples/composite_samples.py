"""Records of operations that are made of others: they have no rules of their own, but a reference of their
own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import wengert as wg
from scipy import special
from support import Arg, Array, Case, Domain, Integers, Real, Source
from wengert.nn import functional as F

from samples.sample import ANY, Table

COMPOSITE = Table()


def add(
    name: str,
    fn: Callable[..., Any],
    reference: Callable[..., Any],
    case: Callable[[Source], Case],
    **more: Any,
) -> None:
    """A record that covers no entry of the compiled list."""
    COMPOSITE.record(name, fn, reference, case, **{"rows": (), "scale": 8, **more})


def shaped(domain: Domain = ANY, low: int = 0, high: int = 3, **kwargs: Any) -> Callable[[Source], Case]:
    """One operand of any shape."""
    return lambda s: Case((Arg(s.shape(low, high), domain),), kwargs)


# ---- activations ---------------------------------------------------------------------------------


def activation(
    name: str, reference: Callable[[Array], Array], kinks: tuple[float, ...] = (), rows: tuple[str, ...] = ()
) -> None:
    """An activation function with its default attributes."""
    add(name, getattr(F, name), reference, shaped(Real(-4, 4, avoid=kinks)), rows=rows)


def tanhshrink(x: Array) -> Array:
    """`x - tanh(x)`, which next to 0 are the same number; there by its series."""
    near = x**3 * (1 / 3 - x**2 * (2 / 15 - x**2 * 17 / 315))
    return np.where(np.abs(x) < 0.01, near, x - np.tanh(x))


ALPHA, SCALE = 1.6732632423543772, 1.0507009873554805
activation("relu6", lambda x: np.clip(x, 0, 6), (0, 6))
activation("leaky_relu", lambda x: np.where(x > 0, x, 0.01 * x), (0,), ("leaky_relu",))
activation("elu", lambda x: np.where(x > 0, x, np.expm1(x)), (0,), ("elu",))
activation("celu", lambda x: np.where(x > 0, x, np.expm1(x)), (0,), ("celu",))
activation("selu", lambda x: SCALE * np.where(x > 0, x, ALPHA * np.expm1(x)), (0,))
activation("mish", lambda x: x * np.tanh(np.logaddexp(0, x)), (), ("mish",))
activation("softsign", lambda x: x / (1 + np.abs(x)), (0,), ("softsign",))
activation("logsigmoid", lambda x: -np.logaddexp(0, -x), (), ("logsigmoid",))
activation("tanhshrink", tanhshrink, (), ("tanhshrink",))
activation("hardtanh", lambda x: np.clip(x, -1, 1), (-1, 1))
activation("hardsigmoid", lambda x: np.clip(x / 6 + 0.5, 0, 1), (-3, 3), ("hardsigmoid",))
activation("hardswish", lambda x: x * np.clip(x / 6 + 0.5, 0, 1), (-3, 3), ("hardswish",))

# ---- shapes --------------------------------------------------------------------------------------


def roll_case(s: Source) -> Case:
    shape = s.shape(1, 3)
    return Case((Arg(shape),), {"shifts": s.integer(-5, 5), "dims": s.axis(len(shape))})


def diagonal_case(s: Source) -> Case:
    return Case((Arg((*s.shape(2, 2), *s.shape(0, 1))),), {"offset": s.integer(-1, 1)})


def pieces_case(s: Source) -> Case:
    shape = s.shape(1, 3, least=1)
    return Case((Arg(shape),), {"dim": s.axis(len(shape))})


def repeat_case(s: Source) -> Case:
    shape = s.shape(0, 2)
    return Case((Arg(shape),), {"dims": tuple(s.integer(1, 3) for _ in range(len(shape) + s.integer(0, 1)))})


def moved_case(s: Source) -> Case:
    shape = s.shape(1, 4)
    return Case((Arg(shape),), {"source": s.axis(len(shape)), "destination": s.axis(len(shape))})


def along_case(s: Source) -> Case:
    shape = s.shape(1, 3, least=1)
    axis = s.axis(len(shape))
    index = list(shape)
    index[axis] = s.integer(1, 4)
    return Case((Arg(shape), Arg(tuple(index), Integers(0, shape[axis] - 1))), {"dim": axis})


def index_add_case(s: Source) -> Case:
    rows, width, count = s.integer(1, 4), s.integer(1, 3), s.integer(1, 5)
    return Case((Arg((rows, width)), Arg((count,), Integers(0, rows - 1)), Arg((count, width))))


def index_add_reference(x: Array, index: Array, source: Array) -> Array:
    out = x.copy()
    np.add.at(out, index, source)
    return out


add(
    "roll",
    lambda x, **kw: x.roll(**kw),
    lambda x, shifts, dims: np.roll(x, shifts, dims),
    roll_case,
    empty=False,
)
add(
    "diagonal",
    lambda x, offset: x.diagonal(offset),
    lambda x, offset: np.diagonal(x, offset),
    diagonal_case,
    rows=("Diagonal",),
    empty=False,
)
add("diag", lambda x: x.diag(), np.diag, shaped(ANY, 1, 2), empty=False)
add("trace", lambda x: x.trace(), np.trace, shaped(ANY, 2, 2), empty=False)
add(
    "unbind",
    lambda x, dim: x.unbind(dim),
    lambda x, dim: list(np.moveaxis(x, dim, 0)),
    pieces_case,
    empty=False,
)
add("chunk", lambda x, dim: x.chunk(1, dim), lambda x, dim: [x], pieces_case, empty=False)
add("diff", lambda x, dim: x.diff(dim=dim), lambda x, dim: np.diff(x, axis=dim), pieces_case, empty=False)
add("repeat", lambda x, dims: x.repeat(*dims), lambda x, dims: np.tile(x, dims), repeat_case)
add("movedim", lambda x, **kw: x.movedim(**kw), lambda x, **kw: np.moveaxis(x, **kw), moved_case)
add(
    "take_along_dim",
    lambda x, i, dim: x.take_along_dim(i, dim),
    lambda x, i, dim: np.take_along_axis(x, i, dim),
    along_case,
    empty=False,
)
add("index_add", lambda x, i, y: x.index_add(0, i, y), index_add_reference, index_add_case, empty=False)

# ---- products ------------------------------------------------------------------------------------

EQUATIONS = (
    "ij,jk->ik",
    "bij,bjk->bik",
    "i,j->ij",
    "ij->ji",
    "ij->",
    "ij,ij->i",
    "ii->i",
    "ijk,jil->kl",
    "ij,j",
)


def einsum_case(s: Source) -> Case:
    equation = s.choice(EQUATIONS)
    lengths = {letter: s.integer(1, s.most) for letter in sorted(set(equation) & set("bijkl"))}
    operands = equation.split("->")[0].split(",")
    return Case(tuple(Arg(tuple(lengths[c] for c in names)) for names in operands), {"equation": equation})


def linear_case(s: Source) -> Case:
    n, k = s.integer(1, 4), s.integer(1, 4)
    operands = Arg((*s.shape(0, 2), k)), Arg((n, k)), *[Arg((n,))] * s.integer(0, 1)
    return Case(operands, {"activation": s.choice([None, "tanh", "sigmoid", "gelu", "silu"])})


def attention_case(s: Source) -> Case:
    batch, n, m, d, e = s.shape(0, 2), *(s.integer(1, 4) for _ in range(4))
    causal = s.flag()
    q, k, v = (*batch, n, d), (*batch, m, d), (*batch, m, e)
    if not causal and s.flag():
        shape = s.integer(0, 1), s.integer(0, 1)
        mask = (*batch[1:], n if shape[0] else 1, m if shape[1] else 1)
        return Case((Arg(q), Arg(k), Arg(v), Arg(mask)), {})
    groups = s.integer(1, 2) if batch else 1
    q = (*batch[:-1], groups * batch[-1], n, d) if batch else q
    return Case((Arg(q), Arg(k), Arg(v)), {"is_causal": causal, "enable_gqa": groups > 1})


def attention(
    q: Array, k: Array, v: Array, mask: Array | None = None, is_causal: bool = False, enable_gqa: bool = False
) -> Array:
    if enable_gqa:
        k, v = (x.repeat(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    score = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if is_causal:
        score = np.where(np.tri(*score.shape[-2:], dtype=bool), score, -np.inf)
    return special.softmax(score if mask is None else score + mask, -1) @ v


def linear(x: Array, w: Array, *b: Array, activation: str | None) -> Array:
    y = x @ w.T + (b[0] if b else 0)
    functions: dict[str | None, Callable[[Array], Array]] = {
        None: lambda y: y,
        "tanh": np.tanh,
        "sigmoid": special.expit,
        "gelu": lambda y: y * special.ndtr(y),
        "silu": lambda y: y * special.expit(y),
    }
    return functions[activation](y)


def einsum(*x: Any, equation: str) -> Any:
    return (wg if isinstance(x[0], wg.Tensor) else np).einsum(equation, *x)


add("einsum", einsum, einsum, einsum_case, empty=False)
add("linear", F.linear, linear, linear_case, rows=("Affine", "AffineVjp"), scale=8, empty=False)
add(
    "attention",
    F.scaled_dot_product_attention,
    attention,
    attention_case,
    rows=("Attention", "AttentionVjp", "AttentionJvp"),
    empty=False,
    scale=32,
)
add(
    "outer",
    lambda x, y: x.outer(y),
    np.outer,
    lambda s: Case((Arg(s.shape(1, 1)), Arg(s.shape(1, 1)))),
    empty=False,
)
add(
    "tensordot",
    lambda x, y: wg.tensordot(x, y, 1),
    lambda x, y: np.tensordot(x, y, 1),
    lambda s: Case((Arg((2, 3)), Arg((3, 4)))),
    empty=False,
)

# ---- norms and losses ----------------------------------------------------------------------------


def length(x: Array, dim: int = -1, keepdims: bool = False) -> Array:
    return np.sqrt((x**2).sum(dim, keepdims=keepdims))


def two_rows(s: Source) -> Case:
    shape = s.shape(2, 2, least=2)
    return Case((Arg(shape, Real(0.3, 2)), Arg(shape, Real(0.3, 2))))


add("norm", lambda x: x.norm(dim=-1), length, shaped(Real(0.3, 2), 1, 3), empty=False)
add(
    "normalize",
    lambda x: F.normalize(x, dim=-1),
    lambda x: x / length(x, -1, True),
    shaped(Real(0.3, 2), 1, 3),
    empty=False,
)
add(
    "cosine_similarity",
    F.cosine_similarity,
    lambda x, y: (x * y).sum(1) / (length(x) * length(y)),
    two_rows,
    empty=False,
)


def loss(
    name: str, per_element: Callable[[Array, Array], Array], first: Domain = ANY, second: Domain = ANY
) -> None:
    """A loss of two tensors, with its reductions."""

    def case(s: Source) -> Case:
        shape = s.shape(least=1)
        return Case((Arg(shape, first), Arg(shape, second)), {"reduction": s.choice(["mean", "sum", "none"])})

    def reference(x: Array, y: Array, reduction: str) -> Any:
        return {"mean": np.mean, "sum": np.sum, "none": np.asarray}[reduction](per_element(x, y))

    add(name, getattr(F, name), reference, case, empty=False)


def huber(x: Array, y: Array) -> Array:
    d = np.abs(x - y)
    return np.where(d < 1, 0.5 * d * d, d - 0.5)


low, high = Real(-2, -0.2), Real(0.1, 0.7)
loss("l1_loss", lambda x, y: np.abs(x - y), low, high)
loss("huber_loss", huber, Real(-0.4, 0), Real(0.1, 0.5))
loss("smooth_l1_loss", huber, Real(-3, -1.2), high)
loss("kl_div", lambda x, y: y * (np.log(y) - x), low, high)
loss(
    "binary_cross_entropy",
    lambda x, y: -y * np.log(x) - (1 - y) * np.log1p(-x),
    Real(0.1, 0.9),
    Real(0.1, 0.9),
)
loss("soft_margin_loss", lambda x, y: np.logaddexp(0, -y * x))
loss("poisson_nll_loss", lambda x, y: np.exp(x) - y * x, ANY, Real(0.5, 3))
