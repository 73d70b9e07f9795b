//! Products with a few rows or a few columns, whose long operand is contiguous along the depth: matrix times
//! vector, vector times transposed matrix, inner products. They are bound by memory, so nothing is packed.

use super::inner::Inner;
use super::mac::Kernels;
use super::{MatrixRef, Product};
use crate::cpu::prelude::*;
use crate::cpu::run::scratch::Scratch;

/// Maximal number of rows (or columns) of a thin product.
const ROWS: usize = 8;
/// Rows, and columns, that are computed together.
const GROUP: usize = 4;
/// Elements of the long operand that are worth one chunk of a parallel loop.
const WORK: usize = 1 << 17;

/// A thin product: `rows` is small, and the long operand is contiguous along the depth.
pub struct Thin<'a, S, O> {
    p: Product<'a, S, O>,
    /// Whether rows are the columns of `p`, and columns its rows.
    swapped: bool,
    short: MatrixRef<S>,
    long: MatrixRef<S>,
    rows: usize,
    columns: usize,
}

// SAFETY: as for `Product`, whose maker guarantees that no other thread writes its memory.
unsafe impl<S, O> Sync for Thin<'_, S, O> {}

impl<'a, S: Copy, O: Copy> Thin<'a, S, O> {
    /// Returns `p` as a thin product, if it is one.
    pub fn of<M: Kernels<Stored = S, Out = O>>(p: &Product<'a, S, O>) -> Option<Self> {
        let straight = p.m <= ROWS && p.right.depth == 1;
        let swapped = !straight && p.n <= ROWS && p.left.depth == 1;
        if !(straight || swapped) || p.k < 2 * M::LANES * M::STEP || !p.k.is_multiple_of(M::STEP) {
            return None;
        }
        let (short, long, rows, columns) =
            if swapped { (p.right, p.left, p.n, p.m) } else { (p.left, p.right, p.m, p.n) };
        Some(Thin { p: *p, swapped, short, long, rows, columns })
    }

    /// Computes the product.
    ///
    /// # Safety
    /// As for [`super::Number::multiply`], and the processor has the instructions of `M`.
    pub unsafe fn run<M: Kernels<Stored = S, Out = O>>(mut self) -> Result<()> {
        let steps = self.p.k / M::STEP;
        let apart = self.short.depth != 1;
        let mut copy = Scratch::<M::In>::new(if apart { self.rows * steps } else { 0 })?;
        if apart {
            let to = copy.ptr();
            for i in 0..self.rows {
                for l in 0..steps {
                    let from = self.short.at(i, l * M::STEP);
                    // SAFETY: the element exists, and `copy` has capacity for it.
                    unsafe { *to.add(i * steps + l) = M::one(from, self.short.depth, false) };
                }
            }
            self.short = MatrixRef { data: to.cast(), free: self.p.k as isize, depth: 1 };
        }
        try_parallel_for(self.columns.div_ceil(GROUP), WORK.div_ceil(GROUP * self.p.k), |range| {
            let columns = range.start * GROUP..(range.end * GROUP).min(self.columns);
            // SAFETY: the caller guarantees operands, result and instructions; ranges are disjoint.
            unsafe { self.part::<M>(columns.start, columns.len()) }
        })
    }

    /// Computes the columns from `first` on, and passes them to the sink.
    ///
    /// # Safety
    /// As for [`Thin::run`], and no other thread computes these columns.
    unsafe fn part<M: Kernels<Stored = S, Out = O>>(&self, first: usize, columns: usize) -> Result<()> {
        let (start, shape) = match self.swapped {
            true => ((first, 0), (columns, self.rows)),
            false => ((0, first), (self.rows, columns)),
        };
        let (piece, sink, _memory) = self.p.target.piece(start, shape)?;
        let size = size_of::<S>() as isize;
        let (out_row, out_column) = if self.swapped { (1, piece.stride) } else { (piece.stride, 1) };
        let mut at = 0;
        while at < columns {
            let four = at + GROUP <= columns;
            // The second group of rows finds the columns in the first-level cache.
            for row in (0..self.rows).step_by(GROUP) {
                let (a, a_row) = (self.short.at(row, 0).cast(), self.short.free * size);
                let (b, b_column) = (self.long.at(first + at, 0).cast(), self.long.free * size);
                let out = piece.at.wrapping_offset(row as isize * out_row + at as isize * out_column);
                let k = self.p.k / M::STEP;
                let inner = Inner::<M> { k, a, a_row, b, b_column, out, out_row, out_column };
                let rows = GROUP.min(self.rows - row);
                // SAFETY: the caller guarantees operands and piece, and rows and columns lie inside.
                unsafe { M::INNER[rows - 1][four as usize](&inner) };
            }
            at += if four { GROUP } else { 1 };
        }
        if let Some(sink) = sink {
            // SAFETY: the piece belongs to this thread.
            unsafe { sink.take(piece) };
        }
        Ok(())
    }
}
