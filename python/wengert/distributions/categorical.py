"""Distributions over categories, as numbers and as unit vectors."""

from collections.abc import Sequence
from typing import Any, ClassVar

import wengert as wg
from wengert._core import Tensor
from wengert._kinds import Size
from wengert.composed._method import index_dtype

from . import constraints
from .distribution import Distribution
from .parameters import broadcast_all, lazy_property, logits_to_probs, one_of, probs_to_logits, times

__all__ = ["Categorical", "OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OverCategories(Distribution):
    """A distribution that is given by `probs` or `logits` along the last axis; both are normalised."""

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def _take_categories(self, probs: Any, logits: Any) -> Size:
        """Sets the one that is given, normalised, and returns its shape."""
        who = type(self).__name__
        self._given = one_of(who, probs=probs, logits=logits)
        (param,) = broadcast_all(probs if logits is None else logits)
        if not param.ndim:
            raise ValueError(f"{who}: {self._given} needs an axis of categories; got a single number")
        normalised = param / param.sum(-1, keepdim=True) if logits is None else param.log_softmax(-1)
        self.__dict__[self._given] = normalised
        return Size(param.shape)

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities."""
        return logits_to_probs(self.logits)

    @lazy_property
    def logits(self) -> Tensor:
        """Logarithms of the probabilities; minus infinity for those that are 0."""
        return probs_to_logits(self.probs)

    _param = property(lambda self: self.__dict__[self._given])
    param_shape = property(lambda self: Size(self._param.shape))
    _num_events = property(lambda self: self._param.shape[-1])

    def _draw(self, sample_shape: Sequence[int]) -> Tensor:
        """Numbers of categories, of shape `sample_shape + batch_shape`."""
        shape = self._extended_shape(sample_shape)
        shape = shape[: len(shape) - len(self._event_shape)]
        count = 1
        for n in sample_shape:
            count *= n
        if not all(shape):
            return wg.zeros(shape, dtype=wg.int64, device=self._param.device)
        table = self.probs.detach().reshape(-1, self._num_events)
        return wg.multinomial(table, count, replacement=True).T.reshape(*shape)

    def _entropy_of_one(self) -> Tensor:
        return -times(self.probs, self.logits).sum(-1)


class Categorical(OverCategories):
    """The distribution of the number of a category, from 0 on.

    Args:
        probs: probabilities `(..., categories)`, normalised here.
        logits: their logarithms up to a constant, instead.

    Example:
        >>> d = wg.distributions.Categorical(wg.tensor([1.0, 1.0, 2.0]))
        >>> d.probs, d.log_prob(wg.tensor([0, 2])), d.entropy()
        (tensor([0.25, 0.25, 0.50]), tensor([-1.3863, -0.6931]), tensor(1.0397))
    """

    has_enumerate_support = True

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(self._take_categories(probs, logits)[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """From 0 to the last category."""
        return constraints.integer_interval(0, self._num_events - 1)

    mean = variance = property(lambda self: wg.full_like(self._param[..., 0], wg.nan))
    mode = property(lambda self: self._param.argmax(-1))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with wg.no_grad():
            return self._draw(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        index = self._value(value)
        index = index.to(index_dtype(index)) if index.is_floating_point() else index
        shape = wg.broadcast_shapes(index.shape, self._batch_shape)
        logits = self.logits.expand(*shape, self._num_events)
        return logits.gather(-1, index.expand(*shape).unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        return self._entropy_of_one()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._num_events
        values = wg.arange(n, device=self._param.device).reshape(n, *[1] * len(self._batch_shape))
        return values.expand(n, *self._batch_shape) if expand else values


class OneHotCategorical(OverCategories):
    """The distribution of a unit vector, 1 at the place of a category.

    Args:
        probs: probabilities `(..., categories)`, normalised here.
        logits: their logarithms up to a constant, instead.

    Example:
        >>> d = wg.distributions.OneHotCategorical(wg.tensor([1.0, 3.0]))
        >>> d.event_shape, d.log_prob(wg.tensor([0.0, 1.0]))
        (Size([2]), tensor(-0.2877))
    """

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        shape = self._take_categories(probs, logits)
        super().__init__(shape[:-1], shape[-1:], validate_args)

    mean = property(lambda self: self.probs)
    mode = property(lambda self: self._one_hot(self._param.argmax(-1)))
    variance = property(lambda self: self.probs * (1 - self.probs))

    def _one_hot(self, index: Tensor) -> Tensor:
        categories = wg.arange(self._num_events, device=self._param.device)
        return (index.unsqueeze(-1) == categories).to(self._param.dtype)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with wg.no_grad():
            return self._one_hot(self._draw(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        return times(self._value(value), self.logits).sum(-1)

    def entropy(self) -> Tensor:
        return self._entropy_of_one()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._num_events
        values = wg.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape(n, *[1] * len(self._batch_shape), n)
        return values.expand(n, *self._batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` whose draws have the gradient of the probabilities (Bengio et al. 2013).

    Example:
        >>> d = wg.distributions.OneHotCategoricalStraightThrough(wg.tensor([1.0, 3.0]))
        >>> d.rsample().sum(), d.has_rsample
        (tensor(1.), True)
    """

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
