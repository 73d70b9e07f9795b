"""The gamma distribution, and distributions of ratios of gamma variates: chi-squared, inverse gamma,
Student's t, F.

Samples are differentiable in all parameters: `samplers.gamma_sample` moves with the concentration.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import wengert as wg
from wengert._core import Tensor

from . import constraints
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .numerics.incomplete import gammainc, gammaincc
from .numerics.samplers import gamma_sample, log_gamma_sample
from .numerics.special import half_step, in_double, log_beta_density, log_gamma_density
from .parameters import Parameter, broadcast_all
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform

__all__ = ["Chi2", "FisherSnedecor", "Gamma", "InverseGamma", "StudentT"]


def _no_zero(x: Tensor) -> Tensor:
    """Variates that underflow become the smallest normal number, which has a density."""
    return x.clamp_min(wg.finfo(x.dtype).tiny)


@in_double
def _gamma_log_prob(x: Tensor, a: Tensor, rate: Tensor) -> Tensor:
    return wg.where(x < 0, -wg.inf, log_gamma_density(a, rate * x.clamp_min(0.0)) + rate.log())


@in_double
def _gamma_entropy(a: Tensor, rate: Tensor) -> Tensor:
    return a - rate.log() + a.lgamma() + (1 - a) * a.digamma()


@in_double
def _draw_gamma(a: Tensor, rate: Tensor) -> Tensor:
    return gamma_sample(a) / rate


class Gamma(ExponentialFamily):
    """The gamma distribution, with a density proportional to `x^(concentration - 1) exp(-rate x)`.

    Example:
        >>> d = wg.distributions.Gamma(2.0, 1.0)
        >>> d.mean, d.log_prob(wg.tensor(1.0)), d.cdf(wg.tensor(1.0))
        (tensor(2.), tensor(-1.), tensor(0.2642))
    """

    arg_constraints: ClassVar[Any] = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration: Parameter, rate: Parameter, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp_min(0.0))
    variance = property(lambda self: self.concentration / self.rate.square())

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return _no_zero(_draw_gamma(self.concentration.expand(*shape), self.rate.expand(*shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        return _gamma_log_prob(self._value(value), self.concentration, self.rate)

    def cdf(self, value: Tensor) -> Tensor:
        return gammainc(self.concentration, self.rate * self._value(value).clamp_min(0.0))

    def entropy(self) -> Tensor:
        return _gamma_entropy(self.concentration, self.rate)

    _natural_params = property(lambda self: (self.concentration - 1, -self.rate))

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return (x + 1).lgamma() - (x + 1) * (-y).log()


class Chi2(Gamma):
    """The distribution of a sum of `df` squares of standard normal variates: a gamma distribution.

    Example:
        >>> d = wg.distributions.Chi2(3.0)
        >>> d.mean, d.cdf(wg.tensor(3.0))
        (tensor(3.), tensor(0.6084))
    """

    arg_constraints: ClassVar[Any] = {"df": constraints.positive}

    def __init__(self, df: Parameter, validate_args: bool | None = None) -> None:
        (df,) = broadcast_all(df)
        super().__init__(0.5 * df, 0.5, validate_args)

    df = property(lambda self: 2 * self.concentration)


@in_double
def _inverse_gamma_log_prob(x: Tensor, a: Tensor, rate: Tensor) -> Tensor:
    found = log_gamma_density(a, rate / x) + rate.log() - 2 * x.log()
    return wg.where((x <= 0) | (x == wg.inf), -wg.inf, found)


@in_double
def _inverse_gamma_entropy(a: Tensor, rate: Tensor) -> Tensor:
    return a + rate.log() + a.lgamma() - (1 + a) * a.digamma()


class InverseGamma(TransformedDistribution):
    """The distribution of `1 / x` for a gamma variate `x`.

    Example:
        >>> d = wg.distributions.InverseGamma(3.0, 1.0)
        >>> d.mean, d.log_prob(wg.tensor(0.5)), d.cdf(wg.tensor(0.5))
        (tensor(0.5), tensor(0.0794), tensor(0.6767))
    """

    arg_constraints: ClassVar[Any] = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Parameter, rate: Parameter, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=False)
        super().__init__(base, PowerTransform(-1.0), validate_args)

    concentration = property(lambda self: self.base_dist.concentration)
    rate = property(lambda self: self.base_dist.rate)
    mode = property(lambda self: self.rate / (self.concentration + 1))

    @property
    def mean(self) -> Tensor:
        """The mean, infinite for a concentration up to 1."""
        return self.rate / (self.concentration - 1).clamp_min(0.0)

    @property
    def variance(self) -> Tensor:
        """The variance, infinite for a concentration up to 2."""
        a = self.concentration
        found = self.rate.square() / ((a - 1).square() * (a - 2).clamp_min(0.0))
        return wg.where(a <= 2, wg.inf, found)

    def log_prob(self, value: Tensor) -> Tensor:
        return _inverse_gamma_log_prob(self._value(value), self.concentration, self.rate)

    def cdf(self, value: Tensor) -> Tensor:
        value = self._value(value)
        return wg.where(value <= 0, 0.0, gammaincc(self.concentration, self.rate / value.clamp_min(0.0)))

    def entropy(self) -> Tensor:
        return _inverse_gamma_entropy(self.concentration, self.rate)


@in_double
def _student_log_prob(x: Tensor, df: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    z = (x - loc) / scale
    normalizer = half_step(0.5 * df) - 0.5 * (math.pi * df).log() - scale.log()
    return normalizer - 0.5 * (df + 1) * (z.square() / df).log1p()


@in_double
def _student_entropy(df: Tensor, scale: Tensor) -> Tensor:
    half = 0.5 * df
    gap = (half + 0.5).digamma() - half.digamma()
    return 0.5 * (df + 1) * gap + 0.5 * (math.pi * df).log() - half_step(half) + scale.log()


@in_double
def _draw_student(df: Tensor) -> Tensor:
    log_ratio = (0.5 * df).log() - log_gamma_sample(0.5 * df)
    return wg.randn_like(df) * (0.5 * log_ratio).exp()


class StudentT(Distribution):
    """Student's t distribution.

    Args:
        df: degrees of freedom.
        loc: the median and mode.
        scale: the unit; for many degrees of freedom the standard deviation.

    Example:
        >>> d = wg.distributions.StudentT(3.0)
        >>> d.variance, d.log_prob(wg.tensor(1.0))
        (tensor(3.), tensor(-1.5763))
    """

    arg_constraints: ClassVar[Any] = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(
        self, df: Parameter, loc: Parameter = 0.0, scale: Parameter = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    mode = property(lambda self: self.loc)

    @property
    def mean(self) -> Tensor:
        """The mean; NaN for one degree of freedom or less."""
        return wg.where(self.df <= 1, wg.nan, self.loc)

    @property
    def variance(self) -> Tensor:
        """The variance; infinite up to two degrees of freedom, NaN up to one."""
        found = self.scale.square() * self.df / (self.df - 2).clamp_min(0.0)
        return wg.where(self.df <= 1, wg.nan, found)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.loc + self.scale * _draw_student(self.df.expand(*self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        return _student_log_prob(self._value(value), self.df, self.loc, self.scale)

    def entropy(self) -> Tensor:
        return _student_entropy(self.df, self.scale)


@in_double
def _fisher_log_prob(x: Tensor, m: Tensor, n: Tensor) -> Tensor:
    # m x / (m x + n) is a beta variate.
    total = m * x.clamp_min(0.0) + n
    found = log_beta_density(0.5 * m, 0.5 * n, m * x / total, n / total) + (m * n).log() - 2 * total.log()
    return wg.where((x < 0) | (x == wg.inf), -wg.inf, found)


@in_double
def _draw_fisher(m: Tensor, n: Tensor) -> Tensor:
    return (log_gamma_sample(0.5 * m) - log_gamma_sample(0.5 * n) + n.log() - m.log()).exp()


class FisherSnedecor(Distribution):
    """The F distribution: of the ratio of two chi-squared variates, each over its degrees of freedom.

    Args:
        df1: degrees of freedom of the numerator.
        df2: degrees of freedom of the denominator.

    Example:
        >>> d = wg.distributions.FisherSnedecor(2.0, 5.0)
        >>> d.mean, d.log_prob(wg.tensor(1.0))
        (tensor(1.6667), tensor(-1.1777))
    """

    arg_constraints: ClassVar[Any] = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Parameter, df2: Parameter, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The mean; NaN for `df2` up to 2."""
        return wg.where(self.df2 <= 2, wg.nan, self.df2 / (self.df2 - 2))

    @property
    def mode(self) -> Tensor:
        """The mode; NaN for `df1` up to 2."""
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return wg.where(self.df1 <= 2, wg.nan, found)

    @property
    def variance(self) -> Tensor:
        """The variance; NaN for `df2` up to 4."""
        m, n = self.df1, self.df2
        found = 2 * n.square() * (m + n - 2) / (m * (n - 2).square() * (n - 4))
        return wg.where(n <= 4, wg.nan, found)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return _no_zero(_draw_fisher(self.df1.expand(*shape), self.df2.expand(*shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        return _fisher_log_prob(self._value(value), self.df1, self.df2)
