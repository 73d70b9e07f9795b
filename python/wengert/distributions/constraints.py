"""Constraints: sets of values, which say whether tensors lie in them.

`constraint.check(value)` is a tensor of bools, one for each event. Names are PyTorch's: those of sets without
parameters are instances (`real`, `positive`, `simplex`), the others classes (`interval`, `greater_than`,
`stack`).
"""

from collections.abc import Callable, Sequence
from typing import Any

import wengert as wg
from wengert._core import Tensor

from . import membership
from .constraint import Constraint, Dependent, dependent_property, is_dependent
from .membership import is_whole

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]
__dir__ = __all__.copy


# ---- numbers -------------------------------------------------------------------------------------


class _Elementwise(Constraint):
    """A set of numbers between bounds. A subclass names its bounds, and its test of a value and those."""

    _bounds: tuple[str, ...] = ()
    _test: Callable[..., Tensor]

    def __init_subclass__(
        cls, test: Callable[..., Tensor] | None = None, bounds: Sequence[str] = (), discrete: bool = False
    ) -> None:
        if test is not None:
            cls._test, cls._bounds, cls.is_discrete = staticmethod(test), tuple(bounds), discrete
        super().__init_subclass__()

    def __init__(self, *bounds: Any, **named: Any) -> None:
        values = dict(zip(self._bounds, bounds)) | named
        if set(values) != set(self._bounds) or len(bounds) + len(named) != len(self._bounds):
            raise TypeError(
                f"{self}: expected {', '.join(self._bounds) or 'no bounds'}, got {bounds} {named}"
            )
        self.__dict__.update(values)

    def check(self, value: Tensor) -> Tensor:
        """Returns for each element whether it lies within the bounds."""
        return type(self)._test(value, *[getattr(self, name) for name in self._bounds])

    def __repr__(self) -> str:
        """Returns the bounds; those of several elements by their shapes."""
        bounds = [(name, self.__dict__[name]) for name in self._bounds if name in self.__dict__]
        shown = [
            f"{n}={tuple(b.shape) if isinstance(b, Tensor) and b.ndim else _number(b)}" for n, b in bounds
        ]
        return f"{type(self).__name__.lstrip('_')}({', '.join(shown)})"

    def at(self, index: tuple[int, ...], shape: Sequence[int]) -> Constraint:
        bounds = [self.__dict__[name] for name in self._bounds]
        return type(self)(*[b.expand(*shape)[index] if isinstance(b, Tensor) else b for b in bounds])


def _number(bound: Any) -> Any:
    try:
        return bound.item() if isinstance(bound, Tensor) else bound
    except TypeError:
        return "..."


_LOWER, _UPPER, _BOTH = ("lower_bound",), ("upper_bound",), ("lower_bound", "upper_bound")


class _Boolean(_Elementwise, test=lambda x: (x == 0) | (x == 1), discrete=True):
    """0 and 1."""


class _Real(_Elementwise, test=lambda x: x == x):
    """All numbers but NaN."""


class _GreaterThan(_Elementwise, test=lambda x, low: x > low, bounds=_LOWER):
    """Numbers above a bound."""


class _GreaterThanEq(_Elementwise, test=lambda x, low: x >= low, bounds=_LOWER):
    """Numbers from a bound on."""


class _LessThan(_Elementwise, test=lambda x, high: x < high, bounds=_UPPER):
    """Numbers below a bound."""


class _Interval(_Elementwise, test=lambda x, low, high: (x >= low) & (x <= high), bounds=_BOTH):
    """Numbers between two bounds, both included."""


class _HalfOpenInterval(_Elementwise, test=lambda x, low, high: (x >= low) & (x < high), bounds=_BOTH):
    """Numbers between two bounds, the first included."""


class _IntegerInterval(
    _Elementwise, test=lambda x, a, b: is_whole(x) & (x >= a) & (x <= b), bounds=_BOTH, discrete=True
):
    """Integers between two bounds, both included."""


class _IntegerGreaterThan(
    _Elementwise, test=lambda x, low: is_whole(x) & (x >= low), bounds=_LOWER, discrete=True
):
    """Integers from a bound on."""


# ---- vectors and matrices ------------------------------------------------------------------------


class _Event(Constraint):
    """A set of vectors or matrices. A subclass says how many axes they have, and its test."""

    _test: Callable[[Tensor], Tensor]

    def __init_subclass__(cls, test: Callable[[Tensor], Tensor], axes: int, discrete: bool = False) -> None:
        cls._test, cls.event_dim, cls.is_discrete = staticmethod(test), axes, discrete
        super().__init_subclass__()

    def check(self, value: Tensor) -> Tensor:
        """Returns for each vector or matrix whether it lies in the set."""
        return type(self)._test(value)


class _OneHot(_Event, test=membership.is_one_hot, axes=1, discrete=True):
    """Vectors of zeros and a single one."""


class _Simplex(_Event, test=membership.is_simplex, axes=1):
    """Vectors of numbers that are not negative and sum to 1."""


class _LowerTriangular(_Event, test=membership.is_lower, axes=2):
    """Lower triangular matrices."""


class _LowerCholesky(_Event, test=membership.is_lower_cholesky, axes=2):
    """Lower triangular matrices with a positive diagonal."""


class _CorrCholesky(_Event, test=membership.is_corr_cholesky, axes=2):
    """Cholesky factors of correlation matrices: rows of length 1."""


class _Square(_Event, test=membership.is_square, axes=2):
    """Square matrices."""


class _Symmetric(_Event, test=membership.is_symmetric, axes=2):
    """Symmetric matrices, up to rounding."""


class _PositiveSemidefinite(_Event, test=membership.is_semidefinite, axes=2):
    """Symmetric matrices without negative eigenvalues, up to rounding."""


class _PositiveDefinite(_Event, test=membership.is_definite, axes=2):
    """Symmetric matrices with positive eigenvalues."""


class multinomial(Constraint):
    """Vectors of counts, at most `upper_bound` in all.

    Example:
        >>> wg.distributions.constraints.multinomial(3).check(wg.tensor([[1.0, 2.0], [2.0, 2.0]]))
        tensor([ True, False])
    """

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        """Returns for each vector whether it consists of counts of so many trials."""
        return (is_whole(value) & (value >= 0)).all(-1) & (value.sum(-1) <= self.upper_bound)


# ---- sets made of others -------------------------------------------------------------------------


class independent(Constraint):
    """A set whose last `reinterpreted_batch_ndims` axes of independent values make one value.

    Example:
        >>> constraints = wg.distributions.constraints
        >>> constraints.independent(constraints.positive, 1).check(wg.tensor([[1.0, 2.0], [1.0, -2.0]]))
        tensor([ True, False])
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        """Returns for each event whether all of its values lie in the set."""
        if value.ndim < self.event_dim:
            raise ValueError(f"{self}: a tensor of {self.event_dim} axes or more expected, got {value.ndim}")
        valid = self.base_constraint.check(value)
        n = self.reinterpreted_batch_ndims
        return valid.reshape(*valid.shape[: valid.ndim - n], -1).all(-1) if n else valid

    def __repr__(self) -> str:
        """Returns the set and the number of axes."""
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """Values that each component of a mixture, along the last axis of the batch, takes.

    Example:
        >>> constraints = wg.distributions.constraints
        >>> bounds = constraints.greater_than(wg.tensor([0.0, 1.0]))
        >>> constraints.MixtureSameFamilyConstraint(bounds).check(wg.tensor([0.5, 2.0]))
        tensor([False,  True])
    """

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint
        self.is_discrete, self.event_dim = base_constraint.is_discrete, base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        """Returns whether all components take a value."""
        place = value.ndim - self.event_dim
        return self.base_constraint.check(value.unsqueeze(place)).all(-1)

    def __repr__(self) -> str:
        """Returns the set of the components."""
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _Joined(Constraint):
    """Sets of the parts of a tensor along an axis."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.is_discrete = any(c.is_discrete for c in self.cseq)
        self.event_dim = max(c.event_dim for c in self.cseq)


class cat(_Joined):
    """Tensors whose parts along `dim`, of `lengths` (1 by default), lie in these sets.

    Example:
        >>> constraints = wg.distributions.constraints
        >>> constraints.cat([constraints.positive, constraints.real], 0, [1, 2]).check(wg.tensor([1.0, -1.0, 0.0]))
        tensor([True, True, True])
    """

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    def check(self, value: Tensor) -> Tensor:
        """Returns the checks of the parts, joined."""
        parts = value.split(self.lengths, self.dim)
        return wg.cat([c.check(v) for c, v in zip(self.cseq, parts)], self.dim)


class stack(_Joined):
    """Tensors whose slices along `dim` lie in these sets.

    Example:
        >>> constraints = wg.distributions.constraints
        >>> constraints.stack([constraints.positive, constraints.real]).check(wg.tensor([-1.0, -1.0]))
        tensor([False,  True])
    """

    def check(self, value: Tensor) -> Tensor:
        """Returns the checks of the slices, stacked."""
        parts = value.unbind(self.dim)
        return wg.stack([c.check(v) for c, v in zip(self.cseq, parts)], self.dim)


dependent = Dependent()
boolean, real, one_hot, simplex = _Boolean(), _Real(), _OneHot(), _Simplex()
greater_than, greater_than_eq, less_than = _GreaterThan, _GreaterThanEq, _LessThan
interval, half_open_interval, integer_interval = _Interval, _HalfOpenInterval, _IntegerInterval
positive, nonnegative, unit_interval = _GreaterThan(0.0), _GreaterThanEq(0.0), _Interval(0.0, 1.0)
nonnegative_integer, positive_integer = _IntegerGreaterThan(0), _IntegerGreaterThan(1)
lower_triangular, lower_cholesky, corr_cholesky = _LowerTriangular(), _LowerCholesky(), _CorrCholesky()
square, symmetric = _Square(), _Symmetric()
positive_semidefinite, positive_definite = _PositiveSemidefinite(), _PositiveDefinite()
real_vector = independent(real, 1)
