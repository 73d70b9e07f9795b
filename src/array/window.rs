//! Windows that slide over the last axes of a tensor: the geometry that convolution and pooling share.
//!
//! Along each spatial axis, element `k` of the window at output position `p` lies at input position
//! `p * stride + k * dilation - padding`; positions outside of the input hold nothing. Read next:
//! `src/ops/contract/conv.rs`.

use crate::array::shape::Shape;
use crate::error::Result;

/// The most spatial axes of a window.
pub const AXES: usize = 3;

/// The geometry, always for three axes: missing ones are in front, with length 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Window {
    /// How many of the axes a tensor really has.
    pub rank: usize,
    /// Length of each axis of the input.
    pub input: [usize; AXES],
    /// Length of each axis of the window.
    pub kernel: [usize; AXES],
    /// Length of each axis of the output.
    pub output: [usize; AXES],
    /// Steps from one window to the next.
    pub stride: [usize; AXES],
    /// Steps from one element of a window to the next.
    pub dilation: [usize; AXES],
    /// How far the first window begins before the input.
    pub padding: [usize; AXES],
}

impl Window {
    /// A window of one element over an input of one element: what a missing axis has.
    pub const POINT: Window = Window {
        rank: 0,
        input: [1; AXES],
        kernel: [1; AXES],
        output: [1; AXES],
        stride: [1; AXES],
        dilation: [1; AXES],
        padding: [0; AXES],
    };

    /// `front` axes, then the spatial axes that `lengths` are taken from: a field of this struct.
    pub fn shape(&self, front: &[usize], lengths: &[usize; AXES]) -> Result<Shape> {
        let mut dims = front.to_vec();
        dims.extend(&lengths[AXES - self.rank..]);
        Shape::new(&dims)
    }

    /// Elements of a window.
    pub fn taps(&self) -> usize {
        self.kernel.iter().product()
    }

    /// Number of windows.
    pub fn positions(&self) -> usize {
        self.output.iter().product()
    }

    /// The input position of element `k` of the window at `p` along `axis`, if there is one.
    #[inline(always)]
    pub fn at(&self, axis: usize, p: usize, k: usize) -> Option<usize> {
        let i = (p * self.stride[axis] + k * self.dilation[axis]).wrapping_sub(self.padding[axis]);
        (i < self.input[axis]).then_some(i)
    }
}
