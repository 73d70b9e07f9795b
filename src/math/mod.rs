//! Vector mathematics in single precision, written once for CPU lanes and WGSL.
//!
//! Every function is generic over [`Lane`] and branches only around rare arguments. With
//! [`crate::math::lane::F32`] it vectorises inside a loop, with `gpu::shader::wgsl::Expr` it writes the text
//! of a WGSL function, so both devices use one formula.
//!
//! The coefficients come from `tools/fit_math.py` (Remez exchange in 50-digit arithmetic); those of tables
//! are interpolated at Chebyshev points. The largest errors in units in the last place are in
//! `benches/results/ulp.md`; `tests/math_ulp.rs` holds CPUs to 2, products of two to 3, and
//! `tests/shaders/test_math.py` GPUs to 3.
//!
//! Read next: `src/math/functions.rs`, which function each kind of lane uses; `src/math/special.rs`,
//! functions with one formula for both precisions; `src/math/pow.rs`, which needs more than single precision.

pub mod cells;
pub mod double;
pub mod functions;
pub mod lane;
mod pow;
mod power;
pub mod real;
pub mod special;
mod tanh;
pub mod terms;
pub mod turns;
pub mod updates;
pub mod wide;

pub use functions::Functions;
pub(crate) use functions::through_functions;
pub use pow::pow;
pub use tanh::tanh as table_tanh;

use crate::math::real::Real;
use special::Precision;
use std::ops::{Add, BitAnd, BitOr, BitXor, Shl, Shr, Sub};

/// A [`Real`] with access to its bits.
pub trait Lane: Real {
    /// Integers of the lane's size; arithmetic wraps and `>>` keeps the sign.
    type Int: Copy
        + Add<Output = Self::Int>
        + Sub<Output = Self::Int>
        + BitAnd<Output = Self::Int>
        + BitOr<Output = Self::Int>
        + BitXor<Output = Self::Int>
        + Shl<usize, Output = Self::Int>
        + Shr<usize, Output = Self::Int>;
    /// Number of stored bits of the mantissa: 23 or 52.
    const MANTISSA: usize;
    /// The stored exponent of 1.
    const BIAS: i64 = if Self::MANTISSA == 23 { 127 } else { 1023 };
    /// The sign bit.
    const SIGN: i64 = if Self::MANTISSA == 23 { i32::MIN as i64 } else { i64::MIN };
    /// A number whose sum with a small one has the nearest integer as its last bits, and the bits of it.
    const MAGIC: (f64, i64) = (
        (3_u64 << (Self::MANTISSA - 1)) as f64,
        (Self::BIAS + Self::MANTISSA as i64) << Self::MANTISSA | 1 << (Self::MANTISSA - 1),
    );
    /// The integer constant `value`, or its lower half.
    fn int(value: i64) -> Self::Int;
    /// `a == b`.
    fn int_eq(a: Self::Int, b: Self::Int) -> Self::Mask;
    /// Returns the bits of the float.
    fn bits(self) -> Self::Int;
    /// Returns the float with these bits.
    fn from_bits(bits: Self::Int) -> Self;
    /// Returns the float nearest to a small integer.
    #[inline(always)]
    fn from_int(value: Self::Int) -> Self {
        from_small_int(value)
    }
    /// Returns the nearest integer, as a float and as an integer. Valid for `|self| < 2^22` (`2^51` in double
    /// precision), arbitrary elsewhere. A cast to integers saturates, so loops would not vectorise.
    #[inline(always)]
    fn nearest_int(self) -> (Self, Self::Int) {
        let sum = self + Self::MAGIC.0;
        (sum - Self::MAGIC.0, sum.bits() - Self::int(Self::MAGIC.1))
    }
    /// The constant of these bits, maybe infinite or NaN; `self` hides it from compilers that reject those.
    #[inline(always)]
    fn special(self, bits: u32) -> Self {
        Self::lit(f64::from(f32::from_bits(bits)))
    }
    /// `self * factor + term`, rounded once where that is fast and twice elsewhere.
    fn mul_add(self, factor: Self, term: Self) -> Self;
    /// `self - a * b` for a product of at most 23 bits, which is exact; compilers may not reassociate it.
    #[inline(always)]
    fn minus_product(self, a: Self, b: Self) -> Self {
        a.mul_add(-b, self)
    }
    /// `self` limited to `[low, high]`; NaN stays NaN.
    #[inline(always)]
    fn clamp(self, low: f64, high: f64) -> Self {
        let x = Self::select(self.lt(Self::lit(low)), Self::lit(low), self);
        Self::select(x.gt(Self::lit(high)), Self::lit(high), x)
    }
    /// `self * 2^n`, rounded once, for `n = turns` between twice the smallest and twice the largest exponent.
    #[inline(always)]
    fn scale(self, _turns: Self, n: Self::Int) -> Self {
        scaled(self, n)
    }
    /// Whether the mask may be true somewhere: false saves work, and lanes without branches return true.
    #[inline(always)]
    fn may_hold(_mask: Self::Mask) -> bool {
        true
    }
}

/// Bits of `+infinity`.
pub(crate) const INFINITY: u32 = 0x7f80_0000;
/// Bits of a quiet NaN.
pub(crate) const NAN: u32 = 0x7fc0_0000;
/// Bits of the square root of 1/2: mantissas are brought to `[sqrt(1/2), sqrt(2))`.
const ROOT_HALF: i64 = 0x3f35_04f3;

const LOG2_E: f64 = std::f64::consts::LOG2_E;
/// The first 16 bits of `log(2)`: its product with an exponent is exact.
const LN2_HIGH: f64 = 0.693_145_751_953_125;
/// `log(2) - LN2_HIGH`.
const LN2_LOW: f64 = 1.428_606_820_309_417_2e-6;

/// `(exp(r) - 1 - r) / r^2` on `|r| <= log(2)/2`.
const EXP: [f64; 6] = [0.5, 0.1666663587, 0.04166651145, 0.008341504261, 0.001393054379, 0.000150530308];
/// `(log(1 + f) - f + f^2/2) / f^3` for `1 + f` in `[sqrt(1/2), sqrt(2)]`.
const LOG: [f64; 9] = [
    0.3333331347, -0.2500016689, 0.2000222206, -0.1665937304, 0.1420963556, -0.1254956424, 0.1210798621,
    -0.1091762334, 0.05343395099,
];
/// `(sin(r) - r) / r^3` in `r^2`, `|r| <= pi/4`.
const SIN: [f64; 3] = [-0.1666665524, 0.00833218731, -0.0001951789745];
/// `(cos(r) - 1 + r^2/2) / r^4` in `r^2`, `|r| <= pi/4`.
const COS: [f64; 3] = [0.04166664556, -0.001388730947, 2.443232734e-5];
/// `(tanh(x) - x) / x^3` in `x^2`, `|x| <= 0.625`.
const TANH: [f64; 6] =
    [-0.3333333135, 0.1333322078, -0.05394817889, 0.02170689404, -0.008190013468, 0.002152683912];
/// `(erf(x) - x) / x` in `x^2`, `|x| <= 0.95`.
const ERF: [f64; 7] = [
    0.1283791661, -0.3761262894, 0.1128362566, -0.0268557407, 0.005192460492, -0.0008050804026,
    8.002774848e-5,
];
/// `log(1 - erf(x)) / x`, `0.94 <= x <= 3.93`.
const ERF_TAIL: [f64; 8] = [
    -1.12856245, -0.6355761886, -0.1053571254, 0.02277284674, -0.00299067935, 7.134229236e-5, 4.133715629e-5,
    -4.591642664e-6,
];

/// The polynomial with these coefficients, lowest power first (Horner's scheme).
#[inline(always)]
pub(crate) fn polynomial<L: Lane, const N: usize>(x: L, coefficients: &[f64; N]) -> L {
    let mut sum = L::lit(coefficients[N - 1]);
    for k in (0..N - 1).rev() {
        sum = sum.mul_add(x, L::lit(coefficients[k]));
    }
    sum
}

/// `2^n` for the exponents of normal numbers.
#[inline(always)]
pub(crate) fn power_of_two<L: Lane>(n: L::Int) -> L {
    L::from_bits((n + L::int(L::BIAS)) << L::MANTISSA)
}

/// `x * 2^n`, rounded once, for `n` between twice the smallest and twice the largest exponent.
#[inline(always)]
pub(crate) fn scaled<L: Lane>(x: L, n: L::Int) -> L {
    let half = n >> 1;
    x * power_of_two::<L>(half) * power_of_two::<L>(n - half)
}

/// The float nearest to a small integer, as `nearest_int` backwards: not all units convert 64 bits.
#[inline(always)]
pub(crate) fn from_small_int<L: Lane>(n: L::Int) -> L {
    L::from_bits(n + L::int(L::MAGIC.1)) - L::MAGIC.0
}

/// `exp(r) - 1 - r` for `|r| <= log(2)/2`.
#[inline(always)]
pub(crate) fn exp_rest<L: Lane>(r: L) -> L {
    r * r * polynomial(r, &EXP)
}

/// `(turns, n, exp(x) / 2^n)`, where `turns` is `n` as a float and the last one is near 1.
#[inline(always)]
fn exp_parts<L: Lane>(x: L) -> (L, L::Int, L) {
    let (turns, n) = (x * LOG2_E).nearest_int();
    let r = turns.mul_add(L::lit(-LN2_LOW), x.minus_product(turns, L::lit(LN2_HIGH)));
    (turns, n, (r * r).mul_add(polynomial(r, &EXP), r) + 1.0)
}

/// `exp(x)` for `-87 < x < 88`.
#[inline(always)]
fn exp_inside<L: Lane>(x: L) -> L {
    let (_, n, factor) = exp_parts(x);
    factor * power_of_two::<L>(n)
}

/// `magnitude` (not negative) with the sign of `x`.
#[inline(always)]
pub(crate) fn with_sign_of<L: Lane>(magnitude: L, x: L) -> L {
    L::from_bits(magnitude.bits() | (x.bits() & L::int(L::SIGN)))
}

/// Natural exponential.
#[inline(always)]
pub fn exp<L: Lane>(x: L) -> L {
    let (turns, n, factor) = exp_parts(x.clamp(-104.0, 89.0));
    factor.scale(turns, n)
}

/// `exp(x) - 1`: the exponential of the reduced argument minus 1, scaled, plus `2^n - 1`.
#[inline(always)]
pub fn expm1<L: Lane>(x: L) -> L {
    let inside = x.clamp(-18.0, 89.0);
    let (turns, n) = (inside * LOG2_E).nearest_int();
    let high = inside.minus_product(turns, L::lit(LN2_HIGH));
    let low = turns * LN2_LOW;
    let r = high - low;
    let lost = (high - r) - low;
    let near = r + (exp_rest(r) + lost);
    // 2^n itself overflows for the last n, so the sum is formed at half size.
    let half = power_of_two::<L>(n - L::int(1));
    let far = near.mul_add(half, half - 0.5);
    let far = far + far;
    let result = L::select(L::int_eq(n, L::int(0)), near, far);
    L::select(x.eq(L::lit(0.0)), x, result)
}

/// `(e, m)` with `x = m * 2^e` and `m` in `[sqrt(1/2), sqrt(2))`, for normal `x > 0`.
#[inline(always)]
pub(crate) fn split<P: Precision, L: Lane>(x: L) -> (L::Int, L) {
    let offset = x.bits() - L::int(P::ROOT_HALF);
    let e = offset >> L::MANTISSA;
    (e, L::from_bits((offset & L::int((1 << L::MANTISSA) - 1)) + L::int(P::ROOT_HALF)))
}

/// `log(1 + f) + e * log(2)` for `1 + f` in `[sqrt(1/2), sqrt(2))`.
#[inline(always)]
fn log_sum<L: Lane>(f: L, e: L) -> L {
    let square = f * f;
    let rest = (square * f).mul_add(polynomial(f, &LOG), e * LN2_LOW);
    (square.mul_add(L::lit(-0.5), rest) + f).minus_product(e, L::lit(-LN2_HIGH))
}

/// `result` for `0 < x < infinity`, elsewhere the special values of a logarithm of `x`.
#[inline(always)]
pub(crate) fn log_edges<L: Lane>(x: L, result: L) -> L {
    let infinity = x.special(INFINITY);
    let result = L::select(x.lt(infinity), result, x);
    let result = L::select(x.eq(L::lit(0.0)), -infinity, result);
    L::select(x.lt(L::lit(0.0)), x.special(NAN), result)
}

/// Natural logarithm.
#[inline(always)]
pub fn log<L: Lane>(x: L) -> L {
    let (x_normal, shift) = normal::<f32, L>(x);
    let (e, m) = split::<f32, L>(x_normal);
    log_edges(x, log_sum(m - 1.0, L::from_int(e) - shift))
}

/// `(x * 2^s, s)` where `s` is 0 for normal `x` and [`Precision::LIFT`] below.
#[inline(always)]
pub(crate) fn normal<P: Precision, L: Lane>(x: L) -> (L, L) {
    let small = x.lt(L::lit(P::SMALLEST));
    (L::select(small, x * P::LIFT[0], x), L::select(small, L::lit(P::LIFT[1]), L::lit(0.0)))
}

/// `log(1 + x)`: the exponent comes from the rounded `1 + x`, the mantissa from `x` itself, no bit lost.
#[inline(always)]
pub fn log1p<L: Lane>(x: L) -> L {
    let sum = x + 1.0;
    let (e, m) = split::<f32, L>(sum);
    let shrink = power_of_two::<L>(L::int(0) - e);
    let exact = x.mul_add(shrink, shrink - 1.0);
    let f = L::select(x.lt(L::lit(16_777_216.0)), exact, m - 1.0);
    let result = log_edges(sum, log_sum(f, L::from_int(e)));
    L::select(x.eq(L::lit(0.0)), x, result)
}

/// `(sin(r), cos(r))` for `|r| <= pi/4`.
#[inline(always)]
fn sin_cos_quarter<L: Lane>(r: L) -> (L, L) {
    let square = r * r;
    let sin = (r * square).mul_add(polynomial(square, &SIN), r);
    let cos = (square * square).mul_add(polynomial(square, &COS), square.mul_add(L::lit(-0.5), L::lit(1.0)));
    (sin, cos)
}

/// The sine of `r + n * pi/2`.
#[inline(always)]
fn sin_turned<L: Lane>(r: L, n: L::Int) -> L {
    let (sin, cos) = sin_cos_quarter(r);
    let value = L::select(L::int_eq(n & L::int(1), L::int(0)), sin, cos);
    L::from_bits(value.bits() ^ ((n & L::int(2)) << 30))
}

/// Sine of `x = r + n * pi/2`.
#[inline(always)]
pub fn sin<L: Lane>(x: L, (r, n): (L, L::Int)) -> L {
    L::select(x.eq(L::lit(0.0)), x, sin_turned(r, n))
}

/// Cosine of `r + n * pi/2`.
#[inline(always)]
pub fn cos<L: Lane>((r, n): (L, L::Int)) -> L {
    sin_turned(r, n + L::int(1))
}

/// Hyperbolic tangent: a polynomial near 0, `1 - 2 / (exp(2x) + 1)` elsewhere.
#[inline(always)]
pub fn tanh<L: Lane>(x: L) -> L {
    let size = x.abs();
    let square = size * size;
    let near = (size * square).mul_add(polynomial(square, &TANH), size);
    let far = L::lit(1.0) - L::lit(2.0) / (exp_inside(size.clamp(0.0, 10.0) * 2.0) + 1.0);
    with_sign_of(L::select(size.lt(L::lit(0.625)), near, far), x)
}

/// Error function: a polynomial near 0, `1 - exp(polynomial)` elsewhere.
#[inline(always)]
pub fn erf<L: Lane>(x: L) -> L {
    let size = x.abs();
    let near = size.mul_add(polynomial(size * size, &ERF), size);
    let tail = size.clamp(0.0, 3.93);
    let far = L::lit(1.0) - exp_inside(tail * polynomial(tail, &ERF_TAIL));
    with_sign_of(L::select(size.lt(L::lit(0.945)), near, far), x)
}

/// Below this bound, quotients have every bit that [`fmod`] needs.
#[inline(always)]
pub(crate) const fn small_quotients<L: Lane>() -> f64 {
    (1_u64 << (L::MANTISSA - 1)) as f64
}

/// The remainder of a division with the sign of `x`. It is exact where multiply-adds are fused and the
/// quotient is below `small_quotients`.
#[inline(always)]
pub fn fmod<L: Lane>(x: L, y: L) -> L {
    let (size, divisor) = (x.abs(), y.abs());
    let rest = (-(size / divisor).floor()).mul_add(divisor, size);
    // The rounded quotient may be one too large or too small.
    let rest = L::select(rest.lt(L::lit(0.0)), rest + divisor, rest);
    let rest = L::select(rest.ge(divisor), rest - divisor, rest);
    let whole = size.lt(divisor);
    with_sign_of(L::select(whole, size, rest), x)
}
