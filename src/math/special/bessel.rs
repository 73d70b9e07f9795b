//! Modified Bessel functions of the first kind, of order 0 and 1.
//!
//! Below `FAR`, a polynomial in `x^2 / 4`, whose terms all have one sign. From there on, the exponential over
//! the square root of `x`, times a polynomial in `2 FAR / x - 1` (M. Abramowitz and I. Stegun, *Handbook of
//! Mathematical Functions*, 1964, 9.6.10 and 9.7.1).

use super::{Precision, exp_times, series};
use crate::math::{Lane, with_sign_of};

/// Where one polynomial replaces the other.
const FAR: f64 = 5.0;
const TWICE_FAR: f64 = 2.0 * FAR;

/// The polynomial in the square of `x / 2`.
#[inline(always)]
fn near<L: Lane>(half: L, table: &[f64]) -> L {
    series(half * half, table)
}

/// `exp(-size)` times the function that has this table, from `FAR` on.
#[inline(always)]
fn far<L: Lane>(size: L, table: &[f64]) -> L {
    series(L::lit(TWICE_FAR) / size - 1.0, table) / size.sqrt()
}

/// `exp(size) far(size)`, which is infinite from `BESSEL_END` on.
#[inline(always)]
fn grown<P: Precision, L: Lane>(size: L, table: &[f64]) -> L {
    let inside = size.clamp(FAR, P::BESSEL_END);
    exp_times::<P, L>(inside, L::lit(0.0), far(inside, table))
}

/// `exp(-size) value` for a `value` below `FAR`.
#[inline(always)]
fn shrunk<P: Precision, L: Lane>(size: L, value: L) -> L {
    exp_times::<P, L>(-size.clamp(0.0, FAR), L::lit(0.0), value)
}

/// The function of order 0.
#[inline(always)]
pub fn i0<P: Precision, L: Lane>(x: L) -> L {
    let size = x.abs();
    L::select(size.lt(L::lit(FAR)), near(size * 0.5, P::I0), grown::<P, L>(size, P::I0_FAR))
}

/// The function of order 0 times `exp(-|x|)`.
#[inline(always)]
pub fn i0e<P: Precision, L: Lane>(x: L) -> L {
    let size = x.abs();
    let close = shrunk::<P, L>(size, near(size * 0.5, P::I0));
    L::select(size.lt(L::lit(FAR)), close, far(size, P::I0_FAR))
}

/// The function of order 1.
#[inline(always)]
pub fn i1<P: Precision, L: Lane>(x: L) -> L {
    let (size, half) = (x.abs(), x * 0.5);
    let away = with_sign_of(grown::<P, L>(size, P::I1_FAR), x);
    L::select(size.lt(L::lit(FAR)), half * near(half, P::I1), away)
}

/// The function of order 1 times `exp(-|x|)`.
#[inline(always)]
pub fn i1e<P: Precision, L: Lane>(x: L) -> L {
    let size = x.abs();
    let half = size * 0.5;
    let close = shrunk::<P, L>(size, half * near(half, P::I1));
    // The sign comes last: that of a zero would be lost in the exponential.
    with_sign_of(L::select(size.lt(L::lit(FAR)), close, far(size, P::I1_FAR)), x)
}
