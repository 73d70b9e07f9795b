"""Distributions of lifetimes and tails: exponential, Weibull, Pareto and generalised Pareto."""

from typing import Any, ClassVar

import wengert as wg
from wengert._core import Tensor

from . import constraints
from .distribution import ByInversion
from .exp_family import ExponentialFamily
from .numerics.special import expm1_over, in_double, log1p_over
from .parameters import Parameter, broadcast_all

__all__ = ["Exponential", "GeneralizedPareto", "Pareto", "Weibull"]

_EULER = 0.57721566490153286061


class Exponential(ByInversion, ExponentialFamily):
    """The exponential distribution, with the density `rate exp(-rate x)`.

    Example:
        >>> d = wg.distributions.Exponential(2.0)
        >>> d.mean, d.log_prob(wg.tensor(1.0)), d.cdf(wg.tensor(1.0))
        (tensor(0.5), tensor(-1.3069), tensor(0.8647))
    """

    arg_constraints: ClassVar[Any] = {"rate": constraints.positive}
    support = constraints.nonnegative

    def __init__(self, rate: Parameter, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = stddev = property(lambda self: 1 / self.rate)
    mode = property(lambda self: wg.zeros_like(self.rate))
    variance = property(lambda self: self.rate**-2)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._value(value)
        return wg.where(value < 0, -wg.inf, self.rate.log() - self.rate * value)

    def cdf(self, value: Tensor) -> Tensor:
        return -(-self.rate * self._value(value).clamp_min(0.0)).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()

    _natural_params = property(lambda self: (-self.rate,))

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return -(-natural_params[0]).log()


class Weibull(ByInversion):
    """The Weibull distribution, with the distribution function `1 - exp(-(x / scale)^concentration)`.

    Example:
        >>> d = wg.distributions.Weibull(1.0, 2.0)
        >>> d.mean, d.log_prob(wg.tensor(1.0))
        (tensor(0.8862), tensor(-0.3069))
    """

    arg_constraints: ClassVar[Any] = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Parameter, concentration: Parameter, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        super().__init__(self.scale.shape, validate_args=validate_args)

    mean = property(lambda self: self.scale * (1 + 1 / self.concentration).lgamma().exp())

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return _weibull_variance(self.scale, self.concentration)

    @property
    def mode(self) -> Tensor:
        """0 for a concentration up to 1."""
        k = self.concentration
        return self.scale * ((k - 1).clamp_min(0.0) / k) ** (1 / k)

    def log_prob(self, value: Tensor) -> Tensor:
        ratio, k = self._value(value) / self.scale, self.concentration
        found = (k / self.scale).log() + (k - 1).xlogy(ratio.clamp_min(0.0)) - ratio.clamp_min(0.0) ** k
        return wg.where((ratio < 0) | (ratio == wg.inf), -wg.inf, found)

    def cdf(self, value: Tensor) -> Tensor:
        return -(-((self._value(value) / self.scale).clamp_min(0.0) ** self.concentration)).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (-(-value).log1p()) ** (1 / self.concentration)

    def entropy(self) -> Tensor:
        return _EULER * (1 - 1 / self.concentration) + (self.scale / self.concentration).log() + 1


@in_double
def _weibull_variance(scale: Tensor, k: Tensor) -> Tensor:
    first, second = (1 + 1 / k).lgamma(), (1 + 2 / k).lgamma()
    return scale.square() * (2 * first).exp() * (second - 2 * first).expm1()


class Pareto(ByInversion):
    """The Pareto distribution from `scale` on, with the survival function `(scale / x)^alpha`.

    Example:
        >>> d = wg.distributions.Pareto(1.0, 3.0)
        >>> d.mean, d.log_prob(wg.tensor(2.0))
        (tensor(1.5), tensor(-1.674))
    """

    arg_constraints: ClassVar[Any] = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Parameter, alpha: Parameter, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        super().__init__(self.scale.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From the scale on."""
        return constraints.greater_than_eq(self.scale)

    mode = property(lambda self: self.scale)

    @property
    def mean(self) -> Tensor:
        """The mean, infinite for `alpha` up to 1."""
        a = self.alpha.clamp_min(1.0)
        return self.scale * a / (a - 1)

    @property
    def variance(self) -> Tensor:
        """The variance, infinite for `alpha` up to 2."""
        a = self.alpha.clamp_min(2.0)
        return self.scale.square() * a / ((a - 1).square() * (a - 2))

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._value(value)
        found = self.alpha.log() - value.log() - self.alpha * (value / self.scale).log()
        return wg.where(value < self.scale, -wg.inf, found)

    def cdf(self, value: Tensor) -> Tensor:
        return -(-self.alpha * (self._value(value) / self.scale).clamp_min(1.0).log()).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (-(-value).log1p() / self.alpha).exp()

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + 1 + 1 / self.alpha


class GeneralizedPareto(ByInversion):
    """The distribution of excesses over a threshold: `(1 + c z)^(-1 / c)` of them exceed
    `z = (x - loc) / scale`.

    Args:
        loc: the threshold.
        scale: the unit of excesses.
        concentration: `c`; heavy tails above 0, exponential ones at 0, an end at `loc - scale / c` below.

    Example:
        >>> d = wg.distributions.GeneralizedPareto(0.0, 1.0, wg.tensor([-1.0, 0.0, 0.5]))
        >>> d.cdf(wg.tensor(0.5))
        tensor([0.5000, 0.3935, 0.3600])
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }

    def __init__(
        self, loc: Parameter, scale: Parameter, concentration: Parameter, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From the threshold on, up to the end if there is one."""
        c = self.concentration
        end = self.loc - self.scale / wg.where(c < 0, c, -1.0)
        return constraints.interval(self.loc, wg.where(c < 0, end, wg.inf))

    mode = property(lambda self: self.loc)

    @property
    def mean(self) -> Tensor:
        """The mean, infinite for a concentration from 1 on."""
        return self.loc + self.scale / (1 - self.concentration.clamp_max(1.0))

    @property
    def variance(self) -> Tensor:
        """The variance, infinite for a concentration from 1/2 on."""
        c = self.concentration.clamp_max(0.5)
        return self.scale.square() / ((1 - c).square() * (1 - 2 * c))

    def _log_survival(self, value: Tensor) -> tuple[Tensor, Tensor]:
        """`z`, and the logarithm of the probability above it."""
        z = ((self._value(value) - self.loc) / self.scale).clamp_max(wg.finfo(self.loc.dtype).max)
        c = self.concentration
        inside = wg.where(c * z > -1, z, -1 / wg.where(c < 0, c, -1.0))
        return z, -log1p_over(inside.clamp_min(0.0), c)

    def log_prob(self, value: Tensor) -> Tensor:
        z, log_survival = self._log_survival(value)
        outside = (z < 0) | (self.concentration * z < -1) | (value == wg.inf)
        # At the end the density is 0, constant or infinite.
        rest = (1 + self.concentration) * log_survival
        rest = wg.where((self.concentration == -1) & (z == 1), 0.0, rest)
        return wg.where(outside, -wg.inf, rest - self.scale.log())

    def cdf(self, value: Tensor) -> Tensor:
        return -self._log_survival(value)[1].expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * expm1_over(-(-value).log1p(), self.concentration)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
