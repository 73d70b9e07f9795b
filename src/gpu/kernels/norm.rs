//! Softmax, layer normalisation and cross entropy on the GPU; the twin of `src/cpu/norm.rs`.
//!
//! Rows live in the registers of 16, 64 or 256 threads and are read once; longer ones are walked by a whole workgroup.

use super::copy::{cast, convert, index_of};
use super::params::{Params, variant};
use crate::array::Array;
use crate::buffer::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu::template::{Template, per_word};
use crate::gpu::{kernel, launch, status};
use crate::shape::Shape;

/// How rows are spread over threads.
#[derive(Clone, Copy)]
struct Rows {
    rows: usize,
    cols: usize,
    /// Threads per row.
    lanes: u32,
    /// Whether a row fits into the registers of its threads.
    fits: bool,
}

impl Rows {
    /// The rows of `x` over its last `axes` axes.
    fn of(x: &Array, axes: usize) -> Rows {
        let cols: usize = x.shape().iter().rev().take(axes).product();
        let rows = if cols == 0 { 0 } else { x.numel() / cols };
        let lanes = if cols <= 16 * 16 { 16 } else if cols <= 16 * 64 { 64 } else { 256 };
        Rows { rows, cols, lanes, fits: cols <= 16 * lanes as usize }
    }

    fn entry(&self) -> &'static str {
        if self.fits { "rows" } else { "wide" }
    }

    fn groups(&self) -> u64 {
        (self.rows as u64).div_ceil(256 / u64::from(self.lanes))
    }

    /// Part of a kernel's variant.
    fn key(&self) -> u64 {
        u64::from(self.lanes) * 2 + u64::from(self.fits)
    }

    fn set(&self, text: &mut Template) {
        let radix = [4, 8, 16][self.lanes.ilog2() as usize / 2 - 2];
        text.set("const LANES", format!("const LANES: u32 = {}u;", self.lanes));
        text.set("const RADIX", format!("const RADIX: u32 = {radix}u;"));
    }

    /// The dtype in which rows of `dtype` are written: packed rows must start on whole words.
    fn output(&self, dtype: DType) -> DType {
        if self.cols.is_multiple_of(per_word(dtype) as usize) { dtype } else { DType::F32 }
    }
}

/// `x` contiguous from the start of its buffer.
fn from_start(x: &Array) -> Result<Array> {
    if x.is_contiguous() && x.offset() == 0 { Ok(x.clone()) } else { convert(x, x.dtype()) }
}

fn flag_if(condition: bool, bit: usize) -> usize {
    if condition { bit } else { 0 }
}

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
        Ok(text.build())
    })?;
    let mut params = Params::default();
    params.word(rows.rows).word(rows.cols).word(0).word(rows.cols).word(rows.cols);
    launch(index_of(&x)?, &kernel, &[x.buffer(), out.buffer()], params.words(), rows.groups())?;
    cast(&out, x.dtype())
}

/// The VJP of [`softmax`]: `y * (g - sum(g * y))`, or `g - exp(y) * sum(g)` of the logarithm; `y` is the output.
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
        Ok(text.build())
    })?;
    let mut params = Params::default();
    params.word(rows.rows).word(rows.cols).word(rows.cols).word(rows.cols).word(rows.cols);
    launch(index_of(&y)?, &kernel, &[y.buffer(), g.buffer(), out.buffer()], params.words(), rows.groups())?;
    cast(&out, y.dtype())
}

/// Normalises the last `axes` axes to mean 0 and variance 1, then scales and shifts. Returns the result, the mean and
/// the reciprocal standard deviation of each row, which are float32.
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
    // A buffer must stand in for what is absent; the flags say that it is not read.
    let scale = weight.map_or(Ok(x.clone()), from_start)?;
    let shift = bias.map_or(Ok(x.clone()), from_start)?;
    let parts = [x.dtype() as u64, out.dtype() as u64, scale.dtype() as u64, shift.dtype() as u64, rows.key()];
    let kernel = kernel(index, "layer_norm", variant(&parts), rows.entry(), || {
        let mut text = Template::new(include_str!("../../../shaders/layernorm.wgsl"), DType::F32);
        text.load("x", x.dtype()).load("weight", scale.dtype()).load("bias", shift.dtype());
        text.store("out", out.dtype()).elements_per_word(out.dtype());
        rows.set(&mut text);
        Ok(text.build())
    })?;
    let mut params = Params::default();
    params.word(rows.rows).word(rows.cols).word(0).word(rows.cols).word(rows.cols);
    params.word(flag_if(weight.is_some(), 1) | flag_if(bias.is_some(), 2)).float(eps);
    let buffers = [x.buffer(), scale.buffer(), shift.buffer(), out.buffer(), mean.buffer(), rstd.buffer()];
    launch(index, &kernel, &buffers, params.words(), rows.groups())?;
    Ok((cast(&out, x.dtype())?, mean, rstd))
}

/// Rows whose partial sums of the weight's gradient are kept side by side.
const SLOTS: u64 = 1024;

/// The VJP of [`layer_norm`]: the cotangents of `x`, of the weight and of the bias (the last two in the shape of the
/// normalised axes, of the weight's dtype, or of `x`'s where there is none).
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
        Ok(text.build())
    })?;
    let mut params = Params::default();
    params.word(rows.rows).word(rows.cols).word(rows.cols).word(rows.cols).word(rows.cols);
    params.word(flag_if(weight.is_some(), 1) | 8).word(groups as usize);
    let buffers = [&x, &g, &scale, &mean, &rstd, &out, &partial].map(Array::buffer);
    // With no rows at all one workgroup still writes the sums, which are zero.
    launch(index, &kernel, &buffers, params.words(), groups)?;
    let tail = x.shape().part(x.rank() - axes, x.rank());
    let (dweight, dbias) = add_slots(&partial, tail, slots, scale.dtype())?;
    Ok((cast(&out, x.dtype())?, dweight, dbias))
}

/// The partial sums of the weight's and the bias's gradients added up.
fn add_slots(partial: &Array, shape: Shape, slots: usize, dtype: DType) -> Result<(Array, Array)> {
    let index = index_of(partial)?;
    let dweight = Array::empty(shape, dtype, partial.device())?;
    let dbias = Array::empty(shape, dtype, partial.device())?;
    let kernel = kernel(index, "layer_norm_columns", dtype as u64, "main", || {
        let mut text = Template::new(include_str!("../../../shaders/layernorm_columns.wgsl"), DType::F32);
        text.store("dweight", dtype).store("dbias", dtype).elements_per_word(dtype);
        Ok(text.build())
    })?;
    let mut params = Params::default();
    params.word(slots).word(shape.numel());
    let groups = (shape.numel() as u64).div_ceil(u64::from(per_word(dtype))).div_ceil(32);
    launch(index, &kernel, &[partial.buffer(), dweight.buffer(), dbias.buffer()], params.words(), groups)?;
    Ok((dweight, dbias))
}

/// The classes as int32 from the start of a buffer.
fn labels(target: &Array) -> Result<Array> {
    if target.dtype() != DType::I32 {
        return Err(Error::dtype(format!("internal: class indices on a gpu are int32, got {target:?}")));
    }
    from_start(target)
}

/// The label that stands for "ignore"; one outside of int32 is met by no row.
fn ignored(ignore_index: i64) -> usize {
    i32::try_from(ignore_index).unwrap_or(i32::MIN) as usize
}

/// Cross entropy of the rows of `logits [n, c]` against the classes `target [n]`: the loss and log-sum-exp of each row.
///
/// A class outside of `0..c` raises at the next read-back. The loss has the dtype of the logits, lse is float32.
pub fn cross_entropy(logits: &Array, target: &Array, ignore_index: i64) -> Result<(Array, Array)> {
    let (x, target) = (from_start(logits)?, labels(target)?);
    let index = index_of(&x)?;
    let rows = Rows::of(&x, 1);
    let shape = Shape::new(&[x.dim(0)])?;
    let loss = Array::empty(shape, DType::F32, Device::Gpu(index))?;
    let lse = Array::empty(shape, DType::F32, Device::Gpu(index))?;
    let report = status(index, "cross_entropy", rows.cols, false)?;
    let kernel = kernel(index, "cross_entropy", variant(&[x.dtype() as u64, rows.key()]), "main", || {
        let mut text = Template::new(include_str!("../../../shaders/cross_entropy.wgsl"), DType::F32);
        text.load("x", x.dtype()).elements_per_word(x.dtype()).math(&["exp", "log"]);
        rows.set(&mut text);
        Ok(text.build())
    })?;
    let mut params = Params::default();
    params.word(rows.rows).word(rows.cols).word(0).word(rows.cols).word(ignored(ignore_index)).float(0.0);
    let buffers = [x.buffer(), target.buffer(), loss.buffer(), lse.buffer(), &report];
    launch(index, &kernel, &buffers, params.words(), rows.groups())?;
    Ok((cast(&loss, x.dtype())?, lse))
}

/// The VJP of [`cross_entropy`]: `g[r] * (exp(x - lse[r]) - onehot(target[r]))`, zero on ignored rows.
pub fn cross_entropy_vjp(
    g: &Array,
    logits: &Array,
    target: &Array,
    lse: &Array,
    ignore_index: i64,
) -> Result<Array> {
    let (g, x, target, lse) = (cast(g, DType::F32)?, from_start(logits)?, labels(target)?, from_start(lse)?);
    let g = from_start(&g)?;
    let index = index_of(&x)?;
    let rows = Rows::of(&x, 1);
    let out = Array::empty(x.shape(), rows.output(x.dtype()), x.device())?;
    let parts = [x.dtype() as u64, out.dtype() as u64];
    let kernel = kernel(index, "cross_entropy_vjp", variant(&parts), "main", || {
        let mut text = Template::new(include_str!("../../../shaders/cross_entropy_backward.wgsl"), DType::F32);
        text.load("x", x.dtype()).store("out", out.dtype()).elements_per_word(out.dtype()).math(&["exp"]);
        Ok(text.build())
    })?;
    let words = rows.cols.div_ceil(per_word(out.dtype()) as usize);
    let mut params = Params::default();
    params.word(rows.rows).word(rows.cols).word(words).word(0).word(rows.cols).word(1).word(rows.cols);
    params.word(ignored(ignore_index)).float(0.0).float(1.0);
    let buffers = [x.buffer(), target.buffer(), lse.buffer(), g.buffer(), out.buffer()];
    launch(index, &kernel, &buffers, params.words(), ((rows.rows * words) as u64).div_ceil(1024))?;
    cast(&out, x.dtype())
}
