//! In-place operations: the new value is written into the tensor's memory, through its strides, and the tensor object
//! takes over the history of the operation.
//!
//! The value is computed first and written second. What the operation saves of the old value is a copy where it is
//! recorded, so a chain of in-place operations has the right gradient; anybody else who saved the old value is told by
//! the version of the buffer. Inside `vmap` and `jvp`, where a value is not memory, the object just takes the new value.

use crate::array::Array;
use crate::buffer::Device;
use crate::error::{Error, Result};
use crate::ops::on_device;
use crate::py::operators::recording;
use crate::py::tensor::{PyTensor, leaf, tracer, with_history};
use crate::tensor::{Payload, Tensor, Traced};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;

/// Replaces the value of `slf` by `f` of it.
pub fn update(
    slf: &Bound<'_, PyTensor>,
    name: &str,
    f: impl FnOnce(Python<'_>, &Tensor) -> PyResult<Tensor>,
) -> PyResult<()> {
    let py = slf.py();
    let (old, view) = {
        let this = slf.borrow();
        (this.t.clone(), this.view)
    };
    check_leaf(name, &old)?;
    let new = f(py, &unaliased(&old)?)?;
    let next = written(name, &old, new, view)?;
    slf.borrow_mut().t = next;
    Ok(())
}

#[pymethods]
impl PyTensor {
    /// Replaces the elements by the result of the method `name`, in place; `x.exp_()` is `x._in_place("exp")`.
    #[pyo3(signature = (name, *args, **kwargs))]
    fn _in_place<'py>(
        slf: &Bound<'py, Self>,
        name: &str,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, Self>> {
        update(slf, name, |py, x| {
            let out = Bound::new(py, PyTensor::from(x.clone()))?.call_method(name, args, kwargs)?;
            let out = out.cast::<PyTensor>()?.borrow().t.clone();
            Ok(out)
        })?;
        Ok(slf.clone())
    }
}

/// A leaf that requires a gradient refuses to be written while recording.
pub fn check_leaf(name: &str, t: &Tensor) -> Result<()> {
    if leaf(t).is_some() && recording() {
        return Err(Error::autodiff(format!(
            "{name}_: a leaf of shape {} that requires a gradient cannot be written in place while recording; do it under \
             no_grad(), or write x = x.{name}(...)",
            t.shape()
        )));
    }
    Ok(())
}

/// The same tensor over a copy of its memory, if it is recorded: an operation may save it.
fn unaliased(t: &Tensor) -> Result<Tensor> {
    match (t.edge(), t.concrete()) {
        (Some(_), Some(a)) if recording() => Ok(with_history(t, innermost_like(t, a.copied()?))),
        _ => Ok(t.clone()),
    }
}

/// The primal of `t` with its array replaced.
fn innermost_like(t: &Tensor, array: Array) -> Tensor {
    match t.traced() {
        Some(traced) => replace_bottom(traced.inner(), &array),
        None => array.into(),
    }
}

/// `t` with the concrete array at its bottom replaced, history kept.
fn replace_bottom(t: &Tensor, array: &Array) -> Tensor {
    match t {
        Tensor::Array(_) => array.clone().into(),
        Tensor::Traced(traced) => match &traced.payload {
            Payload::Taped {
                primal,
                node,
                index,
            } => {
                let payload = Payload::Taped {
                    primal: replace_bottom(primal, array),
                    node: node.clone(),
                    index: *index,
                };
                Tensor::Traced(Arc::new(Traced {
                    tag: traced.tag,
                    aval: traced.aval,
                    payload,
                }))
            }
            _ => t.clone(),
        },
    }
}

/// Writes `new` into the memory of `old`; returns the tensor that `old`'s object is from now on.
pub fn written(name: &str, old: &Tensor, new: Tensor, view: bool) -> Result<Tensor> {
    if new.shape() != old.shape() {
        return Err(Error::shape(format!(
            "{name}_: the result has shape {} and does not fit into the tensor of shape {}",
            new.shape(),
            old.shape()
        )));
    }
    if new.dtype() != old.dtype() && new.dtype().category() > old.dtype().category() {
        return Err(Error::dtype(format!(
            "{name}_: the result is {} and cannot be stored in a {} tensor; write x = x.{name}(...)",
            new.dtype(),
            old.dtype()
        )));
    }
    let new = new.cast(old.dtype())?;
    let recorded = new.traced().is_some() || (old.traced().is_some() && recording());
    if view && recorded && tracer(&new).is_none() {
        return Err(Error::autodiff(format!(
            "{name}_: this tensor is a view, and writing it in place would leave its base without the gradient; write \
             base[...] = value on the base, or clone() the view first"
        )));
    }
    let (Some(target), Some(value)) = (old.concrete(), new.concrete()) else {
        return Ok(new);
    };
    if value.device() != target.device() {
        return Err(Error::value(format!(
            "{name}_: the value is on {} and the tensor on {}; move it with .to()",
            value.device(),
            target.device()
        )));
    }
    check_writable(name, target)?;
    on_device!(target, copy::copy_into(target, value))?;
    target.buffer().bump_version();
    if new.traced().is_none() && !recording() {
        return Ok(old.clone());
    }
    Ok(replace_bottom(&new, target))
}

/// Elements that share memory (a broadcast view) cannot be written one by one.
fn check_writable(name: &str, target: &Array) -> Result<()> {
    if (0..target.rank()).any(|i| target.stride(i) == 0 && target.dim(i) > 1) {
        return Err(Error::autodiff(format!(
            "{name}_: elements of this expanded tensor of shape {} share memory; clone() it first",
            target.shape()
        )));
    }
    Ok(())
}

/// The same value on the device of `like`; scalars may come from the CPU.
pub fn beside(like: &Tensor, value: Tensor) -> Result<Tensor> {
    if value.rank() == 0 && value.device() == Device::Cpu {
        value.to_device(like.device())
    } else {
        Ok(value)
    }
}
