//! The associative operations of reductions and scans.

use crate::array::dtype::DType;
use crate::math::real::{Integer, Pointwise, PointwiseInt, Real};

/// An associative operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fold {
    /// Sum.
    Sum,
    /// Product.
    Prod,
    /// Maximum.
    Max,
    /// Minimum.
    Min,
}

impl Fold {
    /// Its name.
    pub fn name(self) -> &'static str {
        ["sum", "prod", "max", "min"][self as usize]
    }

    /// The text of `fn combine` for floats or integers. A NaN, recognised by its bits, wins over all numbers.
    pub fn combine(self, is_float: bool) -> &'static str {
        match (self, is_float) {
            (Fold::Sum, _) => "fn combine(a: T, b: T) -> T { return a + b; }",
            (Fold::Prod, _) => "fn combine(a: T, b: T) -> T { return a * b; }",
            (Fold::Max, true) => concat!(
                "fn nan_(v: f32) -> bool { return (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u; }\n",
                "fn combine(a: T, b: T) -> T { return select(select(select(b, a, a > b), b, nan_(b)), a, \
                 nan_(a)); }"
            ),
            (Fold::Min, true) => concat!(
                "fn nan_(v: f32) -> bool { return (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u; }\n",
                "fn combine(a: T, b: T) -> T { return select(select(select(b, a, a < b), b, nan_(b)), a, \
                 nan_(a)); }"
            ),
            (Fold::Max, false) => "fn combine(a: T, b: T) -> T { return max(a, b); }",
            (Fold::Min, false) => "fn combine(a: T, b: T) -> T { return min(a, b); }",
        }
    }

    /// The neutral element. Infinities have no literal: they are passed as the parameter `init`.
    pub fn init(self, compute: DType) -> &'static str {
        match (self, compute) {
            (Fold::Sum, _) => "T(0)",
            (Fold::Prod, _) => "T(1)",
            (_, DType::F32) => "p.init",
            (Fold::Max, DType::U32) => "0u",
            (Fold::Min, DType::U32) => "0xffffffffu",
            (Fold::Max, _) => "bitcast<i32>(0x80000000u)",
            (Fold::Min, _) => "0x7fffffff",
        }
    }

    /// The infinity that is neutral for a maximum or minimum.
    pub fn seed(self) -> f64 {
        if self == Fold::Min { f64::INFINITY } else { f64::NEG_INFINITY }
    }
}

/// Combines the two results of a split reduction.
#[derive(Clone, Copy)]
pub(super) struct Combine(pub Fold);

impl Pointwise<2> for Combine {
    fn apply<R: Real>(&self, [x, y]: [R; 2]) -> R {
        let keep = |better: R::Mask| R::select(x.ne(x), x, R::select(y.ne(y), y, R::select(better, x, y)));
        match self.0 {
            Fold::Sum => x + y,
            Fold::Prod => x * y,
            Fold::Max => keep(x.gt(y)),
            Fold::Min => keep(x.lt(y)),
        }
    }
}

impl PointwiseInt<2> for Combine {
    fn apply<I: Integer>(&self, [x, y]: [I; 2]) -> I {
        match self.0 {
            Fold::Sum => x.add(y),
            Fold::Prod => x.mul(y),
            Fold::Max => x.max(y),
            Fold::Min => x.min(y),
        }
    }
}
