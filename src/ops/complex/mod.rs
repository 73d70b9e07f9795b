//! Complex tensors: the meaning of every operation for pairs of real numbers.
//!
//! Except for products, and factorisations of matrices (`src/ops/linalg/`), no kernel computes with complex
//! numbers and no rule differentiates them. If an operation gets a complex input, `Op::lower` replaces it by
//! operations on the real and imaginary parts before any interpreter sees it: the column of `src/op/list.rs`.
//! Factorisations and operations that only move elements stay as they are. Two linear views convert pairs of
//! numbers to complex ones and back, so VJP, JVP and batching are those of the real operations. The gradient
//! of a real loss `L` at `a + ib` is `dL/da + i dL/db`, the direction of steepest ascent, as in PyTorch.
//!
//! Read next, in `src/ops/complex/`: `number` (arithmetic), `functions` (elementary functions), `product`.

mod functions;
pub mod number;
mod parts;
mod product;

use crate::arguments::logic::Relation;
use crate::op::no_output;
use crate::ops::contract::conv::{Conv, ConvBias, per_channel};
use crate::ops::contract::matmul::Matmul;
use crate::ops::indexing::index::{ScatterAdd, TakeAdd};
use crate::ops::pointwise::compare::{Compare, Logic, Logical, Select};
use crate::ops::prelude::*;
use crate::ops::reduce::Prod;
use crate::ops::reduce::mean::Spread;
use crate::ops::reduce::scan::CumProd;
use crate::ops::views::cast::Cast;

pub use parts::{cast, join, power};
pub use product::ComplexProduct;

/// Complex numbers as pairs of real ones along a new last axis, a view.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ViewAsReal;

kernel! { ViewAsReal, "view_as_real", |self, x| x[0].as_real() }

impl Linear for ViewAsReal {
    const TRANSPOSE: &'static str = "the pairs of g as complex numbers";

    transpose!(|self, g| g.view_as_complex());
    batch!(in_place: |self| *self);
}

/// Pairs of real numbers along the last axis as complex numbers; a view if they are adjacent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ViewAsComplex;

kernel! {
    ViewAsComplex, "view_as_complex", |self, x| {
        if let Some(view) = x[0].as_complex()? {
            return Ok(view);
        }
        let dense = x[0].copied()?.as_complex()?;
        dense.ok_or_else(|| Error::shape("internal: dense pairs are no complex numbers"))
    }
}

impl Linear for ViewAsComplex {
    const TRANSPOSE: &'static str = "g as pairs of real numbers";

    transpose!(|self, g| g.view_as_real());
    batch!(in_front: |self| *self);
}

/// Operations that complex inputs have by operations on their parts.
pub trait Lower {
    /// The value, by these.
    fn lower(&self, x: &[&Tensor]) -> Result<Tensor>;
}

/// Rows of [`Lower`]: an operation, and its value.
macro_rules! lower {
    ($($(#[$doc:meta])* $op:ty = |$self:ident, $x:ident| $value:expr;)*) => {$(
        impl Lower for $op {
            $(#[$doc])*
            fn lower(&$self, $x: &[&Tensor]) -> Result<Tensor> {
                $value
            }
        }
    )*};
}

lower! {
    Spread = |self, x| paired(Spread { shape: self.shape.inserted(self.shape.rank(), 2)?, ..*self }, x);
    TakeAdd = |self, x| paired(TakeAdd { shape: self.shape.inserted(self.shape.rank(), 2)?, ..*self }, x);
    ScatterAdd = |self, x| {
        let wide = x[1].shape().inserted(x[1].rank(), 2)?;
        let index = x[1].unsqueeze(-1)?.expand(&wide)?;
        let shape = self.shape.inserted(self.shape.rank(), 2)?;
        paired(ScatterAdd { shape, ..*self }, &[x[0], &index])
    };
    Select = |self, x| {
        let (mask, a, b) = (x[0].unsqueeze(-1)?, x[1].view_as_real()?, x[2].view_as_real()?);
        bind(Select, &[&mask, &a, &b])?.view_as_complex()
    };
    Cast = |self, x| cast(x[0], self.dtype);
    Prod = |self, x| self.decompose(x)?.pop().ok_or_else(no_output);
    /// Compares both parts for equality; complex numbers have no order.
    Compare = |self, x| {
        let (x, y) = ((x[0].real()?, x[0].imag()?), (x[1].real()?, x[1].imag()?));
        let logic = match self.relation {
            Relation::Eq => Logic::And,
            Relation::Ne => Logic::Or,
            _ => {
                return Err(Error::dtype(
                    "complex numbers have no order: compare .real, .imag or .abs(), or test with == and !=",
                ));
            }
        };
        let (re, im) = (x.0.compare(&y.0, self.relation)?, x.1.compare(&y.1, self.relation)?);
        bind(Logical { logic }, &[&re, &im])
    };
    Matmul = |self, x| of_parts(*self, x);
    Conv = |self, x| of_parts(self.clone(), x);
    ConvBias = |self, x| {
        let out = bind(self.conv.clone(), &x[..2])?;
        out.add(&per_channel(x[2], self.conv.window.rank)?)
    };
    /// Doubling: after `k` steps every element is the product of the `2^k` elements up to it.
    CumProd = |self, x| {
        let x = x[0];
        let (axis, length) = (self.axis as i64, x.shape().at(self.axis as usize));
        let one = x.scalar_like(1.0)?;
        let (mut out, mut step) = (x.clone(), 1);
        while step < length {
            let ones = one.expand(&x.shape().with(self.axis as usize, step))?;
            let before = out.narrow(axis, 0, length - step)?;
            out = out.mul(&crate::ops::views::join::cat(&[ones, before], axis)?)?;
            step *= 2;
        }
        Ok(out)
    };
}

/// A bilinear operation as `(A + iB)(C + iD)`, by four real products.
fn of_parts(op: impl Operation<Out = Tensor>, x: &[&Tensor]) -> Result<Tensor> {
    let (a, b, c, d) = (x[0].real()?, x[0].imag()?, x[1].real()?, x[1].imag()?);
    let product = |x: &Tensor, y: &Tensor| bind(op.clone(), &[x, y]);
    let re = product(&a, &c)?.sub(&product(&b, &d)?)?;
    join(&re, &product(&a, &d)?.add(&product(&b, &c)?)?)
}

/// Runs a linear operation on the leading axes of the pairs of its first input.
pub fn paired(op: impl Operation<Out = Tensor>, x: &[&Tensor]) -> Result<Tensor> {
    let pairs = x[0].view_as_real()?;
    let mut inputs: smallvec::SmallVec<[&Tensor; 2]> = x.into();
    inputs[0] = &pairs;
    bind(op, &inputs)?.view_as_complex()
}

/// The error for an operation that is not defined for complex numbers.
#[cold]
pub fn undefined(name: &str, x: &[&Tensor]) -> Error {
    let dtype = x.iter().map(|x| x.dtype()).find(|dtype| dtype.is_complex());
    Error::dtype(format!(
        "{name}: not defined for {}; act on .real and .imag, or on view_as_real(x)",
        dtype.map_or("complex numbers", |dtype| dtype.name())
    ))
}
