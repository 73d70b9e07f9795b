"""The base of transforms, their inverses and compositions, and those that only change which axes make an
event."""

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import wengert as wg
from wengert._core import Tensor
from wengert._kinds import Size

from .. import constraints
from ..constraints import Constraint
from ..documented import Documented

__all__ = ["ComposeTransform", "IndependentTransform", "ReshapeTransform", "Transform", "identity_transform"]


def sum_last(x: Tensor, dims: int) -> Tensor:
    """The sum over the last `dims` axes."""
    return x.reshape(*x.shape[: x.ndim - dims], -1).sum(-1) if dims else x


class Transform(Documented):
    """A function between sets of values that knows its inverse, and the logarithm of its Jacobian
    determinant.

    A subclass defines `domain`, `codomain`, `_call`, `_inverse` and, where `bijective`,
    `log_abs_det_jacobian`; `sign` is that of the derivative of a monotonic function of numbers.

    Args:
        cache_size: 1 keeps the last pair of argument and value, which the inverse then finds again by
            identity, exactly and without work; 0 keeps none.

    Example:
        >>> t = wg.distributions.transforms.ExpTransform()
        >>> t(wg.tensor(1.0)), t.inv(wg.tensor(1.0)), t.log_abs_det_jacobian(wg.tensor(2.0), wg.tensor(1.0))
        (tensor(2.7183), tensor(0.), tensor(2.))
    """

    domain: Any
    codomain: Any
    bijective: Any = False

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError(f"{type(self).__name__}: cache_size must be 0 or 1, got {cache_size}")
        self._cache_size = cache_size
        self._cached: tuple[Any, Any] = (None, None)

    @property
    def event_dim(self) -> int:
        """How many axes of values the Jacobian is about."""
        return max(int(self.domain.event_dim), int(self.codomain.event_dim))

    @property
    def inv(self) -> "Transform":
        """The inverse transform."""
        return _InverseTransform(self)

    @property
    def sign(self) -> Any:
        """The sign of the derivative, 1 or -1; a tensor where elements differ."""
        raise NotImplementedError(
            f"{type(self).__name__} has no sign: it is not a monotonic function of numbers"
        )

    def with_cache(self, cache_size: int = 1) -> "Transform":
        """Returns the transform with another size of the cache."""
        if self._cache_size == cache_size:
            return self
        new = type(self).__new__(type(self))
        new.__dict__.update(self.__dict__, _cache_size=cache_size, _cached=(None, None))
        return new

    def __call__(self, x: Tensor) -> Tensor:
        """Returns the value at `x`."""
        if self._cache_size and x is self._cached[0]:
            return self._cached[1]
        y = self._call(x)
        if self._cache_size:
            self._cached = (x, y)
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        """Returns the argument whose value is `y`."""
        if self._cache_size and y is self._cached[1]:
            return self._cached[0]
        x = self._inverse(y)
        if self._cache_size:
            self._cached = (x, y)
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no _call")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns `log |det dy/dx|` for an argument and its value, one number for each event."""
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian: it is not bijective")

    def forward_shape(self, shape: Sequence[int]) -> Size:
        """Returns the shape of the value of an argument of this shape."""
        return Size(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        """Returns the shape of the argument of a value of this shape."""
        return Size(shape)

    def _settings(self) -> dict[str, Any]:
        """What the transform was made of."""
        return {k: v for k, v in self.__dict__.items() if k not in ("_cache_size", "_cached")}

    def __eq__(self, other: object) -> bool:
        """Whether both are of one kind with equal settings."""
        if type(other) is not type(self):
            return False
        mine, others = self._settings(), other._settings()
        return mine.keys() == others.keys() and all(_same(mine[k], others[k]) for k in mine)

    def __hash__(self) -> int:
        """Of the kind."""
        return hash(type(self))

    def __repr__(self) -> str:
        """Returns the name."""
        return f"{type(self).__name__}()"


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        try:
            return a is b or bool(wg.as_tensor(a == b).all())
        except TypeError:
            return False
    return bool(a == b)


class _InverseTransform(Transform):
    """The inverse of a transform, which does the work, its cache included."""

    def __init__(self, transform: Transform) -> None:
        super().__init__()
        self._inv = transform

    domain = constraints.dependent_property(lambda self: self._inv.codomain)
    codomain = constraints.dependent_property(lambda self: self._inv.domain)
    bijective = property(lambda self: self._inv.bijective)
    sign = property(lambda self: self._inv.sign)
    inv = property(lambda self: self._inv)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        return self._inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"_InverseTransform({self._inv!r})"


def _raised(constraint: Constraint, by: int) -> Constraint:
    """The constraint with so many more axes in an event."""
    return constraints.independent(constraint, by) if by > 0 else constraint


class ComposeTransform(Transform):
    """Transforms one after the other, the first one first; of none, the identity.

    Example:
        >>> t = wg.distributions.transforms
        >>> t.ComposeTransform([t.AffineTransform(1.0, 2.0), t.ExpTransform()])(wg.tensor(0.0))
        tensor(2.7183)
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    @constraints.dependent_property
    def domain(self) -> Constraint:
        """The set of the first part; its events have as many axes as those of any part."""
        if not self.parts:
            return constraints.real
        domain, event = self.parts[0].domain, self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event = max(event + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return _raised(domain, event - domain.event_dim)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        """The set of the last part, likewise."""
        if not self.parts:
            return constraints.real
        codomain, event = self.parts[-1].codomain, self.parts[0].domain.event_dim
        for part in self.parts:
            event = max(event + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return _raised(codomain, event - codomain.event_dim)

    bijective = property(lambda self: all(part.bijective for part in self.parts))
    sign = property(lambda self: functools.reduce(operator.mul, [part.sign for part in self.parts], 1))
    inv = property(lambda self: ComposeTransform([part.inv for part in reversed(self.parts)]))

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        """Returns the value at `x`."""
        return functools.reduce(lambda value, part: part(value), self.parts, x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return functools.reduce(lambda value, part: part._inv_call(value), reversed(self.parts), y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns the sum of the parts' logarithms."""
        if not self.parts:
            return wg.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        event, total = self.domain.event_dim, []
        for part, a, b in zip(self.parts, values, values[1:]):
            total.append(sum_last(part.log_abs_det_jacobian(a, b), event - part.domain.event_dim))
            event += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, total)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return functools.reduce(lambda s, part: part.forward_shape(s), self.parts, Size(shape))

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        return functools.reduce(lambda s, part: part.inverse_shape(s), reversed(self.parts), Size(shape))

    def __repr__(self) -> str:
        """Returns the parts."""
        return f"ComposeTransform({self.parts!r})"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose last `reinterpreted_batch_ndims` axes of independent values count as one event.

    Example:
        >>> t = wg.distributions.transforms
        >>> x = wg.tensor([1.0, 2.0])
        >>> t.IndependentTransform(t.ExpTransform(), 1).log_abs_det_jacobian(x, x.exp())
        tensor(3.)
    """

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size) if cache_size else base_transform
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    domain = constraints.dependent_property(
        lambda self: constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)
    )
    codomain = constraints.dependent_property(
        lambda self: constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)
    )
    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform._inv_call(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns the sum of the logarithms over these axes."""
        found = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_last(found, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        """Returns the transform and the number of axes."""
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """Events of one shape in another.

    Example:
        >>> wg.distributions.transforms.ReshapeTransform((4,), (2, 2))(wg.arange(4.0))
        tensor([[0., 1.],
                [2., 3.]])
    """

    bijective = True

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if math.prod(in_shape) != math.prod(out_shape):
            raise ValueError(
                f"ReshapeTransform: {tuple(in_shape)} and {tuple(out_shape)} have different numbers of "
                f"elements"
            )

    domain = constraints.dependent_property(lambda self: _raised(constraints.real, len(self.in_shape)))
    codomain = constraints.dependent_property(lambda self: _raised(constraints.real, len(self.out_shape)))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(*self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(*self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns zeros."""
        return wg.zeros(x.shape[: x.ndim - len(self.in_shape)], dtype=x.dtype, device=x.device)

    def _moved(self, shape: Sequence[int], old: Size, new: Size) -> Size:
        batch = len(shape) - len(old)
        if batch < 0 or tuple(shape[batch:]) != tuple(old):
            raise ValueError(
                f"ReshapeTransform: the last axes must be {tuple(old)}, got shape {tuple(shape)}"
            )
        return Size((*shape[:batch], *new))

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return self._moved(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        return self._moved(shape, self.out_shape, self.in_shape)
