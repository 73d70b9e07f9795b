//! Softmax, layer normalisation and cross entropy on the GPU; the counterpart of `src/cpu/rows/norm.rs`.
//!
//! A row is kept in the registers of 16, 64 or 256 threads and read once; a whole workgroup loops over a
//! longer row.

pub use super::cross_entropy::{cross_entropy, cross_entropy_vjp};

use super::copy::{cast, index_of};
use super::params::Params;
use super::rows::{Rows, flag_if, from_start};
use crate::array::Array;
use crate::array::dtype::DType;
use crate::array::shape::Shape;
use crate::error::Result;
use crate::gpu::shader::template::{Template, per_word};
use crate::gpu::{kernel, launch, variant};

/// Softmax along the last axis, or its logarithm.
pub fn softmax(x: &Array, log: bool) -> Result<Array> {
    let x = from_start(x)?;
    let rows = Rows::of(&x, 1);
    let out = Array::empty(x.shape(), rows.output(x.dtype()), x.device())?;
    let parts = [x.dtype() as u64, out.dtype() as u64, rows.key(), u64::from(log)];
    let kernel = kernel(index_of(&x)?, "softmax", variant(&parts), rows.entry(), || {
        let mut text = Template::new(include_str!("../../../shaders/softmax.wgsl"), DType::F32);
        text.load("x", x.dtype()).store("out", out.dtype()).elements_per_word(out.dtype());
        text.math(&["exp", "log"]).flag("LOG", log);
        rows.set(&mut text);
        text.build()
    })?;
    let mut params = Params::default();
    params.word(rows.rows).word(rows.cols).word(0).word(rows.cols).word(rows.cols);
    launch(index_of(&x)?, &kernel, &[x.buffer(), out.buffer()], params.words(), rows.groups())?;
    cast(&out, x.dtype())
}

/// The VJP of [`softmax`]: `y * (g - sum(g * y))`, or `g - exp(y) * sum(g)` for the logarithm; `y` is the
/// output.
pub fn softmax_vjp(g: &Array, y: &Array, log: bool) -> Result<Array> {
    let (g, y) = (from_start(g)?, from_start(y)?);
    let rows = Rows::of(&y, 1);
    let out = Array::empty(y.shape(), rows.output(y.dtype()), y.device())?;
    let parts = [y.dtype() as u64, g.dtype() as u64, out.dtype() as u64, rows.key(), u64::from(log)];
    let kernel = kernel(index_of(&y)?, "softmax_vjp", variant(&parts), rows.entry(), || {
        let mut text = Template::new(include_str!("../../../shaders/softmax_backward.wgsl"), DType::F32);
        text.load("y", y.dtype()).load("g", g.dtype());
        text.store("out", out.dtype()).elements_per_word(out.dtype()).math(&["exp"]).flag("LOG", log);
        rows.set(&mut text);
        text.build()
    })?;
    let mut params = Params::default();
    params.word(rows.rows).word(rows.cols).word(rows.cols).word(rows.cols).word(rows.cols);
    launch(index_of(&y)?, &kernel, &[y.buffer(), g.buffer(), out.buffer()], params.words(), rows.groups())?;
    cast(&out, y.dtype())
}

/// Normalises the last `axes` axes to mean 0 and variance 1, then scales and shifts. Returns the result and,
/// in float32, the mean and the reciprocal standard deviation of each row.
pub fn layer_norm(
    x: &Array,
    weight: Option<&Array>,
    bias: Option<&Array>,
    axes: usize,
    eps: f64,
) -> Result<(Array, Array, Array)> {
    let x = from_start(x)?;
    let index = index_of(&x)?;
    let rows = Rows::of(&x, axes);
    let out = Array::empty(x.shape(), rows.output(x.dtype()), x.device())?;
    let lead = x.shape().part(0, x.rank() - axes);
    let mean = Array::empty(lead, DType::F32, x.device())?;
    let rstd = Array::empty(lead, DType::F32, x.device())?;
    // Placeholders for absent buffers; the flags tell that they are not read.
    let scale = weight.map_or(Ok(x.clone()), from_start)?;
    let shift = bias.map_or(Ok(x.clone()), from_start)?;
    let parts =
        [x.dtype() as u64, out.dtype() as u64, scale.dtype() as u64, shift.dtype() as u64, rows.key()];
    let kernel = kernel(index, "layer_norm", variant(&parts), rows.entry(), || {
        let mut text = Template::new(include_str!("../../../shaders/layernorm.wgsl"), DType::F32);
        text.load("x", x.dtype()).load("weight", scale.dtype()).load("bias", shift.dtype());
        text.store("out", out.dtype()).elements_per_word(out.dtype());
        rows.set(&mut text);
        text.build()
    })?;
    let mut params = Params::default();
    params.word(rows.rows).word(rows.cols).word(0).word(rows.cols).word(rows.cols);
    params.word(flag_if(weight.is_some(), 1) | flag_if(bias.is_some(), 2)).float(eps);
    let buffers = [x.buffer(), scale.buffer(), shift.buffer(), out.buffer(), mean.buffer(), rstd.buffer()];
    launch(index, &kernel, &buffers, params.words(), rows.groups())?;
    Ok((cast(&out, x.dtype())?, mean, rstd))
}

/// The number of rows whose partial sums of the weight's gradient are kept separately.
const SLOTS: u64 = 1024;

/// The VJP of [`layer_norm`]: the cotangents of `x`, weight and bias (the last two in the shape of the
/// normalised axes, and in the weight's dtype, or that of `x` without a weight).
pub fn layer_norm_vjp(
    g: &Array,
    x: &Array,
    weight: Option<&Array>,
    mean: &Array,
    rstd: &Array,
    axes: usize,
) -> Result<(Array, Array, Array)> {
    let (g, x, mean, rstd) = (from_start(g)?, from_start(x)?, from_start(mean)?, from_start(rstd)?);
    let index = index_of(&x)?;
    let rows = Rows::of(&x, axes);
    let out = Array::empty(x.shape(), rows.output(x.dtype()), x.device())?;
    let scale = weight.map_or(Ok(x.clone()), from_start)?;
    let per_group = 256 / u64::from(rows.lanes);
    let groups = rows.groups().min(SLOTS.div_ceil(per_group)).max(1);
    let slots = (groups * per_group) as usize;
    let partial = Array::empty(Shape::new(&[slots, 2, rows.cols])?, DType::F32, x.device())?;
    let parts = [x.dtype() as u64, g.dtype() as u64, scale.dtype() as u64, out.dtype() as u64, rows.key()];
    let kernel = kernel(index, "layer_norm_vjp", variant(&parts), rows.entry(), || {
        let mut text = Template::new(include_str!("../../../shaders/layernorm_backward.wgsl"), DType::F32);
        text.load("x", x.dtype()).load("g", g.dtype()).load("weight", scale.dtype());
        text.store("out", out.dtype()).elements_per_word(out.dtype());
        rows.set(&mut text);
        text.build()
    })?;
    let mut params = Params::default();
    params.word(rows.rows).word(rows.cols).word(rows.cols).word(rows.cols).word(rows.cols);
    params.word(flag_if(weight.is_some(), 1) | 8).word(groups as usize);
    let buffers = [&x, &g, &scale, &mean, &rstd, &out, &partial].map(Array::buffer);
    // Even without rows, one workgroup writes the sums, which are zero.
    launch(index, &kernel, &buffers, params.words(), groups)?;
    let tail = x.shape().part(x.rank() - axes, x.rank());
    let (dweight, dbias) = add_slots(&partial, tail, slots, scale.dtype())?;
    Ok((cast(&out, x.dtype())?, dweight, dbias))
}

/// Adds the partial sums of the gradients of weight and bias.
fn add_slots(partial: &Array, shape: Shape, slots: usize, dtype: DType) -> Result<(Array, Array)> {
    let index = index_of(partial)?;
    let dweight = Array::empty(shape, dtype, partial.device())?;
    let dbias = Array::empty(shape, dtype, partial.device())?;
    let kernel = kernel(index, "layer_norm_columns", variant(&[dtype as u64]), "main", || {
        let mut text = Template::new(include_str!("../../../shaders/layernorm_columns.wgsl"), DType::F32);
        text.store("dweight", dtype).store("dbias", dtype).elements_per_word(dtype);
        text.build()
    })?;
    let mut params = Params::default();
    params.word(slots).word(shape.numel());
    let groups = (shape.numel() as u64).div_ceil(u64::from(per_word(dtype))).div_ceil(32);
    launch(index, &kernel, &[partial.buffer(), dweight.buffer(), dbias.buffer()], params.words(), groups)?;
    Ok((dweight, dbias))
}
