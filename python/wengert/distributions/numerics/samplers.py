"""Random numbers that the core does not draw: gamma, Poisson, binomial and von Mises variates.

Each function is elementwise and takes its numbers from the stream that `wengert.manual_seed` sets. All
compute in float64 (on a GPU in float32) and round once; their distributions are exact up to the resolution of
the uniform numbers, 2^-53. Rejected elements are drawn again until none is left. Where values cannot be
looked at, inside `vmap`, or where looking would wait, on a GPU, the number of rounds is fixed, so that an
element is left with probability below 1e-12; it then keeps its last proposal.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar

import wengert as wg
from wengert._core import Tensor

from .incomplete import log_gamma_slope
from .special import in_double, log_gamma_density

__all__ = [
    "binomial_sample",
    "drawing_from",
    "gamma_sample",
    "log_gamma_sample",
    "poisson_sample",
    "von_mises_sample",
]

# Below this mean, counts are drawn by going through the values of the distribution function.
_FEW, _MOST = 10.0, 52


# The generator that draws in a context; the default stream without.
_STREAM: ContextVar[wg.Generator | None] = ContextVar("stream", default=None)


@contextlib.contextmanager
def drawing_from(generator: wg.Generator | None) -> Iterator[None]:
    """A context in which the samplers draw from `generator`; from the default stream for None.

    Example:
        >>> from wengert.distributions.numerics.samplers import drawing_from, poisson_sample
        >>> with drawing_from(wg.Generator().manual_seed(0)):
        ...     first = poisson_sample(wg.ones(3))
        >>> with drawing_from(wg.Generator().manual_seed(0)):
        ...     bool((poisson_sample(wg.ones(3)) == first).all())
        True
    """
    token = _STREAM.set(generator)
    try:
        yield
    finally:
        _STREAM.reset(token)


def _readable(x: Tensor) -> bool:
    """Whether the values of a tensor can be looked at without waiting."""
    if x.is_gpu:
        return False
    try:
        x.reshape(-1)[:1].sum().item()
    except TypeError:
        return False
    return True


def _uniform_from_0(like: Tensor) -> Tensor:
    """Uniform numbers on `[0, 1)`."""
    return wg.rand_like(like, generator=_STREAM.get())


def _uniform(like: Tensor) -> Tensor:
    """Uniform numbers in the open interval (0, 1)."""
    return _uniform_from_0(like).clamp_min(wg.finfo(like.dtype).eps / 4)


def _redraw(
    propose: Callable[..., tuple[Tensor, Tensor]], parameters: Sequence[Tensor], rounds: int
) -> Tensor:
    """Draws by rejection.

    Args:
        propose: of the parameters; returns values, and which of them are rejected (NaN must not be).
        parameters: tensors of one shape.
        rounds: how many there are where values cannot be looked at.
    """
    value, bad = propose(*parameters)
    if not _readable(bad):
        for _ in range(rounds - 1):
            other, worse = propose(*parameters)
            value, bad = wg.where(bad, other, value), bad & worse
        return value
    shape, value = value.shape, value.reshape(-1)
    left = bad.reshape(-1).nonzero().squeeze(-1)
    flat = [p.reshape(-1) for p in parameters]
    while left.numel():
        value[left], bad = propose(*[p[left] for p in flat])
        left = left[bad]
    return value.reshape(shape)


def _either(mask: Tensor, draw: Callable[[], Tensor], other: Callable[[], Tensor]) -> Tensor:
    """What `draw` returns where `mask`, else what `other` does; what is nowhere needed is not drawn."""
    if _readable(mask):
        if bool(mask.all()):
            return draw()
        if not bool(mask.any()):
            return other()
    return wg.where(mask, draw(), other())


# ---- gamma ---------------------------------------------------------------------------------------


def _gamma_proposal(a: Tensor) -> tuple[Tensor, Tensor]:
    """Logarithms of gamma variates for `a >= 1` (Marsaglia and Tsang 2000): at least 95% are accepted."""
    d = a - 1 / 3
    z = wg.randn_like(a, generator=_STREAM.get())
    t = z / (9 * d).sqrt()
    log_root = t.log1p()
    # z^2 / 2 + d - d v + d log(v) with v = (1 + t)^3, without the terms that cancel.
    bound = z.square() * (1 / 6 - t / 9) + 3 * d * (log_root - t)
    return d.log() + 3 * log_root, (t <= -1) | (_uniform(a).log() > bound)


@wg.custom_jvp
def _moving(a: Tensor, log_x: Tensor) -> Tensor:
    """`log_x`, which moves with `a` as a gamma variate does."""
    return log_x.clone()


_moving.defjvps(lambda t, out, a, log_x: t * log_gamma_slope(a, out), lambda t, out, a, log_x: t)


@in_double
def log_gamma_sample(concentration: Tensor) -> Tensor:
    """Draws logarithms of gamma variates of rate 1, which do not underflow for small concentrations.

    Below 1 they are those of `a + 1`, plus `log(U) / a`. Differentiable in the concentration to any order, by
    `log_gamma_slope`, with a relative error below 1e-10.

    Example:
        >>> from wengert.distributions.numerics.samplers import log_gamma_sample
        >>> bool((log_gamma_sample(wg.full((1000,), 1e-4)) < -100).any())
        True
    """
    a = concentration.detach()
    low = a < 1
    log_x = _redraw(_gamma_proposal, [wg.where(low, a + 1, a)], 12)
    log_x = wg.where(low, log_x + _uniform(a).log() / a, log_x)
    return _moving(concentration, log_x)


@in_double
def gamma_sample(concentration: Tensor) -> Tensor:
    """Draws gamma variates of rate 1, differentiable in the concentration as `log_gamma_sample`.

    Example:
        >>> from wengert.distributions.numerics.samplers import gamma_sample
        >>> _ = wg.manual_seed(0)
        >>> abs(gamma_sample(wg.full((10000,), 3.0)).mean().item() - 3) < 0.1
        True
    """
    return log_gamma_sample(concentration).exp()


# ---- counts --------------------------------------------------------------------------------------


def _by_inversion(first: Tensor, ratio: Callable[[int], Tensor]) -> Tensor:
    """Counts with a mean below `_FEW`: how many values of the distribution function lie below a uniform
    number.

    Args:
        first: the probability of 0.
        ratio: of a count, its probability over that of the count before.
    """
    u = _uniform_from_0(first)
    term, total, count = first, first, wg.zeros_like(first)
    for k in range(1, _MOST):
        more = u > total
        if _readable(more) and not bool(more.any()):
            break
        count = count + more
        term = term * ratio(k)
        total = total + term
    return count


def _poisson_proposal(rate: Tensor) -> tuple[Tensor, Tensor]:
    """Transformed rejection with a squeeze for rates from 10 on (Hörmann 1993, PTRS)."""
    b = 0.931 + 2.53 * rate.sqrt()
    a = 0.02483 * b - 0.059
    u, v = _uniform_from_0(rate) - 0.5, _uniform(rate)
    us = (0.5 - u.abs()).clamp_min(wg.finfo(rate.dtype).tiny)
    k = ((2 * a / us + b) * u + rate + 0.43).floor()
    quick = (us >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
    density = (v * (1.1239 + 1.1328 / (b - 3.4)) / (a / us.square() + b)).log()
    bad = (k < 0) | ((us < 0.013) & (v > us)) | (density > log_gamma_density(k.clamp_min(0) + 1, rate))
    return k, bad & ~quick


@in_double
def poisson_sample(rate: Tensor) -> Tensor:
    """Draws Poisson variates, as floating point numbers; not differentiable.

    Example:
        >>> from wengert.distributions.numerics.samplers import poisson_sample
        >>> poisson_sample(wg.tensor([0.0, 1e12])).log10().round()
        tensor([-inf,  12.])
    """
    rate = rate.detach()
    small = rate.clamp_max(_FEW)
    return _either(
        rate >= _FEW,
        lambda: _redraw(_poisson_proposal, [rate.clamp_min(_FEW)], 24),
        lambda: _by_inversion((-small).exp(), lambda k: small / k),
    )


def _log_ratio(k: Tensor, m: Tensor, n: Tensor, p: Tensor) -> Tensor:
    """The logarithm of the binomial probability of `k` over that of `m`."""
    up, down = n * p, n * (1 - p)
    return (
        log_gamma_density(k + 1, up)
        + log_gamma_density(n - k + 1, down)
        - log_gamma_density(m + 1, up)
        - log_gamma_density(n - m + 1, down)
    )


def _binomial_proposal(n: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
    """Transformed rejection with a squeeze for `p <= 1/2` and `n p >= 10` (Hörmann 1993, BTRS)."""
    deviation = (n * p * (1 - p)).sqrt()
    b = 1.15 + 2.53 * deviation
    a = 0.0248 * b + 0.01 * p - 0.0873
    u, v = _uniform_from_0(p) - 0.5, _uniform(p)
    us = (0.5 - u.abs()).clamp_min(wg.finfo(p.dtype).tiny)
    k = ((2 * a / us + b) * u + n * p + 0.5).floor()
    quick = (us >= 0.07) & (v <= 0.92 - 4.2 / b)
    density = (v * (2.83 + 5.1 / b) * deviation / (a / us.square() + b)).log()
    inside = k.clamp_min(0).minimum(n)
    bad = (k != inside) | (density > _log_ratio(inside, ((n + 1) * p).floor(), n, p))
    return k, bad & ~(quick & (k == inside))


@in_double
def binomial_sample(count: Tensor, probs: Tensor) -> Tensor:
    """Draws numbers of successes in `count` trials, as floating point numbers; not differentiable.

    Example:
        >>> from wengert.distributions.numerics.samplers import binomial_sample
        >>> binomial_sample(wg.tensor([5.0, 5.0]), wg.tensor([0.0, 1.0]))
        tensor([0., 5.])
    """
    n, p = count.detach(), probs.detach()
    n, p = n + wg.zeros_like(p), p + wg.zeros_like(n)
    flipped = p > 0.5
    p = wg.where(flipped, 1 - p, p)
    many = n * p >= _FEW
    small = wg.where(many, 0.0, p)
    odds = small / (1 - small)
    # Where the count is small, any other parameters will do.
    ns, ps = wg.where(many, n, 40.0), wg.where(many, p, 0.5)
    k = _either(
        many,
        lambda: _redraw(_binomial_proposal, [ns, ps], 24),
        lambda: _by_inversion((n * (-small).log1p()).exp(), lambda k: odds * ((n + 1 - k) / k).clamp_min(0)),
    )
    return wg.where(flipped, n - k, k)


# ---- angles --------------------------------------------------------------------------------------


def _von_mises_proposal(kappa: Tensor) -> tuple[Tensor, Tensor]:
    """Angles around 0 by a wrapped Cauchy envelope (Best and Fisher 1979): at least 65% are accepted."""
    root = (1 + 4 * kappa.square()).sqrt()
    # Where the concentration is small, the first two terms of the series stand for differences that cancel.
    rho = (1 + root - (2 * (1 + root)).sqrt()) / (2 * kappa)
    r = wg.where(kappa < 1e-4, 1 / kappa + kappa, (1 + rho.square()) / (2 * rho))
    z = (math.pi * _uniform_from_0(kappa)).cos()
    f = (1 + r * z) / (r + z)
    c = kappa * (r - f)
    u = _uniform(kappa)
    sign = wg.where(_uniform_from_0(kappa) < 0.5, -1.0, 1.0)
    return sign * f.clamp(-1, 1).acos(), (c / u).log() + 1 - c < 0


@in_double
def von_mises_sample(concentration: Tensor) -> Tensor:
    """Draws angles in radians between `-pi` and `pi` around 0; not differentiable.

    Example:
        >>> from wengert.distributions.numerics.samplers import von_mises_sample
        >>> bool((von_mises_sample(wg.full((1000,), 1e6)).abs() < 0.01).all())
        True
    """
    return _redraw(_von_mises_proposal, [concentration.detach()], 36)
