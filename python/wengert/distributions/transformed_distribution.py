"""Distributions of transformed variates."""

from collections.abc import Sequence
from typing import Any, Self

import wengert as wg
from wengert._core import Tensor

from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .transforms.base import sum_last

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of `transforms(x)` for `x` of a base distribution.

    The density follows from that of the base and the determinants of the Jacobians; the transforms must be
    bijective for it.

    Args:
        base_distribution: of `x`.
        transforms: one, or several of which the first comes first.

    Example:
        >>> D = wg.distributions
        >>> d = D.TransformedDistribution(D.Normal(0.0, 1.0), [D.ExpTransform()])
        >>> d.log_prob(wg.tensor(1.0))
        tensor(-0.9189)
    """

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError(f"{type(self).__name__}: transforms must be Transforms, got {transforms!r}")
        whole = ComposeTransform(self.transforms)
        base_shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        domain, codomain = whole.domain.event_dim, whole.codomain.event_dim
        if len(base_shape) < domain:
            raise ValueError(
                f"{type(self).__name__}: the transforms need {domain} axes or more, the base distribution "
                f"has shape {base_shape}"
            )
        shape = whole.forward_shape(base_shape)
        # The base broadcast to what the transforms make of it, with as many event axes as they need.
        expanded = whole.inverse_shape(shape)
        base_event = len(base_distribution.event_shape)
        if tuple(base_shape) != tuple(expanded):
            base_distribution = base_distribution.expand(expanded[: len(expanded) - base_event])
        if domain > base_event:
            base_distribution = Independent(base_distribution, domain - base_event, validate_args=False)
        self.base_dist = base_distribution
        event = max(len(base_distribution.event_shape) - domain + codomain, codomain)
        cut = len(shape) - event
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    @constraints.dependent_property
    def support(self) -> Any:
        """The set that the last transform maps to."""
        if not self.transforms:
            return self.base_dist.support
        codomain = self.transforms[-1].codomain
        more = len(self.event_shape) - codomain.event_dim
        return constraints.independent(codomain, more) if more > 0 else codomain

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new = super().expand(batch_shape, _instance)
        whole = ComposeTransform(self.transforms)
        base = whole.inverse_shape((*batch_shape, *self.event_shape))
        new.base_dist = self.base_dist.expand(base[: len(base) - len(self.base_dist.event_shape)])
        return new

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with wg.no_grad():
            return self._moved(self.base_dist.sample(sample_shape)).detach()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._moved(self.base_dist.rsample(sample_shape))

    def _moved(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        y, event = self._value(value), len(self.event_shape)
        total: Any = 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event += transform.domain.event_dim - transform.codomain.event_dim
            total = total - sum_last(transform.log_abs_det_jacobian(x, y), event - transform.domain.event_dim)
            y = x
        base = self.base_dist.log_prob(y)
        return total + sum_last(base, event - len(self.base_dist.event_shape))

    def _falls(self) -> Any:
        """Whether the transforms reverse the order of numbers: a bool, or one for each element."""
        return ComposeTransform(self.transforms).sign < 0

    def cdf(self, value: Tensor) -> Tensor:
        x = ComposeTransform(self.transforms)._inv_call(self._value(value))
        found, falls = self.base_dist.cdf(x), self._falls()
        return (
            wg.where(falls, 1 - found, found) if isinstance(falls, Tensor) else 1 - found if falls else found
        )

    def icdf(self, value: Tensor) -> Tensor:
        falls = self._falls()
        p = wg.where(falls, 1 - value, value) if isinstance(falls, Tensor) else 1 - value if falls else value
        return self._moved(self.base_dist.icdf(p))

    def __repr__(self) -> str:
        """Returns the parameters, or base and transforms."""
        if type(self) is not TransformedDistribution:
            return super().__repr__()
        return f"TransformedDistribution({self.base_dist!r}, {self.transforms!r})"
