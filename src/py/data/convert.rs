//! Conversion of Python data to tensors: nested lists, NumPy arrays without a copy, other arrays.
//!
//! An array comes in through `__array_interface__` and is kept alive by the tensor's buffer; it goes out
//! through the buffer protocol (`src/py/data/memory.rs`). Others come in by DLPack (`src/py/data/dlpack.rs`).

use crate::array::defaults;
use crate::py::autograd::debug;
use crate::py::data::nested::{Class, from_nested, from_nested_as, number, scalar};
use crate::py::data::numpy::share;
use crate::py::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyFloat, PyString, PyType};

/// Whether an object describes an array, by NumPy's array interface or DLPack.
pub fn is_array(obj: &Bound<'_, PyAny>) -> bool {
    let py = obj.py();
    obj.hasattr(pyo3::intern!(py, "__array_interface__")).unwrap_or(false)
        || obj.hasattr(pyo3::intern!(py, "__dlpack__")).unwrap_or(false)
}

/// Whether an object is a NumPy scalar such as `numpy.float32(1)`, which behaves as a number.
pub fn is_numpy_scalar(obj: &Bound<'_, PyAny>) -> bool {
    static GENERIC: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = GENERIC.import(obj.py(), "numpy", "generic");
    class.is_ok_and(|class| obj.is_instance(class).unwrap_or(false))
}

/// Converts tensors, arrays, numbers and nested lists to a tensor, sharing memory where possible.
pub fn as_tensor(obj: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    element(obj, 0)
}

/// [`as_tensor`] of an object nested in `depth` lists.
pub fn element(obj: &Bound<'_, PyAny>, depth: usize) -> PyResult<Tensor> {
    if let Ok(t) = obj.cast::<PyTensor>() {
        return value(t);
    }
    if obj.is_exact_instance_of::<PyFloat>() {
        return Ok(Tensor::scalar(obj.extract()?, defaults::float(), Device::Cpu)?);
    }
    if obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>() {
        return from_nested(obj, depth);
    }
    // NumPy's float64 scalar is a Python float, but has a dtype of its own.
    if let Some(number) = number(obj)?
        && !(number.2 >= Class::Float && is_array(obj))
    {
        return scalar(obj, number);
    }
    if is_array(obj) {
        return share(obj);
    }
    if obj.hasattr("__array__")? {
        return share(&obj.py().import("numpy")?.call_method1("asarray", (obj,))?);
    }
    if obj.is_instance_of::<PyString>() || obj.is_instance_of::<PyDict>() {
        return Err(unsupported(obj));
    }
    if obj.hasattr("__len__")? && obj.hasattr("__getitem__")? {
        return from_nested(
            &PyList::new(obj.py(), obj.try_iter()?.collect::<PyResult<Vec<_>>>()?)?.into_any(),
            depth,
        );
    }
    Err(unsupported(obj))
}

#[cold]
pub fn unsupported(obj: &Bound<'_, PyAny>) -> PyErr {
    let name = obj.get_type().name().map_or_else(|_| String::new(), |n| n.to_string());
    type_error(format!(
        "{name} cannot become a tensor; expected a number, nested lists of numbers, or an array"
    ))
}

/// Implements `wengert.tensor` (always copies) and `wengert.as_tensor` (copies where needed).
pub fn build(
    obj: &Bound<'_, PyAny>, dtype: Option<DType>, device: Option<Device>, copy: bool,
) -> PyResult<Tensor> {
    if let Some(wide) = dtype.map(|d| from_nested_as(obj, d)).transpose()?.flatten() {
        return Ok(wide.to_device(device.unwrap_or_default())?);
    }
    let was_tensor = obj.is_instance_of::<PyTensor>();
    let shared = was_tensor || is_array(obj);
    let t = as_tensor(obj)?;
    if let (Some(dtype), false, true) = (dtype, shared, t.dtype().is_complex())
        && !dtype.is_complex()
    {
        return Err(type_error(format!(
            "complex numbers do not fit into {dtype}; give their .real, or dtype=complex64"
        )));
    }
    let t = if copy && was_tensor {
        debug::left("tensor()", &t);
        t.detach()
    } else {
        t
    };
    let device = device.unwrap_or(t.device());
    let dtype = match (dtype, t.dtype()) {
        (Some(dtype), _) => dtype,
        // GPUs have integers of 32 bits, so Python integers become int32 there.
        (None, DType::I64) if device != Device::Cpu && !shared => small_integers(&t)?,
        (None, natural) => natural,
    };
    if copy && shared && dtype == t.dtype() && device == t.device() {
        return Ok(t.copied()?);
    }
    Ok(if device == Device::Cpu {
        t.to_device(device)?.cast(dtype)?
    } else {
        t.cast(dtype)?.to_device(device)?
    })
}

/// Converts an object to a tensor of `dtype`; numbers, alone or in lists, do not pass through float32.
pub fn in_dtype(obj: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Tensor> {
    build(obj, Some(dtype), None, false)
}

/// Returns int32 if all these int64 numbers fit into it, else int64.
fn small_integers(t: &Tensor) -> PyResult<DType> {
    let host = crate::cpu::pointwise::copy::contiguous(t.array("tensor")?)?;
    let fits = host.slice::<i64>()?.iter().all(|&v| i32::try_from(v).is_ok());
    Ok(if fits { DType::I32 } else { DType::I64 })
}

/// A tensor as it is, for arguments of Python functions: arrays are shared, lists and numbers converted.
#[pyfunction]
pub fn _as_tensor(obj: AsTensor) -> PyTensor {
    PyTensor::from(obj.0)
}
