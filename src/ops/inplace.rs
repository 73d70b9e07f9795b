//! In-place writes: real writes through strides, which bump the version of the buffer.
//!
//! A write never changes a tape entry. `write` computes nothing itself: it stores a value that was computed out of place
//! and returns what the written tensor has become, which the caller puts in its place.

use crate::error::{Error, Result};
use crate::interp;
use crate::ops::on_device;
use crate::tensor::{Payload, Tensor, Traced};
use std::sync::Arc;

/// Stores `value` in the memory of `target` and returns the tensor that `target` is from now on.
///
/// While recording, a leaf that requires a gradient refuses to be written, and so does a view of other memory that
/// would take part of its base's history with it. Inside `vmap` and `jvp` the value replaces the target.
pub fn write(op: &str, target: &Tensor, value: &Tensor) -> Result<Tensor> {
    if value.shape() != target.shape() {
        return Err(Error::shape(format!(
            "{op}: a result of shape {} cannot be stored in a tensor of shape {}",
            value.shape(),
            target.shape()
        )));
    }
    let value = value.cast(target.dtype())?;
    if target.edge().is_some_and(|e| e.node.is_leaf() && records(e.node.tag)) {
        return Err(Error::autodiff(format!(
            "{op}: a leaf that requires a gradient cannot be written in place while recording; write it under \
             no_grad(), or compute a new tensor instead"
        )));
    }
    let (Some(memory), Some(new)) = (target.concrete(), value.concrete()) else { return Ok(value) };
    let rebased = value.edge().filter(|e| records(e.node.tag));
    let part = memory.numel() * memory.dtype().size() < memory.buffer().bytes();
    if part && (rebased.is_some() || target.edge().is_some_and(|e| records(e.node.tag))) {
        return Err(Error::autodiff(format!(
            "{op}: in-place writes into a view are not recorded; write under no_grad(), or build the result with \
             where(), cat() or index operations"
        )));
    }
    on_device!(memory, copy::copy_into(memory, new))?;
    memory.buffer().bump_version();
    Ok(match rebased {
        Some(edge) => {
            let primal = Tensor::Array(memory.clone());
            let (tag, aval) = (edge.node.tag, target.aval());
            let payload = Payload::Taped { primal, node: edge.node, index: edge.index };
            Tensor::Traced(Arc::new(Traced { tag, aval, payload }))
        }
        // Not recorded: the history of the target stands, as for a leaf under no_grad.
        None if target.edge().is_some_and(|e| e.node.is_leaf() || !records(e.node.tag)) => target.clone(),
        None => Tensor::Array(memory.clone()),
    })
}

/// Whether the tape with this tag records at the moment.
fn records(tag: interp::Tag) -> bool {
    tag >= interp::grad_threshold()
}
