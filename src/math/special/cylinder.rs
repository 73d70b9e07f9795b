//! Bessel functions of the first and second kind, and modified ones of the second kind, of order 0 and 1.
//!
//! Up to `FAR`, polynomials by the position of `x^2`: `J` with its first root divided out, `Y` beside its
//! logarithm and its pole. From there on the sine and cosine of `x`, whose multiples of pi are taken out
//! exactly, times the modulus that Hankel's expansion describes, as polynomials in `1 / x^2`. Next to the
//! other roots errors are small beside the modulus. `K` likewise: beside its logarithm and pole up to 1, from
//! there on the exponential over the square root of `x` (M. Abramowitz and I. Stegun, *Handbook of
//! Mathematical Functions*, 1964, chapter 9).

use super::{Precision, exp_times, series};
use crate::math::{INFINITY, Lane, NAN};
use std::f64::consts::FRAC_2_PI;

/// Where one polynomial replaces the other.
const FAR: f64 = 5.0;
/// `2 / FAR^2`.
const TO_POSITION: f64 = 0.08;
/// `1 / sqrt(pi)`.
const FRAC_1_SQRT_PI: f64 = 0.564_189_583_547_756_3;

/// The first terms of `J0(x)`, and of `J1(x) / x`, in `x^2 / 4`.
const AT_ZERO: [[f64; 4]; 2] = [[1.0, -1.0, 0.25, -1.0 / 36.0], [0.5, -0.25, 1.0 / 24.0, -1.0 / 288.0]];

/// The position of `size^2` in the tables up to `FAR`.
#[inline(always)]
fn position<L: Lane>(size: L) -> L {
    size * size * TO_POSITION - 1.0
}

/// `J0(size)`, or `J1(size) / size`, below `FAR`.
#[inline(always)]
fn first_near<P: Precision, L: Lane>(size: L, order: usize) -> L {
    let [high, low] = P::BESSEL_ROOTS[order];
    let rest = series(position(size), if order == 0 { P::J0 } else { P::J1 });
    let value = ((size - high) - low) * (size + high) * rest;
    // Next to 0 by the first terms, so that the largest value is exact.
    let quarter = size * size * 0.25;
    L::select(size.lt(L::lit(0.03)), series(quarter, &AT_ZERO[order]), value)
}

/// The functions of the first and second kind from `FAR` on.
#[inline(always)]
fn both_far<P: Precision, L: Lane>(size: L, order: usize) -> (L, L) {
    let inverse = L::lit(FAR) / size;
    let at = inverse * inverse * 2.0 - 1.0;
    let (real, imaginary) = if order == 0 { (P::P0, P::Q0) } else { (P::P1, P::Q1) };
    let (p, q) = (series(at, real), series(at, imaginary) / size);
    // The sine and cosine of `x - pi/4`, or of `x - 3/4 pi`, times the square root of 2.
    let (sin, cos) = (size.sin(), size.cos());
    let (cos, sin) = if order == 0 { (cos + sin, sin - cos) } else { (sin - cos, -(sin + cos)) };
    let scale = L::lit(FRAC_1_SQRT_PI) / size.sqrt();
    ((p * cos - q * sin) * scale, (p * sin + q * cos) * scale)
}

/// The function of the first kind; an odd one is that of a size.
#[inline(always)]
fn first<P: Precision, L: Lane>(size: L, order: usize) -> L {
    let near = first_near::<P, L>(size, order);
    let near = if order == 0 { near } else { near * size };
    let below = size.lt(L::lit(FAR));
    let far = both_far::<P, L>(L::select(below, L::lit(FAR), size), order).0;
    let value = L::select(below, near, far);
    L::select(size.eq(size.special(INFINITY)), L::lit(0.0), value)
}

/// The function of the first kind, of order 0.
#[inline(always)]
pub fn bessel_j0<P: Precision, L: Lane>(x: L) -> L {
    first::<P, L>(x.abs(), 0)
}

/// The function of the first kind, of order 1.
#[inline(always)]
pub fn bessel_j1<P: Precision, L: Lane>(x: L) -> L {
    let value = first::<P, L>(x.abs(), 1);
    L::select(x.lt(L::lit(0.0)), -value, L::select(x.eq(L::lit(0.0)), x, value))
}

/// The function of the second kind: NaN below 0.
#[inline(always)]
fn second<P: Precision, L: Lane>(x: L, order: usize) -> L {
    let zero = L::lit(0.0);
    let below = x.lt(L::lit(FAR));
    let inside = L::select(below & x.gt(zero), x, L::lit(1.0));
    let first = first_near::<P, L>(inside, order);
    let near = if order == 0 {
        first.mul_add(inside.log() * FRAC_2_PI, series(position(inside), P::Y0))
    } else {
        let smooth = first.mul_add(inside.log() * FRAC_2_PI, series(position(inside), P::Y1));
        inside.mul_add(smooth, -(L::lit(FRAC_2_PI) / inside))
    };
    let far = both_far::<P, L>(L::select(below, L::lit(FAR), x), order).1;
    let value = L::select(below, near, far);
    let value = L::select(x.eq(x.special(INFINITY)), zero, value);
    let value = L::select(x.eq(zero), -x.special(INFINITY), value);
    L::select(x.lt(zero), x.special(NAN), value)
}

/// The function of the second kind, of order 0.
#[inline(always)]
pub fn bessel_y0<P: Precision, L: Lane>(x: L) -> L {
    second::<P, L>(x, 0)
}

/// The function of the second kind, of order 1.
#[inline(always)]
pub fn bessel_y1<P: Precision, L: Lane>(x: L) -> L {
    second::<P, L>(x, 1)
}

/// `value` for `x` above 0, infinite at 0, NaN below.
#[inline(always)]
fn above_zero<L: Lane>(x: L, value: L) -> L {
    let value = L::select(x.eq(L::lit(0.0)), x.special(INFINITY), value);
    L::select(x.lt(L::lit(0.0)), x.special(NAN), value)
}

/// The modified function of the second kind for `0 < x <= 1`.
#[inline(always)]
fn modified_near<P: Precision, L: Lane>(x: L, order: usize) -> L {
    let (half, square, logarithm) = (x * 0.5, x * x, x.log());
    if order == 0 {
        return series(square, P::K0) - logarithm * series(half * half, P::I0);
    }
    let smooth = (logarithm * 0.5).mul_add(series(half * half, P::I1), series(square, P::K1));
    x.mul_add(smooth, L::lit(1.0) / x)
}

/// `exp(x)` times the modified function of the second kind for `x >= 1`.
#[inline(always)]
fn modified_far<P: Precision, L: Lane>(x: L, order: usize) -> L {
    let table = if order == 0 { P::K0_FAR } else { P::K1_FAR };
    series(L::lit(2.0) / x - 1.0, table) / x.sqrt()
}

/// The modified function of the second kind, times the exponential if it is `scaled`.
#[inline(always)]
fn modified<P: Precision, L: Lane>(x: L, order: usize, scaled: bool) -> L {
    let one = L::lit(1.0);
    let below = x.lt(one);
    let inside = L::select(below & x.gt(L::lit(0.0)), x, one);
    let outside = L::select(below, one, x);
    let (near, far) = (modified_near::<P, L>(inside, order), modified_far::<P, L>(outside, order));
    let value = if scaled {
        L::select(below, near * inside.exp(), far)
    } else {
        let end = outside.clamp(1.0, P::SILU_END);
        L::select(below, near, exp_times::<P, L>(-end, L::lit(0.0), far))
    };
    above_zero(x, value)
}

/// The modified function of the second kind, of order 0.
#[inline(always)]
pub fn modified_bessel_k0<P: Precision, L: Lane>(x: L) -> L {
    modified::<P, L>(x, 0, false)
}

/// The modified function of the second kind, of order 1.
#[inline(always)]
pub fn modified_bessel_k1<P: Precision, L: Lane>(x: L) -> L {
    modified::<P, L>(x, 1, false)
}

/// The modified function of the second kind, of order 0, times `exp(x)`.
#[inline(always)]
pub fn scaled_modified_bessel_k0<P: Precision, L: Lane>(x: L) -> L {
    modified::<P, L>(x, 0, true)
}

/// The modified function of the second kind, of order 1, times `exp(x)`.
#[inline(always)]
pub fn scaled_modified_bessel_k1<P: Precision, L: Lane>(x: L) -> L {
    modified::<P, L>(x, 1, true)
}
