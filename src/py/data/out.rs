//! The argument `out` of functions that create tensors: where the result is stored.

use crate::py::data::create::{Any, made, place, place_beside};
use crate::py::prelude::*;

/// Where a function stores its result instead of in new memory.
pub type Out<'py> = Option<Bound<'py, PyTensor>>;

/// [`place`], where `out` gives the defaults.
pub fn place_in(out: &Out, dtype: Any, device: Any) -> PyResult<(DType, Device)> {
    match out {
        Some(out) => place_beside(&out.read().t, dtype, device),
        None => place(dtype, device),
    }
}

/// [`made`], or `out` with the elements of the result of `name`.
pub fn stored<'py>(
    py: Python<'py>, name: &str, t: Tensor, requires_grad: bool, out: Out<'py>,
) -> PyResult<Bound<'py, PyTensor>> {
    match out {
        None => Bound::new(py, made(t, requires_grad)?),
        Some(_) if requires_grad => Err(value_error(format!(
            "{name}: out has its own requires_grad; leave out or requires_grad away"
        ))),
        Some(out) => {
            PyTensor::_store(&out, name, AsTensor(t))?;
            Ok(out)
        }
    }
}
