//! Convolution and pooling behind `wengert.nn.functional`; the Python functions document them.

use crate::ops::contract::convolve::{ConvOptions, Padding};
use crate::ops::contract::patches::PatchOptions;
use crate::ops::contract::pool::PoolOptions;
use crate::py::args::{Whole, extracted, integer, one_or_several, optional_whole, run, whole};
use crate::py::prelude::*;
use pyo3::types::PyString;

/// One integer or several.
struct Numbers(Vec<i64>);

extracted!(Numbers, |obj| {
    let what = || {
        let given = obj.get_type().name().map_or_else(|_| "an object".into(), |n| n.to_string());
        type_error(format!("an integer, or one for each spatial axis, expected, got {given}"))
    };
    one_or_several(obj, integer, what).map(Numbers)
});

/// Padding: numbers, "same" or "valid".
struct Pads(Padding);

extracted!(Pads, |obj| match obj.cast::<PyString>() {
    Ok(name) => match &*name.to_string_lossy() {
        "same" => Ok(Pads(Padding::Same)),
        "valid" => Ok(Pads(Padding::Widths(vec![0]))),
        other => Err(value_error(format!(
            "padding is a number, one for each spatial axis, 'same' or 'valid', got '{other}'"
        ))),
    },
    Err(_) => obj.extract::<Numbers>().map(|n| Pads(Padding::Widths(n.0))),
});

/// Convolution over the last `rank` axes.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "as many as PyTorch's function has")]
fn _conv(
    py: Python<'_>,
    rank: usize,
    input: Tensor,
    weight: Tensor,
    bias: Option<Tensor>,
    stride: Numbers,
    padding: Pads,
    dilation: Numbers,
    #[pyo3(from_py_with = whole)] groups: i64,
) -> PyResult<Tensor> {
    let (stride, padding, dilation, output_padding) = (stride.0, padding.0, dilation.0, vec![0]);
    let options = ConvOptions { rank, stride, padding, output_padding, dilation, groups };
    let work = input.numel().saturating_mul(weight.numel());
    run(py, work, || input.conv(&weight, bias.as_ref(), &options))
}

/// Transposed convolution over the last `rank` axes.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "as many as PyTorch's function has")]
fn _conv_transpose(
    py: Python<'_>,
    rank: usize,
    input: Tensor,
    weight: Tensor,
    bias: Option<Tensor>,
    stride: Numbers,
    padding: Numbers,
    output_padding: Numbers,
    #[pyo3(from_py_with = whole)] groups: i64,
    dilation: Numbers,
) -> PyResult<Tensor> {
    let (stride, padding, dilation) = (stride.0, Padding::Widths(padding.0), dilation.0);
    let options = ConvOptions { rank, stride, padding, output_padding: output_padding.0, dilation, groups };
    let work = input.numel().saturating_mul(weight.numel());
    run(py, work, || input.conv_transpose(&weight, bias.as_ref(), &options))
}

/// The maximum of every window over the last `rank` axes, and its position in the flattened last axes.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "as many as PyTorch's function has")]
fn _max_pool(
    py: Python<'_>,
    rank: usize,
    input: Tensor,
    kernel: Numbers,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    ceil: bool,
) -> PyResult<(Tensor, Tensor)> {
    let (kernel, stride, padding, dilation) = (kernel.0, stride.0, padding.0, dilation.0);
    let options = PoolOptions { rank, kernel, stride, padding, dilation, ceil };
    let op = ["max_pool1d", "max_pool2d", "max_pool3d"][rank.clamp(1, 3) - 1];
    run(py, input.numel(), || input.max_pool(op, &options))
}

/// The average of every window over the last `rank` axes.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "as many as PyTorch's function has")]
fn _avg_pool(
    py: Python<'_>,
    rank: usize,
    input: Tensor,
    kernel: Numbers,
    stride: Numbers,
    padding: Numbers,
    ceil: bool,
    padded: bool,
    #[pyo3(from_py_with = optional_whole)] divisor: Option<i64>,
) -> PyResult<Tensor> {
    let (kernel, stride, padding, dilation) = (kernel.0, stride.0, padding.0, vec![1]);
    let options = PoolOptions { rank, kernel, stride, padding, dilation, ceil };
    let op = ["avg_pool1d", "avg_pool2d", "avg_pool3d"][rank.clamp(1, 3) - 1];
    run(py, input.numel(), || input.avg_pool(op, &options, padded, divisor))
}

/// Averages of windows that divide each of the last `rank` axes into so many parts.
#[pyfunction]
fn _adaptive_avg_pool(
    py: Python<'_>,
    rank: usize,
    input: Tensor,
    sizes: Vec<Option<Whole>>,
) -> PyResult<Tensor> {
    let sizes: Vec<Option<i64>> = sizes.into_iter().map(|n| n.map(|n| n.0)).collect();
    let op = ["adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"][rank.clamp(1, 3) - 1];
    run(py, input.numel(), || input.adaptive_avg_pool(op, rank, &sizes))
}

/// Windows over the last two axes as columns.
#[pyfunction]
fn _unfold(
    py: Python<'_>,
    input: Tensor,
    kernel: Numbers,
    dilation: Numbers,
    padding: Numbers,
    stride: Numbers,
) -> PyResult<Tensor> {
    let (kernel, dilation, padding, stride) = (kernel.0, dilation.0, padding.0, stride.0);
    run(py, input.numel(), || input.unfold(&PatchOptions { kernel, dilation, padding, stride }))
}

/// Columns added up where windows over the last two axes have them from.
#[pyfunction]
fn _fold(
    py: Python<'_>,
    input: Tensor,
    size: Numbers,
    kernel: Numbers,
    dilation: Numbers,
    padding: Numbers,
    stride: Numbers,
) -> PyResult<Tensor> {
    let (kernel, dilation, padding, stride) = (kernel.0, dilation.0, padding.0, stride.0);
    run(py, input.numel(), || input.fold(&size.0, &PatchOptions { kernel, dilation, padding, stride }))
}

exports! { functions: _conv, _conv_transpose, _max_pool, _avg_pool, _adaptive_avg_pool, _unfold, _fold }
