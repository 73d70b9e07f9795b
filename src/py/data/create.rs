//! Functions that create tensors from data and constants; `src/py/data/ranges.rs` has the ranges.

use crate::array::defaults;
use crate::ops::reduce::index_type;
use crate::py::args::{count, integers, shape, shape_from};
use crate::py::data::convert;
use crate::py::data::dtype::{device_of, device_or_default, optional_device, optional_dtype};
use crate::py::data::layout::Format;
use crate::py::prelude::*;
use crate::py::tensor::options::starred;
use crate::py::tensor::{object, require_grad};

/// An optional Python argument.
pub type Any<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// Returns dtype and device as given, or the defaults.
pub fn place(dtype: Any, device: Any) -> PyResult<(DType, Device)> {
    Ok((optional_dtype(dtype)?.unwrap_or_else(defaults::float), device_or_default(device)?))
}

/// [`place`], where `x` gives the defaults.
pub fn place_beside(x: &Tensor, dtype: Any, device: Any) -> PyResult<(DType, Device)> {
    Ok((optional_dtype(dtype)?.unwrap_or(x.dtype()), optional_device(device)?.unwrap_or(x.device())))
}

/// The device of `data` that become a tensor: the given one, or what `set_default_device` chose for all but a
/// tensor, which stays where it lies.
fn device_of_data(data: &Bound<'_, PyAny>, device: Any) -> PyResult<Option<Device>> {
    match device {
        None if data.is_instance_of::<PyTensor>() => Ok(None),
        None => Ok(defaults::chosen_device()),
        Some(device) => device_of(device).map(Some),
    }
}

/// Returns the result as an object, as a leaf if `requires_grad`.
pub fn made(t: Tensor, requires_grad: bool) -> PyResult<PyTensor> {
    Ok(PyTensor::from(if requires_grad { require_grad(&t)? } else { t }))
}

/// Makes a tensor of a copy of `data`: numbers, nested lists, arrays, tensors.
///
/// Args:
///     data: floats become float32 (what `set_default_dtype` says), integers int64, bools bool; arrays keep
///         their dtype.
///     dtype: the dtype of the result.
///     device: where it lies; `"cpu"` by default, or what `set_default_device` says.
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
    let t = convert::build(data, optional_dtype(dtype)?, device_of_data(data, device)?, true)?;
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
    let device = device_of_data(data, device)?;
    if data.is_instance_of::<PyTensor>() && dtype.is_none() && device.is_none() && !copy {
        return Ok(data.clone());
    }
    let t = convert::build(data, optional_dtype(dtype)?, device, copy)?;
    object(data.py(), t)
}

/// Makes a tensor of anything that is one, an array, or nested lists of numbers; shares memory where it can.
///
/// Args:
///     copy: True always copies, False raises where a copy would be needed.
#[pyfunction]
#[pyo3(signature = (obj, *, dtype=None, device=None, copy=None, requires_grad=false))]
fn asarray<'py>(
    obj: &Bound<'py, PyAny>, dtype: Any<'_, 'py>, device: Any<'_, 'py>, copy: Option<bool>,
    requires_grad: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let out = as_tensor(obj, dtype, device, copy)?;
    if !requires_grad {
        return Ok(out);
    }
    object(obj.py(), require_grad(&out.extract::<Tensor>()?.detach())?)
}

/// Makes a number a 0-d tensor, of the default dtype unless told otherwise.
#[pyfunction]
#[pyo3(signature = (s, *, dtype=None, device=None, requires_grad=false))]
fn scalar_tensor(s: &Bound<'_, PyAny>, dtype: Any, device: Any, requires_grad: bool) -> PyResult<PyTensor> {
    let dtype = optional_dtype(dtype)?.unwrap_or_else(defaults::float);
    made(convert::build(s, Some(dtype), device_of_data(s, device)?, true)?, requires_grad)
}

/// Functions that make a tensor of a shape, given by its lengths or by another tensor. In front may stand, in
/// brackets, an argument of all of them and their signatures with it.
macro_rules! of_shape {
    ($(#[$doc:meta])* $name:ident $($rest:tt)*) => {
        $crate::py::data::create::of_shape! {
            [
                "(*size, out=None, dtype=None, device=None, requires_grad=False)"
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
            signature = (
                *args, size=None, $($more=$default,)? out=None, dtype=None, device=None, requires_grad=false
            ),
            text_signature = $text
        )]
        #[allow(clippy::too_many_arguments)]
        fn $name<'py>(
            py: Python<'py>,
            args: &Bound<'py, PyTuple>,
            size: Any<'_, 'py>,
            $($more: $type,)?
            out: $crate::py::data::out::Out<'py>,
            dtype: Any<'_, 'py>,
            device: Any<'_, 'py>,
            requires_grad: bool,
        ) -> PyResult<Bound<'py, PyTensor>> {
            let (dtype, device) = $crate::py::data::out::place_in(&out, dtype, device)?;
            let size = starred(stringify!($name), args, [("size", size)])?;
            let t = $make(py, shape(&integers(&size)?)?, dtype, device $(, $more)?)?;
            $crate::py::data::out::stored(py, stringify!($name), t, requires_grad, out)
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
    let device = device_or_default(device)?;
    let natural = match &fill_value {
        Arg::Bool(_) => DType::Bool,
        Arg::Int(_) => index_type(device),
        Arg::Float(_) => defaults::float(),
        Arg::Complex(..) => defaults::float().complex(),
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
pub fn constant(name: &str, value: &Arg, shape: Shape, dtype: DType, device: Device) -> PyResult<Tensor> {
    Ok(match value {
        Arg::Tensor(t) => t.cast(dtype)?.to_device(device)?.expand(&shape).named(name)?.copied()?,
        Arg::Int(v) => {
            dtype.check_fits(*v).named(name)?;
            if dtype.is_integer() && (device == Device::Cpu || v.unsigned_abs() > 1 << 53) {
                let number = Tensor::integer(*v as i64, dtype)?.to_device(device)?;
                return Ok(number.expand(&shape)?.copied()?);
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
        full_like, eye, asarray, scalar_tensor
}
