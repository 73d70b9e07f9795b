//! Cumulative sums and products.

use super::map::pointwise_int;
use super::prelude::*;
use super::reduce::Fold;
use crate::math::real::{Integer, PointwiseInt};

/// The cumulative sum along `axis`.
pub fn cumsum(x: &Array, axis: usize) -> Result<Array> {
    scan("scan_sum", Fold::Sum, x, axis)
}

/// The cumulative product along `axis`.
pub fn cumprod(x: &Array, axis: usize) -> Result<Array> {
    scan("scan_prod", Fold::Prod, x, axis)
}

fn scan(name: &str, fold: Fold, x: &Array, axis: usize) -> Result<Array> {
    let compute = arithmetic(x.dtype());
    let out = like(x, compute)?;
    let kept = Nest::over(&x.shape(), &[x, &out], (0..x.rank()).filter(|&i| i != axis));
    let (lines, length) = (kept.numel(), x.dim(axis));
    if x.numel() == 0 {
        return cast(&out, x.dtype());
    }
    let tree = length >= 64 && lines < 16 << 10;
    let mut run = Dispatch::new(name, shader!("lib/products", "lib/lines", "scan"), compute);
    run.entry(if tree { "tree" } else { "serial" })
        .input("x", x)
        .output("out", &out)
        .number("FOLD", fold as usize)
        // Errors of a chain of rounded products accumulate, so it is compensated; sums in a tree lose little.
        .flag("PAIRED", fold == Fold::Prod && compute == DType::F32)
        .nest(&kept, 2)
        .words([kept.rank, lines, length, x.offset(), x.stride(axis) as usize])
        .words([out.offset(), out.stride(axis) as usize]);
    run.launch(if tree { lines } else { lines.div_ceil(256) })?;
    cast(&out, x.dtype())
}

/// The counts of one block of [`totals`].
const BLOCK: usize = 1024;

/// The running sums of the rows of `x`, integers `[lines, length]`. Blocks of a long row are summed side by
/// side, and start from the sums of those before.
pub(super) fn totals(x: &Array) -> Result<Array> {
    let (lines, length) = (x.dim(0), x.dim(1));
    let blocks = length / BLOCK;
    let split = x.reshape_view(&Shape::new(&[lines, blocks, BLOCK])?).filter(|_| blocks > 4);
    let Some(split) = split.filter(|_| length.is_multiple_of(BLOCK)) else {
        return cumsum(x, 1);
    };
    let within = cumsum(&split, 2)?;
    let own = within.with_layout(
        Shape::new(&[lines, blocks, 1])?,
        &[length as isize, BLOCK as isize, 0],
        BLOCK - 1,
    )?;
    let until = cumsum(&own, 1)?;
    pointwise_int("shifted", 0, [&within, &until, &own], Shifted)
}

/// The sum within a block, from the sum until its end without its own.
#[derive(Clone, Copy)]
struct Shifted;

impl PointwiseInt<3> for Shifted {
    fn apply<I: Integer>(&self, [within, until, own]: [I; 3]) -> I {
        within.add(until.sub(own))
    }
}
