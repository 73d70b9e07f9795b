//! Factors of matrices, determinants and systems of equations on the GPU, for every matrix of a batch, in
//! float32; the counterpart of `src/cpu/linalg/`. A workgroup factors a matrix, a thread solves a column. Of
//! large ones they do so for blocks on the diagonal and panels below them; the rest is products of matrices.
//!
//! Kernels write a word for each matrix that tells why it failed, which is read back at once: the error is
//! that of the call.

use super::copy::{convert, copy_into, flat};
use super::create::{eye, fill, full};
use super::gather::{gather, scatter_add};
use super::map::pointwise;
use super::matmul::{Epilogue, matmul_with};
use super::parts::{Part, check_rounds, part_of};
use super::prelude::*;
use super::reduce::Fold;
use crate::arguments::linalg::{Failure, Triangle};
use crate::array::buffer::Device;
use crate::math::real::{Pointwise, Real};
use smallvec::SmallVec;

/// The threads of a workgroup.
const THREADS: usize = 256;
/// The rows of a block of a larger matrix, and of the largest that is one block.
const BLOCK: usize = 64;
const LARGEST: usize = 2 * BLOCK;

/// The blocks of `n` rows: where they start, and how long they are.
fn blocks(n: usize) -> impl DoubleEndedIterator<Item = Part> {
    let each = if n > LARGEST { BLOCK } else { n.max(1) };
    (0..n.div_ceil(each)).map(move |i| (i * each, each.min(n - i * each)))
}

/// A block of every matrix of `x`, a view.
fn block_of(x: &Array, rows: Part, columns: Part) -> Result<Array> {
    part_of(&part_of(x, x.rank() - 2, rows)?, x.rank() - 1, columns)
}

/// `x` with the last two axes exchanged.
fn turned(x: &Array) -> Result<Array> {
    x.transposed(x.rank() - 2, x.rank() - 1)
}

/// Takes the products of `a` and `b` out of the views `c`.
fn take_out(c: &Array, a: &Array, b: &Array) -> Result<()> {
    if c.numel() == 0 {
        return Ok(());
    }
    let (product, _) = matmul_with(a, b, &Epilogue::default())?;
    copy_into(c, &pointwise("minus", [0; 2], [c, &product], Minus)?)
}

#[derive(Clone, Copy)]
struct Minus;

impl Pointwise<2> for Minus {
    fn apply<R: Real>(&self, [x, y]: [R; 2]) -> R {
        x - y
    }
}

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

    /// Raises if a software adapter would not finish the factorisation of the first columns.
    fn check(&self, name: &str) -> Result<()> {
        let (_, width) = blocks(self.n).next().unwrap_or_default();
        let steps = (0..self.m.min(width)).map(|k| (self.m - k) * (width - k) / THREADS + self.m / THREADS);
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
    let n = own.n;
    for (start, length) in blocks(n).filter(|_| own.count > 0) {
        let mut run = Dispatch::new("cholesky", shader!("cholesky"), DType::F32);
        run.writes(&own.x).writes(&info).words([own.count, length, n, start]);
        run.flops(own.count * length.pow(3) / 3);
        run.launch(own.count)?;
        let (end, own_rows) = (start + length, (start, length));
        let below = (end, n - end);
        if below.1 == 0 {
            continue;
        }
        // The rows below: L X' = A' gives X of A = X L'.
        let diagonal = block_of(&own.x, own_rows, own_rows)?;
        let panel = block_of(&own.x, below, own_rows)?;
        let solved = Matrices::of("cholesky", &turned(&panel)?)?;
        let lower = Triangle { upper: false, unit: false };
        // A zero on the diagonal has been told already.
        substitute("cholesky", &diagonal, &solved, lower, false, &own.words(&[], DType::I32)?)?;
        copy_into(&panel, &turned(&solved.x)?)?;
        take_out(&block_of(&own.x, below, below)?, &panel, &solved.x)?;
        fill(&block_of(&own.x, own_rows, below)?, 0.0)?;
    }
    if own.x.numel() > 0 {
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
    let n = own.n;
    // Without columns there is still an order of the rows.
    let columns = blocks(n).chain((n == 0).then_some((0, 0)));
    for (start, width) in columns.filter(|part| own.count > 0 && part.0 < depth.max(1)) {
        let mut run = Dispatch::new("lu", shader!("lu"), DType::F32);
        run.writes(&own.x).writes(&order).writes(&exchanges).writes(&det);
        run.words([own.count, m, n, start, width]);
        run.flops(own.count * width * width * (3 * (m - start).max(width) - width) / 3);
        run.launch(own.count)?;
        let end = start + width;
        if end < n {
            // The rows of U beside the block, and what they take out of the rows below.
            let (rows, right) = ((start, width.min(m - start)), (end, n - end));
            let beside = block_of(&own.x, rows, right)?;
            let solved = Matrices::of(name, &beside)?;
            let lower = Triangle { upper: false, unit: true };
            let square = block_of(&own.x, rows, (start, rows.1))?;
            substitute(name, &square, &solved, lower, false, &own.words(&[], DType::I32)?)?;
            copy_into(&beside, &solved.x)?;
            if end < m {
                let below = (end, m - end);
                let panel = block_of(&own.x, below, (start, width))?;
                take_out(&block_of(&own.x, below, right)?, &panel, &solved.x)?;
            }
        }
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
    name: &str, t: &Array, b: &Matrices, triangle: Triangle, is_turned: bool, info: &Array,
) -> Result<()> {
    let (n, columns) = (b.m, b.n);
    if b.x.numel() == 0 {
        return Ok(());
    }
    if n <= LARGEST {
        return substitute_block(name, t, b, triangle, is_turned, info, 0);
    }
    let (t, upper) = if is_turned { (turned(t)?, !triangle.upper) } else { (t.clone(), triangle.upper) };
    let (triangle, all) = (Triangle { upper, ..triangle }, (0, columns));
    let mut order: SmallVec<[Part; 32]> = blocks(n).collect();
    if upper {
        order.reverse();
    }
    for (start, length) in order {
        let rows = (start, length);
        let own = block_of(&b.x, rows, all)?;
        let solved = Matrices::of(name, &own)?;
        substitute_block(name, &block_of(&t, rows, rows)?, &solved, triangle, false, info, start)?;
        copy_into(&own, &solved.x)?;
        let rest = if upper { (0, start) } else { (start + length, n - start - length) };
        if rest.1 > 0 {
            take_out(&block_of(&b.x, rest, all)?, &block_of(&t, rest, rows)?, &solved.x)?;
        }
    }
    Ok(())
}

/// [`substitute`] in one launch, for a block of a matrix that begins at row `start` of it.
fn substitute_block(
    name: &str, t: &Array, b: &Matrices, triangle: Triangle, is_turned: bool, info: &Array, start: usize,
) -> Result<()> {
    let (n, columns) = (b.m, b.n);
    check_rounds(index_of(t)?, name, n * (n + 1) / 2)?;
    let t = flat(t, DType::F32)?;
    let mut run = Dispatch::new("triangular_solve", shader!("triangular_solve"), DType::F32);
    run.flag("UPPER", triangle.upper).flag("UNIT", triangle.unit).flag("TRANSPOSED", is_turned);
    run.reads(&t).writes(&b.x).writes(info).words([b.count, n, columns, start]);
    run.flops(b.count * n * n * columns);
    run.launch((b.count * columns).div_ceil(THREADS))
}

/// Returns `X` with `A X = B`, or with `A' X = B` if `adjoint`, from the factors of `A`; all have the same
/// batch. `name` appears in the error for a singular matrix.
pub fn lu_solve(name: &str, factors: &Array, order: &Array, b: &Array, adjoint: bool) -> Result<Array> {
    let (rank, shape) = (b.rank(), b.shape());
    if shape.at(rank - 1) == 0 && factors.numel() > 0 {
        // Without right-hand sides a matrix can be singular all the same.
        let none = full(index_of(factors)?, shape.with(rank - 1, 1), 0.0, b.dtype())?;
        lu_solve(name, factors, order, &none, adjoint)?;
        return Ok(b.clone());
    }
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
