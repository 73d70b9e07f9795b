//! Checks of what may be written in place, and their errors: leaves while recording, elements that share
//! memory, memory of inference mode outside of it. Read next: `src/ops/writes/inplace.rs`.

use crate::interp::is_grad_enabled;
use crate::op::Op;
use crate::ops::prelude::*;

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
            "{op}_: a leaf of shape {} that requires a gradient cannot be written in place while recording; \
             do it under no_grad(), or write x = x.{op}(...)",
            target.shape()
        )));
    }
    Ok(())
}

/// [`check_leaf`] for the root of a view.
pub fn check_root(op: &str, root: &Tensor) -> Result<()> {
    check_leaf(op, root).map_err(|error| {
        if !root.edge().is_some_and(|e| e.node.is_leaf()) {
            return error;
        }
        Error::autodiff(format!(
            "{op}_: this tensor is a view of a leaf of shape {} that requires a gradient, and cannot be \
             written in place while recording; do it under no_grad(), or write to a clone()",
            root.shape()
        ))
    })
}

/// The error for a write to an output of a custom function that shares memory with other tensors.
#[cold]
pub fn of_custom(op: &str, name: &str) -> Error {
    Error::autodiff(format!(
        "{op}_: {name} returned one of its arguments, or a view of one, or the same memory twice, and a \
         write to the result would change the other without its history; write to a clone() of it, or let \
         the forward return one"
    ))
}

/// Raises if elements share memory (a broadcast view), so that they cannot be written one by one.
pub fn check_writable(op: &str, memory: &Array) -> Result<()> {
    if memory.overlaps_itself() {
        return Err(shared_elements(op, &memory.shape()));
    }
    check_outside_inference(op, memory)
}

/// Raises for memory that was made in inference mode, outside of it.
pub fn check_outside_inference(op: &str, memory: &Array) -> Result<()> {
    if !memory.buffer().is_inference() || crate::array::buffer::inference() {
        return Ok(());
    }
    let name = if op == "setitem" { "x[...] = value".to_string() } else { format!("{op}_") };
    Err(Error::autodiff(format!(
        "{name}: the tensor of shape {} was made in inference_mode() and cannot be written in place \
         outside of it; write to a clone() of it",
        memory.shape()
    )))
}

/// The error for a write to elements that share memory.
#[cold]
pub fn shared_elements(op: &str, shape: &Shape) -> Error {
    Error::autodiff(format!("{op}_: elements of this tensor of shape {shape} share memory; clone() it first"))
}
