//! Checks of what may be written in place, and their errors: leaves while recording, elements that share
//! memory, memory of inference mode outside of it. Read next: `src/ops/writes/inplace.rs`.

use crate::interp::{branch, is_grad_enabled};
use crate::op::Op;
use crate::ops::prelude::*;
use crate::watch::absent;

/// Raises, while recording, for a leaf that requires a gradient, or a custom output of shared memory.
pub fn check_leaf(op: &str, target: &Tensor) -> Result<()> {
    let Some(edge) = target.edge() else { return Ok(()) };
    if let Some(Op::Custom(custom)) = edge.node.op() {
        return match custom.shares(edge.index) && is_grad_enabled() {
            true => Err(of_custom(op, custom.name())),
            false => Ok(()),
        };
    }
    if edge.node.is_leaf() && is_grad_enabled() {
        return Err(Error::autodiff(format!(
            "{}: a leaf of shape {} that requires a gradient cannot be written in place while recording; do \
             it under no_grad(), or write {}",
            written(op),
            target.shape(),
            instead(op)
        )));
    }
    Ok(())
}

/// Raises in a branch that runs for all examples of a batch, for a target from outside of it: a write would
/// be one for all examples, also for those that do not take the branch.
pub fn check_outside(op: &str, target: &Tensor) -> Result<()> {
    if branch::is_outside(target) { Err(outside(op, &target.shape())) } else { Ok(()) }
}

#[cold]
fn outside(op: &str, shape: &Shape) -> Error {
    let name = written(op);
    Error::autodiff(format!(
        "{name}: a branch or a body whose condition differs between examples, or may between ranks, writes \
         into a tensor of shape {shape} from outside of it, which would be written whether it is taken or \
         not; write into a clone() and return that"
    ))
}

/// How a message names the write of an operation.
pub fn written(op: &str) -> String {
    match op {
        "setitem" => "x[...] = value".into(),
        "data" => "x.data = value".into(),
        op => format!("{op}_"),
    }
}

/// Operations in place that have no other form of that name.
const IN_PLACE_ONLY: [&str; 13] = [
    "bernoulli", "cauchy", "copy", "exponential", "fill", "fill_diagonal", "geometric", "log_normal",
    "normal", "random", "setitem", "uniform", "zero",
];

/// What to write instead of an operation in place.
pub fn instead(op: &str) -> String {
    match IN_PLACE_ONLY.contains(&op) {
        true => "to a clone() of it".into(),
        false => format!("x = x.{op}(...)"),
    }
}

/// [`check_leaf`] for the root of a view.
pub fn check_root(op: &str, root: &Tensor) -> Result<()> {
    check_leaf(op, root).map_err(|error| {
        if !root.edge().is_some_and(|e| e.node.is_leaf()) {
            return error;
        }
        Error::autodiff(format!(
            "{}: this tensor is a view of a leaf of shape {} that requires a gradient, and cannot be written \
             in place while recording; do it under no_grad(), or write to a clone()",
            written(op),
            root.shape()
        ))
    })
}

/// The error for a write to an output of a custom function that shares memory with other tensors.
#[cold]
pub fn of_custom(op: &str, name: &str) -> Error {
    Error::autodiff(format!(
        "{}: {name} returned one of its arguments, or a view of one, or the same memory twice, and a \
         write to the result would change the other without its history; write to a clone() of it, or let \
         the forward return one",
        written(op)
    ))
}

/// Raises if elements share memory (a broadcast view), so that they cannot be written one by one.
pub fn check_writable(op: &str, memory: &Array) -> Result<()> {
    if memory.overlaps_itself() && !absent::is_absent(memory) {
        return Err(shared_elements(op, &memory.shape()));
    }
    check_memory(op, memory)
}

/// [`check_outside`] for memory.
pub fn check_age(op: &str, memory: &Array) -> Result<()> {
    if branch::is_old(memory) { Err(outside(op, &memory.shape())) } else { Ok(()) }
}

/// Raises for memory that was made in inference mode, outside of it, and for that of [`check_age`].
pub fn check_memory(op: &str, memory: &Array) -> Result<()> {
    check_age(op, memory)?;
    if !memory.buffer().is_inference() || crate::array::buffer::inference() {
        return Ok(());
    }
    Err(Error::autodiff(format!(
        "{}: the tensor of shape {} was made in inference_mode() and cannot be written in place \
         outside of it; write to a clone() of it",
        written(op),
        memory.shape()
    )))
}

/// The error for a write to elements that share memory.
#[cold]
pub fn shared_elements(op: &str, shape: &Shape) -> Error {
    let name = written(op);
    Error::autodiff(format!(
        "{name}: elements of this tensor of shape {shape} share memory; clone() it first"
    ))
}
