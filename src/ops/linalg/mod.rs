//! Linear algebra on the last two axes: a few primitives with rules, each for a batch of matrices.
//!
//! All other functions of `wengert.linalg` are composed of these and of products. Rules are tensor calls, so
//! derivatives of every order follow. The kernels run on the CPU, in double precision.
//!
//! Each rule is written once, for real and for complex matrices: the formulas of real matrices hold for
//! complex ones with the adjoint in place of the transpose. The gradient of a real loss at `A + iB` is that
//! with respect to `A` plus `i` times that with respect to `B`, so `<G, dA> = Re tr(G* dA)` replaces
//! `tr(G' dA)`. Where the real formula gives zero, such as on the diagonal of an antisymmetric matrix, the
//! complex one is imaginary.
//!
//! Read next, in `src/ops/linalg/`: `triangular` (triangular systems, Cholesky), `lu` (LU, general systems),
//! `qr`, `spectral` (eigenvalues of self-adjoint matrices, singular values), `eig` (eigenvalues of others),
//! `functions` (determinant, pseudoinverse, exponential). The rules follow M. Giles, "Collected matrix
//! derivative results for forward and reverse mode algorithmic differentiation", 2008, or are derived in the
//! same way, unless a file names another source.

pub mod eig;
pub mod functions;
pub mod lu;
pub mod qr;
pub mod spectral;
pub mod triangular;

use crate::array::Array;
use crate::array::buffer::Device;
use crate::array::dtype::DType;
use crate::array::shape::Shape;
use crate::bind::bind;
use crate::error::{Error, Result};
use crate::op::{Batched, BatchedOutputs, Kernel, Op};
use crate::ops::contract::matmul::{Form, product};
use crate::tensor::{Tensor, Tensors};
use smallvec::SmallVec;

/// Raises unless `x` is a matrix, or a batch of them, that the kernels accept.
pub fn check_matrix(op: &str, x: &Tensor) -> Result<()> {
    if x.rank() < 2 {
        return Err(Error::shape(format!(
            "{op}: a matrix, or a batch of them, expected, got shape {}",
            x.shape()
        )));
    }
    check_kind(op, x)
}

/// Raises unless the kernels accept the dtype and the device of `x`.
fn check_kind(op: &str, x: &Tensor) -> Result<()> {
    let low = x.dtype().is_float() && crate::interp::autocasting();
    if !matches!(x.dtype(), DType::F32 | DType::F64 | DType::C64 | DType::C128) && !low {
        return Err(Error::dtype(format!(
            "{op}: a float32, float64, complex64 or complex128 tensor expected, got {}; convert with \
             .float()",
            x.dtype()
        )));
    }
    if x.device() != Device::Cpu {
        return Err(Error::device(format!(
            "{op}: runs on the CPU only, got a tensor on {}; move it with .cpu(), and the result back with \
             .to()",
            x.device()
        )));
    }
    Ok(())
}

/// Raises unless `x` is a batch of square matrices.
pub fn check_square(op: &str, x: &Tensor) -> Result<()> {
    check_matrix(op, x)?;
    let (rows, columns) = sides(x);
    if rows == columns {
        return Ok(());
    }
    Err(Error::shape(format!("{op}: square matrices expected, got shape {}", x.shape())))
}

/// The numbers of rows and columns.
fn sides(x: &Tensor) -> (usize, usize) {
    let (shape, rank) = (x.shape(), x.rank());
    (shape.at(rank - 2), shape.at(rank - 1))
}

/// Converts a matrix and right-hand sides to one dtype and broadcasts them to one batch.
fn together(op: &str, a: &Tensor, b: &Tensor) -> Result<(Tensor, Tensor)> {
    check_square(op, a)?;
    check_matrix(op, b)?;
    let dtype = a.dtype().promote(b.dtype());
    let (a, b) = (a.cast(dtype)?, b.cast(dtype)?);
    let batch = |x: &Tensor| x.shape().part(0, x.rank() - 2);
    let common = batch(&a).broadcast(&batch(&b)).filter(|_| sides(&a).1 == sides(&b).0).ok_or_else(|| {
        Error::shape(format!(
            "{op}: a matrix of shape {} does not fit right-hand sides of shape {}: as many rows, and a \
             batch that broadcasts, expected",
            a.shape(),
            b.shape()
        ))
    })?;
    let spread = |x: &Tensor| {
        let (rows, columns) = sides(x);
        x.expand(&common.inserted(common.rank(), rows)?.inserted(common.rank() + 1, columns)?)
    };
    Ok((spread(&a)?, spread(&b)?))
}

/// The adjoint: the conjugate transpose.
fn adjoint(x: &Tensor) -> Result<Tensor> {
    x.conj()?.transpose(-2, -1)
}

/// `x y`.
fn times(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    product(x, Form::Plain, y, Form::Plain)
}

/// `x' y`, where `x'` is the adjoint.
fn adjoint_times(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    product(&x.conj()?, Form::Transposed, y, Form::Plain)
}

/// `x y'`, where `y'` is the adjoint.
fn times_adjoint(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    product(x, Form::Plain, &y.conj()?, Form::Transposed)
}

/// `(x + x') / 2`.
fn symmetric(x: &Tensor) -> Result<Tensor> {
    x.add(&adjoint(x)?)?.mul(0.5)
}

/// The triangle on and below the diagonal.
fn lower(x: &Tensor) -> Result<Tensor> {
    x.triangle(0, false)
}

/// The triangle below the diagonal.
fn below(x: &Tensor) -> Result<Tensor> {
    x.triangle(-1, false)
}

/// The triangle on and above the diagonal.
fn upper(x: &Tensor) -> Result<Tensor> {
    x.triangle(0, true)
}

/// The lower triangle with half of the diagonal, which determines a self-adjoint matrix.
fn half(x: &Tensor) -> Result<Tensor> {
    lower(x)?.add(&below(x)?)?.mul(0.5)
}

/// A diagonal matrix of this dtype with the vector `x` on its diagonal.
fn diagonal(x: &Tensor, dtype: DType) -> Result<Tensor> {
    let n = x.shape().at(x.rank() - 1);
    let eye = Tensor::eye(n, n, dtype, x.device())?;
    x.unsqueeze(-1)?.mul(&eye)
}

/// Pads with rows and columns of zeros to this size.
fn padded(x: &Tensor, rows: usize, columns: usize) -> Result<Tensor> {
    let (m, n) = sides(x);
    if (m, n) == (rows, columns) {
        return Ok(x.clone());
    }
    let mut widths = vec![(0, 0); x.rank()];
    widths[x.rank() - 2].1 = rows as i64 - m as i64;
    widths[x.rank() - 1].1 = columns as i64 - n as i64;
    x.pad(&widths, 0.0)
}

/// The sum of the terms that are present; `None` if none is.
fn total(terms: impl IntoIterator<Item = Option<Tensor>>) -> Result<Option<Tensor>> {
    let mut sum: Option<Tensor> = None;
    for term in terms.into_iter().flatten() {
        sum = Some(match sum {
            Some(sum) => sum.add(&term)?,
            None => term,
        });
    }
    Ok(sum)
}

/// Batches operations on trailing axes: moves the batch axis to the front.
fn in_front(op: impl Into<Op>, x: &[Batched], size: usize) -> Result<BatchedOutputs> {
    let values: SmallVec<[Tensor; 4]> = match x {
        [only] => smallvec::smallvec![only.front()?],
        _ => x.iter().map(|operand| operand.materialized(size)).collect::<Result<_>>()?,
    };
    let refs: SmallVec<[&Tensor; 4]> = values.iter().collect();
    Ok(bind(op.into(), &refs)?.into_iter().map(|y| (y, Some(0))).collect())
}

/// Batches systems of equations, whose right-hand sides are input `rhs`: if the whole batch shares the
/// matrix, places its right-hand sides side by side.
fn side_by_side(op: impl Into<Op>, x: &[Batched], size: usize, rhs: usize) -> Result<BatchedOutputs> {
    if x.iter().enumerate().any(|(i, operand)| operand.axis.is_some() != (i == rhs)) {
        return in_front(op, x, size);
    }
    let b = x[rhs].front()?;
    let rank = b.rank();
    let moved = b.move_axis(0, rank - 2)?;
    let parted = moved.shape();
    let columns = parted.at(rank - 2) * parted.at(rank - 1);
    let wide = moved.reshape(&parted.removed(rank - 1).with(rank - 2, columns))?;
    let refs: SmallVec<[&Tensor; 4]> =
        x.iter().enumerate().map(|(i, operand)| if i == rhs { &wide } else { &operand.value }).collect();
    let out = bind(op.into(), &refs)?;
    out.into_iter().map(|y| Ok((y.reshape(&parted)?, Some(rank - 2)))).collect()
}

fn two(out: Tensors) -> Result<(Tensor, Tensor)> {
    let mut out = out.into_iter();
    match (out.next(), out.next()) {
        (Some(a), Some(b)) => Ok((a, b)),
        _ => Err(crate::op::no_output()),
    }
}

fn three(out: Tensors) -> Result<(Tensor, Tensor, Tensor)> {
    let mut out = out.into_iter();
    match (out.next(), out.next(), out.next()) {
        (Some(a), Some(b), Some(c)) => Ok((a, b, c)),
        _ => Err(crate::op::no_output()),
    }
}

/// Raises unless all inputs are on the CPU: a derivative may be evaluated elsewhere.
fn on_cpu(op: &impl Kernel, x: &[&Array]) -> Result<()> {
    match x.iter().find(|x| x.device() != Device::Cpu) {
        None => Ok(()),
        Some(x) => Err(Error::device(format!(
            "{}: runs on the CPU only, got a tensor on {}; move it with .cpu(), and the result back with \
             .to()",
            op.name(),
            x.device()
        ))),
    }
}

/// `shape` with these numbers of rows and columns.
fn with_sides(shape: &Shape, rows: usize, columns: usize) -> Shape {
    shape.with(shape.rank() - 2, rows).with(shape.rank() - 1, columns)
}
