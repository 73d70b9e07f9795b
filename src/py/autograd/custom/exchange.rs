//! Conversions between a custom function and its Python rules: lists of tensors, plans.

use crate::op::Grads;
use crate::ops::custom::{Plan, Source};
use crate::py::tensor::view::value;
use crate::py::tensor::{PyTensor, wrap};
use crate::tensor::{Tensor, Tensors};
use pyo3::prelude::*;
use pyo3::types::PyList;

pub(super) fn list<'py>(py: Python<'py>, x: &[Tensor]) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, x.iter().map(|t| wrap(py, t.clone())).collect::<PyResult<Vec<_>>>()?)
}

pub(super) fn options<'py>(py: Python<'py>, x: &[Option<Tensor>]) -> PyResult<Bound<'py, PyList>> {
    let wrapped = x.iter().map(|t| t.as_ref().map(|t| wrap(py, t.clone())).transpose());
    PyList::new(py, wrapped.collect::<PyResult<Vec<_>>>()?)
}

pub(super) fn tensors(found: &Bound<'_, PyAny>) -> PyResult<Tensors> {
    found.try_iter()?.map(|t| value(t?.cast::<PyTensor>()?)).collect()
}

pub(super) fn gradients(found: &Bound<'_, PyAny>) -> PyResult<Grads> {
    let one = |t: PyResult<Bound<'_, PyAny>>| {
        let t = t?;
        Ok(if t.is_none() { None } else { Some(value(t.cast::<PyTensor>()?)?) })
    };
    found.try_iter()?.map(one).collect()
}

/// Converts `(visible, [(kind, index)], [constant], traceable, [dirty])` of the Python side into a plan and
/// the list of dirty inputs among the outputs.
pub(super) fn plan_of(found: &Bound<'_, PyAny>) -> PyResult<(Plan, Vec<usize>)> {
    type Found = (usize, Vec<(u8, usize)>, Vec<bool>, bool, Vec<usize>);
    let (visible, saved, constant, traceable, dirty): Found = found.extract()?;
    let source = |(kind, i)| match kind {
        0 => Source::Input(i),
        1 => Source::Output(i),
        _ => Source::Hidden(i),
    };
    let saved = saved.into_iter().map(source).collect();
    Ok((Plan { visible, saved, constant, traceable, shared: Vec::new() }, dirty))
}
