//! Inverse trigonometric and hyperbolic functions: odd polynomials near 0, elsewhere reduced or a logarithm.

use super::{Precision, log_parts, odd_series, series};
use crate::math::{INFINITY, Lane, NAN, log_edges, with_sign_of};

/// `(s, low)` with `sqrt(t) = s + low`.
#[inline(always)]
fn root_parts<L: Lane>(t: L) -> (L, L) {
    let s = t.sqrt();
    let lost = (-s).mul_add(s, t);
    (s, L::select(s.gt(L::lit(0.0)), lost / (s + s), L::lit(0.0)))
}

/// `2 asin(s + low) - 2 s` for `0 <= s <= 1/2`.
#[inline(always)]
fn twice_asin_rest<P: Precision, L: Lane>(s: L, low: L) -> L {
    let square = s * s;
    let rest = (s * square).mul_add(series(square, P::ASIN), low);
    rest + rest
}

/// Arc sine: from 1/2 on, `pi/2 - 2 asin(sqrt((1 - x) / 2))`.
#[inline(always)]
pub fn asin<P: Precision, L: Lane>(x: L) -> L {
    let size = x.abs();
    let near = odd_series(size, P::ASIN);
    let (s, low) = root_parts((L::lit(1.0) - size) * 0.5);
    let far = (L::lit(P::HALF_PI[0]) - (s + s)) - (twice_asin_rest::<P, L>(s, low) - P::HALF_PI[1]);
    let value = L::select(size.lt(L::lit(0.5)), near, far);
    L::select(size.le(L::lit(1.0)), with_sign_of(value, x), x.special(NAN))
}

/// Arc cosine, from the same pieces.
#[inline(always)]
pub fn acos<P: Precision, L: Lane>(x: L) -> L {
    let size = x.abs();
    let square = x * x;
    // pi/2 - asin(x)
    let near = L::lit(P::HALF_PI[0]) - (x + ((x * square) * series(square, P::ASIN) - P::HALF_PI[1]));
    let (s, low) = root_parts((L::lit(1.0) - size) * 0.5);
    let rest = twice_asin_rest::<P, L>(s, low);
    let below = L::lit(P::PI[0]) - ((s + s) + (rest - P::PI[1]));
    let far = L::select(x.lt(L::lit(0.0)), below, (s + s) + rest);
    let value = L::select(size.lt(L::lit(0.5)), near, far);
    L::select(size.le(L::lit(1.0)), value, x.special(NAN))
}

/// Arc tangent: beyond 1, `pi/2 - atan(1 / x)`.
#[inline(always)]
pub fn atan<P: Precision, L: Lane>(x: L) -> L {
    let size = x.abs();
    let far = size.gt(L::lit(1.0));
    let inside = L::select(far, L::lit(1.0) / size, size);
    let square = inside * inside;
    let rest = (inside * square) * series(square, P::ATAN);
    let beyond = (L::lit(P::HALF_PI[0]) - inside) - (rest - P::HALF_PI[1]);
    with_sign_of(L::select(far, beyond, inside + rest), x)
}

/// Inverse hyperbolic tangent: from 1/2 on, half the logarithm of `(1 + x) / (1 - x)`.
#[inline(always)]
pub fn atanh<P: Precision, L: Lane>(x: L) -> L {
    let size = x.abs();
    let near = odd_series(size, P::ATANH);
    let ratio = (L::lit(1.0) + size) / (L::lit(1.0) - size);
    let (high, low) = log_parts::<P, L>(ratio);
    let far = log_edges(ratio, high + low) * 0.5;
    with_sign_of(L::select(size.lt(L::lit(0.5)), near, far), x)
}

/// `log(x + w)` for `x >= 1` and the root `w` of `x^2 + 1` or `x^2 - 1`.
#[inline(always)]
fn log_of_sum<P: Precision, L: Lane>(x: L, w: L) -> L {
    // Where the square may overflow, the root is x.
    let large = x.gt(L::lit(P::WHOLE));
    let w = L::select(large, L::lit(0.0), w);
    let (top, bottom) = (L::select(x.gt(w), x, w), L::select(x.gt(w), w, x));
    let sum = top + bottom;
    let lost = (bottom - (sum - top)) / sum;
    let (high, low) = log_parts::<P, L>(sum);
    let doubled = L::select(large, L::lit(std::f64::consts::LN_2), L::lit(0.0));
    log_edges(sum, high + (low + (lost + doubled)))
}

/// Inverse hyperbolic sine: beyond 1, `log(x + sqrt(x^2 + 1))`.
#[inline(always)]
pub fn asinh<P: Precision, L: Lane>(x: L) -> L {
    let size = x.abs();
    let near = odd_series(size, P::ASINH);
    let far = log_of_sum::<P, L>(size, size.mul_add(size, L::lit(1.0)).sqrt());
    with_sign_of(L::select(size.lt(L::lit(1.0)), near, far), x)
}

/// Inverse hyperbolic cosine: beyond 2, `log(x + sqrt(x^2 - 1))`.
#[inline(always)]
pub fn acosh<P: Precision, L: Lane>(x: L) -> L {
    let over = x - 1.0;
    let root = (over + over).sqrt();
    let near = (root * over).mul_add(series(over, P::ACOSH), root);
    let far = log_of_sum::<P, L>(x, x.mul_add(x, L::lit(-1.0)).sqrt());
    let value = L::select(over.lt(L::lit(1.0)), near, far);
    L::select(x.lt(x.special(INFINITY)), value, x)
}
