"""Distributions of counts: Poisson, binomial, negative binomial, multinomial."""

from collections.abc import Sequence
from typing import Any, ClassVar

import wengert as wg
from wengert._core import Tensor

from . import constraints
from .binary import ByOdds, odds
from .categorical import OverCategories
from .exp_family import ExponentialFamily
from .numerics.samplers import binomial_sample, log_gamma_sample, poisson_sample
from .numerics.special import in_double, log_gamma_density
from .parameters import Parameter, broadcast_all, times

__all__ = ["Binomial", "Multinomial", "NegativeBinomial", "Poisson"]


@in_double
def _poisson_log_prob(k: Tensor, rate: Tensor) -> Tensor:
    return wg.where((k < 0) | (k == wg.inf), -wg.inf, log_gamma_density(k.clamp_min(0) + 1, rate))


class Poisson(ExponentialFamily):
    """The Poisson distribution of counts.

    Args:
        rate: the mean, which may be 0.

    Example:
        >>> d = wg.distributions.Poisson(4.0)
        >>> d.log_prob(wg.tensor(3.0)), d.variance
        (tensor(-1.6329), tensor(4.))
    """

    arg_constraints: ClassVar[Any] = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Parameter, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = variance = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with wg.no_grad():
            return poisson_sample(self.rate.expand(*self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        return _poisson_log_prob(self._value(value), self.rate)

    _natural_params = property(lambda self: (self.rate.log(),))

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return natural_params[0].exp()

    @property
    def _mean_carrier_measure(self) -> Tensor:
        # The mean of -log(x!) has no closed form.
        raise self._missing("entropy")


def _with_odds(k: Tensor, n: Tensor, param: Tensor, logits: bool) -> Tensor:
    """`log` of `n! / (k! (n - k)!) p^k (1 - p)^(n - k)`, also for broken `n`: three Poisson probabilities."""
    p, q, log_p, log_q = odds(param, logits)
    log_n = n.log()
    return (
        log_gamma_density(k + 1, n * p, log_n + log_p)
        + log_gamma_density(n - k + 1, n * q, log_n + log_q)
        - log_gamma_density(n + 1, n, log_n)
    )


@in_double
def _binomial_log_prob(k: Tensor, n: Tensor, param: Tensor, logits: bool) -> Tensor:
    outside = (k < 0) | (k > n)
    # Not by a minimum, whose slope is split between k and n where they are equal.
    return wg.where(outside, -wg.inf, _with_odds(wg.where(outside, n, k), n, param, logits))


class Binomial(ByOdds):
    """The distribution of the number of successes in `total_count` independent trials.

    Args:
        total_count: numbers of trials.
        probs: probabilities of a success.
        logits: their logits, instead.

    Example:
        >>> d = wg.distributions.Binomial(4, wg.tensor([0.25, 0.5]))
        >>> d.mean, d.log_prob(wg.tensor(2.0))
        (tensor([1., 2.]), tensor([-1.5562, -0.9808]))
    """

    arg_constraints: ClassVar[Any] = ByOdds.arg_constraints | {"total_count": constraints.nonnegative_integer}
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Parameter = 1,
        probs: Parameter | None = None,
        logits: Parameter | None = None,
        validate_args: bool | None = None,
    ) -> None:
        (self.total_count,) = self._take_odds(probs, logits, total_count)
        super().__init__(self.total_count.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """Up to the number of trials."""
        return constraints.integer_interval(0, self.total_count)

    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().minimum(self.total_count))

    @property
    def variance(self) -> Tensor:
        """The variance."""
        p, q, _, _ = self._odds()
        return self.total_count * p * q

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with wg.no_grad():
            return binomial_sample(self.total_count.expand(*shape), self.probs.expand(*shape))

    def log_prob(self, value: Tensor) -> Tensor:
        return _binomial_log_prob(self._value(value), self.total_count, self._param, self._given == "logits")

    def _values(self) -> Tensor:
        """All counts up to the largest number of trials, along a first axis."""
        most = int(self.total_count.max().item()) if self.total_count.numel() else 0
        values = wg.arange(most + 1, device=self._param.device).to(self._param.dtype)
        return values.reshape(-1, *[1] * len(self._batch_shape))

    def entropy(self) -> Tensor:
        k = self._values()
        log = _binomial_log_prob(k, self.total_count, self._param, self._given == "logits")
        return -times(log.exp(), log).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Returns all counts along a new first axis.

        Raises:
            NotImplementedError: numbers of trials differ.
        """
        values = self._values()
        if not bool((self.total_count == len(values) - 1).all()):
            raise NotImplementedError("Binomial: enumerate_support needs one total_count for the whole batch")
        return values.expand(len(values), *self._batch_shape) if expand else values


@in_double
def _negative_binomial_log_prob(k: Tensor, r: Tensor, param: Tensor, logits: bool) -> Tensor:
    count = k.clamp_min(0)
    _, _, log_p, log_q = odds(param, logits)
    # The share r / (r + k) of a binomial probability; both are 0 over 0 for no trials at all.
    n = wg.where(count == 0, r + 1, r + count)
    # For 0 as it stands in books, since that has the slope in k: no large numbers are there to cancel.
    some = wg.where(r == 0, 1, r)
    none = (some + count).lgamma() - some.lgamma() - (count + 1).lgamma() + times(count, log_p)
    found = _with_odds(count, n, param, logits) + r.log() - n.log()
    found = wg.where(count == 0, times(r, log_q) + none, found)
    return wg.where((k < 0) | (k == wg.inf), -wg.inf, found)


@in_double
def _draw_negative_binomial(r: Tensor, logits: Tensor) -> Tensor:
    return poisson_sample((log_gamma_sample(r) + logits).exp())


class NegativeBinomial(ByOdds):
    """The distribution of the number of successes before failure number `total_count`.

    Args:
        total_count: numbers of failures, which need not be whole.
        probs: probabilities of a success, below 1.
        logits: their logits, instead.

    Example:
        >>> d = wg.distributions.NegativeBinomial(3.0, wg.tensor(0.25))
        >>> d.mean, d.log_prob(wg.tensor(2.0))
        (tensor(1.), tensor(-1.8439))
    """

    arg_constraints: ClassVar[Any] = {
        "total_count": constraints.nonnegative,
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Parameter,
        probs: Parameter | None = None,
        logits: Parameter | None = None,
        validate_args: bool | None = None,
    ) -> None:
        (self.total_count,) = self._take_odds(probs, logits, total_count)
        super().__init__(self.total_count.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        p, q, _, _ = self._odds()
        return self.total_count * p / q

    @property
    def mode(self) -> Tensor:
        """The mode."""
        p, q, _, _ = self._odds()
        return ((self.total_count - 1) * p / q).floor().clamp_min(0.0)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.mean / self._odds()[1]

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with wg.no_grad():
            return _draw_negative_binomial(
                self.total_count.detach().expand(*shape), self.logits.detach().expand(*shape)
            )

    def log_prob(self, value: Tensor) -> Tensor:
        given = self._given == "logits"
        return _negative_binomial_log_prob(self._value(value), self.total_count, self._param, given)


@in_double
def _multinomial_log_prob(k: Tensor, log_p: Tensor) -> Tensor:
    n = k.sum(-1, keepdim=True)
    log_n = n.log()
    parts = log_gamma_density(k + 1, n * log_p.exp(), log_n + log_p).sum(-1)
    return parts - log_gamma_density(n + 1, n, log_n).squeeze(-1)


class Multinomial(OverCategories):
    """The distribution of how often each category comes up in `total_count` draws.

    Args:
        total_count: the number of draws, for the whole batch.
        probs: probabilities `(..., categories)`, normalised here.
        logits: their logarithms up to a constant, instead.

    Example:
        >>> d = wg.distributions.Multinomial(3, wg.tensor([1.0, 2.0, 1.0]))
        >>> d.mean, d.log_prob(wg.tensor([1.0, 1.0, 1.0]))
        (tensor([0.75, 1.50, 0.75]), tensor(-1.674))
    """

    def __init__(
        self,
        total_count: int | Tensor = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if isinstance(total_count, Tensor) and not total_count.ndim:
            total_count = int(total_count.item())
        if not isinstance(total_count, int):
            raise NotImplementedError("Multinomial: one total_count, an int, is expected for the whole batch")
        self.total_count = total_count
        shape = self._take_categories(probs, logits)
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        """Counts of so many draws."""
        return constraints.multinomial(self.total_count)

    mean = property(lambda self: self.total_count * self.probs)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with wg.no_grad():
            draws = self._draw((self.total_count, *sample_shape)).movedim(0, -1)
            counts = wg.zeros(
                self._extended_shape(sample_shape), dtype=self._param.dtype, device=draws.device
            )
            return counts.scatter_add(-1, draws, wg.ones_like(draws, dtype=counts.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        return _multinomial_log_prob(self._value(value), self.logits)

    def entropy(self) -> Tensor:
        n = wg.tensor(float(self.total_count), dtype=self._param.dtype, device=self._param.device)
        k = wg.arange(1, self.total_count + 1, device=n.device).to(n.dtype)
        k = k.reshape(-1, *[1] * len(self.param_shape))
        log = _binomial_log_prob(k, n, self.probs, False)
        parts = (log.exp() * (k + 1).lgamma()).sum((0, -1))
        return self.total_count * self._entropy_of_one() - (n + 1).lgamma() + parts
