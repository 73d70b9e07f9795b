//! Copies that leave the process or stand alone: pickling and `copy.deepcopy`.

use crate::array::Array;
use crate::buffer::Device;
use crate::dtype::{DType, Element};
use crate::error::Error;
use crate::py::error::value_error;
use crate::py::tensor::{PyTensor, leaf, require_grad, wrap};
use crate::py::view::value;
use crate::shape::Shape;
use crate::tensor::Tensor;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyString, PyTuple, PyType};

#[pymethods]
impl PyTensor {
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let rebuild = py.import("wengert._core")?.getattr("_rebuild")?;
        let t = value(slf)?;
        let state = state(py, &t)?;
        let class = slf.get_type();
        let requires = leaf(&t).is_some();
        Ok((
            rebuild,
            PyTuple::new(
                py,
                [class.into_any(), state.into_any(), PyBool::new(py, requires).to_owned().into_any()],
            )?,
        ))
    }

    /// An independent copy; only leaves can be copied, for the copy of a result could not keep its history.
    fn __deepcopy__<'py>(slf: &Bound<'py, Self>, memo: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let key = slf.as_ptr() as usize;
        if let Some(done) = memo.get_item(key)? {
            return Ok(done);
        }
        let t = value(slf)?;
        if t.edge().is_some() && leaf(&t).is_none() {
            return Err(PyRuntimeError::new_err(
                "deepcopy: only leaf tensors can be copied deeply; use detach() or clone() on a result",
            ));
        }
        let copy = t.detach().copied()?;
        let copy = if leaf(&t).is_some() { require_grad(&copy)? } else { copy };
        if let (Some(from), Some(to)) = (leaf(&t), leaf(&copy)) {
            let grad = from.node.grad().and_then(|g| g.clone());
            if let (Some(g), Some(mut slot)) = (grad, to.node.grad()) {
                *slot = Some(g.detach().copied()?);
            }
        }
        let copy = wrap(py, copy)?.into_bound(py);
        memo.set_item(key, &copy)?;
        Ok(copy.into_any())
    }
}

/// What pickling stores: bytes, shape, dtype.
pub fn state<'py>(py: Python<'py>, t: &Tensor) -> PyResult<Bound<'py, PyTuple>> {
    let host = t.array("pickling")?.to_device(Device::Cpu)?;
    let host = crate::cpu::copy::contiguous(&host)?;
    let bytes = crate::dispatch!(host.dtype(), T => bytes_of(host.slice::<T>()?));
    let shape = PyTuple::new(py, host.shape().iter())?;
    let parts = [
        PyBytes::new(py, bytes).into_any(),
        shape.into_any(),
        PyString::new(py, host.dtype().name()).into_any(),
    ];
    PyTuple::new(py, parts)
}

fn bytes_of<T: Element>(values: &[T]) -> &[u8] {
    // SAFETY: elements are plain numbers without padding.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), std::mem::size_of_val(values)) }
}

/// A tensor from what `state` stored.
#[pyfunction]
pub fn _rebuild<'py>(
    class: &Bound<'py, PyType>,
    state: (Vec<u8>, Vec<usize>, String),
    requires_grad: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let (bytes, shape, name) = state;
    let dtype = DType::from_name(&name).ok_or_else(|| value_error(format!("unknown dtype '{name}'")))?;
    let shape = Shape::new(&shape)?;
    if bytes.len() != shape.numel() * dtype.size() {
        return Err(Error::value(format!(
            "{} bytes do not make a {name} tensor of shape {shape}",
            bytes.len()
        ))
        .into());
    }
    let array = Array::empty(shape, dtype, Device::Cpu)?;
    // SAFETY: the buffer is fresh and holds at least this many bytes.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), array.buffer().ptr(), bytes.len()) };
    let t = Tensor::Array(crate::py::numpy::truth(array)?);
    let t = if requires_grad { require_grad(&t)? } else { t };
    let py = class.py();
    let plain = wrap(py, t)?.into_bound(py).into_any();
    if class.is(py.get_type::<PyTensor>()) { Ok(plain) } else { class.call1((plain,)) }
}
