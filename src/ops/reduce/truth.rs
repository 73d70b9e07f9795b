//! Reductions of truth values: the number of nonzero elements, whether any is nonzero, whether all are.

use crate::array::shape::Axes;
use crate::ops::prelude::*;
use crate::ops::reduce::mean::count;
use crate::ops::reduce::{Extremum, Sum, index_type};

/// The number of nonzero elements over axes, on the CPU: int64.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CountNonzero {
    /// The axes to count over.
    pub axes: Axes,
    /// Whether to keep them with length 1.
    pub keepdim: bool,
}

kernel! {
    CountNonzero, "count_nonzero", |self, x| {
        crate::cpu::reduce::truth::count_nonzero(x[0], self.axes, self.keepdim)
    },
    /// inputs - outputs.
    flops |x, y| cost::folded(x, y)
}

impl Discrete for CountNonzero {
    batch!(in_front: |self| CountNonzero { axes: self.axes.shifted(), ..*self });
}

impl Tensor {
    fn counted_nonzero(&self, axes: Axes, keepdim: bool) -> Result<Tensor> {
        if self.device() == Device::Cpu {
            return bind(CountNonzero { axes, keepdim }, &[self]);
        }
        let truth = self.cast(DType::Bool)?.cast(index_type(self.device()))?;
        bind(Sum { axes, keepdim }, &[&truth])
    }

    /// Whether this is a bool tensor on the CPU, whose extremes have kernels.
    fn is_truth(&self) -> bool {
        self.device() == Device::Cpu && self.dtype() == DType::Bool
    }

    /// The number of nonzero elements over `axes` (all when `None`).
    pub fn count_nonzero(&self, axes: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
        self.counted_nonzero(self.shape().axes(axes, "count_nonzero")?, keepdim)
    }

    /// Whether any element is true, over `axes`.
    pub fn any(&self, axes: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
        let axes = self.shape().axes(axes, "any")?;
        if self.is_truth() {
            return bind(Extremum { axes, keepdim, largest: true }, &[self]);
        }
        self.counted_nonzero(axes, keepdim)?.ne(0i64)
    }

    /// Whether all elements are true, over `axes`.
    pub fn all(&self, axes: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
        let axes = self.shape().axes(axes, "all")?;
        if self.is_truth() && self.numel() > 0 {
            return bind(Extremum { axes, keepdim, largest: false }, &[self]);
        }
        self.counted_nonzero(axes, keepdim)?.eq(count(&self.shape(), axes) as i64)
    }
}
