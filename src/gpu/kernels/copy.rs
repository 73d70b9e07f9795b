//! Copies and casts on the GPU; the counterpart of `src/cpu/pointwise/copy.rs`.

use super::prelude::*;
use crate::array::buffer::Device;

/// The GPU that holds `x`; an internal error for an array on the CPU.
pub fn index_of(x: &Array) -> Result<u8> {
    match x.device() {
        Device::Gpu(index) => Ok(index),
        Device::Cpu => Err(Error::device(format!("internal: {x:?} given to a gpu kernel"))),
    }
}

/// Returns `x` if it is contiguous, else a contiguous copy.
pub fn contiguous(x: &Array) -> Result<Array> {
    cast(x, x.dtype())
}

/// Converts `x` to `dtype`: floats truncate to integers, and convert to bool by `!= 0`.
pub fn cast(x: &Array, dtype: DType) -> Result<Array> {
    if x.dtype() == dtype && x.is_contiguous() { Ok(x.clone()) } else { convert(x, dtype) }
}

/// Whether `x` holds `dtype`, contiguous from the start of its buffer.
pub fn is_flat(x: &Array, dtype: DType) -> bool {
    x.dtype() == dtype && x.is_contiguous() && x.offset() == 0
}

/// Returns `x`, or a copy, as `dtype` and contiguous from the start of its buffer.
pub fn flat(x: &Array, dtype: DType) -> Result<Array> {
    if is_flat(x, dtype) { Ok(x.clone()) } else { convert(x, dtype) }
}

/// Returns `x`, or a copy, contiguous from the start of its buffer.
pub fn from_start(x: &Array) -> Result<Array> {
    flat(x, x.dtype())
}

/// A new contiguous array with the elements of `x` as `dtype`.
pub fn convert(x: &Array, dtype: DType) -> Result<Array> {
    let out = like(x, dtype)?;
    let nest = Nest::new(&x.shape(), &[x]);
    // Without a change of dtype, copy the bits, so that NaN payloads and -0 survive.
    let is_copy = x.dtype() == dtype && per_word(dtype) == 1;
    let (from, to) = if is_copy { (DType::I32, DType::I32) } else { (x.dtype(), dtype) };
    let compute = if from.is_float() || to.is_float() { DType::F32 } else { DType::I32 };
    let mut run = Dispatch::new("cast", shader!("map1"), compute);
    run.text.load("x", from).store("out", to);
    run.reads(x)
        .writes(&out)
        .flag("CONTIGUOUS", nest.are_flat(1))
        .nest(&nest, 1)
        .words([nest.rank, x.numel(), x.offset()])
        .floats([0.0; 2]);
    run.launch(words_of(&out).div_ceil(1024))?;
    Ok(out)
}

/// Copies `src`, broadcast to the shape of `dst`, into the view `dst`. Both have the same dtype.
pub fn copy_into(dst: &Array, src: &Array) -> Result<()> {
    if src.dtype() != dst.dtype() {
        return Err(Error::dtype(format!("internal: copy of {src:?} into {dst:?}")));
    }
    let packed;
    let src = if src.buffer().same(dst.buffer()) {
        packed = convert(src, src.dtype())?;
        &packed
    } else {
        src
    };
    let nest = Nest::new(&dst.shape(), &[dst, src]);
    let (name, source) = match per_word(dst.dtype()) {
        1 => ("copy_into", shader!("lib/strided", "copy_into")),
        _ => ("copy_into_halves", shader!("lib/strided", "copy_into_halves")),
    };
    let mut run = Dispatch::new(name, source, DType::F32);
    run.reads(src).writes(dst).nest(&nest, 2).words([nest.rank, dst.numel(), dst.offset(), src.offset()]);
    run.launch(dst.numel().div_ceil(256))
}
