"""Products of matrices and vectors, factorisations, Fourier transforms."""

from collections.abc import Callable
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
from hypothesis import strategies as st

from array_api.drawing import (
    AXES,
    COMPLEX,
    FLOATS,
    NUMBERS,
    REALS,
    Call,
    Cases,
    Draw,
    array,
    axes_of,
    axis_of,
    by_name,
    called,
    registering,
)

CASES: Cases = {}
case = registering(CASES)


# ---- products and norms of vectors ---------------------------------------------------------------


@case("matmul", "linalg.matmul")
def _product(name: str, draw: Draw) -> Call:
    a, b = draw(
        hnp.mutually_broadcastable_shapes(signature=np.matmul.signature, max_dims=2, max_side=4)
    ).input_shapes
    dtype = draw(st.sampled_from(NUMBERS))
    return called(name, array(draw, [dtype], a), array(draw, [dtype], b))


@case("vecdot", "linalg.vecdot")
def _vecdot(name: str, draw: Draw) -> Call:
    x = array(draw, NUMBERS, AXES)
    return called(name, x, array(draw, [x.dtype.name], x.shape), axis=draw(st.integers(-x.ndim, -1)))


@case("tensordot", "linalg.tensordot")
def _tensordot(name: str, draw: Draw) -> Call:
    x = array(draw, NUMBERS, AXES)
    other = array(draw, [x.dtype.name], x.shape[::-1])
    pairs = (tuple(range(x.ndim)), tuple(reversed(range(x.ndim))))
    return called(
        name, x, other, axes=draw(st.sampled_from([0, 1 if x.shape[-1] == other.shape[0] else 0, pairs]))
    )


@case("linalg.outer")
def _outer(name: str, draw: Draw) -> Call:
    x = array(draw, NUMBERS, (3,))
    return called(name, x, array(draw, [x.dtype.name], (2,)))


@case("linalg.cross")
def _cross(name: str, draw: Draw) -> Call:
    x = array(draw, [d for d in REALS if d[0] != "u"], (2, 3))
    return called(name, x, array(draw, [x.dtype.name], (2, 3)))


@case("linalg.vector_norm")
def _vector_norm(name: str, draw: Draw) -> Call:
    x = array(draw, FLOATS + COMPLEX, AXES)
    order = draw(st.sampled_from([0, 1, 2, 3, 0.5, np.inf, -np.inf]))
    return called(name, x, axis=axes_of(draw, x) or None, keepdims=draw(st.booleans()), ord=order)


# ---- matrices ------------------------------------------------------------------------------------


def matrices(draw: Draw, rows: int = 0, symmetric: bool = False) -> Any:
    """Matrices of full rank in up to two leading axes, `rows` more rows than columns."""
    batch = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=1, max_side=2))
    n = draw(st.integers(1, 4))
    x = array(draw, FLOATS, (*batch, n + rows, n))
    if symmetric:
        x = x + np.swapaxes(x, -1, -2)
    return x + np.eye(n + rows, n, dtype=x.dtype) * 20


@case("linalg.det", "linalg.inv", "linalg.eigvalsh", "linalg.cholesky")
def _square(name: str, draw: Draw) -> Call:
    more = {"upper": draw(st.booleans())} if name == "linalg.cholesky" else {}
    return called(name, matrices(draw, symmetric=name in ("linalg.eigvalsh", "linalg.cholesky")), **more)


@case("linalg.slogdet")
def _slogdet(name: str, draw: Draw) -> Call:
    return called(name, matrices(draw) * draw(st.sampled_from([1, -1])))


@case("linalg.svdvals")
def _singular_values(name: str, draw: Draw) -> Call:
    return called(name, matrices(draw, draw(st.integers(0, 2))))


@case("linalg.eigh", "linalg.svd", "linalg.qr")
def _factors(name: str, draw: Draw) -> Call:
    """Factors are compared by their product, their shapes, and what has no choice of sign."""
    x = matrices(draw, 0 if name == "linalg.eigh" else draw(st.integers(0, 2)), name == "linalg.eigh")
    full = draw(st.booleans())
    more = {
        "linalg.svd": {"full_matrices": full},
        "linalg.qr": {"mode": "complete" if full else "reduced"},
    }

    def call(namespace: Any, asarray: Callable[[Any], Any]) -> Any:
        found = by_name(namespace, name)(asarray(x), **more.get(name, {}))
        shapes = [namespace.zeros(part.shape, dtype=namespace.float32) for part in found]
        if name == "linalg.eigh":
            values, vectors = found.eigenvalues, found.eigenvectors
            return [values, vectors * values[..., None, :] @ namespace.matrix_transpose(vectors), *shapes]
        if name == "linalg.qr":
            return [found.Q @ found.R, namespace.abs(found.R), *shapes]
        n = found.S.shape[-1]
        return [found.S, found.U[..., :n] * found.S[..., None, :] @ found.Vh[..., :n, :], *shapes]

    return call


@case("linalg.solve")
def _solved(name: str, draw: Draw) -> Call:
    x = matrices(draw)
    n = x.shape[-1]
    shape = draw(st.sampled_from([(n,), (n, 3), (*x.shape[:-1], 2)]))
    return called(name, x, array(draw, [x.dtype.name], shape))


@case("linalg.matrix_norm")
def _matrix_norm(name: str, draw: Draw) -> Call:
    order = draw(st.sampled_from(["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf, None]))
    return called(name, matrices(draw, draw(st.integers(0, 2))), keepdims=draw(st.booleans()), ord=order)


@case("linalg.matrix_power")
def _matrix_power(name: str, draw: Draw) -> Call:
    return called(name, matrices(draw), draw(st.integers(-2, 4)))


@case("linalg.matrix_rank", "linalg.pinv")
def _ranked(name: str, draw: Draw) -> Call:
    x = matrices(draw, draw(st.integers(0, 2)))
    rtol = draw(st.sampled_from([None, 0.1, np.full(x.shape[:-2], 0.25, x.dtype)]))
    return called(name, x, rtol=rtol)


# ---- Fourier transforms --------------------------------------------------------------------------


@case("fft.fft", "fft.ifft", "fft.hfft", "fft.ihfft", "fft.rfft", "fft.irfft")
def _transform(name: str, draw: Draw) -> Call:
    x = array(draw, FLOATS if name in ("fft.rfft", "fft.ihfft") else COMPLEX, AXES)
    # The inverse of a transform of real numbers needs a length of its own where the axis has one element.
    n = draw(st.integers(2, 5) if name in ("fft.irfft", "fft.hfft") else st.none() | st.integers(1, 5))
    return called(
        name, x, n=n, axis=axis_of(draw, x), norm=draw(st.sampled_from(["backward", "ortho", "forward"]))
    )


@case("fft.fftn", "fft.ifftn", "fft.rfftn", "fft.irfftn")
def _transforms(name: str, draw: Draw) -> Call:
    x = array(draw, FLOATS if name == "fft.rfftn" else COMPLEX, AXES)
    axes = draw(hnp.valid_tuple_axes(x.ndim, min_size=1))
    s = [draw(st.integers(2, 4)) for _ in axes]
    s, axes = draw(st.sampled_from([(s, axes), (None, axes) if name != "fft.irfftn" else (s, axes)]))
    return called(name, x, s=s, axes=axes, norm=draw(st.sampled_from(["backward", "ortho", "forward"])))


@case("fft.fftfreq", "fft.rfftfreq")
def _frequencies(name: str, draw: Draw) -> Call:
    n, d = draw(st.integers(1, 9)), draw(st.sampled_from([1.0, 0.5, 3.0]))
    return lambda ns, _: by_name(ns, name)(n, d=d, dtype=ns.float64)


@case("fft.fftshift", "fft.ifftshift")
def _shifted(name: str, draw: Draw) -> Call:
    x = array(draw, FLOATS, AXES)
    return called(name, x, axes=axes_of(draw, x) or None)
