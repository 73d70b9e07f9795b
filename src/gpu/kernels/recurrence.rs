//! First-order recurrences along one axis.

use super::copy::{cast, convert, index_of};
use super::params::{Params, Walk, variant};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::template::Template;
use crate::gpu::{kernel, launch};

/// `s[i] = decay[i] * s[i-1] + x[i]` along `axis`, in float32. Both operands have one shape.
pub fn recurrence(decay: &Array, x: &Array, axis: usize) -> Result<Array> {
    let index = index_of(x)?;
    let out = Array::empty(x.shape(), DType::F32, x.device())?;
    if x.numel() == 0 {
        return cast(&out, x.dtype());
    }
    let kept = Walk::over(&x.shape(), &[decay, x, &out], (0..x.rank()).filter(|&i| i != axis));
    let lines = kept.dims.iter().product::<i64>() as usize;
    let kernel = kernel(index, "recurrence", variant(&[x.dtype() as u64]), "main", || {
        let mut text = Template::new(include_str!("../../../shaders/recurrence.wgsl"), DType::F32);
        text.load("decay", x.dtype()).load("x", x.dtype()).store("out", DType::F32);
        Ok(text.build())
    })?;
    let mut params = Params::default();
    kept.write(&mut params);
    params.word(kept.rank()).word(lines).word(x.dim(axis));
    for array in [decay, x, &out] {
        params.word(array.offset()).word(array.stride(axis) as usize);
    }
    launch(
        index,
        &kernel,
        &[decay.buffer(), x.buffer(), out.buffer()],
        params.words(),
        (lines as u64).div_ceil(256),
    )?;
    if x.dtype() == DType::F32 { Ok(out) } else { convert(&out, x.dtype()) }
}
