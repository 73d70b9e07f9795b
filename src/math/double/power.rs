//! `pow` in double precision. The logarithm is carried as a sum of two doubles with about 68 good bits: at the
//! largest powers, ten of them stand before the point.

use super::super::pow::edges;
use super::super::{INFINITY, polynomial};
use super::{Double, exp_rest, split};
use std::f64::consts::LN_2;

/// `2 / log(2)` as a sum.
const TWO_OVER_LN2: [f64; 2] = [2.885_390_081_777_926_8, 4.071_054_748_186_206_6e-17];
/// `log(2)`, less its nearest double.
const LN2_LOST: f64 = 2.319_046_813_846_299_6e-17;
/// `log2(5/4)`: a value of few bits, and the rest.
const LOG2_FIVE_QUARTERS: [f64; 2] = [0.3219280242919922, 7.059537016037032e-08];
/// `log2(51/64)` likewise.
const LOG2_LOWER: [f64; 2] = [-0.3275747299194336, 7.18909291834578e-08];
/// `1/3` as a sum.
const THIRD: [f64; 2] = [0.333_333_333_333_333_3, 1.850_371_707_708_594e-17];
/// `(atanh(s) - s - s^3/3) / s^5` in `s^2` for `|s| <= 0.065`.
const LOG_RATIO: [f64; 5] =
    [0.20000000000000623, 0.14285714284239992, 0.11111112373403086, 0.09090407866138833, 0.07786092742861055];

/// `log2(x)` as `(high, low)` for a normal `x > 0`.
///
/// With a centre `c` of 51/64, 1 or 5/4 near the mantissa `m`: `log2(m) = log2(c) + 2/log(2) * atanh(s)` for
/// `s = (m - c)/(m + c)`. What is below the fifth power of `s` does with double precision.
#[inline(always)]
fn log2_pair<L: Double>(e: L, m: L) -> (L, L) {
    let (below, above) = (m.lt(L::lit(0.890_625)), m.gt(L::lit(1.125)));
    let choose = |low: f64, high: f64, middle: f64| {
        L::select(below, L::lit(low), L::select(above, L::lit(high), L::lit(middle)))
    };
    let centre = choose(0.796_875, 1.25, 1.0);
    let start = e + choose(LOG2_LOWER[0], LOG2_FIVE_QUARTERS[0], 0.0);
    let start_low = choose(LOG2_LOWER[1], LOG2_FIVE_QUARTERS[1], 0.0);
    // s and s_low
    let (difference, sum) = (m - centre, m + centre);
    let sum_low = m - (sum - centre);
    let inverse = L::lit(1.0) / sum;
    let s = difference * inverse;
    let s_low = difference.minus_product(s, sum).minus_product(s, sum_low) * inverse;
    // s^2 and s^2 (1/3 + s^2 ...)
    let square = s * s;
    let square_low = (s + s).mul_add(s_low, s.mul_add(s, -square));
    let more = square.mul_add(polynomial(square, &LOG_RATIO), L::lit(THIRD[1]));
    let cubic = square * THIRD[0];
    let cubic_low = square.mul_add(L::lit(THIRD[0]), -cubic) + square.mul_add(more, square_low * THIRD[0]);
    // atanh(s) = s + s cubic
    let term = s * cubic;
    let term_low = s.mul_add(cubic, -term) + s.mul_add(cubic_low, s_low * cubic);
    let atanh = s + term;
    let atanh_low = ((s - atanh) + term) + (s_low + term_low);
    // log2
    let main = atanh * TWO_OVER_LN2[0];
    let main_low = atanh.mul_add(L::lit(TWO_OVER_LN2[0]), -main)
        + atanh.mul_add(L::lit(TWO_OVER_LN2[1]), atanh_low * TWO_OVER_LN2[0]);
    let high = start + main;
    (high, ((start - high) + main) + (main_low + start_low))
}

/// `2^(product + rest)`, for `|product| <= 1100` and a small `rest`.
#[inline(always)]
fn exp2_pair<L: Double>(product: L, rest: L) -> L {
    let (turns, n) = product.nearest_int();
    let whole = product - turns;
    let sum = whole + rest;
    let lost = (whole - sum) + rest;
    let r = sum * LN_2;
    let r_low = sum.mul_add(L::lit(LN_2), -r) + sum.mul_add(L::lit(LN2_LOST), lost * LN_2);
    (((exp_rest(r) + r_low) + r) + 1.0).scale(turns, n)
}

/// `size` to the power `y`, where the logarithm of `size` is `log2(m) + e`.
#[inline(always)]
fn power_of_parts<L: Double>(e: L, m: L, y: L) -> L {
    let (high, low) = log2_pair(e, m);
    let product = high * y;
    let rest = high.mul_add(y, -product) + low * y;
    let held = product.clamp(-1100.0, 1100.0);
    exp2_pair(held, L::select(held.eq(product), rest, L::lit(0.0)))
}

/// `x` to the power `y`, as C's `pow`.
#[inline(always)]
pub fn pow<L: Double>(x: L, y: L) -> L {
    let (e, m) = split(x);
    let value = power_of_parts(e, m, y);
    let normal = x.ge(L::lit(f64::MIN_POSITIVE)) & x.lt(x.special(INFINITY));
    let ordinary = normal & y.abs().lt(L::lit(1e15)) & y.ne(L::lit(0.0));
    if !L::may_hold(!ordinary) {
        return value;
    }
    // Beyond 2^64 every power but that of 1 is 0 or infinite.
    let (size, held) = (x.abs(), y.clamp(-18_446_744_073_709_551_616.0, 18_446_744_073_709_551_616.0));
    let small = size.lt(L::lit(f64::MIN_POSITIVE));
    let (e, m) = split(L::select(small, size * 18_014_398_509_481_984.0, size));
    let e = L::select(small, e - 54.0, e);
    edges(x, y, power_of_parts(e, m, held))
}
