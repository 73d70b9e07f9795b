//! Optimiser steps on the GPU, fused and in place; the twin of `src/cpu/optim.rs`.
//!
//! The kernels update float32. Parameters of 16 bits take the step in float32 and are rounded once.

use super::copy::{cast, copy_into, index_of};
use super::gather::cat;
use super::map::pointwise_into;
use super::params::Params;
use super::reduce::sum_squares as squares;
use crate::array::Array;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::template::Template;
use crate::gpu::{constant, download, kernel, launch};
use crate::optim::{Adam, Sgd};
use crate::real::{Left, Pointwise, Real};
use crate::shape::{Axes, Shape};

/// A factor of one on the gradient, and nothing to skip.
const GO: [f64; 2] = [1.0, 0.0];

/// State that a kernel updates: contiguous float32 from the start of its buffer.
fn is_flat(x: &Array) -> bool {
    x.dtype() == DType::F32 && x.is_contiguous() && x.offset() == 0
}

/// A gradient as the kernels read it.
fn flat_gradient(g: &Array) -> Result<Array> {
    if g.is_contiguous() && g.offset() == 0 { Ok(g.clone()) } else { super::copy::convert(g, g.dtype()) }
}

/// Runs `step` on float32 copies of those `state` arrays that are not flat float32, and writes the copies
/// back.
fn on_flat<const N: usize>(state: [&Array; N], step: impl FnOnce([&Array; N]) -> Result<()>) -> Result<()> {
    let mut flat = Vec::with_capacity(N);
    for x in state {
        flat.push(if is_flat(x) { x.clone() } else { super::copy::convert(x, DType::F32)? });
    }
    step(std::array::from_fn(|i| &flat[i]))?;
    for (x, moved) in state.iter().zip(&flat).filter(|(x, _)| !is_flat(x)) {
        copy_into(x, &cast(moved, x.dtype())?)?;
    }
    Ok(())
}

/// One step of stochastic gradient descent on `param`, in place, with PyTorch's formulas.
pub fn sgd(param: &Array, grad: &Array, momentum: Option<&Array>, s: &Sgd) -> Result<()> {
    let index = index_of(param)?;
    let g = flat_gradient(grad)?;
    let control = constant(index, &GO, DType::F32)?;
    let spare = Array::empty(Shape::new(&[1])?, DType::F32, param.device())?;
    let kernel = kernel(index, "sgd", g.dtype() as u64, "main", || {
        let mut text = Template::new(include_str!("../../../shaders/optim_sgd.wgsl"), DType::F32);
        text.load("g", g.dtype());
        Ok(text.build())
    })?;
    let flags = usize::from(momentum.is_some()) | usize::from(s.first) << 1 | usize::from(s.nesterov) << 2;
    let mut params = Params::default();
    params
        .word(param.numel())
        .word(flags)
        .float(s.lr)
        .float(s.weight_decay)
        .float(s.momentum)
        .float(s.dampening);
    on_flat([param, momentum.unwrap_or(&spare)], |[x, m]| {
        let buffers = [g.buffer(), control.buffer(), x.buffer(), m.buffer()];
        launch(index, &kernel, &buffers, params.words(), (param.numel() as u64).div_ceil(1024))
    })
}

/// One step of Adam or AdamW on `param` and its moments, in place, with PyTorch's formulas. `largest` is
/// AMSGrad's.
pub fn adam(
    param: &Array,
    grad: &Array,
    first: &Array,
    second: &Array,
    largest: Option<&Array>,
    a: &Adam,
) -> Result<()> {
    let index = index_of(param)?;
    let g = flat_gradient(grad)?;
    let control = constant(index, &GO, DType::F32)?;
    let spare = Array::empty(Shape::new(&[1])?, DType::F32, param.device())?;
    let kernel = kernel(index, "adam", g.dtype() as u64, "main", || {
        let mut text = Template::new(include_str!("../../../shaders/optim_adam.wgsl"), DType::F32);
        text.load("g", g.dtype());
        Ok(text.build())
    })?;
    let flags = usize::from(largest.is_some()) | usize::from(a.decoupled) << 1;
    let mut params = Params::default();
    params.word(param.numel()).word(flags).float(a.lr).float(a.weight_decay);
    params.float(a.beta1).float(1.0 - a.beta1).float(a.beta2).float(1.0 - a.beta2).float(a.eps);
    params.float(a.lr / a.bias_correction1).float(a.bias_correction2.powf(-0.5));
    on_flat([param, first, second, largest.unwrap_or(&spare)], |[x, m, v, top]| {
        let buffers = [g.buffer(), control.buffer(), x.buffer(), m.buffer(), v.buffer(), top.buffer()];
        launch(index, &kernel, &buffers, params.words(), (param.numel() as u64).div_ceil(1024))
    })
}

#[derive(Clone, Copy)]
struct Product;

impl Pointwise<2> for Product {
    fn apply<R: Real>(&self, [x, y]: [R; 2]) -> R
    where
        f64: Left<R>,
    {
        x * y
    }
}

/// `x *= factor`.
pub fn scale_in_place(x: &Array, factor: f64) -> Result<()> {
    // The factor is data, not text: each new one would compile a kernel.
    let factor = crate::gpu::scalar(index_of(x)?, factor, x.dtype())?;
    pointwise_into("product", 0u8, x, [x, &factor], Product)
}

/// The 0-d results of several reductions, read back together.
fn read_all(results: &[Array]) -> Result<Array> {
    let lines: Vec<Array> =
        results.iter().map(|r| r.with_layout(Shape::new(&[1])?, &[1], r.offset())).collect::<Result<_>>()?;
    download(&cat(&lines.iter().collect::<Vec<_>>(), 0)?)
}

/// The sum of squares of all elements of all arrays.
pub fn sum_squares(x: &[&Array]) -> Result<f64> {
    if x.is_empty() {
        return Ok(0.0);
    }
    let sums: Vec<Array> = x.iter().map(|a| squares(a)).collect::<Result<_>>()?;
    Ok(read_all(&sums)?.slice::<f32>()?.iter().map(|&v| f64::from(v)).sum())
}

/// Multiplies every array by `factor`, in place; true if any element of any of them was infinite or NaN.
pub fn unscale_check(grads: &[&Array], factor: f64) -> Result<bool> {
    if grads.is_empty() {
        return Ok(false);
    }
    let found: Vec<Array> = grads.iter().map(|g| any_not_finite(g)).collect::<Result<_>>()?;
    for g in grads {
        scale_in_place(g, factor)?;
    }
    Ok(read_all(&found)?.slice::<bool>()?.contains(&true))
}

/// Whether `x` holds an infinity or a NaN, as a 0-d bool on the GPU.
fn any_not_finite(x: &Array) -> Result<Array> {
    let marks = super::logic::is_not_finite(x)?;
    super::reduce::max(&marks, Axes::first(marks.rank()), false)
}
