"""Rows of what has structure: orders, transforms, factors of matrices, programs."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .rows import Arrays, Row, Sizes, exact, matrix, normal


def chained(m: Any, x: Any) -> Any:
    """Eight operations, each on the result of the last."""
    y = (x * 0.5 + 1.0).tanh()
    return ((y * x - 0.25).sigmoid() + y) * 2.0


def chained_check() -> tuple[Arrays, Any]:
    """A vector."""
    x = exact(1000)
    y = np.tanh(x * 0.5 + 1.0)
    return [x], (1 / (1 + np.exp(-(y * x - 0.25))) + y) * 2.0


def of_matrices(flop: float) -> Callable[[Sizes], tuple[Arrays, float]]:
    """Many matrices of 64 x 64 with a large diagonal, and `flop * 64**3` operations each."""

    def make(sizes: Sizes) -> tuple[Arrays, float]:
        count = 10_000 if not sizes.small else 32
        return [heavy(normal(count, 64, 64))], flop * 64**3 * count

    return make


def heavy(x: np.ndarray) -> np.ndarray:
    """Symmetric matrices with positive eigenvalues."""
    n = x.shape[-1]
    return (x + np.swapaxes(x, -1, -2)) / n + 4 * np.eye(n, dtype=x.dtype)


def cholesky_check() -> tuple[Arrays, Any]:
    """Three of them."""
    x = heavy(exact(3, 64, 64)).astype(np.float32).astype(np.float64)
    return [x], np.linalg.cholesky(x)


def solve_check() -> tuple[Arrays, Any]:
    """Their inverses."""
    x = heavy(exact(3, 64, 64)).astype(np.float32).astype(np.float64)
    return [x], np.linalg.inv(x)


def signals(length: int) -> Callable[[Sizes], tuple[Arrays, float]]:
    """Lines of so many complex numbers, as pairs: all of them read, and as many written."""

    def make(sizes: Sizes) -> tuple[Arrays, float]:
        lines = max(1, sizes.bytes // 8 // length)
        return [normal(lines, length, 2)], 16.0 * lines * length

    return make


def signals_check() -> tuple[Arrays, Any]:
    """A few lines."""
    x = exact(3, 256, 2)
    found = np.fft.fft(x[..., 0] + 1j * x[..., 1])
    return [x], np.stack([found.real, found.imag], -1)


def sorted_check() -> tuple[Arrays, Any]:
    """Numbers with ties, whose places are in their order."""
    x = np.round(exact(5000) * 20)
    places = np.argsort(x, kind="stable")
    return [x], (x[places], places)


ROWS = [
    Row(
        "a chain of 8 operations, a program",
        matrix(1024, 8),
        lambda m, program, x: program(x),
        chained_check,
        gate="90%",
        goal="96%",
        before=lambda m, x: (m.compile(lambda x: chained(m, x)), x),
    ),
    Row(
        "sort of float32 with places",
        lambda sizes: ([normal(sizes.bytes // 16)], 12.0 * (sizes.bytes // 16)),
        lambda m, x: tuple(m.sort(x, stable=True)),
        sorted_check,
        gate="1.4%",
        goal="4.2%",
    ),
    *(
        Row(
            f"Fourier transforms of {length:,}",
            signals(length),
            lambda m, x: m.view_as_real(m.fft.fft(x)),
            signals_check,
            gate="60%",
            goal="80%",
            before=lambda m, x: (m.view_as_complex(x),),
        )
        for length in (256, 4096, 1 << 17)
    ),
    Row(
        "Cholesky factors of 64 x 64",
        of_matrices(1 / 3),
        lambda m, x: m.linalg.cholesky(x),
        cholesky_check,
        "flop",
        "4%",
        "7.5%",
    ),
    Row(
        "inverses of 64 x 64, by LU",
        of_matrices(2.0),
        lambda m, x: m.linalg.inv(x),
        solve_check,
        "flop",
        "4%",
        "7.5%",
    ),
]
