//! Cumulative sums and products.

use super::prelude::*;
use super::reduce::Fold;

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
    let mut run = Dispatch::new(name, shader!("lib/products", "scan"), compute);
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
