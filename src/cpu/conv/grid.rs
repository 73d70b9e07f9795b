//! The input of a convolution, laid out so that every window element is read from consecutive memory.
//!
//! Where the stride is 1, element `k` of adjacent windows is adjacent in the input, up to the end of a row.
//! Copying the rows one after another, with zeros around them, extends that across rows: output position `q`
//! of the grid reads `grid[q + offset(k)]` for every `k`, and a vector of positions is one load. Positions
//! between two rows of the output are computed too and discarded. They are few (1 in 33 for a window of 3
//! over 32), because the zeros after one row are the zeros before the next. Where the stride is larger, the
//! input is first split into as many phases, in each of which the stride is 1.

use crate::array::buffer::with_capacity;
use crate::array::window::AXES;
use crate::cpu::product::vector::Vector;
use crate::error::Result;
use smallvec::SmallVec;

/// Elements past the last position that a tile may read: the widest tile has six vectors of sixteen.
const SLACK: usize = 96;

/// One axis of a correlation: output `p` reads input `p * step + shift` for every shift.
#[derive(Clone)]
pub struct Axis {
    /// Length of the input.
    pub input: usize,
    /// Number of outputs.
    pub count: usize,
    /// Stride: input positions from one output to the next.
    pub step: usize,
    /// Input position that output 0 reads, for each element of the window; may lie outside the input.
    pub shifts: SmallVec<[isize; 8]>,
}

impl Axis {
    /// Returns the outputs `start .. start + count` as a line.
    pub fn part(&self, start: usize, count: usize) -> Axis {
        let by = (start * self.step) as isize;
        Axis { count, shifts: self.shifts.iter().map(|s| s + by).collect(), ..*self }
    }
}

/// One axis of a grid.
struct Side {
    input: usize,
    count: usize,
    step: usize,
    /// The input position at the start of phase 0.
    first: isize,
    /// Positions from one line to the next.
    pitch: usize,
    /// The phases that are read.
    phases: SmallVec<[usize; 8]>,
    /// Index in `phases`, and position in that phase, that output 0 reads for each shift.
    reads: SmallVec<[(usize, usize); 8]>,
    /// The largest of these positions.
    reach: usize,
}

impl Side {
    fn new(line: &Axis) -> Side {
        let step = line.step;
        let first = line.shifts.iter().copied().min().unwrap_or(0);
        let mut phases: SmallVec<[usize; 8]> = SmallVec::new();
        let mut reads: SmallVec<[(usize, usize); 8]> = SmallVec::new();
        for shift in &line.shifts {
            let from = (shift - first) as usize;
            let phase = phases.iter().position(|&p| p == from % step).unwrap_or_else(|| {
                phases.push(from % step);
                phases.len() - 1
            });
            reads.push((phase, from / step));
        }
        let reach = reads.iter().map(|r| r.1).max().unwrap_or(0);
        // End of the positions read, end of the input counted from `first`, zeros at the start of a line.
        let end = line.count + reach;
        let data = (line.input as isize - first).max(0) as usize;
        let zeros = (-first).max(0) as usize / step;
        let pitch = line.count.max(end.min(data.div_ceil(step))).max(end.saturating_sub(zeros)).max(1);
        Side { input: line.input, count: line.count, step, first, pitch, phases, reads, reach }
    }

    /// Returns the input position of grid position `at` of a phase, if it is not padding.
    fn source(&self, phase: usize, at: usize) -> Option<usize> {
        let i = (at * self.step + self.phases[phase]) as isize + self.first;
        (i >= 0 && i < self.input as isize).then_some(i as usize)
    }

    /// Returns the range of grid positions of a phase that hold input.
    fn filled(&self, phase: usize) -> (usize, usize) {
        let before = |i: isize| {
            let distance = i - self.first - self.phases[phase] as isize;
            (distance.max(0) as usize).div_ceil(self.step).min(self.pitch)
        };
        (before(0), before(self.input as isize).max(before(0)))
    }
}

/// A place in a contiguous tensor `[images, channels, spatial..]`, from where images and channels count.
pub struct Place {
    /// The first image.
    pub image: usize,
    /// The first channel.
    pub channel: usize,
    /// Number of channels of the tensor.
    pub channels: usize,
    /// Lengths of the spatial axes.
    pub full: [usize; AXES],
    /// The first position along each axis.
    pub start: [usize; AXES],
    /// Positions from one output to the next.
    pub step: [usize; AXES],
}

impl Place {
    /// Returns the place of an image and a channel, with adjacent outputs from the first position on.
    pub fn new(image: usize, [channel, channels]: [usize; 2], full: [usize; AXES]) -> Place {
        Place { image, channel, channels, full, start: [0; AXES], step: [1; AXES] }
    }

    /// Returns the index of the first element of an image and channel.
    #[inline(always)]
    fn plane(&self, image: usize, channel: usize) -> usize {
        let plane: usize = self.full.iter().product();
        ((self.image + image) * self.channels + self.channel + channel) * plane
    }

    /// Returns the index of the first output of a row.
    #[inline(always)]
    pub fn row(&self, image: usize, channel: usize, z: usize, y: usize) -> usize {
        let at = |axis: usize, i: usize| self.start[axis] + i * self.step[axis];
        self.plane(image, channel) + (at(0, z) * self.full[1] + at(1, y)) * self.full[2] + at(2, 0)
    }
}

/// The layout of a grid of some images.
pub struct Grid {
    sides: [Side; AXES],
    images: usize,
    /// Positions of one image.
    image: usize,
    /// Elements of one phase of a channel.
    region: usize,
    /// Positions from the first output to the last, both included.
    pub span: usize,
    /// Elements of one channel, all phases.
    pub channel: usize,
}

impl Grid {
    /// Returns the grid of `images` images.
    pub fn new(lines: &[Axis; AXES], images: usize) -> Grid {
        let sides = [Side::new(&lines[0]), Side::new(&lines[1]), Side::new(&lines[2])];
        let [z, y, x] = &sides;
        let flat = |z_at: usize, y_at: usize, x_at: usize| (z_at * y.pitch + y_at) * x.pitch + x_at;
        let image = z.pitch * y.pitch * x.pitch;
        let last = (images - 1) * image + flat(z.count - 1, y.count - 1, x.count - 1);
        let region = (images * image).max(last + 1 + SLACK + flat(z.reach, y.reach, x.reach));
        let phases: usize = sides.iter().map(|s| s.phases.len()).product();
        Grid { images, image, region, span: last + 1, channel: region * phases, sides }
    }

    /// Returns the offsets that output 0 reads: for every channel, the elements of the window in order.
    pub fn offsets(&self, channels: usize) -> Result<Vec<u32>> {
        let [z, y, x] = &self.sides;
        let mut out = with_capacity(channels * z.reads.len() * y.reads.len() * x.reads.len())?;
        for channel in 0..channels {
            for &(z_phase, z_at) in &z.reads {
                for &(y_phase, y_at) in &y.reads {
                    for &(x_phase, x_at) in &x.reads {
                        let phase = (z_phase * y.phases.len() + y_phase) * x.phases.len() + x_phase;
                        let at = (z_at * y.pitch + y_at) * x.pitch + x_at;
                        out.push((channel * self.channel + phase * self.region + at) as u32);
                    }
                }
            }
        }
        Ok(out)
    }

    /// Copies `channels` channels into the grid at `to`, with zeros around them.
    ///
    /// # Safety
    /// `x` has the images and channels at `from`, `to` capacity for the channels, and `V` is available.
    #[inline(always)]
    pub unsafe fn fill<V: Vector>(&self, x: &[V::Number], from: &Place, channels: usize, to: *mut V::Number) {
        let [nz, ny, nx] = self.sides.each_ref().map(|side| side.phases.len());
        for channel in 0..channels {
            for phase in 0..nz * ny * nx {
                let phases = [phase / nx / ny, phase / nx % ny, phase % nx];
                // SAFETY: the caller guarantees `x` and `to`; a region has capacity for all images.
                unsafe {
                    let mut row = to.add(channel * self.channel + phase * self.region);
                    for image in 0..self.images {
                        let source = x.as_ptr().add(from.plane(image, channel));
                        row = self.fill_image::<V>(source, phases, row);
                    }
                    zero::<V>(row, self.region - self.images * self.image);
                }
            }
        }
    }

    /// Copies one phase of one image of one channel; returns the start of the next.
    ///
    /// # Safety
    /// As for [`Grid::fill`].
    #[inline(always)]
    unsafe fn fill_image<V: Vector>(
        &self, source: *const V::Number, phase: [usize; AXES], mut row: *mut V::Number,
    ) -> *mut V::Number {
        let [z, y, x] = &self.sides;
        let (from, to) = x.filled(phase[2]);
        // SAFETY: positions come from `source` and `filled`, which stay inside the input.
        unsafe {
            for z_at in 0..z.pitch {
                let plane = z.source(phase[0], z_at).map(|i| i * y.input);
                for y_at in 0..y.pitch {
                    let line = y.source(phase[1], y_at).zip(plane).map(|(i, plane)| (plane + i) * x.input);
                    match line.filter(|_| to > from) {
                        None => zero::<V>(row, x.pitch),
                        Some(line) => {
                            zero::<V>(row, from);
                            let first = (from * x.step + x.phases[phase[2]]) as isize + x.first;
                            let values = source.add(line + first as usize);
                            spread::<V>(values, x.step, row.add(from), 1, to - from);
                            zero::<V>(row.add(to), x.pitch - to);
                        }
                    }
                    row = row.add(x.pitch);
                }
            }
        }
        row
    }

    /// Calls `f(position in the grid, image, z, y)` for every row of outputs.
    #[inline(always)]
    pub fn rows(&self, mut f: impl FnMut(usize, usize, usize, usize)) {
        let [z, y, x] = &self.sides;
        for image in 0..self.images {
            for z_at in 0..z.count {
                for y_at in 0..y.count {
                    f(image * self.image + (z_at * y.pitch + y_at) * x.pitch, image, z_at, y_at);
                }
            }
        }
    }
}

/// Writes `count` zeros.
///
/// # Safety
/// `to` has capacity for them, and `V` is available.
#[inline(always)]
pub unsafe fn zero<V: Vector>(to: *mut V::Number, count: usize) {
    let mut i = 0;
    // SAFETY: the caller guarantees `count` elements and the instruction set.
    unsafe {
        while i + V::LANES <= count {
            V::store(to.add(i), V::zero());
            i += V::LANES;
        }
        while i < count {
            *to.add(i) = V::Number::default();
            i += 1;
        }
    }
}

/// Copies `count` elements, `step` apart in one row, to elements `place` apart in another. Rows are short:
/// calling `memcpy` for each would cost more than the copy.
///
/// # Safety
/// The elements exist, and `V` is available.
#[inline(always)]
pub unsafe fn spread<V: Vector>(
    from: *const V::Number, step: usize, to: *mut V::Number, place: usize, count: usize,
) {
    let mut i = 0;
    // SAFETY: the caller guarantees the elements and the instruction set; the last vector may overlap.
    unsafe {
        if step == 1 && place == 1 && count >= V::LANES {
            while i + V::LANES <= count {
                V::store(to.add(i), V::load(from.add(i)));
                i += V::LANES;
            }
            let last = count - V::LANES;
            V::store(to.add(last), V::load(from.add(last)));
            return;
        }
        while i < count {
            *to.add(i * place) = *from.add(i * step);
            i += 1;
        }
    }
}
