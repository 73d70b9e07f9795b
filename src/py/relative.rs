//! Arguments interpreted relative to another tensor. Python numbers, alone or in lists, keep double precision
//! beside a double-precision tensor. The bound of a comparison or of `clamp` need not fit the tensor's dtype.

use crate::array::defaults;
use crate::ops::pointwise::compare::{Logic, Relation};
use crate::py::args::{extracted, members, not_an_operand};
use crate::py::data::convert;
use crate::py::prelude::*;
use pyo3::exceptions::PyTypeError;
use pyo3::types::{PyComplex, PyFloat, PyString};

/// The right-hand side of a comparison, or a bound of `clamp`: [`Arg::compared`].
pub struct Compared(pub Arg);

extracted!(Compared, |obj| Arg::compared(obj)?.map(Compared).ok_or_else(|| not_an_operand(obj)));

/// A tensor argument that is converted in view of another tensor; arrays and numbers are accepted.
pub struct Relative<'py>(Bound<'py, PyAny>);

extracted!(Relative<'py>, |obj| Ok(Relative(obj.clone())));

impl Relative<'_> {
    /// Returns the argument as a tensor to stand beside `x`; Python numbers keep their precision.
    pub fn tensor(&self, x: &Tensor) -> PyResult<Tensor> {
        if let Ok(t) = self.0.cast::<PyTensor>() {
            return value(t);
        }
        if x.dtype() == DType::U64
            && is_list(&self.0)
            && let Ok(given) = convert::in_dtype(&self.0, DType::U64)
        {
            return Ok(given);
        }
        let given = convert::as_tensor(&self.0)?;
        if is_double(x) {
            return in_double(&self.0, given);
        }
        // A number adapts to the tensor, whatever the dtype of floats is.
        let adapts =
            is_double(&given) && x.dtype().is_differentiable() && defaults::is_natural(given.dtype());
        if adapts && (self.0.is_exact_instance_of::<PyFloat>() || self.0.is_exact_instance_of::<PyComplex>())
        {
            let single = if given.dtype().is_complex() { DType::C64 } else { DType::F32 };
            return convert::in_dtype(&self.0, single);
        }
        Ok(given)
    }

    /// Returns the argument as an operand of the function `name` beside `x`: a number stays one.
    pub fn operand(&self, name: &str, x: &Tensor) -> PyResult<Arg> {
        let number = if is_list(&self.0) { Ok(None) } else { Arg::from_any(&self.0) };
        let given = match number {
            Ok(Some(given)) => Ok(given),
            Ok(None) => self.tensor(x).map(Arg::Tensor),
            Err(error) => Err(error),
        };
        given.map_err(|error| no_operand(name, &self.0, error))
    }

    /// Returns the argument of the function `name` as a tensor beside `x`: a number in the dtype that the
    /// result has.
    pub fn beside(&self, name: &str, x: &Tensor) -> PyResult<Tensor> {
        Ok(self.operand(name, x)?.tensor_with(x).named(name)?)
    }

    /// Whether this is a tensor, rather than what becomes one.
    pub fn is_tensor(&self) -> bool {
        self.0.is_instance_of::<PyTensor>()
    }
}

fn is_list(obj: &Bound<'_, PyAny>) -> bool {
    obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>()
}

/// The error for an argument of the function `name` that is no operand.
#[cold]
fn no_operand(name: &str, obj: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyTypeError>(obj.py()) {
        return error;
    }
    let class = obj.get_type().name().map_or_else(|_| "this".into(), |class| class.to_string());
    type_error(format!("{name}: tensors, arrays or numbers expected, got {class}"))
}

/// Returns an argument of the function `name` as a tensor.
pub fn operand(name: &str, obj: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    convert::as_tensor(obj).map_err(|error| no_operand(name, obj, error))
}

/// Returns the members of a sequence given to the function `name` as tensors; Python numbers keep their
/// precision beside a double-precision tensor.
pub fn operands(name: &str, obj: &Bound<'_, PyAny>) -> PyResult<Vec<Tensor>> {
    let iterable = !obj.is_instance_of::<PyString>() && obj.hasattr("__iter__")?;
    if !iterable {
        let class = obj.get_type().name()?;
        return Err(type_error(format!("{name}: a sequence of tensors expected, got {class}")));
    }
    let given: Vec<_> = members(obj)?.collect::<PyResult<_>>()?;
    let parts = given.iter().map(|x| operand(name, x)).collect::<PyResult<Vec<_>>>()?;
    if !parts.iter().any(is_double) {
        return Ok(parts);
    }
    given.iter().zip(parts).map(|(x, t)| in_double(x, t)).collect()
}

/// Whether the dtype has the precision of float64.
pub fn is_double(x: &Tensor) -> bool {
    matches!(x.dtype(), DType::F64 | DType::C128)
}

/// Returns `converted`, the tensor of `obj`; Python floats and complex numbers, alone or in lists, are
/// converted again in double precision.
pub fn in_double(obj: &Bound<'_, PyAny>, converted: Tensor) -> PyResult<Tensor> {
    let is_number = obj.is_instance_of::<PyFloat>() || obj.is_instance_of::<PyComplex>();
    let dtype = converted.dtype();
    if (is_number || is_list(obj)) && dtype.is_differentiable() && !is_double(&converted) {
        return convert::in_dtype(obj, dtype.promote(DType::F64));
    }
    Ok(converted)
}

/// Limits values to bounds that are numbers or tensors.
pub fn clamp(
    py: Python<'_>, name: &str, x: &Tensor, min: Option<Compared>, max: Option<Compared>,
) -> PyResult<Tensor> {
    let (min, max) = (min.map(|bound| bound.0), max.map(|bound| bound.0));
    if ![&min, &max].iter().any(|bound| matches!(bound, Some(Arg::Tensor(_) | Arg::Complex(..)))) {
        let (low, high) = (min.as_ref().map(Arg::operand), max.as_ref().map(Arg::operand));
        return run(py, x.numel(), || x.clamp(low, high).named(name));
    }
    // A tensor bound receives the gradient where it is the result.
    let mut out = x.clone();
    for (bound, relation) in [(&min, Relation::Lt), (&max, Relation::Gt)] {
        if let Some(bound) = bound {
            out = beyond(&out, bound, relation).named(name)?.select(bound.operand(), &out)?;
        }
    }
    Ok(out)
}

/// Mask of elements where `x` is beyond a bound, or the bound is NaN.
fn beyond(x: &Tensor, bound: &Arg, relation: Relation) -> Result<Tensor> {
    let mask = x.compare(bound.operand(), relation)?;
    match bound {
        Arg::Tensor(t) if t.dtype().is_float() => mask.logical(&t.ne(t)?, Logic::Or),
        Arg::Float(v) if v.is_nan() => mask.logical(&mask.logical_not()?, Logic::Or),
        _ => Ok(mask),
    }
}
