//! `pow` in double precision. The logarithm is a sum of two doubles with about 65 good bits: for the largest
//! powers, ten of them are before the binary point.

use super::super::pow::edges;
use super::super::{INFINITY, polynomial};
use super::{Double, ROOT_HALF, split};

/// `2 / log(2)` as a sum.
const TWO_OVER_LN2: [f64; 2] = [2.885_390_081_777_926_8, 4.071_054_748_186_206_6e-17];
/// Centres `c` of 16 parts of the mantissas from `sqrt(1/2)` to `sqrt(2)`; 1 for the part that contains it.
static CENTRE: [f64; 16] = [
    0.72265625, 0.75390625, 0.78515625, 0.81640625, 0.84765625, 0.87890625, 0.91015625, 0.94140625,
    0.97265625, 1.0, 1.0703125, 1.1328125, 1.1953125, 1.2578125, 1.3203125, 1.3828125,
];
/// `log2(c)`, rounded to a multiple of `2^-30`, so that adding an exponent is exact.
static LOG2_HIGH: [f64; 16] = [
    -0.46861853916198015,
    -0.40754296258091927,
    -0.3489483091980219,
    -0.2926408676430583,
    -0.23844876792281866,
    -0.1862188084051013,
    -0.13581385556608438,
    -0.08711066376417875,
    -0.039998067542910576,
    0.0,
    0.09803208336234093,
    0.17990908958017826,
    0.25738784298300743,
    0.330916877835989,
    0.40087943617254496,
    0.4676055498421192,
];
/// `log2(c) - LOG2_HIGH`.
static LOG2_LOW: [f64; 16] = [
    -3.2170771814174945e-10,
    -1.5100031461562512e-10,
    3.769505031159261e-10,
    -2.76058949988807e-10,
    3.672979769841769e-10,
    -3.7786164206599457e-10,
    2.2036462193666857e-10,
    -5.859628117097128e-12,
    -3.8900848631993423e-10,
    0.0,
    -4.018142113283718e-10,
    4.347562077868701e-10,
    -2.9035565986872956e-10,
    2.7862798132303165e-10,
    1.0963936458634991e-10,
    2.4087822334220055e-10,
];
/// `(atanh(s) - s) / s^3` in `s^2` for `|s| <= 0.01923`.
const LOG_RATIO: [f64; 4] =
    [0.3333333333333333, 0.2000000000014739, 0.14285712451187418, 0.11118417587791596];
/// `2^f` for `|f| <= 1/2`.
pub(super) const EXP2: [f64; 12] = [
    1.0,
    std::f64::consts::LN_2,
    0.24022650695910133,
    0.05550410866482174,
    0.009618129107593229,
    0.0013333558146379264,
    0.00015403530458224843,
    1.5252733867368208e-05,
    1.3215434738223881e-06,
    1.0178046517766133e-07,
    7.0738746344446576e-09,
    4.45738062235615e-10,
];

/// `log2(m) + e` as `(high, low)` for the parts of a normal number.
///
/// With the centre `c` next to `m`: `log2(m) = log2(c) + 2/log(2) * atanh(s)` for `s = (m - c)/(m + c)`. From
/// the third power of `s` on, double precision suffices.
#[inline(always)]
fn log2_pair<L: Double>(e: L, m: L) -> (L, L) {
    let part = (m.bits() - L::int(ROOT_HALF)) >> 48;
    let centre = L::lookup(part, &CENTRE);
    let start = e + L::lookup(part, &LOG2_HIGH);
    let (difference, sum) = (m - centre, m + centre);
    let sum_low = m - (sum - centre);
    let inverse = L::lit(1.0) / sum;
    let s = difference * inverse;
    let s_low = difference.minus_product(s, sum).minus_product(s, sum_low) * inverse;
    let square = s * s;
    let term = (s * square) * polynomial(square, &LOG_RATIO);
    let atanh = s + term;
    let atanh_low = ((s - atanh) + term) + s_low;
    let main = atanh * TWO_OVER_LN2[0];
    let lost = atanh.mul_add(L::lit(TWO_OVER_LN2[0]), -main);
    let main_low = atanh.mul_add(L::lit(TWO_OVER_LN2[1]), atanh_low.mul_add(L::lit(TWO_OVER_LN2[0]), lost));
    let high = start + main;
    (high, ((start - high) + main) + (main_low + L::lookup(part, &LOG2_LOW)))
}

/// `2^((high + low) * y)`.
#[inline(always)]
fn exp2_of_product<L: Double>((high, low): (L, L), y: L, large: bool) -> L {
    let product = high * y;
    let rest = low.mul_add(y, high.mul_add(y, -product));
    let held = product.clamp(-1100.0, 1100.0);
    // The rounding error of the product is only small as long as the product is.
    let rest = if large { L::select(held.eq(product), rest, L::lit(0.0)) } else { rest };
    let (turns, n) = held.nearest_int();
    polynomial((held - turns) + rest, &EXP2).scale(turns, n)
}

/// `x` to the power `y`, as C's `pow`.
#[inline(always)]
pub fn pow<L: Double>(x: L, y: L) -> L {
    /// Up to here, `y` times the lower half of a logarithm, which is below `2^-31`, plus the rounding error
    /// of the product stays below 1/8.
    const LARGE: f64 = (1_u64 << 28) as f64;
    /// From here on every power but that of 1 is 0 or infinite.
    const HUGE: f64 = (1_u128 << 64) as f64;
    let (e, m) = split(x);
    let value = exp2_of_product(log2_pair(e, m), y, false);
    let normal = x.ge(L::lit(f64::MIN_POSITIVE)) & x.lt(x.special(INFINITY));
    let ordinary = normal & y.abs().lt(L::lit(LARGE));
    if !L::may_hold(!ordinary) {
        return value;
    }
    let size = x.abs();
    let small = size.lt(L::lit(f64::MIN_POSITIVE));
    let (e, m) = split(L::select(small, size * 18_014_398_509_481_984.0, size));
    let e = L::select(small, e - 54.0, e);
    let value = exp2_of_product(log2_pair(e, m), y.clamp(-HUGE, HUGE), true);
    edges(x, y, value)
}
