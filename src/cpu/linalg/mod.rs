//! Factorisations of matrices: the last two axes of an array, for every matrix of a batch.
//!
//! Everything is computed in `f64` and rounded once to the dtype of the input, so that a `float32` matrix loses nothing
//! but that rounding. Large updates are products of blocks (`product/`), which threads share; a batch is shared
//! matrix by matrix. Neither changes a bit of the result.
//!
//! Reading order: `rows.rs` (what the others are made of), `triangular.rs` (solving with triangles), `cholesky.rs`,
//! `lu.rs`, `qr.rs` (reflections), `eigh.rs` (a tridiagonal matrix and rotations), `svd.rs` (rotations alone),
//! `functions.rs` (determinant, cofactors, pseudoinverse, exponential).

mod cholesky;
mod eigh;
mod functions;
mod lu;
mod qr;
mod rows;
mod svd;
#[cfg(test)]
mod tests;
mod triangular;

pub use cholesky::cholesky;
pub use eigh::eigh;
pub use functions::{Cutoff, cofactor, det, matrix_exp, pinv};
pub use lu::{lu, lu_solve};
pub use qr::qr;
pub use svd::svd;
pub use triangular::{Triangle, triangular_solve};

use super::copy::cast;
use super::threads::{GRAIN, Shared, parallel_for};
use crate::array::Array;
use crate::buffer::Device;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::shape::Shape;
use std::sync::{Mutex, PoisonError};

/// Why a matrix has no such factorisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The leading minor of this order is not positive.
    NotPositive(usize),
    /// The pivot with this number is zero.
    Singular(usize),
    /// An element is infinite or NaN.
    NotFinite,
    /// The iteration does not converge.
    NoConvergence,
}

impl Failure {
    /// The error for matrix `at` of a batch.
    #[cold]
    fn error(self, name: &str, at: usize, batch: &Shape) -> Error {
        let what = match self {
            Failure::NotPositive(order) => {
                format!("is not positive definite: its leading minor of order {order} is not positive")
            }
            Failure::Singular(pivot) => {
                format!(
                    "is singular: pivot {pivot} of its LU factorisation is zero; linalg.lstsq and linalg.pinv take it"
                )
            }
            Failure::NotFinite => "has elements that are not finite".to_string(),
            Failure::NoConvergence => "has no factorisation that the iteration converges to".to_string(),
        };
        if batch.rank() == 0 {
            return Error::linalg(format!("{name}: the matrix {what}"));
        }
        let mut index = vec![0; batch.rank()];
        let mut rest = at;
        for axis in (0..batch.rank()).rev() {
            index[axis] = rest % batch.at(axis);
            rest /= batch.at(axis);
        }
        Error::linalg(format!("{name}: matrix {index:?} of the batch {what}"))
    }
}

/// The matrices of an array.
struct Matrices {
    /// Their elements, one matrix after the other.
    array: Array,
    /// The axes of the batch.
    batch: Shape,
    /// Rows of each.
    m: usize,
    /// Columns of each.
    n: usize,
    /// The dtype that results are rounded to.
    dtype: DType,
}

impl Matrices {
    fn of(x: &Array) -> Result<Matrices> {
        let rank = x.rank();
        if rank < 2 {
            return Err(Error::shape(format!("internal: a matrix expected, got shape {}", x.shape())));
        }
        Ok(Matrices {
            array: cast(x, DType::F64)?,
            batch: x.shape().part(0, rank - 2),
            m: x.dim(rank - 2),
            n: x.dim(rank - 1),
            dtype: x.dtype(),
        })
    }

    /// The elements of all.
    fn all(&self) -> Result<&[f64]> {
        self.array.slice()
    }

    /// A new array with these axes behind those of the batch.
    fn fresh(&self, axes: &[usize]) -> Result<Output<f64>> {
        Output::new(&self.batch, axes)
    }

    /// Calls `kernel` for every matrix, which is worth about `work` multiplications. The first that fails decides the
    /// error.
    fn each(
        &self,
        name: &str,
        work: usize,
        kernel: impl Fn(usize) -> Result<(), Failure> + Sync,
    ) -> Result<()> {
        let first = Mutex::new(None::<(usize, Failure)>);
        parallel_for(self.batch.numel(), (GRAIN / work.max(1)).max(1), |range| {
            for i in range {
                if let Err(failure) = kernel(i) {
                    let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
                    if first.is_none_or(|(at, _)| i < at) {
                        *first = Some((i, failure));
                    }
                    return;
                }
            }
        });
        match first.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some((at, failure)) => Err(failure.error(name, at, &self.batch)),
            None => Ok(()),
        }
    }

    /// About how many multiplications a factorisation takes.
    fn work(&self) -> usize {
        self.m * self.n * self.m.min(self.n)
    }
}

/// An array that is written matrix by matrix.
struct Output<T> {
    array: Array,
    to: Shared<T>,
    size: usize,
}

impl<T: Element> Output<T> {
    /// An array of this batch, with these axes behind it.
    fn new(batch: &Shape, axes: &[usize]) -> Result<Output<T>> {
        let mut shape = *batch;
        for &length in axes {
            shape = shape.inserted(shape.rank(), length)?;
        }
        let mut array = Array::empty(shape, T::DTYPE, Device::Cpu)?;
        let to = Shared::new(array.slice_mut::<T>()?.as_mut_ptr());
        Ok(Output { array, to, size: axes.iter().product() })
    }

    /// The elements of matrix `i`, to be written by whoever computes it.
    #[allow(clippy::mut_from_ref, reason = "each matrix is written by one piece of the loop over the batch")]
    fn matrix(&self, i: usize) -> &mut [T] {
        // SAFETY: the array has this matrix, and `Matrices::each` calls its kernel once for each.
        unsafe { self.to.part(i * self.size, self.size) }
    }

    /// The array, rounded to `dtype`.
    fn finish(self, dtype: DType) -> Result<Array> {
        cast(&self.array, dtype)
    }
}
