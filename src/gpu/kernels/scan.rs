//! Cumulative sums and products.

use super::copy::{cast, convert, index_of};
use super::fold::Fold;
use super::params::Params;
use crate::array::Array;
use crate::array::dtype::DType;
use crate::array::nest::Nest;
use crate::error::Result;
use crate::gpu::shader::template::{Template, arithmetic};
use crate::gpu::{kernel, launch, variant};
/// The cumulative sum along `axis`.
pub fn cumsum(x: &Array, axis: usize) -> Result<Array> {
    scan(Fold::Sum, x, axis)
}

/// The cumulative product along `axis`.
pub fn cumprod(x: &Array, axis: usize) -> Result<Array> {
    scan(Fold::Prod, x, axis)
}

fn scan(fold: Fold, x: &Array, axis: usize) -> Result<Array> {
    let index = index_of(x)?;
    let compute = arithmetic(x.dtype());
    let out = Array::empty(x.shape(), compute, x.device())?;
    let kept = Nest::over(&x.shape(), &[x, &out], (0..x.rank()).filter(|&i| i != axis));
    let (lines, length) = (kept.numel(), x.dim(axis));
    if x.numel() == 0 {
        return cast(&out, x.dtype());
    }
    let tree = length >= 64 && lines < 16 << 10;
    let name = format!("scan_{}", fold.name());
    let entry = if tree { "tree" } else { "serial" };
    // Errors of a chain of rounded products accumulate, so it is compensated; sums in a tree lose little.
    let paired = fold == Fold::Prod && compute == DType::F32;
    let kernel = kernel(index, &name, variant(&[x.dtype() as u64, u64::from(tree)]), entry, || {
        let mut text = Template::new(include_str!("../../../shaders/scan.wgsl"), compute);
        text.load("x", x.dtype()).store("out", compute);
        if paired {
            text.append(include_str!("../../../shaders/lib/products.wgsl"));
            text.set("alias A", "alias A = vec2<f32>;");
            text.set("const INIT", "const INIT: A = vec2<f32>(1.0, 0.0);");
            text.set("fn combine", "fn combine(a: A, b: A) -> A { return product(a, b, p.lines >> 31u); }");
            text.set("fn widen", "fn widen(v: T) -> A { return vec2<f32>(v, 0.0); }");
            text.set("fn value", "fn value(a: A) -> T { return a.x; }");
        } else {
            text.set("const INIT", format!("const INIT: T = {};", fold.init(compute)));
            text.set("fn combine", fold.combine(false));
        }
        text.build()
    })?;
    let mut params = Params::default();
    params
        .nest(&kept, 2)
        .word(kept.rank)
        .word(lines)
        .word(length)
        .word(x.offset())
        .word(x.stride(axis) as usize);
    params.word(out.offset()).word(out.stride(axis) as usize);
    let groups = if tree { lines as u64 } else { (lines as u64).div_ceil(256) };
    launch(index, &kernel, &[x.buffer(), out.buffer()], params.words(), groups)?;
    if compute == x.dtype() { Ok(out) } else { convert(&out, x.dtype()) }
}
