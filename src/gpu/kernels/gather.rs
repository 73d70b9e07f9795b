//! Indexing along an axis on the GPU; the counterpart of `src/cpu/indexing/gather.rs`.
//!
//! Kernels take indices as int32. One out of range raises at the next read-back (see
//! `src/gpu/runtime/status.rs`).

use super::complex::{by_parts, is_paired, paired, part_as};
use super::copy::{copy_into, flat, from_start};
use super::map::{pointwise_int, pointwise_int_to};
use super::parts::{ROUNDS, part_of, sum_of_parts};
use super::prelude::*;
use super::scan::totals;
use super::search::starts;
use super::sort::{TILE, count, order_up_to};
use crate::array::buffer::{Buffer, Device};
use crate::array::shape::MAX_RANK;
use crate::gpu::{scalar, status};
use crate::math::real::{Integer, PointwiseInt};

/// Converts the indices to int32.
pub(super) fn indices(idx: &Array) -> Result<Array> {
    if idx.dtype() == DType::I32 {
        return Ok(idx.clone());
    }
    // A larger number is out of range for every axis, and must not wrap to another index.
    let signed = idx.dtype() == DType::I64;
    pointwise_int_to(DType::I32, "limit", u64::from(signed), [idx], Limit { signed })
}

/// The number, or the nearest int32.
#[derive(Clone, Copy)]
struct Limit {
    signed: bool,
}

impl PointwiseInt<1> for Limit {
    fn apply<I: Integer>(&self, [x]: [I; 1]) -> I {
        let x = x.min(I::lit(i32::MAX.into()));
        if self.signed { x.max(I::lit(i32::MIN.into())) } else { x }
    }
}

/// `out[o, k, i] = x[o, idx[k], i]`: `idx` replaces the axis. Negative indices count from the end.
pub fn take(x: &Array, idx: &Array, axis: usize) -> Result<Array> {
    if is_paired(x) {
        return match x.rank() + idx.rank() {
            axes if axes <= MAX_RANK && x.rank() < MAX_RANK => paired(x, |pairs| take(pairs, idx, axis)),
            _ => by_parts(x, |part| take(part, idx, axis)),
        };
    }
    let idx = &indices(idx)?;
    let mut dims: Vec<usize> = x.shape().iter().take(axis).collect();
    dims.extend(idx.shape().iter());
    dims.extend(x.shape().iter().skip(axis + 1));
    let out = Array::empty(Shape::new(&dims)?, x.dtype(), x.device())?;
    let x_strides = (0..dims.len()).map(|i| match i {
        i if i < axis => x.stride(i),
        i if i < axis + idx.rank() => 0,
        i => x.stride(i + 1 - idx.rank()),
    });
    let idx_strides = (0..dims.len()).map(|i| match i.checked_sub(axis) {
        Some(own) if own < idx.rank() => idx.stride(own),
        _ => 0,
    });
    read_along("take", x, idx, out, axis, x_strides, idx_strides)
}

/// `out[c] = x[c with c[axis] replaced by idx[c]]`, of the shape of `idx`.
pub fn gather(x: &Array, idx: &Array, axis: usize) -> Result<Array> {
    if is_paired(x) && x.rank() == MAX_RANK {
        return by_parts(x, |part| gather(part, idx, axis));
    }
    if is_paired(x) {
        // Both numbers of a pair have the index of the pair.
        let mut strides = idx.strides().to_vec();
        strides.push(0);
        let idx = idx.with_layout(idx.shape().inserted(idx.rank(), 2)?, &strides, idx.offset())?;
        return paired(x, |pairs| gather(pairs, &idx, axis));
    }
    let idx = &indices(idx)?;
    let out = Array::empty(idx.shape(), x.dtype(), x.device())?;
    let x_strides = (0..x.rank()).map(|i| if i == axis { 0 } else { x.stride(i) });
    read_along("gather", x, idx, out, axis, x_strides, idx.strides().iter().copied())
}

fn read_along(
    name: &'static str, x: &Array, idx: &Array, out: Array, axis: usize,
    x_strides: impl Iterator<Item = isize>, idx_strides: impl Iterator<Item = isize>,
) -> Result<Array> {
    let report = status(index_of(x)?, name, x.dim(axis), true)?;
    let mut nest = Nest::empty();
    for (length, steps) in out.shape().iter().zip(x_strides.zip(idx_strides)).filter(|(n, _)| *n != 1) {
        nest.push(length, &[steps.0, steps.1]);
    }
    nest.rank = nest.rank.max(1);
    let mut run = Dispatch::new("gather", shader!("gather"), x.dtype());
    // Four adjacent elements have one index.
    let is_one = nest.strides[1][nest.rank - 1] == 0 && x.stride(axis) % 4 == 0;
    run.lines(x, nest.inner(), &nest.strides[0][..nest.rank], is_one).reads(idx).fours(&out);
    run.picks(&out).reports(&report).nest(&nest, 2);
    run.words([nest.rank, out.numel(), x.offset(), idx.offset(), x.stride(axis) as usize, x.dim(axis)]);
    run.launch(out.numel().div_ceil(1024))?;
    Ok(out)
}

/// The transpose of [`take`]: adds `g` to zeros of `shape` at `idx` along `axis`, in their order.
pub fn take_add(g: &Array, idx: &Array, axis: usize, shape: &Shape) -> Result<Array> {
    let idx = &indices(idx)?;
    let length = idx.numel();
    if length > ROUNDS {
        let (rows, idx) = (whole(g, shape.with(axis, length))?, whole(idx, Shape::new(&[length])?)?);
        let rows = cast(&rows, arithmetic(g.dtype()))?;
        return sum_of_parts(length, g.dtype(), |part| {
            take_add(&part_of(&rows, axis, part)?, &part_of(&idx, 0, part)?, axis, shape)
        });
    }
    let outer: usize = shape.iter().take(axis).product();
    let inner: usize = shape.iter().skip(axis + 1).product();
    let dtype = dtype_of_rows(g.dtype(), &[inner]);
    let (g, idx) = (contiguous(g)?, contiguous(idx)?);
    let out = Array::empty(*shape, dtype, g.device())?;
    let (index, size) = (index_of(&g)?, shape.at(axis));
    let report = status(index, "take", size, true)?;
    let groups = outer * size * inner.div_ceil(256 * per_word(dtype));
    if groups * length > UNSORTED {
        let limit = scalar(index, size as f64, DType::I32)?;
        let places = pointwise_int("place", 0, [&idx, &limit], Place)?;
        return add_sorted(&g, &idx, &places, out, &report, [outer, size, length, inner]);
    }
    let mut run = Dispatch::new("scatter_rows", shader!("scatter_rows"), g.dtype());
    run.reads(&idx).input("src", &g).output("out", &out).reports(&report).words([
        outer,
        size,
        length,
        inner,
        idx.offset(),
        g.offset(),
    ]);
    run.launch(groups)?;
    cast(&out, g.dtype())
}

/// The most pairs of a workgroup, or an element, and an index that it looks at for which nothing is sorted.
const UNSORTED: usize = 1 << 24;

/// Adds rows of `g` to zeros in `out`, in the order of the indices; returns it in the dtype of `g`. `places`
/// are the indices counted from the front, or `size` for those outside.
fn add_sorted(
    g: &Array, idx: &Array, places: &Array, out: Array, report: &Buffer, dims: [usize; 4],
) -> Result<Array> {
    let size = dims[1];
    let order = order_up_to(places, size)?;
    let starts = starts(&gather(places, &order, 0)?, size)?;
    let mut run = Dispatch::new("scatter_sorted", shader!("scatter_sorted"), g.dtype());
    run.reads(idx).reads(&order).reads(&starts).input("src", g).output("out", &out).reports(report);
    run.words(dims).words([idx.offset(), g.offset()]);
    run.launch(words_of(&out).div_ceil(256))?;
    cast(&out, g.dtype())
}

/// How far before the end of its axis, of this size and stride, an index lies, as a negative number of
/// elements; 0 for one outside.
#[derive(Clone, Copy)]
struct BeforeEnd;

impl PointwiseInt<3> for BeforeEnd {
    fn apply<I: Integer>(&self, [x, size, stride]: [I; 3]) -> I {
        Place.apply([x, size]).sub(size).mul(stride)
    }
}

/// The place in an array of `count` elements that lies `back` from the end of its line, which is counted from
/// that of the array; `count` where `back` is 0.
#[derive(Clone, Copy)]
struct PlaceOf;

impl PointwiseInt<3> for PlaceOf {
    fn apply<I: Integer>(&self, [back, end, count]: [I; 3]) -> I {
        end.add(back).and(back.shr(I::lit(31))).add(count)
    }
}

/// An index counted from the front, or the size of the axis for one outside.
#[derive(Clone, Copy)]
struct Place;

impl PointwiseInt<2> for Place {
    fn apply<I: Integer>(&self, [x, size]: [I; 2]) -> I {
        // The size where a number is negative, else 0.
        let if_negative = |x: I| size.and(x.shr(I::lit(31)));
        let place = x.add(if_negative(x));
        place.min(size).max(if_negative(place))
    }
}

/// The transpose of [`gather`]: adds `g` to zeros of `shape`, in the order of the indices.
pub fn scatter_add(g: &Array, idx: &Array, axis: usize, shape: &Shape) -> Result<Array> {
    let idx = &indices(idx)?;
    // An invocation that owns a word of two elements loops over the axis for each.
    if g.dim(axis) * per_word(g.dtype()) > 2 * ROUNDS - 256 {
        let wide = cast(g, arithmetic(g.dtype()))?;
        return sum_of_parts(g.dim(axis), g.dtype(), |part| {
            scatter_add(&part_of(&wide, axis, part)?, &part_of(idx, axis, part)?, axis, shape)
        });
    }
    let (index, size, count) = (index_of(g)?, shape.at(axis), shape.numel());
    let report = status(index, "gather", size, true)?;
    if count.saturating_mul(g.dim(axis)) > UNSORTED && count <= i32::MAX as usize {
        let number = |n: usize| scalar(index, n as f64, DType::I32);
        let mut strides = shape.strides();
        let back = pointwise_int(
            "before_end",
            0,
            [idx, &number(size)?, &number(strides[axis] as usize)?],
            BeforeEnd,
        )?;
        // Places on the other axes, behind the end of this one.
        let start = (strides[axis] * size as isize) as f64 - count as f64;
        strides[axis] = 0;
        let ends = super::create::arange(index, start, 1.0, count, DType::I32)?;
        let ends = ends.with_layout(g.shape(), &strides[..shape.rank()], 0)?;
        let places =
            flat(&pointwise_int("place_of", 0, [&back, &ends, &number(count)?], PlaceOf)?, DType::I32)?;
        let (length, dtype) = (places.numel(), dtype_of_rows(g.dtype(), &[1]));
        let places = places.with_layout(Shape::new(&[length])?, &[1], 0)?;
        let out = Array::empty(*shape, dtype, g.device())?;
        let (g, idx) = (contiguous(g)?, contiguous(idx)?);
        return add_sorted(&g, &idx, &places, out, &report, [1, count, length, 1]);
    }
    let out = Array::empty(*shape, g.dtype(), g.device())?;
    // `x` is not read: the result starts from zero.
    let mut run = Dispatch::new("scatter_add", shader!("scatter"), g.dtype());
    run.input("x", g)
        .reads(idx)
        .input("src", g)
        .output("out", &out)
        .reports(&report)
        .flag("FROM_ZERO", true)
        .lengths(shape)
        .lengths(&g.shape())
        .eight([])
        .strides(g)
        .strides(idx)
        .words([shape.rank(), out.numel(), 0, g.offset(), idx.offset(), axis, g.dim(axis)]);
    run.launch(words_of(&out).div_ceil(256))?;
    Ok(out)
}

/// Returns the positions of true elements in row-major order, int32 `[count, rank]`. Reads back the count.
pub fn nonzero(mask: &Array) -> Result<Array> {
    let (mask, rank, length) = (from_start(mask)?, mask.rank(), mask.numel());
    let none = |count| Array::empty(Shape::new(&[count, rank])?, DType::I32, mask.device());
    if length == 0 {
        return none(0);
    }
    let (counts, tiles) = count(&mask, 1, length, 0)?;
    // Those of digit 1 lie behind those of digit 0.
    let ends = totals(&counts.with_layout(Shape::new(&[1, tiles])?, &[0, 1], tiles)?)?;
    let last = ends.with_layout(Shape::SCALAR, &[], tiles - 1)?.to_device(Device::Cpu)?;
    let out = none(last.slice::<i32>()?[0] as usize)?;
    if out.numel() > 0 {
        let mut run = Dispatch::new("nonzero", shader!("lib/totals", "nonzero"), DType::I32);
        run.reads(&mask).reads(&ends).writes(&out).lengths(&mask.shape()).words([rank, length]);
        run.launch(length.div_ceil(TILE))?;
    }
    Ok(out)
}

/// Returns the elements in row-major order as an array of this shape.
fn whole(x: &Array, shape: Shape) -> Result<Array> {
    let strides = shape.strides();
    let x = contiguous(x)?;
    x.with_layout(shape, &strides[..shape.rank()], x.offset())
}

/// Writes `x` into `fill`: `out[start + step * i] = x[i]` on every axis. Steps are not zero.
pub fn pad(x: &Array, shape: &Shape, starts: &[usize], steps: &[isize], fill: f64) -> Result<Array> {
    if is_paired(x) && fill == 0.0 && x.rank() < MAX_RANK {
        let shape = &shape.inserted(shape.rank(), 2)?;
        let (starts, steps) = ([starts, &[0]].concat(), [steps, &[1]].concat());
        return paired(x, |pairs| pad(pairs, shape, &starts, &steps, fill));
    }
    let out = Array::empty(*shape, x.dtype(), x.device())?;
    if is_long(x.dtype()) {
        for (upper, shift) in [(false, 0), (true, 32)] {
            let word = f64::from((fill as i128 >> shift) as i32);
            let part = pad(&part_as(x, upper, DType::I32)?, shape, starts, steps, word)?;
            copy_into(&part_as(&out, upper, DType::I32)?, &part)?;
        }
        return Ok(out);
    }
    // Whole words are copied as bits, so that NaN payloads and subnormals survive.
    let moved = if per_word(x.dtype()) == 1 { DType::I32 } else { x.dtype() };
    let mut run = Dispatch::new("pad", shader!("pad"), moved);
    let inner = shape.iter().last().unwrap_or(1);
    run.text.load("x", moved).store_fours("out", moved);
    run.reads(x).writes(&out).flag("FOURS", inner.is_multiple_of(4));
    run.lengths(shape).lengths(&x.shape()).strides(x);
    run.eight(starts.iter().map(|&s| s as isize)).eight(steps.iter().copied());
    run.words([shape.rank(), out.numel(), x.offset()]);
    if x.dtype().is_float() {
        run.floats([fill]);
    } else {
        run.words([fill as i64 as usize]);
    }
    run.launch(out.numel().div_ceil(1024))?;
    Ok(out)
}
