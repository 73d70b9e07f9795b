//! In-place writes inside a transform to tensors from outside of it. The written value may belong to the
//! transform (differentiated by it, or different for each example of a batch), and the tensor could not keep
//! it when the transform ends, so the write is an error, raised before anything has changed. A buffer records
//! the transform in which it was allocated ([`crate::array::buffer::Buffer::born`]).

use crate::interp::{ROOT_TAG, Tag};
use crate::ops::writes::writable::written;
use crate::py::prelude::*;
use crate::py::tensor::view::numbers;
use crate::tape::saving;
use crate::tensor::{Payload, donated};

/// The innermost level of a value.
fn level(t: &Tensor) -> Tag {
    t.traced().map_or(ROOT_TAG, |t| t.tag)
}

/// The innermost level whose values an object can keep: its own, one it was made in, or is an argument of.
fn youngest(object: &Bound<'_, PyTensor>, old: &Tensor) -> Tag {
    let made = saving::bottom(old).map_or(0, |memory| memory.buffer().born());
    let shared = numbers(object).map_or(0, |(root, _)| level(&root.read().t).max(root.read().given()));
    level(old).max(made).max(object.read().given()).max(shared)
}

/// Returns the part of `new` that `op` may store in `object`, whose value is `old`: levels that do not record
/// are removed. An error where the rest belongs to a transform that the object is from outside of.
pub fn admitted(op: &str, object: &Bound<'_, PyTensor>, old: &Tensor, new: Tensor) -> PyResult<Tensor> {
    if interp::is_plain() || level(&new) <= level(old) {
        return Ok(new);
    }
    let youngest = youngest(object, old);
    let mut new = new;
    while let Some(traced) = new.traced().filter(|t| t.tag > youngest).cloned() {
        new = match &traced.payload {
            Payload::Taped { primal, .. } if traced.tag < interp::grad_threshold() => primal.clone(),
            // As in a running average: the tangent is dropped.
            Payload::Dual { primal, .. } if !interp::is_grad_enabled() => primal.clone(),
            payload => return Err(outside(op, old, payload).into()),
        };
    }
    Ok(new)
}

/// Whether `object`, of value `t`, is from outside of the innermost transform. As a leaf in it, it would
/// belong to a tape that ends with the transform.
pub fn is_outside(object: &Bound<'_, PyTensor>, t: &Tensor) -> bool {
    if interp::is_plain() {
        return false;
    }
    youngest(object, t).max(object.read().made()) < interp::ambient().below().tag
}

/// The error for such a leaf.
#[cold]
pub fn foreign_leaf(t: &Tensor) -> Error {
    Error::autodiff(format!(
        "requires_grad_: a tensor of shape {} from outside of the transform that runs cannot become a leaf \
         in it; call requires_grad_() before the transform, or on a detach() of it",
        t.shape()
    ))
}

#[cold]
fn outside(op: &str, old: &Tensor, payload: &Payload) -> Error {
    let name = written(op);
    let what = match payload {
        Payload::Batched { value, axis, .. } => format!(
            "vmap was written with a value that differs between the {} examples, and has room for one; it \
             keeps the value that it had before. Return the value instead, or pass the tensor as an argument",
            value.shape().at(*axis)
        ),
        Payload::Dual { .. } => differentiated("jvp"),
        Payload::Linearized { .. } => differentiated("linearize"),
        Payload::Taped { .. } => differentiated("grad"),
        Payload::Donated { .. } => return donated(op, &old.shape()),
    };
    Error::autodiff(format!("{name}: a tensor of shape {} from outside of {what}", old.shape()))
}

fn differentiated(transform: &str) -> String {
    format!(
        "{transform} was written with a value that is differentiated there, which it cannot keep when \
         {transform} has ended; it keeps the value that it had before. Return the value instead, pass the \
         tensor as an argument, or write value.detach()"
    )
}
