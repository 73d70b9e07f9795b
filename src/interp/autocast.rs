//! Autocast: converts the inputs of an operation to the precision its column in the op list asks for.
//!
//! What is composed of several operations and is to run in one precision calls [`eligible`] and [`widest`].
//!
//! It is the innermost interpreter of its chain, above every tape and transform: its casts are recorded,
//! batched and given tangents like any operation, gradients have their parameter's dtype, rules see casts.

use super::prelude::*;
use crate::array::dtype::DType;
use crate::interp::{InterpGuard, Kind, current, enter, is_plain};
use crate::op::Precision;
use crate::ops::views::cast::Cast;

/// Enters an autocast region in place of the one in force; `None` is a region without casts.
#[must_use]
pub fn enter_autocast(dtype: Option<DType>) -> InterpGuard {
    enter(Interp::above(below_autocast(&current()), Kind::Autocast(dtype)))
}

/// Leaves the autocast region in force, if there is one, until the guard is dropped: for rules, whose
/// operands have the types that the operation had.
#[must_use]
pub fn leave_autocast() -> Option<InterpGuard> {
    if is_plain() {
        return None;
    }
    let current = current();
    autocast_of(&current).map(|_| enter(below_autocast(&current).clone()))
}

/// The chain without its autocast region.
pub fn below_autocast(chain: &Arc<Interp>) -> &Arc<Interp> {
    if let Kind::Autocast(_) = chain.kind { chain.below() } else { chain }
}

/// What the autocast region of a chain casts to: its `None` is a region without casts. There is at most one,
/// and it is the innermost interpreter.
pub fn autocast_of(chain: &Interp) -> Option<Option<DType>> {
    if let Kind::Autocast(dtype) = chain.kind { Some(dtype) } else { None }
}

/// Whether the current chain casts inputs: operations then leave the choice of dtype to it.
pub fn autocasting() -> bool {
    !is_plain() && autocast_of(&current()).flatten().is_some()
}

/// Whether autocast converts this type: float64 is the user's explicit choice, integers are indices.
pub fn eligible(dtype: DType) -> bool {
    dtype.is_float() && dtype != DType::F64
}

/// Two operands of a function that autocast runs in their widest type; outside of a region as they are.
pub fn widest(x: &Tensor, y: &Tensor) -> Result<(Tensor, Tensor)> {
    if x.dtype() == y.dtype() || !eligible(x.dtype()) || !eligible(y.dtype()) || !autocasting() {
        return Ok((x.clone(), y.clone()));
    }
    let dtype = x.dtype().promote(y.dtype());
    Ok((x.cast(dtype)?, y.cast(dtype)?))
}

/// Casts eligible inputs of `op`, then runs it one level down. `low` of `None` turns casting off here.
pub fn process(at: &Arc<Interp>, low: Option<DType>, op: &Op, inputs: &[&Tensor]) -> Result<Tensors> {
    let below = at.below();
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
