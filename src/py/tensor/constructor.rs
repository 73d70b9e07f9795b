//! `Tensor(...)` and the constructors of other dtypes, which accept lengths or data.

use crate::py::args::{integers, shape};
use crate::py::autograd::debug;
use crate::py::data::convert::{self, is_numpy_scalar};
use crate::py::data::dtype::{dtype_of, optional_device};
use crate::py::prelude::*;
use pyo3::types::{PyBytes, PyComplex, PyFloat, PyString};

/// Implements `name(*data)`. Given lengths, returns a tensor of `dtype` to be filled; given a tensor, the
/// tensor without its history; given other data, its elements in `dtype`.
pub fn of_kind(
    name: &str, data: &Bound<'_, PyTuple>, dtype: DType, device: Option<Device>,
) -> PyResult<Tensor> {
    let only = if data.len() == 1 { Some(data.get_item(0)?) } else { None };
    let Some(only) = only.filter(|x| !is_length(x)) else {
        let lengths = if data.is_empty() { vec![0] } else { integers(data)? };
        return Ok(Tensor::zeros(shape(&lengths)?, dtype, device.unwrap_or_default())?);
    };
    if let Ok(t) = only.cast::<PyTensor>() {
        let t = value(t)?;
        debug::left(name, &t);
        return Ok(t.detach().to_device(device.unwrap_or(t.device()))?);
    }
    if is_number(&only) || only.is_none() {
        return Err(type_error(format!(
            "{name}: lengths, a tensor, an array or nested lists expected, got {}; wengert.tensor makes a \
             tensor of a number",
            only.get_type().name()?
        )));
    }
    Ok(convert::build(&only, Some(dtype), device, false)?.detach())
}

/// Whether a single argument is a shape: an integer, or a `Size`.
fn is_length(obj: &Bound<'_, PyAny>) -> bool {
    if obj.is_instance_of::<PyTuple>() {
        return !obj.is_exact_instance_of::<PyTuple>() && obj.hasattr("numel").unwrap_or(false);
    }
    if obj.is_instance_of::<PyTensor>() || obj.is_instance_of::<PyBool>() {
        return false;
    }
    obj.is_instance_of::<PyInt>() || (is_numpy_scalar(obj) && obj.hasattr("__index__").unwrap_or(false))
}

/// Whether an object is a number or text.
fn is_number(obj: &Bound<'_, PyAny>) -> bool {
    let is_text = obj.is_instance_of::<PyString>() || obj.is_instance_of::<PyBytes>();
    let is_plain = obj.is_instance_of::<PyBool>()
        || obj.is_instance_of::<PyFloat>()
        || obj.is_instance_of::<PyComplex>();
    is_text || is_plain || is_numpy_scalar(obj)
}

/// [`of_kind`] for a dtype that must be that of a tensor that is given.
#[pyfunction]
#[pyo3(signature = (name, dtype, data, device=None))]
pub fn _of_kind(
    name: &str, dtype: &Bound<'_, PyAny>, data: &Bound<'_, PyTuple>, device: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTensor> {
    let dtype = dtype_of(dtype)?;
    let t = of_kind(name, data, dtype, optional_device(device)?)?;
    if t.dtype() != dtype {
        return Err(type_error(format!(
            "{name}: a tensor of {dtype} expected, got {}; convert with .to()",
            t.dtype()
        )));
    }
    Ok(t.into())
}

/// Returns the dtype of a tensor class by its name, as in `FloatTensor`, with or without a package before it.
pub fn dtype_of_class(name: &str) -> Option<DType> {
    let (package, class) = name.rsplit_once('.').unwrap_or(("", name));
    if package.contains('.') {
        return None;
    }
    Some(match class {
        "FloatTensor" | "Tensor" => DType::F32,
        "DoubleTensor" => DType::F64,
        "HalfTensor" => DType::F16,
        "BFloat16Tensor" => DType::BF16,
        "ByteTensor" => DType::U8,
        "CharTensor" => DType::I8,
        "ShortTensor" => DType::I16,
        "IntTensor" => DType::I32,
        "LongTensor" => DType::I64,
        "BoolTensor" => DType::Bool,
        _ => return None,
    })
}
