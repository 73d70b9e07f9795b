"""The normal distribution with mean `loc` and standard deviation `scale`."""

import math
from typing import Any

import wengert as wg
from wengert._arguments import operand
from wengert._core import Tensor
from wengert.numpy import divide, log, subtract

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
__dir__ = __all__.copy


def _standard(x: Any, loc: Any, scale: Any) -> Tensor:
    return divide(subtract(x, loc), scale)


def logpdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Tensor:
    """Returns the logarithm of the density.

    Example:
        >>> wg.scipy.stats.norm.logpdf(0.0)
        tensor(-0.9189)
    """
    z = _standard(x, loc, scale)
    return -0.5 * z * z - 0.5 * math.log(2 * math.pi) - log(operand("logpdf", scale, z))


def pdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Tensor:
    """Returns the density.

    Example:
        >>> wg.scipy.stats.norm.pdf(0.0)
        tensor(0.3989)
    """
    return logpdf(x, loc, scale).exp()


def cdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Tensor:
    """Returns the probability of numbers up to `x`.

    Example:
        >>> wg.scipy.stats.norm.cdf(0.0)
        tensor(0.5)
    """
    return wg.ndtr(_standard(x, loc, scale))


def logcdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Tensor:
    """Returns the logarithm of `cdf`, exact far below the mean.

    Example:
        >>> wg.scipy.stats.norm.logcdf(-40.0)
        tensor(-804.6085)
    """
    return wg.log_ndtr(_standard(x, loc, scale))


def sf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Tensor:
    """Returns the probability of numbers above `x`, `1 - cdf`.

    Example:
        >>> wg.scipy.stats.norm.sf(0.0)
        tensor(0.5)
    """
    return wg.ndtr(-_standard(x, loc, scale))


def logsf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Tensor:
    """Returns the logarithm of `sf`.

    Example:
        >>> wg.scipy.stats.norm.logsf(40.0)
        tensor(-804.6085)
    """
    return wg.log_ndtr(-_standard(x, loc, scale))
