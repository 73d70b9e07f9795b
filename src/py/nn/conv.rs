//! Convolution and pooling behind `wengert.nn.functional`; the Python functions document them.

use crate::ops::contract::convolve::{ConvOptions, Padding};
use crate::ops::contract::patches::PatchOptions;
use crate::ops::contract::pool::PoolOptions;
use crate::py::args::{Whole, integer, listed, optional_whole, run, unless_value, unwrapped, whole};
use crate::py::error::type_error;
use crate::py::tensor::PyTensor;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

type Given<'py> = Option<PyRef<'py, PyTensor>>;

/// One integer or several.
struct Numbers(Vec<i64>);

impl<'a, 'py> FromPyObject<'a, 'py> for Numbers {
    type Error = PyErr;

    fn extract(obj: Borrowed<'a, 'py, PyAny>) -> PyResult<Numbers> {
        if obj.is_instance_of::<PyInt>() {
            return Ok(Numbers(vec![integer(&obj)?]));
        }
        if let Ok(n) = obj.extract::<i64>() {
            return Ok(Numbers(vec![n]));
        }
        listed(&obj).map(|many| Numbers(unwrapped(many))).map_err(|error| {
            unless_value(error, &obj, || {
                let given = obj.get_type().name().map_or_else(|_| "an object".into(), |n| n.to_string());
                type_error(format!("an integer, or one for each spatial axis, expected, got {given}"))
            })
        })
    }
}

/// Padding: numbers, "same" or "valid".
struct Pads(Padding);

impl<'a, 'py> FromPyObject<'a, 'py> for Pads {
    type Error = PyErr;

    fn extract(obj: Borrowed<'a, 'py, PyAny>) -> PyResult<Pads> {
        match obj.cast::<PyString>() {
            Ok(name) => match &*name.to_string_lossy() {
                "same" => Ok(Pads(Padding::Same)),
                "valid" => Ok(Pads(Padding::Widths(vec![0]))),
                other => Err(crate::py::error::value_error(format!(
                    "padding is a number, one for each spatial axis, 'same' or 'valid', got '{other}'"
                ))),
            },
            Err(_) => obj.extract::<Numbers>().map(|n| Pads(Padding::Widths(n.0))),
        }
    }
}

/// Convolution over the last `rank` axes.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "as many as PyTorch's function has")]
fn _conv(
    py: Python<'_>,
    rank: usize,
    input: PyRef<'_, PyTensor>,
    weight: PyRef<'_, PyTensor>,
    bias: Given<'_>,
    stride: Numbers,
    padding: Pads,
    dilation: Numbers,
    #[pyo3(from_py_with = whole)] groups: i64,
) -> PyResult<PyTensor> {
    let (x, w) = (input.value()?.into_owned(), weight.value()?.into_owned());
    let bias = bias.as_ref().map(|b| b.value().map(|b| b.into_owned())).transpose()?;
    let options = ConvOptions {
        rank,
        stride: stride.0,
        padding: padding.0,
        output_padding: vec![0],
        dilation: dilation.0,
        groups,
    };
    let work = x.numel().saturating_mul(w.numel());
    run(py, work, || x.conv(&w, bias.as_ref(), &options)).map(PyTensor::from)
}

/// Transposed convolution over the last `rank` axes.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "as many as PyTorch's function has")]
fn _conv_transpose(
    py: Python<'_>,
    rank: usize,
    input: PyRef<'_, PyTensor>,
    weight: PyRef<'_, PyTensor>,
    bias: Given<'_>,
    stride: Numbers,
    padding: Numbers,
    output_padding: Numbers,
    #[pyo3(from_py_with = whole)] groups: i64,
    dilation: Numbers,
) -> PyResult<PyTensor> {
    let (x, w) = (input.value()?.into_owned(), weight.value()?.into_owned());
    let bias = bias.as_ref().map(|b| b.value().map(|b| b.into_owned())).transpose()?;
    let options = ConvOptions {
        rank,
        stride: stride.0,
        padding: Padding::Widths(padding.0),
        output_padding: output_padding.0,
        dilation: dilation.0,
        groups,
    };
    let work = x.numel().saturating_mul(w.numel());
    run(py, work, || x.conv_transpose(&w, bias.as_ref(), &options)).map(PyTensor::from)
}

/// The maximum of every window over the last `rank` axes, and its position in the flattened last axes.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "as many as PyTorch's function has")]
fn _max_pool(
    py: Python<'_>,
    rank: usize,
    input: PyRef<'_, PyTensor>,
    kernel: Numbers,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    ceil: bool,
) -> PyResult<(PyTensor, PyTensor)> {
    let x = input.value()?.into_owned();
    let options = PoolOptions {
        rank,
        kernel: kernel.0,
        stride: stride.0,
        padding: padding.0,
        dilation: dilation.0,
        ceil,
    };
    let op = ["max_pool1d", "max_pool2d", "max_pool3d"][rank.clamp(1, 3) - 1];
    let (y, index) = run(py, x.numel(), || x.max_pool(op, &options))?;
    Ok((y.into(), index.into()))
}

/// The average of every window over the last `rank` axes.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "as many as PyTorch's function has")]
fn _avg_pool(
    py: Python<'_>,
    rank: usize,
    input: PyRef<'_, PyTensor>,
    kernel: Numbers,
    stride: Numbers,
    padding: Numbers,
    ceil: bool,
    padded: bool,
    #[pyo3(from_py_with = optional_whole)] divisor: Option<i64>,
) -> PyResult<PyTensor> {
    let x = input.value()?.into_owned();
    let options =
        PoolOptions { rank, kernel: kernel.0, stride: stride.0, padding: padding.0, dilation: vec![1], ceil };
    let op = ["avg_pool1d", "avg_pool2d", "avg_pool3d"][rank.clamp(1, 3) - 1];
    run(py, x.numel(), || x.avg_pool(op, &options, padded, divisor)).map(PyTensor::from)
}

/// Averages of windows that divide each of the last `rank` axes into so many parts.
#[pyfunction]
fn _adaptive_avg_pool(
    py: Python<'_>,
    rank: usize,
    input: PyRef<'_, PyTensor>,
    sizes: Vec<Option<Whole>>,
) -> PyResult<PyTensor> {
    let x = input.value()?.into_owned();
    let sizes: Vec<Option<i64>> = sizes.into_iter().map(|n| n.map(|n| n.0)).collect();
    let op = ["adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"][rank.clamp(1, 3) - 1];
    run(py, x.numel(), || x.adaptive_avg_pool(op, rank, &sizes)).map(PyTensor::from)
}

/// Windows over the last two axes as columns.
#[pyfunction]
fn _unfold(
    py: Python<'_>,
    input: PyRef<'_, PyTensor>,
    kernel: Numbers,
    dilation: Numbers,
    padding: Numbers,
    stride: Numbers,
) -> PyResult<PyTensor> {
    let x = input.value()?.into_owned();
    let options =
        PatchOptions { kernel: kernel.0, dilation: dilation.0, padding: padding.0, stride: stride.0 };
    run(py, x.numel(), || x.unfold(&options)).map(PyTensor::from)
}

/// Columns added up where windows over the last two axes have them from.
#[pyfunction]
fn _fold(
    py: Python<'_>,
    input: PyRef<'_, PyTensor>,
    size: Numbers,
    kernel: Numbers,
    dilation: Numbers,
    padding: Numbers,
    stride: Numbers,
) -> PyResult<PyTensor> {
    let x = input.value()?.into_owned();
    let options =
        PatchOptions { kernel: kernel.0, dilation: dilation.0, padding: padding.0, stride: stride.0 };
    run(py, x.numel(), || x.fold(&size.0, &options)).map(PyTensor::from)
}

/// Registers the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    macro_rules! add {
        ($($name:ident),* $(,)?) => { $(m.add_function(wrap_pyfunction!($name, m)?)?;)* };
    }
    add!(_conv, _conv_transpose, _max_pool, _avg_pool, _adaptive_avg_pool, _unfold, _fold);
    Ok(())
}
