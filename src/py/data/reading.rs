//! Conversion of a tensor's elements to Python: numbers, lists, NumPy arrays, truth values.

use crate::cpu::pointwise::copy;
use crate::py::autograd::{debug, staging};
use crate::py::data::{nested, numpy};
use crate::py::prelude::*;
use crate::watch::{absent, script};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::types::{PyComplex, PyFloat};

/// Returns the one element of a tensor as a Python number.
pub fn item<'py>(py: Python<'py>, t: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    if t.numel() != 1 {
        return Err(value_error(format!(
            "item: a tensor with one element expected, got shape {}; use tolist() or index it",
            t.shape()
        )));
    }
    let array = t.array("item")?;
    absent::check("item()", array)?;
    script::left("item()", array)?;
    number(py, array)
}

/// The one element of an array.
fn number<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyAny>> {
    let value = py.detached(|| array.to_device(Device::Cpu))?;
    let value = copy::contiguous(&value)?;
    Ok(match array.dtype() {
        DType::Bool => PyBool::new(py, value.item()? != 0.0).to_owned().into_any(),
        DType::U64 => PyInt::new(py, value.slice::<u64>()?[0]).into_any(),
        dtype if dtype.is_integer() => {
            PyInt::new(py, copy::cast(&value, DType::I64)?.slice::<i64>()?[0]).into_any()
        }
        dtype if dtype.is_complex() => {
            let parts = Tensor::Array(value.as_real()?).to_vec()?;
            PyComplex::from_doubles(py, parts[0], parts[1]).into_any()
        }
        _ => PyFloat::new(py, value.item()?).into_any(),
    })
}

impl PyTensor {
    /// Returns the value, which the function `name` takes out of the graph.
    fn leaving(&self, name: &str) -> PyResult<Tensor> {
        let t = self.value()?.into_owned();
        debug::left(name, &t);
        staging::left(name, &t)?;
        Ok(t)
    }
}

#[pymethods]
impl PyTensor {
    /// Returns the one element as a Python number. Raises ValueError for any other number of elements.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        item(py, &self.leaving("item()")?)
    }

    /// Returns the elements as nested lists of Python numbers; a number for a tensor without axes.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        nested::to_list(py, self.leaving("tolist()")?.array("tolist")?)
    }

    /// Returns a NumPy array that shares the memory. Raises RuntimeError for a tensor that requires a
    /// gradient (call `detach()` first) and TypeError for one on a GPU (call `cpu()` first); `force=True`
    /// does both.
    #[pyo3(signature = (*, force=false))]
    fn numpy<'py>(&self, py: Python<'py>, force: bool) -> PyResult<Bound<'py, PyAny>> {
        let t = self.leaving("numpy()")?;
        let t = if force { t.detach().to_device(Device::Cpu)? } else { t };
        numpy::to_numpy(py, &t)
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self, py: Python<'py>, dtype: Option<&Bound<'py, PyAny>>, copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = numpy::to_numpy(py, &*self.value()?)?;
        let kwargs = PyDict::new(py);
        match dtype {
            Some(dtype) => {
                kwargs.set_item("copy", copy.unwrap_or(false))?;
                array.call_method("astype", (dtype,), Some(&kwargs))
            }
            None if copy == Some(true) => array.call_method0("copy"),
            None => Ok(array),
        }
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        let shape = self.read().t.shape();
        if shape.numel() != 1 {
            return Err(PyRuntimeError::new_err(format!(
                "the truth value of a tensor of shape {shape} is ambiguous; use any() or all()"
            )));
        }
        let t = self.leaving("bool()")?;
        t.array("bool")?;
        item(py, &t)?.is_truthy()
    }

    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let t = self.leaving("int()")?;
        let found = if t.numel() == 1 { number(py, t.array("int")?)? } else { item(py, &t)? };
        py.get_type::<PyInt>().call1((found,))
    }

    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        item(py, &self.leaving("float()")?)?.extract()
    }

    fn __index__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (dtype, shape) = (self.read().t.dtype(), self.read().t.shape());
        if dtype.is_differentiable() || shape.numel() != 1 {
            return Err(PyTypeError::new_err(format!(
                "only an integer tensor with one element is an index, got {dtype} of shape {shape}"
            )));
        }
        py.get_type::<PyInt>().call1((item(py, &*self.value()?)?,))
    }

    fn __contains__(&self, py: Python<'_>, value: Arg) -> PyResult<bool> {
        let found = self.value()?.detach().eq(value.operand())?;
        item(py, &found.any(None, false)?)?.is_truthy()
    }
}
