//! Factorisations of the matrices in the last two axes of an array, for every matrix of a batch.
//!
//! The `faer` crate factors one matrix at a time; this module applies it to batches and reports why a matrix
//! has no factorisation. Everything is computed in double precision and rounded once to the dtype of the
//! input, so that a `float32` matrix loses only that rounding. Threads share a batch matrix by matrix, which
//! does not change a bit of the result.
//!
//! Read next, in `src/cpu/linalg/`: field (from arrays to matrices and back), triangular (with Cholesky's
//! factors), lu, qr, eig, svd, functions (determinant, cofactors, pseudoinverse, exponential).

mod eig;
mod field;
mod functions;
mod lu;
mod prelude;
mod qr;
mod svd;
#[cfg(test)]
#[path = "../../../tests/kernels/linalg.rs"]
mod tests;
mod triangular;

pub use eig::{eig, eigh};
pub use functions::{Cutoff, cofactor, det, matrix_exp, pinv};
pub use lu::{lu, lu_solve};
pub use qr::qr;
pub use svd::svd;
pub use triangular::{cholesky, triangular_solve};

use faer::c64;

/// Cost of the factorisation of one matrix.
struct Cost {
    /// Approximate number of multiplications.
    work: usize,
    /// Maximal bytes of scratch memory, which `faer` allocates without reporting failure.
    bytes: usize,
}

/// Bytes that products of large blocks take in addition, once per thread.
const BLOCKS: usize = 5 << 20;
/// Matrices of up to this many elements are multiplied without blocks.
const SMALL: usize = 64;

impl Cost {
    /// Returns the cost of `work` multiplications and of `matrices` complex matrices of `elements` each.
    fn new(work: usize, matrices: usize, elements: usize) -> Cost {
        let blocks = if elements > SMALL { BLOCKS } else { 0 };
        Cost { work, bytes: elements.saturating_mul(matrices * size_of::<c64>()).saturating_add(blocks) }
    }
}
