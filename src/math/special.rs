//! Functions with one formula for both precisions: inverse and hyperbolic functions, other bases, the normal
//! distribution, the gamma function's logarithm and its derivatives, Bessel functions.
//!
//! Each is written over [`Lane`], with the tables of a [`Precision`]: single for CPUs and GPUs, double for
//! CPUs. This file has their shared steps: an exponential whose last rounding is that of the result, a
//! logarithm in two parts, a square and its rounding error.
//!
//! The coefficients are written by `tools/fit_special.py`. Read next: `src/math/special/arc.rs`.

mod arc;
mod bessel;
mod cylinder;
mod exponential;
mod gamma;
mod normal;
mod tables;

pub use arc::{acos, acosh, asin, asinh, atan, atanh};
pub use bessel::{i0, i0e, i1, i1e};
pub use cylinder::{
    bessel_j0, bessel_j1, bessel_y0, bessel_y1, modified_bessel_k0, modified_bessel_k1,
    scaled_modified_bessel_k0, scaled_modified_bessel_k1,
};
pub use exponential::{cosh, exact_sigmoid, exp2, log2, log10, sigmoid, silu, sinh, tan};
pub use gamma::{digamma, lgamma, polygamma};
pub use normal::{double_erfinv, erfc, erfcx, erfinv, gelu, ndtr, ndtri};

use super::Lane;

/// Declares the constants of a precision, and defines them: for `f32`, then for `f64`.
macro_rules! precisions {
    ($($(#[$doc:meta])* $name:ident: $t:ty = $single:expr, $double:expr;)*) => {
        /// The constants and tables of a precision; `src/math/special/tables.rs` has more tables.
        pub trait Precision: tables::Tables + LogNearOne {
            $($(#[$doc])* const $name: $t;)*
            /// pi as a sum.
            const PI: [f64; 2] = [2.0 * Self::HALF_PI[0], 2.0 * Self::HALF_PI[1]];
            /// From here on, `ndtr(-x)` is 0.
            const NDTR_END: f64 = Self::ERFC_END * std::f64::consts::SQRT_2;
        }
        impl Precision for f32 {
            $(const $name: $t = $single;)*
        }
        impl Precision for f64 {
            $(const $name: $t = $double;)*
        }
    };
}

precisions! {
    /// The leading bits of `log(2)`, few enough that products with exponents are exact.
    LN2_HIGH: f64 = super::LN2_HIGH, super::double::LN2_HIGH;
    /// `log(2) - LN2_HIGH`.
    LN2_LOW: f64 = super::LN2_LOW, super::double::LN2_LOW;
    /// The leading bits of `log10(2)`, few enough likewise.
    LOG10_2_HIGH: f64 = 0.301_025_390_625, 0.301_029_995_663_839_14;
    /// `log10(2) - LOG10_2_HIGH`.
    LOG10_2_LOW: f64 = 4.605_038_981_195_214e-6, 1.420_502_322_726_61e-13;
    /// pi/2 as a sum.
    HALF_PI: [f64; 2] =
        [1.570_796_370_506_286_6, -4.371_139_000_186_242_6e-8],
        [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17];
    /// The bits of the square root of 1/2.
    ROOT_HALF: i64 = super::ROOT_HALF, super::double::ROOT_HALF;
    /// The smallest normal number.
    SMALLEST: f64 = f32::MIN_POSITIVE as f64, f64::MIN_POSITIVE;
    /// A factor that makes smaller numbers normal, and its logarithm to base 2.
    LIFT: [f64; 2] = [8_388_608.0, 23.0], [18_014_398_509_481_984.0, 54.0];
    /// From here on all numbers are integers.
    WHOLE: f64 = 8_388_608.0, 4_503_599_627_370_496.0;
    /// The mask that clears the lower half of a mantissa.
    UPPER: i64 = -4096, -134_217_728;
    /// Below this range `2^x` is 0, above it infinite.
    EXP2_RANGE: [f64; 2] = [-151.0, 129.0], [-1080.0, 1025.0];
    /// From here on, `exp(x) / 2` is infinite.
    SINH_END: f64 = 91.0, 712.0;
    /// Below the negative of this, the logistic function equals the exponential.
    SIGMOID_END: f64 = 18.0, 38.0;
    /// Below the negative of this, `x exp(x)` is 0.
    SILU_END: f64 = 112.0, 760.0;
    /// From here on, `erfc` is 0.
    ERFC_END: f64 = 10.5, 27.5;
    /// The parameter `K` of the table `ERFCX`.
    ERFCX_CENTRE: f64 = 2.0, 3.25;
    /// From here on, `lgamma` uses Stirling's formula.
    GAMMA_FAR: f64 = 4.0, 8.0;
    /// Number of steps of 1 from there down to the table.
    GAMMA_STEPS: usize = 2, 6;
    /// The positive root of the digamma function as a sum.
    DIGAMMA_ROOT: [f64; 2] =
        [1.461_632_132_530_212_4, 1.243_814_993_891_890_9e-8],
        [1.461_632_144_968_362_2, 9.549_995_429_965_697e-17];
    /// From here on, modified Bessel functions are infinite.
    BESSEL_END: f64 = 92.0, 714.5;
    /// The first root of the Bessel functions `J0` and `J1`, each as a sum.
    BESSEL_ROOTS: [[f64; 2]; 2] =
        [
            [2.404_825_448_989_868, 1.087_059_047_222_283e-7],
            [3.831_706_047_058_105_5, -7.685_058_989_181_925e-8],
        ],
        [
            [2.404_825_557_695_773, -1.176_691_651_530_894e-16],
            [3.831_705_970_207_512_5, -1.526_918_409_008_806_7e-16],
        ];
    /// Number of terms of a zeta function that are added one by one; none are from this argument on.
    ZETA_TERMS: usize = 8, 12;
    /// `(exp(r) - 1 - r) / r^2` on `|r| <= log(2)/2`.
    EXP: &'static [f64] = &super::EXP, &super::double::EXP;
    /// `(erf(x) - x) / x` in `x^2` near 0.
    ERF: &'static [f64] = &super::ERF, &super::double::ERF;
}

/// The logarithm next to 1.
pub trait LogNearOne {
    /// `log(1 + f)` for `1 + f` in `[sqrt(1/2), sqrt(2))`.
    fn log_near_one<L: Lane>(f: L) -> L;
}

impl LogNearOne for f32 {
    #[inline(always)]
    fn log_near_one<L: Lane>(f: L) -> L {
        let square = f * f;
        square.mul_add(L::lit(-0.5), (square * f) * super::polynomial(f, &super::LOG)) + f
    }
}

impl LogNearOne for f64 {
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
    let (x, shift) = super::normal::<P, L>(x);
    let (e, m) = super::split::<P, L>(x);
    (L::from_int(e) - shift, m - 1.0)
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
