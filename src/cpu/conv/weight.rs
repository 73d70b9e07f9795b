//! The gradient of a convolution with respect to its weights:
//! `dw[o, c, k] = sum over images and p of y[o, p] x[c, p * step + shift(k)]`.
//!
//! Both operands are laid out as grids (`src/cpu/conv/grid.rs`), so the sum over positions runs along memory
//! for every element of the window. A tile keeps the sums of some output channels and six terms in registers,
//! a partial sum per lane; lanes are added up at the end of a piece. Parts of the images have partial
//! results, which are added in order.

use super::Sizes;
use super::correlate::{CELLS, CHANNELS, Cut, CutPiece, WORK, even, memory};
use super::grid::{Axis, Grid, Place, spread, zero};
use super::vector::{Body, Float, Sums};
use crate::array::buffer::{collect_at_most, lengthen};
use crate::array::window::AXES;
use crate::cpu::prelude::*;
use crate::cpu::run::scratch::Scratch;

/// Terms of a tile.
const TERMS: usize = 6;
/// Minimal number of tasks, where the images allow it.
const TASKS: usize = 16;
/// Maximal number of elements of all partial results together.
const PARTIAL: usize = 1 << 22;

/// Computes the gradient `[groups * outputs, inputs, taps]`, the correlation of the input `x`,
/// `[images, groups * inputs, ..]`, and the cotangent of the output `y`, `[images, groups * outputs, ..]`,
/// over images and positions. All are contiguous.
pub fn weights<T: Float>(x: &[T], y: &[T], out: &mut [T], lines: [Axis; AXES], sizes: Sizes) -> Result<()> {
    WeightGradient { sizes, lines, x, y }.run(out)
}

/// The operands, the lengths of the axes that are not spatial, and the spatial axes.
struct WeightGradient<'a, T> {
    sizes: Sizes,
    lines: [Axis; AXES],
    x: &'a [T],
    y: &'a [T],
}

/// How the work is cut.
struct WeightPlan<'a> {
    cut: Cut<'a>,
    /// Number of parts, each of which has a partial result.
    parts: usize,
    /// Pieces of `cut` per part.
    pieces: usize,
    /// Input channels of a task, and the number of such blocks in a group.
    inputs: (usize, usize),
    /// Output channels of a task, and the number of such blocks in a group.
    outputs: (usize, usize),
}

impl<T: Float> WeightGradient<'_, T> {
    fn run(&self, out: &mut [T]) -> Result<()> {
        let plan = self.plan();
        let size = out.len();
        let partial = memory::<T>(if plan.parts > 1 { size * plan.parts } else { 0 })?;
        let to = Shared::new(if plan.parts > 1 { partial.ptr::<T>() } else { out.as_mut_ptr() });
        let tasks = plan.parts * self.sizes.groups * plan.inputs.1 * plan.outputs.1;
        let positions: usize = self.sizes.images * self.lines.iter().map(|l| l.count).product::<usize>();
        let work = size * positions;
        try_parallel_for(tasks, WORK.div_ceil((work / tasks).max(1)), |range| {
            for task in range {
                let body = Task { of: self, plan: &plan, task, size, to };
                // SAFETY: every task writes its own region of its partial result.
                unsafe { T::run(body)? };
            }
            Ok(())
        })?;
        if plan.parts > 1 {
            let partial = partial.slice::<T>()?;
            let to = Shared::new(out.as_mut_ptr());
            parallel_for(size, GRAIN / plan.parts, |range| {
                // SAFETY: ranges are disjoint.
                let out = unsafe { to.part(range.start, range.len()) };
                out.copy_from_slice(&partial[range.clone()]);
                for part in partial.chunks_exact(size).skip(1) {
                    out.iter_mut().zip(&part[range.clone()]).for_each(|(y, &x)| *y += x);
                }
            });
        }
        Ok(())
    }

    fn taps(&self) -> usize {
        self.lines.iter().map(|l| l.shifts.len()).product()
    }

    fn plan(&self) -> WeightPlan<'_> {
        let Sizes { images, groups, inputs, outputs } = self.sizes;
        let cut = Cut::new(&self.lines, images);
        let cells = cut.piece(0).grid.channel;
        let block = |total, most| {
            let block = even(total, most);
            (block, total.div_ceil(block))
        };
        let size = groups * outputs * inputs * self.taps();
        let inputs = block(inputs, (CELLS / cells).max(1));
        let outputs = block(outputs, CHANNELS);
        let apart = TASKS.div_ceil(groups * inputs.1 * outputs.1).min(PARTIAL / size).max(1);
        let pieces = cut.pieces().div_ceil(apart.min(cut.pieces()));
        WeightPlan { parts: cut.pieces().div_ceil(pieces), pieces, cut, inputs, outputs }
    }
}

/// Some output channels and some input channels of a group, over the pieces of one part.
struct Task<'a, T> {
    of: &'a WeightGradient<'a, T>,
    plan: &'a WeightPlan<'a>,
    task: usize,
    size: usize,
    to: Shared<T>,
}

impl<T: Float> Body<T> for Task<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Sums<Number = T>>(self) -> Result<()> {
        let (sizes, plan, taps) = (self.of.sizes, self.plan, self.of.taps());
        let (rows, columns) = (plan.outputs.1, plan.inputs.1);
        let output = self.task % rows * plan.outputs.0;
        let input = self.task / rows % columns * plan.inputs.0;
        let group = self.task / rows / columns % sizes.groups;
        let part = self.task / rows / columns / sizes.groups;
        let outputs = plan.outputs.0.min(sizes.outputs - output);
        let inputs = plan.inputs.0.min(sizes.inputs - input);
        let pitch = (inputs * taps).next_multiple_of(TERMS);
        let mut sums = filled(T::default(), outputs * pitch)?;
        let block = Channels { group, input, inputs, output, outputs };
        let pieces = part * plan.pieces..((part + 1) * plan.pieces).min(plan.cut.pieces());
        for piece in pieces.clone() {
            // SAFETY: the piece lies inside its tensors.
            unsafe {
                let laid = self.lay::<V>(piece, &block, pitch)?;
                let sums = sums.as_mut_ptr();
                for term in (0..pitch).step_by(TERMS) {
                    let blocks = outputs.div_ceil(V::ROWS / 2);
                    for block in 0..blocks {
                        let row = block * outputs / blocks;
                        let tile = Tile {
                            span: laid.span,
                            y: laid.y.add(row * laid.span),
                            x: laid.x,
                            offsets: laid.offsets.as_ptr().add(term),
                            sums: sums.add(row * pitch + term),
                            pitch,
                        };
                        tile.rows::<V>((block + 1) * outputs / blocks - row);
                    }
                }
            }
        }
        let finite = |x: T| x.to_f64().is_finite();
        if !sums.iter().all(|&s| finite(s)) {
            // An infinity or NaN of the input was multiplied by the zeros between two rows of the cotangent.
            let wrong = collect_at_most(sums.len(), (0..sums.len()).filter(|&i| !finite(sums[i])))?;
            wrong.iter().for_each(|&i| sums[i] = T::default());
            for piece in pieces {
                // SAFETY: the piece lies inside its tensors, and `wrong` indexes `sums`.
                unsafe { self.lay::<V>(piece, &block, pitch)?.add_rows(&wrong, pitch, &mut sums) };
            }
        }
        for row in 0..outputs {
            let row_of_all = group * sizes.outputs + output + row;
            let start = part * self.size + (row_of_all * sizes.inputs + input) * taps;
            // SAFETY: no other task writes this region of this partial result.
            let to = unsafe { self.to.part(start, inputs * taps) };
            to.copy_from_slice(&sums[row * pitch..][..inputs * taps]);
        }
        Ok(())
    }
}

/// The channels of a task, within their group.
struct Channels {
    group: usize,
    input: usize,
    inputs: usize,
    output: usize,
    outputs: usize,
}

/// A piece of the images, laid out as grids.
struct Laid<T> {
    grid: Grid,
    /// Outputs per row of the grid.
    count: usize,
    /// Offset in `x` at which each term starts.
    offsets: Vec<u32>,
    span: usize,
    x: *const T,
    /// Output channels, `span` apart.
    y: *const T,
    _scratch: Scratch<T>,
}

impl<T: Float> Laid<T> {
    /// Recomputes the sums at the indices `wrong` row by row, without the products between rows.
    ///
    /// # Safety
    /// The indices are those of sums of this piece's channels, `pitch` per output channel.
    unsafe fn add_rows(&self, wrong: &[usize], pitch: usize, sums: &mut [T]) {
        for &i in wrong {
            // SAFETY: the caller guarantees that `i` is a sum of this piece's channels.
            let (x, y) =
                unsafe { (self.x.add(self.offsets[i % pitch] as usize), self.y.add(i / pitch * self.span)) };
            self.grid.rows(|position, _, _, _| {
                for at in position..position + self.count {
                    // SAFETY: both rows lie in their grids.
                    sums[i] += unsafe { *x.add(at) * *y.add(at) };
                }
            });
        }
    }
}

impl<T: Float> Task<'_, T> {
    /// Lays out a piece of the images; the rows of the cotangent with zeros between them.
    ///
    /// # Safety
    /// The piece lies inside its tensors, and `V` is available.
    #[inline(always)]
    unsafe fn lay<V: Sums<Number = T>>(
        &self, piece: usize, block: &Channels, pitch: usize,
    ) -> Result<Laid<T>> {
        let of = self.of;
        let Sizes { groups, inputs, outputs, .. } = of.sizes;
        let CutPiece { image, start, lines, grid } = self.plan.cut.piece(piece);
        let mut offsets = grid.offsets(block.inputs)?;
        lengthen(&mut offsets, 0, pitch)?;
        let (span, count) = (grid.span.next_multiple_of(V::LANES), lines[2].count);
        let (scratch, [x, y]) = Scratch::parts([block.inputs * grid.channel, block.outputs * span])?;
        let channel = [block.group * inputs + block.input, groups * inputs];
        let inputs = Place::new(image, channel, lines.each_ref().map(|line| line.input));
        let channel = [block.group * outputs + block.output, groups * outputs];
        let full = of.lines.each_ref().map(|line| line.count);
        let outputs = Place { start, ..Place::new(image, channel, full) };
        // SAFETY: the caller guarantees the piece and `V`; both buffers have capacity for the piece.
        unsafe {
            grid.fill::<V>(of.x, &inputs, block.inputs, x);
            for row in 0..block.outputs {
                let (to, mut filled) = (y.add(row * span), 0);
                grid.rows(|position, i, z, y| {
                    zero::<V>(to.add(filled), position - filled);
                    let from = of.y.as_ptr().add(outputs.row(i, row, z, y));
                    spread::<V>(from, 1, to.add(position), 1, count);
                    filled = position + count;
                });
                zero::<V>(to.add(filled), span - filled);
            }
        }
        Ok(Laid { grid, count, offsets, span, x, y, _scratch: scratch })
    }
}

/// A tile of sums: some output channels and six terms.
struct Tile<T> {
    span: usize,
    /// Output channels, `span` apart.
    y: *const T,
    x: *const T,
    /// Offset in `x` at which each term starts.
    offsets: *const u32,
    sums: *mut T,
    /// Row stride of `sums`.
    pitch: usize,
}

impl<T: Float> Tile<T> {
    /// Adds the products of `rows` output channels and six terms.
    ///
    /// # Safety
    /// All pointers of the tile are valid, `rows` is at most half of `V::ROWS`, and `V` is available.
    #[inline(always)]
    unsafe fn rows<V: Sums<Number = T>>(&self, rows: usize) {
        // SAFETY: the caller guarantees the pointers, `rows` and `V`.
        unsafe {
            match rows {
                1 => self.sum::<V, 1>(),
                _ if V::ROWS == 4 => self.sum::<V, 2>(),
                2 => self.sum::<V, 2>(),
                3 => self.sum::<V, 3>(),
                _ => self.sum::<V, 4>(),
            }
        }
    }

    /// Adds the products of `ROWS` output channels; loops over indices as `src/cpu/conv/tile.rs` does.
    ///
    /// # Safety
    /// As for [`Tile::rows`].
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "see there")]
    unsafe fn sum<V: Sums<Number = T>, const ROWS: usize>(&self) {
        // SAFETY: the caller guarantees the pointers and `V`.
        unsafe {
            let mut sums = [[V::zero(); TERMS]; ROWS];
            let mut from = [self.x; TERMS];
            for j in 0..TERMS {
                from[j] = self.x.add(*self.offsets.add(j) as usize);
            }
            let mut at = 0;
            while at < self.span {
                let mut y = [V::zero(); ROWS];
                for r in 0..ROWS {
                    y[r] = V::load(self.y.add(r * self.span + at));
                }
                for j in 0..TERMS {
                    let x = V::load(from[j].add(at));
                    for r in 0..ROWS {
                        sums[r][j] = V::add_product(x, y[r], sums[r][j]);
                    }
                }
                at += V::LANES;
            }
            for r in 0..ROWS {
                for j in 0..TERMS {
                    *self.sums.add(r * self.pitch + j) += V::total(sums[r][j]);
                }
            }
        }
    }
}
