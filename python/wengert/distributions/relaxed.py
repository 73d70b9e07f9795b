"""Coins and categories relaxed, so that draws are differentiable (Maddison et al., Jang et al. 2017)."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import wengert as wg
from wengert._core import Tensor
from wengert._kinds import Size

from . import constraints
from .binary import ByOdds
from .categorical import OverCategories
from .parameters import Parameter, clamp_probs, lazy_property, probs_to_logits
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform, SigmoidTransform

__all__ = ["ExpRelaxedCategorical", "LogitRelaxedBernoulli", "RelaxedBernoulli", "RelaxedOneHotCategorical"]


def _uniform(shape: Size, like: Tensor) -> Tensor:
    """Uniform numbers in the open interval (0, 1)."""
    return wg.rand(shape, dtype=like.dtype, device=like.device).clamp_min(wg.finfo(like.dtype).eps / 4)


class LogitRelaxedBernoulli(ByOdds):
    """The distribution of the logits of a `RelaxedBernoulli`: a logistic variate over the temperature.

    Example:
        >>> d = wg.distributions.relaxed.LogitRelaxedBernoulli(wg.tensor(2.0), logits=wg.tensor(0.0))
        >>> d.log_prob(wg.tensor(0.0))
        tensor(-0.6931)
    """

    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Parameter | None = None,
        logits: Parameter | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = wg.as_tensor(temperature)
        self._take_odds(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    @lazy_property
    def logits(self) -> Tensor:
        """Logits, finite also for probabilities that are 0 or 1."""
        return probs_to_logits(clamp_probs(self.probs), is_binary=True)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = _uniform(self._extended_shape(sample_shape), self._param)
        return (self.logits + u.log() - (-u).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        z = self.logits - self._value(value) * self.temperature
        return self.temperature.log() + z.logsigmoid() + (-z).logsigmoid()


class _Relaxed(TransformedDistribution):
    """A discrete distribution made continuous, by a transform of logits or logarithms."""

    has_rsample = True

    temperature = property(lambda self: self.base_dist.temperature)
    logits = property(lambda self: self.base_dist.logits)
    probs = property(lambda self: self.base_dist.probs)


class RelaxedBernoulli(_Relaxed):
    """A coin with values between 0 and 1, which draw near to 0 and 1 with the temperature.

    Args:
        temperature: positive.
        probs: probabilities of 1, as it falls to 0.
        logits: their logits, instead.

    Example:
        >>> d = wg.distributions.RelaxedBernoulli(wg.tensor(2.0), probs=wg.tensor(0.5))
        >>> d.log_prob(wg.tensor(0.5))
        tensor(0.6931)
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Parameter | None = None,
        logits: Parameter | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args)
        super().__init__(base, SigmoidTransform(), validate_args)


class ExpRelaxedCategorical(OverCategories):
    """The distribution of the logarithms of a `RelaxedOneHotCategorical`.

    Example:
        >>> d = wg.distributions.relaxed.ExpRelaxedCategorical(wg.tensor(1.0), logits=wg.zeros(2))
        >>> d.log_prob(wg.tensor([0.5, 0.5]).log())
        tensor(-1.3863)
    """

    # Vectors of logarithms of probabilities.
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = wg.as_tensor(temperature)
        shape = self._take_categories(probs, logits)
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @lazy_property
    def logits(self) -> Tensor:
        """Logarithms of the probabilities, finite also for those that are 0."""
        return clamp_probs(self.probs).log()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = _uniform(self._extended_shape(sample_shape), self._param)
        return ((self.logits - (-u.log()).log()) / self.temperature).log_softmax(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        n = self._num_events
        scores = (self.logits - self._value(value) * self.temperature).log_softmax(-1)
        return scores.sum(-1) + math.lgamma(n) + (n - 1) * self.temperature.log()


class RelaxedOneHotCategorical(_Relaxed):
    """A unit vector relaxed to the simplex, whose corners draw near with the temperature.

    Args:
        temperature: positive.
        probs: probabilities `(..., categories)` of the corners, as it falls to 0; normalised here.
        logits: their logarithms up to a constant, instead.

    Example:
        >>> d = wg.distributions.RelaxedOneHotCategorical(wg.tensor(1.0), probs=wg.tensor([1.0, 1.0]))
        >>> d.log_prob(wg.tensor([0.5, 0.5]))
        tensor(0.)
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)
