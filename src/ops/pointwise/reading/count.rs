//! `Count`: the number type that counts the arithmetic of a rule.

use super::reading;
use crate::arguments::logic::{Logic, Relation};
use crate::math::real::{Pointwise, Real};
use crate::ops::pointwise::binary::Binary;
use crate::ops::pointwise::table::{Fun, Visit};
use crate::ops::pointwise::unary::Unary;
use std::cell::Cell;

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

impl Count {
    #[inline(never)]
    fn spend() -> Count {
        SPENT.set(SPENT.get() + 1);
        Count
    }
    /// Signs and roundings are free.
    fn unary(self, row: Unary, _of: fn(f64) -> f64) -> Count {
        match row {
            Unary::Neg | Unary::Abs | Unary::Floor | Unary::Round => Count,
            _ => Count::spend(),
        }
    }
    fn binary(self, _other: Count, _row: Binary, _of: fn(f64, f64) -> f64) -> Count {
        Count::spend()
    }
    fn compare(self, _other: Count, _relation: Relation) -> CountMask {
        CountMask
    }
}

impl CountMask {
    fn logic(self, _other: CountMask, _logic: Logic) -> CountMask {
        CountMask
    }
}

reading! { Count, CountMask;
    fn lit(_value: f64) -> Count {
        Count
    }
    fn select(_mask: CountMask, _yes: Count, _no: Count) -> Count {
        Count
    }
    fn polygamma(self, _order: usize) -> Count {
        Count::spend()
    }
}

/// Floating point operations of a formula, which is given the number that counts.
pub fn spent<T>(formula: impl FnOnce(Count) -> T) -> u64 {
    let outer = SPENT.replace(0);
    formula(Count);
    SPENT.replace(outer)
}

struct Spend;

impl Visit for Spend {
    type Out = u64;
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) -> u64 {
        spent(|count| rule.apply([count; N]))
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
