//! Binary search in sorted lines, and scatters that keep the last or the extreme element, on the GPU; the
//! counterpart of `src/cpu/reduce/search.rs`.

use super::copy::{copy_into, from_start};
use super::create::full;
use super::gather::{Places, gather, indices};
use super::logic::{compare, logical, select};
use super::parts::{Part, part_of};
use super::pieces::{bound_or_copied, by_lines, fit_wide, halves, in_a_piece, is_small, joined, longest};
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
    if !fit_wide(&[sorted, values])? {
        let last = sorted.rank() - 1;
        if sorted.numel() == sorted.dim(last) && is_small(sorted)? {
            let sorted = &bound_or_copied(sorted)?;
            return by_lines("search", &[values], 0..0, &|x| search_sorted(sorted, x[0], right));
        }
        return by_lines("search", &[sorted, values], last..last + 1, &|x| search_sorted(x[0], x[1], right));
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

/// What of the elements that an index sends to one place [`Best`] finds, numbered as in the shader.
#[derive(Clone)]
enum Wanted {
    /// The position of the last one.
    Last,
    /// The extreme key.
    Key(Array),
    /// The position of the last one with the extreme key, which is known.
    Extreme(Array, Array),
}

/// What is wanted of the elements that an index sends to each place along `axis`, or `none`.
#[derive(Clone, Copy)]
struct Best {
    axis: usize,
    smallest: bool,
    none: i32,
}

impl Best {
    /// Finds it for these places; dense.
    fn find(self, index: &Array, wanted: &Wanted, places: Places) -> Result<Array> {
        let (length, [_, _, here]) = (index.dim(self.axis), places.words());
        let shape = index.shape().with(self.axis, here);
        if !is_small(index)? || shape.numel() > in_a_piece(index)? {
            let lines = longest(index, self.axis..self.axis + 1).filter(|&i| index.dim(i) > 1);
            if let Some(at) = lines.or(Some(self.axis).filter(|_| here > length)) {
                let [a, b] = halves(shape.at(at), 1).map(|part| match at == self.axis {
                    true => self.find(index, &wanted.part(at, part, false)?, places.part(part)),
                    false => self.find(&part_of(index, at, part)?, &wanted.part(at, part, true)?, places),
                });
                return joined(&a?, &b?, at);
            }
        }
        let index = &bound_or_copied(index)?;
        let out = full(index_of(index)?, shape, f64::from(self.none), DType::I32)?;
        let (name, mode, x, keys) = match wanted {
            Wanted::Last => ("scatter", 0, index.clone(), index.clone()),
            Wanted::Key(x) => ("scatter_reduce", 1, bound_or_copied(x)?, index.clone()),
            Wanted::Extreme(x, keys) => {
                ("scatter_reduce", 2, bound_or_copied(x)?, from_start(&bound_or_copied(keys)?)?)
            }
        };
        let report = status(index_of(index)?, name, places.words()[0], true)?;
        let source = shader!("lib/places", "lib/order", "scatter_best");
        let mut run = Dispatch::new("scatter_best", source, DType::I32);
        run.reads(index)
            .reads(&x)
            .reads(&keys)
            .writes(&out)
            .reports(&report)
            .number("KIND", kind_of(x.dtype()).0)
            .flag("SMALLEST", self.smallest)
            .number("MODE", mode)
            .lengths(&index.shape())
            .strides(index)
            .strides(&x)
            .strides(&out)
            .words([index.rank(), index.numel(), index.offset(), x.offset(), self.axis])
            .words(places.words());
        run.launch(index.numel().div_ceil(256))?;
        Ok(out)
    }
}

impl Wanted {
    /// The same of a part of an axis; of keys alone if that is the one of the index.
    fn part(&self, axis: usize, part: Part, of_elements: bool) -> Result<Wanted> {
        let own = |x: &Array| if of_elements { part_of(x, axis, part) } else { Ok(x.clone()) };
        Ok(match self {
            Wanted::Last => Wanted::Last,
            Wanted::Key(x) => Wanted::Key(own(x)?),
            Wanted::Extreme(x, keys) => Wanted::Extreme(own(x)?, part_of(keys, axis, part)?),
        })
    }
}

/// Returns, for each of `length` positions along `axis`, the last position of `index` that selects it, or -1.
pub fn scatter_last(index: &Array, axis: usize, length: usize) -> Result<Array> {
    Best { axis, smallest: false, none: -1 }.find(&indices(index)?, &Wanted::Last, Places::all(length))
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
    let ordered = if is_long(x.dtype()) {
        let flat = contiguous(x)?;
        let flat = flat.with_layout(Shape::new(&[x.numel()])?, &[1], flat.offset())?;
        let order = argsort(&flat, 0, false, flat.numel())?;
        let strides = x.shape().strides();
        argsort(&order, 0, false, flat.numel())?.with_layout(x.shape(), &strides[..x.rank()], 0)?
    } else {
        x.clone()
    };
    let (best, all) = (|none| Best { axis, smallest: !largest, none }, Places::all(length));
    let keys = best(i32::MIN).find(index, &Wanted::Key(ordered.clone()), all)?;
    let places = best(-1).find(index, &Wanted::Extreme(ordered, keys), all)?;
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
