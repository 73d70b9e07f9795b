//! Correlation: `out[o, p] = sum over c and k of weight[o, c, k] x[c, p * step + shift(k)]`, to which
//! convolution and its adjoint in the input both reduce.
//!
//! It is a matrix product of weights and patches; tiles of sums read the patches from the grid
//! (`src/cpu/conv/grid.rs`), so none is written out. A piece of work is some images, a group, a band of
//! outputs and up to 64 output channels; the cuts come from the shapes alone.

use super::grid::{Axis, Grid, Planes, spread};
use super::tile::Tile;
use super::vector::{Body, Float, Vector};
use crate::array::Array;
use crate::array::buffer::{Device, filled};
use crate::array::shape::Shape;
use crate::array::window::AXES;
use crate::cpu::run::scratch::Scratch;
use crate::cpu::run::threads::{Shared, try_parallel_for};
use crate::error::Result;

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
pub struct Cut {
    /// Images of a piece.
    pub images: usize,
    /// Outputs of a piece along each axis.
    pub bands: [usize; AXES],
    /// Number of pieces along the images and along each axis.
    pub count: [usize; AXES + 1],
}

impl Cut {
    /// Cuts `images` images.
    pub fn new(lines: &[Axis; AXES], images: usize) -> Cut {
        let width: [usize; AXES] = std::array::from_fn(|i| lines[i].count);
        let mut bands = width;
        for axis in 0..AXES {
            let inner: usize = width[axis + 1..].iter().product();
            bands[axis] = even(width[axis], SPAN / inner.max(1));
        }
        let whole: usize = width.iter().product();
        let together = even(images, (SPAN / whole.max(1)).max(1));
        let parts =
            |i: usize| if i == 0 { images.div_ceil(together) } else { width[i - 1].div_ceil(bands[i - 1]) };
        Cut { images: together, bands, count: std::array::from_fn(parts) }
    }

    /// Returns the number of pieces.
    pub fn pieces(&self) -> usize {
        self.count.iter().product()
    }

    /// Returns first image, number of images, first output along each axis and lines of piece `i`.
    pub fn piece(
        &self,
        lines: &[Axis; AXES],
        images: usize,
        i: usize,
    ) -> (usize, usize, [usize; AXES], [Axis; AXES]) {
        let [_, nz, ny, nx] = self.count;
        let at = [i / nx / ny % nz, i / nx % ny, i % nx];
        let start: [usize; AXES] = std::array::from_fn(|a| at[a] * self.bands[a]);
        let lines =
            std::array::from_fn(|a| lines[a].part(start[a], self.bands[a].min(lines[a].count - start[a])));
        let first = i / nx / ny / nz * self.images;
        (first, self.images.min(images - first), start, lines)
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
    /// Number of images.
    pub images: usize,
    /// Groups of channels.
    pub groups: usize,
    /// Input channels of a group.
    pub inputs: usize,
    /// Output channels of a group.
    pub outputs: usize,
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
        let terms = self.inputs * self.weights.taps.len();
        let chunk = even(self.outputs, CHANNELS).next_multiple_of(8).min(self.outputs);
        let chunks = self.outputs.div_ceil(chunk);
        let packed = memory::<T>(self.groups * self.outputs * terms)?;
        let panels = Shared::new(packed.ptr::<T>());
        let zeros =
            if self.bias.is_empty() { filled(T::default(), self.groups * self.outputs)? } else { Vec::new() };
        let bias = if self.bias.is_empty() { &zeros } else { self.bias };
        try_parallel_for(self.groups * chunks, (WORK / 16).div_ceil(chunk * terms), |mut range| {
            // SAFETY: every chunk writes its own panels.
            range.try_for_each(|i| unsafe { T::run(Pack { of: self, chunk, index: i, to: panels }) })
        })?;
        let cut = Cut::new(&self.lines, self.images);
        let positions: usize = cut.bands.iter().product::<usize>() * cut.images;
        let tasks = cut.pieces() * self.groups * chunks;
        let out = Shared::new(out.as_mut_ptr());
        try_parallel_for(tasks, WORK.div_ceil(positions * chunk * terms), |range| {
            for task in range {
                let (piece, rest) = (task / chunks / self.groups, task % (chunks * self.groups));
                let body = Piece { of: self, bias, cut: &cut, chunk, piece, index: rest, panels, out };
                // SAFETY: every task writes its own part of the output.
                unsafe { T::run(body)? };
            }
            Ok(())
        })
    }

    /// Returns group, first channel and number of channels of chunk `index`.
    fn rows(&self, chunk: usize, index: usize) -> (usize, usize, usize) {
        let chunks = self.outputs.div_ceil(chunk);
        let first = index % chunks * chunk;
        (index / chunks, first, chunk.min(self.outputs - first))
    }
}

/// Returns an uninitialised array of `elements` elements.
pub fn memory<T: Float>(elements: usize) -> Result<Array> {
    Array::empty(Shape::new(&[elements])?, T::DTYPE, Device::Cpu)
}

/// Returns the blocks of rows in which a chunk is computed: `(first row, rows)`.
#[inline(always)]
fn blocks<V: Vector>(rows: usize) -> impl Iterator<Item = (usize, usize)> {
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
    unsafe fn run<V: Vector<Float = T>>(self) -> Result<()> {
        let (of, weights) = (self.of, &self.of.weights);
        let taps = weights.taps.len();
        let terms = of.inputs * taps;
        let (group, first, rows) = of.rows(self.chunk, self.index);
        for (start, rows) in blocks::<V>(rows) {
            let start = first + start;
            // SAFETY: the panels have these rows, and no other chunk writes them.
            let to = unsafe { self.to.part((group * of.outputs + start) * terms, rows * terms) };
            for r in 0..rows {
                let row = group * weights.group + (start + r) * weights.row;
                for c in 0..of.inputs {
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
    cut: &'a Cut,
    chunk: usize,
    piece: usize,
    index: usize,
    panels: Shared<T>,
    out: Shared<T>,
}

impl<T: Float> Body<T> for Piece<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Vector<Float = T>>(self) -> Result<()> {
        let of = self.of;
        let (group, row, rows) = of.rows(self.chunk, self.index);
        let (image, images, start, lines) = self.cut.piece(&of.lines, of.images, self.piece);
        let grid = Grid::new(&lines, images);
        let taps = of.weights.taps.len();
        let terms = of.inputs * taps;
        let channels = even(of.inputs, (DEPTH / taps).min(CELLS / grid.channel).max(1));
        let offsets = grid.offsets(channels)?;
        let wide = rows * 2 <= V::ROWS;
        let width = if wide { 6 * V::LANES } else { 3 * V::LANES };
        let pitch = grid.span.next_multiple_of(width);
        let (_scratch, [cells, sums]) = Scratch::<V::Float>::parts([channels * grid.channel, rows * pitch])?;
        let plane: usize = lines.iter().map(|l| l.input).product();
        // SAFETY: the piece lies inside its tensors; the grid and the sums have capacity for it.
        unsafe {
            let panels = self.panels.get().add((group * of.outputs + row) * terms);
            for c in (0..of.inputs).step_by(channels) {
                let channel = group * of.inputs + c;
                let now = channels.min(of.inputs - c);
                let from = Planes {
                    start: of.x.as_ptr().add((image * of.groups * of.inputs + channel) * plane),
                    image: of.groups * of.inputs * plane,
                    channel: plane,
                };
                grid.fill::<V>(from, now, cells);
                for at in (0..grid.span).step_by(width) {
                    for (first, rows) in blocks::<V>(rows) {
                        let tile = Tile {
                            terms: now * taps,
                            weights: panels.add(first * terms + c * taps * rows),
                            offsets: offsets.as_ptr(),
                            x: cells.add(at),
                            sums: sums.add(first * pitch + at),
                            pitch,
                            bias: self.bias[group * of.outputs + row + first..].as_ptr(),
                            add: c > 0,
                        };
                        if wide { tile.narrow_rows::<V>(rows) } else { tile.rows::<V>(rows) }
                    }
                }
            }
            self.write::<V>(
                &grid,
                lines[2].count,
                sums,
                pitch,
                [image, group * of.outputs + row, rows],
                start,
            );
        }
        Ok(())
    }
}

impl<T: Float> Piece<'_, T> {
    /// Copies the sums to their positions in the output.
    ///
    /// # Safety
    /// `sums` has a row for each output channel of the piece; no other thread writes the piece's outputs.
    #[inline(always)]
    unsafe fn write<V: Vector<Float = T>>(
        &self,
        grid: &Grid,
        count: usize,
        sums: *const T,
        pitch: usize,
        [image, channel, channels]: [usize; 3],
        start: [usize; AXES],
    ) {
        let of = self.of;
        let [_, height, width] = of.full;
        let plane: usize = of.full.iter().product();
        let at = |axis: usize, i: usize| of.start[axis] + (start[axis] + i) * of.step[axis];
        for row in 0..channels {
            grid.rows(|position, i, z, y| {
                let place = ((image + i) * of.groups * of.outputs + channel + row) * plane;
                let place = place + (at(0, z) * height + at(1, y)) * width + at(2, 0);
                // SAFETY: the caller guarantees the rows of `sums` and sole access to these outputs.
                unsafe {
                    let from = sums.add(row * pitch + position);
                    spread::<V>(from, 1, self.out.get().add(place), of.step[2], count);
                }
            });
        }
    }
}
