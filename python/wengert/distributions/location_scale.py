"""Distributions of numbers that are moved and stretched: Cauchy, Gumbel, Laplace, uniform, von Mises."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import wengert as wg
from wengert._core import Tensor

from . import constraints
from .distribution import ByInversion, Distribution
from .numerics.samplers import von_mises_sample
from .numerics.special import in_double
from .parameters import Parameter, broadcast_all
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform

__all__ = ["Cauchy", "Gumbel", "HalfCauchy", "Laplace", "Uniform", "VonMises"]

_EULER = 0.57721566490153286061


class _LocationScale(ByInversion):
    """A distribution with a `loc` and a `scale`."""

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Parameter, scale: Parameter, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def _standard(self, value: Tensor) -> Tensor:
        return (self._value(value) - self.loc) / self.scale


def _log_one_plus_square(z: Tensor) -> Tensor:
    """`log(1 + z^2)`, also where the square overflows."""
    far = z.abs() > 1
    near = wg.where(far, 0.0, z)
    return wg.where(far, 2 * wg.where(far, z, 1.0).hypot(wg.ones_like(z)).log(), near.square().log1p())


class Cauchy(_LocationScale):
    """The Cauchy distribution, which has neither mean nor variance.

    Args:
        loc: the median and mode.
        scale: half of the width at half of the maximum.

    Example:
        >>> d = wg.distributions.Cauchy(0.0, 1.0)
        >>> d.log_prob(wg.tensor(0.0)), d.cdf(wg.tensor([-1e6, 1.0]))
        (tensor(-1.1447), tensor([3.1831e-07, 7.5000e-01]))
    """

    mean = property(lambda self: wg.full_like(self.loc, wg.nan))
    mode = property(lambda self: self.loc)
    variance = property(lambda self: wg.full_like(self.loc, wg.inf))

    def log_prob(self, value: Tensor) -> Tensor:
        return -_log_one_plus_square(self._standard(value)) - self.scale.log() - math.log(math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        return wg.atan2(wg.ones_like(z), -z) / math.pi

    def icdf(self, value: Tensor) -> Tensor:
        # Both tails from the nearer end.
        low = -1 / (math.pi * value).tan()
        middle = (math.pi * (value - 0.5)).tan()
        return self.loc + self.scale * wg.where(value < 0.25, low, wg.where(value == 1, wg.inf, middle))

    def entropy(self) -> Tensor:
        return self.scale.log() + math.log(4 * math.pi)


class HalfCauchy(TransformedDistribution):
    """The distribution of the absolute value of a Cauchy variate around 0.

    Args:
        scale: of that variate; also the median.

    Example:
        >>> wg.distributions.HalfCauchy(1.0).log_prob(wg.tensor([0.0, 1.0]))
        tensor([-0.4516, -1.1447])
    """

    arg_constraints: ClassVar[Any] = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Parameter, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0.0, scale, validate_args=False), AbsTransform(), validate_args)

    scale = property(lambda self: self.base_dist.scale)
    mean = property(lambda self: wg.full_like(self.scale, wg.inf))
    mode = property(lambda self: wg.zeros_like(self.scale))
    variance = property(lambda self: self.base_dist.variance)

    def log_prob(self, value: Tensor) -> Tensor:
        found = self.base_dist.log_prob(self._value(value)) + math.log(2)
        return wg.where(value < 0, -wg.inf, found)

    def cdf(self, value: Tensor) -> Tensor:
        return 2 / math.pi * (self._value(value) / self.scale).clamp_min(0.0).atan()

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * wg.where(value == 1, wg.inf, (0.5 * math.pi * value).tan())

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class Laplace(_LocationScale):
    """The Laplace distribution, with the density `exp(-|x - loc| / scale) / (2 scale)`.

    Example:
        >>> d = wg.distributions.Laplace(0.0, 1.0)
        >>> d.log_prob(wg.tensor(1.0)), d.variance
        (tensor(-1.6931), tensor(2.))
    """

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: 2 * self.scale.square())
    stddev = property(lambda self: math.sqrt(2) * self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        return -self._standard(value).abs() - self.scale.log() - math.log(2)

    def cdf(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        tail = 0.5 * (-z.abs()).exp()
        return wg.where(z < 0, tail, 1 - tail)

    def icdf(self, value: Tensor) -> Tensor:
        below = value < 0.5
        tail = (2 * wg.where(below, value, 1 - value)).log()
        return self.loc + self.scale * wg.where(below, tail, -tail)

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + math.log(2))


class Gumbel(_LocationScale):
    """The Gumbel distribution of extremes, with the distribution function `exp(-exp(-(x - loc) / scale))`.

    Example:
        >>> d = wg.distributions.Gumbel(0.0, 1.0)
        >>> d.mean, d.log_prob(wg.tensor(0.0))
        (tensor(0.5772), tensor(-1.))
    """

    mean = property(lambda self: self.loc + _EULER * self.scale)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: math.pi / math.sqrt(6) * self.scale)
    variance = property(lambda self: math.pi**2 / 6 * self.scale.square())

    def log_prob(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        return -(z + (-z).exp()) - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        return (-(-self._standard(value)).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + _EULER)


class Uniform(ByInversion):
    """The uniform distribution on `[low, high)`.

    Example:
        >>> d = wg.distributions.Uniform(0.0, 2.0)
        >>> d.log_prob(wg.tensor([1.0, 2.0])), d.mean
        (tensor([-0.6931,    -inf]), tensor(1.))
    """

    def __init__(self, low: Parameter, high: Parameter, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    @property
    def arg_constraints(self) -> Any:
        """Each end by the other."""
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From `low` to `high`."""
        return constraints.interval(self.low, self.high)

    mean = property(lambda self: 0.5 * (self.low + self.high))
    mode = property(lambda self: wg.full_like(self.low, wg.nan))
    stddev = property(lambda self: (self.high - self.low) / math.sqrt(12))
    variance = property(lambda self: (self.high - self.low).square() / 12)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._value(value)
        inside = (value >= self.low) & (value < self.high)
        return wg.where(inside, -(self.high - self.low).log(), -wg.inf)

    def cdf(self, value: Tensor) -> Tensor:
        return ((self._value(value) - self.low) / (self.high - self.low)).clamp(0.0, 1.0)

    def icdf(self, value: Tensor) -> Tensor:
        return self.low + value * (self.high - self.low)

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


class VonMises(Distribution):
    """The von Mises distribution of angles in radians: densities proportional to
    `exp(concentration cos(x - loc))`.

    Draws lie between `-pi` and `pi`, by the method of Best and Fisher (1979).

    Args:
        loc: the mean angle.
        concentration: about one over the variance, where it is large.

    Example:
        >>> d = wg.distributions.VonMises(0.0, 2.0)
        >>> d.log_prob(wg.tensor(0.0)), d.variance
        (tensor(-0.6619), tensor(0.3022))
    """

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Parameter, concentration: Parameter, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean = mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        """The circular variance, `1 - I1(concentration) / I0(concentration)`."""
        return _circular_variance(self.concentration)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with wg.no_grad():
            angle = von_mises_sample(self.concentration.expand(*self._extended_shape(sample_shape)))
            return ((angle + self.loc + math.pi).remainder(2 * math.pi) - math.pi).detach()

    def log_prob(self, value: Tensor) -> Tensor:
        return _von_mises_log_prob(self._value(value), self.loc, self.concentration)

    def entropy(self) -> Tensor:
        return _von_mises_entropy(self.concentration)


@in_double
def _circular_variance(k: Tensor) -> Tensor:
    return 1 - k.i1e() / k.i0e()


@in_double
def _von_mises_log_prob(value: Tensor, loc: Tensor, k: Tensor) -> Tensor:
    # cos - 1 without cancellation, and the Bessel function without its exponential.
    return -2 * k * (0.5 * (value - loc)).sin().square() - k.i0e().log() - math.log(2 * math.pi)


@in_double
def _von_mises_entropy(k: Tensor) -> Tensor:
    return k.i0e().log() + math.log(2 * math.pi) + k * (1 - k.i1e() / k.i0e())
