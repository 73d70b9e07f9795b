//! Fused functions behind `wengert.nn.functional`: affine map, layer normalisation, attention, dropout and
//! the classification losses. The Python functions of the same names document them and check arguments.

pub(crate) mod conv;
pub(crate) mod ops;
pub(crate) mod optim;
#[cfg(feature = "gpu")]
pub(crate) mod program;

use crate::error::Result;
use crate::ops::nn::attention::AttentionOptions;
use crate::ops::nn::loss::{self, CrossEntropyOptions, Reduction};
use crate::ops::pointwise::unary::Unary;
use crate::py::args::{LARGE, listed, run, whole};
use crate::py::detach::Detach;
use crate::py::error::{type_error, value_error};
use crate::py::tensor::PyTensor;
use crate::py::tensor::object::Value;
use crate::tensor::Tensor;
use pyo3::prelude::*;

type Given<'py> = Option<PyRef<'py, PyTensor>>;

/// Returns the tensor of an optional argument.
fn inner(t: &Given<'_>) -> PyResult<Option<Tensor>> {
    t.as_ref().map(|t| Ok(t.value()?.into_owned())).transpose()
}

/// Runs `f`, without the interpreter lock for large inputs.
fn fused(py: Python<'_>, x: &Tensor, f: impl FnOnce() -> Result<Tensor> + Send) -> PyResult<PyTensor> {
    run(py, x.numel(), f).map(PyTensor::from)
}

/// Returns the tensor of the argument `name` of `linear`.
fn operand<'a>(x: &'a Bound<'_, PyAny>, name: &str) -> PyResult<Value<'a>> {
    match x.cast::<PyTensor>() {
        Ok(t) => t.get().value(),
        Err(_) => Err(type_error(format!(
            "linear: {name} must be a tensor, got {}; convert it with wengert.tensor()",
            x.get_type().name()?
        ))),
    }
}

/// Returns the row of this name in the table of unary functions.
fn activation_of(name: &str) -> PyResult<Unary> {
    let row = if name == "gelu" { "gelu_exact" } else { name };
    Unary::ALL.iter().copied().find(|fun| fun.name() == row).ok_or_else(|| {
        value_error(format!(
            "linear: activation is the name of an elementwise function such as 'relu', 'tanh' or 'gelu', \
             got '{name}'"
        ))
    })
}

/// `act(x W' + b)`; the activation is the name of a row of the table of unary functions.
#[pyfunction]
#[pyo3(signature = (input, weight, bias=None, activation=None))]
fn _linear(
    py: Python<'_>,
    input: &Bound<'_, PyAny>,
    weight: &Bound<'_, PyAny>,
    bias: Option<&Bound<'_, PyAny>>,
    activation: Option<&str>,
) -> PyResult<PyTensor> {
    let act = activation.map(activation_of).transpose()?;
    let (x, weight) = (operand(input, "input")?, operand(weight, "weight")?);
    let bias = bias.map(|b| operand(b, "bias")).transpose()?;
    let bias = bias.as_deref();
    // The cost is that of the product, so its size decides.
    let work = x.numel().saturating_mul(if weight.rank() > 0 { weight.shape().at(0) } else { 1 });
    if work <= LARGE {
        return Ok(x.linear(&weight, bias, act)?.into());
    }
    let (x, weight, bias) = (x.into_owned(), weight.into_owned(), bias.cloned());
    Ok(py.detached(|| x.linear(&weight, bias.as_ref(), act))?.into())
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

/// `softmax(scale Q K' + mask) V`.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn _attention(
    py: Python<'_>,
    query: PyRef<'_, PyTensor>,
    key: PyRef<'_, PyTensor>,
    value: PyRef<'_, PyTensor>,
    mask: Given<'_>,
    dropout: f64,
    causal: bool,
    scale: Option<f64>,
    grouped: bool,
) -> PyResult<PyTensor> {
    let (q, k, v) = (query.value()?.into_owned(), key.value()?.into_owned(), value.value()?.into_owned());
    let mask = inner(&mask)?;
    let options = AttentionOptions { mask: mask.as_ref(), dropout, causal, scale, grouped };
    // Every query is multiplied by every key, so the product of their sizes decides.
    let keys = k.shape().iter().rev().nth(1).unwrap_or(1);
    run(py, q.numel().saturating_mul(keys), || q.attention(&k, &v, options)).map(PyTensor::from)
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
    #[pyo3(from_py_with = whole)] ignore_index: i64,
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
    #[pyo3(from_py_with = whole)] ignore_index: i64,
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
    m.add_function(wrap_pyfunction!(_attention, m)?)?;
    m.add_function(wrap_pyfunction!(_dropout, m)?)?;
    m.add_function(wrap_pyfunction!(_cross_entropy, m)?)?;
    m.add_function(wrap_pyfunction!(_nll_loss, m)?)?;
    m.add_function(wrap_pyfunction!(_bce_with_logits, m)?)
}
