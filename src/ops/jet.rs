//! `Jet`: the reading of a rule as its own derivative along a direction.
//!
//! A jet is a number and its tangent. A partial of the tables, read with jets over CPU lanes, is the fused kernel of a
//! second derivative; read with jets over `Sym`, the same derivative as recorded operations. Each method is the row
//! of the same name in `unary.rs` or `binary.rs` with the tangent for `g`, so that singular points are treated alike.

use crate::ops::formulas::{divisor, sign, tame, where_nonzero};
use crate::real::Real;
use std::f64::consts::FRAC_2_SQRT_PI;
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
operator!(Mul mul |x, y| sum(x.tangent.map(|t| t * y.value), y.tangent.map(|t| t * x.value)));
operator!(Div div |x, y| sum(
    x.tangent.map(|t| t / divisor(t, y.value)),
    y.tangent.map(|t| -(t * tame(t, x.value / y.value / y.value))),
));

impl<R: Real> Neg for Jet<R> {
    type Output = Jet<R>;
    #[inline(always)]
    fn neg(self) -> Jet<R> {
        self.through(-self.value, |t| -t)
    }
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
        self.through(o, |t| t * tame(t, R::lit(0.5) / o))
    }
    #[inline(always)]
    fn exp(self) -> Jet<R> {
        let o = self.value.exp();
        self.through(o, |t| t * tame(t, o))
    }
    #[inline(always)]
    fn expm1(self) -> Jet<R> {
        let o = self.value.expm1();
        self.through(o, |t| t * tame(t, o + 1.0))
    }
    #[inline(always)]
    fn log(self) -> Jet<R> {
        self.through(self.value.log(), |t| t / divisor(t, self.value))
    }
    #[inline(always)]
    fn log1p(self) -> Jet<R> {
        self.through(self.value.log1p(), |t| t / divisor(t, self.value + 1.0))
    }
    #[inline(always)]
    fn sin(self) -> Jet<R> {
        self.through(self.value.sin(), |t| t * self.value.cos())
    }
    #[inline(always)]
    fn cos(self) -> Jet<R> {
        self.through(self.value.cos(), |t| -(t * self.value.sin()))
    }
    #[inline(always)]
    fn tanh(self) -> Jet<R> {
        let o = self.value.tanh();
        self.through(o, |t| t * (R::lit(1.0) - o * o))
    }
    #[inline(always)]
    fn erf(self) -> Jet<R> {
        let x = self.value;
        self.through(x.erf(), |t| t * ((-(x * x)).exp() * FRAC_2_SQRT_PI))
    }
    #[inline(always)]
    fn pow(self, exponent: Jet<R>) -> Jet<R> {
        let (x, y) = (self.value, exponent.value);
        let o = x.pow(y);
        let base = self.tangent.map(|t| where_nonzero(y, t * tame(t, y * x.pow(y - 1.0))));
        let power =
            exponent.tangent.map(|t| R::select(x.eq(R::lit(0.0)), R::lit(0.0), t * tame(t, o * x.log())));
        Jet { value: o, tangent: sum(base, power) }
    }
}
