"""Distributions on intervals and simplices: beta, Dirichlet, Kumaraswamy."""

from collections.abc import Sequence
from typing import Any, ClassVar

import wengert as wg
from wengert._core import Tensor

from . import constraints
from .distribution import ByInversion
from .exp_family import ExponentialFamily
from .numerics.samplers import log_gamma_sample
from .numerics.special import in_double, log_beta, log_beta_density, log_gamma_density
from .parameters import Parameter, broadcast_all

__all__ = ["Beta", "Dirichlet", "Kumaraswamy"]

_EULER = 0.57721566490153286061


def _inside(x: Tensor) -> Tensor:
    """Variates that round to 0 or 1 become the nearest numbers between."""
    limits = wg.finfo(x.dtype)
    return x.clamp(limits.tiny, 1 - limits.eps / 2)


@in_double
def _beta_log_prob(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    inside = x.clamp(0.0, 1.0)
    return wg.where((x < 0) | (x > 1), -wg.inf, log_beta_density(a, b, inside, 1 - inside))


@in_double
def _beta_entropy(a: Tensor, b: Tensor) -> Tensor:
    s = a + b
    return log_beta(a, b) - (a - 1) * a.digamma() - (b - 1) * b.digamma() + (s - 2) * s.digamma()


@in_double
def _draw_beta(a: Tensor, b: Tensor) -> Tensor:
    return (log_gamma_sample(a) - log_gamma_sample(b)).sigmoid()


class Beta(ExponentialFamily):
    """The beta distribution, with a density proportional to
    `x^(concentration1 - 1) (1 - x)^(concentration0 - 1)`.

    Example:
        >>> d = wg.distributions.Beta(2.0, 3.0)
        >>> d.mean, d.mode, d.log_prob(wg.tensor(0.5))
        (tensor(0.4), tensor(0.3333), tensor(0.4055))
    """

    arg_constraints: ClassVar[Any] = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Parameter, concentration0: Parameter, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    mean = property(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))

    @property
    def mode(self) -> Tensor:
        """The mode; NaN where the density is constant, or infinite at both ends."""
        up, down = (self.concentration1 - 1).clamp_min(0.0), (self.concentration0 - 1).clamp_min(0.0)
        return up / (up + down)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        a, b = self.concentration1, self.concentration0
        return a / (a + b) * (b / (a + b)) / (a + b + 1)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return _inside(_draw_beta(self.concentration1.expand(*shape), self.concentration0.expand(*shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        return _beta_log_prob(self._value(value), self.concentration1, self.concentration0)

    def entropy(self) -> Tensor:
        return _beta_entropy(self.concentration1, self.concentration0)

    _natural_params = property(lambda self: (self.concentration1 - 1, self.concentration0 - 1))

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return log_beta(x + 1, y + 1)


@in_double
def _dirichlet_log_prob(x: Tensor, a: Tensor) -> Tensor:
    s = a.sum(-1)
    parts = log_gamma_density(a, s.unsqueeze(-1) * x).sum(-1) - log_gamma_density(s, s)
    # The last term is 0 on the simplex: the gradient in x is that of the density's formula, (a - 1) / x.
    return parts + (a.shape[-1] - 1) * s.log() + s * (x.sum(-1) - 1)


@in_double
def _dirichlet_entropy(a: Tensor) -> Tensor:
    s = a.sum(-1)
    parts = (a.lgamma() - (a - 1) * a.digamma()).sum(-1)
    return parts - s.lgamma() + (s - a.shape[-1]) * s.digamma()


@in_double
def _draw_dirichlet(a: Tensor) -> Tensor:
    return log_gamma_sample(a).softmax(-1)


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution on the simplex: of gamma variates over their sum.

    Args:
        concentration: positive, `(..., n)`.

    Example:
        >>> d = wg.distributions.Dirichlet(wg.tensor([1.0, 2.0, 3.0]))
        >>> d.mean, d.log_prob(wg.tensor([0.2, 0.3, 0.5]))
        (tensor([0.1667, 0.3333, 0.5000]), tensor(1.5041))
    """

    arg_constraints: ClassVar[Any] = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        (self.concentration,) = broadcast_all(concentration)
        shape = self.concentration.shape
        if not shape:
            raise ValueError(
                "Dirichlet: concentration needs an axis, along which it sums; got a single number"
            )
        super().__init__(shape[:-1], shape[-1:], validate_args)

    mean = property(lambda self: self.concentration / self.concentration.sum(-1, keepdim=True))

    @property
    def mode(self) -> Tensor:
        """The mode, on the boundary where a concentration is 1 or less; NaN where all of them are."""
        over = (self.concentration - 1).clamp_min(0.0)
        return over / over.sum(-1, keepdim=True)

    @property
    def variance(self) -> Tensor:
        """The variances of the parts."""
        mean = self.mean
        return mean * (1 - mean) / (self.concentration.sum(-1, keepdim=True) + 1)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        draws = _draw_dirichlet(self.concentration.expand(*self._extended_shape(sample_shape)))
        return draws.clamp_min(wg.finfo(draws.dtype).tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        return _dirichlet_log_prob(self._value(value), self.concentration)

    def entropy(self) -> Tensor:
        return _dirichlet_entropy(self.concentration)

    _natural_params = property(lambda self: (self.concentration - 1,))

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        a = natural_params[0] + 1
        return a.lgamma().sum(-1) - a.sum(-1).lgamma()


@in_double
def _kumaraswamy_log_prob(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    inside = x.clamp(0.0, 1.0)
    # 1 - x^a without cancellation near 1.
    rest = -(a * inside.log()).expm1()
    found = (a * b).log() + (a - 1).xlogy(inside) + (b - 1).xlogy(rest)
    return wg.where((x < 0) | (x > 1), -wg.inf, found)


@in_double
def _kumaraswamy_moment(n: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return (b.log() + log_beta(1 + n / a, b)).exp()


class Kumaraswamy(ByInversion):
    """The Kumaraswamy distribution, with the distribution function
    `1 - (1 - x^concentration1)^concentration0`.

    Example:
        >>> d = wg.distributions.Kumaraswamy(2.0, 3.0)
        >>> d.mean, d.log_prob(wg.tensor(0.5))
        (tensor(0.4571), tensor(0.5232))
    """

    arg_constraints: ClassVar[Any] = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval

    def __init__(
        self, concentration1: Parameter, concentration0: Parameter, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    def _moment(self, n: float) -> Tensor:
        a = self.concentration1
        return _kumaraswamy_moment(wg.full_like(a, n), a, self.concentration0)

    mean = property(lambda self: self._moment(1.0))
    variance = property(lambda self: self._moment(2.0) - self._moment(1.0).square())

    @property
    def mode(self) -> Tensor:
        """The mode; NaN where the density is constant, or infinite at an end."""
        a, b = self.concentration1, self.concentration0
        found = ((a - 1) / (a * b - 1)) ** (1 / a)
        return wg.where((a < 1) | (b < 1), wg.nan, found)

    def log_prob(self, value: Tensor) -> Tensor:
        return _kumaraswamy_log_prob(self._value(value), self.concentration1, self.concentration0)

    def cdf(self, value: Tensor) -> Tensor:
        rest = (-(self._value(value).clamp(0.0, 1.0) ** self.concentration1)).log1p()
        return -(self.concentration0 * rest).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return (-((-value).log1p() / self.concentration0).expm1()) ** (1 / self.concentration1)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return _inside(super().rsample(sample_shape))

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + _EULER
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - (a * b).log()
