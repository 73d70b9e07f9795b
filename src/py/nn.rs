//! Fused functions behind `wengert.nn.functional`: affine map, layer normalisation, dropout and the
//! classification losses. The Python functions of the same names document and check them.

use crate::error::Result;
use crate::ops::loss::{self, CrossEntropyOptions, Reduction};
use crate::py::args::{listed, run};
use crate::py::tensor::PyTensor;
use crate::tensor::Tensor;
use pyo3::prelude::*;

type Given<'py> = Option<PyRef<'py, PyTensor>>;

/// The tensor of an optional argument.
fn inner(t: &Given<'_>) -> PyResult<Option<Tensor>> {
    t.as_ref().map(|t| Ok(t.value()?.into_owned())).transpose()
}

/// Runs `f`, without the interpreter lock for large inputs.
fn fused(py: Python<'_>, x: &Tensor, f: impl FnOnce() -> Result<Tensor> + Send) -> PyResult<PyTensor> {
    run(py, x.numel(), f).map(PyTensor::from)
}

/// `x W' + b`.
#[pyfunction]
fn _linear(
    py: Python<'_>,
    x: PyRef<'_, PyTensor>,
    weight: PyRef<'_, PyTensor>,
    bias: Given<'_>,
) -> PyResult<PyTensor> {
    let (x, weight, bias) = (x.value()?.into_owned(), weight.value()?.into_owned(), inner(&bias)?);
    // The work is the product's, so its size decides.
    run(py, x.numel().saturating_mul(weight.shape().at(0)), || {
        let out = x.matmul(&weight.transpose(0, 1)?)?;
        match &bias {
            // Under autocast the product decides the dtype of the whole map, as it does in PyTorch.
            Some(bias) => out.add(&bias.cast(out.dtype())?),
            None => Ok(out),
        }
    })
    .map(PyTensor::from)
}

/// Layer normalisation over the trailing axes of lengths `shape`.
#[pyfunction]
fn _layer_norm(
    py: Python<'_>,
    x: PyRef<'_, PyTensor>,
    shape: &Bound<'_, PyAny>,
    weight: Given<'_>,
    bias: Given<'_>,
    eps: f64,
) -> PyResult<PyTensor> {
    let shape: Vec<usize> = listed(shape)?;
    let (x, weight, bias) = (x.value()?.into_owned(), inner(&weight)?, inner(&bias)?);
    fused(py, &x, || x.layer_norm(&shape, weight.as_ref(), bias.as_ref(), eps))
}

/// Zeroes each element with probability `p` and scales the others.
#[pyfunction]
fn _dropout(py: Python<'_>, x: PyRef<'_, PyTensor>, p: f64) -> PyResult<PyTensor> {
    let x = x.value()?.into_owned();
    fused(py, &x, || x.dropout(p))
}

/// Cross-entropy of logits with class indices or probabilities.
#[pyfunction]
fn _cross_entropy(
    py: Python<'_>,
    input: PyRef<'_, PyTensor>,
    target: PyRef<'_, PyTensor>,
    weight: Given<'_>,
    ignore_index: i64,
    reduction: &str,
    label_smoothing: f64,
) -> PyResult<PyTensor> {
    let reduction = Reduction::from_name(reduction)?;
    let (x, target, weight) = (input.value()?.into_owned(), target.value()?.into_owned(), inner(&weight)?);
    let options = CrossEntropyOptions {
        weight: weight.as_ref(),
        ignore: ignore_index,
        reduction,
        smoothing: label_smoothing,
    };
    fused(py, &x, || loss::cross_entropy(&x, &target, options))
}

/// Negative log-likelihood of log-probabilities.
#[pyfunction]
fn _nll_loss(
    py: Python<'_>,
    input: PyRef<'_, PyTensor>,
    target: PyRef<'_, PyTensor>,
    weight: Given<'_>,
    ignore_index: i64,
    reduction: &str,
) -> PyResult<PyTensor> {
    let reduction = Reduction::from_name(reduction)?;
    let (x, target, weight) = (input.value()?.into_owned(), target.value()?.into_owned(), inner(&weight)?);
    let options =
        CrossEntropyOptions { weight: weight.as_ref(), ignore: ignore_index, reduction, smoothing: 0.0 };
    fused(py, &x, || loss::nll(&x, &target, options))
}

/// Binary cross-entropy of logits.
#[pyfunction]
fn _bce_with_logits(
    py: Python<'_>,
    input: PyRef<'_, PyTensor>,
    target: PyRef<'_, PyTensor>,
    weight: Given<'_>,
    pos_weight: Given<'_>,
    reduction: &str,
) -> PyResult<PyTensor> {
    let reduction = Reduction::from_name(reduction)?;
    let (x, target) = (input.value()?.into_owned(), target.value()?.into_owned());
    let (weight, pos_weight) = (inner(&weight)?, inner(&pos_weight)?);
    fused(py, &x, || loss::bce_with_logits(&x, &target, weight.as_ref(), pos_weight.as_ref(), reduction))
}

/// Registers the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_linear, m)?)?;
    m.add_function(wrap_pyfunction!(_layer_norm, m)?)?;
    m.add_function(wrap_pyfunction!(_dropout, m)?)?;
    m.add_function(wrap_pyfunction!(_cross_entropy, m)?)?;
    m.add_function(wrap_pyfunction!(_nll_loss, m)?)?;
    m.add_function(wrap_pyfunction!(_bce_with_logits, m)?)
}
