//! Binary search in sorted lines, and scatters that keep the last or the extreme element, on the GPU; the
//! counterpart of `src/cpu/reduce/search.rs`.

use super::copy::copy_into;
use super::create::full;
use super::gather::{gather, indices};
use super::logic::{compare, logical, select};
use super::prelude::*;
use super::sort::{argsort, kind_of, upper_of};
use crate::arguments::logic::{Logic, Relation};
use crate::gpu::{scalar, status};

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
    let dtype = if is_long(sorted.dtype()) { upper_of(sorted.dtype()) } else { sorted.dtype() };
    let mut run = Dispatch::new("search", shader!("lib/order", "search"), DType::I32);
    run.reads(sorted)
        .reads(values.unwrap_or(sorted))
        .writes(&out)
        .number("KIND", kind_of(dtype).0)
        .flag("LONG", is_long(sorted.dtype()))
        .flag("COUNTED", values.is_none())
        .flag("RIGHT", right)
        .words([length, each, out.numel(), sorted.offset(), values.map_or(0, Array::offset)]);
    run.launch(out.numel().div_ceil(256))?;
    Ok(out)
}

/// What of the elements that an index sends to one place [`best`] finds, numbered as in the shader.
#[derive(Clone, Copy)]
enum Wanted<'a> {
    /// The position of the last one.
    Last,
    /// The extreme key.
    Key(&'a Array),
    /// The position of the last one with the extreme key, which is known.
    Extreme(&'a Array, &'a Array),
}

/// Returns, for each of `length` positions along `axis`, what is wanted of the elements that `index` sends
/// there, or `none`; dense.
fn best(
    index: &Array, axis: usize, length: usize, wanted: Wanted, smallest: bool, none: i32,
) -> Result<Array> {
    let out = full(index_of(index)?, index.shape().with(axis, length), f64::from(none), DType::I32)?;
    let (name, mode, x, keys) = match wanted {
        Wanted::Last => ("scatter", 0, index, index),
        Wanted::Key(x) => ("scatter_reduce", 1, x, index),
        Wanted::Extreme(x, keys) => ("scatter_reduce", 2, x, keys),
    };
    let report = status(index_of(index)?, name, length, true)?;
    let mut run = Dispatch::new("scatter_best", shader!("lib/order", "scatter_best"), DType::I32);
    run.reads(index)
        .reads(x)
        .reads(keys)
        .writes(&out)
        .reports(&report)
        .number("KIND", kind_of(x.dtype()).0)
        .flag("SMALLEST", smallest)
        .number("MODE", mode)
        .lengths(&index.shape())
        .strides(index)
        .strides(x)
        .strides(&out)
        .words([index.rank(), index.numel(), index.offset(), x.offset(), axis, length]);
    run.launch(index.numel().div_ceil(256))?;
    Ok(out)
}

/// Returns, for each of `length` positions along `axis`, the last position of `index` that selects it, or -1.
pub fn scatter_last(index: &Array, axis: usize, length: usize) -> Result<Array> {
    best(&indices(index)?, axis, length, Wanted::Last, false, -1)
}

/// Returns `init` with each element replaced by the extreme of it and the elements of `x` that `index` sends
/// there along `axis`; NaN wins. `x` has the shape of `index`, at most that of `init` on other axes.
pub fn scatter_extreme(init: &Array, index: &Array, x: &Array, axis: usize, largest: bool) -> Result<Array> {
    let (index, length) = (&indices(index)?, init.dim(axis));
    let out = init.copied()?;
    if index.numel() == 0 {
        return Ok(out);
    }
    // Places in the order of all stand for numbers of two words.
    let places_of;
    let ordered = if is_long(x.dtype()) {
        let flat = contiguous(x)?;
        let flat = flat.with_layout(Shape::new(&[x.numel()])?, &[1], flat.offset())?;
        let order = argsort(&flat, 0, false, flat.numel())?;
        let strides = x.shape().strides();
        places_of =
            argsort(&order, 0, false, flat.numel())?.with_layout(x.shape(), &strides[..x.rank()], 0)?;
        &places_of
    } else {
        x
    };
    let keys = best(index, axis, length, Wanted::Key(ordered), !largest, i32::MIN)?;
    let places = best(index, axis, length, Wanted::Extreme(ordered, &keys), !largest, -1)?;
    // Where there is none, the last element stands for it, and loses.
    let found = compare(&places, &scalar(index_of(x)?, 0.0, DType::I32)?, Relation::Ge)?;
    let new = gather(x, &places, axis)?;
    let strides = out.strides();
    let to = out.with_layout(places.shape(), &strides[..out.rank()], out.offset())?;
    let better = compare(&new, &to, if largest { Relation::Gt } else { Relation::Lt })?;
    let better = logical(Logic::Or, &[&better, &compare(&new, &new, Relation::Ne)?])?;
    copy_into(&to, &select(&logical(Logic::And, &[&found, &better])?, &new, &to)?)?;
    Ok(out)
}
