//! Batching: runs the operation once for the whole batch.

use super::branch::{self, BranchId};
use super::prelude::*;
use crate::op::Batched;
use crate::tensor::Aval;

/// Runs `op` for a batch of `size`, at least one input of which belongs to `at`.
pub fn process(at: &Arc<Interp>, size: usize, op: &Op, inputs: &[&Tensor]) -> Result<Tensors> {
    if op.class() == Class::Composite && !op.own().batch {
        let _guard = interp::enter(at.clone());
        if let Some(out) = op.decompose(inputs) {
            return out;
        }
    }
    let operands: SmallVec<[Batched; 4]> = inputs.iter().map(|x| batched(at, x)).collect();
    let outputs = {
        let _guard = interp::enter(at.below().clone());
        op.batch(&operands, size).map_err(|e| e.context(&format!("vmap of {}", op.name())))?
    };
    let branch = branch::of_results(op, inputs, at.tag);
    let wrapped = |(y, axis)| Ok(wrap_in(branch, at, checked(op, size, y, axis)?, axis));
    outputs.into_iter().map(wrapped).collect()
}

/// What a batching rule returned, if it has the batch where the rule says: what runs on it trusts that.
fn checked(op: &Op, size: usize, y: Tensor, axis: Option<usize>) -> Result<Tensor> {
    let shape = y.shape();
    if axis.is_none_or(|axis| axis < shape.rank() && shape.at(axis) == size) {
        return Ok(y);
    }
    Err(Error::shape(format!(
        "internal: vmap of {}: a result of shape {shape} has no batch of {size} along axis {axis:?}",
        op.name()
    )))
}

/// The value behind `x` and its batch axis at level `at`, if it has one there.
pub fn batched(at: &Interp, x: &Tensor) -> Batched {
    match x.owned_by(at.tag).map(|t| &t.payload) {
        Some(Payload::Batched { value, axis, .. }) => Batched { value: value.clone(), axis: Some(*axis) },
        _ => Batched { value: x.clone(), axis: None },
    }
}

/// A value of `at` whose batch runs along `axis`; without one it is the same for the whole batch.
pub fn wrap(at: &Interp, value: Tensor, axis: Option<usize>) -> Tensor {
    wrap_in(branch::id(), at, value, axis)
}

/// [`wrap`] for a value of this branch.
fn wrap_in(branch: BranchId, at: &Interp, value: Tensor, axis: Option<usize>) -> Tensor {
    let Some(axis) = axis else { return value };
    let outer = value.aval();
    let aval = Aval { shape: outer.shape.removed(axis), ..outer };
    let payload = Payload::Batched { value, axis, branch };
    Tensor::Traced(Arc::new(Traced { tag: at.tag, aval, payload }))
}

/// The value behind `x` and its batch axis at level `at`.
pub fn unwrap(at: &Interp, x: &Tensor) -> Result<(Tensor, Option<usize>)> {
    if x.shape().rank() >= crate::array::shape::MAX_RANK {
        return Err(Error::shape(
            "vmap: a result has no axis left for the batch; tensors have at most 8 axes",
        ));
    }
    let Batched { value, axis } = batched(at, x);
    Ok((value, axis))
}
