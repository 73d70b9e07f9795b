//! In-place operations on tensor objects: the value is computed first and written second
//! (`src/ops/inplace.rs`), and the object takes over the history of the operation.

use crate::buffer::Device;
use crate::error::Result;
use crate::ops::inplace::{check_leaf, unaliased, write};
use crate::py::tensor::{PyTensor, replace};
use crate::tensor::Tensor;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

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
    let next = write(name, &old, new, view)?;
    replace(slf, next)
}

#[pymethods]
impl PyTensor {
    /// Replaces the elements by the result of the method `name`, in place; `x.exp_()` is
    /// `x._in_place("exp")`.
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

/// The same value on the device of `like`; scalars may come from the CPU.
pub fn beside(like: &Tensor, value: Tensor) -> Result<Tensor> {
    if value.rank() == 0 && value.device() == Device::Cpu {
        value.to_device(like.device())
    } else {
        Ok(value)
    }
}
