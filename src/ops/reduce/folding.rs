//! Reductions that may read their elements as these are computed, which programs use.

use super::mean::{count, divided};
use crate::arguments::chain::{Folding, How};
use crate::array::Array;
use crate::array::shape::Shape;
use crate::error::Result;
use crate::op::Op;

impl Op {
    /// What the operation does with elements of float32 and float64, if it is such a reduction.
    pub fn folding(&self) -> Option<Folding> {
        match self {
            Op::Sum(op) => Some(Folding { how: How::Sum, axes: op.axes, keepdim: op.keepdim }),
            Op::Mean(op) => Some(Folding { how: How::Sum, axes: op.axes, keepdim: op.keepdim }),
            Op::Extremum(op) => {
                let how = if op.largest { How::Max } else { How::Min };
                Some(Folding { how, axes: op.axes, keepdim: op.keepdim })
            }
            _ => None,
        }
    }

    /// The result, from that of its folding of elements of this shape.
    pub fn of_folded(&self, folded: Array, shape: &Shape) -> Result<Array> {
        match self {
            Op::Mean(op) => divided(folded, count(shape, op.axes)),
            _ => Ok(folded),
        }
    }
}
