//! Cumulative sums and products along one axis.
//!
//! Each step of a row waits for the previous one, so rows are scanned side by side. A long row is cut into
//! blocks whose totals are computed before the blocks are scanned.

use super::axis::around;
use super::fold::{Fold, Prod, Running, Sum, run_fold};
use crate::cpu::prelude::*;
use crate::cpu::reduce::modular;

/// Returns the cumulative sum along `axis`, in the dtype of `x`; floats accumulate in `f64`.
pub fn cumsum(x: &Array, axis: usize) -> Result<Array> {
    modular(x, |x| cumulate::<Sum, Running>(x, axis, true))
}

/// Returns the cumulative product along `axis`, in the dtype of `x`; floats accumulate in `f64`.
pub fn cumprod(x: &Array, axis: usize) -> Result<Array> {
    modular(x, |x| cumulate::<Prod, Prod>(x, axis, false))
}

/// Totals of blocks are combined where they cannot overflow; `single_splits`: those of `f32` cannot.
fn cumulate<F, D>(x: &Array, axis: usize, single_splits: bool) -> Result<Array>
where
    F: Fold<i32> + Fold<i64> + Fold<f32>,
    D: Fold<f64>,
{
    match x.dtype() {
        DType::I32 => scan::<i32, F>(x, axis, true),
        DType::I64 => scan::<i64, F>(x, axis, true),
        DType::F32 => scan::<f32, F>(x, axis, single_splits),
        DType::F64 => scan::<f64, D>(x, axis, false),
        DType::F16 | DType::BF16 => cast(&scan::<f32, F>(&computed(x)?, axis, single_splits)?, x.dtype()),
        other => Err(wrong_dtype("cumulative sum or product", other)),
    }
}

/// Number of elements of a block of a long row.
const BLOCK: usize = 4096;
/// Number of rows, or blocks of one row, that are scanned side by side.
const TOGETHER: usize = 8;

fn scan<T: Element, F: Fold<T>>(x: &Array, axis: usize, splits: bool) -> Result<Array> {
    let x = contiguous(x)?;
    let mut out = Array::empty(x.shape(), x.dtype(), Device::Cpu)?;
    let (before, length, after) = around(&x.shape(), axis);
    let (x, to) = (x.slice::<T>()?, Shared::new(out.slice_mut::<T>()?.as_mut_ptr()));
    if x.is_empty() {
        return Ok(out);
    }
    if splits && after == 1 && length >= TOGETHER * BLOCK {
        for (i, row) in x.chunks_exact(length).enumerate() {
            scan_blocks::<T, F>(row, Shared::new(to.get().wrapping_add(i * length)))?;
        }
        return Ok(out);
    }
    try_parallel_for(before, GRAIN.div_ceil(length * after), |range| {
        // SAFETY: every position before the axis has its own part of the output.
        let out = unsafe { to.part(range.start * length * after, range.len() * length * after) };
        let x = &x[range.start * length * after..range.end * length * after];
        if after == 1 {
            run_fold::<T, F, _>(Rows::<T, F> { x, out, length, starts: &[] });
        } else {
            let totals = filled(F::widen(F::START), after)?;
            run_fold::<T, F, _>(Columns::<T, F> { x, out, totals, length, after });
        }
        Ok(())
    })?;
    Ok(out)
}

/// Scans one long row: computes the totals of its blocks, then scans each block from the total before it.
fn scan_blocks<T: Element, F: Fold<T>>(x: &[T], to: Shared<T>) -> Result<()> {
    let blocks = x.len().div_ceil(BLOCK);
    let mut totals = filled(F::widen(F::START), blocks)?;
    let places = Shared::new(totals.as_mut_ptr());
    parallel_for(blocks, GRAIN / BLOCK, |range| {
        // SAFETY: ranges are disjoint and inside the list.
        let totals = unsafe { places.part(range.start, range.len()) };
        run_fold::<T, F, _>(Totals::<T, F> {
            x: &x[range.start * BLOCK..x.len().min(range.end * BLOCK)],
            totals,
        });
    });
    let mut running = F::widen(F::START);
    for total in &mut totals {
        (*total, running) = (running, F::merge(running, *total));
    }
    parallel_for(blocks, GRAIN / BLOCK, |range| {
        let (start, end) = (range.start * BLOCK, x.len().min(range.end * BLOCK));
        // SAFETY: ranges are disjoint and inside the output.
        let out = unsafe { to.part(start, end - start) };
        run_fold::<T, F, _>(Rows::<T, F> { x: &x[start..end], out, length: BLOCK, starts: &totals[range] });
    });
    Ok(())
}

/// The computation of the total of every block of `x`.
struct Totals<'a, T: Copy, F: Fold<T>> {
    x: &'a [T],
    totals: &'a mut [F::Wide],
}

impl<T: Element, F: Fold<T>> PlainBody for Totals<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (x, total) in self.x.chunks(BLOCK).zip(self.totals) {
            let mut lanes = [F::widen(F::START); TOGETHER];
            let (groups, rest) = x.as_chunks::<TOGETHER>();
            for group in groups {
                for r in 0..TOGETHER {
                    lanes[r] = F::merge(lanes[r], F::widen(group[r]));
                }
            }
            *total = rest.iter().fold(F::widen(F::START), |a, &x| F::merge(a, F::widen(x)));
            for lane in lanes {
                *total = F::merge(*total, lane);
            }
        }
    }
}

/// Rows of `length` elements (the last may be shorter), with the totals they start from, if any.
struct Rows<'a, T: Copy, F: Fold<T>> {
    x: &'a [T],
    out: &'a mut [T],
    length: usize,
    starts: &'a [F::Wide],
}

impl<T: Element, F: Fold<T>> PlainBody for Rows<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (n, whole) = (self.length, self.x.len() / self.length);
        let (x, out) = (self.x, self.out);
        let mut row = 0;
        while row < x.len().div_ceil(n) {
            let start = |r: usize| self.starts.get(row + r).copied().unwrap_or(F::widen(F::START));
            if whole >= row + TOGETHER {
                let mut totals = [F::widen(F::START); TOGETHER];
                for (r, total) in totals.iter_mut().enumerate() {
                    *total = start(r);
                }
                let x = &x[row * n..(row + TOGETHER) * n];
                let out = &mut out[row * n..(row + TOGETHER) * n];
                for k in 0..n {
                    for r in 0..TOGETHER {
                        totals[r] = F::merge(totals[r], F::widen(x[r * n + k]));
                        out[r * n + k] = F::finish(totals[r]);
                    }
                }
                row += TOGETHER;
            } else {
                let mut total = start(0);
                let end = x.len().min((row + 1) * n);
                for (y, &x) in out[row * n..end].iter_mut().zip(&x[row * n..end]) {
                    total = F::merge(total, F::widen(x));
                    *y = F::finish(total);
                }
                row += 1;
            }
        }
    }
}

/// Columns: `after` running totals side by side.
struct Columns<'a, T: Copy, F: Fold<T>> {
    x: &'a [T],
    out: &'a mut [T],
    totals: Vec<F::Wide>,
    length: usize,
    after: usize,
}

impl<T: Element, F: Fold<T>> PlainBody for Columns<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let n = self.length * self.after;
        let mut totals = self.totals;
        for (x, out) in self.x.chunks_exact(n).zip(self.out.chunks_exact_mut(n)) {
            totals.fill(F::widen(F::START));
            for (x, out) in x.chunks_exact(self.after).zip(out.chunks_exact_mut(self.after)) {
                for ((total, y), &x) in totals.iter_mut().zip(out).zip(x) {
                    *total = F::merge(*total, F::widen(x));
                    *y = F::finish(*total);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cumulative_sums_and_products() -> Result<()> {
        let dtypes = [DType::F32, DType::I64, DType::F16, DType::I8, DType::U32, DType::U64];
        for x in all_layouts(dtypes, &[&[2, 3, 4]])? {
            let tolerance = if x.dtype() == DType::F16 { 0.02 } else { 1e-5 };
            for axis in 0..3 {
                let (_, length, after) = around(&x.shape(), axis);
                let (v, s, p) = (values(&x), values(&cumsum(&x, axis)?), values(&cumprod(&x, axis)?));
                for i in 0..v.len() {
                    let first = i / after % length == 0;
                    let (sum, product) = if first { (0.0, 1.0) } else { (s[i - after], p[i - after]) };
                    let near = |got: f64, want: f64| (got - want).abs() < tolerance;
                    assert!(near(s[i] - sum, v[i]) && near(p[i], product * v[i]));
                }
            }
        }
        let x = sample(&[50, 4000], DType::F32)?;
        same_for_any_threads(|| cumsum(&x, 1))?;
        assert_eq!(cumsum(&sample(&[3, 0], DType::F32)?, 1)?.numel(), 0);
        Ok(())
    }

    #[test]
    fn long_rows_are_scanned_in_blocks() -> Result<()> {
        for dtype in [DType::F32, DType::I64, DType::U8] {
            let x = sample(&[2, TOGETHER * BLOCK + 100], dtype)?;
            let got = values(&same_for_any_threads(|| cumsum(&x, 1))?);
            let n = x.dim(1);
            for (row, got) in values(&x).chunks(n).zip(got.chunks(n)) {
                let mut total = 0.0;
                for (x, got) in row.iter().zip(got) {
                    total += x;
                    let want = if dtype == DType::U8 { total % 256.0 } else { total };
                    assert!((got - want).abs() <= 1e-6 * want.abs().max(1000.0), "{got} {want}");
                }
            }
        }
        Ok(())
    }
}
