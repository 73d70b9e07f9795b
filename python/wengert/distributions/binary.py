"""Distributions with the odds of a coin: Bernoulli, continuous Bernoulli, geometric."""

from collections.abc import Sequence
from typing import Any, ClassVar

import wengert as wg
from wengert._core import Tensor

from . import constraints
from .distribution import Distribution, check
from .exp_family import ExponentialFamily
from .numerics.special import expm1_over, in_double, log1p_over
from .parameters import (
    Parameter,
    broadcast_all,
    lazy_property,
    log_complement,
    log_or_infinite,
    logits_to_probs,
    one_of,
    probs_to_logits,
    times,
)

__all__ = ["Bernoulli", "ContinuousBernoulli", "Geometric"]


def odds(x: Tensor, logits: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A probability, its complement, and the logarithms of both, from logits or probabilities without
    cancellation."""
    if logits:
        return x.sigmoid(), (-x).sigmoid(), x.logsigmoid(), (-x).logsigmoid()
    return x, 1 - x, log_or_infinite(x), log_complement(x)


class ByOdds(Distribution):
    """A distribution that is given by `probs` or by `logits`; the other one is computed when it is asked
    for."""

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}

    def _take_odds(self, probs: Any, logits: Any, *others: Parameter) -> list[Tensor]:
        """Sets the one that is given, and returns the other parameters in the same shape."""
        self._given = one_of(type(self).__name__, probs=probs, logits=logits)
        param, *rest = broadcast_all(probs if logits is None else logits, *others)
        self.__dict__[self._given] = param
        return rest

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities."""
        return logits_to_probs(self.logits, is_binary=True)

    @lazy_property
    def logits(self) -> Tensor:
        """Logits `log(p / (1 - p))`."""
        return probs_to_logits(self.probs, is_binary=True)

    _param = property(lambda self: self.__dict__[self._given])
    param_shape = property(lambda self: self._param.shape)

    def _odds(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return odds(self._param, self._given == "logits")


class Bernoulli(ByOdds, ExponentialFamily):
    """The distribution of a coin: 1 with probability `probs`, else 0.

    Args:
        probs: probabilities of 1; impossible values have the log probability minus infinity.
        logits: their logits, instead.

    Example:
        >>> d = wg.distributions.Bernoulli(wg.tensor([0.25, 0.5]))
        >>> d.log_prob(wg.tensor([1.0, 0.0])), d.entropy()
        (tensor([-1.3863, -0.6931]), tensor([0.5623, 0.6931]))
    """

    support = constraints.boolean
    has_enumerate_support = True

    def __init__(
        self,
        probs: Parameter | None = None,
        logits: Parameter | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._take_odds(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    mean = property(lambda self: self.probs)

    @property
    def mode(self) -> Tensor:
        """The likelier value; NaN where both are equally likely."""
        p = self.probs
        return wg.where(p == 0.5, wg.nan, (p > 0.5).to(p.dtype))

    @property
    def variance(self) -> Tensor:
        """The variance, `probs (1 - probs)`."""
        p, q, _, _ = self._odds()
        return p * q

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with wg.no_grad():
            return wg.bernoulli(self.probs.detach().expand(*self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._value(value)
        _, _, log_p, log_q = self._odds()
        return times(value, log_p) + times(1 - value, log_q)

    def entropy(self) -> Tensor:
        p, q, log_p, log_q = self._odds()
        return -(times(p, log_p) + times(q, log_q))

    def enumerate_support(self, expand: bool = True) -> Tensor:
        rank = len(self._batch_shape)
        values = wg.arange(2, device=self._param.device).to(self._param.dtype).reshape(2, *[1] * rank)
        return values.expand(2, *self._batch_shape) if expand else values

    _natural_params = property(lambda self: (self.logits,))

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return -(-natural_params[0]).logsigmoid()


class Geometric(ByOdds):
    """The distribution of the number of failures before the first success, from 0 on.

    Args:
        probs: probabilities of a success, above 0.
        logits: their logits, instead.

    Example:
        >>> d = wg.distributions.Geometric(0.25)
        >>> d.mean, d.log_prob(wg.tensor(2.0))
        (tensor(3.), tensor(-1.9617))
    """

    support = constraints.nonnegative_integer

    def __init__(
        self,
        probs: Parameter | None = None,
        logits: Parameter | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._take_odds(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._validate_args and self._given == "probs":
            check("Geometric", "probs", constraints.positive, self._param)

    @property
    def mean(self) -> Tensor:
        """The mean, `(1 - probs) / probs`."""
        p, q, _, _ = self._odds()
        return q / p

    mode = property(lambda self: wg.zeros_like(self._param))

    @property
    def variance(self) -> Tensor:
        """The variance."""
        p, q, _, _ = self._odds()
        return q / p / p

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with wg.no_grad():
            return _draw_geometric(self._odds()[3].detach().expand(*self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        _, _, log_p, log_q = self._odds()
        return times(self._value(value), log_q) + log_p

    def entropy(self) -> Tensor:
        p, q, log_p, log_q = self._odds()
        return -(times(q, log_q) + times(p, log_p)) / p


@in_double
def _draw_geometric(log_q: Tensor) -> Tensor:
    u = wg.rand_like(log_q).clamp_min(wg.finfo(log_q.dtype).eps / 4)
    return (u.log() / log_q).floor()


# ---- continuous Bernoulli ------------------------------------------------------------------------


def log_mean_exp(logits: Tensor) -> Tensor:
    """`log` of the integral of `exp(logits x)` over [0, 1]: `h + log(sinh(h) / h)` with `h = logits / 2`."""
    h = (0.5 * logits).abs()
    small, r = h < 0.25, h.square()
    series = r * (
        1 / 6 - r * (1 / 180 - r * (1 / 2835 - r * (1 / 37800 - r * (1 / 467775 - r * 691 / 3831077250))))
    )
    safe = wg.where(small, 1.0, h)
    large = safe - (2 * safe).log() + (-(-2 * safe).expm1()).log()
    return 0.5 * logits + wg.where(small, series, large)


@in_double
def _continuous_log_prob(x: Tensor, logits: Tensor) -> Tensor:
    return wg.where((x < 0) | (x > 1), -wg.inf, logits * x - log_mean_exp(logits))


@in_double
def _continuous_mean(logits: Tensor) -> Tensor:
    """The derivative of `log_mean_exp`, `1/2 + (coth(h) - 1/h) / 2`."""
    h = 0.5 * logits
    small, r = h.abs() < 0.25, h.square()
    series = h * (
        1 / 3 - r * (1 / 45 - r * (2 / 945 - r * (1 / 4725 - r * (2 / 93555 - r * 1382 / 638512875))))
    )
    safe = wg.where(small, 1.0, h)
    return 0.5 + 0.5 * wg.where(small, series, 1 / safe.tanh() - 1 / safe)


@in_double
def _continuous_variance(logits: Tensor) -> Tensor:
    """Its second derivative, `(1 / h^2 - 1 / sinh(h)^2) / 4`."""
    h = (0.5 * logits).abs()
    small, r = h < 0.25, h.square()
    series = 1 / 3 - r * (1 / 15 - r * (2 / 189 - r * (1 / 675 - r * (2 / 10395 - r * 1382 / 58046625))))
    safe = wg.where(small, 1.0, h)
    sinh = 2 * (-safe).exp() / -(-2 * safe).expm1()
    return 0.25 * wg.where(small, series, 1 / safe.square() - sinh.square())


# Up to here the exponential of the logits is no trouble.
_STEEP = 30.0


@in_double
def _continuous_cdf(x: Tensor, logits: Tensor) -> Tensor:
    """`(exp(logits x) - 1) / (exp(logits) - 1)`."""
    x = x.clamp(0.0, 1.0)
    flat, steep = logits.clamp_max(_STEEP), logits.clamp_min(_STEEP)
    far = (steep * (x - 1)).exp() * (-steep * x).expm1() / (-steep).expm1()
    near = expm1_over(x, flat) / expm1_over(wg.ones_like(x), flat)
    return wg.where(logits > _STEEP, far, near)


@in_double
def _continuous_icdf(p: Tensor, logits: Tensor) -> Tensor:
    """Its inverse in `x`, `log(1 + p (exp(logits) - 1)) / logits`."""
    flat, steep = logits.clamp_max(_STEEP), logits.clamp_min(_STEEP)
    far = 1 + (p + (1 - p) * (-steep).exp()).log() / steep
    near = log1p_over(p * expm1_over(wg.ones_like(p), flat), flat)
    return wg.where(logits > _STEEP, far, near)


@in_double
def _continuous_entropy(logits: Tensor) -> Tensor:
    return log_mean_exp(logits) - logits * _continuous_mean(logits)


class ContinuousBernoulli(ByOdds, ExponentialFamily):
    """A distribution on [0, 1] with a density proportional to `probs^x (1 - probs)^(1 - x)` (Loaiza-Ganem et
    al. 2019).

    Args:
        probs: between 0 and 1; not the mean.
        logits: their logits, instead: the slope of the logarithm of the density.
        lims: accepted and ignored; PyTorch approximates between them, which is not needed here.

    Example:
        >>> d = wg.distributions.ContinuousBernoulli(wg.tensor([0.1, 0.5]))
        >>> d.mean, d.log_prob(wg.tensor(0.0))
        (tensor([0.3301, 0.5000]), tensor([0.905, 0.000]))
    """

    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        probs: Parameter | None = None,
        logits: Parameter | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._take_odds(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    mean = property(lambda self: _continuous_mean(self.logits))
    variance = property(lambda self: _continuous_variance(self.logits))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape, like = self._extended_shape(sample_shape), self._param
        return self.icdf(wg.rand(shape, dtype=like.dtype, device=like.device))

    def log_prob(self, value: Tensor) -> Tensor:
        return _continuous_log_prob(self._value(value), self.logits)

    def cdf(self, value: Tensor) -> Tensor:
        return _continuous_cdf(self._value(value), self.logits)

    def icdf(self, value: Tensor) -> Tensor:
        return _continuous_icdf(value, self.logits)

    def entropy(self) -> Tensor:
        return _continuous_entropy(self.logits)

    _natural_params = property(lambda self: (self.logits,))

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return log_mean_exp(natural_params[0])
