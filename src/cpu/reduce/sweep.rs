//! The loops of a reduction: rows are folded in vector lanes, columns side by side.
//!
//! `src/cpu/reduce/plan.rs` says which loops. The bits of a result do not depend on the number of threads.

use super::fold::{Fold, run_fold};
use super::lines::{flush, fold_lines, short_rows};
use super::plan::{COLUMNS, Fill, SweepPlan};
use crate::cpu::prelude::*;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Number of elements that are converted at a time.
pub const BLOCK: usize = 4096;
/// Rows up to this length are folded side by side.
pub const SHORT: usize = 24;
/// Number of rows after which the sums of columns are added to totals in the wider type.
pub const DEPTH: usize = 64;

/// A scratch buffer for one converted block.
pub type Tile<T> = MaybeUninit<[T; BLOCK]>;

/// Where the elements of a reduction come from.
#[derive(Clone, Copy)]
pub enum From<'a> {
    /// They are in memory.
    Memory(&'a Array),
    /// They are computed. The first one has this place.
    Fill(&'a dyn Fill, usize),
}

/// Folds `x` as planned into `out`, which is contiguous, with elements as large as `T`.
pub fn fold_all<T: Element, F: Fold<T>>(plan: &SweepPlan, x: From, out: &Array) -> Result<()> {
    let (x, fill) = match x {
        From::Memory(x) => (x.buffer().ptr().cast::<T>().wrapping_add(x.offset()), None),
        From::Fill(fill, start) => (std::ptr::without_provenance_mut(start * size_of::<T>()), Some(fill)),
    };
    let x = Shared::new(x);
    let out = Shared::new(out.buffer().ptr().cast::<T>());
    let outputs = plan.kept_count * plan.columns;
    let mut partial = filled(F::widen(F::START), if plan.pieces > 1 { outputs * plan.pieces } else { 0 })?;
    let to = Shared::new(partial.as_mut_ptr());
    let tasks = plan.kept_count * plan.tiles * plan.pieces;
    let work = plan.length * plan.columns.min(COLUMNS);
    parallel_for(tasks, GRAIN.div_ceil(work), |range| {
        let (x, out, partial) = (x.get(), out.get(), to.get());
        let part = TaskRange::<T, F> { plan, x, fill, out, partial, range, piece: 0..0 };
        run_fold::<T, F, _>(part);
    });
    if plan.pieces == 1 {
        return Ok(());
    }
    plan.kept.runs([1], 0, plan.kept_count, |&[position], done, run| {
        for i in 0..run {
            let place = position + i as isize * plan.kept.strides[1][plan.kept.rank - 1];
            for c in 0..plan.columns {
                let at = |p: usize| partial[(p * plan.kept_count + done + i) * plan.columns + c];
                let all = (1..plan.pieces).fold(at(0), |a, p| F::merge(a, at(p)));
                // SAFETY: the position lies inside the output.
                unsafe { *out.get().offset(place + c as isize * plan.column_stride) = F::finish(all) };
            }
        }
    });
    Ok(())
}

/// A range of tasks, numbered `(piece * kept positions + kept position) * tiles + tile`.
struct TaskRange<'a, T: Copy, F: Fold<T>> {
    plan: &'a SweepPlan,
    x: *const T,
    /// What computes the elements, whose places `x` then counts.
    fill: Option<&'a dyn Fill>,
    out: *mut T,
    partial: *mut F::Wide,
    range: Range<usize>,
    /// The reduced positions of the piece at hand.
    piece: Range<usize>,
}

impl<T: Copy, F: Fold<T>> PlainBody for TaskRange<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn run(mut self) {
        let plan = self.plan;
        let mut tile = MaybeUninit::uninit();
        let per_piece = plan.kept_count * plan.tiles;
        let mut task = self.range.start;
        while task < self.range.end {
            let (p, rest) = (task / per_piece, task % per_piece);
            let end = self.range.end.min(task - rest + per_piece);
            self.piece = plan.piece(p);
            let (first, mut t) = (rest / plan.tiles, rest % plan.tiles);
            let count = (end - task + t).div_ceil(plan.tiles);
            let (mut walk, mut row) = (plan.kept.walk([0, 1], first, count), p * plan.kept_count + first);
            let last = plan.kept.rank - 1;
            // No closures: one that is not inlined is compiled without this function's instruction set.
            while let Some(([from, to], run)) = walk.step() {
                if !plan.by_column {
                    self.rows(self.x.wrapping_offset(from), to, row, run, &mut tile);
                    (row, task) = (row + run, task + run);
                    continue;
                }
                for i in 0..run {
                    let at = |k: usize| i as isize * plan.kept.strides[k][last];
                    let (from, to) = (self.x.wrapping_offset(from + at(0)), to + at(1));
                    while t < plan.tiles && task < end {
                        self.column_tile(from, to, row, t, &mut tile);
                        t += 1;
                        task += 1;
                    }
                    t = 0;
                    row += 1;
                }
            }
        }
    }
}

impl<T: Copy, F: Fold<T>> TaskRange<'_, T, F> {
    #[inline(always)]
    fn store(&self, row: usize, to: isize, column: usize, value: F::Wide) {
        // SAFETY: the output, or the table of partial results, has an element that only this task writes.
        unsafe {
            if self.plan.pieces == 1 {
                *self.out.offset(to + column as isize * self.plan.column_stride) = F::finish(value);
            } else {
                *self.partial.add(row * self.plan.columns + column) = value;
            }
        }
    }

    /// Elements that are computed, from the place of the first: `count` rows of `n`, `step` apart.
    ///
    /// # Safety
    /// They exist, and the tile has room for them.
    #[inline(always)]
    unsafe fn computed(
        &self, fill: &dyn Fill, from: *const T, step: isize, count: usize, n: usize, tile: &mut Tile<T>,
    ) -> *const T {
        let size = size_of::<T>();
        // SAFETY: guaranteed by the caller.
        unsafe {
            fill_rows(fill, from.addr() / size, [step as usize, n, size], count, tile.as_mut_ptr().cast())
        };
        tile.as_ptr().cast()
    }

    /// Folds `run` consecutive outputs, each from its contiguous runs.
    #[inline(always)]
    fn rows(&self, from: *const T, to: isize, first: usize, run: usize, tile: &mut Tile<T>) {
        let plan = self.plan;
        let [step, out_step] = [0, 1].map(|k| plan.kept.strides[k][plan.kept.rank - 1]);
        let n = plan.gone_count;
        if plan.pieces == 1 && plan.gone.rank == 1 && n <= SHORT && n > 0 {
            // Every short row is folded in order, so the bounds of the task do not matter.
            let mut i = 0;
            while i < run {
                // As many rows as fit into the tile; all if nothing is computed.
                let rows = match self.fill.is_some() {
                    false => run,
                    true if step == n as isize => (BLOCK / n).min(run - i),
                    true => 1,
                };
                // SAFETY: these rows lie inside the input, and they have outputs.
                unsafe {
                    let from = from.wrapping_offset(i as isize * step);
                    let x = match self.fill {
                        Some(fill) => self.computed(fill, from, 0, 1, rows * n, tile),
                        None => from,
                    };
                    let to = self.out.offset(to + i as isize * out_step);
                    short_rows::<T, F>(x, step, n, rows, to, out_step);
                }
                i += rows;
            }
            return;
        }
        // Adjacent rows are computed together.
        let tile: *mut Tile<T> = tile;
        let fill = self.fill;
        let together = match fill {
            Some(_) if plan.pieces == 1 && n > 0 && plan.are_adjacent() => BLOCK / n,
            _ => 0,
        };
        for i in 0..run {
            let from = from.wrapping_offset(i as isize * step);
            let value = match fill {
                Some(fill) if together > 1 => {
                    let k = i % together;
                    if k == 0 {
                        // SAFETY: these rows are adjacent.
                        unsafe { self.computed(fill, from, 0, 1, together.min(run - i) * n, &mut *tile) };
                    }
                    self.row(tile.cast::<T>().cast_const().wrapping_add(k * n), None, tile)
                }
                fill => self.row(from, fill, tile),
            };
            self.store(first + i, to + i as isize * out_step, 0, value);
        }
    }

    /// Folds the contiguous runs of one output.
    #[inline(always)]
    fn row(&self, from: *const T, fill: Option<&dyn Fill>, tile: *mut Tile<T>) -> F::Wide {
        let mut total = F::widen(F::START);
        let mut walk = self.plan.gone.walk([0], self.piece.start, self.piece.len());
        while let Some(([position], run)) = walk.step() {
            let mut i = 0;
            while i < run {
                let n = BLOCK.min(run - i);
                let from = from.wrapping_offset(position).wrapping_add(i);
                // SAFETY: the run lies inside the input, or in the tile.
                let block = unsafe {
                    match fill {
                        Some(fill) => {
                            std::slice::from_raw_parts(self.computed(fill, from, 0, 1, n, &mut *tile), n)
                        }
                        None => std::slice::from_raw_parts(from, n),
                    }
                };
                for part in block.chunks(F::BLOCK) {
                    total = F::merge(total, F::widen(F::block(part)));
                }
                i += n;
            }
        }
        total
    }

    /// Folds the rows of one tile of columns.
    #[inline(always)]
    fn column_tile(&self, from: *const T, to: isize, row: usize, t: usize, tile: &mut Tile<T>) {
        let plan = self.plan;
        let (start, mut depth) = (t * COLUMNS, 0);
        let n = COLUMNS.min(plan.columns - start);
        let mut sums = MaybeUninit::<[T; COLUMNS]>::uninit();
        let mut totals = MaybeUninit::<[F::Wide; COLUMNS]>::uninit();
        // Few rows go to the output at once.
        let is_shallow = plan.pieces == 1 && plan.gone_count < DEPTH && plan.column_stride == 1;
        let wide = if is_shallow { 0 } else { n };
        let (sums, totals) = (begun(&mut sums, n, F::START), begun(&mut totals, wide, F::widen(F::START)));
        let step = plan.gone.strides[0][plan.gone.rank - 1];
        let fill = self.fill;
        let mut walk = plan.gone.walk([0], self.piece.start, self.piece.len());
        while let Some(([position], run)) = walk.step() {
            let mut i = 0;
            while i < run {
                let line = from.wrapping_offset(position + i as isize * step).wrapping_add(start);
                let count = match fill {
                    // Rows that are computed are added four at a time, as those in memory.
                    Some(_) => (BLOCK / n / 4 * 4).min(DEPTH - depth).min(run - i),
                    None => (run - i).min(DEPTH),
                };
                // SAFETY: the rows lie inside the input.
                unsafe {
                    let (lines, step) = match fill {
                        Some(fill) => (self.computed(fill, line, step, count, n, tile), n as isize),
                        None => (line, step),
                    };
                    fold_lines::<T, F>(lines, step, count, sums);
                }
                i += count;
                depth += count;
                if depth >= DEPTH {
                    depth = 0;
                    flush::<T, F>(sums, totals);
                }
            }
        }
        if is_shallow {
            // SAFETY: the output has these elements, which only this task writes.
            let out = unsafe { std::slice::from_raw_parts_mut(self.out.offset(to + start as isize), n) };
            for (y, &sum) in out.iter_mut().zip(&*sums) {
                *y = F::finish(F::merge(F::widen(F::START), F::widen(sum)));
            }
            return;
        }
        flush::<T, F>(sums, totals);
        for (c, &total) in totals.iter().enumerate() {
            self.store(row, to, start + c, total);
        }
    }
}

/// The first `n` elements of an array, set to `value`: no more of it is touched.
#[inline(always)]
pub fn begun<T: Copy>(array: &mut MaybeUninit<[T; COLUMNS]>, n: usize, value: T) -> &mut [T] {
    let (first, n) = (array.as_mut_ptr().cast::<T>(), n.min(COLUMNS));
    // SAFETY: the elements lie inside the array and are written before they are read.
    unsafe {
        for i in 0..n {
            first.add(i).write(value);
        }
        std::slice::from_raw_parts_mut(first, n)
    }
}

/// Computes `count` rows of `n` elements, `step` apart, of `size` bytes each; adjacent ones at once.
///
/// # Safety
/// They exist, and `to` has room for them.
#[inline(never)]
unsafe fn fill_rows(fill: &dyn Fill, from: usize, [step, n, size]: [usize; 3], count: usize, to: *mut u8) {
    let (rows, n) = if step == n { (1, count * n) } else { (count, n) };
    for k in 0..rows {
        // SAFETY: guaranteed by the caller.
        unsafe { fill.fill(from + k * step, n, to.wrapping_add(k * n * size)) };
    }
}
