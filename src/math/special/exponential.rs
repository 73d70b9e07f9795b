//! Exponentials and logarithms to other bases, hyperbolic functions, the logistic function, and the tangent.

use super::tables::Tables;
use super::{Precision, exp_times, exponent_and_rest, odd_series, series};
use crate::math::{Lane, log_edges, with_sign_of};

/// `2^x`.
#[inline(always)]
pub fn exp2<P: Precision, L: Lane>(x: L) -> L {
    let inside = x.clamp(P::EXP2_RANGE[0], P::EXP2_RANGE[1]);
    let (turns, n) = inside.nearest_int();
    let r = (inside - turns) * std::f64::consts::LN_2;
    (((r * r).mul_add(series(r, P::EXP), r)) + 1.0).scale(turns, n)
}

/// Logarithm to base 2; that of a power of two is exact.
#[inline(always)]
pub fn log2<P: Precision, L: Lane>(x: L) -> L {
    let (e, f) = exponent_and_rest::<P, L>(x);
    log_edges(x, P::log_near_one(f).mul_add(L::lit(std::f64::consts::LOG2_E), e))
}

/// Logarithm to base 10; that of a power of ten is exact.
#[inline(always)]
pub fn log10<P: Precision, L: Lane>(x: L) -> L {
    let (e, f) = exponent_and_rest::<P, L>(x);
    let low = P::log_near_one(f).mul_add(L::lit(std::f64::consts::LOG10_E), e * P::LOG10_2_LOW);
    log_edges(x, e * P::LOG10_2_HIGH + low)
}

/// `exp(size) / 2`, which is finite for slightly larger arguments than the exponential.
#[inline(always)]
fn half_exp<P: Precision, L: Lane>(size: L) -> L {
    exp_times::<P, L>(size.clamp(0.0, P::SINH_END), L::lit(0.0), L::lit(0.5))
}

/// Hyperbolic sine: an odd polynomial near 0, the difference of two exponentials elsewhere.
#[inline(always)]
pub fn sinh<P: Precision, L: Lane>(x: L) -> L {
    let size = x.abs();
    let half = half_exp::<P, L>(size);
    let far = half - L::lit(0.25) / half;
    with_sign_of(L::select(size.lt(L::lit(1.0)), odd_series(size, P::SINH), far), x)
}

/// Hyperbolic cosine.
#[inline(always)]
pub fn cosh<P: Precision, L: Lane>(x: L) -> L {
    let half = half_exp::<P, L>(x.abs());
    half + L::lit(0.25) / half
}

/// The logistic function without overflow: the argument of the exponential is never positive.
#[inline(always)]
pub fn sigmoid<L: Lane>(x: L) -> L {
    let e = (-(x.abs())).exp();
    L::select(x.lt(L::lit(0.0)), e, L::lit(1.0)) / (e + 1.0)
}

/// The logistic function with a correction step, which needs fused multiply-adds.
#[inline(always)]
pub fn exact_sigmoid<L: Lane>(x: L) -> L {
    let e = (-(x.abs())).exp();
    let above = L::select(x.lt(L::lit(0.0)), e, L::lit(1.0));
    let below = e + 1.0;
    let lost = e - (below - 1.0);
    let inverse = L::lit(1.0) / below;
    let quotient = above * inverse;
    let remainder = above.minus_product(quotient, below).minus_product(quotient, lost);
    remainder.mul_add(inverse, quotient)
}

/// `x` times `logistic`, its logistic function; the exponential replaces that where it may have lost bits.
#[inline(always)]
pub fn silu<P: Precision, L: Lane>(x: L, logistic: L) -> L {
    let value = x * logistic;
    let low = x.lt(L::lit(-P::SIGMOID_END));
    if !L::may_hold(low) {
        return value;
    }
    let tail = exp_times::<P, L>(x.clamp(-P::SILU_END, 0.0), L::lit(0.0), x);
    let tail = L::select(x.lt(L::lit(-P::SILU_END)), L::lit(-0.0), tail);
    L::select(low, tail, value)
}

/// The tangent of `r + n * pi/2` for `|r| <= pi/4`, in single precision.
#[inline(always)]
pub fn tan<L: Lane>(x: L, (r, n): (L, L::Int)) -> L {
    let near = odd_series(r, <f32 as Tables>::TAN);
    let reciprocal = L::lit(-1.0) / near;
    let value = L::select(L::int_eq(n & L::int(1), L::int(0)), near, reciprocal);
    L::select(x.eq(L::lit(0.0)), x, value)
}
