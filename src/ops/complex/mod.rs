//! Complex tensors: the meaning of every operation for pairs of real numbers.
//!
//! Except for products, and factorisations of matrices (`src/ops/linalg/`), no kernel computes with complex
//! numbers and no rule differentiates them. If an operation gets a complex input, [`lower`] replaces it by
//! operations on the real and imaginary parts before any interpreter sees it. Factorisations and operations
//! that only move elements stay as they are. Two linear views convert pairs of numbers to complex ones and
//! back, so VJP, JVP and batching are those of the real operations. The gradient of a real loss `L` at
//! `a + ib` is `dL/da + i dL/db`, the direction of steepest ascent, as in PyTorch.
//!
//! Read next, in `src/ops/complex/`: `number` (arithmetic), `functions` (elementary functions), `product`.

mod functions;
mod number;
mod parts;
mod product;

use crate::arguments::logic::Relation;
use crate::array::Array;
use crate::error::{Error, Result};
use crate::op::{Arrays, Batched, BatchedOutputs, Composite, Kernel, Linear, Op};
use crate::ops::contract::matmul::Matmul;
use crate::ops::indexing::index::{ScatterAdd, TakeAdd};
use crate::ops::one;
use crate::ops::pointwise::compare::{Logic, Logical, Select};
use crate::ops::reduce::mean::Spread;
use crate::ops::reduce::scan::CumProd;
use crate::tape::node::Vjp;
use crate::tensor::{Tensor, Tensors};
use smallvec::smallvec;

pub use functions::map;
pub use parts::{cast, join, power};
pub use product::ComplexProduct;

/// Complex numbers as pairs of real ones along a new last axis, a view.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ViewAsReal;

impl Kernel for ViewAsReal {
    fn name(&self) -> &'static str {
        "view_as_real"
    }
    fn eval(&self, x: &[&Array]) -> Result<Arrays> {
        one!(x[0].as_real())
    }
    fn flops(&self, _x: &[&Array], _y: &[Array]) -> u64 {
        0
    }
}

impl Linear for ViewAsReal {
    const TRANSPOSE: &'static str = "the pairs of g as complex numbers";

    fn transpose(&self, _wrt: usize, g: &Tensor, _c: &Vjp) -> Result<Tensor> {
        g.view_as_complex()
    }
    fn batch(&self, x: &[Batched], _size: usize) -> Result<BatchedOutputs> {
        Ok(smallvec![(crate::bind::bind1(*self, &[&x[0].value])?, x[0].axis)])
    }
}

/// Pairs of real numbers along the last axis as complex numbers; a view if they are adjacent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ViewAsComplex;

impl Kernel for ViewAsComplex {
    fn name(&self) -> &'static str {
        "view_as_complex"
    }
    fn eval(&self, x: &[&Array]) -> Result<Arrays> {
        match x[0].as_complex()? {
            Some(view) => Ok(smallvec![view]),
            None => one!(
                x[0].copied()?
                    .as_complex()?
                    .ok_or_else(|| Error::shape("internal: dense pairs are no complex numbers"))
            ),
        }
    }
    fn flops(&self, _x: &[&Array], _y: &[Array]) -> u64 {
        0
    }
}

impl Linear for ViewAsComplex {
    const TRANSPOSE: &'static str = "g as pairs of real numbers";

    fn transpose(&self, _wrt: usize, g: &Tensor, _c: &Vjp) -> Result<Tensor> {
        g.view_as_real()
    }
    fn batch(&self, x: &[Batched], _size: usize) -> Result<BatchedOutputs> {
        Ok(smallvec![(crate::bind::bind1(*self, &[&x[0].front()?])?, Some(0))])
    }
}

/// Expresses `op` on complex inputs by operations on their parts; `None` for an operation that moves or
/// counts elements of any dtype, or that factors matrices of either kind.
pub fn lower(op: &Op, x: &[&Tensor]) -> Result<Option<Tensors>> {
    let out = match op {
        Op::ViewAsReal(_)
        | Op::ComplexProduct(_)
        | Op::Contiguous(_)
        | Op::Transfer(_)
        | Op::Bundle(_)
        | Op::Reshape(_)
        | Op::Permute(_)
        | Op::Expand(_)
        | Op::Slice(_)
        | Op::Unslice(_)
        | Op::AsStrided(_)
        | Op::Diagonal(_)
        | Op::AsStridedTranspose(_)
        | Op::Put(_)
        | Op::PutRows(_)
        | Op::Triangle(_)
        | Op::Cat(_)
        | Op::Take(_)
        | Op::Gather(_)
        | Op::CountNonzero(_)
        | Op::Cholesky(_)
        | Op::TriangularSolve(_)
        | Op::Lu(_)
        | Op::Solve(_)
        | Op::Qr(_)
        | Op::Eigh(_)
        | Op::Svd(_)
        | Op::Det(_)
        | Op::Cofactor(_)
        | Op::Pinv(_)
        | Op::MatrixExp(_)
        | Op::Eig(_)
        | Op::Custom(_) => return Ok(None),
        Op::Sum(op) => paired(*op, x),
        Op::Mean(op) => paired(*op, x),
        Op::CumSum(op) => paired(*op, x),
        Op::Spread(op) => paired(Spread { shape: op.shape.inserted(op.shape.rank(), 2)?, ..*op }, x),
        Op::TakeAdd(op) => paired(TakeAdd { shape: op.shape.inserted(op.shape.rank(), 2)?, ..*op }, x),
        Op::ScatterAdd(op) => {
            let wide = x[1].shape().inserted(x[1].rank(), 2)?;
            let index = x[1].unsqueeze(-1)?.expand(&wide)?;
            let shape = op.shape.inserted(op.shape.rank(), 2)?;
            paired(ScatterAdd { shape, ..*op }, &[x[0], &index])
        }
        Op::Select(_) => {
            let (mask, a, b) = (x[0].unsqueeze(-1)?, x[1].view_as_real()?, x[2].view_as_real()?);
            crate::bind::bind1(Select, &[&mask, &a, &b])?.view_as_complex()
        }
        Op::Cast(op) => cast(x[0], op.dtype),
        Op::Compare(op) => compare(x, op.relation),
        Op::Matmul(op) => matmul(*op, x),
        Op::Prod(op) => return op.decompose(x).map(Some),
        Op::CumProd(op) => cumulative_product(x[0], *op),
        Op::Map(op) => map(op, x),
        _ => Err(undefined(op.name(), x)),
    };
    Ok(Some(smallvec![out?]))
}

/// Runs a linear operation on the leading axes of the pairs of its first input.
fn paired(op: impl Kernel + Into<Op>, x: &[&Tensor]) -> Result<Tensor> {
    let pairs = x[0].view_as_real()?;
    let mut inputs: smallvec::SmallVec<[&Tensor; 2]> = x.into();
    inputs[0] = &pairs;
    crate::bind::bind1(op, &inputs)?.view_as_complex()
}

/// Compares both parts for equality; complex numbers have no order.
fn compare(x: &[&Tensor], relation: Relation) -> Result<Tensor> {
    let (x, y) = ((x[0].real()?, x[0].imag()?), (x[1].real()?, x[1].imag()?));
    let logic = match relation {
        Relation::Eq => Logic::And,
        Relation::Ne => Logic::Or,
        _ => {
            return Err(Error::dtype(
                "complex numbers have no order: compare .real, .imag or .abs(), or test with == and !=",
            ));
        }
    };
    let (re, im) = (x.0.compare(&y.0, relation)?, x.1.compare(&y.1, relation)?);
    crate::bind::bind1(Logical { logic }, &[&re, &im])
}

/// `(A + iB)(C + iD)`, by four real products.
fn matmul(op: Matmul, x: &[&Tensor]) -> Result<Tensor> {
    let (a, b, c, d) = (x[0].real()?, x[0].imag()?, x[1].real()?, x[1].imag()?);
    let product = |x: &Tensor, y: &Tensor| crate::bind::bind1(op, &[x, y]);
    let re = product(&a, &c)?.sub(&product(&b, &d)?)?;
    join(&re, &product(&a, &d)?.add(&product(&b, &c)?)?)
}

/// Doubling: after `k` steps every element is the product of the `2^k` elements up to it.
fn cumulative_product(x: &Tensor, op: CumProd) -> Result<Tensor> {
    let (axis, length) = (op.axis as i64, x.shape().at(op.axis as usize));
    let one = x.scalar_like(1.0)?;
    let (mut out, mut step) = (x.clone(), 1);
    while step < length {
        let ones = one.expand(&x.shape().with(op.axis as usize, step))?;
        let before = out.narrow(axis, 0, length - step)?;
        out = out.mul(&crate::ops::views::join::cat(&[ones, before], axis)?)?;
        step *= 2;
    }
    Ok(out)
}

/// The error for an operation that is not defined for complex numbers.
#[cold]
fn undefined(name: &str, x: &[&Tensor]) -> Error {
    let dtype = x.iter().map(|x| x.dtype()).find(|dtype| dtype.is_complex());
    Error::dtype(format!(
        "{name}: not defined for {}; act on .real and .imag, or on view_as_real(x)",
        dtype.map_or("complex numbers", |dtype| dtype.name())
    ))
}
