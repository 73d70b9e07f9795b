//! `pow` on CPUs in single precision, computed as in `src/math/double/power.rs`. GPUs use `src/math/pow.rs`,
//! which needs neither tables nor fused multiply-adds.

use super::pow::edges;
use super::{INFINITY, ROOT_HALF, polynomial, split};
use crate::math::wide::Wide;

/// `2 / log(2)` as a sum.
const TWO_OVER_LN2: [f64; 2] = [2.885_390_043_258_667, 3.851_925_98e-8];
/// Centres `c` of 16 parts of the mantissas from `sqrt(1/2)` to `sqrt(2)`; 1 for the part that contains it.
static CENTRE: [f32; 16] = [
    0.72265625, 0.75390625, 0.78515625, 0.81640625, 0.84765625, 0.87890625, 0.91015625, 0.94140625,
    0.97265625, 1.0, 1.0703125, 1.1328125, 1.1953125, 1.2578125, 1.3203125, 1.3828125,
];
/// `log2(c)`, rounded to a multiple of `2^-14`, so that adding an exponent is exact.
static LOG2_HIGH: [f32; 16] = [
    -0.46862793,
    -0.40753174,
    -0.348938,
    -0.29266357,
    -0.23846436,
    -0.18621826,
    -0.13580322,
    -0.08709717,
    -0.039978027,
    0.0,
    0.09802246,
    0.17993164,
    0.25738525,
    0.33093262,
    0.4008789,
    0.46759033,
];
/// `log2(c) - LOG2_HIGH`.
static LOG2_LOW: [f32; 16] = [
    9.390204e-06,
    -1.1224451e-05,
    -1.032054e-05,
    2.27063e-05,
    1.5587913e-05,
    -5.470642e-07,
    -1.063269e-05,
    -1.3495801e-05,
    -2.0040588e-05,
    0.0,
    9.622023e-06,
    -2.255061e-05,
    2.5887864e-06,
    -1.5739073e-05,
    5.300322e-07,
    1.5218052e-05,
];
/// `(atanh(s) - s) / s^3` in `s^2` for `|s| <= 0.01923`.
const LOG_RATIO: [f64; 2] = [0.3333333432674408, 0.19999931752681732];
/// `2^f` for `|f| <= 1/2`.
const EXP2: [f64; 7] = [
    1.0,
    0.6931471824645996,
    0.24022650718688965,
    0.055503275245428085,
    0.009618003852665424,
    0.0013400319730862975,
    0.00015476334374397993,
];

/// `log2(x)` as `(high, low)` for `0 < x < infinity`.
#[inline(always)]
fn log2_pair<L: Wide<Number = f32>>(x: L, shift: f64) -> (L, L) {
    let (e, m) = split(x);
    let part = (m.bits() - L::int(ROOT_HALF)) >> 19;
    let centre = L::lookup(part, &CENTRE);
    let start = (L::from_int(e) - shift) + L::lookup(part, &LOG2_HIGH);
    let (difference, sum) = (m - centre, m + centre);
    let sum_low = m - (sum - centre);
    let inverse = L::lit(1.0) / sum;
    let s = difference * inverse;
    let s_low = difference.minus_product(s, sum).minus_product(s, sum_low) * inverse;
    // 2/log(2) atanh(s)
    let square = s * s;
    let rest = (s * square).mul_add(polynomial(square, &LOG_RATIO), s_low);
    let main = s * TWO_OVER_LN2[0];
    let lost = s.mul_add(L::lit(TWO_OVER_LN2[0]), -main);
    let main_low = s.mul_add(L::lit(TWO_OVER_LN2[1]), rest.mul_add(L::lit(TWO_OVER_LN2[0]), lost));
    let high = start + main;
    (high, ((start - high) + main) + (main_low + L::lookup(part, &LOG2_LOW)))
}

/// `2^((high + low) * y)`.
#[inline(always)]
fn exp2_of_product<L: Wide<Number = f32>>((high, low): (L, L), y: L, large: bool) -> L {
    let product = high * y;
    let rest = low.mul_add(y, high.mul_add(y, -product));
    let held = product.clamp(-160.0, 160.0);
    // The rounding error of the product is only small as long as the product is.
    let rest = if large { L::select(held.eq(product), rest, L::lit(0.0)) } else { rest };
    let (turns, n) = held.nearest_int();
    polynomial((held - turns) + rest, &EXP2).scale(turns, n)
}

/// `x` to the power `y`, as C's `pow`.
#[inline(always)]
pub fn pow<L: Wide<Number = f32>>(x: L, y: L) -> L {
    /// Up to here, the rounding error of the product of a logarithm and `y` stays below 1/8.
    const LARGE: f64 = 8192.0;
    /// From here on every power but that of 1 is 0 or infinite.
    const HUGE: f64 = 4_294_967_296.0;
    let value = exp2_of_product(log2_pair(x, 0.0), y, false);
    let smallest = L::lit(f64::from(f32::MIN_POSITIVE));
    let ordinary = x.ge(smallest) & x.lt(x.special(INFINITY)) & y.abs().lt(L::lit(LARGE));
    if !L::may_hold(!ordinary) {
        return value;
    }
    let (size, held) = (x.abs(), y.clamp(-HUGE, HUGE));
    let normal = exp2_of_product(log2_pair(size, 0.0), held, true);
    let small = exp2_of_product(log2_pair(size * 8_388_608.0, 23.0), held, true);
    edges(x, y, L::select(size.lt(smallest), small, normal))
}
