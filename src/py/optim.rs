//! Optimiser steps and gradient scaling for `wengert.optim` and `wengert.amp`: one call per parameter group.

use crate::array::Array;
use crate::optim::{self, Adam, Sgd};
use crate::py::args::run;
use crate::py::error::value_error;
use crate::py::tensor::PyTensor;
use crate::py::view::value;
use crate::tensor::Tensor;
use pyo3::prelude::*;

/// The values of a list of tensors, without their histories.
struct Values(Vec<Tensor>);

impl<'a, 'py> FromPyObject<'a, 'py> for Values {
    type Error = PyErr;

    fn extract(obj: Borrowed<'a, 'py, PyAny>) -> PyResult<Values> {
        let tensors = obj.try_iter()?.map(|x| value(x?.cast::<PyTensor>()?));
        tensors.collect::<PyResult<_>>().map(Values)
    }
}

impl Values {
    fn arrays(&self) -> PyResult<Vec<&Array>> {
        Ok(self.0.iter().map(|t| t.array("an optimiser step")).collect::<crate::error::Result<_>>()?)
    }
}

/// How many numbers a step touches.
fn elements(arrays: &[&Array]) -> usize {
    arrays.iter().map(|a| a.numel()).sum()
}

fn same_length(op: &str, n: usize, lengths: &[usize]) -> PyResult<()> {
    match lengths.iter().find(|&&l| l != n) {
        Some(l) => Err(value_error(format!("{op}: {n} parameters, but {l} gradients or states"))),
        None => Ok(()),
    }
}

/// One step of SGD on each parameter, in place. `buffers` is empty without momentum; `first` says which are
/// unused yet.
#[pyfunction]
#[pyo3(signature = (params, grads, buffers, first, lr, momentum, dampening, weight_decay, nesterov))]
#[allow(clippy::too_many_arguments)]
fn _optim_sgd(
    py: Python<'_>,
    params: Values,
    grads: Values,
    buffers: Values,
    first: Vec<bool>,
    lr: f64,
    momentum: f64,
    dampening: f64,
    weight_decay: f64,
    nesterov: bool,
) -> PyResult<()> {
    let (p, g, m) = (params.arrays()?, grads.arrays()?, buffers.arrays()?);
    let with_momentum = !m.is_empty();
    same_length("SGD", p.len(), &[g.len()])?;
    if with_momentum {
        same_length("SGD", p.len(), &[m.len(), first.len()])?;
    }
    run(py, elements(&p), || {
        for (i, param) in p.iter().enumerate() {
            let buffer = m.get(i).copied();
            let first = first.get(i).copied().unwrap_or(false);
            let settings = Sgd { lr, momentum, dampening, weight_decay, nesterov, first };
            optim::sgd(param, g[i], buffer, &settings)?;
        }
        Ok(())
    })
}

/// One step of Adam, or AdamW if `decoupled`, on each parameter, in place. `steps` counts each from 1, this
/// one included; `largest` is empty without AMSGrad.
#[pyfunction]
#[pyo3(signature = (params, grads, first, second, largest, steps, lr, beta1, beta2, eps, weight_decay, decoupled))]
#[allow(clippy::too_many_arguments)]
fn _optim_adam(
    py: Python<'_>,
    params: Values,
    grads: Values,
    first: Values,
    second: Values,
    largest: Values,
    steps: Vec<i32>,
    lr: f64,
    beta1: f64,
    beta2: f64,
    eps: f64,
    weight_decay: f64,
    decoupled: bool,
) -> PyResult<()> {
    let (p, g) = (params.arrays()?, grads.arrays()?);
    let (m, v, top) = (first.arrays()?, second.arrays()?, largest.arrays()?);
    same_length("Adam", p.len(), &[g.len(), m.len(), v.len(), steps.len()])?;
    if !top.is_empty() {
        same_length("Adam", p.len(), &[top.len()])?;
    }
    run(py, elements(&p), || {
        for (i, param) in p.iter().enumerate() {
            let settings = Adam {
                lr,
                beta1,
                beta2,
                eps,
                weight_decay,
                decoupled,
                bias_correction1: 1.0 - beta1.powi(steps[i]),
                bias_correction2: 1.0 - beta2.powi(steps[i]),
            };
            optim::adam(param, g[i], m[i], v[i], top.get(i).copied(), &settings)?;
        }
        Ok(())
    })
}

/// Multiplies all gradients by `factor`, in place, and says whether any element was infinite or NaN.
#[pyfunction]
fn _amp_unscale(py: Python<'_>, grads: Values, factor: f64) -> PyResult<bool> {
    let all = grads.arrays()?;
    let mut found = false;
    let mut rest = all.as_slice();
    // One call per device: its gradients are checked together.
    while let Some(device) = rest.first().map(|a| a.device()) {
        let length = rest.iter().take_while(|a| a.device() == device).count();
        found |= run(py, elements(&rest[..length]), || optim::unscale(&rest[..length], factor))?;
        rest = &rest[length..];
    }
    Ok(found)
}

/// Registers the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_optim_sgd, m)?)?;
    m.add_function(wrap_pyfunction!(_optim_adam, m)?)?;
    m.add_function(wrap_pyfunction!(_amp_unscale, m)?)
}
