//! In-place writes inside `vmap` to tensors that were made outside of it. Inside, the value of each example takes
//! the place of the tensor; afterwards the object has room for one value alone. So such objects are noted when they are
//! written, and if they are still there when the batch ends, they get their old value back and the program is told.

use crate::error::Error;
use crate::interp::{self, Tag};
use crate::py::tensor::PyTensor;
use crate::py::view::written;
use crate::tensor::{Payload, Tensor};
use pyo3::prelude::*;
use std::cell::RefCell;

/// A write of a value that differs between examples to a tensor that had none of its own.
struct Write {
    op: String,
    /// A weak reference: what was made inside is gone by the end.
    object: Py<PyAny>,
    old: Tensor,
}

thread_local! {
    /// The writes of the batches that this thread is in.
    static WRITES: RefCell<Vec<Write>> = const { RefCell::new(Vec::new()) };
}

/// The youngest batch that a value belongs to, and its size.
fn batch_of(t: &Tensor) -> Option<(Tag, usize)> {
    let mut at = t;
    while let Some(traced) = at.traced() {
        if let Payload::Batched { value, axis } = &traced.payload {
            return Some((traced.tag, value.shape().at(*axis)));
        }
        at = traced.inner();
    }
    None
}

/// Notes that `op` is about to make `next` the value of `object`.
pub fn note(op: &str, object: &Bound<'_, PyTensor>, old: &Tensor, next: &Tensor) -> PyResult<()> {
    if interp::is_plain() || batch_of(next).is_none() || batch_of(old).is_some() {
        return Ok(());
    }
    let object = object.py().import("weakref")?.call_method1("ref", (object,))?.unbind();
    let write = Write { op: op.to_string(), object, old: old.clone() };
    WRITES.with_borrow_mut(|writes| writes.push(write));
    Ok(())
}

/// Runs the function of a batch; raises if tensors from outside still hold values of that batch afterwards.
pub fn watched<T>(py: Python<'_>, f: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let before = WRITES.with_borrow(Vec::len);
    let out = f();
    if WRITES.with_borrow(Vec::len) == before {
        return out;
    }
    let noted = WRITES.with_borrow_mut(|writes| writes.split_off(before));
    let mut left = stale(py, noted)?;
    if !left.is_empty() {
        // What was made inside and is part of a cycle goes now.
        py.import("gc")?.call_method0("collect")?;
        left = stale(py, left)?;
    }
    let mut told = None;
    for write in left {
        let Some(object) = alive(py, &write)? else { continue };
        let size = batch_of(&object.get().look().t).map_or(0, |(_, size)| size);
        told.get_or_insert_with(|| outside(&write.op, &write.old, size));
        written(&object, write.old)?;
    }
    match (out, told) {
        (Ok(_), Some(error)) => Err(error.into()),
        (out, _) => out,
    }
}

/// The object that was written, if it is still there.
fn alive<'py>(py: Python<'py>, write: &Write) -> PyResult<Option<Bound<'py, PyTensor>>> {
    let object = write.object.bind(py).call0()?;
    Ok(if object.is_none() { None } else { Some(object.cast_into::<PyTensor>()?) })
}

/// The writes whose object is still there with a value of a batch that has ended. Those of a batch that goes on are
/// noted again, for its end.
fn stale(py: Python<'_>, noted: Vec<Write>) -> PyResult<Vec<Write>> {
    let chain = interp::current();
    let mut left = Vec::new();
    for write in noted {
        let Some(object) = alive(py, &write)? else { continue };
        let batch = batch_of(&object.get().look().t);
        match batch {
            Some((tag, _)) if chain.contains(tag) => WRITES.with_borrow_mut(|writes| writes.push(write)),
            Some(_) => left.push(write),
            None => {}
        }
    }
    Ok(left)
}

#[cold]
fn outside(op: &str, old: &Tensor, size: usize) -> Error {
    let name = if op == "setitem" { "x[...] = value".to_string() } else { format!("{op}_") };
    Error::autodiff(format!(
        "{name}: a tensor of shape {} from outside of vmap was written with a value that differs between the {size} \
         examples, and has room for one; it keeps the value that it had before. Return the value instead, or pass the \
         tensor as an argument",
        old.shape()
    ))
}
