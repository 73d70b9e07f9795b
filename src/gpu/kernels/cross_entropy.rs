//! Cross entropy of logits against class indices, fused with log-softmax.

use super::copy::{cast, index_of};
use super::params::Params;
use super::rows::{Rows, from_start};
use crate::array::Array;
use crate::array::buffer::Device;
use crate::array::dtype::DType;
use crate::array::shape::Shape;
use crate::error::{Error, Result};
use crate::gpu::shader::template::{Template, per_word};
use crate::gpu::status;
use crate::gpu::{kernel, launch, variant};

/// Checks that the classes are int32; returns them from the start of a buffer.
fn labels(target: &Array) -> Result<Array> {
    if target.dtype() != DType::I32 {
        return Err(Error::dtype(format!("internal: class indices on a gpu are int32, got {target:?}")));
    }
    from_start(target)
}

/// The label to ignore; no row has one outside of int32.
fn ignored(ignore_index: i64) -> usize {
    i32::try_from(ignore_index).unwrap_or(i32::MIN) as usize
}

/// Cross entropy of the rows of `logits [n, c]` against the classes `target [n]`. Returns the loss and
/// log-sum-exp of each row, in float32. A class outside of `0..c` raises at the next read-back.
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
        text.build()
    })?;
    let mut params = Params::default();
    params.word(rows.rows).word(rows.cols).word(0).word(rows.cols).word(ignored(ignore_index)).float(0.0);
    let buffers = [x.buffer(), target.buffer(), loss.buffer(), lse.buffer(), &report];
    launch(index, &kernel, &buffers, params.words(), rows.groups())?;
    Ok((loss, lse))
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
        let mut text =
            Template::new(include_str!("../../../shaders/cross_entropy_backward.wgsl"), DType::F32);
        text.load("x", x.dtype()).store("out", out.dtype()).elements_per_word(out.dtype()).math(&["exp"]);
        text.build()
    })?;
    let words = rows.cols.div_ceil(per_word(out.dtype()) as usize);
    let mut params = Params::default();
    params.word(rows.rows).word(rows.cols).word(words).word(0).word(rows.cols).word(1).word(rows.cols);
    params.word(ignored(ignore_index)).float(0.0).float(1.0);
    let buffers = [x.buffer(), target.buffer(), lse.buffer(), g.buffer(), out.buffer()];
    launch(index, &kernel, &buffers, params.words(), ((rows.rows * words) as u64).div_ceil(1024))?;
    cast(&out, x.dtype())
}
