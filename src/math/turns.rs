//! Reduction of single-precision angles by multiples of pi/2.
//!
//! Below [`LARGE`], three parts of pi/2 are subtracted with fused multiply-adds (W. Cody and W. Waite, 1980).
//! Beyond, a product in double precision takes as many bits of 2/pi as needed. GPUs have a function of their
//! own, `w_turns` in `shaders/lib/turns.wgsl`.

use super::Lane;
use crate::math::wide::Wide;
use std::f64::consts::FRAC_PI_2;

/// From here on, angles are reduced in double precision.
pub const LARGE: f64 = 131_072.0;
/// pi/2 as a sum of three floats.
const QUARTER: [f64; 3] = [1.570_796_370_506_286_6, -4.371_138_828_673_793e-8, -1.715_124_510_005_881_9e-15];

/// `(r, low)` with `x = r + low + n * pi/2`, `n` (nearly) the nearest integer, and pi/2 as a sum of three.
///
/// The first subtraction is exact. `low` is what the second one loses; without it a small `r`, next to a
/// multiple of pi/2, would have few good bits.
#[inline(always)]
pub(super) fn without_quarters<L: Lane>(x: L, n: L, quarter: &[f64; 3]) -> (L, L) {
    let high = x.minus_product(n, L::lit(quarter[0]));
    let middle = n * quarter[1];
    let middle_low = n.mul_add(L::lit(quarter[1]), -middle);
    let r = high - middle;
    let moved = r - high;
    let lost = (high - (r - moved)) - (middle + moved);
    (r, (lost - middle_low).minus_product(n, L::lit(quarter[2])))
}

/// `(r, n)` with `x = r + n * pi/2` and `|r| <= pi/4`, for `|x| < LARGE`.
#[inline(always)]
pub fn small_quarters<L: Lane>(x: L) -> (L, L::Int) {
    let (turns, n) = (x * std::f64::consts::FRAC_2_PI).nearest_int();
    let (r, low) = without_quarters(x, turns, &QUARTER);
    (r + low, n)
}

/// `(r, n)` with `x = r + n * pi/2` and `|r| <= pi/4`; `n` is modulo 4, and its other bits are arbitrary.
#[inline(always)]
pub fn quarters<L: Wide<Number = f32>>(x: L) -> (L, L::Int) {
    let (r, n) = small_quarters(x);
    let large = !x.abs().lt(L::lit(LARGE));
    if !L::may_hold(large) {
        return (r, n);
    }
    let r = r.replace(large, [x], |[x]| any_quarters(f64::from(x)).0 as f32);
    let turns =
        L::from_int(n & L::int(3)).replace(large, [x], |[x]| (any_quarters(f64::from(x)).1 & 3) as f32);
    (r, turns.nearest_int().1)
}

/// `2^-k`.
const fn power(k: u64) -> f64 {
    f64::from_bits((1023 - k) << 52)
}

/// `2/pi` in pieces of 27 bits, most significant first: their products with a 24-bit mantissa are exact.
const TWO_OVER_PI: [f64; 7] = [
    85445659.0 * power(27),
    60002565.0 * power(54),
    39057486.0 * power(81),
    92086099.0 * power(108),
    40820845.0 * power(135),
    92952164.0 * power(162),
    126382600.0 * power(189),
];

/// Piece `K`, `K + 1`, `K + 2` or `K + 3`: one further for each threshold that an angle exceeds.
#[inline(always)]
fn piece<const K: usize>(past: [bool; 3]) -> f64 {
    // Separate constants: a table would be read by slow gather instructions.
    let near = if past[0] { const { TWO_OVER_PI[K + 1] } } else { const { TWO_OVER_PI[K] } };
    let near = if past[1] { const { TWO_OVER_PI[K + 2] } } else { near };
    if past[2] { const { TWO_OVER_PI[K + 3] } } else { near }
}

/// `(r, n)` with `x = r + n * pi/2`, `|r| <= pi/4` and `n` modulo 4, for `x` that came from an `f32`.
///
/// After M. Payne and R. Hanek (1983): pieces of 2/pi whose products with `x` are multiples of 4 are skipped,
/// and the next four pieces leave more than 80 bits behind the binary point. No branches.
#[inline(always)]
pub fn any_quarters(x: f64) -> (f64, i32) {
    // Adding and subtracting these rounds to a multiple of 4 and of 1.
    const TO_FOUR: f64 = 1.5 * (1_u64 << 54) as f64;
    const TO_ONE: f64 = 1.5 * (1_u64 << 52) as f64;
    let size = x.abs();
    let past = [size >= (1_u64 << 52) as f64, size >= TWO_79, size >= TWO_106];
    let first = x * piece::<0>(past);
    let first = first - ((first + TO_FOUR) - TO_FOUR);
    let second = x * piece::<1>(past);
    let second = second - ((second + TO_FOUR) - TO_FOUR);
    let small = x * piece::<2>(past) + x * piece::<3>(past);
    let turns = (first + second + small) + TO_ONE;
    let rest = ((first - (turns - TO_ONE)) + second) + small;
    (rest * FRAC_PI_2, turns.to_bits() as i32)
}

const TWO_79: f64 = (1_u128 << 79) as f64;
const TWO_106: f64 = (1_u128 << 106) as f64;
