"""The normal distribution of vectors."""

from typing import Any

from wengert import _core
from wengert._arguments import operand
from wengert._core import Tensor
from wengert.distributions import MultivariateNormal
from wengert.numpy import subtract
from wengert.numpy._reductions import _inexact

__all__ = ["entropy", "logpdf", "pdf"]
__dir__ = __all__.copy


def _centred(cov: Any, like: Tensor) -> MultivariateNormal:
    """The distribution of mean 0: of `cov`, a number means that times the identity, a vector is its
    diagonal."""
    cov = operand("multivariate_normal", cov, like)
    if cov.ndim < 2:
        length = like.shape[-1] if like.ndim else 1
        cov = _core.diag(cov.to(_core.result_type(cov, like)).broadcast_to((length,)))
    return MultivariateNormal(cov.new_zeros(cov.shape[-1:]), cov, validate_args=False)


def logpdf(x: Any, mean: Any = None, cov: Any = 1.0) -> Tensor:
    """Returns the logarithms of the densities of the vectors in the last axis of `x`.

    Args:
        mean: a vector, or a number for all its elements; 0 by default.
        cov: the covariance matrix; a vector is its diagonal, a number all of that. Where it is 1 by 1 and `x`
            a vector, `x` holds one number for each point.

    Raises:
        LinAlgError: a matrix that is not positive definite.

    Example:
        >>> wg.scipy.stats.multivariate_normal.logpdf([0.0, 0.0], [0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])
        tensor(-1.8379)
    """
    x = _inexact("multivariate_normal", x)
    mean = 0.0 if mean is None else mean
    normal = _centred(cov, subtract(x, mean))
    if normal.event_shape == (1,) and (x.ndim == 0 or x.shape[-1] != 1):
        x = x.unsqueeze(-1)
    return normal.log_prob(subtract(x, mean))


def pdf(x: Any, mean: Any = None, cov: Any = 1.0) -> Tensor:
    """Returns the densities; see `logpdf`.

    Example:
        >>> wg.scipy.stats.multivariate_normal.pdf([0.0, 0.0], [0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])
        tensor(0.1592)
    """
    return logpdf(x, mean, cov).exp()


def entropy(mean: Any = None, cov: Any = 1.0) -> Tensor:
    """Returns the differential entropy; see `logpdf` for the parameters.

    Example:
        >>> wg.scipy.stats.multivariate_normal.entropy([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])
        tensor(2.8379)
    """
    return _centred(cov, operand("multivariate_normal", 0.0 if mean is None else mean)).entropy()
