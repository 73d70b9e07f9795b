"""Records of linear algebra: factorisations, systems of equations, functions of matrices, norms.

Inputs are small; the functions add a heavy diagonal with distinct elements, so that every matrix has its
factorisation, with vectors that are determined up to a sign. Results that have a sign to choose are compared
by what does not depend on it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import wengert as wg
from scipy import linalg as scipy_linalg
from support import Arg, Array, Case, Real, Source

from samples.sample import Table

LINALG = Table()
SMALL = Real(-0.4, 0.4)
L = wg.linalg
# Rows of the list that have kernels on GPUs; second derivatives of determinants need singular values.
ON_GPUS = {"Cholesky", "Lu", "Solve", "TriangularSolve", "Matmul", "Sum", "CumProd", "Diagonal"}


def add(
    name: str,
    fn: Callable[..., Any],
    reference: Callable[..., Any],
    case: Callable[[Source], Case],
    *rows: str,
    **more: Any,
) -> None:
    """A record of a function in float32 and float64; on a GPU where it needs no other factors than these."""
    on_gpu = bool(rows) and set(rows) <= ON_GPUS
    settings = {"gpu": on_gpu, "dtypes": ("float64", "float32"), "scale": 16, **more}
    LINALG.record(name, fn, reference, case, rows=rows, **settings)


def side(s: Source) -> int:
    return s.integer(s.least, s.most)


def square(*extra: Callable[[Source], dict[str, Any]]) -> Callable[[Source], Case]:
    """A batch of square matrices."""

    def case(s: Source) -> Case:
        n = side(s)
        return Case((Arg((*s.shape(0, 1), n, n), SMALL),), extra[0](s) if extra else {})

    return case


def rectangle(*extra: Callable[[Source], dict[str, Any]], tall: bool = False) -> Callable[[Source], Case]:
    """A batch of matrices of any shape."""

    def case(s: Source) -> Case:
        m, n = side(s), side(s)
        if tall and m < n:
            m, n = n, m
        return Case((Arg((*s.shape(0, 1), m, n), SMALL),), extra[0](s) if extra else {})

    return case


def with_right(s: Source) -> Case:
    """Square matrices and right-hand sides; their batches broadcast."""
    n, k, batch = side(s), side(s), s.shape(0, 1)
    return Case((Arg((*batch, n, n), SMALL), Arg((*(batch if s.flag() else ()), n, k))), {"left": True})


def with_left(s: Source) -> Case:
    n, k, batch = side(s), side(s), s.shape(0, 1)
    return Case((Arg((*batch, n, n), SMALL), Arg((*batch, k, n))), {"left": False})


def sides(s: Source) -> Case:
    return with_right(s) if s.flag() else with_left(s)


def weights(shape: Any) -> Array:
    """3, 6, 9, … on the diagonal of a matrix of this shape."""
    m, n = shape[-2:]
    out = np.zeros((m, n))
    out[range(min(m, n)), range(min(m, n))] = 3.0 * (1 + np.arange(min(m, n)))
    return out


def heavy(x: Any) -> Any:
    """`x` with a heavy diagonal, a tensor or an array."""
    w = weights(x.shape)
    return x + (w if isinstance(x, np.ndarray) else wg.tensor(w, dtype=x.dtype, device=x.device))


def turned(x: Any) -> Any:
    return x.swapaxes(-1, -2)


def positive(x: Any) -> Any:
    """Symmetric positive definite."""
    h = heavy(x)
    return h @ turned(h)


def symmetric(x: Any) -> Any:
    return heavy(x) + turned(x)


def each(f: Callable[[Array], Any]) -> Callable[[Array], Any]:
    """A function of one matrix, for a batch."""

    def batched(a: Array) -> Any:
        flat = a.reshape(-1, *a.shape[-2:])
        parts = [f(m) for m in flat]
        if isinstance(parts[0], tuple):
            return tuple(np.stack(c).reshape(*a.shape[:-2], *c[0].shape) for c in zip(*parts, strict=True))
        return np.stack(parts).reshape(*a.shape[:-2], *parts[0].shape)

    return batched


# ---- factorisations ------------------------------------------------------------------------------


def cholesky_reference(x: Array, upper: bool) -> Array:
    factor = np.linalg.cholesky(positive(x))
    return turned(factor) if upper else factor


flag = lambda name: lambda s: {name: s.flag()}
add(
    "cholesky",
    lambda x, upper: L.cholesky(positive(x), upper=upper),
    cholesky_reference,
    square(flag("upper")),
    "Cholesky",
)


def flipped(x: Any) -> Any:
    """The heavy elements far from the diagonal, so that rows are exchanged."""
    return np.flip(heavy(x), -2) if isinstance(x, np.ndarray) else heavy(x).flip(-2)


def lu_reference(a: Array) -> tuple[Array, Array]:
    packed, pivots = scipy_linalg.lu_factor(a)
    return packed, (pivots + 1).astype(np.int32)


add(
    "lu_factor",
    lambda x: tuple(L.lu_factor(flipped(x))),
    lambda x: each(lu_reference)(flipped(x)),
    rectangle(),
    "Lu",
    empty=False,
)
add(
    "lu",
    lambda x: tuple(L.lu(flipped(x))),
    lambda x: each(scipy_linalg.lu)(flipped(x)),
    rectangle(),
    "Lu",
    empty=False,
)
add(
    "qr",
    lambda x: tuple(L.qr(heavy(x))),
    lambda x: tuple(np.linalg.qr(heavy(x))),
    rectangle(),
    "Qr",
)


def complete(q: Any, r: Any) -> tuple[Any, Any, Any]:
    """The columns of `Q` that are determined, the space of the others, and `R`."""
    k = min(r.shape[-2:])
    rest = q[..., k:]
    return q[..., :k], rest @ turned(rest), r


add(
    "qr_complete",
    lambda x: complete(*L.qr(heavy(x), "complete")),
    lambda x: complete(*np.linalg.qr(heavy(x), "complete")),
    rectangle(),
    "Qr",
)
add(
    "eigh",
    lambda x, UPLO: (lambda w, v: (w, v * v))(*L.eigh(symmetric(x), UPLO)),
    lambda x, UPLO: (lambda w, v: (w, v * v))(*np.linalg.eigh(symmetric(x), UPLO)),
    square(lambda s: {"UPLO": s.choice("LU")}),
    "Eigh",
)
add(
    "eigvalsh",
    lambda x: L.eigvalsh(symmetric(x)),
    lambda x: np.linalg.eigvalsh(symmetric(x)),
    square(),
    "Eigh",
)

add(
    "eig",
    lambda x: (lambda w, v: (v.abs() ** 2 * w.real.unsqueeze(-2)).sum(-1))(*L.eig(heavy(x))),
    lambda x: (lambda w, v: (np.abs(v) ** 2 * w.real[..., None, :]).sum(-1))(*np.linalg.eig(heavy(x))),
    square(),
    "Eig",
)
add(
    "eigvals",
    lambda x: (L.eigvals(heavy(x)) ** 2).sum(-1).abs(),
    lambda x: np.abs((np.linalg.eigvals(heavy(x)) ** 2).sum(-1)),
    square(),
    "Eig",
)


def determined(u: Any, s: Any, vh: Any) -> tuple[Any, ...]:
    """What singular vectors say without a sign: squares, products of two, spaces that they leave."""
    k = s.shape[-1]
    left, right = u[..., k:], vh[..., k:, :]
    u, vh = u[..., :k], vh[..., :k, :]
    return s, u * u, u @ vh, left @ turned(left), turned(right) @ right


add(
    "svd",
    lambda x, full_matrices: determined(*L.svd(heavy(x), full_matrices)),
    lambda x, full_matrices: determined(*np.linalg.svd(heavy(x), full_matrices)),
    rectangle(flag("full_matrices")),
    "Svd",
)
add(
    "svdvals",
    lambda x: L.svdvals(heavy(x)),
    lambda x: np.linalg.svd(heavy(x), compute_uv=False),
    rectangle(),
    "Svd",
)


def householder_reference(a: Array, tau: Array) -> Array:
    m, n = a.shape
    q = np.eye(m)
    for i in range(n):
        v = np.concatenate([np.zeros(i), [1.0], a[i + 1 :, i]])
        q = q @ (np.eye(m) - tau[i] * np.outer(v, v))
    return q[:, :n]


def householder_case(s: Source) -> Case:
    n = side(s)
    return Case((Arg((n + s.integer(0, 2), n)), Arg((n,))))


add(
    "householder_product",
    L.householder_product,
    householder_reference,
    householder_case,
    "Matmul",
    empty=False,
)

# ---- systems of equations ------------------------------------------------------------------------


def solve_reference(a: Array, b: Array, left: bool) -> Array:
    a = heavy(a)
    return np.linalg.solve(a, b) if left else turned(np.linalg.solve(turned(a), turned(b)))


add("solve", lambda a, b, left: L.solve(heavy(a), b, left=left), solve_reference, sides, "Solve", "Lu")


def vector_case(s: Source) -> Case:
    n = side(s)
    return Case((Arg((*s.shape(0, 1), n, n), SMALL), Arg((n,))))


add(
    "solve_vector",
    lambda a, b: L.solve(heavy(a), b),
    lambda a, b: np.linalg.solve(heavy(a), b[:, None])[..., 0],
    vector_case,
    "Solve",
)


def triangle_reference(a: Array, b: Array, left: bool, upper: bool, unitriangular: bool) -> Array:
    a = heavy(a)
    t = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        t = t - weighted_diagonal(t) + np.eye(t.shape[-1])
    return np.linalg.solve(t, b) if left else turned(np.linalg.solve(turned(t), turned(b)))


def weighted_diagonal(t: Array) -> Array:
    return t * np.eye(t.shape[-1])


def triangle_case(s: Source) -> Case:
    case = sides(s)
    return Case(case.args, {**case.kwargs, "upper": s.flag(), "unitriangular": s.flag()})


add(
    "solve_triangular",
    lambda a, b, **kw: L.solve_triangular(heavy(a), b, **kw),
    triangle_reference,
    triangle_case,
    "TriangularSolve",
)
add("inv", lambda a: L.inv(heavy(a)), lambda a: np.linalg.inv(heavy(a)), square(), "Solve", "Lu")
add("pinv", lambda a: L.pinv(heavy(a)), lambda a: np.linalg.pinv(heavy(a)), rectangle(), "Pinv")


def lu_solve_case(s: Source) -> Case:
    n, k, batch = side(s), side(s), s.shape(0, 1)
    return Case((Arg((*batch, n, n), SMALL), Arg((*batch, n, k))), {"adjoint": s.flag()})


def lu_solve_reference(a: Array, b: Array, adjoint: bool) -> Array:
    a = flipped(a)
    return np.linalg.solve(turned(a) if adjoint else a, b)


add(
    "lu_solve",
    lambda a, b, adjoint: L.lu_solve(*L.lu_factor(flipped(a)), b, adjoint=adjoint),
    lu_solve_reference,
    lu_solve_case,
    "Lu",
    "TriangularSolve",
    empty=False,
)


def lstsq_case(s: Source) -> Case:
    m, n = side(s), side(s)
    return Case((Arg((m, n), SMALL), Arg((m, side(s)))))


def lstsq_reference(a: Array, b: Array) -> tuple[Array, Array, Array, Array]:
    a = heavy(a)
    x = np.linalg.pinv(a) @ b
    residuals = ((a @ x - b) ** 2).sum(-2) if a.shape[-2] > a.shape[-1] else np.zeros(0)
    return x, residuals, np.asarray(min(a.shape)), np.linalg.svd(a, compute_uv=False)


add("lstsq", lambda a, b: tuple(L.lstsq(heavy(a), b)), lstsq_reference, lstsq_case, "Pinv", empty=False)
add(
    "cholesky_solve",
    lambda a, b, upper: b.cholesky_solve(L.cholesky(positive(a), upper=upper), upper),
    lambda a, b, upper: np.linalg.solve(positive(a), b),
    lambda s: Case(with_right(s).args, {"upper": s.flag()}),
    "TriangularSolve",
)
add(
    "cholesky_inverse",
    lambda a, upper: L.cholesky(positive(a), upper=upper).cholesky_inverse(upper),
    lambda a, upper: np.linalg.inv(positive(a)),
    square(flag("upper")),
    "TriangularSolve",
)
add(
    "tensorsolve",
    lambda a, b: L.tensorsolve(heavy(a.reshape(6, 6)).reshape(2, 3, 3, 2), b),
    lambda a, b: np.linalg.tensorsolve(heavy(a.reshape(6, 6)).reshape(2, 3, 3, 2), b),
    lambda s: Case((Arg((2, 3, 3, 2), SMALL), Arg((2, 3)))),
    "Solve",
)
add(
    "tensorinv",
    lambda a: L.tensorinv(heavy(a.reshape(6, 6)).reshape(2, 3, 3, 2)),
    lambda a: np.linalg.tensorinv(heavy(a.reshape(6, 6)).reshape(2, 3, 3, 2)),
    lambda s: Case((Arg((2, 3, 3, 2), SMALL),)),
    "Solve",
)

# ---- functions of matrices -----------------------------------------------------------------------

add("det", lambda a: L.det(a), lambda a: np.asarray(np.linalg.det(a)), square(), "Det", "Cofactor")
# Second derivatives need singular values, which a GPU has not.
add(
    "det_of_heavy",
    lambda a: L.det(heavy(a)),
    lambda a: np.asarray(np.linalg.det(heavy(a))),
    square(),
    "Det",
    "Cofactor",
    gpu=True,
    order=1,
)
add(
    "slogdet",
    lambda a: tuple(L.slogdet(heavy(a).flip(-2))),
    lambda a: tuple(np.linalg.slogdet(np.flip(heavy(a), -2))),
    square(),
    "Lu",
)
add("logdet", lambda a: heavy(a).logdet(), lambda a: np.linalg.slogdet(heavy(a))[1], square(), "Lu")
add("matrix_exp", L.matrix_exp, lambda a: each(scipy_linalg.expm)(a), square(), "MatrixExp", empty=False)
add(
    "matrix_power",
    lambda a, n: L.matrix_power(heavy(a) / 3, n),
    lambda a, n: np.linalg.matrix_power(heavy(a) / 3, n),
    square(lambda s: {"n": s.choice([-3, -2, -1, 1, 2, 3, 4])}),
    "Matmul",
    "Solve",
    scale=256,
)

# ---- norms and products --------------------------------------------------------------------------

ORDERS = ["fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf]


def matrix_norm_reference(a: Array, ord: Any, keepdim: bool) -> Array:
    return np.asarray(np.linalg.norm(heavy(a), ord, (-2, -1), keepdim))


add(
    "matrix_norm",
    lambda a, **kw: L.matrix_norm(heavy(a), **kw),
    matrix_norm_reference,
    rectangle(lambda s: {"ord": s.choice(ORDERS), "keepdim": s.flag()}),
    "Svd",
    empty=False,
)
add(
    "vector_norm",
    lambda a, ord, dim: L.vector_norm(heavy(a), ord, dim) if ord != 3.5 else L.norm(heavy(a).abs(), ord, dim),
    lambda a, ord, dim: np.asarray(np.linalg.norm(np.abs(heavy(a)), ord, dim)),
    rectangle(lambda s: {"ord": s.choice([1, 2, np.inf]), "dim": s.choice([-1, -2])}),
    "Sum",
    empty=False,
)
add(
    "linalg_cond",
    lambda a, p: L.cond(heavy(a), p),
    lambda a, p: np.asarray(np.linalg.cond(heavy(a), p)),
    square(lambda s: {"p": s.choice([None, 2, -2, "fro", 1])}),
    "Svd",
    empty=False,
)
add(
    "matrix_rank",
    lambda a: L.matrix_rank(heavy(a)[..., :2] @ heavy(a)[..., :2, :]),
    lambda a: np.linalg.matrix_rank(heavy(a)[..., :2] @ heavy(a)[..., :2, :]),
    square(),
    "Svd",
    order=0,
    empty=False,
)


def chain_case(s: Source) -> Case:
    lengths = [side(s) for _ in range(5)]
    shapes: list[tuple[int, ...]] = list(itertools.pairwise(lengths))
    if s.flag():
        shapes[0] = shapes[0][1:]
    if s.flag():
        shapes[-1] = shapes[-1][:1]
    return Case(tuple(Arg(shape) for shape in shapes))


add(
    "multi_dot",
    lambda *x: L.multi_dot(x),
    lambda *x: np.asarray(np.linalg.multi_dot(x)),
    chain_case,
    "Matmul",
    empty=False,
)
add(
    "linalg_vander",
    lambda x, N: L.vander(x, N=N),
    lambda x, N: np.asarray(x[..., None] ** np.arange(N)),
    lambda s: Case((Arg(s.shape(1, 2)),), {"N": s.integer(2, 4)}),
    "CumProd",
)
add(
    "vecdot",
    lambda x, y: L.vecdot(x, y),
    lambda x, y: np.asarray((x * y).sum(-1)),
    lambda s: Case((Arg(shape := s.shape(1, 2)), Arg(shape))),
    "Sum",
)
add(
    "linalg_trace",
    lambda x, offset: L.trace(x, offset=offset),
    lambda x, offset: np.asarray(np.trace(x, offset, -2, -1)),
    rectangle(lambda s: {"offset": s.integer(-1, 1)}),
    "Diagonal",
    empty=False,
)
