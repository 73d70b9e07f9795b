"""Special functions and sums of exponentials, as in `scipy.special`."""

from typing import Any

import wengert as wg
from wengert._arguments import operand
from wengert._core import Tensor
from wengert.special import (
    digamma,
    entr,
    erf,
    erfc,
    erfinv,
    expit,
    gammaln,
    i0,
    i0e,
    i1,
    i1e,
    log_ndtr,
    logit,
    multigammaln,
    ndtr,
    polygamma,
    psi,
    xlog1py,
    xlogy,
)

__all__ = [
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfinv",
    "expit",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "ndtr",
    "polygamma",
    "psi",
    "softmax",
    "xlog1py",
    "xlogy",
]
__dir__ = __all__.copy


def _axes(x: Tensor, axis: Any) -> Any:
    return tuple(range(x.ndim)) if axis is None else axis


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> Tensor:
    """Returns the logarithm of the sum of exponentials over axes, all by default, which does not overflow.

    Args:
        b: factors of the exponentials; they broadcast.

    Example:
        >>> wg.scipy.special.logsumexp([1000.0, 1000.0])
        tensor(1000.6932)
    """
    x = operand("logsumexp", a)
    if b is None:
        return x.logsumexp(_axes(x, axis), keepdims)
    top = x.detach().amax(_axes(x, axis), keepdim=True)
    top = wg.where(top.isfinite(), top, 0.0)
    total = (operand("logsumexp", b, x) * (x - top).exp()).sum(_axes(x, axis), keepdim=True).log() + top
    return total if keepdims else total.squeeze(_axes(x, axis))


def softmax(x: Any, axis: Any = None) -> Tensor:
    """Returns the exponentials divided by their sum over axes, all by default.

    Example:
        >>> wg.scipy.special.softmax([0.0, 0.0])
        tensor([0.5, 0.5])
    """
    return log_softmax(x, axis).exp()


def log_softmax(x: Any, axis: Any = None) -> Tensor:
    """Returns the logarithms of `softmax`.

    Example:
        >>> wg.scipy.special.log_softmax([0.0, 0.0])
        tensor([-0.6931, -0.6931])
    """
    x = operand("log_softmax", x)
    return x.log_softmax(axis) if isinstance(axis, int) else x - logsumexp(x, axis, keepdims=True)
