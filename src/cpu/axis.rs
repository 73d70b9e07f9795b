//! Loops along one axis: the position of the extreme, and cumulative sums and products.
//!
//! The array is seen as `[before, length, after]`, contiguous.

use super::copy::{cast, contiguous};
use super::fold::{Fold, Max, Min};
use super::isa::{PlainBody, run_widest};
use super::layout::wrong_dtype;
use super::threads::{GRAIN, Shared, parallel_for};
use crate::array::Array;
use crate::buffer::Device;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::real::Integer;
use crate::shape::Shape;
use std::marker::PhantomData;

/// Sizes of the axes before, at and after `axis`.
pub fn around(shape: &Shape, axis: usize) -> (usize, usize, usize) {
    (shape.part(0, axis).numel(), shape.at(axis), shape.part(axis + 1, shape.rank()).numel())
}

/// Position of the largest element along `axis` as int64: the first of several; a NaN counts as the largest.
pub fn argmax(x: &Array, axis: usize, keepdim: bool) -> Result<Array> {
    extreme::<Max>(x, axis, keepdim)
}

/// Position of the smallest element along `axis` as int64: the first of several; a NaN counts as the
/// smallest.
pub fn argmin(x: &Array, axis: usize, keepdim: bool) -> Result<Array> {
    extreme::<Min>(x, axis, keepdim)
}

fn extreme<F>(x: &Array, axis: usize, keepdim: bool) -> Result<Array>
where
    F: Fold<u8> + Fold<i32> + Fold<i64> + Fold<f32> + Fold<f64>,
{
    let x = match x.dtype() {
        DType::Bool => cast(x, DType::U8)?,
        DType::F16 | DType::BF16 => cast(x, DType::F32)?,
        _ => contiguous(x)?,
    };
    let kept = x.shape().with(axis, 1);
    let shape = if keepdim { kept } else { kept.removed(axis) };
    let mut out = Array::empty(shape, DType::I64, Device::Cpu)?;
    let sizes = around(&x.shape(), axis);
    let to = out.slice_mut::<i64>()?;
    if to.is_empty() {
        return Ok(out);
    }
    match x.dtype() {
        DType::U8 => positions::<u8, F>(x.slice()?, sizes, to),
        DType::I32 => positions::<i32, F>(x.slice()?, sizes, to),
        DType::I64 => positions::<i64, F>(x.slice()?, sizes, to),
        DType::F32 => positions::<f32, F>(x.slice()?, sizes, to),
        _ => positions::<f64, F>(x.slice()?, sizes, to),
    }
    Ok(out)
}

/// Whether `b` displaces `a`: it is more extreme, or the first NaN.
#[inline(always)]
#[allow(clippy::eq_op)]
fn displaces<T: Element, F: Fold<T>>(a: T, b: T) -> bool {
    (a == a) & ((b != b) | ((F::join(a, b) == b) & (a != b)))
}

fn positions<T: Element, F: Fold<T>>(
    x: &[T],
    (before, length, after): (usize, usize, usize),
    out: &mut [i64],
) {
    let to = Shared::new(out.as_mut_ptr());
    parallel_for(before, GRAIN.div_ceil((length * after).max(1)), |range| {
        for i in range {
            // SAFETY: every `i` has its own part of the output.
            let out = unsafe { to.part(i * after, after) };
            let x = &x[i * length * after..(i + 1) * length * after];
            if after == 1 {
                out[0] = run_widest(FirstExtreme::<T, F>(x, PhantomData)) as i64;
            } else if length > 0 {
                run_widest(ColumnExtremes::<T, F>(x, out, PhantomData));
            }
        }
    });
}

struct FirstExtreme<'a, T, F>(&'a [T], PhantomData<F>);

impl<T: Element, F: Fold<T>> PlainBody for FirstExtreme<'_, T, F> {
    type Output = usize;
    #[inline(always)]
    fn run(self) -> usize {
        first_extreme::<T, F>(self.0)
    }
}

struct ColumnExtremes<'a, T, F>(&'a [T], &'a mut [i64], PhantomData<F>);

impl<T: Element, F: Fold<T>> PlainBody for ColumnExtremes<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        column_extremes::<T, F>(self.0, self.1);
    }
}

/// Finds the value block by block, then its place in the first block that has it.
#[inline(always)]
fn first_extreme<T: Element, F: Fold<T>>(x: &[T]) -> usize {
    const BLOCK: usize = 512;
    let Some(&first) = x.first() else { return 0 };
    let (mut best, mut block) = (first, 0);
    for (k, part) in x.chunks(BLOCK).enumerate() {
        let here = F::block(part);
        if displaces::<T, F>(best, here) {
            (best, block) = (here, k);
        }
    }
    #[allow(clippy::eq_op)]
    let found = x[block * BLOCK..].iter().position(|&v| if best == best { v == best } else { v != v });
    block * BLOCK + found.unwrap_or(0)
}

/// Tiles of columns, so that the best values and their positions stay in the first cache level.
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

/// Cumulative sum along `axis`, in the dtype of `x`; floats accumulate in `f64`.
pub fn cumsum(x: &Array, axis: usize) -> Result<Array> {
    let x = contiguous(x)?;
    match x.dtype() {
        DType::Bool => Err(wrong_dtype("cumulative sum", x.dtype())),
        DType::U8 => scan::<u8, u8>(&x, axis, 0, Integer::add, |v| v, |a| a),
        DType::I32 => scan::<i32, i32>(&x, axis, 0, Integer::add, |v| v, |a| a),
        DType::I64 => scan::<i64, i64>(&x, axis, 0, Integer::add, |v| v, |a| a),
        _ => scan_floats(&x, axis, 0.0, |a, b| a + b),
    }
}

/// Cumulative product along `axis`, in the dtype of `x`; floats accumulate in `f64`.
pub fn cumprod(x: &Array, axis: usize) -> Result<Array> {
    let x = contiguous(x)?;
    match x.dtype() {
        DType::Bool => Err(wrong_dtype("cumulative product", x.dtype())),
        DType::U8 => scan::<u8, u8>(&x, axis, 1, Integer::mul, |v| v, |a| a),
        DType::I32 => scan::<i32, i32>(&x, axis, 1, Integer::mul, |v| v, |a| a),
        DType::I64 => scan::<i64, i64>(&x, axis, 1, Integer::mul, |v| v, |a| a),
        _ => scan_floats(&x, axis, 1.0, |a, b| a * b),
    }
}

fn scan_floats(
    x: &Array,
    axis: usize,
    start: f64,
    join: impl Fn(f64, f64) -> f64 + Sync + Copy,
) -> Result<Array> {
    crate::dispatch!(x.dtype(), T => scan::<T, f64>(x, axis, start, join, |v| v.to_f64(), T::from_f64))
}

fn scan<T: Element, A: Copy + Send + Sync>(
    x: &Array,
    axis: usize,
    start: A,
    join: impl Fn(A, A) -> A + Sync,
    widen: impl Fn(T) -> A + Sync,
    narrow: impl Fn(A) -> T + Sync,
) -> Result<Array> {
    let mut out = Array::empty(x.shape(), x.dtype(), Device::Cpu)?;
    let (before, length, after) = around(&x.shape(), axis);
    let (x, to) = (x.slice::<T>()?, Shared::new(out.slice_mut::<T>()?.as_mut_ptr()));
    parallel_for(before, GRAIN.div_ceil((length * after).max(1)), |range| {
        let mut totals = vec![start; after];
        for i in range {
            totals.fill(start);
            // SAFETY: every `i` has its own part of the output.
            let out = unsafe { to.part(i * length * after, length * after) };
            let x = &x[i * length * after..(i + 1) * length * after];
            for (y, x) in out.chunks_exact_mut(after.max(1)).zip(x.chunks_exact(after.max(1))) {
                for ((total, y), &x) in totals.iter_mut().zip(y).zip(x) {
                    *total = join(*total, widen(x));
                    *y = narrow(*total);
                }
            }
        }
    });
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{layouts, same_for_any_threads, sample, shape, values};
    use super::*;

    #[test]
    fn positions_of_extremes() -> Result<()> {
        for dtype in DType::ALL {
            for x in layouts(&[3, 40, 5], dtype)? {
                for axis in 0..3 {
                    let (_, length, after) = around(&x.shape(), axis);
                    let (v, top, low) =
                        (values(&x), values(&argmax(&x, axis, false)?), argmin(&x, axis, true)?);
                    assert_eq!(low.shape(), x.shape().with(axis, 1));
                    for (o, (&top, &low)) in top.iter().zip(&values(&low)).enumerate() {
                        let line: Vec<f64> =
                            (0..length).map(|k| v[(o / after * length + k) * after + o % after]).collect();
                        let first = |want: f64| line.iter().position(|&v| v == want).unwrap_or(0) as f64;
                        assert_eq!(top, first(line.iter().copied().fold(f64::MIN, f64::max)), "{x:?} {axis}");
                        assert_eq!(low, first(line.iter().copied().fold(f64::MAX, f64::min)));
                    }
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

    #[test]
    fn cumulative_sums_and_products() -> Result<()> {
        for dtype in [DType::F32, DType::I64, DType::F16, DType::U8] {
            for x in layouts(&[2, 3, 4], dtype)? {
                for axis in 0..3 {
                    let (_, length, after) = around(&x.shape(), axis);
                    let (v, s, p) = (values(&x), values(&cumsum(&x, axis)?), values(&cumprod(&x, axis)?));
                    for i in 0..v.len() {
                        let first = i / after % length == 0;
                        let tolerance = if dtype == DType::F16 { 0.02 } else { 1e-5 };
                        let (sum, product) =
                            (if first { 0.0 } else { s[i - after] }, if first { 1.0 } else { p[i - after] });
                        assert!(
                            (s[i] - sum - v[i]).abs() < tolerance
                                && (p[i] - product * v[i]).abs() < tolerance
                        );
                    }
                }
            }
        }
        let x = sample(&[50, 4000], DType::F32)?;
        same_for_any_threads(|| cumsum(&x, 1))?;
        assert_eq!(cumsum(&sample(&[3, 0], DType::F32)?, 1)?.numel(), 0);
        Ok(())
    }
}
