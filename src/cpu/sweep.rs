//! The loops of a reduction: rows folded in vector lanes, columns folded side by side.
//!
//! A [`Plan`] sorts the axes into those that stay and those that go. Long reductions are cut into pieces
//! whose borders come from the shape alone, so the bits of a result do not depend on the number of threads.

use super::fold::Fold;
use super::half_float::widen;
use super::isa::{PlainBody, run_plain};
use super::layout::Nest;
use super::threads::{GRAIN, Shared, parallel_for};
use crate::array::Array;
use crate::dtype::Element;
use half::{bf16, f16};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Elements that fold in their own type before they are combined in a wider one.
pub const BLOCK: usize = 1024;
/// Vector lanes of a block.
const LANES: usize = 64;
/// Columns that fold at a time.
const COLUMNS: usize = 256;
/// Rows of columns that fold in their own type.
const DEPTH: usize = 64;
/// Elements of a piece.
const PIECE: usize = 64 * 1024;

/// Where a block is converted.
pub type Tile<T> = MaybeUninit<[T; BLOCK]>;

/// An element as stored, and how a block of them becomes a block of `T`.
pub trait Stored<T>: Copy + Send + Sync + 'static {
    /// Whether a block must be converted.
    const CONVERTS: bool;
    /// `n` elements at `from`, in `tile` if they must be converted.
    ///
    /// # Safety
    /// They exist, and `n` is at most `BLOCK`.
    unsafe fn block(from: *const Self, n: usize, tile: &mut Tile<T>) -> &[T];
}

macro_rules! stored {
    ($($t:ty),*; $($half:ty),*) => {
        $(impl Stored<$t> for $t {
            const CONVERTS: bool = false;
            #[inline(always)]
            unsafe fn block(from: *const $t, n: usize, _: &mut Tile<$t>) -> &[$t] {
                // SAFETY: the caller's promise.
                unsafe { std::slice::from_raw_parts(from, n) }
            }
        })*
        $(impl Stored<f32> for $half {
            const CONVERTS: bool = true;
            #[inline(always)]
            unsafe fn block(from: *const $half, n: usize, tile: &mut Tile<f32>) -> &[f32] {
                // SAFETY: the caller's promise; halves are transparent `u16`, and the tile has room.
                let (from, tile) = unsafe {
                    let to = tile.as_mut_ptr().cast::<f32>();
                    (std::slice::from_raw_parts(from.cast(), n), std::slice::from_raw_parts_mut(to, n))
                };
                widen(<$half>::DTYPE, from, tile);
                tile
            }
        })*
    };
}

stored!(u8, i32, i64, f32, f64; f16, bf16);

/// The loops of a reduction.
pub struct Plan {
    /// Axes that stay: strides of the input and of the output. Columns are not among them.
    kept: Nest,
    /// Axes that go: strides of the input.
    gone: Nest,
    /// Columns that fold side by side, and their stride in the output; 1 where rows fold.
    columns: usize,
    column_stride: isize,
    by_column: bool,
    /// Number of kept and of gone positions.
    kept_count: usize,
    gone_count: usize,
    /// Tiles of columns, and pieces of the gone positions.
    tiles: usize,
    pieces: usize,
    /// Positions of a piece.
    length: usize,
}

impl Plan {
    /// The plan for `x` (whose innermost stride is 1 in memory order) and an output stretched to its shape.
    pub fn new(x: &Array, out: &Array) -> Plan {
        let all = Nest::in_memory_order(&x.shape(), &[x, out]);
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
        let count = |nest: &Nest| nest.dims[..nest.rank].iter().product::<usize>();
        let columns = if by_column { all.dims[last] } else { 1 };
        let gone_count = count(&gone);
        let pieces = (gone_count * columns.min(COLUMNS)).div_ceil(PIECE).max(1);
        Plan {
            kept_count: count(&kept),
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

    /// The gone positions of piece `p`.
    fn piece(&self, p: usize) -> Range<usize> {
        p * self.length..self.gone_count.min((p + 1) * self.length)
    }
}

/// Folds `x` as planned into `out`, which is contiguous and holds elements as large as `T`.
pub fn fold_all<S: Stored<T>, T: Element, F: Fold<T>>(plan: &Plan, x: &Array, out: &Array) {
    let x = Shared::new(x.buffer().ptr().cast::<S>().wrapping_add(x.offset()));
    let out = Shared::new(out.buffer().ptr().cast::<T>());
    let outputs = plan.kept_count * plan.columns;
    let mut partial = vec![F::widen(F::START); if plan.pieces > 1 { outputs * plan.pieces } else { 0 }];
    let to = Shared::new(partial.as_mut_ptr());
    let tasks = plan.kept_count * plan.tiles * plan.pieces;
    let work = plan.length * plan.columns.min(COLUMNS);
    parallel_for(tasks, GRAIN.div_ceil(work), |range| {
        run_plain(Part::<S, T, F> {
            plan,
            x: x.get(),
            out: out.get(),
            partial: to.get(),
            range,
            fold: PhantomData,
        });
    });
    if plan.pieces == 1 {
        return;
    }
    plan.kept.runs([1], 0, plan.kept_count, |&[position], done, run| {
        for i in 0..run {
            let place = position + i as isize * plan.kept.strides[1][plan.kept.rank - 1];
            for c in 0..plan.columns {
                let at = |p: usize| partial[(p * plan.kept_count + done + i) * plan.columns + c];
                let all = (1..plan.pieces).fold(at(0), |a, p| F::merge(a, at(p)));
                // SAFETY: the place lies inside the output.
                unsafe { *out.get().offset(place + c as isize * plan.column_stride) = F::finish(all) };
            }
        }
    });
}

/// A range of tasks: task number = (piece * kept positions + kept position) * tiles + tile.
struct Part<'a, S, T, F: Fold<T>>
where
    T: Copy,
{
    plan: &'a Plan,
    x: *const S,
    out: *mut T,
    partial: *mut F::Wide,
    range: Range<usize>,
    fold: PhantomData<F>,
}

impl<S: Stored<T>, T: Copy, F: Fold<T>> PlainBody for Part<'_, S, T, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let plan = self.plan;
        let mut tile = MaybeUninit::uninit();
        let per_piece = plan.kept_count * plan.tiles;
        let mut task = self.range.start;
        while task < self.range.end {
            let (p, rest) = (task / per_piece, task % per_piece);
            let end = self.range.end.min(task - rest + per_piece);
            let piece = plan.piece(p);
            let (first, mut t) = (rest / plan.tiles, rest % plan.tiles);
            let count = (end - task + t).div_ceil(plan.tiles);
            plan.kept.runs([0, 1], first, count, |&[from, to], done, run| {
                for i in 0..run {
                    let last = plan.kept.rank - 1;
                    let at = |k: usize| i as isize * plan.kept.strides[k][last];
                    let row = p * plan.kept_count + first + done + i;
                    let (from, to) = (self.x.wrapping_offset(from + at(0)), to + at(1));
                    if !plan.by_column {
                        let value = self.row(from, &piece, &mut tile);
                        self.store(row, to, 0, value);
                        task += 1;
                        continue;
                    }
                    while t < plan.tiles && task < end {
                        self.column_tile(from, to, row, t, &piece, &mut tile);
                        t += 1;
                        task += 1;
                    }
                    t = 0;
                }
            });
        }
    }
}

impl<S: Stored<T>, T: Copy, F: Fold<T>> Part<'_, S, T, F> {
    #[inline(always)]
    fn store(&self, row: usize, to: isize, column: usize, value: F::Wide) {
        // SAFETY: the output, or the table of partial results, has a place for it that is this task's own.
        unsafe {
            if self.plan.pieces == 1 {
                *self.out.offset(to + column as isize * self.plan.column_stride) = F::finish(value);
            } else {
                *self.partial.add(row * self.plan.columns + column) = value;
            }
        }
    }

    /// Folds the contiguous runs of one output.
    #[inline(always)]
    fn row(&self, from: *const S, piece: &Range<usize>, tile: &mut Tile<T>) -> F::Wide {
        let mut total = F::widen(F::START);
        self.plan.gone.runs([0], piece.start, piece.len(), |&[position], _, run| {
            let mut i = 0;
            while i < run {
                let n = BLOCK.min(run - i);
                // SAFETY: the run lies inside the input.
                let block = unsafe { S::block(from.offset(position).add(i), n, tile) };
                total = F::merge(total, F::widen(fold_block::<T, F>(block)));
                i += n;
            }
        });
        total
    }

    /// Folds the rows of one tile of columns.
    #[inline(always)]
    fn column_tile(
        &self,
        from: *const S,
        to: isize,
        row: usize,
        t: usize,
        piece: &Range<usize>,
        tile: &mut Tile<T>,
    ) {
        let plan = self.plan;
        let (start, mut depth) = (t * COLUMNS, 0);
        let n = COLUMNS.min(plan.columns - start);
        let mut sums = [F::START; COLUMNS];
        let mut totals = [F::widen(F::START); COLUMNS];
        let (sums, totals) = (&mut sums[..n], &mut totals[..n]);
        let step = plan.gone.strides[0][plan.gone.rank - 1];
        plan.gone.runs([0], piece.start, piece.len(), |&[position], _, run| {
            let mut i = 0;
            while i < run {
                let four = !S::CONVERTS && run - i >= 4;
                // SAFETY: the rows lie inside the input.
                unsafe {
                    let line = |i: usize| from.offset(position + i as isize * step).add(start);
                    if four {
                        let [a, b, c, d] = [0, 1, 2, 3].map(|j| line(i + j).cast::<T>());
                        for (j, s) in sums.iter_mut().enumerate() {
                            let pairs = F::join(F::join(*a.add(j), *b.add(j)), F::join(*c.add(j), *d.add(j)));
                            *s = F::join(*s, pairs);
                        }
                    } else {
                        let line = S::block(line(i), n, tile);
                        sums.iter_mut().zip(line).for_each(|(s, &v)| *s = F::join(*s, v));
                    }
                }
                let taken = if four { 4 } else { 1 };
                i += taken;
                depth += taken;
                if depth >= DEPTH {
                    depth = 0;
                    flush::<T, F>(sums, totals);
                }
            }
        });
        flush::<T, F>(sums, totals);
        for (c, &total) in totals.iter().enumerate() {
            self.store(row, to, start + c, total);
        }
    }
}

#[inline(always)]
fn flush<T: Copy, F: Fold<T>>(sums: &mut [T], totals: &mut [F::Wide]) {
    for (total, s) in totals.iter_mut().zip(sums) {
        *total = F::merge(*total, F::widen(*s));
        *s = F::START;
    }
}

/// Folds a block: lane by lane, then the lanes as a tree.
#[inline(always)]
pub fn fold_block<T: Copy, F: Fold<T>>(block: &[T]) -> T {
    if block.len() < LANES / 2 {
        return block.iter().fold(F::START, |a, &b| F::join(a, b));
    }
    let mut lanes = [F::START; LANES];
    let mut rest = [F::START; LANES];
    let chunks = block.chunks_exact(LANES);
    // Lanes of their own for the rest: the others are only indexed by constants and stay in registers.
    for (lane, &value) in rest.iter_mut().zip(chunks.remainder()) {
        *lane = value;
    }
    for chunk in chunks {
        for i in 0..LANES {
            lanes[i] = F::join(lanes[i], chunk[i]);
        }
    }
    for i in 0..LANES {
        lanes[i] = F::join(lanes[i], rest[i]);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = F::join(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}
