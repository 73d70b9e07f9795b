//! Transforms of functions of tensors, as a program in Rust calls them.

use super::prelude::*;
use super::transform::{self, vjp};
use crate::interp::Randomness;

/// Returns the value of a function with one output of one element, and its gradient in each input.
///
/// # Errors
/// Those of `f`, and one unless the output has exactly one element.
pub fn value_and_grad<F>(f: F, inputs: &[Tensor]) -> Result<(Tensor, Vec<Tensor>)>
where
    F: FnOnce(&[Tensor]) -> Result<Tensor>,
{
    let (mut y, pullback) = vjp(|x| Ok(vec![f(x)?]), inputs)?;
    let y = y.remove(0);
    if y.numel() != 1 {
        return Err(Error::shape(format!(
            "grad: the function returned shape {}, expected one element; sum it, or use vjp",
            y.shape()
        )));
    }
    let gradients = pullback.call(&[Some(y.ones_like()?)], false)?;
    Ok((y, gradients))
}

/// Returns the gradient of a function with one output of one element with respect to each input.
///
/// # Errors
/// As [`value_and_grad`].
pub fn grad<F>(f: F, inputs: &[Tensor]) -> Result<Vec<Tensor>>
where
    F: FnOnce(&[Tensor]) -> Result<Tensor>,
{
    Ok(value_and_grad(f, inputs)?.1)
}

/// Runs a function of single examples once for a whole batch, as JAX's `vmap`. `in_axes` has the batch axis
/// of each input (`None`: the same for all examples). Outputs have their batch axis in front.
///
/// # Errors
/// Those of `f`, and one if no input has a batch axis, an axis is out of range, the batches differ in size,
/// or there is not one axis for each input.
pub fn vmap<F>(f: F, inputs: &[Tensor], in_axes: &[Option<usize>]) -> Result<Vec<Tensor>>
where
    F: FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
{
    if inputs.len() != in_axes.len() {
        let (n, axes) = (inputs.len(), in_axes.len());
        return Err(Error::value(format!("vmap: {n} inputs and {axes} batch axes, expected one for each")));
    }
    let mut size = None;
    for (x, axis) in inputs.iter().zip(in_axes) {
        let Some(axis) = *axis else { continue };
        let shape = x.shape();
        if axis >= shape.rank() {
            return Err(Error::value(format!("vmap: an input of shape {shape} has no axis {axis}")));
        }
        match size.replace(shape.at(axis)) {
            Some(before) if before != shape.at(axis) => {
                let now = shape.at(axis);
                return Err(Error::shape(format!("vmap: batches of {before} and of {now} examples")));
            }
            _ => {}
        }
    }
    let Some(size) = size else { return Err(Error::value("vmap: no input has a batch axis")) };
    transform::vmap_in_front(size, Randomness::Error, f, inputs, in_axes)
}
