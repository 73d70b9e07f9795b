//! Matrix product, with batch axes that broadcast. Operands may have any strides: transposes cost nothing.

use crate::array::Array;
use crate::autodiff::node::Vjp;
use crate::error::{Error, Result};
use crate::op::{Arrays, BatchedOutputs, Bilinear, Kernel, Lane};
use crate::ops::operand::promote;
use crate::ops::{on_device, one};
use crate::shape::Shape;
use crate::tensor::Tensor;
use smallvec::smallvec;

/// `[..., m, k] x [..., k, n] -> [..., m, n]`. Both operands have at least two axes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Matmul;

impl Kernel for Matmul {
    fn name(&self) -> &'static str {
        "matmul"
    }
    fn eval(&self, x: &[&Array]) -> Result<Arrays> {
        if x[0].rank() == x[1].rank() {
            return one!(on_device!(x[0], matmul::matmul(x[0], x[1])));
        }
        let rank = x[0].rank().max(x[1].rank());
        let (a, b) = (ranked(x[0], rank)?, ranked(x[1], rank)?);
        one!(on_device!(a, matmul::matmul(&a, &b)))
    }
}

/// `x` with leading axes of length 1, up to `rank`: the kernels take operands of equal rank.
fn ranked(x: &Array, rank: usize) -> Result<Array> {
    let mut shape = x.shape();
    while shape.rank() < rank {
        shape = shape.inserted(0, 1)?;
    }
    x.expand(&shape)
}

impl Bilinear for Matmul {
    fn transpose_left(&self, g: &Tensor, y: &Tensor, _c: &Vjp) -> Result<Tensor> {
        crate::bind::bind1(Matmul, &[g, &y.transpose(-1, -2)?])
    }
    fn transpose_right(&self, g: &Tensor, x: &Tensor, _c: &Vjp) -> Result<Tensor> {
        crate::bind::bind1(Matmul, &[&x.transpose(-1, -2)?, g])
    }
    fn batch(&self, x: &[Lane], _size: usize) -> Result<BatchedOutputs> {
        // A batch of left operands against one matrix is one tall product.
        if let (Some(_), None, 2) = (x[0].axis, x[1].axis, x[1].value.rank()) {
            let left = x[0].front()?;
            return Ok(smallvec![(left.matmul(&x[1].value)?, Some(0))]);
        }
        let rank = x.iter().map(|l| l.value.rank() + l.axis.is_none() as usize).max().unwrap_or(0);
        let (left, right) =
            (leading(&x[0].front()?, x[0].axis, rank)?, leading(&x[1].front()?, x[1].axis, rank)?);
        Ok(smallvec![(crate::bind::bind1(Matmul, &[&left, &right])?, Some(0))])
    }
}

/// `x` with `rank` axes: axes of length 1 come in front, or behind the batch axis if it has one there.
fn leading(x: &Tensor, batch: Option<usize>, rank: usize) -> Result<Tensor> {
    if x.rank() >= rank {
        return Ok(x.clone());
    }
    let mut dims = x.shape().to_vec();
    let at = batch.is_some() as usize;
    dims.splice(at..at, std::iter::repeat_n(1, rank - x.rank()));
    x.reshape(&Shape::new(&dims)?)
}

#[cold]
fn mismatch(x: &Tensor, y: &Tensor) -> Error {
    Error::shape(format!(
        "matmul: shapes {} and {} do not multiply: the last axis of the first must equal the second-to-last (or only) \
         axis of the second, and leading axes must broadcast",
        x.shape(),
        y.shape()
    ))
}

impl Tensor {
    /// Matrix product as `numpy.matmul`: vectors are rows or columns, leading axes broadcast.
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        let (a, b) = (self.shape(), other.shape());
        if a.rank() == 0 || b.rank() == 0 {
            return Err(Error::shape(format!(
                "matmul: operands need at least one axis, got shapes {a} and {b}; multiply scalars with *"
            )));
        }
        if self.dtype() != other.dtype() && !crate::interp::autocasting() {
            let dtype = promote(self, other);
            return self.cast(dtype)?.matmul(&other.cast(dtype)?);
        }
        let inner = b.at(b.rank().saturating_sub(2).min(b.rank() - 1));
        if a.at(a.rank() - 1) != inner {
            return Err(mismatch(self, other));
        }
        if b.rank() == 1 {
            let column = other.reshape(&b.inserted(1, 1)?)?;
            let out = self.matmul(&column)?;
            return out.reshape(&out.shape().removed(out.rank() - 1));
        }
        if a.rank() == 1 {
            let row = self.reshape(&a.inserted(0, 1)?)?;
            let out = row.matmul(other)?;
            return out.reshape(&out.shape().removed(out.rank() - 2));
        }
        if b.rank() == 2 && a.rank() > 2 {
            // One tall product; its backward is one product too, without a sum over batches.
            let rows = a.part(0, a.rank() - 1);
            let flat = self.reshape(&Shape::new(&[rows.numel(), inner])?)?;
            let out = crate::bind::bind1(Matmul, &[&flat, other])?;
            return out.reshape(&rows.inserted(rows.rank(), b.at(1))?);
        }
        if a.part(0, a.rank() - 2).broadcast(&b.part(0, b.rank() - 2)).is_none() {
            return Err(mismatch(self, other));
        }
        crate::bind::bind1(Matmul, &[self, other])
    }
}
