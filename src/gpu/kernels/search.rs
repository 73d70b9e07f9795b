//! Binary search on the GPU; the counterpart of `src/cpu/reduce/search.rs`.

use super::create::full;
use super::prelude::*;
use super::sort::kind_of;

/// Returns the positions of `values` in the ascending lines of `sorted`, both along the last axis: before
/// equal elements, or after them with `right`. int32; NaN counts as the largest.
pub fn search_sorted(sorted: &Array, values: &Array, right: bool) -> Result<Array> {
    if sorted.dtype() != values.dtype() {
        return Err(Error::dtype(format!("internal: search of {values:?} in {sorted:?}")));
    }
    if sorted.numel() == 0 {
        return full(index_of(values)?, values.shape(), 0.0, DType::I32);
    }
    let (sorted, values) = (contiguous(sorted)?, contiguous(values)?);
    search(&sorted, Some(&values), right, like(&values, DType::I32)?)
}

/// Where each of the numbers `0..=size` would begin in an ascending vector of int32.
pub(super) fn starts(sorted: &Array, size: usize) -> Result<Array> {
    search(sorted, None, false, Array::empty(Shape::new(&[size + 1])?, DType::I32, sorted.device())?)
}

fn search(sorted: &Array, values: Option<&Array>, right: bool, out: Array) -> Result<Array> {
    let (length, each) = (sorted.dim(sorted.rank() - 1), out.dim(out.rank() - 1));
    let mut run = Dispatch::new("search", shader!("lib/order", "search"), DType::I32);
    run.reads(sorted)
        .reads(values.unwrap_or(sorted))
        .writes(&out)
        .number("KIND", kind_of(sorted.dtype()).0)
        .flag("COUNTED", values.is_none())
        .flag("RIGHT", right)
        .words([length, each, out.numel(), sorted.offset(), values.map_or(0, Array::offset)]);
    run.launch(out.numel().div_ceil(256))?;
    Ok(out)
}
