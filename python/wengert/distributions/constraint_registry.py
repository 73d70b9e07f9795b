"""`biject_to` and `transform_to`: a transform from all numbers onto a constraint.

`biject_to(constraint)` is bijective, as a change of variables of a density needs; `transform_to(constraint)`
need not be, and may be cheaper or better behaved, as optimisation likes.
"""

from collections.abc import Callable
from typing import Any

from . import constraints, transforms
from .constraints import Constraint
from .transforms import Transform

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]
__dir__ = __all__.copy

Factory = Callable[[Any], Transform]


class ConstraintRegistry:
    """Factories of transforms by the classes of constraints.

    Example:
        >>> D = wg.distributions
        >>> D.biject_to(D.constraints.positive)(wg.tensor(0.0))
        tensor(1.)
    """

    def __init__(self) -> None:
        self._registry: dict[type[Constraint], Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Registers a factory for a class of constraints, or for that of an instance; without one it is a
        decorator.

        Args:
            factory: of a constraint of the class; returns a transform onto it.

        Example:
            >>> D = wg.distributions
            >>> class Even(D.constraints.Constraint):
            ...     pass
            >>> _ = D.transform_to.register(Even, lambda constraint: D.transforms.identity_transform)
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = constraint if isinstance(constraint, type) else type(constraint)
        if not issubclass(kind, Constraint):
            raise TypeError(f"register: a constraint or a class of constraints expected, got {constraint!r}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        """Returns a transform onto the constraint.

        Raises:
            NotImplementedError: nothing is registered for its class.
        """
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(
                f"no transform onto {constraint!r} is registered; add one with register()"
            )
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _onto_half_line(constraint: Any) -> Transform:
    """From a lower bound up, or from an upper bound down."""
    above = hasattr(constraint, "lower_bound")
    bound = constraint.lower_bound if above else constraint.upper_bound
    exp = transforms.ExpTransform()
    if above and isinstance(bound, (int, float)) and bound == 0:
        return exp
    return transforms.ComposeTransform([exp, transforms.AffineTransform(bound, 1.0 if above else -1.0)])


def _onto_interval(constraint: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    sigmoid = transforms.SigmoidTransform()
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return sigmoid
    return transforms.ComposeTransform([sigmoid, transforms.AffineTransform(low, high - low)])


def _fill(registry: ConstraintRegistry) -> None:
    """Registers the transforms of one registry; sets made of others ask it for their parts."""
    add = registry.register
    add(constraints.real, lambda c: transforms.identity_transform)
    for half_line in (constraints.greater_than, constraints.greater_than_eq, constraints.less_than):
        add(half_line, _onto_half_line)
    for interval in (constraints.interval, constraints.half_open_interval):
        add(interval, _onto_interval)
    add(constraints.corr_cholesky, lambda c: transforms.CorrCholeskyTransform())
    add(constraints.cat, lambda c: transforms.CatTransform([registry(p) for p in c.cseq], c.dim, c.lengths))
    add(constraints.stack, lambda c: transforms.StackTransform([registry(p) for p in c.cseq], c.dim))


_fill(biject_to)
biject_to.register(constraints.simplex, lambda c: transforms.StickBreakingTransform())
biject_to.register(
    constraints.independent,
    lambda c: transforms.IndependentTransform(biject_to(c.base_constraint), c.reinterpreted_batch_ndims),
)

_fill(transform_to)
transform_to.register(constraints.simplex, lambda c: transforms.SoftmaxTransform())
transform_to.register(constraints.independent, lambda c: transform_to(c.base_constraint))
transform_to.register(constraints.lower_cholesky, lambda c: transforms.LowerCholeskyTransform())
for _matrices in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_matrices, lambda c: transforms.PositiveDefiniteTransform())
