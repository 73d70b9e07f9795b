//! What factorisations of matrices are told, and why there may be none.

use crate::array::shape::Shape;
use crate::error::Error;

/// Which part of a matrix is read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Triangle {
    /// Whether to read the upper triangle instead of the lower.
    pub upper: bool,
    /// Whether the diagonal counts as ones, whatever the matrix has there.
    pub unit: bool,
}

/// Why a matrix has no factorisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The leading minor of this order is not positive.
    NotPositive(usize),
    /// The pivot with this number, counted from 1, is zero.
    Singular(usize),
    /// An element is infinite or NaN.
    NotFinite,
    /// The iteration does not converge.
    NoConvergence,
}

impl Failure {
    /// Returns the error for matrix `at` of a batch.
    #[cold]
    pub fn error(self, name: &str, at: usize, batch: &Shape) -> Error {
        let what = match self {
            Failure::NotPositive(order) => {
                format!("is not positive definite: its leading minor of order {order} is not positive")
            }
            Failure::Singular(pivot) => format!(
                "is singular: pivot {pivot} of its LU factorisation is zero; linalg.lstsq and linalg.pinv \
                 take it"
            ),
            Failure::NotFinite => "has elements that are not finite".to_string(),
            Failure::NoConvergence => "has no factorisation that the iteration converges to".to_string(),
        };
        if batch.rank() == 0 {
            return Error::linalg(format!("{name}: the matrix {what}"));
        }
        let index = &batch.coordinates(at)[..batch.rank()];
        Error::linalg(format!("{name}: matrix {index:?} of the batch {what}"))
    }
}
