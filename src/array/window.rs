//! Windows that slide over the last axes of a tensor: the geometry that convolution and pooling share.
//! Along each spatial axis, element `k` of the window at output position `p` lies at input position
//! `p * stride + k * dilation - padding`; positions outside the input are padding.
//! Read next: `src/ops/contract/conv.rs`.

use crate::array::shape::Shape;
use crate::error::Result;

/// The most spatial axes of a window.
pub const AXES: usize = 3;

/// Window geometry, always over three axes: missing axes come first, with length 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Window {
    /// The number of spatial axes that the tensor has.
    pub rank: usize,
    /// Length of each axis of the input.
    pub input: [usize; AXES],
    /// Length of each axis of the window.
    pub kernel: [usize; AXES],
    /// Length of each axis of the output.
    pub output: [usize; AXES],
    /// Distance from one window to the next, in elements.
    pub stride: [usize; AXES],
    /// Distance from one element of a window to the next, in elements of the input.
    pub dilation: [usize; AXES],
    /// Number of elements by which the first window starts before the input.
    pub padding: [usize; AXES],
}

impl Window {
    /// A one-element window over a one-element input: the values that missing axes take.
    pub const POINT: Window = Window {
        rank: 0,
        input: [1; AXES],
        kernel: [1; AXES],
        output: [1; AXES],
        stride: [1; AXES],
        dilation: [1; AXES],
        padding: [0; AXES],
    };

    /// Returns the shape of `front` axes followed by the spatial axes of `lengths`, a field of this struct.
    pub fn shape(&self, front: &[usize], lengths: &[usize; AXES]) -> Result<Shape> {
        let mut dims = front.to_vec();
        dims.extend(&lengths[AXES - self.rank..]);
        Shape::new(&dims)
    }

    /// The shape of a tensor whose spatial axes are one, and those before them another: its planes.
    pub fn planes(&self, shape: &Shape) -> Result<Shape> {
        let front = shape.rank() - self.rank;
        Shape::new(&[shape.part(0, front).numel(), shape.part(front, shape.rank()).numel()])
    }

    /// Number of elements in a window.
    pub fn taps(&self) -> usize {
        self.kernel.iter().product()
    }

    /// Number of windows.
    pub fn positions(&self) -> usize {
        self.output.iter().product()
    }

    /// The input position of element `k` of the window at `p` along `axis`; `None` in the padding.
    #[inline(always)]
    pub fn at(&self, axis: usize, p: usize, k: usize) -> Option<usize> {
        let i = (p * self.stride[axis] + k * self.dilation[axis]).wrapping_sub(self.padding[axis]);
        (i < self.input[axis]).then_some(i)
    }
}
