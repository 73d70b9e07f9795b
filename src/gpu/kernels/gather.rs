//! Indexing along an axis on the GPU; the counterpart of `src/cpu/indexing/gather.rs`.
//!
//! Kernels take indices as int32. One out of range raises at the next read-back (see
//! `src/gpu/runtime/status.rs`).

mod scatter;

pub use scatter::{scatter_add, take_add};

use super::complex::{by_parts, is_paired, paired, part_as};
use super::copy::{copy_into, from_start};
use super::create::full;
use super::map::pointwise_int_to;
use super::parts::{Part, part_of};
use super::pieces::{
    bound_along, bound_or_copied, fit, fit_wide, halves, in_a_piece, is_small, joined, limit, longest,
    outermost, widest,
};
use super::prelude::*;
use super::reduce::Fold;
use super::scan::cumsum;
use super::sort::{TILE, count};
use crate::array::buffer::Device;
use crate::array::shape::MAX_RANK;
use crate::gpu::{scalar, status};
use crate::math::real::{Integer, PointwiseInt};
use smallvec::SmallVec;

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

/// The places along an axis at which a kernel works: the size of the axis, the first, and how many.
#[derive(Clone, Copy)]
pub(super) struct Places {
    size: usize,
    first: usize,
    here: usize,
}

impl Places {
    /// All of an axis.
    pub fn all(size: usize) -> Places {
        Places { size, first: 0, here: size }
    }

    /// A part of these.
    pub fn part(self, (start, length): Part) -> Places {
        Places { first: self.first + start, here: length, ..self }
    }

    /// The parameters of `shaders/lib/places.wgsl`.
    pub fn words(self) -> [usize; 3] {
        [self.size, self.first, self.here]
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
    let x_strides = (0..dims.len()).map(|i| match i {
        i if i < axis => x.stride(i),
        i if i < axis + idx.rank() => 0,
        i => x.stride(i + 1 - idx.rank()),
    });
    let idx_strides = (0..dims.len()).map(|i| match i.checked_sub(axis) {
        Some(own) if own < idx.rank() => idx.stride(own),
        _ => 0,
    });
    read_along("take", x, idx, Shape::new(&dims)?, axis, [x_strides.collect(), idx_strides.collect()])
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
    let x_strides = (0..x.rank()).map(|i| if i == axis { 0 } else { x.stride(i) });
    let steps = [x_strides.collect(), idx.strides().iter().copied().collect()];
    read_along("gather", x, idx, idx.shape(), axis, steps)
}

/// Strides of an operand along the axes of the result.
type Steps = SmallVec<[isize; MAX_RANK]>;

/// Reads along an axis of `x` by an index; both have strides along the axes of the result, `x` 0 where the
/// index decides.
fn read_along(
    name: &'static str, x: &Array, idx: &Array, shape: Shape, axis: usize, [x_steps, idx_steps]: [Steps; 2],
) -> Result<Array> {
    let (places, step) = (Places::all(x.dim(axis)), x.stride(axis));
    let fits = shape.numel().div_ceil(per_word(x.dtype())) * 4 <= limit(x)?;
    // SAFETY: the elements are some of those of `x` and `idx`; nobody reads those of an empty axis.
    let view = |x: &Array, strides| unsafe {
        Array::strided_unchecked(x.buffer().clone(), shape, strides, x.offset(), x.dtype())
    };
    let (x, idx) = (&view(x, &x_steps)?, &view(idx, &idx_steps)?);
    let read = Read { name, step, places };
    if fits && fit([x, idx])? { read.run(x, idx) } else { read.in_pieces(x, idx) }
}

/// A read along an axis of this step, at some of its places. Operands are views of the shape of the result,
/// of which that of `x` begins with the first of these places.
#[derive(Clone, Copy)]
struct Read {
    name: &'static str,
    step: isize,
    places: Places,
}

impl Read {
    fn run(self, x: &Array, idx: &Array) -> Result<Array> {
        let out = Array::empty(idx.shape(), x.dtype(), x.device())?;
        let report = status(index_of(x)?, self.name, self.places.size, true)?;
        let mut nest = Nest::empty();
        for i in (0..out.rank()).filter(|&i| out.dim(i) != 1) {
            nest.push(out.dim(i), &[x.stride(i), idx.stride(i)]);
        }
        nest.rank = nest.rank.max(1);
        let mut run = Dispatch::new("gather", shader!("lib/places", "gather"), x.dtype());
        // Four adjacent elements have one index.
        let is_one = nest.strides[1][nest.rank - 1] == 0 && self.step % 4 == 0;
        run.lines(x, nest.inner(), &nest.strides[0][..nest.rank], is_one).reads(idx).fours(&out);
        run.picks(&out).reports(&report).nest(&nest, 2);
        run.words([nest.rank, out.numel(), x.offset(), idx.offset(), self.step as usize]);
        run.words(self.places.words());
        run.launch(out.numel().div_ceil(1024))?;
        Ok(out)
    }

    /// [`Read::run`] where kernels cannot bind the operands or the result: parts of the result, then parts of
    /// the places.
    fn in_pieces(self, x: &Array, idx: &Array) -> Result<Array> {
        let halved = |axis: usize| {
            let [a, b] = halves(idx.dim(axis), 1)
                .map(|part| self.in_pieces(&part_of(x, axis, part)?, &part_of(idx, axis, part)?));
            joined(&a?, &b?, axis)
        };
        if let Some(axis) = longest(idx, 0..0).filter(|_| !is_small(idx).unwrap_or(true)) {
            return halved(axis);
        }
        let here = self.places.here;
        if let Some(x) = bound_along(x, (here, self.step))? {
            return self.run(&x, &bound_or_copied(idx)?);
        }
        let far = here.saturating_sub(1) * self.step.unsigned_abs();
        match widest(x).filter(|&i| (x.dim(i) - 1) * x.stride(i).unsigned_abs() > far) {
            Some(axis) => halved(axis),
            None => {
                let [a, b] = halves(here, 1).map(|part| {
                    let offset = x.offset().wrapping_add_signed(self.step * part.0 as isize);
                    let x = x.with_layout(x.shape(), &x.strides(), offset)?;
                    Read { places: self.places.part(part), ..self }.in_pieces(&x, idx)
                });
                merged(&a?, &b?)
            }
        }
    }
}

/// One result of two, of which each is 0 where the other one counts.
fn merged(a: &Array, b: &Array) -> Result<Array> {
    let words =
        |x: &Array| Array::strided(x.buffer().clone(), Shape::new(&[words_of(x)])?, &[1], 0, DType::I32);
    let sum = Fold::Sum.combine(&words(a)?, &words(b)?)?;
    Array::strided(sum.buffer().clone(), a.shape(), &a.strides()[..a.rank()], 0, a.dtype())
}

/// Returns the positions of true elements in row-major order, int32 `[count, rank]`. Reads back the count.
pub fn nonzero(mask: &Array) -> Result<Array> {
    // A position has a number for each axis.
    let (most, numbers) = (in_a_piece(mask)?, mask.numel() * mask.rank().max(1));
    if let Some(axis) = outermost(&mask.shape()).filter(|_| numbers > most) {
        return nonzero_of_halves(mask, axis);
    }
    let (mask, rank, length) = (from_start(&bound_or_copied(mask)?)?, mask.rank(), mask.numel());
    let none = |count| Array::empty(Shape::new(&[count, rank])?, DType::I32, mask.device());
    if length == 0 {
        return none(0);
    }
    let (counts, tiles) = count(&mask, 1, length, 0)?;
    // Those of digit 1 lie behind those of digit 0.
    let ends = cumsum(&counts.with_layout(Shape::new(&[1, tiles])?, &[0, 1], tiles)?, 1)?;
    let last = ends.with_layout(Shape::SCALAR, &[], tiles - 1)?.to_device(Device::Cpu)?;
    let out = none(last.slice::<i32>()?[0] as usize)?;
    if out.numel() > 0 {
        let mut run = Dispatch::new("nonzero", shader!("lib/totals", "nonzero"), DType::I32);
        run.reads(&mask).reads(&ends).writes(&out).lengths(&mask.shape()).words([rank, length]);
        run.launch(length.div_ceil(TILE))?;
    }
    Ok(out)
}

/// [`nonzero`] of a mask cut in two along its first axis.
fn nonzero_of_halves(mask: &Array, axis: usize) -> Result<Array> {
    let parts = halves(mask.dim(axis), 1);
    let [a, b] = parts.map(|part| nonzero(&part_of(mask, axis, part)?));
    let (a, b) = (a?, b?);
    let along = part_of(&b, 1, (axis, 1))?;
    let start = scalar(index_of(mask)?, parts[1].0 as f64, DType::I32)?;
    copy_into(&along, &Fold::Sum.combine(&along, &start)?)?;
    joined(&a, &b, 0)
}

/// Writes `x` into `fill`: `out[start + step * i] = x[i]` on every axis. Steps are not zero.
pub fn pad(x: &Array, shape: &Shape, starts: &[usize], steps: &[isize], fill: f64) -> Result<Array> {
    if is_paired(x) && fill == 0.0 && x.rank() < MAX_RANK {
        let shape = &shape.inserted(shape.rank(), 2)?;
        let (starts, steps) = ([starts, &[0]].concat(), [steps, &[1]].concat());
        return paired(x, |pairs| pad(pairs, shape, &starts, &steps, fill));
    }
    if !fit_wide(&[x])? || shape.numel() > in_a_piece(x)? {
        let (out, strides) = (full(index_of(x)?, *shape, fill, x.dtype())?, shape.strides());
        let offset: usize = starts.iter().zip(&strides).map(|(&start, &n)| start * n as usize).sum();
        let to: Steps = steps.iter().zip(&strides).map(|(&step, &n)| step * n).collect();
        copy_into(&out.with_layout(x.shape(), &to, offset)?, x)?;
        return Ok(out);
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
