"""Covariances and correlations."""

from typing import Any

from wengert import _core
from wengert._arguments import operand
from wengert._core import Tensor
from wengert._precision import in_float32
from wengert._types import TensorLike
from wengert._values import check_within

from ._method import method

__all__ = ["corrcoef", "cov"]


@method
@in_float32
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: TensorLike | None = None,
    aweights: TensorLike | None = None,
) -> Tensor:
    """Returns the covariance matrix of variables in rows, observed in columns. Integers become float32.

    Args:
        correction: what is subtracted from the number of observations.
        fweights: how often each observation counts, integers.
        aweights: how much each observation weighs.

    Returns:
        A matrix; of one variable its variance, without axes.

    Raises:
        TypeError: `fweights` that are no integers.
        ValueError: a negative weight.

    Example:
        >>> wg.cov(wg.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
        tensor([[ 1., -1.],
                [-1.,  1.]])
    """
    x = operand("cov", input)
    x = x if x.dtype.is_differentiable else x.float()
    if x.ndim > 2:
        raise _core.ShapeError(f"cov: at most two axes expected, got shape {tuple(x.shape)}")
    rows = x.reshape(1, -1) if x.ndim < 2 else x
    count = rows.shape[1]
    weights = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is not None:
            given = operand("cov", given, x)
            if tuple(given.shape) != (count,):
                raise _core.ShapeError(f"cov: {name} of shape {tuple(given.shape)} for {count} observations")
            if name == "fweights" and given.dtype.is_differentiable:
                raise TypeError(
                    f"cov: fweights must be integers, got {given.dtype}; aweights are any weights"
                )
            check_within("cov", name, given, 0, float("inf"))
            weights = given.to(x.dtype) if weights is None else weights * given.to(x.dtype)
    if weights is None:
        mean = rows.mean(1, keepdim=True)
        degrees: Any = max(float(count) - correction, 0.0)
        scaled = centred = rows - mean
    else:
        total = weights.sum()
        mean = (rows * weights).sum(1, keepdim=True) / total
        centred = rows - mean
        scaled = centred * weights
        spread = (
            total if aweights is None else (weights * operand("cov", aweights, x).to(x.dtype)).sum() / total
        )
        degrees = total - correction * (1.0 if aweights is None else spread)
    out = scaled @ centred.mH / degrees
    return out.reshape(()) if out.numel() == 1 else out


@method
@in_float32
def corrcoef(input: Tensor) -> Tensor:
    """Returns the matrix of correlation coefficients of variables in rows, observed in columns;
    of one variable a number.

    Example:
        >>> wg.corrcoef(wg.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
        tensor([[ 1., -1.],
                [-1.,  1.]])
    """
    c = cov(input)
    if c.ndim == 0:
        return c / c
    deviation = c.diagonal().real.sqrt()
    out = c / deviation.unsqueeze(1) / deviation.unsqueeze(0)
    # Rounding may lead out of the unit circle; of complex numbers it stays.
    return out if out.is_complex() else out.clamp(-1, 1)
