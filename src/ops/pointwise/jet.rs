//! `Jet`: the reading of a rule as its own derivative along a direction.
//!
//! A jet is a number and its tangent. A partial of the tables, read with jets over CPU lanes, is the fused
//! kernel of a second derivative; read with jets over `Sym`, the same derivative as recorded operations. Each
//! primitive function but `tanh`, `sigmoid` and `gelu` is its row of `unary.rs` or `binary.rs` with the
//! tangent for `g`, so that singular points are treated alike.

use crate::math::real::{Attributes, Real};
use crate::ops::pointwise::binary::Binary;
use crate::ops::pointwise::formulas::{divisor, zero_guard};
use crate::ops::pointwise::reading::operator;
use crate::ops::pointwise::table::Partial;
use crate::ops::pointwise::unary::{Parametric, Unary};
use std::ops::Neg;

/// What a tangent that may be zero becomes. No closure of `Option::map`: one that is not inlined would keep
/// the registers of a vector lane in memory and call a function per instruction.
macro_rules! along {
    ($tangent:expr, |$t:ident| $slope:expr) => {
        match $tangent {
            Some($t) => Some($slope),
            None => None,
        }
    };
}

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
        match self.tangent {
            Some(t) => t,
            None => R::lit(0.0),
        }
    }
}

/// The attributes of a row that has none.
#[inline(always)]
fn none<R: Real>() -> Attributes<R> {
    Attributes::new([0.0; 2])
}

/// The sum of two tangents.
#[inline(always)]
fn sum<R: Real>(a: Option<R>, b: Option<R>) -> Option<R> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (Some(t), None) | (None, Some(t)) => Some(t),
        (None, None) => None,
    }
}

operator!(always [R: Real] Jet<R>; Add add |x, y| Jet {
    value: x.value + y.value,
    tangent: sum(x.tangent, y.tangent),
});
operator!(always [R: Real] Jet<R>; Sub sub |x, y| Jet {
    value: x.value - y.value,
    tangent: match (x.tangent, y.tangent) {
        (Some(a), Some(b)) => Some(a - b),
        (Some(a), None) => Some(a),
        (None, Some(b)) => Some(-b),
        (None, None) => None,
    },
});
operator!(always [R: Real] Jet<R>; Mul mul |x, y| Jet {
    value: x.value * y.value,
    tangent: sum(
        along!(x.tangent, |t| t * zero_guard(t, y.value)),
        along!(y.tangent, |t| t * zero_guard(t, x.value)),
    ),
});
operator!(always [R: Real] Jet<R>; Div div |x, y| Jet {
    value: x.value / y.value,
    tangent: sum(
        along!(x.tangent, |t| t / divisor(t, y.value)),
        // Not t * (x / y / y), which may underflow or overflow before t meets it.
        along!(y.tangent, |t| -(t / divisor(t, y.value) * zero_guard(t, x.value / y.value))),
    ),
});

impl<R: Real> Neg for Jet<R> {
    type Output = Jet<R>;
    #[inline(always)]
    fn neg(self) -> Jet<R> {
        Jet { value: -self.value, tangent: along!(self.tangent, |t| -t) }
    }
}

/// A primitive function: its row says what it makes of a tangent, unless it reads an output that lost digits.
macro_rules! primitive {
    (tanh, $x:ident, $o:ident, $t:ident) => {
        $t / $x.cosh() / $x.cosh()
    };
    (sigmoid, $x:ident, $o:ident, $t:ident) => {
        $t * ($o * (-$x).sigmoid())
    };
    (gelu, $x:ident, $o:ident, $t:ident) => {
        Partial::<Unary>::gelu_exact::<0, R>(none(), $t, [$x], $o)
    };
    ($name:ident, $x:ident, $o:ident, $t:ident) => {
        Partial::<Unary>::$name::<0, R>(none(), $t, [$x], $o)
    };
}

macro_rules! by_rows {
    ($($(#[doc = $doc:literal])? $name:ident $row:ident,)*) => {$(
        #[inline(always)]
        fn $name(self) -> Jet<R> {
            let (x, o) = (self.value, self.value.$name());
            Jet { value: o, tangent: along!(self.tangent, |t| primitive!($name, x, o, t)) }
        }
    )*};
}

/// A comparison: that of the values.
macro_rules! comparisons {
    ($($name:ident),*) => {$(
        #[inline(always)]
        fn $name(self, other: Jet<R>) -> R::Mask {
            self.value.$name(other.value)
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
    fn attribute(index: usize, value: f64) -> Jet<R> {
        Jet::fixed(R::attribute(index, value))
    }
    #[inline(always)]
    fn select(mask: R::Mask, yes: Jet<R>, no: Jet<R>) -> Jet<R> {
        let tangent = match (yes.tangent, no.tangent) {
            (None, None) => None,
            _ => Some(R::select(mask, yes.tangent(), no.tangent())),
        };
        Jet { value: R::select(mask, yes.value, no.value), tangent }
    }
    comparisons! { lt, le, eq, ne }
    by_rows! { abs Abs, sqrt Sqrt, }
    #[inline(always)]
    fn floor(self) -> Jet<R> {
        Jet::fixed(self.value.floor())
    }
    #[inline(always)]
    fn round(self) -> Jet<R> {
        Jet::fixed(self.value.round())
    }
    crate::math::functions::primitives!(by_rows);
    #[inline(always)]
    fn pow(self, exponent: Jet<R>) -> Jet<R> {
        let x = [self.value, exponent.value];
        let o = self.value.pow(exponent.value);
        let base = along!(self.tangent, |t| Partial::<Binary>::pow::<0, R>(none(), t, x, o));
        let power = along!(exponent.tangent, |t| Partial::<Binary>::pow::<1, R>(none(), t, x, o));
        Jet { value: o, tangent: sum(base, power) }
    }
    #[inline(always)]
    fn fmod(self, divisor: Jet<R>) -> Jet<R> {
        let x = [self.value, divisor.value];
        let o = self.value.fmod(divisor.value);
        let along = along!(divisor.tangent, |t| Partial::<Binary>::fmod::<1, R>(none(), t, x, o));
        Jet { value: o, tangent: sum(self.tangent, along) }
    }
    #[inline(always)]
    fn polygamma(self, order: usize) -> Jet<R> {
        let o = self.value.polygamma(order);
        let order = Attributes::new([order as f64, 0.0]);
        let slope =
            along!(self.tangent, |t| Partial::<Parametric>::polygamma::<0, R>(order, t, [self.value], o));
        Jet { value: o, tangent: slope }
    }
}
