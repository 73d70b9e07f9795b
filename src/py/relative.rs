//! Arguments interpreted relative to another tensor. Python numbers, alone or in lists, keep double precision
//! beside a double-precision tensor. The bound of a comparison need not fit the tensor's dtype.

use crate::array::dtype::DType;
use crate::py::args::{Arg, extracted, not_an_operand};
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
