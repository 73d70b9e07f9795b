//! In-place methods: `zero_`, `copy_`, `add_`. Those that only repeat a method of another name follow from it
//! in `src/py/names.rs`. Read next: `src/py/writes/inplace.rs`.

use crate::ops::pointwise::binary::Binary;
use crate::py::data::convert;
use crate::py::prelude::*;
use crate::py::relative::{Compared, clamp};
use crate::py::tensor::methods::{check_mask, filling};
use crate::py::writes::inplace::{self, beside};

/// The tensor that a method is of, and that it returns.
pub type This<'py> = Bound<'py, PyTensor>;

/// Runs an in-place method and returns the tensor itself.
pub fn in_place<'py>(
    slf: &This<'py>, name: &str, f: impl FnOnce(Python<'_>, &Tensor) -> PyResult<Tensor>,
) -> PyResult<This<'py>> {
    inplace::update(slf, name, f).map(|()| slf.clone())
}

#[pymethods]
impl PyTensor {
    /// Sets the elements to those of `src`, on any device, broadcast and converted, in place.
    #[pyo3(signature = (src, non_blocking=false))]
    fn copy_<'py>(slf: &This<'py>, src: &Bound<'py, PyAny>, non_blocking: bool) -> PyResult<This<'py>> {
        let _ = non_blocking;
        let dtype = slf.read().t.dtype();
        let src = match Arg::from_any(src)? {
            Some(Arg::Tensor(t)) => t,
            _ => convert::in_dtype(src, dtype)?,
        };
        in_place(slf, "copy", |py, x| {
            Ok(py.detached(|| src.cast(x.dtype())?.to_device(x.device())?.expand(&x.shape()))?)
        })
    }

    /// Limits the elements to `[min, max]`, in place.
    #[pyo3(signature = (min=None, max=None))]
    fn clamp_<'py>(slf: &This<'py>, min: Option<Compared>, max: Option<Compared>) -> PyResult<This<'py>> {
        in_place(slf, "clamp", |py, x| clamp(py, "clamp", x, min, max))
    }

    /// Sets elements to `value` where `mask` holds, in place.
    fn masked_fill_<'py>(slf: &This<'py>, mask: AsTensor, value: Arg) -> PyResult<This<'py>> {
        check_mask("masked_fill_", &mask.0)?;
        let value = filling("masked_fill_", &slf.read().t, value)?;
        let fill = || {
            let old = refresh(slf)?;
            let fill = value.operand().to_tensor(old.dtype(), &old)?;
            inplace::fill_where(slf, "masked_fill", &mask.0, &fill)
        };
        if value.numel() == 1 && fill()? {
            return Ok(slf.clone());
        }
        in_place(slf, "masked_fill", |_, x| Ok(x.masked_fill(&mask.0, value.operand())?))
    }

    /// Adds `alpha * other` in place.
    #[pyo3(signature = (other, *, alpha=None))]
    fn add_<'py>(slf: &This<'py>, other: Arg, alpha: Option<f64>) -> PyResult<This<'py>> {
        inplace::binary(slf, Binary::Add, &scaled(other, alpha)?).map(|()| slf.clone())
    }

    /// Subtracts `alpha * other` in place.
    #[pyo3(signature = (other, *, alpha=None))]
    fn sub_<'py>(slf: &This<'py>, other: Arg, alpha: Option<f64>) -> PyResult<This<'py>> {
        inplace::binary(slf, Binary::Sub, &scaled(other, alpha)?).map(|()| slf.clone())
    }
}

/// Methods that set the elements to a function of the tensor, in place, on behalf of the operation named.
macro_rules! assignments {
    ($($(#[$attribute:meta])* $method:ident($($parameter:tt)*) = $name:literal, $value:expr;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                $(#[$attribute])*
                fn $method<'py>(slf: &This<'py>, $($parameter)*) -> PyResult<This<'py>> {
                    assigned(slf, $name, $value)
                }
            )*
        }
    };
}

pub(super) use assignments;

/// Sets the elements of `slf` to `f` of it, on behalf of the operation `name`.
pub(super) fn assigned<'py>(
    slf: &This<'py>, name: &str, f: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> PyResult<This<'py>> {
    in_place(slf, name, |_, x| Ok(f(x)?))
}

assignments! {
    /// Sets every element to 0, in place.
    zero_() = "zero", |x| x.detach().zeros_like();
    /// Sets every element to `value`, in place.
    fill_(value: Arg) = "fill",
        |x| beside(x, value.operand().to_tensor(x.dtype(), x)?)?.expand(&x.shape());
    /// Adds `value * tensor1 * tensor2` in place.
    #[pyo3(signature = (tensor1, tensor2, *, value=1.0))]
    addcmul_(tensor1: Arg, tensor2: Arg, value: f64) = "addcmul", |x| {
        let moved = || x.add(&tensor1.tensor_with(x)?.mul(&tensor2.tensor_with(x)?)?.mul(value)?);
        moved().named("addcmul")
    };
    /// Adds `value * tensor1 / tensor2` in place.
    #[pyo3(signature = (tensor1, tensor2, *, value=1.0))]
    addcdiv_(tensor1: Arg, tensor2: Arg, value: f64) = "addcdiv", |x| {
        let moved = || x.add(&tensor1.tensor_with(x)?.div(&tensor2.tensor_with(x)?)?.mul(value)?);
        moved().named("addcdiv")
    };
    /// Moves towards `end` in place: `x + weight * (end - x)`.
    lerp_(end: Arg, weight: Arg) = "lerp", |x| {
        let moved = || x.add(&end.tensor_with(x)?.sub(x)?.mul(weight.operand())?);
        moved().named("lerp")
    };
}

fn scaled(other: Arg, alpha: Option<f64>) -> PyResult<Arg> {
    Ok(match (other, alpha) {
        (other, None) => other,
        (Arg::Tensor(t), Some(a)) => Arg::Tensor(t.mul(a)?),
        (Arg::Float(v), Some(a)) => Arg::Float(v * a),
        (Arg::Int(v), Some(a)) if a.fract() == 0.0 => Arg::Int(v.saturating_mul(a as i128)),
        (Arg::Int(v), Some(a)) => Arg::Float(v as f64 * a),
        (Arg::Bool(v), Some(a)) => Arg::Float(f64::from(v) * a),
        (Arg::Complex(re, im), Some(a)) => Arg::Complex(re * a, im * a),
    })
}
