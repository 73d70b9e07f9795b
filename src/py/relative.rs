//! Arguments interpreted relative to another tensor. Python numbers, alone or in lists, keep double precision
//! beside a double-precision tensor. The bound of a comparison or of `clamp` need not fit the tensor's dtype.

use crate::ops::pointwise::compare::{Logic, Relation};
use crate::py::args::{extracted, not_an_operand};
use crate::py::data::convert;
use crate::py::prelude::*;
use pyo3::types::{PyComplex, PyFloat};

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
        let given = convert::as_tensor(&self.0)?;
        if is_double(x) { in_double(&self.0, given) } else { Ok(given) }
    }
}

/// Whether the dtype has the precision of float64.
pub fn is_double(x: &Tensor) -> bool {
    matches!(x.dtype(), DType::F64 | DType::C128)
}

/// Returns `converted`, the tensor of `obj`; Python floats and complex numbers, alone or in lists, are
/// converted again in double precision.
pub fn in_double(obj: &Bound<'_, PyAny>, converted: Tensor) -> PyResult<Tensor> {
    let is_number = obj.is_instance_of::<PyFloat>() || obj.is_instance_of::<PyComplex>();
    let is_list = obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>();
    let dtype = converted.dtype();
    if (is_number || is_list) && matches!(dtype, DType::F32 | DType::C64) {
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
