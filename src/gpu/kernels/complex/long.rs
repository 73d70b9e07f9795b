//! Products of matrices of 64-bit integers on the GPU.

use crate::gpu::kernels::parts::check_rounds;
use crate::gpu::kernels::prelude::*;

/// Writes the product of `x`, `[.., m, k]`, and `y`, `[.., k, n]`, of one batch, to `out`.
pub fn product(x: &Array, y: &Array, out: &Array) -> Result<()> {
    let (r, k) = (x.rank(), x.dim(x.rank() - 1));
    check_rounds(index_of(x)?, "matmul", k)?;
    // Along the axis of the other one an operand stays where it is.
    let along = |a: &Array, axis: usize| {
        let mut strides = a.strides();
        strides[axis] = 0;
        strides
    };
    let rows = x.with_layout(out.shape(), &along(x, r - 1), x.offset())?;
    let columns = y.with_layout(out.shape(), &along(y, r - 2), y.offset())?;
    let mut run = Dispatch::new("dot", shader!("dot"), out.dtype());
    let nest = Nest::new(&out.shape(), &[&rows, &columns]);
    run.input("x", x).input("y", y).output("out", out).nest(&nest, 2);
    run.words([nest.rank, out.numel(), x.offset(), y.offset(), k]);
    run.words([x.stride(r - 1), y.stride(r - 2)].map(|step| step as usize));
    run.launch(out.numel().div_ceil(256))
}
