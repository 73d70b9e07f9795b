//! Matrix products on the GPU; the twin of `src/cpu/matmul.rs`.

use super::copy::{cast, contiguous, convert, index_of};
use super::params::{Params, Walk};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu::template::{Template, per_word};
use crate::gpu::{kernel, launch};

/// Side of the tile of outputs that one workgroup computes.
const TILE: usize = 64;

/// `[..., m, k] x [..., k, n]`: batch axes broadcast, any strides, products summed in float32 (or int32).
pub fn matmul(a: &Array, b: &Array) -> Result<Array> {
    let index = index_of(a)?;
    let r = a.rank();
    let batch = a.shape().part(0, r.saturating_sub(2)).broadcast(&b.shape().part(0, b.rank().saturating_sub(2)));
    let (Some(batch), true) = (batch, r >= 2 && b.rank() == r && a.dtype() == b.dtype() && a.dim(r - 1) == b.dim(r - 2))
    else {
        return Err(Error::shape(format!("internal: matmul of {a:?} and {b:?}")));
    };
    let (m, k, n) = (a.dim(r - 2), a.dim(r - 1), b.dim(r - 1));
    let shape = batch.inserted(r - 2, m)?.inserted(r - 1, n)?;
    // Rows of packed outputs start on whole words.
    let dtype = if n.is_multiple_of(per_word(a.dtype()) as usize) { a.dtype() } else { DType::F32 };
    let out = Array::empty(shape, dtype, a.device())?;
    if out.numel() == 0 {
        return cast(&out, a.dtype());
    }
    let a_full = a.expand(&batch.inserted(r - 2, m)?.inserted(r - 1, k)?)?;
    let b_full = b.expand(&batch.inserted(r - 2, k)?.inserted(r - 1, n)?)?;
    let walk = |a: &Array, b: &Array| Walk::over(&shape, &[&rows_only(a), &rows_only(b)], 0..r - 2);
    let (mut x, mut y) = (a_full, b_full);
    let mut batches = walk(&x, &y);
    if batches.rank() > 2 {
        (x, y) = (contiguous(&x)?, contiguous(&y)?);
        batches = walk(&x, &y);
    }
    launch_tiles(index, &x, &y, &out, &batches)?;
    if dtype == a.dtype() { Ok(out) } else { convert(&out, a.dtype()) }
}

/// The view whose last two axes have length 1, so that its batch axes broadcast to those of a product.
fn rows_only(x: &Array) -> Array {
    let r = x.rank();
    let shape = x.shape().with(r - 2, 1).with(r - 1, 1);
    x.with_layout(shape, &x.strides(), x.offset()).unwrap_or_else(|_| x.clone())
}

fn launch_tiles(index: u8, x: &Array, y: &Array, out: &Array, batches: &Walk) -> Result<()> {
    let r = x.rank();
    let (m, k, n) = (x.dim(r - 2), x.dim(r - 1), y.dim(r - 1));
    let (count, inner) = (batches.dims.iter().product::<i64>(), batches.dims.last().copied().unwrap_or(1));
    let step = |which: usize, level: usize| match (batches.rank(), level) {
        (2, 0) => batches.strides[which][0],
        (1 | 2, 1) => batches.strides[which][batches.rank() - 1],
        _ => 0,
    } as usize;
    let (tiles_m, tiles_n) = (m.div_ceil(TILE), n.div_ceil(TILE));
    let key = x.dtype() as u64 * 16 + out.dtype() as u64;
    let kernel = kernel(index, "matmul", key, "main", || {
        let mut text = Template::new(include_str!("../../../shaders/matmul.wgsl"), x.dtype());
        text.load("x", x.dtype()).load("y", y.dtype()).store("out", out.dtype()).elements_per_word(out.dtype());
        Ok(text.build())
    })?;
    let mut params = Params::default();
    params.word(m).word(n).word(k).word(count as usize).word(inner as usize).word(tiles_m).word(tiles_n);
    for (i, a) in [x, y].into_iter().enumerate() {
        params.word(a.offset()).word(step(i, 0)).word(step(i, 1));
        params.word(a.stride(r - 2) as usize).word(a.stride(r - 1) as usize);
    }
    params.word(m * n).word(n);
    let groups = (tiles_m * tiles_n) as u64 * count as u64;
    launch(index, &kernel, &[x.buffer(), y.buffer(), out.buffer()], params.words(), groups)
}
