//! Discrete operations behind searching and scattering: indices, and values without a gradient.
//!
//! The differentiable parts of `scatter` and `histc` are gathers, selections and sums at the indices found
//! here.

use crate::ops::prelude::*;

/// Insertion indices into ascending rows. Inputs: sorted, values, of one shape except for the last axis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SearchSorted {
    /// Whether to insert after equal elements rather than before them.
    pub right: bool,
}

kernel! {
    SearchSorted, "searchsorted", |self, x| {
        on_device!(x[0], search::search_sorted(x[0], x[1], self.right))
    }
}

impl Discrete for SearchSorted {
    batch!(in_front: |self| *self);
}

/// For each position along an axis, the last element of an index that selects it; -1 for none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ScatterLast {
    /// The axis.
    pub axis: u8,
    /// The length of the axis.
    pub length: u32,
}

kernel! {
    ScatterLast, "scatter", |self, x| {
        let (axis, length) = (self.axis as usize, self.length as usize);
        on_device!(x[0], search::scatter_last(x[0], axis, length))
    }
}

impl Discrete for ScatterLast {
    batch!(in_front: |self| ScatterLast { axis: self.axis + 1, ..*self });
}

/// The larger or smaller of init and the elements of x scattered to each position. Inputs: init, index, x.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ScatterExtreme {
    /// The axis.
    pub axis: u8,
    /// Whether it is the maximum, rather than the minimum.
    pub largest: bool,
}

kernel! {
    ScatterExtreme, "scatter_reduce", |self, x| {
        let axis = self.axis as usize;
        on_device!(x[0], search::scatter_extreme(x[0], x[1], x[2], axis, self.largest))
    }
}

impl Discrete for ScatterExtreme {
    batch!(in_front: |self| ScatterExtreme { axis: self.axis + 1, ..*self });
}

impl Tensor {
    /// The insertion indices of `values` into this ascending tensor: one row for all, or one per row.
    pub fn search_sorted(&self, values: &Tensor, right: bool) -> Result<Tensor> {
        let (own, of) = (self.shape(), values.shape());
        let lead = |s: &Shape| s.part(0, s.rank().saturating_sub(1));
        let dtype = self.dtype().promote(values.dtype());
        let (sorted, given) = (self.cast(dtype)?, values.cast(dtype)?);
        let op = SearchSorted { right };
        if own.rank() == 1 {
            let flat = given.reshape(&Shape::new(&[values.numel()])?)?;
            return bind(op, &[&sorted, &flat])?.reshape(&of);
        }
        if own.rank() == 0 || own.rank() != of.rank() || lead(&own) != lead(&of) {
            return Err(Error::shape(format!(
                "searchsorted: a sorted sequence of shape {own} does not fit values of shape {of}; pass one \
                 axis, or the same shape but for the last axis"
            )));
        }
        bind(op, &[&sorted, &given])
    }

    /// For each of `length` positions along `axis`, the last element of this index that selects it, or -1.
    pub fn scatter_last(&self, axis: i64, length: usize) -> Result<Tensor> {
        crate::ops::indexing::check_index("scatter", self)?;
        let axis = self.shape().axis(axis, "scatter")? as u8;
        let length = u32::try_from(length)
            .map_err(|_| Error::value(format!("scatter: an axis of length {length} is too long")))?;
        bind(ScatterLast { axis, length }, &[self])
    }

    /// Returns the larger (or smaller) of this tensor and the elements of `x` that `index` scatters along
    /// `axis`, without a gradient. `x` has the shape of `index`.
    pub fn scatter_extreme(&self, axis: i64, index: &Tensor, x: &Tensor, largest: bool) -> Result<Tensor> {
        crate::ops::indexing::check_index("scatter_reduce", index)?;
        let axis = self.shape().axis(axis, "scatter_reduce")? as u8;
        bind(ScatterExtreme { axis, largest }, &[self, index, &x.cast(self.dtype())?])
    }
}
