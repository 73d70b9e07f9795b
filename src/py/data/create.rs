//! Functions that create tensors: from data, constants and ranges.

use crate::ops::create::arange_length;
use crate::py::args::{count, integers, shape, shape_from, too_large};
use crate::py::data::convert;
use crate::py::data::dtype::{optional_device, optional_dtype};
use crate::py::data::layout::Format;
use crate::py::prelude::*;
use crate::py::tensor::options::starred;
use crate::py::tensor::{object, require_grad};

/// An optional Python argument.
pub type Any<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// Returns dtype and device as given, or the defaults.
pub fn place(dtype: Any, device: Any) -> PyResult<(DType, Device)> {
    Ok((optional_dtype(dtype)?.unwrap_or(DType::F32), optional_device(device)?.unwrap_or_default()))
}

/// [`place`], where `x` gives the defaults.
pub fn place_beside(x: &Tensor, dtype: Any, device: Any) -> PyResult<(DType, Device)> {
    Ok((optional_dtype(dtype)?.unwrap_or(x.dtype()), optional_device(device)?.unwrap_or(x.device())))
}

/// The dtype of Python integers: int64, or int32 on GPUs, which have no int64.
pub fn integer(device: Device) -> DType {
    if device == Device::Cpu { DType::I64 } else { DType::I32 }
}

/// Returns the result as an object, as a leaf if `requires_grad`.
pub fn made(t: Tensor, requires_grad: bool) -> PyResult<PyTensor> {
    Ok(PyTensor::from(if requires_grad { require_grad(&t)? } else { t }))
}

/// Makes a tensor of a copy of `data`: numbers, nested lists, arrays, tensors.
///
/// Args:
///     data: floats become float32, integers int64, bools bool; arrays keep their dtype.
///     dtype: the dtype of the result.
///     device: where it lies; `"cpu"` by default.
///     requires_grad: whether gradients are recorded for it.
///
/// Returns:
///     A new tensor: no later change of `data` shows in it.
///
/// Raises:
///     ValueError: for nested lists of different lengths.
///     TypeError: for what is no number, and for integers that do not fit the dtype.
///
/// Example:
///     >>> wg.tensor([[1.0, 2.0], [3.0, 4.0]]).shape
///     (2, 2)
#[pyfunction]
#[pyo3(signature = (data, *, dtype=None, device=None, requires_grad=false))]
fn tensor(data: &Bound<'_, PyAny>, dtype: Any, device: Any, requires_grad: bool) -> PyResult<PyTensor> {
    let t = convert::build(data, optional_dtype(dtype)?, optional_device(device)?, true)?;
    made(t, requires_grad)
}

/// Returns `data` as a tensor that shares memory with arrays and tensors where dtype and device allow; lists
/// are copied.
#[pyfunction]
#[pyo3(signature = (data, dtype=None, device=None, *, copy=None))]
fn as_tensor<'py>(
    data: &Bound<'py, PyAny>, dtype: Any<'_, 'py>, device: Any<'_, 'py>, copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let copy = copy.unwrap_or(false);
    if data.is_instance_of::<PyTensor>() && dtype.is_none() && device.is_none() && !copy {
        return Ok(data.clone());
    }
    let t = convert::build(data, optional_dtype(dtype)?, optional_device(device)?, copy)?;
    object(data.py(), t)
}

/// Functions that make a tensor of a shape, given by its lengths or by another tensor. In front may stand, in
/// brackets, an argument of all of them and their signatures with it.
macro_rules! of_shape {
    ($(#[$doc:meta])* $name:ident $($rest:tt)*) => {
        $crate::py::data::create::of_shape! {
            [
                "(*size, dtype=None, device=None, requires_grad=False)"
                "(input, *, dtype=None, device=None, requires_grad=False, memory_format=None)"
            ]
            $(#[$doc])* $name $($rest)*
        }
    };
    ($more:tt $($(#[$doc:meta])* $name:ident $like:ident = $make:expr;)*) => {
        $($crate::py::data::create::of_shape! { @one $more $(#[$doc])* $name $like = $make; })*
    };
    (@one [$($more:ident: $type:ty = $default:expr;)? $text:literal $like_text:literal]
        $(#[$doc:meta])* $name:ident $like:ident = $make:expr;) => {
        $(#[$doc])*
        #[pyfunction]
        #[pyo3(
            signature = (*args, size=None, $($more=$default,)? dtype=None, device=None, requires_grad=false),
            text_signature = $text
        )]
        fn $name<'py>(
            py: Python<'py>,
            args: &Bound<'py, PyTuple>,
            size: Any<'_, 'py>,
            $($more: $type,)?
            dtype: Any<'_, 'py>,
            device: Any<'_, 'py>,
            requires_grad: bool,
        ) -> PyResult<PyTensor> {
            let (dtype, device) = place(dtype, device)?;
            let size = starred(stringify!($name), args, [("size", size)])?;
            made($make(py, shape(&integers(&size)?)?, dtype, device $(, $more)?)?, requires_grad)
        }

        $(#[$doc])*
        /// Takes shape, dtype and device of `input` where they are not given; `memory_format` changes
        /// nothing.
        #[pyfunction]
        #[pyo3(
            signature = (
                input, *, $($more=$default,)? dtype=None, device=None, requires_grad=false, memory_format=None
            ),
            text_signature = $like_text
        )]
        #[allow(clippy::too_many_arguments)]
        fn $like(
            py: Python<'_>,
            input: AsTensor,
            $($more: $type,)?
            dtype: Any,
            device: Any,
            requires_grad: bool,
            memory_format: Option<Format>,
        ) -> PyResult<PyTensor> {
            let _ = memory_format;
            let (dtype, device) = place_beside(&input.0, dtype, device)?;
            made($make(py, input.0.shape(), dtype, device $(, $more)?)?, requires_grad)
        }
    };
}

pub(crate) use of_shape;

fn filled(value: f64) -> impl Fn(Python<'_>, Shape, DType, Device) -> Result<Tensor> {
    move |_, shape, dtype, device| Tensor::full(shape, value, dtype, device)
}

of_shape! {
    /// Makes a tensor of zeros.
    zeros zeros_like = filled(0.0);
    /// Makes a tensor of ones.
    ones ones_like = filled(1.0);
    /// Makes a tensor whose values do not matter yet (they are 0).
    empty empty_like = filled(0.0);
}

/// Methods that make a tensor of a shape, of the dtype and on the device of this one where they are not
/// given.
macro_rules! beside {
    ($($(#[$doc:meta])* $name:ident = $make:expr;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                $(#[$doc])*
                #[pyo3(
                    signature = (*args, size=None, dtype=None, device=None, requires_grad=false),
                    text_signature = "($self, *size, dtype=None, device=None, requires_grad=False)"
                )]
                fn $name<'py>(
                    &self,
                    args: &Bound<'py, PyTuple>,
                    size: Any<'_, 'py>,
                    dtype: Any<'_, 'py>,
                    device: Any<'_, 'py>,
                    requires_grad: bool,
                ) -> PyResult<PyTensor> {
                    let (dtype, device) = place_beside(&*self.value()?, dtype, device)?;
                    let size = starred(stringify!($name), args, [("size", size)])?;
                    made($make(args.py(), shape(&integers(&size)?)?, dtype, device)?, requires_grad)
                }
            )*
        }
    };
}

beside! {
    /// Makes a tensor of zeros, of the dtype and on the device of this one where they are not given.
    new_zeros = filled(0.0);
    /// Makes a tensor of ones, of the dtype and on the device of this one where they are not given.
    new_ones = filled(1.0);
    /// Makes a tensor whose values do not matter yet, of the dtype and on the device of this one where they
    /// are not given.
    new_empty = filled(0.0);
}

/// Makes a tensor filled with `fill_value`, whose kind decides the dtype where none is given.
#[pyfunction]
#[pyo3(signature = (size, fill_value, *, dtype=None, device=None, requires_grad=false))]
fn full(
    size: &Bound<'_, PyAny>, fill_value: Arg, dtype: Any, device: Any, requires_grad: bool,
) -> PyResult<PyTensor> {
    let device = optional_device(device)?.unwrap_or_default();
    let natural = match &fill_value {
        Arg::Bool(_) => DType::Bool,
        Arg::Int(_) => integer(device),
        Arg::Float(_) => DType::F32,
        Arg::Complex(..) => DType::C64,
        Arg::Tensor(t) => t.dtype(),
    };
    let dtype = optional_dtype(dtype)?.unwrap_or(natural);
    made(constant("full", &fill_value, shape_from(size)?, dtype, device)?, requires_grad)
}

/// Makes a tensor filled with `fill_value`; shape, dtype and device are those of `input` where they are not
/// given. `memory_format` changes nothing.
#[pyfunction]
#[pyo3(
    signature = (input, fill_value, *, dtype=None, device=None, requires_grad=false, memory_format=None)
)]
fn full_like(
    input: AsTensor, fill_value: Arg, dtype: Any, device: Any, requires_grad: bool,
    memory_format: Option<Format>,
) -> PyResult<PyTensor> {
    let _ = memory_format;
    let (dtype, device) = place_beside(&input.0, dtype, device)?;
    made(constant("full_like", &fill_value, input.0.shape(), dtype, device)?, requires_grad)
}

#[pymethods]
impl PyTensor {
    /// Makes a tensor filled with `fill_value`, of the dtype and on the device of this one where they are not
    /// given.
    #[pyo3(signature = (size, fill_value, *, dtype=None, device=None, requires_grad=false))]
    fn new_full(
        &self, size: &Bound<'_, PyAny>, fill_value: Arg, dtype: Any, device: Any, requires_grad: bool,
    ) -> PyResult<PyTensor> {
        let (dtype, device) = place_beside(&*self.value()?, dtype, device)?;
        made(constant("new_full", &fill_value, shape_from(size)?, dtype, device)?, requires_grad)
    }

    /// Makes a copy of `data`, of the dtype and on the device of this tensor where they are not given.
    #[pyo3(signature = (data, *, dtype=None, device=None, requires_grad=false))]
    fn new_tensor(
        &self, data: &Bound<'_, PyAny>, dtype: Any, device: Any, requires_grad: bool,
    ) -> PyResult<PyTensor> {
        let (dtype, device) = place_beside(&*self.value()?, dtype, device)?;
        made(convert::build(data, Some(dtype), Some(device), true)?.detach(), requires_grad)
    }
}

/// Returns a tensor filled with `value`, on behalf of the function `name`.
fn constant(name: &str, value: &Arg, shape: Shape, dtype: DType, device: Device) -> PyResult<Tensor> {
    Ok(match value {
        Arg::Tensor(t) => t.cast(dtype)?.to_device(device)?.expand(&shape).named(name)?.copied()?,
        Arg::Int(v) => {
            dtype.check_fits(*v).named(name)?;
            if dtype.is_integer() && device == Device::Cpu {
                return Ok(Tensor::integer(*v as i64, dtype)?.expand(&shape)?.copied()?);
            }
            Tensor::full(shape, *v as f64, dtype, device)?
        }
        Arg::Float(v) => {
            dtype.check_fits_float(*v).named(name)?;
            Tensor::full(shape, *v, dtype, device)?
        }
        Arg::Bool(v) => Tensor::full(shape, f64::from(*v), dtype, device)?,
        Arg::Complex(..) if !dtype.is_complex() => {
            return Err(type_error(format!(
                "{name}: a complex number does not fit into {dtype}; use dtype=complex64"
            )));
        }
        Arg::Complex(re, im) => {
            let part = |v: f64| Tensor::scalar(v, dtype.real(), device);
            crate::ops::complex::join(&part(*re)?, &part(*im)?)?.expand(&shape)?.copied()?
        }
    })
}

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

/// Returns `start, start + step, ...` up to but without `end`. Integers give int64, floats float32.
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
            Some(Arg::Tensor(t)) if t.dtype().is_float() => Ok((t.item()?, None)),
            Some(Arg::Tensor(t)) => t.item().map(|v| (v, Some(v as i64))).map_err(PyErr::from),
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
    let device = optional_device(device)?.unwrap_or_default();
    let natural = if whole.is_none() { DType::F32 } else { integer(device) };
    let dtype = numbers("arange", optional_dtype(dtype)?.unwrap_or(natural))?;
    if let (Some(((start, end), step)), DType::I64, Device::Cpu) = (whole, dtype, device)
        && let Some(t) = large_range(start, end, step)?
    {
        return made(t, requires_grad);
    }
    let n = arange_length(start.0, end.0, step.0)?;
    let (start, step) = (whole_if(dtype, start.0), whole_if(dtype, step.0));
    made(Tensor::arange(start, step, n, dtype, device)?, requires_grad)
}

/// Returns `steps` numbers from `start` to `end`, both included, evenly spaced.
#[pyfunction]
#[pyo3(signature = (start, end, steps=100, *, dtype=None, device=None, requires_grad=false))]
fn linspace(
    start: f64, end: f64, #[pyo3(from_py_with = whole)] steps: i64, dtype: Any, device: Any,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    let (dtype, device) = place(dtype, device)?;
    let dtype = numbers("linspace", dtype)?;
    let [start, end] = [start, end].map(|v| whole_if(dtype, v));
    made(Tensor::linspace(start, end, count("linspace: steps", steps)?, dtype, device)?, requires_grad)
}

/// Makes an `n` by `m` matrix with ones on the diagonal and zeros elsewhere.
#[pyfunction]
#[pyo3(signature = (n, m=None, *, dtype=None, device=None, requires_grad=false))]
fn eye(n: Whole, m: Option<Whole>, dtype: Any, device: Any, requires_grad: bool) -> PyResult<PyTensor> {
    let (dtype, device) = place(dtype, device)?;
    let (rows, columns) = (count("eye: n", n.0)?, count("eye: m", m.unwrap_or(n).0)?);
    made(Tensor::eye(rows, columns, dtype, device)?, requires_grad)
}

exports! {
    functions: tensor, as_tensor, zeros, zeros_like, ones, ones_like, empty, empty_like, full,
        full_like, arange, linspace, eye
}
