"""Which function computes a divergence: by the classes of both distributions."""

from collections.abc import Callable
from typing import Any

import wengert as wg
from wengert._core import Tensor

from ..distribution import Distribution

__all__ = ["kl_divergence", "register_kl"]

Rule = Callable[[Any, Any], Tensor]

_RULES: dict[tuple[type[Distribution], type[Distribution]], Rule] = {}


def register_kl(type_p: type[Distribution], type_q: type[Distribution]) -> Callable[[Rule], Rule]:
    """Registers a function `f(p, q)` as the divergence of two classes, and of those that inherit from them.

    Example:
        >>> D = wg.distributions
        >>> class Point(D.Distribution):
        ...     pass
        >>> @D.register_kl(Point, Point)
        ... def point(p, q):
        ...     return wg.tensor(0.0)
        >>> D.kl_divergence(Point(), Point())
        tensor(0.)
    """
    for given in (type_p, type_q):
        if not (isinstance(given, type) and issubclass(given, Distribution)):
            raise TypeError(f"register_kl: a subclass of Distribution expected, got {given!r}")

    def decorated(rule: Rule) -> Rule:
        _RULES[type_p, type_q] = rule
        return rule

    return decorated


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Returns the Kullback-Leibler divergence `KL(p || q)`: the mean of `log p(x) - log q(x)` for `x` of `p`.

    Infinite where `p` has values that `q` has not. Of the rules that fit, the one for the nearest class of
    `p` counts, and of those the one for the nearest class of `q`.

    Returns:
        A tensor of shape `batch_shape`, differentiable in the parameters of both.

    Raises:
        NotImplementedError: no rule is known; take the mean of the difference over samples.

    Example:
        >>> D = wg.distributions
        >>> D.kl_divergence(D.Normal(0.0, 1.0), D.Normal(1.0, 1.0))
        tensor(0.5)
    """
    for super_p in type(p).__mro__:
        for super_q in type(q).__mro__:
            rule = _RULES.get((super_p, super_q))
            if rule is not None:
                return rule(p, q)
    raise NotImplementedError(
        f"kl_divergence: no rule for {type(p).__name__} and {type(q).__name__}; register one with "
        "register_kl, or average p.log_prob(x) - q.log_prob(x) over samples of p"
    )


def in_double(p: Any) -> Any:
    """A distribution with its parameters in float64, where that exists, so that large terms may cancel."""
    parameters = p._parameters()
    if any(x.is_gpu for x in parameters.values()):
        return p
    wide = p.expand(p.batch_shape)
    wide.__dict__.update({name: x.to(wg.float64) for name, x in parameters.items()})
    return wide
