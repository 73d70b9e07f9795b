//! `Count`: the number type that counts the arithmetic of a rule.

use super::operators;
use crate::math::real::{Pointwise, Real};
use crate::ops::pointwise::table::{Fun, Visit};
use std::cell::Cell;
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};

/// A number of which only the arithmetic that is spent on it matters.
#[derive(Clone, Copy)]
pub struct Count;

/// A truth value of a rule that is being counted.
#[derive(Clone, Copy)]
pub struct CountMask;

thread_local! {
    /// Floating point operations of the rule that is being read.
    static SPENT: Cell<u64> = const { Cell::new(0) };
}

fn spend() -> Count {
    SPENT.set(SPENT.get() + 1);
    Count
}

operators! { Count,
    Add add |_a, _b| spend();
    Sub sub |_a, _b| spend();
    Mul mul |_a, _b| spend();
    Div div |_a, _b| spend();
}

impl Neg for Count {
    type Output = Count;
    fn neg(self) -> Count {
        Count
    }
}
impl BitAnd for CountMask {
    type Output = CountMask;
    fn bitand(self, _other: CountMask) -> CountMask {
        CountMask
    }
}
impl BitOr for CountMask {
    type Output = CountMask;
    fn bitor(self, _other: CountMask) -> CountMask {
        CountMask
    }
}
impl Not for CountMask {
    type Output = CountMask;
    fn not(self) -> CountMask {
        CountMask
    }
}

/// The primitive functions, one operation each.
macro_rules! counted {
    ($(#[doc = $doc:literal] $name:ident $row:ident,)*) => {
        $(fn $name(self) -> Count {
            spend()
        })*
    };
}

impl Real for Count {
    type Mask = CountMask;
    fn lit(_value: f64) -> Count {
        Count
    }
    fn select(_mask: CountMask, _yes: Count, _no: Count) -> Count {
        Count
    }
    fn lt(self, _other: Count) -> CountMask {
        CountMask
    }
    fn le(self, _other: Count) -> CountMask {
        CountMask
    }
    fn eq(self, _other: Count) -> CountMask {
        CountMask
    }
    fn ne(self, _other: Count) -> CountMask {
        CountMask
    }
    fn abs(self) -> Count {
        Count
    }
    fn floor(self) -> Count {
        Count
    }
    fn round(self) -> Count {
        Count
    }
    fn sqrt(self) -> Count {
        spend()
    }
    crate::math::functions::primitives!(counted);
    fn pow(self, _exponent: Count) -> Count {
        spend()
    }
    fn fmod(self, _divisor: Count) -> Count {
        spend()
    }
    fn polygamma(self, _order: usize) -> Count {
        spend()
    }
}

struct Spend;

impl Visit for Spend {
    type Out = u64;
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) -> u64 {
        let outer = SPENT.replace(0);
        rule.apply([Count; N]);
        SPENT.replace(outer)
    }
}

impl Fun {
    /// Floating point operations per element.
    pub fn flops(self) -> u64 {
        self.value([1.0; 2], Spend)
    }
    /// Those of the partial for input `wrt`.
    pub fn partial_flops(self, wrt: usize) -> u64 {
        self.partial(wrt, [1.0; 2], Spend).unwrap_or(0)
    }
    /// Those of the derivative of that partial.
    pub fn jet_flops(self, wrt: usize) -> u64 {
        self.jet(wrt, [1.0; 2], Spend).unwrap_or(0)
    }
}
