//! Optimiser steps and gradient scaling on lists of arrays: one fused kernel per parameter, one call per
//! group.
//!
//! The formulas are PyTorch's, written where the numbers are: `src/cpu/optim.rs` and `shaders/optim_*.wgsl`.

use crate::array::Array;
use crate::error::{Error, Result};
use crate::ops::on_device;

/// The hyperparameters of stochastic gradient descent (Robbins and Monro 1951; momentum: Polyak 1964,
/// Nesterov 1983).
#[derive(Clone, Copy, Debug, Default)]
pub struct Sgd {
    /// Learning rate.
    pub lr: f64,
    /// Factor on the momentum buffer.
    pub momentum: f64,
    /// What of a gradient does not enter the momentum buffer.
    pub dampening: f64,
    /// Factor on the parameter that is added to its gradient.
    pub weight_decay: f64,
    /// Nesterov's form.
    pub nesterov: bool,
    /// Whether the momentum buffer is empty so far.
    pub first: bool,
}

/// The hyperparameters of Adam (Kingma and Ba 2014) and AdamW (Loshchilov and Hutter 2017).
#[derive(Clone, Copy, Debug, Default)]
pub struct Adam {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub eps: f64,
    /// Factor on the parameter.
    pub weight_decay: f64,
    /// AdamW: the decay acts on the parameter instead of on its gradient.
    pub decoupled: bool,
    /// `1 - beta1^t`.
    pub bias_correction1: f64,
    /// `1 - beta2^t`.
    pub bias_correction2: f64,
}

/// Raises unless all arrays of one parameter agree in shape and device.
fn check(op: &str, param: &Array, others: &[&Array]) -> Result<()> {
    match others.iter().find(|a| a.shape() != param.shape() || a.device() != param.device()) {
        Some(a) => Err(Error::shape(format!(
            "{op}: a gradient or state is {a:?}, expected shape {} on {} as its parameter",
            param.shape(),
            param.device()
        ))),
        None => Ok(()),
    }
}

/// One step of SGD on `param`, in place. `momentum` is its buffer, of the same dtype, where momentum is used.
pub fn sgd(param: &Array, grad: &Array, momentum: Option<&Array>, s: &Sgd) -> Result<()> {
    check("sgd", param, &[grad])?;
    if let Some(m) = momentum {
        check("sgd", param, &[m])?;
    }
    on_device!(param, optim::sgd(param, grad, momentum, s))?;
    written(&[Some(param), momentum]);
    Ok(())
}

/// One step of Adam or AdamW on `param` and its moments, in place. `largest` is AMSGrad's running maximum.
pub fn adam(
    param: &Array,
    grad: &Array,
    first: &Array,
    second: &Array,
    largest: Option<&Array>,
    a: &Adam,
) -> Result<()> {
    check("adam", param, &[grad, first, second])?;
    on_device!(param, optim::adam(param, grad, first, second, largest, a))?;
    written(&[Some(param), Some(first), Some(second), largest]);
    Ok(())
}

/// Bumps the versions of what was written.
fn written(arrays: &[Option<&Array>]) {
    arrays.iter().flatten().for_each(|a| a.buffer().bump_version());
}

/// Multiplies all gradients by `factor`, in place, and returns whether any element was infinite or NaN.
pub fn unscale(grads: &[&Array], factor: f64) -> Result<bool> {
    let Some(first) = grads.first() else { return Ok(false) };
    let found = on_device!(first, optim::unscale_check(grads, factor))?;
    grads.iter().for_each(|g| g.buffer().bump_version());
    Ok(found)
}

/// The sum of the squares of all elements.
pub fn sum_squares(arrays: &[&Array]) -> Result<f64> {
    let Some(first) = arrays.first() else { return Ok(0.0) };
    on_device!(first, optim::sum_squares(arrays))
}

/// Multiplies an array by `factor`, in place.
pub fn scale(x: &Array, factor: f64) -> Result<()> {
    on_device!(x, optim::scale_in_place(x, factor))?;
    x.buffer().bump_version();
    Ok(())
}
