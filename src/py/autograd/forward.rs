//! Levels of forward mode that a program enters and leaves by itself: `autograd.forward_ad`.

use crate::autodiff::transform::{check_tangent, unwrap_to_level};
use crate::interp::{Interp, InterpGuard, Kind, dual};
use crate::py::prelude::*;
use pyo3::exceptions::PyRuntimeError;
use std::cell::RefCell;

thread_local! {
    /// The levels that this thread is in, innermost last.
    static LEVELS: RefCell<Vec<(Arc<Interp>, InterpGuard)>> = const { RefCell::new(Vec::new()) };
}

/// The innermost level, which must be that of `number` if one is given.
fn innermost(name: &str, number: Option<usize>) -> PyResult<Arc<Interp>> {
    let (count, last) = LEVELS.with_borrow(|l| (l.len(), l.last().map(|(level, _)| level.clone())));
    match last {
        Some(level) if number.is_none_or(|number| number + 1 == count) => Ok(level),
        Some(_) => Err(PyRuntimeError::new_err(format!("{name}: only the innermost level can be named"))),
        None => Err(PyRuntimeError::new_err(format!(
            "{name}: no level of forward mode; write `with dual_level():` around it"
        ))),
    }
}

/// Enters a level; returns how many this thread was in.
#[pyfunction]
fn _dual_enter() -> usize {
    let level = interp::push(Kind::Dual);
    LEVELS.with_borrow_mut(|levels| {
        levels.push(level);
        levels.len() - 1
    })
}

/// Leaves the innermost level.
#[pyfunction]
#[pyo3(signature = (level=None))]
fn _dual_exit(level: Option<usize>) -> PyResult<()> {
    innermost("exit_dual_level", level)?;
    // Dropped after the list is free again.
    let left = LEVELS.with_borrow_mut(Vec::pop);
    drop(left);
    Ok(())
}

/// Returns `tensor` with `tangent` at the innermost level.
#[pyfunction]
#[pyo3(signature = (tensor, tangent, level=None))]
fn _make_dual(tensor: Tensor, tangent: Tensor, level: Option<usize>) -> PyResult<PyTensor> {
    let level = innermost("make_dual", level)?;
    if !tensor.dtype().is_differentiable() {
        return Err(Error::dtype(format!(
            "make_dual: {} tensors have no derivatives; convert with .float() first",
            tensor.dtype()
        ))
        .into());
    }
    check_tangent("make_dual", &tangent, &tensor.aval())?;
    let below = |x: &Tensor, what: &str| {
        let x = unwrap_to_level(x, &level);
        match dual::split(&level, &x) {
            (_, None) => Ok(x),
            _ => Err(value_error(format!(
                "make_dual: the {what} has a tangent at this level already; give it by unpack_dual"
            ))),
        }
    };
    let (primal, tangent) = (below(&tensor, "tensor")?, below(&tangent, "tangent")?);
    Ok(PyTensor::argument(dual::wrap(&level, primal, Some(tangent))))
}

/// Returns the value of `tensor` and its tangent at the innermost level, if it has one.
#[pyfunction]
#[pyo3(signature = (tensor, level=None))]
fn _unpack_dual(tensor: Tensor, level: Option<usize>) -> PyResult<(Tensor, Option<Tensor>)> {
    let level = innermost("unpack_dual", level)?;
    let x = unwrap_to_level(&tensor, &level);
    let (primal, tangent) = dual::split(&level, &x);
    Ok((primal.clone(), tangent.cloned()))
}

exports! { functions: _dual_enter, _dual_exit, _make_dual, _unpack_dual }
