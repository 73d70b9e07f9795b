"""Mixtures of distributions of one family."""

from collections.abc import Sequence
from typing import Any, Self

import wengert as wg
from wengert._core import Tensor

from . import constraints
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture: a categorical variate picks one of the components along the last axis of their batch.

    Args:
        mixture_distribution: a `Categorical` with batch `(...)` or `()`, over as many categories as there are
            components.
        component_distribution: with batch `(..., components)`.

    Raises:
        ValueError: the shapes do not fit.

    Example:
        >>> D = wg.distributions
        >>> d = D.MixtureSameFamily(D.Categorical(wg.ones(2)), D.Normal(wg.tensor([-1.0, 1.0]), 0.5))
        >>> d.mean, d.variance, d.log_prob(wg.tensor(0.0))
        (tensor(0.), tensor(1.25), tensor(-2.2258))
    """

    def __init__(
        self,
        mixture_distribution: Any,
        component_distribution: Any,
        validate_args: bool | None = None,
    ) -> None:
        self._mixture_distribution, self._component_distribution = (
            mixture_distribution,
            component_distribution,
        )
        if not isinstance(mixture_distribution, Categorical):
            got = type(mixture_distribution).__name__
            raise ValueError(f"MixtureSameFamily: mixture_distribution must be a Categorical, got {got}")
        if not isinstance(component_distribution, Distribution):
            got = type(component_distribution).__name__
            raise ValueError(f"MixtureSameFamily: component_distribution must be a Distribution, got {got}")
        batch, mixture = component_distribution.batch_shape, mixture_distribution.batch_shape
        count = mixture_distribution.param_shape[-1]
        if (
            not batch
            or batch[-1] != count
            or any(m != n and m != 1 for m, n in zip(reversed(mixture), reversed(batch[:-1])))
        ):
            raise ValueError(
                f"MixtureSameFamily: components of batch {tuple(batch)} do not fit {count} categories of "
                f"batch {tuple(mixture)}; expected (..., {count})"
            )
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)

    @constraints.dependent_property
    def support(self) -> Any:
        """That of the components."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new = super().expand(batch_shape, _instance)
        count = self._component_distribution.batch_shape[-1]
        new._component_distribution = self._component_distribution.expand((*batch_shape, count))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        return new

    def _padded(self, x: Tensor) -> Tensor:
        """A tensor over components with an axis of length 1 for each of an event."""
        return x.reshape(*x.shape, *[1] * len(self.event_shape))

    def _mixed(self, x: Tensor) -> Tensor:
        """The mean of a moment over the components."""
        place = -1 - len(self.event_shape)
        return (self._padded(self._mixture_distribution.probs) * x).sum(place)

    mean = property(lambda self: self._mixed(self._component_distribution.mean))

    @property
    def variance(self) -> Tensor:
        """The mean of the variances plus the variance of the means."""
        place = -1 - len(self.event_shape)
        apart = self._component_distribution.mean - self.mean.unsqueeze(place)
        return self._mixed(self._component_distribution.variance + apart.square())

    def _for_components(self, value: Tensor) -> Tensor:
        return value.unsqueeze(value.ndim - len(self.event_shape))

    def cdf(self, value: Tensor) -> Tensor:
        parts = self._component_distribution.cdf(self._for_components(self._value(value)))
        return (parts * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        parts = self._component_distribution.log_prob(self._for_components(self._value(value)))
        return (parts + self._mixture_distribution.logits).logsumexp(-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with wg.no_grad():
            event = len(self.event_shape)
            picked = self._mixture_distribution.expand(self.batch_shape).sample(sample_shape)
            parts = self._component_distribution.sample(sample_shape)
            index = picked.reshape(*picked.shape, *[1] * (1 + event))
            index = index.expand(*picked.shape, 1, *self.event_shape)
            return parts.gather(-1 - event, index).squeeze(-1 - event).detach()

    def __repr__(self) -> str:
        """Returns mixture and components."""
        return f"MixtureSameFamily({self._mixture_distribution!r}, {self._component_distribution!r})"
