//! `unfold` extracts windows as columns, `fold` adds them back: a `take` by index and its transpose.

use crate::array::buffer::with_capacity;
use crate::array::window::{AXES, Window};
use crate::ops::contract::convolve::per_axis;
use crate::ops::indexing::index::TakeAdd;
use crate::ops::prelude::*;

/// The options of windows over the last two axes: each a number for both axes, or one for each.
#[derive(Clone, Debug)]
pub struct PatchOptions {
    /// Lengths of a window.
    pub kernel: Vec<i64>,
    /// Steps between elements of a window.
    pub dilation: Vec<i64>,
    /// Zeros added to both ends.
    pub padding: Vec<i64>,
    /// Steps between windows.
    pub stride: Vec<i64>,
}

impl PatchOptions {
    /// Returns the windows over a plane of `lengths` plus padding, and the padding separately.
    fn window(&self, op: &str, lengths: [usize; 2]) -> Result<(Window, [usize; 2])> {
        let padding = per_axis(op, "padding", &self.padding, 2, 0)?;
        let mut window = Window {
            rank: 2,
            kernel: per_axis(op, "kernel_size", &self.kernel, 2, 1)?,
            stride: per_axis(op, "stride", &self.stride, 2, 1)?,
            dilation: per_axis(op, "dilation", &self.dilation, 2, 1)?,
            ..Window::POINT
        };
        for (i, &given) in lengths.iter().enumerate() {
            let axis = AXES - 2 + i;
            let length = given + 2 * padding[axis];
            let reach = (window.kernel[axis] - 1).saturating_mul(window.dilation[axis]);
            if reach >= length {
                return Err(Error::shape(format!(
                    "{op}: the window reaches over {} elements of spatial axis {i}, which has {} of them \
                     and {} of padding; it must fit into them",
                    reach + 1,
                    given,
                    2 * padding[axis]
                )));
            }
            window.input[axis] = length;
            window.output[axis] = (length - reach - 1) / window.stride[axis] + 1;
        }
        Ok((window, [padding[1], padding[2]]))
    }
}

/// The index in the padded plane of each element of a window, for each window.
fn places(window: &Window, device: Device) -> Result<Tensor> {
    let mut at: Vec<i64> = with_capacity(window.taps().saturating_mul(window.positions()))?;
    for k in 0..window.taps() {
        let (down, across) =
            (k / window.kernel[2] * window.dilation[1], k % window.kernel[2] * window.dilation[2]);
        for y in 0..window.output[1] {
            let line = (y * window.stride[1] + down) * window.input[2] + across;
            at.extend((0..window.output[2]).map(|x| (line + x * window.stride[2]) as i64));
        }
    }
    let index = Tensor::from_slice(&at, &[window.taps(), window.positions()])?;
    if device == Device::Cpu { Ok(index) } else { index.cast(DType::I32)?.to_device(device) }
}

impl Tensor {
    /// The windows of `[n, c, height, width]` (or one image) as columns: `[n, c * elements, windows]`.
    pub fn unfold(&self, options: &PatchOptions) -> Result<Tensor> {
        if self.rank() != 3 && self.rank() != 4 {
            return Err(Error::shape(format!(
                "unfold: input of shape {}; expected 4 axes (images, channels, height, width) or 3 (one \
                 image)",
                self.shape()
            )));
        }
        let rank = self.rank();
        let lengths = [self.shape().at(rank - 2), self.shape().at(rank - 1)];
        let (window, [top, left]) = options.window("unfold", lengths)?;
        let mut widths = vec![(0, 0); rank];
        (widths[rank - 2], widths[rank - 1]) = ((top as i64, top as i64), (left as i64, left as i64));
        let flat = self.pad(&widths, 0.0)?.flatten(-2, -1)?;
        flat.take(&places(&window, self.device())?, -1)?.flatten(-3, -2)
    }

    /// The transpose of [`Tensor::unfold`]: adds columns at their elements, `[n, c, height, width]`.
    pub fn fold(&self, size: &[i64], options: &PatchOptions) -> Result<Tensor> {
        let size = per_axis("fold", "output_size", size, 2, 1)?;
        let size = [size[1], size[2]];
        let (window, [top, left]) = options.window("fold", size)?;
        let (taps, count, rank) = (window.taps(), window.positions(), self.rank());
        let fits = (rank == 2 || rank == 3)
            && self.shape().at(rank - 2).is_multiple_of(taps)
            && self.shape().at(rank - 1) == count;
        if !fits {
            return Err(Error::shape(format!(
                "fold: input of shape {}; these windows over a plane of {size:?} need (images, channels * \
                 {taps}, {count}), or the same without images",
                self.shape()
            )));
        }
        let front = self.shape().part(0, rank - 1);
        let planes = front.with(rank - 2, front.at(rank - 2) / taps);
        let plane = |height, width| planes.inserted(rank - 1, height)?.inserted(rank, width);
        let [_, height, width] = window.input;
        let op = TakeAdd { axis: rank as u8 - 1, shape: planes.inserted(rank - 1, height * width)? };
        let index = places(&window, self.device())?;
        let out =
            bind(op, &[&self.reshape(&plane(taps, count)?)?, &index])?.reshape(&plane(height, width)?)?;
        out.narrow(-2, top, size[0])?.narrow(-1, left, size[1])
    }
}
