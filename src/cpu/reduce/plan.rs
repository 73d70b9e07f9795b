//! The loop nest of a reduction, and where elements come from that are computed as they are read.
//!
//! A [`SweepPlan`] splits the axes into kept and reduced (`gone`) ones. Long reductions are cut into pieces
//! whose bounds depend on the shape alone. Read next: `src/cpu/reduce/sweep.rs`, which runs the loops.

use crate::cpu::prelude::*;
use std::ops::Range;

/// Number of columns that are folded at a time: whole rows of most matrices, as memory is read best in order.
pub const COLUMNS: usize = 1024;
/// Number of elements of a piece.
const PIECE: usize = 64 * 1024;

/// Elements that are computed where a reduction reads them, each once.
pub trait Fill: Sync {
    /// Computes the elements `from..from + n`, in row-major order.
    ///
    /// # Safety
    /// They exist, and `to` has room for them.
    unsafe fn fill(&self, from: usize, n: usize, to: *mut u8);
}

/// Runs of elements at least this long are computed one by one, shorter ones only where they are adjacent.
const LONG_RUN: usize = 512;

/// The loop nest of a reduction.
pub struct SweepPlan {
    /// Kept axes: strides of the input and of the output. Columns are not among them.
    pub kept: Nest,
    /// Reduced axes: strides of the input.
    pub gone: Nest,
    /// Number of columns that are folded side by side, and their output stride; 1 where rows are folded.
    pub columns: usize,
    pub column_stride: isize,
    pub by_column: bool,
    /// Number of kept and of reduced positions.
    pub kept_count: usize,
    pub gone_count: usize,
    /// Number of tiles of columns, and of pieces of the reduced positions.
    pub tiles: usize,
    pub pieces: usize,
    /// Reduced positions of a piece.
    pub length: usize,
}

impl SweepPlan {
    /// Plans for `x` (whose innermost stride is 1 in memory order) and an output expanded to its shape.
    pub fn new(x: &Array, out: &Array) -> SweepPlan {
        SweepPlan::over(Nest::in_memory_order(&x.shape(), &[x, out]))
    }

    /// Plans for row-major elements of this shape, which need not exist, with these strides of the output.
    pub fn of_dense(shape: &Shape, out: &[isize]) -> SweepPlan {
        let mut all = Nest::empty();
        for (i, &stride) in shape.strides()[..shape.rank()].iter().enumerate() {
            if shape.at(i) != 1 {
                all.push(shape.at(i), &[stride, out[i]]);
            }
        }
        all.rank = all.rank.max(1);
        SweepPlan::over(all)
    }

    /// Whether elements that are computed as they are read are so in long runs.
    pub fn suits_fill(&self) -> bool {
        let run = if self.by_column { self.columns.min(COLUMNS) } else { self.gone.inner() };
        run >= LONG_RUN || self.are_adjacent()
    }

    /// Whether what is folded to adjacent outputs, or all columns of a row, lies side by side.
    pub fn are_adjacent(&self) -> bool {
        let whole = if self.by_column { self.columns } else { self.gone_count };
        let [gone, kept] = [&self.gone, &self.kept].map(|nest| nest.strides[0][nest.rank - 1]);
        let step = if self.by_column { gone } else { kept };
        self.gone.rank == 1 && (step == whole as isize || (!self.by_column && self.kept_count == 1))
    }

    fn over(all: Nest) -> SweepPlan {
        let last = all.rank - 1;
        let by_column = all.strides[1][last] != 0;
        let rows = if by_column { last } else { all.rank };
        let mut kept = Nest::empty();
        let mut gone = Nest::empty();
        for i in 0..rows {
            let step = [all.strides[0][i], all.strides[1][i]];
            if step[1] == 0 { gone.push(all.dims[i], &step) } else { kept.push(all.dims[i], &step) }
        }
        kept.rank = kept.rank.max(1);
        gone.rank = gone.rank.max(1);
        let columns = if by_column { all.dims[last] } else { 1 };
        let gone_count = gone.numel();
        let pieces = (gone_count * columns.min(COLUMNS)).div_ceil(PIECE).max(1);
        SweepPlan {
            kept_count: kept.numel(),
            kept,
            gone,
            columns,
            column_stride: all.strides[1][last],
            by_column,
            gone_count,
            tiles: columns.div_ceil(COLUMNS),
            pieces,
            length: gone_count.div_ceil(pieces),
        }
    }

    /// Returns the reduced positions of piece `p`.
    pub fn piece(&self, p: usize) -> Range<usize> {
        p * self.length..self.gone_count.min((p + 1) * self.length)
    }
}
