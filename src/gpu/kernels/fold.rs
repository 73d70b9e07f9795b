//! The associative operations of reductions and scans.

use super::map::{pointwise, pointwise_int};
use crate::array::Array;
use crate::array::dtype::DType;
use crate::error::Result;
use crate::math::real::{Integer, Pointwise, PointwiseInt, Real};

/// An associative operation, numbered as in `shaders/reduce.wgsl`.
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
    /// The name of its kernel.
    pub fn name(self) -> &'static str {
        ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min"][self as usize]
    }

    /// The bits of the neutral element.
    pub fn neutral(self, compute: DType) -> u32 {
        match (self, compute) {
            (Fold::Sum, _) => 0,
            (Fold::Prod, DType::F32) => 1f32.to_bits(),
            (Fold::Prod, _) => 1,
            (Fold::Max, DType::F32) => f32::NEG_INFINITY.to_bits(),
            (Fold::Min, DType::F32) => f32::INFINITY.to_bits(),
            (Fold::Max, DType::U32) => u32::MIN,
            (Fold::Min, DType::U32) => u32::MAX,
            (Fold::Max, _) => i32::MIN as u32,
            (Fold::Min, _) => i32::MAX as u32,
        }
    }

    /// Combines two arrays of one dtype elementwise.
    pub fn combine(self, x: &Array, y: &Array) -> Result<Array> {
        if x.dtype().is_float() {
            pointwise("combine", [self as u64, 0], [x, y], Combine(self))
        } else {
            pointwise_int([x, y], Combine(self))
        }
    }
}

/// The operation on two numbers.
#[derive(Clone, Copy)]
struct Combine(Fold);

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
