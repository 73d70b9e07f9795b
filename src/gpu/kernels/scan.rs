//! Cumulative sums and products.

use super::copy::copy_into;
use super::gather::pad;
use super::map::pointwise_int;
use super::parts::part_of;
use super::prelude::*;
use super::reduce::Fold;
use crate::array::shape::MAX_RANK;
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
    // Long products of floats are compensated from their first factor on.
    let is_split = x.numel() < LINES * x.dim(axis) && (fold == Fold::Sum || compute != DType::F32);
    if is_split && x.numel() > 0 && x.dim(axis) >= LONG && x.rank() < MAX_RANK {
        return cast(&in_blocks(name, fold, x, axis)?, x.dtype());
    }
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

/// Fewer lines than this are scanned in blocks, if they are as long as that.
const LINES: usize = 64;
const LONG: usize = 16 * BLOCK;

/// [`scan`] in the dtype of the arithmetic: blocks side by side, then with what those before come to.
fn in_blocks(name: &str, fold: Fold, x: &Array, axis: usize) -> Result<Array> {
    let (length, compute) = (x.dim(axis), arithmetic(x.dtype()));
    let (blocks, rest) = (length / BLOCK, length % BLOCK);
    let wide = |x: &Array| -> Result<Array> {
        let shape = x.shape().with(axis, blocks).inserted(axis + 1, BLOCK)?;
        let mut strides = x.strides();
        strides.insert(axis + 1, x.stride(axis));
        strides[axis] *= BLOCK as isize;
        x.with_layout(shape, &strides, x.offset())
    };
    let scan = |x: &Array, axis| cast(&scan(name, fold, x, axis)?, compute);
    let within = scan(&cast(&wide(x)?, compute)?, axis + 1)?;
    let last = part_of(&within, axis + 1, (BLOCK - 1, 1))?;
    let until = scan(&last, axis)?;
    // Before the first block is the neutral element.
    let mut starts = vec![0; until.rank()];
    starts[axis] = 1;
    let steps = vec![1; until.rank()];
    let neutral = if fold == Fold::Prod { 1.0 } else { 0.0 };
    let before = pad(&part_of(&until, axis, (0, blocks - 1))?, &until.shape(), &starts, &steps, neutral)?;
    let whole = fold.combine(&within, &before)?;
    if let Some(whole) = whole.reshape_view(&x.shape()).filter(|_| rest == 0) {
        return Ok(whole);
    }
    let (out, part) = (like(x, compute)?, (blocks * BLOCK, rest));
    copy_into(&wide(&part_of(&out, axis, (0, blocks * BLOCK))?)?, &whole)?;
    let own = scan(&cast(&part_of(x, axis, part)?, compute)?, axis)?;
    let all = part_of(&out, axis, (blocks * BLOCK - 1, 1))?;
    copy_into(&part_of(&out, axis, part)?, &fold.combine(&own, &all)?)?;
    Ok(out)
}

/// The counts of one block of [`totals`], and the elements of one of a long scan.
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
