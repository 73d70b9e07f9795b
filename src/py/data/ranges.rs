//! Functions that make ranges of numbers.

use crate::array::defaults;
use crate::ops::create::arange_length;
use crate::ops::pointwise::binary::Binary;
use crate::ops::pointwise::operand::{Operand, binary};
use crate::ops::reduce::index_type;
use crate::py::args::{count, too_large};
use crate::py::autograd::staging;
use crate::py::data::create::{Any, made};
use crate::py::data::dtype::{device_or_default, optional_dtype};
use crate::py::prelude::*;
use pyo3::exceptions::PyTypeError;

/// Returns an integer range in which a bound or the step is not exact in float64; `None` for any other range.
fn large_range(start: i64, end: i64, step: i64) -> Result<Option<Tensor>> {
    let large = |v: i64| v.unsigned_abs() > 1 << f64::MANTISSA_DIGITS;
    if step == 0 || ![start, end, step].into_iter().any(large) {
        return Ok(None);
    }
    let distance = (end as i128 - start as i128) * step.signum() as i128;
    if distance < 0 {
        return Ok(None);
    }
    let length = (distance + step.unsigned_abs() as i128 - 1) / step.unsigned_abs() as i128;
    let n = usize::try_from(length).unwrap_or(usize::MAX);
    let places = Tensor::arange(0.0, 1.0, n, DType::I64, Device::Cpu)?;
    Ok(Some(places.mul(step)?.add(start)?))
}

/// Returns the dtype of a range; bool is an error.
fn numbers(name: &str, dtype: DType) -> PyResult<DType> {
    if dtype == DType::Bool {
        return Err(type_error(format!(
            "{name}: a dtype of numbers expected, got bool; convert with .bool()"
        )));
    }
    Ok(dtype)
}

/// Truncates a bound or the step of an integer range to its integer part.
fn whole_if(dtype: DType, value: f64) -> f64 {
    if dtype.is_integer() { value.trunc() } else { value }
}

/// Returns `start, start + step, ...` up to but without `end`. Integers give int64, floats float32 (what
/// `set_default_dtype` says).
#[pyfunction]
#[pyo3(
    signature = (start=None, end=None, step=None, *, dtype=None, device=None, requires_grad=false),
    text_signature = "(start, end=None, step=None, *, dtype=None, device=None, requires_grad=False)"
)]
fn arange(
    start: Any, end: Any, step: Any, dtype: Any, device: Any, requires_grad: bool,
) -> PyResult<PyTensor> {
    let number = |x: &Bound<'_, PyAny>| -> PyResult<(f64, Option<i64>)> {
        match Arg::from_any(x)? {
            Some(Arg::Float(v)) => Ok((v, None)),
            Some(Arg::Int(v)) => Ok((v as f64, Some(i64::try_from(v).map_err(|_| too_large(v))?))),
            Some(Arg::Bool(v)) => Ok((f64::from(v), Some(i64::from(v)))),
            Some(Arg::Tensor(t)) => {
                staging::left("arange", &t)?;
                let value = t.item()?;
                Ok((value, (!t.dtype().is_float()).then_some(value as i64)))
            }
            Some(Arg::Complex(..)) | None => Err(type_error("arange: real numbers expected")),
        }
    };
    let (start, end) = match (start, end) {
        (Some(start), Some(end)) => (number(start)?, number(end)?),
        (Some(end), None) | (None, Some(end)) => ((0.0, Some(0)), number(end)?),
        (None, None) => return Err(type_error("arange() missing 1 required positional argument: 'end'")),
    };
    let step = step.map(number).transpose()?.unwrap_or((1.0, Some(1)));
    let whole = start.1.zip(end.1).zip(step.1);
    let device = device_or_default(device)?;
    let natural = if whole.is_none() { defaults::float() } else { index_type(device) };
    let dtype = numbers("arange", optional_dtype(dtype)?.unwrap_or(natural))?;
    if dtype.is_complex() {
        return Err(type_error(format!(
            "arange: a dtype of real numbers expected, got {dtype}; convert with .to()"
        )));
    }
    if let (Some(((start, end), step)), DType::I64, Device::Cpu) = (whole, dtype, device)
        && let Some(t) = large_range(start, end, step)?
    {
        return made(t, requires_grad);
    }
    let n = arange_length(start.0, end.0, step.0)?;
    let (start, step) = (whole_if(dtype, start.0), whole_if(dtype, step.0));
    made(Tensor::arange(start, step, n, dtype, device)?, requires_grad)
}

/// Whether an end of a range is a number, or a tensor of one that nothing is differentiated by.
fn is_known(end: &Bound<'_, PyAny>) -> PyResult<bool> {
    if !end.is_instance_of::<PyTensor>() {
        return Ok(true);
    }
    if end.getattr("requires_grad")?.is_truthy()? {
        return Ok(false);
    }
    match end.call_method0("item") {
        Ok(_) => Ok(true),
        Err(error) if error.is_instance_of::<PyTypeError>(end.py()) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A range as a function of both ends, of which one at least is a tensor.
fn between(start: &Arg, end: &Arg, ramp: &Tensor) -> Result<Tensor> {
    let nearer = ramp.real()?.lt(0.5)?;
    let step = binary(Binary::Sub, end.operand(), start.operand())?;
    let rest = binary(Binary::Sub, Operand::Int(1), ramp.into())?;
    let front = binary(Binary::Add, start.operand(), (&step.mul(ramp)?).into())?;
    let back = binary(Binary::Sub, end.operand(), (&step.mul(&rest)?).into())?;
    // From the nearer end, so that both are met exactly.
    nearer.select(&front, &back)
}

/// Returns `steps` numbers from `start` to `end`, both included, evenly spaced.
///
/// Args:
///     start, end: numbers, or tensors without axes, which the result is a function of where they are
///         recorded or belong to a transform. For a dtype of integers they lose their fractions, and so do
///         the numbers.
///
/// Raises:
///     TypeError: for the dtype bool.
#[pyfunction]
#[pyo3(signature = (start, end, steps=100, *, dtype=None, device=None, requires_grad=false))]
fn linspace(
    start: &Bound<'_, PyAny>, end: &Bound<'_, PyAny>, #[pyo3(from_py_with = whole)] steps: i64, dtype: Any,
    device: Any, requires_grad: bool,
) -> PyResult<PyTensor> {
    let is_known = is_known(start)? && is_known(end)?;
    let bound = |name: &str, bound: &Bound<'_, PyAny>| {
        // A fraction of Python's is a number, too.
        bound.extract().or_else(|_| bound.extract().map(Arg::Float)).map_err(|_| {
            let given = bound.get_type();
            type_error(format!("linspace: {name} is a number or a tensor without axes, got {given}"))
        })
    };
    let bounds = [bound("start", start)?, bound("end", end)?];
    let is_complex = bounds.iter().any(|bound| match bound {
        Arg::Tensor(t) => t.dtype().is_complex(),
        bound => matches!(bound, Arg::Complex(..)),
    });
    let natural = if is_complex { defaults::float().complex() } else { defaults::float() };
    let dtype = numbers("linspace", optional_dtype(dtype)?.unwrap_or(natural))?;
    if is_complex && !dtype.is_complex() {
        return Err(type_error(format!("linspace: complex bounds for a dtype of {dtype}; give their .real")));
    }
    let (device, steps) = (device_or_default(device)?, count("linspace: steps", steps)?);
    // A ramp of complex numbers is one of real ones.
    let ramp = |start, end| Tensor::linspace(start, end, steps, dtype.real(), device)?.cast(dtype);
    if is_known && !is_complex {
        let [start, end] = [start.extract()?, end.extract()?].map(|v| whole_if(dtype, v));
        return made(ramp(start, end)?, requires_grad);
    }
    let ramp = ramp(0.0, 1.0)?;
    let operand = |bound: Arg| match bound {
        Arg::Tensor(t) => Ok(Arg::Tensor(t.cast(dtype)?)),
        // A tensor, as two numbers are no operands.
        bound if is_known => {
            Ok(Arg::Tensor(Tensor::zeros(Shape::SCALAR, dtype, device)?.add(bound.operand())?))
        }
        bound => Ok::<_, Error>(bound),
    };
    let [start, end] = bounds;
    let y = between(&operand(start)?, &operand(end)?, &ramp).named("linspace")?;
    if is_known { made(y, requires_grad) } else { Ok(y.into()) }
}

exports! { functions: arange, linspace }
