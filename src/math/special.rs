//! Functions with one formula for both precisions: inverse and hyperbolic functions, other bases, the normal
//! distribution, the gamma function's logarithm and its derivatives, modified Bessel functions.
//!
//! Each is written over [`Lane`], with the tables of a [`Precision`]: single for CPUs and GPUs, double for
//! CPUs. This file has their shared steps: an exponential whose last rounding is that of the result, a
//! logarithm in two parts, a square and its rounding error.
//!
//! The coefficients are written by `tools/fit_special.py`. Read next: `src/math/special/arc.rs`.

mod arc;
mod bessel;
mod exponential;
mod gamma;
mod normal;
mod tables;

pub use arc::{acos, acosh, asin, asinh, atan, atanh};
pub use bessel::{i0, i0e, i1, i1e};
pub use exponential::{cosh, exact_sigmoid, exp2, log2, log10, sigmoid, silu, sinh, tan};
pub use gamma::{digamma, lgamma, polygamma};
pub use normal::{double_erfinv, erfc, erfinv, gelu, ndtr};

use super::Lane;

/// The constants and tables of a precision; `src/math/special/tables.rs` has more tables.
pub trait Precision: tables::Tables {
    /// The leading bits of `log(2)`, few enough that products with exponents are exact.
    const LN2_HIGH: f64;
    /// `log(2) - LN2_HIGH`.
    const LN2_LOW: f64;
    /// The leading bits of `log10(2)`, few enough likewise.
    const LOG10_2_HIGH: f64;
    /// `log10(2) - LOG10_2_HIGH`.
    const LOG10_2_LOW: f64;
    /// pi/2 as a sum.
    const HALF_PI: [f64; 2];
    /// pi as a sum.
    const PI: [f64; 2] = [2.0 * Self::HALF_PI[0], 2.0 * Self::HALF_PI[1]];
    /// The bits of the square root of 1/2.
    const ROOT_HALF: i64;
    /// The smallest normal number.
    const SMALLEST: f64;
    /// A factor that makes smaller numbers normal, and its logarithm to base 2.
    const LIFT: [f64; 2];
    /// From here on all numbers are integers.
    const WHOLE: f64;
    /// The mask that clears the lower half of a mantissa.
    const UPPER: i64;
    /// Below this range `2^x` is 0, above it infinite.
    const EXP2_RANGE: [f64; 2];
    /// From here on, `exp(x) / 2` is infinite.
    const SINH_END: f64;
    /// Below the negative of this, the logistic function equals the exponential.
    const SIGMOID_END: f64;
    /// Below the negative of this, `x exp(x)` is 0.
    const SILU_END: f64;
    /// From here on, `erfc` is 0.
    const ERFC_END: f64;
    /// From here on, `ndtr(-x)` is 0.
    const NDTR_END: f64 = Self::ERFC_END * std::f64::consts::SQRT_2;
    /// The parameter `K` of the table `ERFCX`.
    const ERFCX_CENTRE: f64;
    /// From here on, `lgamma` uses Stirling's formula.
    const GAMMA_FAR: f64;
    /// Number of steps of 1 from there down to the table.
    const GAMMA_STEPS: usize;
    /// The positive root of the digamma function as a sum.
    const DIGAMMA_ROOT: [f64; 2];
    /// From here on, modified Bessel functions are infinite.
    const BESSEL_END: f64;
    /// Number of terms of a zeta function that are added one by one; none are from this argument on.
    const ZETA_TERMS: usize;
    /// `(exp(r) - 1 - r) / r^2` on `|r| <= log(2)/2`.
    const EXP: &'static [f64];
    /// `(erf(x) - x) / x` in `x^2` near 0.
    const ERF: &'static [f64];
    /// `log(1 + f)` for `1 + f` in `[sqrt(1/2), sqrt(2))`.
    fn log_near_one<L: Lane>(f: L) -> L;
}

impl Precision for f32 {
    const LN2_HIGH: f64 = super::LN2_HIGH;
    const LN2_LOW: f64 = super::LN2_LOW;
    const LOG10_2_HIGH: f64 = 0.301_025_390_625;
    const LOG10_2_LOW: f64 = 4.605_038_981_195_214e-6;
    const HALF_PI: [f64; 2] = [1.570_796_370_506_286_6, -4.371_139_000_186_242_6e-8];
    const ROOT_HALF: i64 = super::ROOT_HALF;
    const SMALLEST: f64 = f32::MIN_POSITIVE as f64;
    const LIFT: [f64; 2] = [8_388_608.0, 23.0];
    const WHOLE: f64 = 8_388_608.0;
    const UPPER: i64 = -4096;
    const EXP2_RANGE: [f64; 2] = [-151.0, 129.0];
    const SINH_END: f64 = 91.0;
    const SIGMOID_END: f64 = 18.0;
    const SILU_END: f64 = 112.0;
    const ERFC_END: f64 = 10.5;
    const ERFCX_CENTRE: f64 = 2.0;
    const GAMMA_FAR: f64 = 4.0;
    const GAMMA_STEPS: usize = 2;
    const DIGAMMA_ROOT: [f64; 2] = [1.461_632_132_530_212_4, 1.243_814_993_891_890_9e-8];
    const BESSEL_END: f64 = 92.0;
    const ZETA_TERMS: usize = 8;
    const EXP: &'static [f64] = &super::EXP;
    const ERF: &'static [f64] = &super::ERF;
    #[inline(always)]
    fn log_near_one<L: Lane>(f: L) -> L {
        let square = f * f;
        square.mul_add(L::lit(-0.5), (square * f) * super::polynomial(f, &super::LOG)) + f
    }
}

impl Precision for f64 {
    const LN2_HIGH: f64 = super::double::LN2_HIGH;
    const LN2_LOW: f64 = super::double::LN2_LOW;
    const LOG10_2_HIGH: f64 = 0.301_029_995_663_839_14;
    const LOG10_2_LOW: f64 = 1.420_502_322_726_61e-13;
    const HALF_PI: [f64; 2] = [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17];
    const ROOT_HALF: i64 = super::double::ROOT_HALF;
    const SMALLEST: f64 = f64::MIN_POSITIVE;
    const LIFT: [f64; 2] = [18_014_398_509_481_984.0, 54.0];
    const WHOLE: f64 = 4_503_599_627_370_496.0;
    const UPPER: i64 = -134_217_728;
    const EXP2_RANGE: [f64; 2] = [-1080.0, 1025.0];
    const SINH_END: f64 = 712.0;
    const SIGMOID_END: f64 = 38.0;
    const SILU_END: f64 = 760.0;
    const ERFC_END: f64 = 27.5;
    const ERFCX_CENTRE: f64 = 3.25;
    const GAMMA_FAR: f64 = 8.0;
    const GAMMA_STEPS: usize = 6;
    const DIGAMMA_ROOT: [f64; 2] = [1.461_632_144_968_362_2, 9.549_995_429_965_697e-17];
    const BESSEL_END: f64 = 714.5;
    const ZETA_TERMS: usize = 12;
    const EXP: &'static [f64] = &super::double::EXP;
    const ERF: &'static [f64] = &super::double::ERF;
    #[inline(always)]
    fn log_near_one<L: Lane>(f: L) -> L {
        let s = f / (f + 2.0);
        let square = s * s;
        let half = f * f * 0.5;
        f - (half - s * square.mul_add(super::polynomial(square, &super::double::LOG), half))
    }
}

/// Evaluates the polynomial with these coefficients, lowest power first.
#[inline(always)]
fn series<L: Lane>(x: L, coefficients: &[f64]) -> L {
    let Some((last, rest)) = coefficients.split_last() else { return L::lit(0.0) };
    let mut sum = L::lit(*last);
    let mut k = rest.len();
    while k > 0 {
        k -= 1;
        sum = sum.mul_add(x, L::lit(rest[k]));
    }
    sum
}

/// Evaluates the odd function whose table holds `(f(x) - x) / x^3` in `x^2`.
#[inline(always)]
fn odd_series<L: Lane>(x: L, table: &[f64]) -> L {
    let square = x * x;
    (x * square).mul_add(series(square, table), x)
}

/// `factor * exp(x + low)` for a small `low`, rounded once: the exponential itself may overflow or underflow.
#[inline(always)]
fn exp_times<P: Precision, L: Lane>(x: L, low: L, factor: L) -> L {
    let (turns, n) = (x * std::f64::consts::LOG2_E).nearest_int();
    let r = x.minus_product(turns, L::lit(P::LN2_HIGH)) + turns.mul_add(L::lit(-P::LN2_LOW), low);
    let rest = (r * r).mul_add(series(r, P::EXP), r);
    rest.mul_add(factor, factor).scale(turns, n)
}

/// `(high, low)` with `log(x) = high + low` and an exact `high`, for `0 < x < infinity`.
#[inline(always)]
fn log_parts<P: Precision, L: Lane>(x: L) -> (L, L) {
    let (e, f) = exponent_and_rest::<P, L>(x);
    (e * P::LN2_HIGH, e.mul_add(L::lit(P::LN2_LOW), P::log_near_one(f)))
}

/// `(e, f)` with `x = (1 + f) 2^e` and `1 + f` in `[sqrt(1/2), sqrt(2))`, for `0 < x < infinity`.
#[inline(always)]
fn exponent_and_rest<P: Precision, L: Lane>(x: L) -> (L, L) {
    let small = x.lt(L::lit(P::SMALLEST));
    let lifted = L::select(small, x * P::LIFT[0], x);
    let offset = lifted.bits() - L::int(P::ROOT_HALF);
    let mantissa = (offset & L::int((1 << L::MANTISSA) - 1)) + L::int(P::ROOT_HALF);
    let e = L::from_int(offset >> L::MANTISSA) - L::select(small, L::lit(P::LIFT[1]), L::lit(0.0));
    (e, L::from_bits(mantissa) - 1.0)
}

/// `x^2 = high + low`, where `high` holds the leading bits and `low` the rest; computed from halves of the
/// mantissa, so that no fused multiply-add is needed.
#[inline(always)]
fn square_parts<P: Precision, L: Lane>(x: L) -> (L, L) {
    let upper = L::from_bits(x.bits() & L::int(P::UPPER));
    let main = upper * upper;
    let rest = (x - upper) * (x + upper);
    // Clearing the last bits keeps compilers from simplifying the difference below.
    let high = L::from_bits((main + rest).bits() & L::int(-16));
    (high, rest - (high - main))
}

/// `sin(pi r)` for `|r| <= 1/2`.
#[inline(always)]
fn sin_pi<P: Precision, L: Lane>(r: L) -> L {
    r * series(r * r, P::SIN_PI)
}
