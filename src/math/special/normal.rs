//! The normal distribution: its function and quantiles, GELU, the complement and the inverse of the error
//! function.
//!
//! Near 0 all use the polynomial of the error function. The tail is `exp(-x^2)` times a slowly varying
//! function (M. Shepherd and J. Laframboise, 1981), so that small values have as many good bits as others;
//! the exponent is computed to twice the precision.

use super::{Precision, exp_times, log_parts, series, square_parts};
use crate::math::double::{self, Double};
use crate::math::{INFINITY, Lane, NAN};
use std::f64::consts::{FRAC_1_SQRT_2, LN_2, SQRT_2};

/// Up to here, `erfc` is `1 - erf`.
const NEAR: f64 = 0.4;
const NDTR_NEAR: f64 = NEAR * SQRT_2;

/// The error function for `|t| <= NEAR`.
#[inline(always)]
fn erf_near<P: Precision, L: Lane>(t: L) -> L {
    t.mul_add(series(t * t, P::ERF), t)
}

/// `exp(t^2) erfc(t)` for `NEAR <= t <= ERFC_END`.
#[inline(always)]
fn erfcx_between<P: Precision, L: Lane>(t: L) -> L {
    let u = (t - P::ERFCX_CENTRE) / (t + P::ERFCX_CENTRE);
    series(u, P::ERFCX) / (t + t + 1.0)
}

/// Complement of the error function.
#[inline(always)]
pub fn erfc<P: Precision, L: Lane>(x: L) -> L {
    let t = x.abs().clamp(0.0, P::ERFC_END);
    let (high, low) = square_parts::<P, L>(t);
    let tail = exp_times::<P, L>(-high, -low, erfcx_between::<P, L>(t));
    let far = L::select(x.lt(L::lit(0.0)), L::lit(2.0) - tail, tail);
    L::select(t.lt(L::lit(NEAR)), L::lit(1.0) - erf_near::<P, L>(x), far)
}

/// `factor * Phi(-size)` for the normal distribution function `Phi` and
/// `sqrt(2) NEAR <= size <= sqrt(2) ERFC_END`.
#[inline(always)]
fn normal_tail<P: Precision, L: Lane>(size: L, factor: L) -> L {
    let (high, low) = square_parts::<P, L>(size);
    exp_times::<P, L>(high * -0.5, low * -0.5, factor * erfcx_between::<P, L>(size * FRAC_1_SQRT_2))
}

/// `Phi(x)` for `|x| <= sqrt(2) NEAR`.
#[inline(always)]
fn normal_near<P: Precision, L: Lane>(x: L) -> L {
    erf_near::<P, L>(x * FRAC_1_SQRT_2).mul_add(L::lit(0.5), L::lit(0.5))
}

/// Distribution function of the standard normal distribution.
#[inline(always)]
pub fn ndtr<P: Precision, L: Lane>(x: L) -> L {
    let size = x.abs().clamp(0.0, P::NDTR_END);
    let tail = normal_tail::<P, L>(size, L::lit(0.5));
    let far = L::select(x.lt(L::lit(0.0)), tail, L::lit(1.0) - tail);
    L::select(size.lt(L::lit(NDTR_NEAR)), normal_near::<P, L>(x), far)
}

/// `x Phi(x)`; for positive `x`, that is `x - x Phi(-x)`.
#[inline(always)]
pub fn gelu<P: Precision, L: Lane>(x: L) -> L {
    let size = x.abs().clamp(0.0, P::NDTR_END);
    let missing = normal_tail::<P, L>(size, size * 0.5);
    let far = L::select(x.lt(L::lit(0.0)), -missing, x - missing);
    L::select(size.lt(L::lit(NDTR_NEAR)), x * normal_near::<P, L>(x), far)
}

/// Inverse of the error function (M. Giles, 2012): `x` times a polynomial in `w = -log(1 - x^2)` or its root.
#[inline(always)]
pub fn erfinv<P: Precision, L: Lane>(x: L) -> L {
    let size = x.abs();
    let one = L::lit(1.0);
    let (high, low) = log_parts::<P, L>((one - size) * (one + size));
    let w = -(high + low);
    let near = series(w - 2.5, P::ERFINV);
    let far = series(w.sqrt() - 3.0, P::ERFINV_TAIL);
    let value = x * L::select(w.lt(L::lit(5.0)), near, far);
    erfinv_ends(x, value)
}

/// `value` for `|x| < 1`, infinities at the ends, NaN beyond.
#[inline(always)]
fn erfinv_ends<L: Lane>(x: L, value: L) -> L {
    let size = x.abs();
    let value = L::select(size.lt(L::lit(1.0)), value, x * x.special(INFINITY));
    L::select(size.gt(L::lit(1.0)), x.special(NAN), value)
}

/// [`erfinv`] in double precision: one step of Halley's method from the result of the polynomials.
#[inline(always)]
pub fn double_erfinv<L: Double>(x: L) -> L {
    let size = x.abs();
    let start = erfinv::<f64, L>(size);
    let near = double::erf(start) - size;
    let far = (L::lit(1.0) - size) - erfc::<f64, L>(start);
    let over = L::select(size.lt(L::lit(0.5)), near, far);
    let slope = (-(start * start)).exp() * std::f64::consts::FRAC_2_SQRT_PI;
    let step = over / slope;
    let value = start - step / (start.mul_add(step, L::lit(1.0)));
    erfinv_ends(x, crate::math::with_sign_of(value, x))
}

/// `1 / sqrt(pi)`.
const FRAC_1_SQRT_PI: f64 = 0.564_189_583_547_756_3;
/// `exp(x^2) erfc(x) sqrt(pi) x` in `1 / x^2`: `(-1)^k (2k - 1)!! / 2^k`.
const ERFCX_FAR: [f64; 8] = [1.0, -0.5, 0.75, -1.875, 6.5625, -29.53125, 162.421875, -1055.7421875];

/// `exp(x^2) erfc(x)`: by its asymptotic series where `erfc` itself is 0, infinite far below 0.
#[inline(always)]
pub fn erfcx<P: Precision, L: Lane>(x: L) -> L {
    let (size, end) = (x.abs(), L::lit(P::ERFC_END));
    let t = size.clamp(0.0, P::ERFC_END);
    let (high, low) = square_parts::<P, L>(t);
    let between = erfcx_between::<P, L>(t);
    let near = exp_times::<P, L>(high, low, L::lit(1.0) - erf_near::<P, L>(x));
    let left = exp_times::<P, L>(high, low, L::lit(2.0)) - between;
    let beyond = size.gt(end);
    let inverse = L::lit(1.0) / L::select(beyond, size, end);
    let far = inverse * FRAC_1_SQRT_PI * series(inverse * inverse, &ERFCX_FAR);
    let right = L::select(beyond, far, between);
    L::select(t.lt(L::lit(NEAR)), near, L::select(x.lt(L::lit(0.0)), left, right))
}

/// Quantiles closer to an end than this are those of a tail.
const TAIL: f64 = 0.25;
/// A rational approximation of them in `sqrt(-2 log(q))`, which that exceeds (M. Abramowitz and I. Stegun,
/// 1964, 26.2.23).
const QUANTILE: [f64; 3] = [2.515517, 0.802853, 0.010328];
const QUANTILE_BELOW: [f64; 4] = [1.0, 1.432788, 0.189269, 0.001308];
/// `sqrt(2 pi)`.
const ROOT_TAU: f64 = 2.506_628_274_631_000_5;
const HALF_ROOT_TAU: f64 = 0.5 * ROOT_TAU;

/// The number of which `q` is the probability to lie above, for `0 < q <= TAIL`: two steps of Halley's method
/// on the ratio of the distribution function to the density, which neither over- nor underflows.
#[inline(always)]
fn upper_quantile<P: Precision, L: Lane>(q: L) -> L {
    let (high, low) = log_parts::<P, L>(q);
    let t = ((high + low) * -2.0).sqrt();
    let (lifted, shift) = crate::math::normal::<P, L>(q);
    let mut x = t - series(t, &QUANTILE) / series(t, &QUANTILE_BELOW);
    for _ in 0..2 {
        let (high, low) = square_parts::<P, L>(x);
        let wanted = exp_times::<P, L>(high * 0.5 - shift * LN_2, low * 0.5, lifted * ROOT_TAU);
        let over = wanted - erfcx_between::<P, L>(x * FRAC_1_SQRT_2) * HALF_ROOT_TAU;
        x = x - over / (x * over).mul_add(L::lit(0.5), L::lit(1.0));
    }
    x
}

/// The quantile of the standard normal distribution: infinite at 0 and 1, NaN outside.
#[inline(always)]
pub fn ndtri<P: Precision, L: Lane>(p: L) -> L {
    let (zero, one, infinity) = (L::lit(0.0), L::lit(1.0), p.special(INFINITY));
    let upper = p.gt(L::lit(0.5));
    let q = L::select(upper, one - p, p);
    let outside = q.lt(zero);
    let tail = q.lt(L::lit(TAIL));
    let far = upper_quantile::<P, L>(L::select(tail & q.gt(zero), q, L::lit(TAIL)));
    let far = L::select(q.eq(zero), infinity, far);
    let far = L::select(upper, far, -far);
    // Twice the distance from the middle is exact there.
    let middle = (p * 2.0 - 1.0).erfinv() * SQRT_2;
    L::select(outside, p.special(NAN), L::select(tail, far, middle))
}
