"""Transforms of single numbers: a row each."""

import math
from collections.abc import Sequence
from typing import Any

import wengert as wg
from wengert._core import Tensor
from wengert._kinds import Size

from .. import constraints
from ..constraints import Constraint
from .base import Transform, sum_last

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "PowerTransform",
    "SigmoidTransform",
    "SoftplusTransform",
    "TanhTransform",
]


def _sign(x: Tensor | float) -> Any:
    return x.sign() if isinstance(x, Tensor) else (x > 0) - (x < 0)


def _log_magnitude(factor: Tensor | float, x: Tensor) -> Tensor:
    """`log |factor|`, in the shape that it has beside `x`."""
    return wg.zeros_like(x) + (factor.abs().log() if isinstance(factor, Tensor) else math.log(abs(factor)))


class _Monotonic(Transform):
    """An increasing function of numbers."""

    domain: Any = constraints.real
    codomain: Any = constraints.real
    bijective = True

    @property
    def sign(self) -> Any:
        """1; a power may fall."""
        return 1


class ExpTransform(_Monotonic):
    """`y = exp(x)`.

    Example:
        >>> wg.distributions.transforms.ExpTransform().inv(wg.tensor(1.0))
        tensor(0.)
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns `x`."""
        return x


class PowerTransform(_Monotonic):
    """`y = x ** exponent` of positive numbers.

    Example:
        >>> wg.distributions.transforms.PowerTransform(2.0)(wg.tensor(3.0))
        tensor(9.)
    """

    domain, codomain = constraints.positive, constraints.positive

    def __init__(self, exponent: Tensor | float, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent

    @property
    def sign(self) -> Any:
        """The sign of the exponent."""
        return _sign(self.exponent)

    def _call(self, x: Tensor) -> Tensor:
        return x**self.exponent

    def _inverse(self, y: Tensor) -> Tensor:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns `log |exponent y / x|`."""
        return _log_magnitude(self.exponent, x) + (self.exponent - 1) * x.log()

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return Size(wg.broadcast_shapes(shape, getattr(self.exponent, "shape", ())))

    inverse_shape = forward_shape


class SigmoidTransform(_Monotonic):
    """`y = 1 / (1 + exp(-x))`, kept inside of the open interval (0, 1).

    Example:
        >>> wg.distributions.transforms.SigmoidTransform()(wg.tensor([0.0, 1000.0])).tolist()
        [0.5, 0.9999998807907104]
    """

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        limits = wg.finfo(x.dtype)
        return x.sigmoid().clamp(limits.tiny, 1 - limits.eps)

    def _inverse(self, y: Tensor) -> Tensor:
        limits = wg.finfo(y.dtype)
        y = y.clamp(limits.tiny, 1 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns `log(y) + log(1 - y)`, from `x`."""
        return x.logsigmoid() + (-x).logsigmoid()


class SoftplusTransform(_Monotonic):
    """`y = log(1 + exp(x))`, without a threshold.

    Example:
        >>> t = wg.distributions.transforms.SoftplusTransform()
        >>> t.inv(t(wg.tensor([-5.0, 30.0])))
        tensor([-5., 30.])
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return -(-x).logsigmoid()

    def _inverse(self, y: Tensor) -> Tensor:
        return y + (-(-y).expm1()).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns `log(sigmoid(x))`."""
        return x.logsigmoid()


class TanhTransform(_Monotonic):
    """`y = tanh(x)`. Near 1 and -1 use `cache_size=1`: there the inverse has lost its digits.

    Example:
        >>> wg.distributions.transforms.TanhTransform().log_abs_det_jacobian(wg.tensor(50.0), wg.tensor(1.0))
        tensor(-98.6137)
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns `log(1 - y^2)`, from `x`."""
        return 2 * (math.log(2) - x + (2 * x).logsigmoid())


class AbsTransform(Transform):
    """`y = |x|`; the inverse is the positive one.

    Example:
        >>> wg.distributions.transforms.AbsTransform()(wg.tensor(-2.0))
        tensor(2.)
    """

    domain, codomain = constraints.real, constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """`y = loc + scale * x`.

    Args:
        event_dim: how many of the last axes make one event, over which the logarithm of the Jacobian is
            summed.

    Example:
        >>> wg.distributions.transforms.AffineTransform(1.0, 2.0)(wg.tensor(3.0))
        tensor(7.)
    """

    bijective = True

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, event_dim: int = 0, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    event_dim = property(lambda self: self._event_dim)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        """All numbers, or events of them."""
        return (
            constraints.independent(constraints.real, self._event_dim)
            if self._event_dim
            else constraints.real
        )

    codomain = domain

    @property
    def sign(self) -> Any:
        """The sign of the scale."""
        return _sign(self.scale)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns `log |scale|`, summed over the axes of an event."""
        return sum_last(_log_magnitude(self.scale, x), self._event_dim)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return Size(wg.broadcast_shapes(shape, *[getattr(p, "shape", ()) for p in (self.loc, self.scale)]))

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """`y = F(x)` with the distribution function of a distribution of numbers; the inverse gives quantiles.

    Example:
        >>> D = wg.distributions
        >>> D.transforms.CumulativeDistributionTransform(D.Normal(0.0, 1.0))(wg.tensor(0.0))
        tensor(0.5)
    """

    bijective, codomain, sign = True, constraints.unit_interval, 1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns the logarithm of the density at `x`."""
        return self.distribution.log_prob(x)
