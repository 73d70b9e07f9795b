//! Vector mathematics in double precision: the functions of `src/math/mod.rs` with longer polynomials.
//!
//! GPUs have no such numbers, so these are for CPU lanes alone ([`Wide`]) and may use fused multiply-adds,
//! which make products exact without splitting. Lanes without them imitate them to the bit.
//!
//! Largest errors in units in the last place, against 40-digit arithmetic, are in `benches/results/ulp.md`;
//! `tools/ulp.py` measures them. The coefficients come from `tools/fit_math.py`.
//!
//! Read next: `src/math/double/angle.rs`; `src/math/power.rs`, which needs more than double precision.

mod angle;

pub use angle::{cos, sin, tan};

use super::{INFINITY, log_edges, polynomial, power_of_two, split, with_sign_of};
use crate::math::wide::Wide;

/// A lane of doubles.
pub trait Double: Wide<Number = f64> {}
impl<L: Wide<Number = f64>> Double for L {}

const LOG2_E: f64 = std::f64::consts::LOG2_E;
/// The first 32 bits of `log(2)`: products with exponents are exact.
pub(super) const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
/// `log(2) - LN2_HIGH`.
pub(super) const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// The largest double below 1.
const BELOW_ONE: f64 = 1.0 - f64::EPSILON / 2.0;
/// Bits of the square root of 1/2.
pub(super) const ROOT_HALF: i64 = 0x3fe6_a09e_667f_3bcd;
/// `(exp(r) - 1 - r) / r^2` on `|r| <= log(2)/2`.
pub(super) const EXP: [f64; 10] = [
    0.5000000000000013, 0.166666666666667, 0.04166666666651491, 0.00833333333330725, 0.0013888888947160018,
    0.0001984126991732002, 2.480148978239534e-05, 2.7557216331091683e-06, 2.763134074582445e-07,
    2.511785877443642e-08,
];
/// `(2 atanh(s) - 2 s) / s^3` in `s^2`, `|s| <= 0.1716`.
pub(super) const LOG: [f64; 7] = [
    0.6666666666666735, 0.39999999999409336, 0.2857142874369247, 0.22222198428193157, 0.18183572402351536,
    0.1531383082711078, 0.14798273045161936,
];

/// `(turns, n, r, low)` with `x = n log(2) + r + low`, `|r| <= log(2)/2` and the rounding error `low` of `r`.
#[inline(always)]
fn reduce<L: Double>(x: L) -> (L, L::Int, L, L) {
    let (turns, n) = (x * LOG2_E).nearest_int();
    let high = x.minus_product(turns, L::lit(LN2_HIGH));
    let r = high.minus_product(turns, L::lit(LN2_LOW));
    let low = (high - r).minus_product(turns, L::lit(LN2_LOW));
    (turns, n, r, low)
}

/// `exp(r) - 1 - r` for `|r| <= log(2)/2`.
#[inline(always)]
fn exp_rest<L: Double>(r: L) -> L {
    (r * r) * polynomial(r, &EXP)
}

/// Natural exponential.
#[inline(always)]
pub fn exp<L: Double>(x: L) -> L {
    let x = x.clamp(-746.0, 710.0);
    let (turns, n) = (x * LOG2_E).nearest_int();
    let r = x.minus_product(turns, L::lit(LN2_HIGH)).minus_product(turns, L::lit(LN2_LOW));
    ((r * r).mul_add(polynomial(r, &EXP), r) + 1.0).scale(turns, n)
}

/// `exp(x) - 1`: the exponential of the reduced argument minus 1, scaled, plus `2^n - 1`.
#[inline(always)]
pub fn expm1<L: Double>(x: L) -> L {
    let (_, n, r, low) = reduce(x.clamp(-40.0, 710.0));
    let near = r + (exp_rest(r) + low);
    // 2^n itself overflows for the last n, so the sum is formed at half size.
    let half = power_of_two::<L>(n - L::int(1));
    let far = near.mul_add(half, half - 0.5);
    let result = L::select(L::int_eq(n, L::int(0)), near, far + far);
    L::select(x.eq(L::lit(0.0)), x, result)
}

/// Hyperbolic tangent: `(exp(2x) - 1) / (exp(2x) + 1)`, corrected by the rounding error of the numerator.
#[inline(always)]
pub fn tanh<L: Double>(x: L) -> L {
    let size = x.abs();
    let doubled = size + size;
    let (turns, n) = (doubled * LOG2_E).nearest_int();
    let r = doubled.minus_product(turns, L::lit(LN2_HIGH)).minus_product(turns, L::lit(LN2_LOW));
    // exp(2x) - 1 = 2^n (r + ...) + (2^n - 1) = first + rest
    let power = power_of_two::<L>(n);
    let start = power - 1.0;
    let term = power * r;
    let first = start + term;
    let rest = power.mul_add(exp_rest(r), term - (first - start));
    let below = (first + rest) + 2.0;
    // The quotient, and one step of correction.
    let inverse = L::lit(1.0) / below;
    let quotient = (first + rest) * inverse;
    let remainder = first.minus_product(quotient, below) + rest;
    let value = remainder.mul_add(inverse, quotient);
    let large = !size.lt(L::lit(18.7));
    if !L::may_hold(large) {
        return with_sign_of(value, x);
    }
    let end = L::select(size.gt(L::lit(19.061547465398498)), L::lit(1.0), L::lit(BELOW_ONE));
    with_sign_of(L::select(size.ge(L::lit(18.7)), end, value), x)
}

/// `log(1 + f) + e * log(2)` for `1 + f` in `[sqrt(1/2), sqrt(2))`: with `s = f / (2 + f)`, the logarithm is
/// `2 atanh(s) = f - (f^2/2 - s (f^2/2 + rest))`.
#[inline(always)]
fn log_sum<L: Double>(f: L, e: L) -> L {
    let s = f / (f + 2.0);
    let square = s * s;
    let half = f * f * 0.5;
    let rest = square.mul_add(polynomial(square, &LOG), half);
    let low = s.mul_add(rest, e * LN2_LOW);
    e.mul_add(L::lit(LN2_HIGH), f - (half - low))
}

/// Natural logarithm.
#[inline(always)]
pub fn log<L: Double>(x: L) -> L {
    let ordinary = x.ge(L::lit(f64::MIN_POSITIVE)) & x.lt(x.special(INFINITY));
    let (e, m) = split::<f64, L>(x);
    let result = log_sum(m - 1.0, L::from_int(e));
    if !L::may_hold(!ordinary) {
        return result;
    }
    // Subnormal numbers are scaled by 2^54 first.
    let (e, m) = split::<f64, L>(x * 18_014_398_509_481_984.0);
    let small = log_sum(m - 1.0, L::from_int(e) - 54.0);
    let result = L::select(x.lt(L::lit(f64::MIN_POSITIVE)), small, result);
    log_edges(x, result)
}

/// `log(1 + x)`: the exponent comes from the rounded `1 + x`, the mantissa from `x` itself, no bit lost.
#[inline(always)]
pub fn log1p<L: Double>(x: L) -> L {
    let sum = x + 1.0;
    let (e, _) = split::<f64, L>(sum);
    let shrink = power_of_two::<L>(L::int(0) - e);
    let f = x.mul_add(shrink, shrink - 1.0);
    let result = log_sum(f, L::from_int(e));
    let ordinary = sum.gt(L::lit(0.0)) & sum.lt(L::lit(9_007_199_254_740_992.0)) & x.ne(L::lit(0.0));
    if !L::may_hold(!ordinary) {
        return result;
    }
    // From 2^53 on, the 1 is negligible.
    let result = L::select(x.lt(L::lit(9_007_199_254_740_992.0)), result, log(x));
    let result = log_edges(sum, result);
    L::select(x.eq(L::lit(0.0)), x, result)
}

/// The error function: an odd polynomial near 0, `1 - exp(polynomial)` elsewhere.
#[inline(always)]
pub fn erf<L: Double>(x: L) -> L {
    let size = x.abs();
    let near = size.mul_add(polynomial(size * size, &ERF), size);
    let far = size.ge(L::lit(0.85));
    if !L::may_hold(far) {
        return with_sign_of(near, x);
    }
    let middle = polynomial(size - 1.5, &ERF_MIDDLE);
    let beyond = size.ge(L::lit(2.25));
    let logarithm = if L::may_hold(beyond) {
        // Beyond 6 the result rounds to 1.
        L::select(beyond, polynomial(size.clamp(0.0, 6.0) - 3.0, &ERF_TAIL), middle)
    } else {
        middle
    };
    let value = L::select(far, L::lit(1.0) - exp(logarithm), near);
    with_sign_of(value, x)
}

/// `(erf(x) - x) / x` in `x^2`, `|x| <= 0.85`.
pub(super) const ERF: [f64; 12] = [
    0.1283791670955126, -0.3761263890318374, 0.11283791670954658, -0.02686617064501153, 0.005223977623853908,
    -0.0008548326898857166, 0.0001205532677093735, -1.4925445950265615e-05, 1.6457608094406058e-06,
    -1.6299793978798798e-07, 1.4185510826029903e-08, -8.826996532297013e-10,
];
/// `log(1 - erf(x))` in `x - 1.5`, `0.84 <= x <= 2.26`.
const ERF_MIDDLE: [f64; 17] = [
    -3.3844920895515527, -3.5088008017795276, -0.892640330615037, -0.025824140633644656,
    0.006006746386453582, -0.0012572166868156393, 0.00021596330486785986, -2.2473688218286623e-05,
    -2.646834631457231e-06, 2.37084175741253e-06, -8.187608575299358e-07, 1.925795351839131e-07,
    -2.7870691187683015e-08, -1.0154253120715424e-09, 2.4001278031670287e-09, -1.0605427769288944e-09,
    2.5920838529642355e-10,
];
/// `log(1 - erf(x))` in `x - 3`, `2.24 <= x <= 6`.
const ERF_TAIL: [f64; 13] = [
    -10.720363041981118, -6.303753689003068, -0.9573942187996036, -0.007411891796637655,
    0.0013533104036524642, -0.00024569218128401015, 4.3081955498416706e-05, -7.115119634725845e-06,
    1.0691567493605703e-06, -1.3692224045170235e-07, 1.1545803529301331e-08, 1.2643251311592108e-09,
    -6.439917838954831e-10,
];
