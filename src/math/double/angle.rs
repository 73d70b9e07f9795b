//! Sine, cosine and tangent in double precision.
//!
//! Subtracting a multiple of pi/2 reduces the angle to `r + low`: below 2^30 with three parts of pi/2 and
//! fused multiply-adds (W. Cody and W. Waite, 1980), above, which is rare, one number at a time in fixed
//! point (M. Payne and R. Hanek, 1983).

use super::super::polynomial;
use super::super::turns::without_quarters;
use super::Double;
use crate::math::lane::F64Fma;

/// pi/2 as a sum of three doubles.
const QUARTER: [f64; 3] =
    [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17, -1.497_384_904_859_169_8e-33];
/// From here on, angles need more bits of pi.
const HUGE: f64 = 1_073_741_824.0;

/// `(sin(r) - r) / r^3` in `r^2`, `|r| <= pi/2`.
const SIN: [f64; 8] = [
    -0.16666666666666666, 0.008333333333333207, -0.0001984126984121248, 2.7557319211569486e-06,
    -2.5052106904424438e-08, 1.6058941002488203e-10, -7.643019379027001e-13, 2.7214196359800903e-15,
];
/// `(cos(r) - 1 + r^2/2) / r^4` in `r^2`, `|r| <= pi/4`.
const COS: [f64; 6] = [
    0.0416666666666666, -0.001388888888887447, 2.480158728966691e-05, -2.755731439926595e-07,
    2.087572899400557e-09, -1.1359917295960917e-11,
];
/// `(sin(r) - r) / r^3` in `r^2`, `|r| <= pi/4`.
const SIN_QUARTER: [f64; 6] = [
    -0.1666666666666663, 0.00833333333332184, -0.0001984126982935853, 2.7557313538513497e-06,
    -2.5050734388694868e-08, 1.5895433229493008e-10,
];

/// `sin(r + low)` for `|r| <= pi/2`.
#[inline(always)]
fn sin_half_turn<L: Double>(r: L, low: L) -> L {
    let square = r * r;
    let low = (square * low).mul_add(L::lit(-0.5), low);
    r + (r * square).mul_add(polynomial(square, &SIN), low)
}

/// The sine of `x + shift * pi`, for `shift` 0 or 1/2.
#[inline(always)]
fn shifted_sin<L: Double>(x: L, shift: f64) -> L {
    // The nearest multiple of pi, offset by the shift.
    let (half_turns, n) = (x * std::f64::consts::FRAC_1_PI + shift).nearest_int();
    let (r, low) = without_quarters(x, (half_turns - shift) * 2.0, &QUARTER);
    let value = sin_half_turn(r, low);
    L::from_bits(value.bits() ^ (n << 63))
}

/// Sine.
#[inline(always)]
pub fn sin<L: Double>(x: L) -> L {
    let value = L::select(x.eq(L::lit(0.0)), x, shifted_sin(x, 0.0));
    let huge = !x.abs().lt(L::lit(HUGE));
    if L::may_hold(huge) { value.replace(huge, [x], |[x]| huge_sin(x, 0)) } else { value }
}

/// Cosine.
#[inline(always)]
pub fn cos<L: Double>(x: L) -> L {
    let value = shifted_sin(x, 0.5);
    let huge = !x.abs().lt(L::lit(HUGE));
    if L::may_hold(huge) { value.replace(huge, [x], |[x]| huge_sin(x, 1)) } else { value }
}

/// The tangent of `r + low + n * pi/2` for `|r| <= pi/4`; `odd` says whether `n` is odd.
#[inline(always)]
fn tan_quarter<L: Double>(r: L, low: L, odd: L::Mask) -> L {
    let square = r * r;
    let sin_rest = (r * square).mul_add(polynomial(square, &SIN_QUARTER), low);
    let sin = r + sin_rest;
    let half = square * 0.5;
    let cos_near = L::lit(1.0) - half;
    let cos_rest = (square * square)
        .mul_add(polynomial(square, &COS), ((L::lit(1.0) - cos_near) - half).minus_product(r, low));
    let cos = cos_near + cos_rest;
    let above = L::select(odd, -cos, sin);
    let below = L::select(odd, sin, cos);
    above / below
}

/// Tangent.
#[inline(always)]
pub fn tan<L: Double>(x: L) -> L {
    let (quarters, n) = (x * std::f64::consts::FRAC_2_PI).nearest_int();
    let (r, low) = without_quarters(x, quarters, &QUARTER);
    let value = tan_quarter(r, low, L::int_eq(n & L::int(1), L::int(1)));
    let value = L::select(x.eq(L::lit(0.0)), x, value);
    let huge = !x.abs().lt(L::lit(HUGE));
    if L::may_hold(huge) { value.replace(huge, [x], |[x]| huge_tan(x)) } else { value }
}

/// The sine of `x + n * pi/2` for `|x| >= 2^30`.
#[cold]
fn huge_sin(x: f64, n: u64) -> f64 {
    if !x.is_finite() {
        return f64::NAN;
    }
    let (quarters, r, low) = huge_angle(x);
    let (r, low) = (F64Fma(r), F64Fma(low));
    let quarters = quarters.wrapping_add(n);
    let value = if quarters & 1 == 0 { sin_half_turn(r, low) } else { cos_quarter(r, low) };
    if quarters & 2 == 0 { value.0 } else { -value.0 }
}

/// The tangent of `x` for `|x| >= 2^30`.
#[cold]
fn huge_tan(x: f64) -> f64 {
    if !x.is_finite() {
        return f64::NAN;
    }
    let (quarters, r, low) = huge_angle(x);
    tan_quarter(F64Fma(r), F64Fma(low), quarters & 1 == 1).0
}

/// `cos(r + low)` for `|r| <= pi/4`.
fn cos_quarter(r: F64Fma, low: F64Fma) -> F64Fma {
    // As the sine of `pi/2 - |r|`, which is between pi/4 and pi/2.
    let (r, low) = if r.0 < 0.0 { (-r, -low) } else { (r, low) };
    let high = QUARTER[0] - r.0;
    let lost = (QUARTER[0] - high) - r.0;
    sin_half_turn(F64Fma(high), F64Fma(lost + QUARTER[1] - low.0))
}

/// 2/pi in binary, after one word of zeros.
const TWO_OVER_PI: [u64; 20] = [
    0, 0xa2f9_836e_4e44_1529, 0xfc27_57d1_f534_ddc0, 0xdb62_9599_3c43_9041, 0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0, 0x0649_2eea_09d1_921c, 0xfe1d_eb1c_b129_a73e, 0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41, 0x3991_d639_8353_39f4, 0x9c84_5f8b_bdf9_283b, 0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f, 0x6d36_7ecf_27cb_09b7, 0x4f46_3f66_9e5f_ea2d, 0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea, 0x6bfb_5fb1_1f8d_5d08, 0x5603_3046_fc7b_6bab,
];

/// `(n, r, low)` with `x = r + low + n * pi/2` and `|r| <= pi/4`, `n` modulo 4, for a finite `|x| >= 2^30`.
///
/// The product of the mantissa with the relevant bits of 2/pi: two before the binary point, 190 behind it.
fn huge_angle(x: f64) -> (u64, f64, f64) {
    let bits = x.to_bits();
    let mantissa = u128::from(bits & 0x000f_ffff_ffff_ffff | 0x0010_0000_0000_0000);
    let first = ((bits >> 52 & 0x7ff) as usize) + 62 - 1075;
    let (word, left) = (first / 64, first % 64);
    let window = |i: usize| {
        let pair = u128::from(TWO_OVER_PI[word + i]) << 64
            | u128::from(TWO_OVER_PI.get(word + i + 1).copied().unwrap_or(0));
        u128::from((pair << left >> 64) as u64)
    };
    let (bottom, middle, top) = (mantissa * window(2), mantissa * window(1), mantissa * window(0));
    let low = (bottom >> 64).wrapping_add(middle);
    let fixed = low.wrapping_add(top << 64);
    let n = (fixed.wrapping_add(1 << 125) >> 126) as u64;
    let rest = fixed.wrapping_sub(u128::from(n) << 126) as i128;
    // If the angle is very near to a multiple, its leading bits are 0; at worst 64 are left.
    let high = rest as f64;
    let lost = (rest - high as i128) as f64;
    const UNIT: f64 = 1.0 / (1_u128 << 126) as f64;
    let (high, lost) = (high * UNIT, lost * UNIT);
    let r = high * QUARTER[0];
    let r_low = high.mul_add(QUARTER[0], -r) + (high * QUARTER[1] + lost * QUARTER[0]);
    let (sum, sum_low) = (r + r_low, r_low - ((r + r_low) - r));
    if bits >> 63 == 0 { (n & 3, sum, sum_low) } else { (n.wrapping_neg() & 3, -sum, -sum_low) }
}
