"""Student's t distribution with `df` degrees of freedom, moved to `loc` and stretched by `scale`."""

from typing import Any

from wengert._arguments import operands
from wengert._core import Tensor
from wengert.distributions import StudentT

__all__ = ["logpdf", "pdf"]
__dir__ = __all__.copy


def logpdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Tensor:
    """Returns the logarithm of the density.

    Example:
        >>> wg.scipy.stats.t.logpdf(0.0, 1.0)
        tensor(-1.1447)
    """
    x, df, loc, scale = operands("logpdf", (x, df, loc, scale))
    return StudentT(df, loc, scale, validate_args=False).log_prob(x)


def pdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Tensor:
    """Returns the density.

    Example:
        >>> wg.scipy.stats.t.pdf(0.0, 1.0)
        tensor(0.3183)
    """
    return logpdf(x, df, loc, scale).exp()
