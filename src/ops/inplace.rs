//! In-place writes: real writes through strides, which bump the version of the buffer.
//!
//! A write never changes a tape entry and computes nothing itself: `write` stores a value that was computed
//! out of place and returns what the written tensor has become, which the caller puts in its place. What the
//! operation saves of the old value should be a copy where it is recorded (`unaliased`), so that a chain of
//! in-place operations has the right gradient; anybody else who saved the old value is told by the version.
//! Inside `vmap` and `jvp`, where a value is not memory, the value replaces the target.

use crate::array::Array;
use crate::error::{Error, Result};
use crate::interp::is_grad_enabled;
use crate::ops::on_device;
use crate::tensor::{Payload, Tensor, Traced};
use std::sync::Arc;

/// A leaf that requires a gradient refuses to be written while recording.
pub fn check_leaf(op: &str, target: &Tensor) -> Result<()> {
    if target.edge().is_some_and(|e| e.node.is_leaf()) && is_grad_enabled() {
        return Err(Error::autodiff(format!(
            "{op}_: a leaf of shape {} that requires a gradient cannot be written in place while recording; do it under \
             no_grad(), or write x = x.{op}(...)",
            target.shape()
        )));
    }
    Ok(())
}

/// The same tensor over a copy of its memory, if it is recorded: the operation that replaces its value may
/// save it.
pub fn unaliased(target: &Tensor) -> Result<Tensor> {
    match (target.edge(), target.concrete()) {
        (Some(_), Some(a)) if is_grad_enabled() => Ok(with_memory(target, &a.copied()?)),
        _ => Ok(target.clone()),
    }
}

/// `t` over other memory: the concrete array at its bottom is replaced, its history at every level is kept.
fn with_memory(t: &Tensor, array: &Array) -> Tensor {
    match t {
        Tensor::Array(_) => array.clone().into(),
        Tensor::Traced(traced) => match &traced.payload {
            Payload::Taped { primal, node, index } => {
                let payload =
                    Payload::Taped { primal: with_memory(primal, array), node: node.clone(), index: *index };
                Tensor::Traced(Arc::new(Traced { tag: traced.tag, aval: traced.aval, payload }))
            }
            _ => t.clone(),
        },
    }
}

/// Stores `value` in the memory of `target` and returns the tensor that `target` is from now on. `view` says
/// that the memory is also that of another tensor, which would miss the history of a recorded write.
pub fn write(op: &str, target: &Tensor, value: Tensor, view: bool) -> Result<Tensor> {
    if value.shape() != target.shape() {
        return Err(Error::shape(format!(
            "{op}_: the result has shape {} and does not fit into the tensor of shape {}",
            value.shape(),
            target.shape()
        )));
    }
    if value.dtype() != target.dtype() && value.dtype().category() > target.dtype().category() {
        return Err(Error::dtype(format!(
            "{op}_: the result is {} and cannot be stored in a {} tensor; write x = x.{op}(...)",
            value.dtype(),
            target.dtype()
        )));
    }
    check_leaf(op, target)?;
    let value = value.cast(target.dtype())?;
    let (Some(memory), Some(new)) = (target.concrete(), value.concrete()) else { return Ok(value) };
    let recorded = value.traced().is_some() || (target.traced().is_some() && is_grad_enabled());
    if view && recorded {
        return Err(Error::autodiff(format!(
            "{op}_: this tensor is a view, and writing it in place would leave its base without the gradient; write \
             base[...] = value on the base, or clone() the view first"
        )));
    }
    store(op, memory, new)?;
    if value.traced().is_none() && !is_grad_enabled() {
        // Not recorded: the history of the target stands.
        return Ok(target.clone());
    }
    Ok(with_memory(&value, memory))
}

/// Writes through strides and bumps the version.
fn store(op: &str, memory: &Array, new: &Array) -> Result<()> {
    if new.device() != memory.device() {
        return Err(Error::value(format!(
            "{op}_: the value is on {} and the tensor on {}; move it with .to()",
            new.device(),
            memory.device()
        )));
    }
    check_writable(op, memory)?;
    on_device!(memory, copy::copy_into(memory, new))?;
    memory.buffer().bump_version();
    Ok(())
}

/// Elements that share memory (a broadcast view) cannot be written one by one.
pub fn check_writable(op: &str, memory: &Array) -> Result<()> {
    if (0..memory.rank()).any(|i| memory.stride(i) == 0 && memory.dim(i) > 1) {
        return Err(Error::autodiff(format!(
            "{op}_: elements of this expanded tensor of shape {} share memory; clone() it first",
            memory.shape()
        )));
    }
    Ok(())
}
