"""Batches of independent distributions as one distribution of larger events."""

from collections.abc import Sequence
from typing import Any, Self

from wengert._core import Tensor

from . import constraints
from .distribution import Distribution
from .transforms.base import sum_last

__all__ = ["Independent"]


class Independent(Distribution):
    """A distribution whose last `reinterpreted_batch_ndims` batch axes are part of an event.

    Args:
        base_distribution: of independent parts; `base_dist` of the result.
        reinterpreted_batch_ndims: how many axes of its batch are moved.

    Raises:
        ValueError: its batch has fewer axes.

    Example:
        >>> D = wg.distributions
        >>> d = D.Independent(D.Normal(wg.zeros(3), 1.0), 1)
        >>> d.batch_shape, d.event_shape, d.log_prob(wg.zeros(3))
        (Size([]), Size([3]), tensor(-2.7568))
    """

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        batch = base_distribution.batch_shape
        if not 0 <= reinterpreted_batch_ndims <= len(batch):
            raise ValueError(
                f"Independent: reinterpreted_batch_ndims must lie between 0 and {len(batch)}, the number of "
                f"axes of the batch of {type(base_distribution).__name__}, got {reinterpreted_batch_ndims}"
            )
        cut = len(batch) - reinterpreted_batch_ndims
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        super().__init__(batch[:cut], (*batch[cut:], *base_distribution.event_shape), validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)
    has_enumerate_support = property(
        lambda self: self.base_dist.has_enumerate_support and not self.reinterpreted_batch_ndims
    )
    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    @constraints.dependent_property
    def support(self) -> Any:
        """That of the parts."""
        base, n = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(base, n) if n else base

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new = super().expand(batch_shape, _instance)
        moved = self.event_shape[: self.reinterpreted_batch_ndims]
        new.base_dist = self.base_dist.expand((*batch_shape, *moved))
        return new

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        found = self.base_dist.log_prob(self._value(value))
        return sum_last(found, self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Returns the values of the base.

        Raises:
            NotImplementedError: axes are reinterpreted: values would be all combinations of those of the
                parts.
        """
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Independent: enumerate_support of several parts would be a product")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        """Returns the base and the number of axes."""
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"
