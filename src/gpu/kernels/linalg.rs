//! Factors of matrices, determinants and systems of equations on the GPU, for every matrix of a batch, in
//! float32; the counterpart of `src/cpu/linalg/`. A workgroup factors a matrix, a thread solves a column.
//!
//! Kernels write a word for each matrix that tells why it failed, which is read back at once: the error is
//! that of the call.

use super::copy::{convert, flat};
use super::create::{eye, full};
use super::gather::{gather, scatter_add};
use super::parts::check_rounds;
use super::prelude::*;
use super::reduce::Fold;
use crate::arguments::linalg::{Failure, Triangle};
use crate::array::buffer::Device;

/// The threads of a workgroup.
const THREADS: usize = 256;

/// Matrices in memory of their own, which a kernel may write.
struct Matrices {
    x: Array,
    batch: Shape,
    count: usize,
    m: usize,
    n: usize,
}

impl Matrices {
    fn of(name: &str, x: &Array) -> Result<Matrices> {
        if !x.dtype().is_float() {
            return Err(Error::device(format!(
                "{name}: factors of complex matrices are computed on the CPU only, got a tensor on {}; move \
                 it with .cpu(), and the result back with .to()",
                x.device()
            )));
        }
        let rank = x.rank();
        let batch = x.shape().removed(rank - 1).removed(rank - 2);
        let (m, n, count) = (x.dim(rank - 2), x.dim(rank - 1), batch.numel());
        Ok(Matrices { x: convert(x, DType::F32)?, batch, count, m, n })
    }

    /// Numbers for each matrix.
    fn words(&self, each: &[usize], dtype: DType) -> Result<Array> {
        let mut shape = self.batch;
        for &length in each {
            shape = shape.inserted(shape.rank(), length)?;
        }
        full(index_of(&self.x)?, shape, 0.0, dtype)
    }

    /// Raises if a software adapter would not finish a factorisation.
    fn check(&self, name: &str) -> Result<()> {
        let steps = (0..self.m.min(self.n)).map(|k| (self.m - k) * (self.n - k) / THREADS + self.m / THREADS);
        check_rounds(index_of(&self.x)?, name, steps.map(|rounds| rounds + 12).sum())
    }

    /// Raises the failure that the words for the matrices tell.
    fn raise(&self, name: &str, info: &Array, failure: fn(usize) -> Failure) -> Result<()> {
        let info = info.to_device(Device::Cpu)?;
        let first = info.slice::<i32>()?.iter().enumerate().find(|(_, code)| **code != 0);
        first.map_or(Ok(()), |(at, &code)| Err(failure(code as usize).error(name, at, &self.batch)))
    }
}

/// Returns the lower triangular factor of every matrix.
pub fn cholesky(x: &Array) -> Result<Array> {
    let own = Matrices::of("cholesky", x)?;
    own.check("cholesky")?;
    let info = own.words(&[], DType::I32)?;
    if own.x.numel() > 0 {
        let mut run = Dispatch::new("cholesky", shader!("cholesky"), DType::F32);
        run.writes(&own.x).writes(&info).words([own.count, own.n]);
        run.flops(own.count * own.n.pow(3) / 3);
        run.launch(own.count)?;
        own.raise("cholesky", &info, Failure::NotPositive)?;
    }
    cast(&own.x, x.dtype())
}

/// `L` and `U` in one array, the order of the rows, LAPACK's exchanges, and the determinants of square
/// matrices.
fn factors(name: &str, x: &Array) -> Result<[Array; 4]> {
    let own = Matrices::of(name, x)?;
    own.check(name)?;
    let (m, depth) = (own.m, own.m.min(own.n));
    let (order, exchanges) = (own.words(&[m], DType::I32)?, own.words(&[depth], DType::I32)?);
    let det = own.words(&[], DType::F32)?;
    if own.count > 0 {
        let mut run = Dispatch::new("lu", shader!("lu"), DType::F32);
        run.writes(&own.x).writes(&order).writes(&exchanges).writes(&det).words([own.count, m, own.n]);
        run.flops(own.count * depth * depth * (3 * m.max(own.n) - depth) / 3);
        run.launch(own.count)?;
    }
    Ok([own.x, order, exchanges, det])
}

/// Returns `L` and `U` in one matrix; for each of its rows, its row of `x`; LAPACK's exchanges, from 1.
pub fn lu(x: &Array) -> Result<[Array; 3]> {
    let [packed, order, exchanges, _] = factors("lu", x)?;
    Ok([cast(&packed, x.dtype())?, order, exchanges])
}

/// Returns the determinant of every matrix.
pub fn det(x: &Array) -> Result<Array> {
    let [_, _, _, det] = factors("det", x)?;
    cast(&det, x.dtype())
}

/// Returns the cofactors of every matrix, `det(A) A'^-1`. Those of a singular matrix raise.
pub fn cofactor(x: &Array) -> Result<Array> {
    let [packed, order, _, det] = factors("det", x)?;
    let (rank, n) = (x.rank(), x.dim(x.rank() - 1));
    let ones = eye(index_of(x)?, n, n, 0, DType::F32)?.expand(&x.shape())?;
    let solved = lu_solve("det", &packed, &order, &ones, true).map_err(|_| {
        Error::device(format!(
            "det: the derivative at a singular matrix takes singular values, which are computed on the CPU \
             only, got a tensor on {}; move it with .cpu()",
            x.device()
        ))
    })?;
    let det = det.with_axis(rank - 2)?.with_axis(rank - 1)?;
    cast(&Fold::Prod.combine(&solved, &det)?, x.dtype())
}

/// Returns `X` with `T X = B`, for the triangle `T` of every matrix of `t`; `t` and `b` have the same batch.
/// Divides by the diagonal even where it is zero.
pub fn triangular_solve(t: &Array, b: &Array, triangle: Triangle) -> Result<Array> {
    let own = Matrices::of("triangular_solve", b)?;
    let info = own.words(&[], DType::I32)?;
    substitute("triangular_solve", t, &own, triangle, false, &info)?;
    cast(&own.x, b.dtype())
}

/// Replaces right-hand sides by the solutions for `T`, or its transpose.
fn substitute(
    name: &str, t: &Array, b: &Matrices, triangle: Triangle, transposed: bool, info: &Array,
) -> Result<()> {
    let (n, columns) = (b.m, b.n);
    if b.x.numel() == 0 {
        return Ok(());
    }
    check_rounds(index_of(t)?, name, n * (n + 1) / 2)?;
    let t = flat(t, DType::F32)?;
    let mut run = Dispatch::new("triangular_solve", shader!("triangular_solve"), DType::F32);
    run.flag("UPPER", triangle.upper).flag("UNIT", triangle.unit).flag("TRANSPOSED", transposed);
    run.reads(&t).writes(&b.x).writes(info).words([b.count, n, columns]);
    run.flops(b.count * n * n * columns);
    run.launch((b.count * columns).div_ceil(THREADS))
}

/// Returns `X` with `A X = B`, or with `A' X = B` if `adjoint`, from the factors of `A`; all have the same
/// batch. `name` appears in the error for a singular matrix.
pub fn lu_solve(name: &str, factors: &Array, order: &Array, b: &Array, adjoint: bool) -> Result<Array> {
    let (rank, shape) = (b.rank(), b.shape());
    let mut strides = order.strides();
    strides.push(0);
    let rows = order.with_layout(shape, &strides, order.offset())?;
    let moved = if adjoint { b.clone() } else { gather(b, &rows, rank - 2)? };
    let own = Matrices::of(name, &moved)?;
    let info = own.words(&[], DType::I32)?;
    let lower = Triangle { upper: false, unit: true };
    let upper = Triangle { upper: true, unit: false };
    for triangle in if adjoint { [upper, lower] } else { [lower, upper] } {
        substitute(name, factors, &own, triangle, adjoint, &info)?;
    }
    own.raise(name, &info, Failure::Singular)?;
    let solved = if adjoint { scatter_add(&own.x, &rows, rank - 2, &shape)? } else { own.x };
    cast(&solved, b.dtype())
}
