//! First-order recurrences along one axis.

use super::copy::{cast, convert, index_of};
use super::params::Params;
use super::parts::parts;
use crate::array::Array;
use crate::array::dtype::DType;
use crate::array::nest::Nest;
use crate::error::Result;
use crate::gpu::shader::template::Template;
use crate::gpu::{kernel, launch, variant};

const SOURCE: &str = concat!(
    include_str!("../../../shaders/lib/products.wgsl"),
    include_str!("../../../shaders/recurrence.wgsl")
);

/// `s[i] = decay[i] * s[i-1] + x[i]` along `axis`, computed in float32. Both operands have one shape.
pub fn recurrence(decay: &Array, x: &Array, axis: usize) -> Result<Array> {
    let index = index_of(x)?;
    let out = Array::empty(x.shape(), DType::F32, x.device())?;
    if x.numel() == 0 {
        return cast(&out, x.dtype());
    }
    let kept = Nest::over(&x.shape(), &[decay, x, &out], (0..x.rank()).filter(|&i| i != axis));
    let lines = kept.numel();
    let kernel = kernel(index, "recurrence", variant(&[x.dtype() as u64]), "main", || {
        let mut text = Template::new(SOURCE, DType::F32);
        text.load("decay", x.dtype()).load("x", x.dtype()).store("out", DType::F32);
        text.build()
    })?;
    let buffers = [decay.buffer(), x.buffer(), out.buffer()];
    for (start, length) in parts(x.dim(axis)) {
        let mut params = Params::default();
        params.nest(&kept, 3).word(kept.rank).word(lines).word(length);
        for array in [decay, x, &out] {
            let step = array.stride(axis);
            params.word(array.offset().wrapping_add_signed(step * start as isize)).word(step as usize);
        }
        params.word(usize::from(start > 0));
        launch(index, &kernel, &buffers, params.words(), (lines as u64).div_ceil(256))?;
    }
    if x.dtype() == DType::F32 { Ok(out) } else { convert(&out, x.dtype()) }
}
