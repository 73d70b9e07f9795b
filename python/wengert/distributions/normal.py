"""The normal distribution, and distributions of functions of normal variates."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import wengert as wg
from wengert._core import Tensor

from . import constraints
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .parameters import Parameter, broadcast_all
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform, ExpTransform, StickBreakingTransform

__all__ = ["HalfNormal", "LogNormal", "LogisticNormal", "Normal"]

_LOG_ROOT_TAU = 0.5 * math.log(2 * math.pi)


class Normal(ExponentialFamily):
    """The normal (Gaussian) distribution.

    Args:
        loc: the mean.
        scale: the standard deviation.

    Example:
        >>> d = wg.distributions.Normal(0.0, 2.0)
        >>> d.log_prob(wg.tensor(1.0)), d.cdf(wg.tensor(1.0)), d.entropy()
        (tensor(-1.7371), tensor(0.6915), tensor(2.1121))
    """

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Parameter, scale: Parameter, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean = mode = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale.square())

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.loc + wg.randn(shape, dtype=self.loc.dtype, device=self.loc.device) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self._value(value) - self.loc) / self.scale
        return -0.5 * z.square() - self.scale.log() - _LOG_ROOT_TAU

    def cdf(self, value: Tensor) -> Tensor:
        return ((self._value(value) - self.loc) / self.scale).ndtr()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * value.ndtri()

    def entropy(self) -> Tensor:
        return self.scale.log() + (0.5 + _LOG_ROOT_TAU)

    _natural_params = property(lambda self: (self.loc / self.variance, -0.5 / self.variance))

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return -0.25 * x.square() / y + 0.5 * (-math.pi / y).log()


class LogNormal(TransformedDistribution):
    """The distribution of the exponential of a normal variate.

    Args:
        loc: the mean of the logarithm.
        scale: the standard deviation of the logarithm.

    Example:
        >>> d = wg.distributions.LogNormal(0.0, 1.0)
        >>> d.mean, d.mode, d.log_prob(wg.tensor(1.0))
        (tensor(1.6487), tensor(0.3679), tensor(-0.9189))
    """

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Parameter, scale: Parameter, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=False), ExpTransform(), validate_args)

    loc = property(lambda self: self.base_dist.loc)
    scale = property(lambda self: self.base_dist.scale)
    mean = property(lambda self: (self.loc + 0.5 * self.scale.square()).exp())
    mode = property(lambda self: (self.loc - self.scale.square()).exp())
    variance = property(lambda self: self.scale.square().expm1() * self.mean.square())

    def log_prob(self, value: Tensor) -> Tensor:
        log = self._value(value).log()
        return wg.where(value <= 0, -wg.inf, self.base_dist.log_prob(log) - log)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class HalfNormal(TransformedDistribution):
    """The distribution of the absolute value of a normal variate of mean 0.

    Args:
        scale: the standard deviation of that variate.

    Example:
        >>> d = wg.distributions.HalfNormal(1.0)
        >>> d.mean, d.variance, d.cdf(wg.tensor(1.0))
        (tensor(0.7979), tensor(0.3634), tensor(0.6827))
    """

    arg_constraints: ClassVar[Any] = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Parameter, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0.0, scale, validate_args=False), AbsTransform(), validate_args)

    scale = property(lambda self: self.base_dist.scale)
    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    mode = property(lambda self: wg.zeros_like(self.scale))
    variance = property(lambda self: self.scale.square() * (1 - 2 / math.pi))

    def log_prob(self, value: Tensor) -> Tensor:
        found = self.base_dist.log_prob(self._value(value)) + math.log(2)
        return wg.where(value < 0, -wg.inf, found)

    def cdf(self, value: Tensor) -> Tensor:
        return (self._value(value) / (self.scale * math.sqrt(2))).erf().clamp_min(0.0)

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * math.sqrt(2) * value.erfinv()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class LogisticNormal(TransformedDistribution):
    """A distribution on the simplex of `n + 1`: normal variates, moved there by `StickBreakingTransform`.

    Args:
        loc: means `(..., n)` of the normal variates.
        scale: their standard deviations.

    Example:
        >>> d = wg.distributions.LogisticNormal(wg.zeros(2), wg.ones(2))
        >>> d.event_shape, d.log_prob(wg.tensor([0.2, 0.3, 0.5]))
        (Size([3]), tensor(1.298))
    """

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Parameter, scale: Parameter, validate_args: bool | None = None) -> None:
        base: Distribution = Normal(loc, scale, validate_args=False)
        base = base if base.batch_shape else base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args)

    loc = property(lambda self: self.base_dist.base_dist.loc)
    scale = property(lambda self: self.base_dist.base_dist.scale)
