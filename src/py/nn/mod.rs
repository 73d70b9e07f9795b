//! Fused functions behind `wengert.nn.functional`: affine map, layer and RMS normalisation, attention,
//! recurrent cells, dropout and the classification losses. The Python functions of the same names document
//! them and check arguments.

pub(crate) mod conv;
pub(crate) mod ops;
pub(crate) mod optim;
#[cfg(feature = "gpu")]
pub(crate) mod program;

use crate::ops::nn::attention::AttentionOptions;
use crate::ops::nn::cell::{self, Kind};
use crate::ops::nn::loss::{self, CrossEntropyOptions, Reduction};
use crate::ops::nn::recurrent;
use crate::ops::pointwise::unary::Unary;
use crate::ops::{first, outputs};
use crate::py::args::{LARGE, listed};
use crate::py::prelude::*;
use crate::py::tensor::object::Value;
use crate::tensor::Tensors;

/// Returns the tensor of the argument `name` of `linear`.
fn operand<'a>(x: &'a Bound<'_, PyAny>, name: &str) -> PyResult<Value<'a>> {
    match x.cast::<PyTensor>() {
        Ok(t) => t.get().value(),
        Err(_) => Err(no_tensor("linear", name, x)),
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
    py: Python<'_>, input: &Bound<'_, PyAny>, weight: &Bound<'_, PyAny>, bias: Option<&Bound<'_, PyAny>>,
    activation: Option<&str>,
) -> PyResult<Tensor> {
    let act = activation.map(activation_of).transpose()?;
    let (x, weight) = (operand(input, "input")?, operand(weight, "weight")?);
    let bias = bias.map(|b| operand(b, "bias")).transpose()?;
    let bias = bias.as_deref();
    // The cost is that of the product, so its size decides.
    let work = x.numel().saturating_mul(if weight.rank() > 0 { weight.shape().at(0) } else { 1 });
    if work <= LARGE {
        return Ok(x.linear(&weight, bias, act)?);
    }
    let (x, weight, bias) = (x.into_owned(), weight.into_owned(), bias.cloned());
    Ok(py.detached(|| x.linear(&weight, bias.as_ref(), act))?)
}

/// Layer normalisation over the trailing axes of lengths `shape`.
#[pyfunction]
fn _layer_norm(
    py: Python<'_>, x: Tensor, shape: &Bound<'_, PyAny>, weight: Option<Tensor>, bias: Option<Tensor>,
    eps: f64,
) -> PyResult<Tensor> {
    let shape: Vec<usize> = listed(shape)?;
    run(py, x.numel(), || x.layer_norm(&shape, weight.as_ref(), bias.as_ref(), eps))
}

/// RMS normalisation over the trailing axes of lengths `shape`.
#[pyfunction]
fn _rms_norm(
    py: Python<'_>, x: Tensor, shape: &Bound<'_, PyAny>, weight: Option<Tensor>, eps: f64,
) -> PyResult<Tensor> {
    let shape: Vec<usize> = listed(shape)?;
    run(py, x.numel(), || x.rms_norm(&shape, weight.as_ref(), eps))
}

/// `softmax(scale Q K' + mask) V`.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn _attention(
    py: Python<'_>, query: Tensor, key: Tensor, value: Tensor, mask: Option<Tensor>, dropout: f64,
    causal: bool, scale: Option<f64>, grouped: bool,
) -> PyResult<Tensor> {
    let options = AttentionOptions { mask: mask.as_ref(), dropout, causal, scale, grouped };
    // Every query is multiplied by every key, so the product of their sizes decides.
    let keys = key.shape().iter().rev().nth(1).unwrap_or(1);
    run(py, query.numel().saturating_mul(keys), || query.attention(&key, &value, options))
}

/// A step of an LSTM, from the product of its input and its states `(h, c)`.
#[pyfunction]
fn _lstm_cell(
    py: Python<'_>, gates: Tensor, hidden: Tensor, cell: Tensor, weight: Tensor, bias: Option<Tensor>,
) -> PyResult<(Tensor, Tensor)> {
    let [hidden, cell] = outputs(step(py, Kind::Lstm, &gates, &[&hidden, &cell], &weight, bias.as_ref())?)?;
    Ok((hidden, cell))
}

/// A step of a GRU, from the product of its input and its state.
#[pyfunction]
fn _gru_cell(
    py: Python<'_>, gates: Tensor, hidden: Tensor, weight: Tensor, bias: Option<Tensor>,
) -> PyResult<Tensor> {
    Ok(first(step(py, Kind::Gru, &gates, &[&hidden], &weight, bias.as_ref())?)?)
}

/// A step of a cell; the cost is that of its product.
fn step(
    py: Python<'_>, kind: Kind, gates: &Tensor, states: &[&Tensor], weight: &Tensor, bias: Option<&Tensor>,
) -> PyResult<Tensors> {
    let work =
        weight.numel().saturating_mul(states[0].numel() / weight.shape().iter().last().unwrap_or(1).max(1));
    run(py, work, || cell::cell(kind, gates, states, weight, bias))
}

/// All steps of a recurrent layer in one direction, from the products of its input and its first states: the
/// hidden states of all times, and the last states. The kind of its cells is "LSTM", "GRU", "tanh" or "relu".
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn _recurrent(
    py: Python<'_>, kind: &str, gates: Tensor, states: Vec<Tensor>, weight: Tensor, bias: Option<Tensor>,
    backwards: bool,
) -> PyResult<(Tensor, Vec<Tensor>)> {
    let kind = match kind {
        "LSTM" => Kind::Lstm,
        "GRU" => Kind::Gru,
        "relu" => Kind::Relu,
        _ => Kind::Tanh,
    };
    let before: Vec<&Tensor> = states.iter().collect();
    let work = gates.numel().saturating_mul(weight.shape().iter().last().unwrap_or(1));
    let layer = || recurrent::recurrent(kind, backwards, &gates, &before, &weight, bias.as_ref());
    let (out, last) = run(py, work, layer)?;
    Ok((out, last.into_vec()))
}

/// Zeroes each element with probability `p` and scales the others.
#[pyfunction]
fn _dropout(py: Python<'_>, x: Tensor, p: f64) -> PyResult<Tensor> {
    run(py, x.numel(), || x.dropout(p))
}

/// Cross-entropy of logits with class indices or probabilities.
#[pyfunction]
fn _cross_entropy(
    py: Python<'_>, input: Tensor, target: Tensor, weight: Option<Tensor>,
    #[pyo3(from_py_with = whole)] ignore_index: i64, reduction: &str, label_smoothing: f64,
) -> PyResult<Tensor> {
    let (weight, reduction) = (weight.as_ref(), Reduction::from_name(reduction)?);
    let options = CrossEntropyOptions { weight, ignore: ignore_index, reduction, smoothing: label_smoothing };
    run(py, input.numel(), || {
        // Of halves it is computed in float32, and rounded once; under autocast it stays so.
        let out = loss::cross_entropy(&input, &target, options)?;
        if interp::autocasting() { Ok(out) } else { out.cast(input.dtype()) }
    })
}

/// Negative log-likelihood of log-probabilities.
#[pyfunction]
fn _nll_loss(
    py: Python<'_>, input: Tensor, target: Tensor, weight: Option<Tensor>,
    #[pyo3(from_py_with = whole)] ignore_index: i64, reduction: &str,
) -> PyResult<Tensor> {
    let (weight, reduction) = (weight.as_ref(), Reduction::from_name(reduction)?);
    let options = CrossEntropyOptions { weight, ignore: ignore_index, reduction, smoothing: 0.0 };
    run(py, input.numel(), || loss::nll(&input, &target, options))
}

/// Binary cross-entropy of logits.
#[pyfunction]
fn _bce_with_logits(
    py: Python<'_>, input: Tensor, target: Tensor, weight: Option<Tensor>, pos_weight: Option<Tensor>,
    reduction: &str,
) -> PyResult<Tensor> {
    let reduction = Reduction::from_name(reduction)?;
    let loss = || loss::bce_with_logits(&input, &target, weight.as_ref(), pos_weight.as_ref(), reduction);
    run(py, input.numel(), loss)
}

exports! {
    functions: _linear, _layer_norm, _rms_norm, _attention, _lstm_cell, _gru_cell, _recurrent, _dropout,
        _cross_entropy, _nll_loss, _bce_with_logits
}
