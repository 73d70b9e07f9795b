//! Cross entropy of logits against class indices, fused with log-softmax.

use super::copy::{cast, flat, from_start, index_of};
use super::dispatch::Dispatch;
use super::rows::Rows;
use crate::array::Array;
use crate::array::dtype::DType;
use crate::array::shape::Shape;
use crate::error::{Error, Result};
use crate::gpu::shader::template::per_word;
use crate::gpu::status;

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
    let rows = Rows::of(&x, 1);
    let shape = Shape::new(&[x.dim(0)])?;
    let loss = Array::empty(shape, DType::F32, x.device())?;
    let lse = Array::empty(shape, DType::F32, x.device())?;
    let report = status(index_of(&x)?, "cross_entropy", rows.cols, false)?;
    let source = include_str!("../../../shaders/cross_entropy.wgsl");
    let mut run = rows.dispatch("cross_entropy", source);
    run.entry("main").input("x", &x).reads(&target).writes(&loss).writes(&lse).reports(&report);
    run.number("EPW", per_word(x.dtype()));
    run.words([rows.rows, rows.cols, 0, rows.cols, ignored(ignore_index)]).floats([0.0]);
    run.launch(rows.groups())?;
    Ok((loss, lse))
}

/// The VJP of [`cross_entropy`]: `g[r] * (exp(x - lse[r]) - onehot(target[r]))`, zero on ignored rows.
pub fn cross_entropy_vjp(
    g: &Array, logits: &Array, target: &Array, lse: &Array, ignore_index: i64,
) -> Result<Array> {
    let (g, x, target, lse) = (flat(g, DType::F32)?, from_start(logits)?, labels(target)?, from_start(lse)?);
    let rows = Rows::of(&x, 1);
    let out = rows.output(&x)?;
    let words = rows.cols.div_ceil(per_word(out.dtype()));
    let source = include_str!("../../../shaders/cross_entropy_backward.wgsl");
    let mut run = Dispatch::new("cross_entropy_vjp", source, DType::F32);
    run.input("x", &x)
        .reads(&target)
        .reads(&lse)
        .reads(&g)
        .output("out", &out)
        .words([rows.rows, rows.cols, words, 0, rows.cols, 1, rows.cols, ignored(ignore_index)])
        .floats([0.0, 1.0]);
    run.launch((rows.rows * words).div_ceil(1024))?;
    cast(&out, x.dtype())
}
