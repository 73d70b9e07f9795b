//! Softmax, layer normalisation and cross entropy on the GPU; the counterpart of `src/cpu/rows/norm.rs`.
//!
//! A row is kept in the registers of 16, 64 or 256 threads and read once; a whole workgroup loops over a
//! longer row.

pub use super::cross_entropy::{cross_entropy, cross_entropy_vjp};

use super::copy::{cast, from_start};
use super::dispatch::{Dispatch, words_of};
use super::rows::Rows;
use crate::array::Array;
use crate::array::dtype::DType;
use crate::array::shape::Shape;
use crate::error::Result;

/// Softmax along the last axis, or its logarithm.
pub fn softmax(x: &Array, log: bool) -> Result<Array> {
    let x = from_start(x)?;
    let rows = Rows::of(&x, 1);
    let out = rows.output(&x)?;
    let mut run = rows.dispatch("softmax", include_str!("../../../shaders/softmax.wgsl"));
    run.input("x", &x).output("out", &out).flag("LOG", log);
    run.words([rows.rows, rows.cols, 0, rows.cols, rows.cols]);
    run.launch(rows.groups())?;
    cast(&out, x.dtype())
}

/// The VJP of [`softmax`]: `y * (g - sum(g * y))`, or `g - exp(y) * sum(g)` for the logarithm; `y` is the
/// output.
pub fn softmax_vjp(g: &Array, y: &Array, log: bool) -> Result<Array> {
    let (g, y) = (from_start(g)?, from_start(y)?);
    let rows = Rows::of(&y, 1);
    let out = rows.output(&y)?;
    let source = include_str!("../../../shaders/softmax_backward.wgsl");
    let mut run = rows.dispatch("softmax_vjp", source);
    run.input("y", &y).input("g", &g).output("out", &out).flag("LOG", log);
    run.words([rows.rows]).words([rows.cols; 4]);
    run.launch(rows.groups())?;
    cast(&out, y.dtype())
}

/// Normalises the last `axes` axes to mean 0 and variance 1, then scales and shifts. Returns the result and,
/// in float32, the mean and the reciprocal standard deviation of each row.
pub fn layer_norm(
    x: &Array, weight: Option<&Array>, bias: Option<&Array>, axes: usize, eps: f64,
) -> Result<(Array, Array, Array)> {
    let x = from_start(x)?;
    let rows = Rows::of(&x, axes);
    let out = rows.output(&x)?;
    let lead = x.shape().part(0, x.rank() - axes);
    let mean = Array::empty(lead, DType::F32, x.device())?;
    let rstd = Array::empty(lead, DType::F32, x.device())?;
    // Placeholders for absent buffers; the flags tell that they are not read.
    let scale = weight.map_or(Ok(x.clone()), from_start)?;
    let shift = bias.map_or(Ok(x.clone()), from_start)?;
    let mut run = rows.dispatch("layer_norm", include_str!("../../../shaders/layernorm.wgsl"));
    run.input("x", &x).input("weight", &scale).input("bias", &shift);
    run.output("out", &out).writes(&mean).writes(&rstd);
    let flags = usize::from(weight.is_some()) | usize::from(bias.is_some()) << 1;
    run.words([rows.rows, rows.cols, 0, rows.cols, rows.cols, flags]).floats([eps]);
    run.launch(rows.groups())?;
    Ok((cast(&out, x.dtype())?, mean, rstd))
}

/// The number of rows whose partial sums of the weight's gradient are kept separately.
const SLOTS: usize = 1024;

/// The VJP of [`layer_norm`]: the cotangents of `x`, weight and bias (the last two in the shape of the
/// normalised axes, and in the weight's dtype, or that of `x` without a weight).
pub fn layer_norm_vjp(
    g: &Array, x: &Array, weight: Option<&Array>, mean: &Array, rstd: &Array, axes: usize,
) -> Result<(Array, Array, Array)> {
    let (g, x, mean, rstd) = (from_start(g)?, from_start(x)?, from_start(mean)?, from_start(rstd)?);
    let rows = Rows::of(&x, axes);
    let out = rows.output(&x)?;
    let scale = weight.map_or(Ok(x.clone()), from_start)?;
    let per_group = 256 / rows.lanes;
    // Even without rows, one workgroup writes the sums, which are zero.
    let groups = rows.groups().min(SLOTS.div_ceil(per_group)).max(1);
    let slots = groups * per_group;
    let partial = Array::empty(Shape::new(&[slots, 2, rows.cols])?, DType::F32, x.device())?;
    let source = include_str!("../../../shaders/layernorm_backward.wgsl");
    let mut run = rows.dispatch("layer_norm_vjp", source);
    run.input("x", &x).input("g", &g).input("weight", &scale);
    run.reads(&mean).reads(&rstd).output("out", &out).writes(&partial);
    run.words([rows.rows]).words([rows.cols; 4]).words([usize::from(weight.is_some()) | 8, groups]);
    run.launch(groups)?;
    let tail = x.shape().part(x.rank() - axes, x.rank());
    let (dweight, dbias) = add_slots(&partial, tail, slots, scale.dtype())?;
    Ok((cast(&out, x.dtype())?, dweight, dbias))
}

/// Adds the partial sums of the gradients of weight and bias.
fn add_slots(partial: &Array, shape: Shape, slots: usize, dtype: DType) -> Result<(Array, Array)> {
    let dweight = Array::empty(shape, dtype, partial.device())?;
    let dbias = Array::empty(shape, dtype, partial.device())?;
    let source = include_str!("../../../shaders/layernorm_columns.wgsl");
    let mut run = Dispatch::new("layer_norm_columns", source, DType::F32);
    run.reads(partial).output("dweight", &dweight).output("dbias", &dbias).words([slots, shape.numel()]);
    run.launch(words_of(&dweight).div_ceil(32))?;
    Ok((dweight, dbias))
}
