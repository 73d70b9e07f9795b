//! Sorting: one operation computes the order, and a gather by it gives the values.
//!
//! The order is piecewise constant, so `sort` and `topk` need no rules: derivatives flow through the gather.

use crate::array::shape::normalize_axis;
use crate::ops::prelude::*;

/// Indices of the first `count` elements along an axis in sorted order: int64 on the CPU, int32 on GPUs.
/// Equal elements keep their order; NaN counts as the largest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ArgSort {
    /// The axis to sort along.
    pub axis: u8,
    /// Whether the largest come first.
    pub descending: bool,
    /// The number of indices; at most the length of the axis.
    pub count: u32,
}

kernel! {
    ArgSort, "argsort", |self, x| {
        let (axis, count) = (self.axis as usize, self.count as usize);
        on_device!(x[0], sort::argsort(x[0], axis, self.descending, count))
    }
}

impl Discrete for ArgSort {
    batch!(in_front: |self| ArgSort { axis: self.axis + 1, ..*self });
}

impl Tensor {
    fn order(&self, op: &str, axis: i64, descending: bool, count: Option<usize>) -> Result<Tensor> {
        let axis = self.shape().axis(axis, op)?;
        let length = self.shape().at(axis);
        let count = count.unwrap_or(length);
        if count > length {
            return Err(Error::value(format!(
                "{op}: k = {count} elements asked for along axis {axis} of length {length}; k is between 0 \
                 and {length}"
            )));
        }
        bind(ArgSort { axis: axis as u8, descending, count: count as u32 }, &[self])
    }

    /// Returns the indices that sort `axis`; equal elements keep their order, NaN counts as the largest.
    pub fn argsort(&self, axis: i64, descending: bool) -> Result<Tensor> {
        if self.rank() == 0 {
            normalize_axis(axis, 1, "argsort")?;
            return self.unsqueeze(0)?.order("argsort", 0, descending, None)?.reshape(&self.shape());
        }
        self.order("argsort", axis, descending, None)
    }

    /// Returns the elements in sorted order along `axis`, and their indices. Gradients go back to those.
    pub fn sort(&self, axis: i64, descending: bool) -> Result<(Tensor, Tensor)> {
        if self.rank() == 0 {
            return Ok((self.clone(), self.argsort(axis, descending)?));
        }
        let order = self.order("sort", axis, descending, None)?;
        Ok((self.gather(axis, &order)?, order))
    }

    /// Returns the `count` largest (or smallest) elements along `axis` in sorted order, and their indices.
    pub fn topk(&self, count: usize, axis: i64, largest: bool) -> Result<(Tensor, Tensor)> {
        if self.rank() == 0 {
            normalize_axis(axis, 1, "topk")?;
            let (values, order) = self.unsqueeze(0)?.topk(count, 0, largest)?;
            // A scalar has one largest element; `count` 0 gives an empty vector.
            let shape = if count == 1 { self.shape() } else { values.shape() };
            return Ok((values.reshape(&shape)?, order.reshape(&shape)?));
        }
        let order = self.order("topk", axis, largest, Some(count))?;
        Ok((self.gather(axis, &order)?, order))
    }
}
