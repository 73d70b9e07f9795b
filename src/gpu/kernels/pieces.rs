//! Work on tensors that are larger than what a kernel can bind of one buffer
//! (`max_storage_buffer_binding_size`, often 2 or 4 GiB), in pieces: views of which each fits, bound from
//! their first element on.
//!
//! What the kernels of an operation cannot do so raises when they bind such a tensor.

use super::copy::{convert, copy_into};
use super::parts::{Part, part_of, parts};
use super::prelude::*;
use crate::gpu::runtime::pool::{bindable, gpu_of, too_large, window};
use smallvec::{SmallVec, smallvec};
use std::ops::Range;

/// Arrays of an operation.
pub(super) type Arrays = SmallVec<[Array; 4]>;

/// Bytes at multiples of which a binding may begin, on every adapter.
const ALIGNED: usize = 256;

/// Bytes that a kernel can bind of one buffer of the GPU that holds `x`.
pub(super) fn limit(x: &Array) -> Result<usize> {
    Ok(bindable(&gpu_of(x)?.limits) as usize)
}

/// Whether kernels can bind these arrays as they are.
#[inline]
pub(super) fn fit<'a>(arrays: impl IntoIterator<Item = &'a Array>) -> Result<bool> {
    let mut most = None;
    for x in arrays {
        let limit = match most {
            Some(limit) => limit,
            None => *most.insert(limit(x)?),
        };
        if x.buffer().bytes() > limit {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether kernels can bind these arrays, and results with a word for each of their elements.
pub(super) fn fit_wide(x: &[&Array]) -> Result<bool> {
    Ok(fit(x.iter().copied())? && x.iter().all(|x| is_small(x).unwrap_or(false)))
}

/// Whether kernels can bind a copy of an array with a word for each of its elements.
pub(super) fn is_small(x: &Array) -> Result<bool> {
    Ok(wide_bytes(x) <= limit(x)?)
}

/// Bytes of an element as a GPU stores it.
fn size_of(dtype: DType) -> usize {
    if is_long(dtype) { 8 } else { 4 / per_word(dtype) }
}

/// Bytes of as many elements, of a word at least.
fn wide_bytes(x: &Array) -> usize {
    x.numel() * size_of(x.dtype()).max(4)
}

/// The first and the last element of the buffer that a view reaches.
fn reach(x: &Array) -> (usize, usize) {
    if x.numel() == 0 {
        return (0, 0);
    }
    let (mut low, mut high) = (x.offset() as isize, x.offset() as isize);
    for i in 0..x.rank() {
        let step = (x.dim(i) as isize - 1) * x.stride(i);
        low += step.min(0);
        high += step.max(0);
    }
    (low as usize, high as usize)
}

/// The bytes of the buffer of `x` that must be bound for these elements.
fn bytes_of(x: &Array, (low, high): (usize, usize)) -> (usize, usize) {
    let size = size_of(x.dtype());
    (low * size / ALIGNED * ALIGNED, ((high + 1) * size).next_multiple_of(4))
}

/// Whether a view can be bound, once [`bound`] has cut its buffer.
fn can_be_bound(x: &Array, limit: usize) -> bool {
    let (start, end) = bytes_of(x, reach(x));
    end - start <= limit
}

/// The view with as much of its buffer as it needs, if kernels cannot bind all of it.
fn bound(x: &Array, limit: usize) -> Result<Array> {
    if x.buffer().bytes() <= limit { Ok(x.clone()) } else { bound_from(x, reach(x)) }
}

/// The view with as much of its buffer as has these elements, which are all that it reaches.
fn bound_from(x: &Array, reach: (usize, usize)) -> Result<Array> {
    let (start, end) = bytes_of(x, reach);
    let buffer = window(x.buffer(), start as u64, end as u64);
    let offset = x.offset() - start / size_of(x.dtype());
    // SAFETY: the window holds all elements that the view reaches.
    unsafe { Array::strided_unchecked(buffer, x.shape(), &x.strides(), offset, x.dtype()) }
}

/// The view with as much of its buffer as it needs to reach so many steps beyond; none if kernels cannot bind
/// as much.
pub(super) fn bound_along(x: &Array, (length, step): (usize, isize)) -> Result<Option<Array>> {
    let limit = limit(x)?;
    if x.buffer().bytes() <= limit {
        return Ok(Some(x.clone()));
    }
    let ((low, high), far) = (reach(x), (length as isize - 1).max(0) * step);
    let reach = (low.wrapping_add_signed(far.min(0)), high.wrapping_add_signed(far.max(0)));
    let (start, end) = bytes_of(x, reach);
    if end - start <= limit { bound_from(x, reach).map(Some) } else { Ok(None) }
}

/// [`bound`], or a copy of a view that reaches too far for that, and whose elements fit.
pub(super) fn bound_or_copied(x: &Array) -> Result<Array> {
    let limit = limit(x)?;
    if can_be_bound(x, limit) { bound(x, limit) } else { convert(x, x.dtype()) }
}

/// The first axis that has several elements.
pub(super) fn outermost(shape: &Shape) -> Option<usize> {
    shape.iter().position(|n| n > 1)
}

/// The axis along which a view reaches farthest.
pub(super) fn widest(x: &Array) -> Option<usize> {
    let axes = (0..x.rank()).filter(|&i| x.dim(i) > 1);
    axes.max_by_key(|&i| ((x.dim(i) - 1) * x.stride(i).unsigned_abs(), std::cmp::Reverse(i)))
}

/// Cuts an axis of `length` in two, the first half a multiple of `unit` if that leaves a second.
pub(super) fn halves(length: usize, unit: usize) -> [Part; 2] {
    let half = length.div_ceil(2);
    let first = Some(half.next_multiple_of(unit)).filter(|&n| n < length).unwrap_or(half);
    [(0, first), (first, length - first)]
}

/// Calls `run` with pieces of views of one shape.
fn divide(views: &[Array], limit: usize, run: &mut dyn FnMut(&[Array]) -> Result<()>) -> Result<()> {
    if views.iter().all(|x| can_be_bound(x, limit)) {
        return run(views);
    }
    let largest = views.iter().filter(|x| !can_be_bound(x, limit)).max_by_key(|x| reach(x).1 - reach(x).0);
    let Some(axis) = largest.and_then(widest) else { return run(views) };
    // Pieces of the first view, the output, begin where a binding may.
    let unit = ALIGNED / size_of(views[0].dtype());
    for part in halves(views[0].dim(axis), unit) {
        let pieces = views.iter().map(|x| part_of(x, axis, part)).collect::<Result<Arrays>>()?;
        divide(&pieces, limit, run)?;
    }
    Ok(())
}

/// Calls `run` with what is to be written and what is read, which broadcasts to its shape, or with pieces of
/// them. `out` is contiguous from the start of its buffer, and so are its pieces.
pub(super) fn by_pieces(
    out: &Array, x: &[&Array], run: &dyn Fn(&Array, &[&Array]) -> Result<()>,
) -> Result<()> {
    if fit(x.iter().copied().chain([out]))? {
        return run(out, x);
    }
    let (limit, end) = (limit(out)?, out.numel());
    let shape = out.shape();
    let views = std::iter::once(Ok(out.clone())).chain(x.iter().map(|x| x.expand(&shape)));
    divide(&views.collect::<Result<Arrays>>()?, limit, &mut |pieces| {
        let bounds = pieces.iter().map(|x| bound(x, limit)).collect::<Result<Arrays>>()?;
        let (to, from) = (&bounds[0], bounds[1..].iter().collect::<SmallVec<[&Array; 4]>>());
        // A kernel writes fours of elements whole: behind the last are those of the next piece, or padding.
        let is_last = pieces[0].offset() + pieces[0].numel() == end;
        if to.offset() == 0 && to.is_contiguous() && (to.numel().is_multiple_of(4) || is_last) {
            return run(to, &from);
        }
        let made = like(to, to.dtype())?;
        run(&made, &from)?;
        copy_into(to, &made)
    })
}

/// [`by_pieces`] for a view of any layout, with one operand of its shape.
pub(super) fn by_views(out: &Array, x: &Array, run: &dyn Fn(&Array, &Array) -> Result<()>) -> Result<()> {
    if fit([out, x])? {
        return run(out, x);
    }
    let limit = limit(out)?;
    divide(&[out.clone(), x.expand(&out.shape())?], limit, &mut |pieces| {
        run(&bound(&pieces[0], limit)?, &bound(&pieces[1], limit)?)
    })
}

/// The elements that each piece of an array has that is contiguous from the start of its buffer; a multiple
/// of 64.
pub(super) fn in_a_piece(x: &Array) -> Result<usize> {
    Ok(limit(x)? / size_of(x.dtype()).max(4) / 64 * 64)
}

/// The `n` elements from `start` on, a multiple of 64, of an array that is contiguous from the start of its
/// buffer, as such an array of one axis.
pub(super) fn piece(x: &Array, start: usize, n: usize) -> Result<Array> {
    let size = size_of(x.dtype());
    let end = ((start + n) * size).next_multiple_of(4);
    let buffer = window(x.buffer(), (start * size) as u64, end as u64);
    Array::strided(buffer, Shape::new(&[n])?, &[1], 0, x.dtype())
}

/// Calls `run` with the first element of each piece of an array that is contiguous from the start of its
/// buffer, and the piece.
pub(super) fn in_line(out: &Array, run: &dyn Fn(usize, &Array) -> Result<()>) -> Result<()> {
    if fit([out])? {
        return run(0, out);
    }
    let each = in_a_piece(out)?;
    (0..out.numel())
        .step_by(each)
        .try_for_each(|start| run(start, &piece(out, start, each.min(out.numel() - start))?))
}

/// Calls `run` with the first element of each piece of `most` elements, a multiple of 64, and the pieces of a
/// line and of what is made of it, which is contiguous from the start of its buffer.
pub(super) fn along_line(
    x: &Array, out: &Array, most: usize, run: &dyn Fn(usize, &Array, &Array) -> Result<()>,
) -> Result<()> {
    parts(out.numel(), most).try_for_each(|(start, n)| {
        run(start, &bound_or_copied(&part_of(x, 0, (start, n))?)?, &piece(out, start, n)?)
    })
}

/// What [`in_halves`] does with the results of two halves.
pub(super) type Join<'a> = &'a dyn Fn(usize, &Array, &Array) -> Result<Array>;

/// Runs operation `name` on arrays that do not fit: on the arrays cut in two along `axis`, if there is one;
/// `run` comes here again with halves that do not fit. `join` makes one of each of the two results, which are
/// numbered.
pub(super) fn in_halves(
    name: &str, x: &[&Array], axis: Option<usize>, run: &dyn Fn(&[&Array]) -> Result<Arrays>, join: Join,
) -> Result<Arrays> {
    let limit = limit(x[0])?;
    // Results may be wider than the operands.
    if x.iter().all(|x| wide_bytes(x) <= limit) {
        let bounds = x.iter().map(|x| bound_or_copied(x)).collect::<Result<Arrays>>()?;
        return run(&bounds.iter().collect::<SmallVec<[&Array; 4]>>());
    }
    let Some(axis) = axis.filter(|&i| x[0].dim(i) > 1) else {
        let bytes = x.iter().map(|x| wide_bytes(x)).max().unwrap_or(0);
        return Err(too_large(gpu_of(x[0])?, name, bytes));
    };
    let mut results = SmallVec::<[Arrays; 2]>::new();
    for part in halves(x[0].dim(axis), 1) {
        let pieces = x.iter().map(|x| part_of(x, axis, part)).collect::<Result<Arrays>>()?;
        results.push(run(&pieces.iter().collect::<SmallVec<[&Array; 4]>>())?);
    }
    results[0].iter().zip(&results[1]).enumerate().map(|(i, (a, b))| join(i, a, b)).collect()
}

/// The longest axis outside of `fixed`, along which lines or rows that kernels cannot bind are cut.
pub(super) fn longest(x: &Array, fixed: Range<usize>) -> Option<usize> {
    (0..x.rank()).filter(|i| !fixed.contains(i)).max_by_key(|&i| (x.dim(i), std::cmp::Reverse(i)))
}

/// An operation with one result that takes arrays whole along the axes `fixed` alone, on arrays that kernels
/// cannot bind.
pub(super) fn by_lines(
    name: &str, x: &[&Array], fixed: Range<usize>, run: &dyn Fn(&[&Array]) -> Result<Array>,
) -> Result<Array> {
    let axis = longest(x[0], fixed);
    let join = |_: usize, a: &Array, b: &Array| joined(a, b, axis.unwrap_or(0));
    Ok(in_halves(name, x, axis, &|x| Ok(smallvec![run(x)?]), &join)?.remove(0))
}

/// Two arrays one behind the other along an axis.
pub(super) fn joined(a: &Array, b: &Array, axis: usize) -> Result<Array> {
    let (n, m) = (a.dim(axis), b.dim(axis));
    let out = Array::empty(a.shape().with(axis, n + m), a.dtype(), a.device())?;
    copy_into(&part_of(&out, axis, (0, n))?, a)?;
    copy_into(&part_of(&out, axis, (n, m))?, b)?;
    Ok(out)
}

/// A view as kernels can bind it.
pub(super) enum Cut {
    /// With as much of its buffer as it needs.
    Whole(Array),
    /// In two, along this axis.
    Halves(usize, [Array; 2]),
}

/// Cuts a view in two if it cannot be bound, along the axis on which it reaches farthest.
pub(super) fn cut(x: &Array) -> Result<Cut> {
    let limit = limit(x)?;
    let axis = widest(x).filter(|_| !can_be_bound(x, limit));
    let Some(axis) = axis else { return Ok(Cut::Whole(bound(x, limit)?)) };
    let [a, b] = halves(x.dim(axis), ALIGNED / size_of(x.dtype()));
    Ok(Cut::Halves(axis, [part_of(x, axis, a)?, part_of(x, axis, b)?]))
}

/// The operands of a product as kernels can bind them, or the axis of the result along which to cut it in
/// two.
pub(super) fn cut_product(a: &Array, b: &Array, shape: &Shape) -> Result<Result<[Array; 2], usize>> {
    let (limit, r) = (limit(a)?, shape.rank());
    // Operands that reach too far are copied. Results may be sums in float32.
    let [a_fits, b_fits] = [a, b].map(|x| can_be_bound(x, limit) || wide_bytes(x) <= limit);
    let out_fits = shape.numel() * size_of(a.dtype()).max(4) <= limit;
    let (m, n) = (shape.at(r - 2), shape.at(r - 1));
    let axis = if a_fits && b_fits && out_fits {
        None
    } else if let Some(batch) = (0..r - 2).find(|&i| shape.at(i) > 1) {
        Some(batch)
    } else if m > 1 && (!a_fits || (!out_fits && m >= n)) {
        Some(r - 2)
    } else {
        (n > 1 && !(b_fits && out_fits)).then_some(r - 1)
    };
    Ok(match axis {
        Some(axis) => Err(axis),
        None => Ok([bound_or_copied(a)?, bound_or_copied(b)?]),
    })
}
