//! Correlation: `out[o, p] = sum over c and k of weight[o, c, k] x[c, p * step + shift(k)]`, to which
//! convolution and its adjoint in the input both reduce.
//!
//! It is a matrix product of weights and patches; tiles of sums read the patches from the grid
//! (`src/cpu/conv/grid.rs`), so none is written out. A piece of work is some images, a group, a band of
//! outputs and up to 64 output channels; the cuts come from the shapes alone.

use super::Sizes;
use super::grid::{Axis, Grid, Place, spread};
use super::tile::Tile;
use super::vector::{Body, Float, Sums};
use crate::array::window::AXES;
use crate::cpu::prelude::*;
use crate::cpu::run::scratch::Scratch;

/// Grid positions to aim at per piece: with 64 rows of sums they fit into the second-level cache.
pub const SPAN: usize = 1024;
/// Maximal number of output channels of a piece.
pub const CHANNELS: usize = 64;
/// Terms of a sum before the next rows: what a tile reads for them stays in the first-level cache.
const DEPTH: usize = 320;
/// Maximal number of elements of a grid that are laid out at a time.
pub const CELLS: usize = 48 * 1024;
/// Multiplications that are worth one chunk of a parallel loop.
pub const WORK: usize = 1 << 19;

/// Returns the length of even pieces of `total`, none longer than `most`.
pub fn even(total: usize, most: usize) -> usize {
    total.div_ceil(total.div_ceil(most.max(1)).max(1)).max(1)
}

/// How a correlation is cut into pieces: by images and along each axis.
pub struct Cut<'a> {
    lines: &'a [Axis; AXES],
    total: usize,
    /// Images of a piece.
    pub images: usize,
    /// Outputs of a piece along each axis.
    pub bands: [usize; AXES],
    /// Number of pieces along the images and along each axis.
    count: [usize; AXES + 1],
}

/// One piece of a [`Cut`].
pub struct CutPiece {
    /// The first image.
    pub image: usize,
    /// The first output along each axis.
    pub start: [usize; AXES],
    /// The spatial axes.
    pub lines: [Axis; AXES],
    /// The layout of its input.
    pub grid: Grid,
}

impl<'a> Cut<'a> {
    /// Cuts `total` images.
    pub fn new(lines: &'a [Axis; AXES], total: usize) -> Cut<'a> {
        let width: [usize; AXES] = std::array::from_fn(|i| lines[i].count);
        let mut bands = width;
        for axis in 0..AXES {
            let inner: usize = width[axis + 1..].iter().product();
            bands[axis] = even(width[axis], SPAN / inner.max(1));
        }
        let whole: usize = width.iter().product();
        let images = even(total, (SPAN / whole.max(1)).max(1));
        let parts =
            |i: usize| if i == 0 { total.div_ceil(images) } else { width[i - 1].div_ceil(bands[i - 1]) };
        Cut { lines, total, images, bands, count: std::array::from_fn(parts) }
    }

    /// Returns the number of pieces.
    pub fn pieces(&self) -> usize {
        self.count.iter().product()
    }

    /// Returns piece `i`.
    pub fn piece(&self, i: usize) -> CutPiece {
        let [_, nz, ny, nx] = self.count;
        let at = [i / nx / ny % nz, i / nx % ny, i % nx];
        let start: [usize; AXES] = std::array::from_fn(|a| at[a] * self.bands[a]);
        let lines = std::array::from_fn(|a| {
            self.lines[a].part(start[a], self.bands[a].min(self.lines[a].count - start[a]))
        });
        let image = i / nx / ny / nz * self.images;
        let grid = Grid::new(&lines, self.images.min(self.total - image));
        CutPiece { image, start, lines, grid }
    }
}

/// Strided weights: element `(g, o, c, k)` is at `g * group + o * row + c * column + taps[k]`.
pub struct Weights<'a, T> {
    /// The elements.
    pub values: &'a [T],
    /// Stride of groups.
    pub group: usize,
    /// Stride of output channels.
    pub row: usize,
    /// Stride of input channels.
    pub column: usize,
    /// Offset of each element of the window that is used, in the order of the lines.
    pub taps: Vec<usize>,
}

/// A correlation of contiguous tensors.
pub struct Correlation<'a, T> {
    /// Lengths of the axes that are not spatial.
    pub sizes: Sizes,
    /// The spatial axes.
    pub lines: [Axis; AXES],
    /// The input.
    pub x: &'a [T],
    /// The weights.
    pub weights: Weights<'a, T>,
    /// The number that the sums start with, for each output channel of all groups; empty for zeros.
    pub bias: &'a [T],
    /// Lengths of the output's spatial axes.
    pub full: [usize; AXES],
    /// Position of the first output along each axis.
    pub start: [usize; AXES],
    /// Positions from one output to the next.
    pub step: [usize; AXES],
}

impl<T: Float> Correlation<'_, T> {
    /// Computes the outputs at `out`, a contiguous tensor.
    pub fn run(&self, out: &mut [T]) -> Result<()> {
        let Sizes { images, groups, inputs, outputs } = self.sizes;
        let terms = inputs * self.weights.taps.len();
        let chunk = even(outputs, CHANNELS).next_multiple_of(8).min(outputs);
        let chunks = outputs.div_ceil(chunk);
        let packed = memory::<T>(groups * outputs * terms)?;
        let panels = Shared::new(packed.ptr::<T>());
        let zeros = if self.bias.is_empty() { filled(T::default(), groups * outputs)? } else { Vec::new() };
        let bias = if self.bias.is_empty() { &zeros } else { self.bias };
        try_parallel_for(groups * chunks, (WORK / 16).div_ceil(chunk * terms), |mut range| {
            // SAFETY: every chunk writes its own panels.
            range.try_for_each(|i| unsafe { T::run(Pack { of: self, chunk, index: i, to: panels }) })
        })?;
        let cut = Cut::new(&self.lines, images);
        let positions: usize = cut.bands.iter().product::<usize>() * cut.images;
        let tasks = cut.pieces() * groups * chunks;
        let out = Shared::new(out.as_mut_ptr());
        try_parallel_for(tasks, WORK.div_ceil(positions * chunk * terms), |range| {
            for task in range {
                let (piece, index) = (task / chunks / groups, task % (chunks * groups));
                let body = Piece { of: self, bias, cut: &cut, chunk, piece, index, panels, out };
                // SAFETY: every task writes its own part of the output.
                unsafe { T::run(body)? };
            }
            Ok(())
        })
    }

    /// Returns group, first channel and number of channels of chunk `index`.
    fn rows(&self, chunk: usize, index: usize) -> (usize, usize, usize) {
        let chunks = self.sizes.outputs.div_ceil(chunk);
        let first = index % chunks * chunk;
        (index / chunks, first, chunk.min(self.sizes.outputs - first))
    }
}

/// Returns an uninitialised array of `elements` elements.
pub fn memory<T: Float>(elements: usize) -> Result<Array> {
    Array::empty(Shape::new(&[elements])?, T::DTYPE, Device::Cpu)
}

/// Returns the blocks of rows in which a chunk is computed: `(first row, rows)`.
#[inline(always)]
fn blocks<V: Sums>(rows: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = rows.div_ceil(V::ROWS);
    (0..count).map(move |i| (i * rows / count, (i + 1) * rows / count - i * rows / count))
}

/// The packing of a chunk's weights as its tiles read them: for each block of rows, term after term.
struct Pack<'a, T> {
    of: &'a Correlation<'a, T>,
    chunk: usize,
    index: usize,
    to: Shared<T>,
}

impl<T: Float> Body<T> for Pack<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Sums<Number = T>>(self) -> Result<()> {
        let (Sizes { inputs, outputs, .. }, weights) = (self.of.sizes, &self.of.weights);
        let taps = weights.taps.len();
        let terms = inputs * taps;
        let (group, first, rows) = self.of.rows(self.chunk, self.index);
        for (start, rows) in blocks::<V>(rows) {
            let start = first + start;
            // SAFETY: the panels have these rows, and no other chunk writes them.
            let to = unsafe { self.to.part((group * outputs + start) * terms, rows * terms) };
            for r in 0..rows {
                let row = group * weights.group + (start + r) * weights.row;
                for c in 0..inputs {
                    for (k, tap) in weights.taps.iter().enumerate() {
                        to[(c * taps + k) * rows + r] = weights.values[row + c * weights.column + tap];
                    }
                }
            }
        }
        Ok(())
    }
}

struct Piece<'a, T> {
    of: &'a Correlation<'a, T>,
    bias: &'a [T],
    cut: &'a Cut<'a>,
    chunk: usize,
    piece: usize,
    index: usize,
    panels: Shared<T>,
    out: Shared<T>,
}

impl<T: Float> Body<T> for Piece<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Sums<Number = T>>(self) -> Result<()> {
        let of = self.of;
        let Sizes { groups, inputs, outputs, .. } = of.sizes;
        let (group, row, rows) = of.rows(self.chunk, self.index);
        let CutPiece { image, start, lines, grid } = self.cut.piece(self.piece);
        let taps = of.weights.taps.len();
        let terms = inputs * taps;
        let together = even(inputs, (DEPTH / taps).min(CELLS / grid.channel).max(1));
        let offsets = grid.offsets(together)?;
        let wide = rows * 2 <= V::ROWS;
        let width = if wide { 6 * V::LANES } else { 3 * V::LANES };
        let pitch = grid.span.next_multiple_of(width);
        let (_scratch, [cells, sums]) = Scratch::<T>::parts([together * grid.channel, rows * pitch])?;
        let first = group * outputs + row;
        // SAFETY: the piece lies inside its tensors, grid and sums; no other thread writes its outputs.
        unsafe {
            let panels = self.panels.get().add(first * terms);
            for c in (0..inputs).step_by(together) {
                let now = together.min(inputs - c);
                let input = lines.each_ref().map(|line| line.input);
                let from = Place::new(image, [group * inputs + c, groups * inputs], input);
                grid.fill::<V>(of.x, &from, now, cells);
                for at in (0..grid.span).step_by(width) {
                    for (block, rows) in blocks::<V>(rows) {
                        let tile = Tile {
                            terms: now * taps,
                            weights: panels.add(block * terms + c * taps * rows),
                            offsets: offsets.as_ptr(),
                            x: cells.add(at),
                            sums: sums.add(block * pitch + at),
                            pitch,
                            bias: self.bias[first + block..].as_ptr(),
                            add: c > 0,
                        };
                        if wide { tile.rows::<V, 6>(rows) } else { tile.rows::<V, 3>(rows) }
                    }
                }
            }
            let to = Place {
                start: std::array::from_fn(|i| of.start[i] + start[i] * of.step[i]),
                step: of.step,
                ..Place::new(image, [first, groups * outputs], of.full)
            };
            for row in 0..rows {
                grid.rows(|position, i, z, y| {
                    let to = self.out.get().add(to.row(i, row, z, y));
                    spread::<V>(sums.add(row * pitch + position), 1, to, of.step[2], lines[2].count);
                });
            }
        }
        Ok(())
    }
}
