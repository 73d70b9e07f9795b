"""Reductions of the core with the arguments that PyTorch's take beside it, and their slopes at singular points."""

from typing import Any

from wengert._arguments import one_of
from wengert._core import Tensor
from wengert._types import Dims, DTypeLike

from ._method import method

__all__ = ["norm"]


@method
def norm(
    input: Tensor,
    p: Any = None,
    dim: Dims = None,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    *,
    axis: Any = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Returns the `p`-norm of the elements along `dim`, or of all: `sum(abs(x) ** p) ** (1 / p)`.

    Args:
        p: any number, 2 by default; `inf` and `-inf` are the extremes of the magnitudes, 0 counts what is not zero.
            `"fro"` is 2; `"nuc"` is the sum of the singular values of matrices, in the last two axes or in `dim`.
        dim: an axis or several.
        dtype: what it is computed in.

    The gradient of an element that is zero is zero.

    Raises:
        ValueError: another name; of no elements, where `p` is negative or infinite.

    Example:
        >>> wg.norm(wg.tensor([3.0, 4.0]))
        tensor(5.)
    """
    dim, keepdim = one_of(dim, axis), (keepdim if keepdims is None else keepdims)
    input = input if dtype is None else input.to(dtype)
    if isinstance(p, str) and p != "fro":
        return _nuclear(input, p, dim, keepdim)
    if p is None or p == 2 or isinstance(p, str):
        return input._norm(p, dim, keepdim)
    if p < 0 and input.numel() == 0:
        _check_elements(input, p, dim)
    if not 0 < p < 1:
        return input._norm(p, dim, keepdim)
    # The slope of a power below 1 is infinite at 0, where it never looks.
    size = (input if input.dtype.is_differentiable else input.float()).abs()
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
