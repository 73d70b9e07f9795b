//! The logarithm of the gamma function and its derivatives.
//!
//! Around 1, 2 and the root of the digamma function, they use polynomials with that root divided out. Steps
//! of 1 lead there from everywhere below `GAMMA_FAR`. Above it they use Stirling's series, below 0 the
//! reflection formula (M. Abramowitz and I. Stegun, *Handbook of Mathematical Functions*, 1964, chapter 6).
//! Next to its other roots, between negative integers, `lgamma` is a small difference and has few good bits.

use super::{Precision, log_parts, series, sin_pi};
use crate::math::{INFINITY, Lane, NAN};
use std::f64::consts::PI;

const LN_PI: f64 = 1.144_729_885_849_400_2;
/// `log(2 pi) / 2 - 1/2`.
const STIRLING_START: f64 = 0.418_938_533_204_672_7;
/// Up to here `lgamma` is even and `digamma` is `-1 / x`, in double precision.
const POLE: f64 = 1e-17;
/// Below this, arguments step up by 1 to be near a table.
const SMALL: f64 = 0.75;

/// Logarithm of the absolute value of the gamma function.
#[inline(always)]
pub fn lgamma<P: Precision, L: Lane>(x: L) -> L {
    let size = x.abs();
    let value = L::select(size.lt(x.special(INFINITY)), lgamma_positive::<P, L>(size), size);
    let negative = x.lt(L::lit(0.0));
    if !L::may_hold(negative) {
        return value;
    }
    let sine = sin_pi::<P, L>(size - size.round()).abs();
    let product = size * sine;
    let (high, low) = log_parts::<P, L>(product);
    let reflected = (L::lit(LN_PI) - (high + low)) - value;
    let reflected = L::select(product.eq(L::lit(0.0)), x.special(INFINITY), reflected);
    // The pole at 0 is the same from both sides, and next to it the product may underflow.
    let apart = size.gt(L::lit(POLE)) & size.lt(x.special(INFINITY));
    L::select(negative & apart, reflected, value)
}

/// [`lgamma`] for `0 <= x < infinity`.
#[inline(always)]
fn lgamma_positive<P: Precision, L: Lane>(x: L) -> L {
    let one = L::lit(1.0);
    let (small, far) = (x.lt(L::lit(SMALL)), x.ge(L::lit(P::GAMMA_FAR)));
    let (mut y, mut product) = (x, one);
    let mut k = 0;
    while k < P::GAMMA_STEPS {
        let above = y.ge(L::lit(2.5));
        let below = y - 1.0;
        product = L::select(above, product * below, product);
        y = L::select(above, below, y);
        k += 1;
    }
    // The distance from 1 or from 2; a small x was moved up by 1.
    let by_one = L::select(small, x, y - 1.0).lt(L::lit(0.5));
    let distance = L::select(small, x, y - 1.0);
    let distance = L::select(by_one, distance, L::select(small, x - 1.0, y - 2.0));
    let near = L::select(by_one, series(distance, P::LGAMMA_ONE), series(distance, P::LGAMMA_TWO)) * distance;
    let (high, low) = log_parts::<P, L>(L::select(small | far, x, product));
    let logarithm = high + low;
    let stepped = near + L::select(small, -logarithm, logarithm);
    // Stirling's formula: the large part of the logarithm is exact.
    let inverse = one / x;
    let half = x - 0.5;
    let rest = inverse.mul_add(series(inverse * inverse, P::STIRLING), L::lit(STIRLING_START));
    let stirling = half * (high - 1.0) + half.mul_add(low, rest);
    let value = L::select(far, stirling, stepped);
    L::select(x.eq(L::lit(0.0)), x.special(INFINITY), value)
}

/// The derivative of [`lgamma`]: NaN at negative integers, infinite at 0.
#[inline(always)]
pub fn digamma<P: Precision, L: Lane>(x: L) -> L {
    let size = x.abs();
    let value = L::select(size.lt(x.special(INFINITY)), digamma_positive::<P, L>(size), size);
    let below = x.le(L::lit(0.0));
    if !L::may_hold(below) {
        return value;
    }
    let inverse = L::lit(1.0) / size;
    let (r, cotangent) = cotangent::<P, L>(size);
    let cotangent = L::select(r.eq(L::lit(0.0)), x.special(NAN), cotangent);
    let reflected = value + (cotangent * PI + inverse);
    let value = L::select(below, reflected, value);
    // Next to the pole at 0 the terms of the reflection may overflow.
    L::select(size.lt(L::lit(POLE)), L::lit(-1.0) / x, value)
}

/// The distance `r` of `x` from the nearest integer, and `cos(pi x) / sin(pi x)`.
#[inline(always)]
fn cotangent<P: Precision, L: Lane>(x: L) -> (L, L) {
    let r = x - x.round();
    (r, sin_pi::<P, L>(L::lit(0.5) - r.abs()) / sin_pi::<P, L>(r))
}

/// [`digamma`] for `0 < x < infinity`.
#[inline(always)]
fn digamma_positive<P: Precision, L: Lane>(x: L) -> L {
    let one = L::lit(1.0);
    let (small, far) = (x.lt(L::lit(SMALL)), x.ge(L::lit(P::GAMMA_FAR)));
    // The sum of the inverses of the steps, as a fraction.
    let (mut y, mut above, mut under) = (x, L::lit(0.0), one);
    let mut k = 0;
    while k < P::GAMMA_STEPS {
        let steps = y.ge(L::lit(2.25));
        let below = y - 1.0;
        above = L::select(steps, above.mul_add(below, under), above);
        under = L::select(steps, under * below, under);
        y = L::select(steps, below, y);
        k += 1;
    }
    let y = L::select(small, x + 1.0, y);
    let (above, under) = (L::select(small, -one, above), L::select(small, x, under));
    // Next to the root the first difference is exact, and its last bit is 0. Clearing that bit keeps
    // compilers from merging the two constants, which would lose the second one.
    let distance = L::from_bits((y - P::DIGAMMA_ROOT[0]).bits() & L::int(-2));
    let from_root = distance - P::DIGAMMA_ROOT[1];
    let near = from_root.mul_add(series(y - 1.5, P::DIGAMMA), above / under);
    let inverse = one / x;
    let square = inverse * inverse;
    let (high, low) = log_parts::<P, L>(x);
    let rest = inverse.mul_add(L::lit(0.5), square * series(square, P::DIGAMMA_REST));
    L::select(far, high + (low - rest), near)
}

/// `B_2j / (2j)!` for the Bernoulli numbers `B`.
const EULER_MACLAURIN: [f64; 10] = [
    0.08333333333333333, -0.001388888888888889, 3.306878306878307e-05, -8.267195767195768e-07,
    2.08767569878681e-08, -5.284190138687493e-10, 1.3382536530684679e-11, -3.3896802963225829e-13,
    8.586062056277845e-15, -2.174868698558062e-16,
];
/// The highest order; larger ones are lowered to it.
const MOST: usize = 40;

/// Derivative of order `order` of [`digamma`]; [`digamma`] itself for 0.
///
/// `(-1)^(n+1) n! zeta(n + 1, x)`, with the zeta function by Euler-Maclaurin summation.
#[inline(always)]
pub fn polygamma<P: Precision, L: Lane>(x: L, order: usize) -> L {
    let n = order.min(MOST);
    if n == 0 {
        return digamma::<P, L>(x);
    }
    let below = x.le(L::lit(0.0));
    let positive = L::select(below, L::lit(1.0) - x, x);
    let value = zeta::<P, L>(positive, n) * signed_factorial(n);
    if !L::may_hold(below) {
        return value;
    }
    let (r, cotangent) = cotangent::<P, L>(x);
    let pole = cotangent_slope(cotangent, n);
    let reflected = if n.is_multiple_of(2) {
        // At a pole of even order the two sides differ in sign; at 0 the sign of the zero selects the side.
        let side = L::select(x.eq(L::lit(0.0)), L::lit(-1.0) / x, x.special(NAN));
        L::select(r.eq(L::lit(0.0)), side, value - pole)
    } else {
        -value - pole
    };
    L::select(below, reflected, value)
}

/// `(-1)^(n+1) n!`.
#[inline(always)]
fn signed_factorial(n: usize) -> f64 {
    let mut product = if n.is_multiple_of(2) { -1.0 } else { 1.0 };
    for k in 2..=n {
        product *= k as f64;
    }
    product
}

/// `x` to the power of an integer.
#[inline(always)]
fn whole_power<L: Lane>(x: L, n: usize) -> L {
    let (mut result, mut square, mut left) = (L::lit(1.0), x, n);
    while left > 0 {
        if left & 1 == 1 {
            result = result * square;
        }
        left >>= 1;
        if left > 0 {
            square = square * square;
        }
    }
    result
}

/// The coefficients of Euler and Maclaurin's series for [`zeta`].
#[inline(always)]
fn euler_maclaurin(n: usize) -> [f64; EULER_MACLAURIN.len()] {
    let s = (n + 1) as f64;
    let mut factor = s;
    let mut out = EULER_MACLAURIN;
    for (j, out) in out.iter_mut().enumerate() {
        *out *= factor;
        let at = s + 2.0 * j as f64;
        factor *= (at + 1.0) * (at + 2.0);
    }
    out
}

#[inline(always)]
fn reciprocal(n: usize) -> f64 {
    1.0 / n as f64
}

/// The sum of `(x + k)^-(n + 1)` over all `k >= 0`, for `x > 0`.
#[inline(always)]
fn zeta<P: Precision, L: Lane>(x: L, n: usize) -> L {
    let one = L::lit(1.0);
    // The sum over the first terms, and the point from which a series is used.
    let far = x.ge(L::lit(P::ZETA_TERMS as f64));
    let end = one / L::select(far, x, x + P::ZETA_TERMS as f64);
    let square = end * end;
    // The rest after the terms below, in powers of 1 / (x + terms).
    let (mut rest, mut power) = (L::lit(0.0), square);
    for coefficient in euler_maclaurin(n) {
        rest = power.mul_add(L::lit(coefficient), rest);
        power = power * square;
    }
    let series = whole_power(end, n) * ((end * 0.5 + rest) + reciprocal(n));
    let mut sum = series;
    for k in (0..P::ZETA_TERMS).rev() {
        sum = sum + whole_power(one / (x + k as f64), n + 1);
    }
    L::select(far, series, sum)
}

/// `pi` times the derivative of order `n` of `c = cot(pi x)` in powers of `c`, as `c' = -pi (1 + c^2)`.
#[inline(always)]
fn cotangent_polynomial(n: usize) -> [f64; MOST + 2] {
    let mut coefficients = [0.0; MOST + 2];
    coefficients[1] = PI;
    for order in 0..n {
        // -pi (1 + c^2) times the derivative.
        let mut next = [0.0; MOST + 2];
        for k in 1..=order + 1 {
            let slope = -PI * k as f64 * coefficients[k];
            next[k - 1] += slope;
            next[k + 1] += slope;
        }
        coefficients = next;
    }
    coefficients
}

/// [`cotangent_polynomial`] at `c`.
#[inline(always)]
fn cotangent_slope<L: Lane>(c: L, n: usize) -> L {
    series(c, &cotangent_polynomial(n)[..n + 2])
}
