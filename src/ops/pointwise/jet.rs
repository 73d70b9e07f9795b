//! `Jet`: the reading of a rule as its own derivative along a direction.
//!
//! A jet is a number and its tangent. A partial of the tables, read with jets over CPU lanes, is the fused
//! kernel of a second derivative; read with jets over `Sym`, the same derivative as recorded operations. Each
//! method is the row of the same name in `unary.rs` or `binary.rs` with the tangent for `g`, so that singular
//! points are treated alike.

use crate::math::real::Real;
use crate::ops::pointwise::formulas::{
    arc_slope, atan_slope, bell, divisor, exponent_slope, i0e_slope, i1_slope, i1e_slope, length, magnitude,
    normal_pdf, one_minus_square, power_slope, sign, silu_slope, truncated, zero_guard,
};
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LOG10_E};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A number and its tangent; `None` is a tangent known to be zero, which costs nothing.
#[derive(Clone, Copy)]
pub struct Jet<R> {
    value: R,
    tangent: Option<R>,
}

impl<R: Real> Jet<R> {
    /// A number that does not move.
    #[inline(always)]
    pub fn fixed(value: R) -> Jet<R> {
        Jet { value, tangent: None }
    }
    /// A number that moves.
    #[inline(always)]
    pub fn moving(value: R, tangent: R) -> Jet<R> {
        Jet { value, tangent: Some(tangent) }
    }
    /// How it moves.
    #[inline(always)]
    pub fn tangent(self) -> R {
        self.tangent.unwrap_or(R::lit(0.0))
    }
    /// A function of this number, given its value and what it makes of a tangent.
    #[inline(always)]
    fn through(self, value: R, slope: impl Fn(R) -> R) -> Jet<R> {
        Jet { value, tangent: self.tangent.map(slope) }
    }
}

/// The sum of two tangents.
#[inline(always)]
fn sum<R: Real>(a: Option<R>, b: Option<R>) -> Option<R> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    }
}

/// An operator of two jets, and of a jet and a literal.
macro_rules! operator {
    ($trait:ident $method:ident |$x:ident, $y:ident| $tangent:expr) => {
        impl<R: Real> $trait for Jet<R> {
            type Output = Jet<R>;
            #[inline(always)]
            fn $method(self, other: Jet<R>) -> Jet<R> {
                let ($x, $y) = (self, other);
                Jet { value: $trait::$method(self.value, other.value), tangent: $tangent }
            }
        }
        impl<R: Real> $trait<f64> for Jet<R> {
            type Output = Jet<R>;
            #[inline(always)]
            fn $method(self, other: f64) -> Jet<R> {
                $trait::$method(self, Jet::fixed(R::lit(other)))
            }
        }
        impl<R: Real> $trait<Jet<R>> for f64 {
            type Output = Jet<R>;
            #[inline(always)]
            fn $method(self, other: Jet<R>) -> Jet<R> {
                $trait::$method(Jet::fixed(R::lit(self)), other)
            }
        }
    };
}

operator!(Add add |x, y| sum(x.tangent, y.tangent));
operator!(Sub sub |x, y| match (x.tangent, y.tangent) {
    (Some(a), Some(b)) => Some(a - b),
    (a, b) => a.or(b.map(|t| -t)),
});
operator!(Mul mul |x, y| sum(
    x.tangent.map(|t| t * zero_guard(t, y.value)),
    y.tangent.map(|t| t * zero_guard(t, x.value)),
));
operator!(Div div |x, y| sum(
    x.tangent.map(|t| t / divisor(t, y.value)),
    // Not t * (x / y / y), which may underflow or overflow before t meets it.
    y.tangent.map(|t| -(t / divisor(t, y.value) * zero_guard(t, x.value / y.value))),
));

impl<R: Real> Neg for Jet<R> {
    type Output = Jet<R>;
    #[inline(always)]
    fn neg(self) -> Jet<R> {
        self.through(-self.value, |t| -t)
    }
}

/// The primitive functions: what each makes of a tangent `t` at `x`, where its value is `o`.
macro_rules! slopes {
    ($($name:ident |$t:ident, $x:ident, $o:ident| $slope:expr;)*) => {$(
        #[inline(always)]
        #[allow(unused_variables)]
        fn $name(self) -> Jet<R> {
            let ($x, $o) = (self.value, self.value.$name());
            self.through($o, |$t| $slope)
        }
    )*};
}

impl<R: Real> Real for Jet<R> {
    type Mask = R::Mask;
    #[inline(always)]
    fn short_circuits() -> bool {
        R::short_circuits()
    }
    #[inline(always)]
    fn lit(value: f64) -> Jet<R> {
        Jet::fixed(R::lit(value))
    }
    #[inline(always)]
    fn select(mask: R::Mask, yes: Jet<R>, no: Jet<R>) -> Jet<R> {
        let tangent = match (yes.tangent, no.tangent) {
            (None, None) => None,
            _ => Some(R::select(mask, yes.tangent(), no.tangent())),
        };
        Jet { value: R::select(mask, yes.value, no.value), tangent }
    }
    #[inline(always)]
    fn lt(self, other: Jet<R>) -> R::Mask {
        self.value.lt(other.value)
    }
    #[inline(always)]
    fn le(self, other: Jet<R>) -> R::Mask {
        self.value.le(other.value)
    }
    #[inline(always)]
    fn eq(self, other: Jet<R>) -> R::Mask {
        self.value.eq(other.value)
    }
    #[inline(always)]
    fn ne(self, other: Jet<R>) -> R::Mask {
        self.value.ne(other.value)
    }
    #[inline(always)]
    fn abs(self) -> Jet<R> {
        self.through(self.value.abs(), |t| t * sign(self.value))
    }
    #[inline(always)]
    fn floor(self) -> Jet<R> {
        Jet::fixed(self.value.floor())
    }
    #[inline(always)]
    fn round(self) -> Jet<R> {
        Jet::fixed(self.value.round())
    }
    #[inline(always)]
    fn sqrt(self) -> Jet<R> {
        let o = self.value.sqrt();
        self.through(o, |t| t * zero_guard(t, R::lit(0.5) / o))
    }
    slopes! {
        exp |t, x, o| t * zero_guard(t, o);
        expm1 |t, x, o| t * zero_guard(t, o + 1.0);
        exp2 |t, x, o| t * zero_guard(t, o * LN_2);
        log |t, x, o| t / divisor(t, x);
        log1p |t, x, o| t / divisor(t, x + 1.0);
        log2 |t, x, o| t / divisor(t, x * LN_2);
        log10 |t, x, o| t / divisor(t, x) * LOG10_E;
        sin |t, x, o| t * x.cos();
        cos |t, x, o| -(t * x.sin());
        tan |t, x, o| t * zero_guard(t, o * o + 1.0);
        asin |t, x, o| t * zero_guard(t, arc_slope(x));
        acos |t, x, o| -(t * zero_guard(t, arc_slope(x)));
        atan |t, x, o| t * atan_slope(x);
        sinh |t, x, o| t * zero_guard(t, x.cosh());
        cosh |t, x, o| t * zero_guard(t, x.sinh());
        tanh |t, x, o| t / x.cosh() / x.cosh();
        asinh |t, x, o| t / length(magnitude(x), R::lit(1.0));
        acosh |t, x, o| t / divisor(t, (x - 1.0).sqrt() * (x + 1.0).sqrt());
        atanh |t, x, o| t / divisor(t, one_minus_square(x));
        sigmoid |t, x, o| t * (o * (-x).sigmoid());
        silu |t, x, o| t * silu_slope(x);
        erf |t, x, o| t * (bell(x) * FRAC_2_SQRT_PI);
        erfc |t, x, o| -(t * (bell(x) * FRAC_2_SQRT_PI));
        erfinv |t, x, o| t * zero_guard(t, (o * o).exp() / FRAC_2_SQRT_PI);
        ndtr |t, x, o| t * normal_pdf(x);
        gelu |t, x, o| t * (x.ndtr() + x * normal_pdf(x));
        lgamma |t, x, o| t * zero_guard(t, x.digamma());
        digamma |t, x, o| t * zero_guard(t, x.polygamma(1));
        i0 |t, x, o| t * zero_guard(t, x.i1());
        i0e |t, x, o| t * i0e_slope(x);
        i1 |t, x, o| t * zero_guard(t, i1_slope(x));
        i1e |t, x, o| t * i1e_slope(x);
    }
    #[inline(always)]
    fn pow(self, exponent: Jet<R>) -> Jet<R> {
        let (x, y) = (self.value, exponent.value);
        let o = x.pow(y);
        let base = self.tangent.map(|t| t * zero_guard(t, power_slope(x, y)));
        let power = exponent.tangent.map(|t| exponent_slope(x, o, t));
        Jet { value: o, tangent: sum(base, power) }
    }
    #[inline(always)]
    fn fmod(self, divisor: Jet<R>) -> Jet<R> {
        let (x, y) = (self.value, divisor.value);
        let along = divisor.tangent.map(|t| -(t * truncated(x / y)));
        Jet { value: x.fmod(y), tangent: sum(self.tangent, along) }
    }
    #[inline(always)]
    fn polygamma(self, order: usize) -> Jet<R> {
        self.through(self.value.polygamma(order), |t| t * zero_guard(t, self.value.polygamma(order + 1)))
    }
}
