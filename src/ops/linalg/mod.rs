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

use crate::cpu::linalg;
use crate::op::Operation;
use crate::ops::contract::matmul::{Form, product};
use crate::ops::prelude::*;

/// A function of a matrix, or of each matrix of a batch: how it runs, and its rules.
trait OfMatrix: Operation {
    /// The public name.
    const NAME: &'static str;
    /// See [`General::VJP`].
    const VJP: &'static str;
    /// See [`General::JVP`].
    const JVP: &'static str;
    /// What the reverse rule reads.
    const READS: Saves = Saves::OUTPUTS;

    /// Whether GPUs have a kernel, too.
    const RUNS_ON_GPUS: bool = false;

    /// Runs the kernel.
    fn run(&self, x: &Array) -> Result<Arrays>;
    /// Floating point operations on `count` matrices with sides `m >= n`.
    fn flops(count: u64, m: u64, n: u64) -> u64;
    /// The cotangent of the matrix, from those of the outputs.
    fn pull(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Option<Tensor>>;
    /// The tangents of the outputs, from that of the matrix.
    fn push(&self, x: &Tensor, y: &[Tensor], t: &Tensor) -> Result<Grads>;
}

impl<T: OfMatrix> Kernel for T {
    fn name(&self) -> &'static str {
        T::NAME
    }
    fn eval(&self, x: &[&Array]) -> Result<Arrays> {
        if !T::RUNS_ON_GPUS {
            on_cpu(T::NAME, x)?;
        }
        self.run(x[0])
    }
    fn flops(&self, x: &[&Array], _y: &[Array]) -> u64 {
        let (count, m, n) = cost::matrices(x[0]);
        <T as OfMatrix>::flops(count, m.max(n), m.min(n))
    }
}

impl<T: OfMatrix> General for T {
    const VJP: &'static str = <T as OfMatrix>::VJP;
    const JVP: &'static str = <T as OfMatrix>::JVP;

    fn saves(&self, _needs: Needs, _inputs: usize) -> Saves {
        T::READS
    }
    fn vjp(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        Ok(self.pull(c, g)?.into_iter().map(Some).collect())
    }
    fn jvp(&self, x: &[&Tensor], y: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads> {
        t[0].as_ref().map_or_else(|| Ok(smallvec![None; y.len()]), |t| self.push(x[0], y, t))
    }
    batch!(in_front: |self| self.clone());
}

/// Raises unless `x` is a matrix, or a batch of them, that the kernels accept.
pub fn check_matrix(op: &str, x: &Tensor) -> Result<()> {
    if x.rank() < 2 {
        return Err(Error::shape(format!(
            "{op}: a matrix, or a batch of them, expected, got shape {}",
            x.shape()
        )));
    }
    let low = x.dtype().is_float() && crate::interp::autocasting();
    if !matches!(x.dtype(), DType::F32 | DType::F64 | DType::C64 | DType::C128) && !low {
        return Err(Error::dtype(format!(
            "{op}: a float32, float64, complex64 or complex128 tensor expected, got {}; convert with \
             .float()",
            x.dtype()
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

/// Batches systems of equations, `x[0] X = x[1]`: if the whole batch shares the matrix, places its right-hand
/// sides side by side.
fn side_by_side(op: impl Operation<Out = Tensor>, x: &[Batched], size: usize) -> Result<BatchedOutputs> {
    if x.iter().enumerate().any(|(i, operand)| operand.axis.is_some() != (i == 1)) {
        return in_front(op, x, size);
    }
    let b = x[1].front()?;
    let rank = b.rank();
    let moved = b.move_axis(0, rank - 2)?;
    let parted = moved.shape();
    let columns = parted.at(rank - 2) * parted.at(rank - 1);
    let wide = moved.reshape(&parted.removed(rank - 1).with(rank - 2, columns))?;
    let mut refs: SmallVec<[&Tensor; 4]> = x.iter().map(|operand| &operand.value).collect();
    refs[1] = &wide;
    Ok(smallvec![(bind(op, &refs)?.reshape(&parted)?, Some(rank - 2))])
}

/// Raises unless all inputs are on the CPU: a derivative may be evaluated elsewhere.
fn on_cpu(op: &str, x: &[&Array]) -> Result<()> {
    let Some(device) = x.iter().map(|x| x.device()).find(|&device| device != Device::Cpu) else {
        return Ok(());
    };
    Err(Error::device(format!(
        "{op}: runs on the CPU only, got a tensor on {device}; move it with .cpu(), and the result back with \
         .to()"
    )))
}
