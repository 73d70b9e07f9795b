//! `argmax` and `argmin` along one axis of an array, viewed as contiguous `[before, length, after]`.
//!
//! Read next: `src/cpu/reduce/scan.rs`, cumulative sums.

use super::fold::{Fold, Max, Min, run_fold};
use crate::cpu::prelude::*;
use std::marker::PhantomData;

/// Returns the number of elements over the axes before, at and after `axis`.
pub fn around(shape: &Shape, axis: usize) -> (usize, usize, usize) {
    (shape.part(0, axis).numel(), shape.at(axis), shape.part(axis + 1, shape.rank()).numel())
}

/// Returns the first position of the largest element along `axis` as int64; a NaN counts as the largest.
pub fn argmax(x: &Array, axis: usize, keepdim: bool) -> Result<Array> {
    extreme::<Max>(x, axis, keepdim)
}

/// [`argmax`] for the smallest element; a NaN counts as the smallest.
pub fn argmin(x: &Array, axis: usize, keepdim: bool) -> Result<Array> {
    extreme::<Min>(x, axis, keepdim)
}

fn extreme<F>(x: &Array, axis: usize, keepdim: bool) -> Result<Array>
where
    F: Fold<i32> + Fold<i64> + Fold<u64> + Fold<f32> + Fold<f64>,
{
    let x = if x.dtype() == DType::Bool { cast(x, DType::I32)? } else { computed(x)? };
    let kept = x.shape().with(axis, 1);
    let shape = if keepdim { kept } else { kept.removed(axis) };
    let mut out = Array::empty(shape, DType::I64, Device::Cpu)?;
    let sizes = around(&x.shape(), axis);
    let to = out.slice_mut::<i64>()?;
    if to.is_empty() {
        return Ok(out);
    }
    dispatch!(@ x.dtype(), T, positions::<T, F>(x.slice()?, sizes, to);
        DType::I32 => i32, DType::I64 => i64, DType::U64 => u64, DType::F32 => f32, _ => f64);
    Ok(out)
}

/// Whether `b` replaces `a`: it is more extreme, or the first NaN.
#[inline(always)]
#[allow(clippy::eq_op)]
fn displaces<T: Element, F: Fold<T>>(a: T, b: T) -> bool {
    (a == a) & ((b != b) | ((F::join(a, b) == b) & (a != b)))
}

fn positions<T: Element, F: Fold<T>>(
    x: &[T], (before, length, after): (usize, usize, usize), out: &mut [i64],
) {
    let to = Shared::new(out.as_mut_ptr());
    parallel_for(before, GRAIN.div_ceil((length * after).max(1)), |range| {
        // SAFETY: every position before the axis has its own part of the output.
        let out = unsafe { to.part(range.start * after, range.len() * after) };
        let x = &x[range.start * length * after..range.end * length * after];
        run_fold::<T, F, _>(Extremes::<T, F> { x, length, after, out, fold: PhantomData });
    });
}

/// The search at some positions before the axis.
struct Extremes<'a, T, F> {
    x: &'a [T],
    length: usize,
    after: usize,
    out: &'a mut [i64],
    fold: PhantomData<F>,
}

impl<T: Element, F: Fold<T>> PlainBody for Extremes<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Extremes { x, length, after, out, .. } = self;
        if length == 0 {
            out.fill(0);
        } else if after > 1 {
            for (x, out) in x.chunks_exact(length * after).zip(out.chunks_exact_mut(after)) {
                column_extremes::<T, F>(x, out);
            }
        } else {
            let together = if length <= SHORT { out.len() / TOGETHER * TOGETHER } else { 0 };
            let (x_short, x_rest) = x.split_at(together * length);
            let (out_short, out_rest) = out.split_at_mut(together);
            for (x, out) in x_short.chunks_exact(TOGETHER * length).zip(out_short.as_chunks_mut().0) {
                short_extremes::<T, F>(x, length, out);
            }
            for (x, out) in x_rest.chunks_exact(length).zip(out_rest) {
                *out = first_extreme::<T, F>(x) as i64;
            }
        }
    }
}

/// Rows up to this length are searched side by side.
const SHORT: usize = 24;
/// Number of short rows that are searched side by side.
const TOGETHER: usize = 8;

/// Finds the extremes of [`TOGETHER`] short rows.
#[inline(always)]
fn short_extremes<T: Element, F: Fold<T>>(x: &[T], length: usize, out: &mut [i64; TOGETHER]) {
    let mut best = [x[0]; TOGETHER];
    let mut at = [0u32; TOGETHER];
    for r in 0..TOGETHER {
        best[r] = x[r * length];
    }
    for k in 1..length {
        for r in 0..TOGETHER {
            let value = x[r * length + k];
            let moved = displaces::<T, F>(best[r], value);
            best[r] = if moved { value } else { best[r] };
            at[r] = if moved { k as u32 } else { at[r] };
        }
    }
    for r in 0..TOGETHER {
        out[r] = at[r] as i64;
    }
}

/// Finds the value block by block, then its position in the first block that has it.
#[inline(always)]
fn first_extreme<T: Element, F: Fold<T>>(x: &[T]) -> usize {
    const BLOCK: usize = 1024;
    let Some(&first) = x.first() else { return 0 };
    let (mut best, mut block) = (first, 0);
    for (k, part) in x.chunks(BLOCK).enumerate() {
        let here = F::block(part);
        if displaces::<T, F>(best, here) {
            (best, block) = (here, k);
        }
    }
    block * BLOCK + place(&x[block * BLOCK..], best)
}

/// Returns the first position of `best`, searched a few vectors at a time, then one by one.
#[inline(always)]
#[allow(clippy::eq_op)]
fn place<T: Element>(x: &[T], best: T) -> usize {
    const FEW: usize = 64;
    let nan = best != best;
    for (k, part) in x.chunks(FEW).enumerate() {
        let mut here = false;
        for &v in part {
            here |= (v == best) | (nan & (v != v));
        }
        if here {
            let found = part.iter().position(|&v| (v == best) | (nan & (v != v)));
            return k * FEW + found.unwrap_or(0);
        }
    }
    0
}

/// Searches columns in tiles, so that the best values and their positions stay in the L1 cache.
#[inline(always)]
fn column_extremes<T: Element, F: Fold<T>>(x: &[T], out: &mut [i64]) {
    const COLUMNS: usize = 128;
    let after = out.len();
    for (t, out) in out.chunks_mut(COLUMNS).enumerate() {
        let n = out.len();
        let row = |k: usize| &x[k * after + t * COLUMNS..][..n];
        let mut best = [F::START; COLUMNS];
        let mut at = [0u32; COLUMNS];
        best[..n].copy_from_slice(row(0));
        for k in 1..x.len() / after {
            for ((best, at), &value) in best.iter_mut().zip(&mut at).zip(row(k)) {
                let moved = displaces::<T, F>(*best, value);
                *best = if moved { value } else { *best };
                *at = if moved { k as u32 } else { *at };
            }
        }
        out.iter_mut().zip(at).for_each(|(o, k)| *o = k as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_extremes() -> Result<()> {
        for x in all_layouts(parts(), &[&[3, 40, 5]])? {
            for axis in 0..3 {
                let (_, length, after) = around(&x.shape(), axis);
                let (v, top, low) = (values(&x), values(&argmax(&x, axis, false)?), argmin(&x, axis, true)?);
                assert_eq!(low.shape(), x.shape().with(axis, 1));
                for (o, (&top, &low)) in top.iter().zip(&values(&low)).enumerate() {
                    let element = |k: usize| v[(o / after * length + k) * after + o % after];
                    let line: Vec<f64> = (0..length).map(element).collect();
                    let first = |want: f64| line.iter().position(|&v| v == want).unwrap_or(0) as f64;
                    assert_eq!(top, first(line.iter().copied().fold(f64::MIN, f64::max)), "{x:?} {axis}");
                    assert_eq!(low, first(line.iter().copied().fold(f64::MAX, f64::min)));
                }
            }
        }
        let mut long = vec![1.0f32; 2000];
        long[1500] = f32::NAN;
        long[1700] = f32::NAN;
        long[3] = 9.0;
        let x = Array::from_slice(&long, shape(&[2000, 1]))?;
        assert_eq!(argmax(&x, 0, false)?.item()?, 1500.0);
        let x = x.expand(&shape(&[2000, 2]))?;
        assert_eq!(values(&argmin(&x, 0, false)?), [1500.0; 2]);
        Ok(())
    }
}
