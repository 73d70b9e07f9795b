"""The base of all distributions: shapes, checks of parameters and values, and what follows from a density."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import wengert as wg
from wengert._core import Tensor
from wengert._kinds import Size

from . import constraints
from .constraints import Constraint
from .documented import Documented
from .parameters import lazy_property

__all__ = ["Distribution"]


def _unless_batched(value: Tensor) -> Any:
    """The number or list that a tensor holds; None where it cannot be looked at, or looking would wait."""
    if value.is_gpu:
        return None
    try:
        return value.tolist()
    except TypeError:
        return None


def _shortened(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def check(who: str, what: str, constraint: Constraint, value: Tensor) -> None:
    """Raises ValueError with the first element that does not satisfy a constraint; silent inside `vmap` and
    on GPUs."""
    if value.is_gpu:
        return
    valid = constraint.check(value).detach()
    if _unless_batched(valid.all()) in (True, None):
        return
    first = valid.reshape(-1).to(wg.int32).argmin()
    index = tuple(int(i) for i in wg.unravel_index(first, valid.shape)) if valid.ndim else ()
    place = f" at index {index}" if index else ""
    event = value.shape[value.ndim - constraint.event_dim :]
    found = value.detach().expand(*valid.shape, *event)[index]
    raise ValueError(
        f"{who}: {what} must satisfy {constraint.at(index, valid.shape)}, got "
        f"{_shortened(found.tolist())}{place}; validate_args=False skips this check"
    )


class Distribution(Documented):
    """The base of distributions: `batch_shape` lists independent ones, `event_shape` is the shape of one
    draw.

    A subclass sets its parameters, then calls `super().__init__(batch_shape, event_shape, validate_args)`; it
    defines `arg_constraints`, `support`, `log_prob`, and `rsample` (with `has_rsample = True`) or `sample`.
    Parameters that `arg_constraints` names are checked and expanded here. Docstrings of methods are
    inherited.

    Args:
        batch_shape: shape of the parameters, less the axes of an event.
        event_shape: shape of one draw; empty for numbers.
        validate_args: whether parameters, and values given to `log_prob`, are checked; by default they are,
            unless Python runs with `-O` or `set_default_validate_args` says otherwise. Values are not looked
            at inside `vmap` and on GPUs.

    Raises:
        ValueError: a parameter does not satisfy its constraint.

    Example:
        >>> d = wg.distributions.Normal(wg.zeros(3), 1.0)
        >>> d.batch_shape, d.sample((2,)).shape, d.log_prob(wg.zeros(3))
        (Size([3]), (2, 3), tensor([-0.9189, -0.9189, -0.9189]))
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    arg_constraints: ClassVar[Any] = {}
    _validate_args: bool = __debug__

    def __init__(
        self,
        batch_shape: Sequence[int] = (),
        event_shape: Sequence[int] = (),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            for name, constraint in self.arg_constraints.items():
                if self._is_given(name) and not constraints.is_dependent(constraint):
                    check(type(self).__name__, name, constraint, getattr(self, name))

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Sets whether distributions check their arguments where `validate_args` is not given.

        Example:
            >>> wg.distributions.Distribution.set_default_validate_args(True)
        """
        if not isinstance(value, bool):
            raise ValueError(f"set_default_validate_args: True or False expected, got {value!r}")
        Distribution._validate_args = value

    # ---- shapes -------------------------------------------------------------------------------------------

    @property
    def batch_shape(self) -> Size:
        """The shape of independent distributions, one for each set of parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one draw."""
        return self._event_shape

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> Size:
        """The shape of a sample."""
        if isinstance(sample_shape, int):
            raise TypeError(
                f"{type(self).__name__}: sample_shape is a sequence of lengths, got {sample_shape}; "
                f"write ({sample_shape},)"
            )
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _is_given(self, name: str) -> bool:
        """Whether a parameter is at hand, rather than to be computed from another one."""
        return name in self.__dict__ or not isinstance(getattr(type(self), name, None), lazy_property)

    def _parameters(self) -> dict[str, Tensor]:
        """The tensors of the instance that some class's `arg_constraints` names."""
        tables = [getattr(c, "arg_constraints", {}) for c in type(self).__mro__] + [self.arg_constraints]
        names = {name for table in tables if isinstance(table, Mapping) for name in table}
        return {name: x for name, x in self.__dict__.items() if name in names and isinstance(x, Tensor)}

    def _get_checked_instance(self, cls: type[Any], _instance: Any = None) -> Any:
        """An instance of the type of `self` without parameters, for `expand`."""
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"{type(self).__name__}.expand: a subclass of {cls.__name__} with an __init__ of its own "
                "must define expand, too"
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        """Returns the distribution with its parameters expanded, without a copy, to a larger batch.

        Args:
            batch_shape: the new one, to which the old one broadcasts.

        Example:
            >>> wg.distributions.Normal(0.0, 1.0).expand((2, 3)).batch_shape
            Size([2, 3])
        """
        new = type(self).__new__(type(self)) if _instance is None else _instance
        cached = {n for n in self.__dict__ if isinstance(getattr(type(self), n, None), lazy_property)}
        parameters = self._parameters()
        kept = {n: x for n, x in self.__dict__.items() if n in parameters or n not in cached}
        new.__dict__.update(kept)
        rank = len(self._batch_shape)
        for name, x in parameters.items():
            new.__dict__[name] = x.expand(*batch_shape, *x.shape[rank:])
        new._batch_shape = Size(batch_shape)
        return new

    # ---- drawing ------------------------------------------------------------------------------------------

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Returns draws of shape `sample_shape + batch_shape + event_shape`, constant in the parameters."""
        with wg.no_grad():
            return self.rsample(sample_shape).detach()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Returns draws that are differentiable in the parameters, where `has_rsample`."""
        raise self._missing("rsample")

    def sample_n(self, n: int) -> Tensor:
        """Returns `sample((n,))`, with PyTorch's warning that it is to go."""
        warnings.warn("sample_n(n) is deprecated; use sample((n,))", FutureWarning, stacklevel=2)
        return self.sample((n,))

    # ---- density and what follows --------------------------------------------------------------------------

    def log_prob(self, value: Tensor) -> Tensor:
        """Returns the logarithm of the density, or probability, at `value`, summed over the axes of an
        event."""
        raise self._missing("log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """Returns the probability of a draw up to `value`."""
        raise self._missing("cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """Returns quantiles: the inverse of `cdf` at probabilities `value`."""
        raise self._missing("icdf")

    def entropy(self) -> Tensor:
        """Returns the entropy in nats, of shape `batch_shape`."""
        raise self._missing("entropy")

    def perplexity(self) -> Tensor:
        """Returns the exponential of the entropy."""
        return self.entropy().exp()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Returns all values of a finite discrete support along a new first axis.

        Args:
            expand: whether the values are repeated over the batch, or its axes have length 1.
        """
        raise self._missing("enumerate_support")

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise self._missing("mean")

    @property
    def mode(self) -> Tensor:
        """The value of the largest density; NaN where there is none."""
        raise self._missing("mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise self._missing("variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    @property
    def support(self) -> Any:
        """The constraint that draws satisfy; None if unknown."""
        raise self._missing("support")

    # ---- checks -------------------------------------------------------------------------------------------

    def _missing(self, what: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} has no {what}")

    def _validate_sample(self, value: Any) -> None:
        """Checks an argument of `log_prob`.

        Raises:
            ValueError: it is no tensor, its shape does not fit, or it lies outside of the support.
        """
        name = type(self).__name__
        if not isinstance(value, Tensor):
            raise ValueError(
                f"{name}: value must be a tensor, got {type(value).__name__}; use wengert.tensor()"
            )
        event = len(self._event_shape)
        if value.ndim < event or tuple(value.shape[value.ndim - event :]) != tuple(self._event_shape):
            raise ValueError(
                f"{name}: the last axes of value must be those of an event, {tuple(self._event_shape)}, "
                f"got shape {tuple(value.shape)}"
            )
        shape = (*self._batch_shape, *self._event_shape)
        if any(m != n and 1 not in (m, n) for m, n in zip(reversed(value.shape), reversed(shape))):
            raise ValueError(
                f"{name}: value of shape {tuple(value.shape)} does not broadcast with batch and event, "
                f"{shape}"
            )
        try:
            support = self.support
        except NotImplementedError:
            return
        if support is not None:
            check(name, "value", support, value)

    def _value(self, value: Any) -> Tensor:
        """The argument of `log_prob`, `cdf` or `icdf` as a tensor, checked if the instance checks."""
        if self._validate_args:
            self._validate_sample(value)
        return value if isinstance(value, Tensor) else wg.as_tensor(value)

    def __repr__(self) -> str:
        """Returns the parameters; those of several elements by their shapes."""
        given = [(n, getattr(self, n)) for n in self.arg_constraints if self._is_given(n)]
        shown = [f"{n}: {tuple(x.shape) if x.ndim else _unless_batched(x)}" for n, x in given]
        return f"{type(self).__name__}({', '.join(shown)})"


class ByInversion(Distribution):
    """A distribution of numbers that is drawn as quantiles of uniform numbers, which is differentiable."""

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        like = next(iter(self._parameters().values()))
        u = wg.rand(self._extended_shape(sample_shape), dtype=like.dtype, device=like.device)
        return self.icdf(u.clamp_min(wg.finfo(like.dtype).eps / 4))
