"""Exponential families, whose entropy and divergences follow from the normaliser."""

import math

import wengert as wg
from wengert._core import Tensor

from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Densities `exp(sum_i t_i(x) theta_i - A(theta) + k(x))`, with statistics `t`, parameters `theta` and
    carrier `k`.

    A subclass defines `_natural_params`, `_log_normalizer(*params)` (that is `A`) and, unless the carrier is
    0, its mean `_mean_carrier_measure`; `entropy` and `kl_divergence` of two members of a family follow
    (Nielsen and Nock 2010), and are differentiable.

    Example:
        >>> class Coin(wg.distributions.ExponentialFamily):
        ...     def __init__(self, logits):
        ...         self.logits = logits
        ...         super().__init__(logits.shape)
        ...     _natural_params = property(lambda self: (self.logits,))
        ...     _log_normalizer = staticmethod(lambda logits: -wg.logsigmoid(-logits))
        >>> Coin(wg.tensor(0.0)).entropy()
        tensor(0.6931)
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise self._missing("_natural_params")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise self._missing("_log_normalizer")

    @property
    def _mean_carrier_measure(self) -> float | Tensor:
        return 0.0

    def _normalizer_and_means(self) -> tuple[Tensor, tuple[Tensor, ...]]:
        """`A(theta)`, and its gradients: the means of the statistics."""
        params = self._natural_params
        means = wg.grad(lambda *p: self._log_normalizer(*p).sum(), argnums=tuple(range(len(params))))(*params)
        return self._log_normalizer(*params), means

    def _summed(self, x: Tensor) -> Tensor:
        """The sum over the axes that a parameter has beside those of the batch."""
        rank = len(self._batch_shape)
        return x.reshape(*x.shape[:rank], math.prod(x.shape[rank:])).sum(-1)

    def entropy(self) -> Tensor:
        """Returns the entropy in nats: `A - sum_i theta_i dA/dtheta_i - E k(x)`."""
        normalizer, means = self._normalizer_and_means()
        for theta, mean in zip(self._natural_params, means):
            normalizer = normalizer - self._summed(theta * mean)
        return normalizer - self._mean_carrier_measure
