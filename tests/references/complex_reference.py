"""What the tests of complex tensors share: numbers to draw, how results are compared, functions beside
NumPy's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import wengert as wg
from support import array


def log_add_exp(x: Any, y: Any) -> Any:
    """`log(exp(x) + exp(y))`, tensors by the library; the angle is next to that of the larger operand."""
    if isinstance(x, wg.Tensor):
        return wg.logaddexp(x, y)
    if not (np.iscomplexobj(x) or np.iscomplexobj(y)):
        return np.logaddexp(x, y)
    x, y = np.broadcast_arrays(x, y)
    top, low = np.where(x.real >= y.real, (x, y), (y, x))
    with np.errstate(all="ignore"):
        return (top + np.log1p(np.exp(low - top))).astype(np.result_type(x, y))


UNARY: dict[str, Callable[..., Any]] = {
    "neg": np.negative,
    "abs": np.abs,
    "square": np.square,
    "sqrt": np.sqrt,
    "rsqrt": lambda z: 1 / np.sqrt(z),
    "reciprocal": np.reciprocal,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "angle": np.angle,
    "conj": np.conj,
    "sgn": lambda z: z / np.abs(z),
    "sign": lambda z: z / np.abs(z),
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "silu": lambda z: z / (1 + np.exp(-z)),
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
}

BINARY: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y,
    "logaddexp": lambda x, y: log_add_exp(x, y),
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
}


def some(dtype: str = "complex128", shape: tuple[int, ...] = (4, 5), seed: int = 0) -> Any:
    """Normal numbers."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


def near(got: wg.Tensor, expected: Any, tolerance: float) -> None:
    """Values and dtype of a result."""
    assert got.dtype == getattr(wg, np.asarray(expected).dtype.name)
    np.testing.assert_allclose(array(got), expected, rtol=tolerance, atol=tolerance)
