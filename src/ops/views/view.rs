//! Views of all elements: reshape, permute, expand. Data is copied only where strides require it.

use crate::array::shape::{MAX_RANK, normalize_axis};
use crate::ops::prelude::*;

/// The same elements in row-major order with another shape; a view where the strides allow it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Reshape {
    /// The new shape.
    pub shape: Shape,
}

kernel! {
    Reshape, "reshape", |self, x| {
        if let Some(view) = x[0].reshape_view(&self.shape) {
            return Ok(view);
        }
        let dense = x[0].copied()?;
        dense.reshape_view(&self.shape).ok_or_else(|| Error::shape("internal: a dense array did not reshape"))
    }
}

impl Linear for Reshape {
    const TRANSPOSE: &'static str = "g in the shape of x";

    transpose!(|self, g, c| g.reshape(&c.aval(0)?.shape));
    fn batch(&self, x: &[Batched], size: usize) -> Result<BatchedOutputs> {
        Ok(smallvec![(x[0].front()?.reshape(&self.shape.inserted(0, size)?)?, Some(0))])
    }
}

/// A permutation of the axes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Permute {
    /// `order[i]` is the input axis that becomes axis `i`.
    pub order: [u8; MAX_RANK],
}

kernel! { Permute, "permute", |self, x| x[0].permute(&self.order[..x[0].rank()]) }

impl Linear for Permute {
    const TRANSPOSE: &'static str = "g with the axes put back";

    fn transpose(&self, _wrt: usize, g: &Tensor, _c: &Vjp) -> Result<Tensor> {
        let mut inverse = [0u8; MAX_RANK];
        for (i, &o) in self.order[..g.rank()].iter().enumerate() {
            inverse[o as usize] = i as u8;
        }
        bind(Permute { order: inverse }, &[g])
    }
    fn batch(&self, x: &[Batched], _size: usize) -> Result<BatchedOutputs> {
        let value = x[0].front()?;
        let mut order = [0u8; MAX_RANK];
        for (slot, &axis) in order[1..value.rank()].iter_mut().zip(&self.order) {
            *slot = axis + 1;
        }
        Ok(smallvec![(bind(Permute { order }, &[&value])?, Some(0))])
    }
}

/// Broadcast to a larger shape, as a view.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Expand {
    /// The new shape.
    pub shape: Shape,
}

kernel! { Expand, "expand", |self, x| x[0].expand(&self.shape) }

impl Linear for Expand {
    const TRANSPOSE: &'static str = "the sum of g over the stretched axes";

    transpose!(|self, g, c| g.sum_to(&c.aval(0)?.shape));
    fn batch(&self, x: &[Batched], size: usize) -> Result<BatchedOutputs> {
        let shape = self.shape.inserted(0, size)?;
        // The input may have fewer axes than the output: the missing ones are inserted after the batch axis.
        Ok(smallvec![(x[0].front()?.with_rank(shape.rank(), 1)?.expand(&shape)?, Some(0))])
    }
}

impl Tensor {
    /// Returns the same elements in row-major order with another shape; a view where strides allow it.
    pub fn reshape(&self, shape: &Shape) -> Result<Tensor> {
        if self.shape() == *shape {
            return Ok(self.clone());
        }
        if self.numel() != shape.numel() {
            return Err(Error::shape(format!(
                "reshape: shape {} has {} elements and cannot become {shape} with {}",
                self.shape(),
                self.numel(),
                shape.numel()
            )));
        }
        bind(Reshape { shape: *shape }, &[self])
    }

    /// Permutes the axes; negative axes count from the end.
    pub fn permute(&self, order: &[i64]) -> Result<Tensor> {
        let rank = self.rank();
        let mut seen = [false; MAX_RANK];
        let mut resolved = [0u8; MAX_RANK];
        if order.len() != rank {
            return Err(Error::shape(format!(
                "permute: {} axes given for a tensor with {rank}",
                order.len()
            )));
        }
        for (slot, &axis) in resolved.iter_mut().zip(order) {
            let i = self.shape().axis(axis, "permute")?;
            if std::mem::replace(&mut seen[i], true) {
                return Err(Error::value(format!("permute: axis {axis} appears twice in {order:?}")));
            }
            *slot = i as u8;
        }
        bind(Permute { order: resolved }, &[self])
    }

    /// Swaps two axes.
    pub fn transpose(&self, a: i64, b: i64) -> Result<Tensor> {
        if self.rank() == 0 && (-1..=0).contains(&a) && (-1..=0).contains(&b) {
            return Ok(self.clone());
        }
        let (a, b) = (self.shape().axis(a, "transpose")?, self.shape().axis(b, "transpose")?);
        let mut order = [0u8; MAX_RANK];
        (0..self.rank()).for_each(|i| order[i] = i as u8);
        order.swap(a, b);
        bind(Permute { order }, &[self])
    }

    /// Moves axis `from` to position `to`; the others keep their order.
    pub fn move_axis(&self, from: usize, to: usize) -> Result<Tensor> {
        if from == to { Ok(self.clone()) } else { self.move_axes(from, 1, to) }
    }

    /// Moves `count` axes, the first of which is `from`, to position `to`; the others keep their order.
    pub fn move_axes(&self, from: usize, count: usize, to: usize) -> Result<Tensor> {
        let mut axes: Vec<i64> = (0..self.rank() as i64).collect();
        let moved: Vec<i64> = axes.drain(from..from + count).collect();
        axes.splice(to..to, moved);
        self.permute(&axes)
    }

    /// Broadcasts to `shape`; the result shares memory.
    pub fn expand(&self, shape: &Shape) -> Result<Tensor> {
        if self.shape() == *shape {
            return Ok(self.clone());
        }
        if self.shape().broadcast(shape) != Some(*shape) {
            return Err(Error::shape(format!(
                "expand: shape {} cannot be broadcast to {shape}: axes are aligned from the last, and only \
                 length 1 grows",
                self.shape()
            )));
        }
        bind(Expand { shape: *shape }, &[self])
    }

    /// Removes the axes in `axes` that have length 1 (all such axes when `None`).
    pub fn squeeze(&self, axes: Option<&[i64]>) -> Result<Tensor> {
        let own = self.shape();
        let chosen = own.axes(axes, "squeeze")?;
        let dims: Vec<usize> =
            own.iter().enumerate().filter(|&(i, d)| d != 1 || !chosen.contains(i)).map(|(_, d)| d).collect();
        self.reshape(&Shape::new(&dims)?)
    }

    /// Inserts an axis of length 1 at `axis`.
    pub fn unsqueeze(&self, axis: i64) -> Result<Tensor> {
        let at = normalize_axis(axis, self.rank() + 1, "unsqueeze")?;
        self.reshape(&self.shape().inserted(at, 1)?)
    }

    /// Inserts axes of length 1 at `at`, as many as make `rank` axes.
    pub fn with_rank(&self, rank: usize, at: usize) -> Result<Tensor> {
        let mut shape = self.shape();
        while shape.rank() < rank {
            shape = shape.inserted(at, 1)?;
        }
        self.reshape(&shape)
    }

    /// Merges axes `start..=end` into one.
    pub fn flatten(&self, start: i64, end: i64) -> Result<Tensor> {
        let own = self.shape();
        if own.rank() == 0 {
            return self.reshape(&Shape::new(&[1])?);
        }
        let (start, end) = (own.axis(start, "flatten")?, own.axis(end, "flatten")?);
        if start > end {
            return Err(Error::value(format!("flatten: start axis {start} lies behind end axis {end}")));
        }
        let mut dims = own.to_vec();
        let merged = dims[start..=end].iter().product();
        dims.splice(start..=end, [merged]);
        self.reshape(&Shape::new(&dims)?)
    }
}
