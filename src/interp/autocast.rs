//! Autocast: converts the inputs of an operation to the precision its column in the op list asks for.
//!
//! What is composed of several operations and is to run in one precision calls [`eligible`] and [`widest`].
//!
//! It sits above the tape, so its casts are recorded and gradients come back in each parameter's own dtype.

use crate::bind::bind_at;
use crate::dtype::DType;
use crate::error::Result;
use crate::interp::Interp;
use crate::op::{Op, Precision};
use crate::ops::cast::Cast;
use crate::tensor::{Tensor, Tensors};
use smallvec::SmallVec;
use std::sync::Arc;

/// Whether autocast converts tensors of this type: float64 is the user's explicit choice and stays; integers are
/// indices.
pub fn eligible(dtype: DType) -> bool {
    dtype.is_float() && dtype != DType::F64
}

/// Two operands of a function that autocast runs in the widest of their types; outside of a region as they are.
pub fn widest(x: &Tensor, y: &Tensor) -> Result<(Tensor, Tensor)> {
    if x.dtype() == y.dtype() || !eligible(x.dtype()) || !eligible(y.dtype()) || !super::autocasting() {
        return Ok((x.clone(), y.clone()));
    }
    let dtype = x.dtype().promote(y.dtype());
    Ok((x.cast(dtype)?, y.cast(dtype)?))
}

/// Casts eligible inputs of `op`, then runs it one level down. `low` of `None` turns casting off in this
/// region.
pub fn process(at: &Arc<Interp>, low: Option<DType>, op: &Op, inputs: &[&Tensor]) -> Result<Tensors> {
    let below = below_casts(at);
    let target = match (low, op.precision()) {
        (Some(low), Precision::Low) => low,
        (Some(_), Precision::F32) => DType::F32,
        _ => return bind_at(below, op, inputs),
    };
    let mut cast: SmallVec<[Tensor; 4]> = SmallVec::new();
    for x in inputs {
        cast.push(if x.dtype() != target && eligible(x.dtype()) {
            bind_at(below, &Cast { dtype: target }.into(), &[x])?.remove(0)
        } else {
            (*x).clone()
        });
    }
    let refs: SmallVec<[&Tensor; 4]> = cast.iter().collect();
    bind_at(below, op, &refs)
}

/// The first interpreter below that does not cast: an inner region overrides the outer ones.
fn below_casts(at: &Arc<Interp>) -> &Arc<Interp> {
    let mut below = at.below();
    while let crate::interp::Kind::Autocast(_) = below.kind {
        below = below.below();
    }
    below
}
