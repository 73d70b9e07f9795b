//! What operations do beside computing their results: they fail for some values of their inputs, not only
//! for shapes and dtypes, or do something that others see.

use crate::op::Op;
use crate::ops::pointwise::binary::Binary;
use crate::ops::pointwise::table::Fun;

impl Op {
    /// Whether the operation may fail for some values: indices out of range, divisors of 0, matrices without
    /// the factorisation.
    pub fn may_fail(&self) -> bool {
        if let Op::Map(map) = self {
            return [Binary::FloorDivide, Binary::Remainder, Binary::Fmod]
                .map(Fun::Binary)
                .contains(&map.fun);
        }
        matches!(self, Op::Take(_) | Op::TakeAdd(_) | Op::Gather(_) | Op::ScatterAdd(_) | Op::PutRows(_))
            || matches!(self, Op::CrossEntropy(_) | Op::Custom(_) | Op::Pinv(_) | Op::Svd(_))
            || matches!(self, Op::Cholesky(_) | Op::TriangularSolve(_) | Op::Lu(_) | Op::Solve(_))
            || matches!(self, Op::Eigh(_) | Op::Eig(_))
            || self.is_collective()
    }

    /// Whether the same operation of the same values is the same result, with nothing beside.
    pub fn is_function(&self) -> bool {
        !matches!(self, Op::Custom(_) | Op::Update(_) | Op::Unscale(_)) && !self.is_collective()
    }

    /// Whether other processes take part, which wait for it: it runs once, and in its place.
    pub fn is_collective(&self) -> bool {
        matches!(self, Op::Collective(_) | Op::CollectiveExtremum(_))
    }
}
