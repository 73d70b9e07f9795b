//! In-place operations on tensor objects: the value is computed first and written second
//! (`src/ops/inplace.rs`), and the object takes over the history of the operation.

use crate::buffer::Device;
use crate::error::Result;
use crate::ops::inplace::{self, check_leaf, unaliased, write, write_part};
use crate::ops::strided::Part;
use crate::py::args::AsTensor;
use crate::py::aside::Aside;
use crate::py::outer;
use crate::py::tensor::{Look, PyTensor};
use crate::py::view::{link, refresh, value, written};
use crate::tensor::Tensor;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// Replaces the value of `slf` by `f` of it.
pub fn update(
    slf: &Bound<'_, PyTensor>,
    name: &str,
    f: impl FnOnce(Python<'_>, &Tensor) -> PyResult<Tensor>,
) -> PyResult<()> {
    let old = refresh(slf)?;
    check_root(slf, name)?;
    let new = f(slf.py(), &unaliased(&old)?)?;
    overwrite(slf, name, new)
}

/// Raises if `slf` is a leaf that must not be written now, or a view of one.
pub fn check_root(slf: &Bound<'_, PyTensor>, name: &str) -> Result<()> {
    match link(slf) {
        Some((root, _)) => inplace::check_root(name, &root.look().t),
        None => check_leaf(name, &slf.look().t),
    }
}

/// Stores `new` in `slf`, and in what it is a view of.
pub fn overwrite(slf: &Bound<'_, PyTensor>, name: &str, new: Tensor) -> PyResult<()> {
    match link(slf) {
        Some((root, part)) => overwrite_part(&root, name, &part, new),
        None => {
            let old = slf.look().t.clone();
            let next = slf.py().aside(|| write(name, &old, new))?;
            outer::note(name, slf, &old, &next)?;
            written(slf, next)
        }
    }
}

/// Stores `new` in a part of `root`, which is no view.
pub fn overwrite_part(root: &Bound<'_, PyTensor>, name: &str, part: &Part, new: Tensor) -> PyResult<()> {
    let old = root.look().t.clone();
    match root.py().aside(|| write_part(name, &old, part, new))? {
        Some(next) => {
            outer::note(name, root, &old, &next)?;
            written(root, next)
        }
        None => Ok(()),
    }
}

#[pymethods]
impl PyTensor {
    /// Stores `value`, the result of the operation `name` for which this tensor was given as `out`.
    fn _store(slf: &Bound<'_, Self>, name: &str, value: AsTensor) -> PyResult<()> {
        update(slf, name, |_, _| Ok(value.0))
    }

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
            value(out.cast::<PyTensor>()?)
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
