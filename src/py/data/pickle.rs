//! Pickling and `copy.deepcopy`.

use crate::array::checked_bytes;
use crate::array::dtype::Element;
use crate::py::data::dtype::device_of;
use crate::py::data::numpy::truth;
use crate::py::prelude::*;
use crate::py::tensor::{leaf, require_grad, wrap};
use crate::watch::{absent, script};
use pyo3::exceptions::{PyRuntimeError, PyUserWarning};
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyType};
use std::ffi::CString;

/// The arguments of [`_rebuild`].
type Rebuilt<'py> = (Bound<'py, PyType>, Bound<'py, PyTuple>, bool);

#[pymethods]
impl PyTensor {
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Rebuilt<'py>)> {
        let py = slf.py();
        let rebuild = py.import("wengert._core")?.getattr("_rebuild")?;
        let t = value(slf)?;
        Ok((rebuild, (slf.get_type(), state(py, &t)?, leaf(&t).is_some())))
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

/// Returns the pickled state: bytes, shape, dtype, and the device unless it is the CPU.
pub fn state<'py>(py: Python<'py>, t: &Tensor) -> PyResult<Bound<'py, PyTuple>> {
    script::refuse(|| "pickling, which takes values out of the program; save after the call".into());
    let host = t.array("pickling")?.to_device(Device::Cpu)?;
    absent::check("pickling", &host)?;
    let host = crate::cpu::pointwise::copy::contiguous(&host)?;
    let bytes = crate::dispatch!(host.dtype(), T => bytes_of(host.slice::<T>()?));
    let bytes = PyBytes::new_with(py, bytes.len(), |to| {
        to.copy_from_slice(bytes);
        Ok(())
    })?;
    let shape = PyTuple::new(py, host.shape().iter())?;
    let name = host.dtype().name();
    match t.device() {
        Device::Cpu => (bytes, shape, name).into_pyobject(py),
        device => (bytes, shape, name, device.to_string()).into_pyobject(py),
    }
}

fn bytes_of<T: Element>(values: &[T]) -> &[u8] {
    // SAFETY: an `Element` is a plain number without padding: all of its bytes are initialised.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), std::mem::size_of_val(values)) }
}

/// The leading items of every pickled state: bytes, shape, dtype.
type Parts = (PyBackedBytes, Vec<usize>, String);

/// Moves an unpickled tensor to `device`, where it was; warns and leaves it on the CPU if unavailable.
fn placed(py: Python<'_>, t: Tensor, device: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let found = device_of(device).and_then(|device| Ok(t.to_device(device)?));
    found.or_else(|error| {
        let text = format!(
            "unpickling: a tensor of shape {} was on {device}, which is not to be had here, and is on the \
             CPU now ({})",
            t.shape(),
            error.value(py)
        );
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(text)?, 1)?;
        Ok(t)
    })
}

/// A tensor from what `state` stored.
#[pyfunction]
pub fn _rebuild<'py>(
    class: &Bound<'py, PyType>, state: &Bound<'py, PyTuple>, requires_grad: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let (bytes, shape, name): Parts = state.get_slice(0, 3).extract()?;
    let dtype = DType::from_name(&name).ok_or_else(|| value_error(format!("unknown dtype '{name}'")))?;
    let shape = Shape::new(&shape)?;
    if bytes.len() != checked_bytes(&shape, dtype)? {
        return Err(Error::value(format!(
            "{} bytes do not make a {name} tensor of shape {shape}",
            bytes.len()
        ))
        .into());
    }
    let array = Array::empty(shape, dtype, Device::Cpu)?;
    // SAFETY: `array` was just allocated, and its size was compared with `bytes.len()`.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), array.buffer().ptr(), bytes.len()) };
    let mut t = Tensor::Array(truth(array)?);
    if let Ok(device) = state.get_item(3) {
        t = placed(class.py(), t, &device)?;
    }
    let t = if requires_grad { require_grad(&t)? } else { t };
    let py = class.py();
    let plain = wrap(py, t)?.into_bound(py).into_any();
    if class.is(py.get_type::<PyTensor>()) { Ok(plain) } else { class.call1((plain,)) }
}
