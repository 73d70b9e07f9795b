//! Forward mode: runs the operation on the primals and its JVP on the tangents, both one level down.

use super::prelude::*;
use crate::watch::anomaly;
use crate::watch::debug::{self, Modes};

/// Pushes tangents through `op`, at least one input of which belongs to `at`.
pub fn process(at: &Arc<Interp>, op: &Op, inputs: &[&Tensor]) -> Result<Tensors> {
    if op.class() == Class::Composite && !op.own().jvp {
        let _guard = interp::enter(at.clone());
        if let Some(out) = op.decompose(inputs) {
            return out;
        }
    }
    let mut primals: SmallVec<[&Tensor; 4]> = SmallVec::new();
    let mut tangents: SmallVec<[Option<Tensor>; 4]> = SmallVec::new();
    for x in inputs {
        let (primal, tangent) = split(at, x);
        primals.push(primal);
        tangents.push(tangent.cloned());
    }
    let outputs = bind_at(at.below(), op, &primals)?;
    if tangents.iter().all(Option::is_none) || !outputs.iter().any(|y| y.dtype().is_differentiable()) {
        return Ok(outputs);
    }
    let moved = {
        let _guard = interp::enter(at.below().clone());
        let _quiet = debug::suspend(Modes::VALUES);
        op.jvp(&primals, &outputs, &tangents).map_err(|e| e.context(&format!("jvp of {}", op.name())))?
    };
    if debug::modes().has(Modes::ANOMALY) {
        anomaly::pushed(op, &primals, &tangents, &moved)?;
    }
    Ok(outputs.into_iter().zip(moved).map(|(primal, tangent)| wrap(at, primal, tangent)).collect())
}

/// The value behind `x` and its tangent at level `at`, if it has one there.
pub fn split<'t>(at: &Interp, x: &'t Tensor) -> (&'t Tensor, Option<&'t Tensor>) {
    match x.owned_by(at.tag).map(|t| &t.payload) {
        Some(Payload::Dual { primal, tangent }) => (primal, tangent.as_ref()),
        _ => (x, None),
    }
}

/// A value of `at` with this tangent; without one the value stays as it is.
pub fn wrap(at: &Interp, primal: Tensor, tangent: Option<Tensor>) -> Tensor {
    if tangent.is_none() {
        return primal;
    }
    let aval = primal.aval();
    Tensor::Traced(Arc::new(Traced { tag: at.tag, aval, payload: Payload::Dual { primal, tangent } }))
}
