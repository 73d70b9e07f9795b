//! The normal distribution: its function, GELU, the complement and the inverse of the error function.
//!
//! Near 0 all use the polynomial of the error function. The tail is `exp(-x^2)` times a slowly varying
//! function (M. Shepherd and J. Laframboise, 1981), so that small values have as many good bits as others;
//! the exponent is computed to twice the precision.

use super::{Precision, exp_times, log_parts, series, square_parts};
use crate::math::double::{self, Double};
use crate::math::{INFINITY, Lane, NAN};
use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

/// Up to here, `erfc` is `1 - erf`.
const NEAR: f64 = 0.4;
const NDTR_NEAR: f64 = NEAR * SQRT_2;

/// The error function for `|t| <= NEAR`.
#[inline(always)]
fn erf_near<P: Precision, L: Lane>(t: L) -> L {
    t.mul_add(series(t * t, P::ERF), t)
}

/// `exp(t^2) erfc(t)` for `t >= NEAR`.
#[inline(always)]
fn erfcx<P: Precision, L: Lane>(t: L) -> L {
    let u = (t - P::ERFCX_CENTRE) / (t + P::ERFCX_CENTRE);
    series(u, P::ERFCX) / (t + t + 1.0)
}

/// Complement of the error function.
#[inline(always)]
pub fn erfc<P: Precision, L: Lane>(x: L) -> L {
    let t = x.abs().clamp(0.0, P::ERFC_END);
    let (high, low) = square_parts::<P, L>(t);
    let tail = exp_times::<P, L>(-high, -low, erfcx::<P, L>(t));
    let far = L::select(x.lt(L::lit(0.0)), L::lit(2.0) - tail, tail);
    L::select(t.lt(L::lit(NEAR)), L::lit(1.0) - erf_near::<P, L>(x), far)
}

/// `factor * Phi(-size)` for the normal distribution function `Phi` and
/// `sqrt(2) NEAR <= size <= sqrt(2) ERFC_END`.
#[inline(always)]
fn normal_tail<P: Precision, L: Lane>(size: L, factor: L) -> L {
    let (high, low) = square_parts::<P, L>(size);
    exp_times::<P, L>(high * -0.5, low * -0.5, factor * erfcx::<P, L>(size * FRAC_1_SQRT_2))
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
