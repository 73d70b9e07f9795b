//! New tensors: from data, constants, ranges, random numbers; and functions of several tensors that no method has.

use crate::buffer::Device;
use crate::dtype::DType;
use crate::error::Error;
use crate::ops::create::arange_length;
use crate::ops::view;
use crate::py::args::{Arg, AsTensor, Tensors, either, integers, run, shape, shape_from};
use crate::py::convert;
use crate::py::dtype::{optional_device, optional_dtype};
use crate::py::error::{type_error, value_error};
use crate::py::operators::binary_of;
use crate::py::tensor::{PyTensor, require_grad};
use crate::random;
use crate::shape::Shape;
use crate::tensor::Tensor;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

type Any<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// Dtype and device as given, or the defaults.
fn place(dtype: Any, device: Any) -> PyResult<(DType, Device)> {
    Ok((
        optional_dtype(dtype)?.unwrap_or(DType::F32),
        optional_device(device)?.unwrap_or_default(),
    ))
}

/// The result, as a leaf if asked.
fn made(t: Tensor, requires_grad: bool) -> PyResult<PyTensor> {
    Ok(PyTensor::from(if requires_grad {
        require_grad(&t)?
    } else {
        t
    }))
}

/// A tensor holding a copy of `data`: numbers, nested lists, arrays, tensors.
///
/// Args:
///     data: floats become float32, integers int64, truth values bool; arrays keep their dtype.
///     dtype: the dtype of the result.
///     device: where it lies; `"cpu"` by default.
///     requires_grad: whether gradients are recorded for it.
///
/// Example:
///     >>> wg.tensor([[1.0, 2.0], [3.0, 4.0]]).shape
///     (2, 2)
#[pyfunction]
#[pyo3(signature = (data, *, dtype=None, device=None, requires_grad=false))]
fn tensor(
    data: &Bound<'_, PyAny>,
    dtype: Any,
    device: Any,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    let t = convert::build(data, optional_dtype(dtype)?, optional_device(device)?, true)?;
    made(t, requires_grad)
}

/// `data` as a tensor, sharing memory with arrays and tensors where dtype and device allow; lists are copied.
#[pyfunction]
#[pyo3(signature = (data, dtype=None, device=None, *, copy=None))]
fn as_tensor<'py>(
    data: &Bound<'py, PyAny>,
    dtype: Any<'_, 'py>,
    device: Any<'_, 'py>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let copy = copy.unwrap_or(false);
    if data.is_instance_of::<PyTensor>() && dtype.is_none() && device.is_none() && !copy {
        return Ok(data.clone());
    }
    let t = convert::build(data, optional_dtype(dtype)?, optional_device(device)?, copy)?;
    Ok(Bound::new(data.py(), PyTensor::from(t))?.into_any())
}

macro_rules! filled {
    ($($(#[$doc:meta])* $name:ident $like:ident $value:literal;)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            #[pyo3(signature = (*size, dtype=None, device=None, requires_grad=false))]
            fn $name(size: &Bound<'_, PyTuple>, dtype: Any, device: Any, requires_grad: bool) -> PyResult<PyTensor> {
                let (dtype, device) = place(dtype, device)?;
                made(Tensor::full(shape(&integers(size)?)?, $value, dtype, device)?, requires_grad)
            }

            $(#[$doc])*
            /// Shape, dtype and device are those of `input` where they are not given.
            #[pyfunction]
            #[pyo3(signature = (input, *, dtype=None, device=None, requires_grad=false))]
            fn $like(input: AsTensor, dtype: Any, device: Any, requires_grad: bool) -> PyResult<PyTensor> {
                let a = input.0.aval();
                let dtype = optional_dtype(dtype)?.unwrap_or(a.dtype);
                let device = optional_device(device)?.unwrap_or(a.device);
                made(Tensor::full(a.shape, $value, dtype, device)?, requires_grad)
            }
        )*
    };
}

filled! {
    /// A tensor of zeros.
    zeros zeros_like 0.0;
    /// A tensor of ones.
    ones ones_like 1.0;
    /// A tensor whose values do not matter yet (they are 0).
    empty empty_like 0.0;
}

/// A tensor filled with `fill_value`, whose kind decides the dtype where none is given.
#[pyfunction]
#[pyo3(signature = (size, fill_value, *, dtype=None, device=None, requires_grad=false))]
fn full(
    size: &Bound<'_, PyAny>,
    fill_value: Arg,
    dtype: Any,
    device: Any,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    let device = optional_device(device)?.unwrap_or_default();
    let natural = match &fill_value {
        Arg::Bool(_) => DType::Bool,
        Arg::Int(_) => DType::I64,
        Arg::Float(_) => DType::F32,
        Arg::Tensor(t) => t.dtype(),
    };
    made(
        constant(
            &fill_value,
            shape_from(size)?,
            optional_dtype(dtype)?.unwrap_or(natural),
            device,
        )?,
        requires_grad,
    )
}

/// A tensor filled with `fill_value`; shape, dtype and device are those of `input` where they are not given.
#[pyfunction]
#[pyo3(signature = (input, fill_value, *, dtype=None, device=None, requires_grad=false))]
fn full_like(
    input: AsTensor,
    fill_value: Arg,
    dtype: Any,
    device: Any,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    let a = input.0.aval();
    let device = optional_device(device)?.unwrap_or(a.device);
    made(
        constant(
            &fill_value,
            a.shape,
            optional_dtype(dtype)?.unwrap_or(a.dtype),
            device,
        )?,
        requires_grad,
    )
}

fn constant(value: &Arg, shape: Shape, dtype: DType, device: Device) -> PyResult<Tensor> {
    Ok(match value {
        Arg::Tensor(t) => t.cast(dtype)?.to_device(device)?.expand(&shape)?.copied()?,
        // int64 holds integers that no float64 does.
        Arg::Int(v) if dtype == DType::I64 && device == Device::Cpu => {
            Tensor::from_slice(&[*v], &[])?.expand(&shape)?.copied()?
        }
        Arg::Int(v) => Tensor::full(shape, *v as f64, dtype, device)?,
        Arg::Float(v) => Tensor::full(shape, *v, dtype, device)?,
        Arg::Bool(v) => Tensor::full(shape, f64::from(*v), dtype, device)?,
    })
}

/// `start, start + step, ...` up to but without `end`. Integers give int64, floats float32.
#[pyfunction]
#[pyo3(signature = (start, end=None, step=None, *, dtype=None, device=None, requires_grad=false))]
fn arange(
    start: &Bound<'_, PyAny>,
    end: Any,
    step: Any,
    dtype: Any,
    device: Any,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    let number = |x: &Bound<'_, PyAny>| -> PyResult<(f64, bool)> {
        match Arg::from_any(x)? {
            Some(Arg::Float(v)) => Ok((v, true)),
            Some(Arg::Int(v)) => Ok((v as f64, false)),
            Some(Arg::Bool(v)) => Ok((f64::from(v), false)),
            Some(Arg::Tensor(t)) => Ok((t.item()?, t.dtype().is_float())),
            None => Err(type_error("arange: numbers expected")),
        }
    };
    let first = number(start)?;
    let (start, end) = match end {
        Some(end) => (first, number(end)?),
        None => ((0.0, false), first),
    };
    let step = step.map(number).transpose()?.unwrap_or((1.0, false));
    let natural = if start.1 || end.1 || step.1 {
        DType::F32
    } else {
        DType::I64
    };
    let device = optional_device(device)?.unwrap_or_default();
    let dtype = optional_dtype(dtype)?.unwrap_or(natural);
    let n = arange_length(start.0, end.0, step.0)?;
    made(
        Tensor::arange(start.0, step.0, n, dtype, device)?,
        requires_grad,
    )
}

/// `steps` numbers from `start` to `end`, both included, evenly spaced.
#[pyfunction]
#[pyo3(signature = (start, end, steps=100, *, dtype=None, device=None, requires_grad=false))]
fn linspace(
    start: f64,
    end: f64,
    steps: usize,
    dtype: Any,
    device: Any,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    let (dtype, device) = place(dtype, device)?;
    made(
        Tensor::linspace(start, end, steps, dtype, device)?,
        requires_grad,
    )
}

/// Ones on the diagonal of an `n` by `m` matrix, zeros elsewhere.
#[pyfunction]
#[pyo3(signature = (n, m=None, *, dtype=None, device=None, requires_grad=false))]
fn eye(
    n: usize,
    m: Option<usize>,
    dtype: Any,
    device: Any,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    let (dtype, device) = place(dtype, device)?;
    made(
        Tensor::eye(n, m.unwrap_or(n), dtype, device)?,
        requires_grad,
    )
}

macro_rules! random {
    ($($(#[$doc:meta])* $name:ident $like:ident;)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            #[pyo3(signature = (*size, dtype=None, device=None, requires_grad=false))]
            fn $name(py: Python<'_>, size: &Bound<'_, PyTuple>, dtype: Any, device: Any, requires_grad: bool) -> PyResult<PyTensor> {
                let (dtype, device) = place(dtype, device)?;
                let shape = shape(&integers(size)?)?;
                made(run(py, shape.numel(), || Tensor::$name(shape, dtype, device))?, requires_grad)
            }

            $(#[$doc])*
            /// Shape, dtype and device are those of `input` where they are not given.
            #[pyfunction]
            #[pyo3(signature = (input, *, dtype=None, device=None, requires_grad=false))]
            fn $like(input: AsTensor, dtype: Any, device: Any, requires_grad: bool) -> PyResult<PyTensor> {
                let a = input.0.aval();
                let dtype = optional_dtype(dtype)?.unwrap_or(a.dtype);
                let device = optional_device(device)?.unwrap_or(a.device);
                made(Tensor::$name(a.shape, dtype, device)?, requires_grad)
            }
        )*
    };
}

random! {
    /// Uniform random numbers on `[0, 1)`, from the default generator.
    rand rand_like;
    /// Standard normal random numbers, from the default generator.
    randn randn_like;
}

/// Uniform random integers in `[low, high)`: `randint(high, size)` or `randint(low, high, size)`.
#[pyfunction]
#[pyo3(signature = (low, high, size=None, *, dtype=None, device=None))]
fn randint(
    low: i64,
    high: &Bound<'_, PyAny>,
    size: Any,
    dtype: Any,
    device: Any,
) -> PyResult<PyTensor> {
    let (low, high, shape) = match size {
        Some(size) => (low, high.extract()?, shape_from(size)?),
        None => (0, low, shape_from(high)?),
    };
    let device = optional_device(device)?.unwrap_or_default();
    let natural = if device == Device::Cpu {
        DType::I64
    } else {
        DType::I32
    };
    let dtype = optional_dtype(dtype)?.unwrap_or(natural);
    made(Tensor::randint(low, high, shape, dtype, device)?, false)
}

/// The numbers `0..n` in random order.
#[pyfunction]
#[pyo3(signature = (n, *, device=None))]
fn randperm(n: usize, device: Any) -> PyResult<PyTensor> {
    made(
        Tensor::permutation(n, optional_device(device)?.unwrap_or_default())?,
        false,
    )
}

/// Normal random numbers; `mean` and `std` are numbers (then `size` is the shape) or tensors.
#[pyfunction]
#[pyo3(signature = (mean, std=None, size=None, *, dtype=None, device=None))]
fn normal(
    py: Python<'_>,
    mean: Arg,
    std: Option<Arg>,
    size: Any,
    dtype: Any,
    device: Any,
) -> PyResult<PyTensor> {
    let (dtype, device) = place(dtype, device)?;
    let std = std.unwrap_or(Arg::Float(1.0));
    let shape = match (size, &mean, &std) {
        (Some(size), _, _) => shape_from(size)?,
        (None, Arg::Tensor(m), Arg::Tensor(s)) => m
            .shape()
            .broadcast(&s.shape())
            .ok_or_else(|| value_error("normal: mean and std do not broadcast"))?,
        (None, Arg::Tensor(t), _) | (None, _, Arg::Tensor(t)) => t.shape(),
        _ => {
            return Err(type_error(
                "normal: give size where mean and std are numbers",
            ));
        }
    };
    let noise = Tensor::randn(shape, dtype, device)?;
    let scaled = binary_of(py, &noise, &std, crate::ops::binary::Binary::Mul, false)?;
    made(
        binary_of(py, &scaled, &mean, crate::ops::binary::Binary::Add, false)?,
        false,
    )
}

/// Starts the default random stream over with this seed; the same numbers follow on every device.
#[pyfunction]
fn manual_seed(seed: i64) {
    random::manual_seed(seed as u64);
}

/// Seed and position of the default random stream.
#[pyfunction]
fn get_rng_state() -> (u64, u64) {
    let s = random::state();
    (s.seed, s.offset)
}

/// Puts the default random stream where `get_rng_state` found it.
#[pyfunction]
fn set_rng_state(state: (u64, u64)) {
    random::set_state(random::State {
        seed: state.0,
        offset: state.1,
    });
}

/// Tensors joined along an existing axis; all other axes must agree.
#[pyfunction]
#[pyo3(signature = (tensors, dim=0, *, axis=None))]
fn cat(py: Python<'_>, tensors: Tensors, dim: i64, axis: Option<i64>) -> PyResult<PyTensor> {
    let elements = tensors.0.iter().map(Tensor::numel).sum();
    run(py, elements, || {
        view::cat(&tensors.0, either(Some(dim), axis, 0))
    })
    .map(PyTensor::from)
}

/// Tensors of one shape joined along a new axis.
#[pyfunction]
#[pyo3(signature = (tensors, dim=0, *, axis=None))]
fn stack(py: Python<'_>, tensors: Tensors, dim: i64, axis: Option<i64>) -> PyResult<PyTensor> {
    let elements = tensors.0.iter().map(Tensor::numel).sum();
    run(py, elements, || {
        view::stack(&tensors.0, either(Some(dim), axis, 0))
    })
    .map(PyTensor::from)
}

/// `input` where `condition` holds, `other` elsewhere; all broadcast. No gradient flows through what is not picked, so
/// `where(x > 0, sqrt(x), x)` has a finite gradient everywhere. With the condition alone: positions of true elements.
#[pyfunction]
#[pyo3(name = "where", signature = (condition, input=None, other=None))]
fn where_<'py>(
    py: Python<'py>,
    condition: AsTensor,
    input: Option<Arg>,
    other: Option<Arg>,
) -> PyResult<Bound<'py, PyAny>> {
    let mask = &condition.0;
    match (input, other) {
        (Some(x), Some(y)) => {
            let elements = mask.numel().max(x.numel()).max(y.numel());
            let out = run(py, elements, || mask.select(x.operand(), y.operand()))?;
            Ok(Bound::new(py, PyTensor::from(out))?.into_any())
        }
        (None, None) => {
            let t = Bound::new(py, PyTensor::from(mask.clone()))?;
            let kwargs = pyo3::types::PyDict::new(py);
            kwargs.set_item("as_tuple", true)?;
            t.call_method("nonzero", (), Some(&kwargs))
        }
        _ => Err(type_error("where: give both values, or only the condition")),
    }
}

/// The tensor with `pad` elements of `value` around its axes. `pad` counts from the last axis: (left, right, top, ...).
#[pyfunction]
#[pyo3(signature = (input, pad, value=0.0))]
fn _pad(py: Python<'_>, input: AsTensor, pad: Vec<i64>, value: f64) -> PyResult<PyTensor> {
    let rank = input.0.rank();
    if !pad.len().is_multiple_of(2) || pad.len() / 2 > rank {
        return Err(Error::value(format!(
            "pad: an even number of widths for at most {rank} axes expected, got {}",
            pad.len()
        ))
        .into());
    }
    let mut widths = vec![(0, 0); rank];
    for (i, pair) in pad.chunks_exact(2).enumerate() {
        widths[rank - 1 - i] = (pair[0], pair[1]);
    }
    run(py, input.0.numel(), || input.0.pad(&widths, value)).map(PyTensor::from)
}

/// The dtype of an operation on these two.
#[pyfunction]
fn result_type(a: Arg, b: Arg) -> PyResult<crate::py::dtype::PyDType> {
    let dtype = match (&a, &b) {
        (Arg::Tensor(t), other) | (other, Arg::Tensor(t)) => other.operand().result_type(t),
        _ => {
            return Err(type_error(
                "result_type: a tensor expected among the operands",
            ));
        }
    };
    Ok(crate::py::dtype::PyDType { dtype })
}

/// Registers the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    macro_rules! add {
        ($($name:ident),* $(,)?) => { $(m.add_function(wrap_pyfunction!($name, m)?)?;)* };
    }
    add!(
        tensor, as_tensor, zeros, zeros_like, ones, ones_like, empty, empty_like, full, full_like
    );
    add!(
        arange, linspace, eye, rand, rand_like, randn, randn_like, randint, randperm, normal
    );
    add!(
        manual_seed,
        get_rng_state,
        set_rng_state,
        cat,
        stack,
        where_,
        _pad,
        result_type
    );
    Ok(())
}
