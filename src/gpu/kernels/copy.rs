//! Copies and casts on the GPU; the counterpart of `src/cpu/pointwise/copy.rs`.

use super::params::Params;
use crate::array::Array;
use crate::array::buffer::Device;

use crate::array::dtype::DType;
use crate::array::nest::Nest;
use crate::error::{Error, Result};
use crate::gpu::shader::template::{Template, per_word};
use crate::gpu::{kernel, launch, variant};

/// The GPU that holds `x`; an internal error for an array on the CPU.
pub fn index_of(x: &Array) -> Result<u8> {
    match x.device() {
        Device::Gpu(index) => Ok(index),
        Device::Cpu => Err(Error::device(format!("internal: {x:?} given to a gpu kernel"))),
    }
}

/// Returns `x` if it is contiguous, else a contiguous copy.
pub fn contiguous(x: &Array) -> Result<Array> {
    if x.is_contiguous() { Ok(x.clone()) } else { convert(x, x.dtype()) }
}

/// Converts `x` to `dtype`: floats truncate to integers, and convert to bool by `!= 0`.
pub fn cast(x: &Array, dtype: DType) -> Result<Array> {
    if x.dtype() == dtype { contiguous(x) } else { convert(x, dtype) }
}

/// A new contiguous array with the elements of `x` as `dtype`.
pub fn convert(x: &Array, dtype: DType) -> Result<Array> {
    let index = index_of(x)?;
    let out = Array::empty(x.shape(), dtype, x.device())?;
    let nest = Nest::new(&x.shape(), &[x]);
    // Without a change of dtype, copy the bits, so that NaN payloads and -0 survive.
    let compute = match (x.dtype(), dtype) {
        (DType::F32, DType::F32) => DType::I32,
        (from, to) if from.is_float() || to.is_float() => DType::F32,
        _ => DType::I32,
    };
    let from = if x.dtype() == dtype && compute == DType::I32 { DType::I32 } else { x.dtype() };
    let to = if x.dtype() == dtype && compute == DType::I32 { DType::I32 } else { dtype };
    let key = variant(&[x.dtype() as u64, dtype as u64, u64::from(nest.are_flat(1))]);
    let kernel = kernel(index, "cast", key, "main", || {
        let mut text = Template::new(include_str!("../../../shaders/map1.wgsl"), compute);
        text.load("x", from).store("out", to).elements_per_word(to).flag("CONTIGUOUS", nest.are_flat(1));
        text.build()
    })?;
    let mut params = Params::default();
    params.nest(&nest, 1).word(nest.rank).word(x.numel()).word(x.offset()).float(0.0).float(0.0);
    let words = x.numel().div_ceil(per_word(dtype) as usize) as u64;
    launch(index, &kernel, &[x.buffer(), out.buffer()], params.words(), words.div_ceil(1024))?;
    Ok(out)
}

/// Copies `src`, broadcast to the shape of `dst`, into the view `dst`. Both have the same dtype.
pub fn copy_into(dst: &Array, src: &Array) -> Result<()> {
    let index = index_of(dst)?;
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
    let is_packed = per_word(dst.dtype()) == 2;
    let kernel = kernel(index, "copy_into", variant(&[u64::from(is_packed)]), "main", || {
        let mut text = Template::new(include_str!("../../../shaders/copy_into.wgsl"), DType::F32);
        if is_packed {
            text.set("var out", "@group(0) @binding(1) var<storage, read_write> out: array<atomic<u32>>;");
            text.set(
                "copy element",
                "fn copy_element(to: u32, i: u32) { let shift = (to & 1u) << 4u; \
                 atomicAnd(&out[to >> 1u], ~(0xffffu << shift)); \
                 atomicOr(&out[to >> 1u], ((x[i >> 1u] >> ((i & 1u) << 4u)) & 0xffffu) << shift); }",
            );
        }
        text.build()
    })?;
    let mut params = Params::default();
    params.nest(&nest, 2).word(nest.rank).word(dst.numel()).word(dst.offset()).word(src.offset());
    let groups = (dst.numel() as u64).div_ceil(256);
    launch(index, &kernel, &[src.buffer(), dst.buffer()], params.words(), groups)
}
