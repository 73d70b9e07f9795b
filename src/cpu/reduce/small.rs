//! Reductions of few elements, without a plan: losses and gradients of biases of small models.
//!
//! They fold in the order of `src/cpu/reduce/sweep.rs`, so a reduction has the same bits either way.

use super::fold::Fold;
use super::lines::fold_lines;
use super::plan::COLUMNS;
use super::sweep::{DEPTH, SHORT, begun};
use crate::array::shape::Axes;
use crate::cpu::prelude::*;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// Up to so many elements of a row are one block.
const BLOCK: usize = 1024;

/// A reduction of all elements, as one row, or of a matrix over its rows.
pub struct Small<T, F> {
    x: *const T,
    /// How many rows there are, if their elements are folded column by column.
    rows: Option<usize>,
    /// Elements of a row.
    n: usize,
    to: *mut T,
    fold: PhantomData<F>,
}

impl<T: Element, F: Fold<T>> Small<T, F> {
    /// The reduction of `x` over `axes` into `out`, which is contiguous, if it is such a one.
    pub fn new(x: &Array, axes: Axes, out: &Array) -> Option<Small<T, F>> {
        let (shape, numel) = (x.shape(), x.numel());
        let is_row = numel <= BLOCK && (0..shape.rank()).all(|i| axes.contains(i));
        let is_matrix = || shape.rank() == 2 && axes.len() == 1 && axes.contains(0);
        let (rows, n) = match is_row {
            true => (None, numel),
            false if is_matrix() => (Some(shape.at(0)), shape.at(1)),
            false => return None,
        };
        let fits = numel > 0 && rows.is_none_or(|rows| rows <= DEPTH && (2..=COLUMNS).contains(&n));
        let at = x.buffer().ptr().cast::<T>().wrapping_add(x.offset());
        let to = out.buffer().ptr().cast();
        (fits && x.is_contiguous()).then_some(Small { x: at, rows, n, to, fold: PhantomData })
    }
}

impl<T: Element, F: Fold<T>> PlainBody for Small<T, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let none = F::widen(F::START);
        let Some(rows) = self.rows else {
            // SAFETY: the array is contiguous, and has `n` elements.
            let x = unsafe { std::slice::from_raw_parts(self.x, self.n) };
            let all = match self.n <= SHORT {
                true => F::widen(x.iter().fold(F::START, |all, &x| F::join(all, x))),
                false => F::merge(none, F::widen(F::block(x))),
            };
            // SAFETY: the output has one element.
            return unsafe { *self.to = F::finish(all) };
        };
        let mut sums = MaybeUninit::<[T; COLUMNS]>::uninit();
        let sums = begun(&mut sums, self.n, F::START);
        // SAFETY: the array is contiguous, with so many rows of `n` elements; the output has `n`.
        unsafe {
            fold_lines::<T, F>(self.x, self.n as isize, rows, sums);
            for (i, &sum) in sums.iter().enumerate() {
                *self.to.add(i) = F::finish(F::merge(none, F::widen(sum)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fold::{Max, Min, Sum};
    use super::super::plan::SweepPlan;
    use super::super::sweep::{From, fold_all};
    use super::*;

    /// Both ways of a reduction.
    fn both<T: Element, F: Fold<T>>(x: &Array, axes: Axes) -> Result<Option<[Array; 2]>> {
        let out = || Array::empty(x.shape().reduced(axes, true), T::DTYPE, Device::Cpu);
        let (small, planned) = (out()?, out()?);
        let Some(found) = Small::<T, F>::new(x, axes, &small) else { return Ok(None) };
        run_plain(found);
        let plan = SweepPlan::new(x, &planned.expand(&x.shape())?);
        fold_all::<T, F>(&plan, From::Memory(x), &planned)?;
        Ok(Some([small, planned]))
    }

    #[test]
    fn the_same_bits_with_a_plan() -> Result<()> {
        let shapes =
            [&[1][..], &[3], &[24], &[25], &[1000], &[5, 7], &[64, 2], &[63, 33], &[13, 1000], &[2, 3, 4]];
        let mut count = 0;
        for dims in shapes {
            for axes in [Axes::one(0), Axes::first(dims.len())] {
                let (x, y) = (sample(dims, DType::F32)?, sample(dims, DType::F64)?);
                let found = [
                    both::<f32, Sum>(&x, axes)?,
                    both::<f32, Max>(&x, axes)?,
                    both::<f32, Min>(&x, axes)?,
                    both::<f64, Sum>(&y, axes)?,
                    both::<f64, Max>(&y, axes)?,
                    both::<f64, Min>(&y, axes)?,
                ];
                for [small, planned] in found.into_iter().flatten() {
                    assert_eq!(values(&small), values(&planned), "{dims:?}");
                    count += 1;
                }
            }
        }
        assert_eq!(count, 102);
        Ok(())
    }
}
