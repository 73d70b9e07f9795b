//! Formulas of rows whose derivatives a plain formula would lose to cancellation: series near a removable
//! singularity, asymptotic series far out.
//!
//! A series is a polynomial, so that the derivatives which jets and recorded rules make of it are as accurate
//! as it is. Where a branch is not taken, its argument is replaced by one at which it is finite.

use crate::math::real::Real;
use crate::ops::pointwise::formulas::{magnitude, normal_pdf, polynomial};
use crate::rule;
use std::f64::consts::PI;

/// `(u cos(u) - sin(u)) / u^3` in `u^2`: coefficients `(-1)^k 2k / (2k + 1)!` from `k = 1` on.
const SINC: [f64; 11] = [
    -0.3333333333333333, 0.03333333333333333, -0.0011904761904761906, 2.2045855379188714e-05,
    -2.505210838544172e-07, 1.9270852604185937e-09, -1.0706029224547743e-11, 4.498331606952833e-14,
    -1.4797143443923793e-16, 3.9145882126782523e-19, -8.509974375387505e-22,
];

rule! {
    /// `(u cos(u) - sin(u)) / u^2`, the derivative of `sin(u) / u`, for `|u| <= pi/2`.
    pub fn wave_slope(u) { u * polynomial(u * u, &SINC) }

    /// `sin(pi x)`: exactly 0 at whole numbers.
    pub fn sin_pi(x) {
        let whole = x.round();
        let odd = whole - 2.0 * (0.5 * whole).floor();
        ((x - whole) * PI).sin() * (1.0 - 2.0 * odd)
    }

    /// `cos(pi x)`: exactly 0 half-way between whole numbers.
    pub fn cos_pi(x) {
        let whole = x.round();
        let odd = whole - 2.0 * (0.5 * whole).floor();
        let r = x - whole;
        let steep = r.abs().gt(R::lit(0.25));
        let part = R::select(steep, ((0.5 - r.abs()) * PI).sin(), (r * PI).cos());
        part * (1.0 - 2.0 * odd)
    }

    /// `sin(pi x) / (pi x)`, and 1 at zero.
    pub fn sinc(x) {
        let zero = x.eq(R::lit(0.0));
        R::select(zero, R::lit(1.0), sin_pi(x) / (PI * R::select(zero, R::lit(1.0), x)))
    }

    /// The derivative of `sinc`, by its series near 0.
    pub fn sinc_slope(x) {
        let near = x.abs().lt(R::lit(0.5));
        let u = PI * R::select(near, x, R::lit(0.0));
        let far = R::select(near, R::lit(1.0), x);
        R::select(near, PI * wave_slope(u), (cos_pi(far) - sin_pi(far) / (PI * far)) / far)
    }
}

/// `1 - 3 (x - tanh(x)) / x^3` over `x^2`, in `x^2`, the numerator: ten levels of the continued fraction
/// `tanh(x) = x / (1 + x^2 / (3 + ...))`, all of whose terms are positive (Abramowitz and Stegun, 4.5.70).
const TANHSHRINK: [f64; 5] =
    [0.4, 0.02857142857142857, 0.0005410351275012929, 3.2619817375825045e-06, 4.800240684067899e-09];
/// Its denominator.
const TANHSHRINK_BELOW: [f64; 6] = [
    1.0, 0.47619047619047616, 0.03007518796992481, 0.0005503955968352253, 3.2761642668763414e-06,
    4.800240684067899e-09,
];

rule! {
    /// `x - tanh(x)`: near 0 its first term `x^3 / 3` less what a continued fraction takes away, far out
    /// `x - 1 + 2 sigmoid(-2 x)`, where the first difference is exact.
    pub fn without_tanh(x) {
        let near = x.abs().lt(R::lit(0.8));
        let small = R::select(near, x, R::lit(0.0));
        let square = small * small;
        let share = square * polynomial(square, &TANHSHRINK) / polynomial(square, &TANHSHRINK_BELOW);
        // The upper bits of a float32, whose square is exact there, and what is left.
        let wide = 4097.0 * small;
        let high = wide - (wide - small);
        let term = small * (high * high) / 3.0;
        let rest = small * ((small - high) * (small + high)) * 0.3333333333333333;
        let size = magnitude(R::select(near, R::lit(1.0), x));
        let outside = (size - 1.0) + 2.0 * (-2.0 * size).sigmoid();
        let outside = R::select(x.lt(R::lit(0.0)), -outside, outside);
        R::select(near, term - ((term + rest) * share - rest), outside)
    }

    /// `tanh(x)^2`, the derivative of `x - tanh(x)`.
    pub fn tanh_square(x) {
        let t = x.tanh();
        t * t
    }

    /// `tanh(log(1 + exp(x)))`, by which mish multiplies `x`, of `power = exp(-|x|)`.
    fn mish_gate(x, power) {
        let right = x.ge(R::lit(0.0));
        let (left, square) = (power * (power + 2.0), power * power);
        let above = 1.0 - 2.0 * square / (1.0 + 2.0 * (power + square));
        R::select(right, above, left / (left + 2.0))
    }

    /// `x tanh(log(1 + exp(x)))`. Far to the left it is `x exp(x)`, which is a number where `exp(x)` has lost
    /// its bits: there `power` is `exp(x + 60)`.
    pub fn mish_value(x) {
        let tail = x.lt(R::lit(-60.0));
        let power = (R::select(tail, R::lit(60.0), R::lit(0.0)) - magnitude(x)).exp();
        R::select(tail, x * power * 8.756510762696521e-27, x * mish_gate(x, power))
    }

    /// The derivative of `x tanh(log(1 + exp(x)))`; far out, where `x * 0` may be NaN, that nearer by.
    pub fn mish_slope(x) {
        let (zero, end) = (R::lit(0.0), R::lit(1e3));
        let y = R::select(x.gt(end), end, R::select(x.lt(-end), -end, x));
        let tail = y.lt(R::lit(-60.0));
        let power = (R::select(tail, R::lit(60.0), zero) - magnitude(y)).exp();
        let (left, square) = (power * (power + 2.0), power * power);
        let (beyond, below) = (1.0 + 2.0 * (power + square), left + 2.0);
        let right = 4.0 * square * (1.0 + power) / beyond / beyond;
        let slope = R::select(y.ge(zero), right, 4.0 * power * (1.0 + power) / below / below);
        R::select(tail, (y + 1.0) * power * 8.756510762696521e-27, mish_gate(y, power) + y * slope)
    }
}

/// Below, the normal distribution function is its density over `-x`, times an asymptotic series.
pub const FAR_BELOW: f64 = -10.0;
/// `log(2 pi) / 2`.
const HALF_LOG_2_PI: f64 = 0.9189385332046728;
/// That series without its 1, in `1 / x^2`: `(-1)^k (2k - 1)!!`.
const MILLS: [f64; 25] = [
    0.0, -1.0, 3.0, -15.0, 105.0, -945.0, 10395.0, -135135.0, 2027025.0, -34459425.0, 654729075.0,
    -13749310575.0, 316234143225.0, -7905853580625.0, 213458046676875.0, -6190283353629375.0,
    1.9189878396251062e17, -6.33265987076285e18, 2.2164309547669976e20, -8.200794532637892e21,
    3.1983098677287775e23, -1.3113070457687988e25, 5.638620296805835e26, -2.5373791335626256e28,
    1.1925681927744342e30,
];

rule! {
    /// What the density over `-x` lacks to the distribution function, relative to it, for `x` below
    /// `FAR_BELOW`.
    pub fn mills(x) {
        let inverse = 1.0 / x;
        polynomial(inverse * inverse, &MILLS)
    }

    /// Logarithm of the standard normal distribution function.
    pub fn log_ndtr(x) {
        let (low, high) = (x.lt(R::lit(FAR_BELOW)), x.gt(R::lit(0.0)));
        let tail = R::select(low, x, R::lit(FAR_BELOW));
        let below = ((-0.5 * tail) * tail - (-tail).log()) + (mills(tail).log1p() - HALF_LOG_2_PI);
        let inside = R::select(low | high, R::lit(0.0), x);
        let above = R::select(high, x, R::lit(0.0));
        R::select(low, below, R::select(high, (-((-above).ndtr())).log1p(), inside.ndtr().log()))
    }

    /// The derivative of `log_ndtr`, density over distribution function.
    pub fn log_ndtr_slope(x) {
        let low = x.lt(R::lit(FAR_BELOW));
        let (tail, inside) = (R::select(low, x, R::lit(FAR_BELOW)), R::select(low, R::lit(0.0), x));
        R::select(low, -tail / (1.0 + mills(tail)), normal_pdf(inside) / inside.ndtr())
    }

    /// `-x log(x)`, 0 at zero and minus infinity below.
    pub fn entropy(x) {
        let zero = R::lit(0.0);
        let inside = R::select(x.gt(zero) | x.ne(x), x, R::lit(1.0));
        let below = R::select(x.lt(zero), R::lit(f64::NEG_INFINITY), zero);
        R::select(x.le(zero), below, -(inside * inside.log()))
    }

    /// The derivative of `entropy`; 0 below zero.
    pub fn entropy_slope(x) {
        let below = x.lt(R::lit(0.0));
        R::select(below, R::lit(0.0), -(R::select(below, R::lit(1.0), x).log()) - 1.0)
    }

    /// `log(x / (1 - x))`. Around 1/2 the logarithms cancel, and twice the distance from there is exact.
    pub fn log_odds(x) {
        let middle = (x - 0.5).abs().lt(R::lit(0.25));
        let (inside, outside) = (R::select(middle, x, R::lit(0.5)), R::select(middle, R::lit(0.25), x));
        R::select(middle, 2.0 * (2.0 * inside - 1.0).atanh(), outside.log() - (-outside).log1p())
    }

    /// `x (1 - x)`, by which a cotangent is divided; NaN outside of `[0, 1]`. Around 1/2 by the distance from
    /// there, so that its derivative keeps its digits.
    pub fn odds_divisor(x) {
        let outside = x.lt(R::lit(0.0)) | x.gt(R::lit(1.0));
        let distance = x - 0.5;
        let product = R::select(distance.abs().lt(R::lit(0.25)), 0.25 - distance * distance, x * (1.0 - x));
        R::select(outside, R::lit(f64::NAN), product)
    }

    /// `x` below 0, else 0: for functions that must not overflow where they are not taken.
    pub fn negative_part(x) { R::select(x.gt(R::lit(0.0)), R::lit(0.0), x) }
}

/// What `x log(shift + y)` takes the logarithm of, less `shift`: `y`, unless a factor 0 meets a logarithm
/// that is no finite number, at its pole, below it, and at infinity. There it is the logarithm of 1.
#[inline(always)]
pub fn logged<R: Real>(x: R, y: R, shift: f64) -> R {
    R::select(unmet(x, y, shift), 1.0 - R::lit(shift), y)
}

/// The slope of `x log(shift + y)` in `y`.
#[inline(always)]
pub fn unless_unmet<R: Real>(x: R, y: R, shift: f64) -> R {
    let slope = x / (logged(x, y, shift) + shift);
    R::select(unmet(x, y, shift), R::lit(0.0), slope)
}

#[inline(always)]
fn unmet<R: Real>(x: R, y: R, shift: f64) -> R::Mask {
    x.eq(R::lit(0.0)) & (y.le(R::lit(-shift)) | y.eq(R::lit(f64::INFINITY)))
}
