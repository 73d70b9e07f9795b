//! Convolution and pooling behind `wengert.nn.functional`; the Python functions document them.

#![allow(clippy::too_many_arguments, reason = "as many as PyTorch's functions have")]

use crate::ops::contract::convolve::{ConvOptions, Padding};
use crate::ops::contract::patches::PatchOptions;
use crate::ops::contract::pool::PoolOptions;
use crate::py::args::{integer, one_or_several, optional_whole};
use crate::py::prelude::*;
use pyo3::types::PyString;

/// Extracts one integer or several.
fn numbers(obj: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    one_or_several(obj, integer, || {
        let given = obj.get_type().name().map_or_else(|_| "an object".into(), |n| n.to_string());
        type_error(format!("an integer, or one for each spatial axis, expected, got {given}"))
    })
}

/// Extracts padding: numbers, "same" or "valid".
fn pads(obj: &Bound<'_, PyAny>) -> PyResult<Padding> {
    let Ok(name) = obj.cast::<PyString>() else { return numbers(obj).map(Padding::Widths) };
    match &*name.to_string_lossy() {
        "same" => Ok(Padding::Same),
        "valid" => Ok(Padding::Widths(vec![0])),
        other => Err(value_error(format!(
            "padding is a number, one for each spatial axis, 'same' or 'valid', got '{other}'"
        ))),
    }
}

/// Convolution over the last `rank` axes.
#[pyfunction]
fn _conv(
    py: Python<'_>, rank: usize, input: Tensor, weight: Tensor, bias: Option<Tensor>,
    #[pyo3(from_py_with = numbers)] stride: Vec<i64>, #[pyo3(from_py_with = pads)] padding: Padding,
    #[pyo3(from_py_with = numbers)] dilation: Vec<i64>, #[pyo3(from_py_with = whole)] groups: i64,
) -> PyResult<Tensor> {
    let options = ConvOptions { rank, stride, padding, output_padding: vec![0], dilation, groups };
    let work = input.numel().saturating_mul(weight.numel());
    run(py, work, || input.conv(&weight, bias.as_ref(), &options))
}

/// Transposed convolution over the last `rank` axes.
#[pyfunction]
fn _conv_transpose(
    py: Python<'_>, rank: usize, input: Tensor, weight: Tensor, bias: Option<Tensor>,
    #[pyo3(from_py_with = numbers)] stride: Vec<i64>, #[pyo3(from_py_with = numbers)] padding: Vec<i64>,
    #[pyo3(from_py_with = numbers)] output_padding: Vec<i64>, #[pyo3(from_py_with = whole)] groups: i64,
    #[pyo3(from_py_with = numbers)] dilation: Vec<i64>,
) -> PyResult<Tensor> {
    let padding = Padding::Widths(padding);
    let options = ConvOptions { rank, stride, padding, output_padding, dilation, groups };
    let work = input.numel().saturating_mul(weight.numel());
    run(py, work, || input.conv_transpose(&weight, bias.as_ref(), &options))
}

/// The maximum of every window over the last `rank` axes, and its position in the flattened last axes.
#[pyfunction]
fn _max_pool(
    py: Python<'_>, rank: usize, input: Tensor, #[pyo3(from_py_with = numbers)] kernel: Vec<i64>,
    #[pyo3(from_py_with = numbers)] stride: Vec<i64>, #[pyo3(from_py_with = numbers)] padding: Vec<i64>,
    #[pyo3(from_py_with = numbers)] dilation: Vec<i64>, ceil: bool,
) -> PyResult<(Tensor, Tensor)> {
    let options = PoolOptions { rank, kernel, stride, padding, dilation, ceil };
    let op = ["max_pool1d", "max_pool2d", "max_pool3d"][rank.clamp(1, 3) - 1];
    run(py, input.numel(), || input.max_pool(op, &options))
}

/// The average of every window over the last `rank` axes.
#[pyfunction]
fn _avg_pool(
    py: Python<'_>, rank: usize, input: Tensor, #[pyo3(from_py_with = numbers)] kernel: Vec<i64>,
    #[pyo3(from_py_with = numbers)] stride: Vec<i64>, #[pyo3(from_py_with = numbers)] padding: Vec<i64>,
    ceil: bool, padded: bool, #[pyo3(from_py_with = optional_whole)] divisor: Option<i64>,
) -> PyResult<Tensor> {
    let options = PoolOptions { rank, kernel, stride, padding, dilation: vec![1], ceil };
    let op = ["avg_pool1d", "avg_pool2d", "avg_pool3d"][rank.clamp(1, 3) - 1];
    run(py, input.numel(), || input.avg_pool(op, &options, padded, divisor))
}

/// Averages of windows that divide each of the last `rank` axes into so many parts.
#[pyfunction]
fn _adaptive_avg_pool(
    py: Python<'_>, rank: usize, input: Tensor, sizes: Vec<Option<Whole>>,
) -> PyResult<Tensor> {
    let sizes: Vec<Option<i64>> = sizes.into_iter().map(|n| n.map(|n| n.0)).collect();
    let op = ["adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"][rank.clamp(1, 3) - 1];
    run(py, input.numel(), || input.adaptive_avg_pool(op, rank, &sizes))
}

/// Windows over the last two axes as columns.
#[pyfunction]
fn _unfold(
    py: Python<'_>, input: Tensor, #[pyo3(from_py_with = numbers)] kernel: Vec<i64>,
    #[pyo3(from_py_with = numbers)] dilation: Vec<i64>, #[pyo3(from_py_with = numbers)] padding: Vec<i64>,
    #[pyo3(from_py_with = numbers)] stride: Vec<i64>,
) -> PyResult<Tensor> {
    run(py, input.numel(), || input.unfold(&PatchOptions { kernel, dilation, padding, stride }))
}

/// Columns added up where windows over the last two axes have them from.
#[pyfunction]
fn _fold(
    py: Python<'_>, input: Tensor, #[pyo3(from_py_with = numbers)] size: Vec<i64>,
    #[pyo3(from_py_with = numbers)] kernel: Vec<i64>, #[pyo3(from_py_with = numbers)] dilation: Vec<i64>,
    #[pyo3(from_py_with = numbers)] padding: Vec<i64>, #[pyo3(from_py_with = numbers)] stride: Vec<i64>,
) -> PyResult<Tensor> {
    run(py, input.numel(), || input.fold(&size, &PatchOptions { kernel, dilation, padding, stride }))
}

exports! { functions: _conv, _conv_transpose, _max_pool, _avg_pool, _adaptive_avg_pool, _unfold, _fold }
