"""The Airy function, by Taylor series around a grid of points and by asymptotic series outside of it.

The series around a point follow from the value and the slope there and from `y'' = x y` (NIST Digital Library
of Mathematical Functions, chapter 9; outside, 9.7.5, 9.7.6, 9.7.9 and 9.7.10).
"""

import math
from typing import Any

import wengert as wg
from wengert._arguments import operand
from wengert._core import Tensor
from wengert._types import TensorLike

__all__ = ["airy_ai"]

# The ends of the grid, how many points it has per unit, and the terms of each kind of series.
_END, _PER_UNIT, _TERMS, _FAR_TERMS = 12, 2, 20, 18
# Value and slope at each point, to double precision (computed with mpmath).
_GRID = (
    (-0.06655517505437313, 1.0231104533679707),
    (0.30542297004359265, 0.08772415432178444),
    (-0.008759589255702381, -1.0273278736645794),
    (-0.3119260350510506, 0.09095748739068167),
    (0.04024123848644319, 0.99626504413279),
    (0.3191032477191282, -0.10809531881187123),
    (-0.022133721547341403, -0.9756639809263316),
    (-0.33029023763020887, -0.03231334828463914),
    (-0.0527050503563862, 0.9355609381983065),
    (0.3217757163806479, 0.3188095066985546),
    (0.18428083525050565, -0.7710081684101265),
    (-0.2380203019971158, -0.6749524925132022),
    (-0.3291451736298231, 0.3459354872813429),
    (0.017781541276574976, 0.8641972177713984),
    (0.35076100902411433, 0.32719281855444315),
    (0.2921527810559595, -0.5233625323157477),
    (-0.07026553294928951, -0.7906285753685813),
    (-0.37553382314043193, -0.34344343345404815),
    (-0.37881429367765806, 0.3145837692165988),
    (-0.11232506769296609, 0.6788527342647943),
    (0.22740742820168558, 0.618259020741691),
    (0.4642565777488694, 0.3091869672024104),
    (0.5355608832923521, -0.01016056711664521),
    (0.4757280916105396, -0.20408167033954738),
    (0.3550280538878172, -0.2588194037928068),
    (0.23169360648083348, -0.2249105326646839),
    (0.13529241631288141, -0.1591474412967932),
    (0.07174949700810541, -0.09738201284230132),
    (0.03492413042327438, -0.05309038443365363),
    (0.01572592338047049, -0.026250881035903232),
    (0.006591139357460719, -0.011912976705951319),
    (0.002584098786989635, -0.005004413967952583),
    (0.0009515638512048018, -0.001958640950204179),
    (0.00033025032351430896, -0.0007178665675575089),
    (0.00010834442813607442, -0.0002474138908684625),
    (3.368531190859981e-05, -8.046339130556515e-05),
    (9.947694360252889e-06, -2.4765200397034955e-05),
    (2.7958823432049136e-06, -7.231931466601793e-06),
    (7.492128863997167e-07, -2.008150894738792e-06),
    (1.9172560675134309e-07, -5.312713959720545e-07),
    (4.6922076160992316e-08, -1.3414392979067865e-07),
    (1.0997009755195506e-08, -3.237725440447602e-08),
    (2.47116843087249e-09, -7.480641389658946e-09),
    (5.330263704617492e-10, -1.6566394593740667e-09),
    (1.1047532552898686e-10, -3.5206336767389237e-10),
    (2.2022745192834015e-11, -7.187696781451567e-11),
    (4.2262758649603595e-12, -1.4111441246628517e-11),
    (7.814290183962854e-13, -2.6666799675045312e-12),
    (1.3931846888753607e-13, -4.854736554985309e-13),
)


def _coefficients() -> tuple[list[float], list[float]]:
    """`u_k` and `v_k` of the asymptotic series."""
    values, slopes = [1.0], [1.0]
    for k in range(1, _FAR_TERMS):
        values.append(values[-1] * (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / ((2 * k - 1) * 216 * k))
        slopes.append(-values[-1] * (6 * k + 1) / (6 * k - 1))
    return values, slopes


def _sum(x: Tensor, coefficients: list[float]) -> Tensor:
    """The polynomial with these coefficients, lowest power first."""
    total = wg.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def _inside(x: Tensor) -> tuple[Tensor, Tensor]:
    """Value and slope on the grid."""
    nearest = (x * _PER_UNIT).round()
    centre, h = nearest / _PER_UNIT, x - nearest / _PER_UNIT
    index = (nearest + _END * _PER_UNIT).to(wg.int32 if x.is_gpu else wg.int64)
    table = wg.tensor(_GRID, dtype=x.dtype, device=x.device)
    at = table[index]
    terms = [at[..., 0], at[..., 1]]
    for n in range(_TERMS - 2):
        before = terms[n - 1] if n else 0.0
        terms.append((centre * terms[n] + before) / ((n + 2) * (n + 1)))
    value, slope = terms[-1], (_TERMS - 1) * terms[-1]
    for n in range(_TERMS - 2, 0, -1):
        value, slope = value * h + terms[n], slope * h + n * terms[n]
    return value * h + terms[0], slope


def _product(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """A product in double precision and its rounding error (Dekker 1971)."""

    def halves(x: Tensor) -> tuple[Tensor, Tensor]:
        high = x * 134217729.0  # 2^27 + 1
        high = high - (high - x)
        return high, x - high

    out, (a, a_low), (b, b_low) = a * b, halves(a), halves(b)
    return out, ((a * b - out) + a * b_low + a_low * b) + a_low * b_low


def _phase(size: Tensor, root: Tensor) -> tuple[Tensor, Tensor]:
    """`2/3 x^(3/2)` as a sum of two doubles, since far out the rounding of one would be a turn of the
    wave."""
    if size.dtype != wg.float64:
        phase = size * root * (2 / 3)
        return phase, wg.zeros_like(phase)
    square, error = _product(root, root)
    root_low = ((size - square) - error) / (2 * root)
    cube, low = _product(size, root)
    phase, error = _product(cube, wg.full_like(cube, 2 / 3))
    # 2/3 less its double is 2^-54 times 2/3.
    low = error + (low + size * root_low + cube * 2.0**-54) * (2 / 3)
    # Beyond, halves overflow, and doubles are further apart than turns.
    return phase, low.masked_fill(size > 1e100, 0.0)


def _outside(size: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Value and slope above the grid, and below it, at this distance from 0."""
    values, slopes = _coefficients()
    root = size.sqrt()
    phase, low = _phase(size, root)
    inverse = 1 / phase
    fourth = root.sqrt()
    above = [
        (-phase).exp() * (1 - low) / (2 * math.sqrt(math.pi)) * _sum(-inverse, c) for c in (values, slopes)
    ]
    above = [above[0] / fourth, -above[1] * fourth]
    square = -inverse.square()
    even = [_sum(square, c[::2]) for c in (values, slopes)]
    odd = [_sum(square, c[1::2]) * inverse for c in (values, slopes)]
    # Beyond all that can be told apart, the waves have died out.
    phase = phase.masked_fill(phase == wg.inf, 0.0)
    cos, sin = phase.cos(), phase.sin()
    cos, sin = cos * low.cos() - sin * low.sin(), sin * low.cos() + cos * low.sin()
    # The sum and the difference are those of the phase less pi / 4.
    cos, sin = (cos + sin) / math.sqrt(2 * math.pi), (sin - cos) / math.sqrt(2 * math.pi)
    below = [(cos * even[0] + sin * odd[0]) / fourth, (sin * even[1] - cos * odd[1]) * fourth]
    return above, below


def _airy(x: Tensor, order: int) -> Tensor:
    """The function, or its derivative."""
    from wengert.distributions.numerics.special import in_double

    @in_double
    def value(x: Tensor) -> Tensor:
        within = x.abs() <= _END
        inside = _inside(wg.where(within, x, 0.0))[order]
        above, below = _outside(wg.where(within, 2.0 * _END, x.abs()))
        return wg.where(within, inside, wg.where(x > 0, above[order], below[order]))

    return value(x.detach())


@wg.custom_jvp
def _value(x: Tensor) -> Tensor:
    return _airy(x, 0)


@wg.custom_jvp
def _slope(x: Tensor) -> Tensor:
    return _airy(x, 1)


_value.defjvps(lambda t, out, x: t * _slope(x))
_slope.defjvps(lambda t, out, x: t * (x * _value(x)))


def airy_ai(input: TensorLike) -> Tensor:
    """Returns the Airy function `Ai`, the solution of `y'' = x y` that vanishes at infinity.

    Computed in float64 but on GPUs; integers become float32. Its derivatives of all orders follow from the
    equation.

    Example:
        >>> wg.special.airy_ai(wg.tensor([-1.0, 0.0, 1.0]))
        tensor([0.5356, 0.3550, 0.1353])
    """
    x: Any = operand("airy_ai", input)
    if x.is_complex():
        raise TypeError(f"airy_ai: real numbers expected, got {x.dtype}")
    return _value(x if x.is_floating_point() else x.float())
