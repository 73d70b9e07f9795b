"""Reductions of the core with the arguments that PyTorch's take beside it, and their slopes at singular points."""

from typing import Any

from wengert import _core
from wengert._arguments import operand
from wengert._core import Tensor

from ._method import method

__all__ = ["all", "any", "norm", "std", "trace", "var"]

_all, _any, _norm, _std, _trace, _var = (
    Tensor.all,
    Tensor.any,
    Tensor.norm,
    Tensor.std,
    Tensor.trace,
    Tensor.var,
)


def _no_axes(dim: Any) -> bool:
    return isinstance(dim, (tuple, list)) and len(dim) == 0


@method
def all(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool | None = None
) -> Tensor:
    """Whether all elements along `dim`, or all of them, are true (not zero). Along no axes, `()`, each for itself."""
    dim = dim if axis is None else axis
    return input != 0 if _no_axes(dim) else _all(input, dim, keepdim, keepdims=keepdims)


@method
def any(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool | None = None
) -> Tensor:
    """Whether any element along `dim`, or any at all, is true (not zero). Along no axes, `()`, each for itself."""
    dim = dim if axis is None else axis
    return input != 0 if _no_axes(dim) else _any(input, dim, keepdim, keepdims=keepdims)


def _correction(name: str, dim: Any, unbiased: bool | None, correction: float | None) -> tuple[Any, float]:
    """The axes, and what is subtracted from the number of elements; a bool in place of the axes is `unbiased`."""
    if isinstance(dim, bool):
        if unbiased is not None:
            raise TypeError(f"{name}: unbiased was given twice, as {dim} and as {unbiased}; pass it once")
        dim, unbiased = None, dim
    if unbiased is None:
        return dim, 1.0 if correction is None else correction
    if not isinstance(unbiased, bool):
        raise TypeError(
            f"{name}: unbiased must be a bool, got {type(unbiased).__name__}; several axes are one argument, "
            "dim=(0, 1), and any other correction is correction="
        )
    if correction is not None:
        raise ValueError(f"{name}: give either unbiased or correction, got {unbiased} and {correction}")
    return dim, float(unbiased)


@method
def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Any = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Variance along `dim`, or of all elements: squared distances from the mean over their number less `correction`.

    Args:
        dim: an axis or several; a bool here is `unbiased`.
        unbiased: correction 1 if True, 0 if False.
        keepdim: keep the axes with length 1.
        correction: 1 by default.

    Raises:
        TypeError: integers and bools, which `float()` converts.
    """
    dim, degrees = _correction("var", dim if axis is None else axis, unbiased, correction)
    return _var(input, dim, correction=degrees, keepdim=keepdim if keepdims is None else keepdims)


@method
def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Any = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Standard deviation along `dim`, or of all elements: the root of `var`, with its arguments.

    Where it is zero, all elements are equal, its gradient is taken to be zero, as that of a norm at zero.
    """
    dim, degrees = _correction("std", dim if axis is None else axis, unbiased, correction)
    out = _std(input, dim, correction=degrees, keepdim=keepdim if keepdims is None else keepdims)
    return out.masked_fill(out.detach() == 0, 0.0) if _core._is_recorded(out) else out


@method
def norm(
    input: Tensor,
    p: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    axis: Any = None,
    keepdims: bool | None = None,
) -> Tensor:
    """The `p`-norm of the elements along `dim`, or of all: `sum(abs(x) ** p) ** (1 / p)`.

    Args:
        p: any number, 2 by default; `inf` and `-inf` are the extremes of the magnitudes, 0 counts what is not zero.
            `"fro"` is 2; `"nuc"` is the sum of the singular values of matrices, in the last two axes or in `dim`.
        dim: an axis or several.

    The gradient of an element that is zero is zero.

    Raises:
        ValueError: another name; of no elements, where `p` is negative or infinite.
    """
    dim, keepdim = (dim if axis is None else axis), (keepdim if keepdims is None else keepdims)
    if isinstance(p, str) and p != "fro":
        return _nuclear(input, p, dim, keepdim)
    if p is None or p == 2 or isinstance(p, str):
        return _norm(input, p, dim, keepdim)
    if p < 0 and input.numel() == 0:
        _check_elements(input, p, dim)
    if not 0 < p < 1:
        return _norm(input, p, dim, keepdim)
    # The slope of a power below 1 is infinite at 0, where it never looks.
    size = input.abs()
    zero = size.detach() == 0
    total = (size.masked_fill(zero, 1.0) ** p).masked_fill(zero, 0.0).sum(dim, keepdim=keepdim)
    return total ** (1.0 / p)


def _check_elements(input: Tensor, p: float, dim: Any) -> None:
    """Raises where there is nothing that the extreme of magnitudes could be taken of."""
    axes = range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    if 0 in [input.shape[d] for d in axes]:
        raise ValueError(
            f"norm: the norm of order {p} of no elements, the shape is {tuple(input.shape)}; pass at least one"
        )


def _nuclear(input: Tensor, p: str, dim: Any, keepdim: bool) -> Tensor:
    """The sum of singular values."""
    if p != "nuc":
        raise ValueError(f"norm: p must be a number, 'fro' or 'nuc', got {p!r}")
    from wengert.linalg import matrix_norm

    return matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim)


@method
def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix; `wengert.linalg.trace` takes many.

    Raises:
        ShapeError: there are not two axes.
    """
    if operand("trace", input).ndim != 2:
        raise _core.ShapeError(
            f"trace: a matrix expected, got shape {tuple(input.shape)}; linalg.trace sums the diagonals of many"
        )
    return _trace(input)
