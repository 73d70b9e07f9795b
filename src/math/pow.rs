//! `pow` without tables: the only single-precision function that needs more than single precision inside.
//!
//! The logarithm is `high + low` with 12 bits in `high`, so that products of high parts are exact with or
//! without fused multiply-adds. High parts are cut out by masking bits, which no compiler can optimise away.

use super::{INFINITY, Lane, NAN, exp_rest, normal, polynomial, split};

/// The upper 12 bits of a mantissa.
const HIGH_BITS: i64 = -0x1000;
/// `2 / log(2)`, and its upper 12 bits.
const TWO_OVER_LN2: f64 = 2.0 * std::f64::consts::LOG2_E;
const TWO_OVER_LN2_HIGH: f64 = 2.884_765_625;
const TWO_OVER_LN2_LOW: f64 = TWO_OVER_LN2 - TWO_OVER_LN2_HIGH;
/// `log2(5/4)`, and a value of few bits near it.
const LOG2_FIVE_QUARTERS: f64 = 0.321_928_094_887_362_35;
const LOG2_FIVE_QUARTERS_HIGH: f64 = 0.322_021_484_375;
const LOG2_FIVE_QUARTERS_LOW: f64 = LOG2_FIVE_QUARTERS - LOG2_FIVE_QUARTERS_HIGH;
/// `log2(51/64)`, and a value of few bits near it.
const LOG2_LOWER: f64 = -0.327_574_658_028_504_4;
const LOG2_LOWER_HIGH: f64 = -0.327_636_718_75;
const LOG2_LOWER_LOW: f64 = LOG2_LOWER - LOG2_LOWER_HIGH;
/// `(atanh(s) - s) / s^3` in `s^2` for `|s| <= 0.065`.
const LOG_RATIO: [f64; 3] = [0.3333333433, 0.1999911964, 0.1448990107];

/// `x` with the lower half of its mantissa cleared.
#[inline(always)]
fn high<L: Lane>(x: L) -> L {
    L::from_bits(x.bits() & L::int(HIGH_BITS))
}

/// `log2(x)` as `(high, low)` with about 34 good bits, for `0 < x < infinity`.
///
/// With a centre `c` of 51/64, 1 or 5/4 near the mantissa `m`: `log2(m) = log2(c) + 2/log(2) * atanh((m -
/// c)/(m + c))`, where single precision suffices for the cubic and higher terms.
#[inline(always)]
fn log2_double<L: Lane>(x: L) -> (L, L) {
    let (x, shift) = normal::<f32, L>(x);
    let (e, m) = split::<f32, L>(x);
    let e = L::from_int(e) - shift;
    let (below, above) = (m.lt(L::lit(0.890_625)), m.gt(L::lit(1.125)));
    let choose = |low: f64, high: f64, middle: f64| {
        L::select(below, L::lit(low), L::select(above, L::lit(high), L::lit(middle)))
    };
    let centre = choose(0.796_875, 1.25, 1.0);
    let start = e + choose(LOG2_LOWER_HIGH, LOG2_FIVE_QUARTERS_HIGH, 0.0);
    let start_low = choose(LOG2_LOWER_LOW, LOG2_FIVE_QUARTERS_LOW, 0.0);
    let (above_centre, sum) = (m - centre, m + centre);
    let ratio = above_centre / sum;
    let ratio_high = high(ratio);
    let sum_high = high(sum);
    let sum_low = m - (sum_high - centre);
    let ratio_low = ((above_centre - ratio_high * sum_high) - ratio_high * sum_low) / sum;
    let square = ratio * ratio;
    let cubic = ratio * square * polynomial(square, &LOG_RATIO);
    let main = ratio_high * TWO_OVER_LN2_HIGH;
    let rest = ratio_high * TWO_OVER_LN2_LOW + (ratio_low + cubic) * TWO_OVER_LN2;
    let rest = rest + start_low;
    let result = high(start + (main + rest));
    (result, ((start - result) + main) + rest)
}

/// `size` to the power `y` for a positive finite `size`.
#[inline(always)]
fn positive_power<L: Lane>(size: L, y: L) -> L {
    let (log_high, log_low) = log2_double(size);
    let held_high = high(y);
    let product = log_high * held_high;
    let rest = log_low.mul_add(y, log_high * (y - held_high));
    let outside = product.abs().gt(L::lit(160.0));
    let product = product.clamp(-160.0, 160.0);
    let rest = L::select(outside, L::lit(0.0), rest);
    let (turns, n) = (product + rest).nearest_int();
    let r = ((product - turns) + rest) * std::f64::consts::LN_2;
    ((exp_rest(r) + r) + 1.0).scale(turns, n)
}

/// `x` to the power `y`, as C's `pow`.
#[inline(always)]
pub fn pow<L: Lane>(x: L, y: L) -> L {
    // Beyond 2^32 every power but that of 1 is 0 or infinite.
    let value = positive_power(x.abs(), y.clamp(-4_294_967_296.0, 4_294_967_296.0));
    let ordinary =
        x.gt(L::lit(0.0)) & x.lt(x.special(INFINITY)) & y.abs().lt(x.special(INFINITY)) & y.ne(L::lit(0.0));
    if L::may_hold(!ordinary) { edges(x, y, value) } else { value }
}

/// Completes the power whose magnitude is `value` for an ordinary `x`: adds the sign, and C's `pow` of zero,
/// infinity, NaN and negative numbers.
#[inline(always)]
pub(super) fn edges<L: Lane>(x: L, y: L, value: L) -> L {
    let (zero, one, infinity) = (L::lit(0.0), L::lit(1.0), x.special(INFINITY));
    let size = x.abs();
    // Zero and infinity have no logarithm.
    let to_infinity = L::select(y.lt(zero), zero, infinity);
    let to_zero = L::select(y.lt(zero), infinity, zero);
    let value = L::select(size.eq(infinity), to_infinity, L::select(size.eq(zero), to_zero, value));
    // The sign of a negative base.
    let half = y * 0.5;
    let whole = y.floor().eq(y);
    let odd = whole & half.floor().ne(half);
    let sign = L::select(odd, L::from_bits(x.bits() & L::int(L::SIGN)), zero);
    let value = L::from_bits(value.bits() | sign.bits());
    let value = L::select(x.lt(zero) & x.gt(-infinity) & !whole, x.special(NAN), value);
    let value = L::select(x.ne(x) | y.ne(y), x + y, value);
    L::select(y.eq(zero) | x.eq(one), one, value)
}
