//! Cholesky factorisation: `A = L L*`, from the lower triangle of `A`.

use super::field::{Field, Matrices, in_field};
use super::{Failure, each};
use crate::array::Array;
use crate::error::Result;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{LltError, cholesky_in_place, cholesky_in_place_scratch};
use faer::prelude::*;
use faer::{Par, Spec};

/// Returns the lower triangular factor of every matrix.
pub fn cholesky(x: &Array) -> Result<Array> {
    in_field!(x, factor(x))
}

fn factor<T: Field>(x: &Array) -> Result<Array> {
    let given = Matrices::<T>::of(x)?;
    let (n, all) = (given.n, given.all()?);
    let out = given.fresh::<T>(&[n, n])?;
    let memory = cholesky_in_place_scratch::<T>(n, Par::Seq, Spec::default());
    let fresh = || (Mat::<T>::zeros(n, n), MemBuffer::new(memory));
    each("cholesky", &given.batch, given.cost(1, 3), fresh, |(a, memory), i| {
        a.copy_from(all.matrix(i));
        // The diagonal of a Hermitian matrix is real.
        for k in 0..n {
            a[(k, k)] = T::from_f64_impl(a[(k, k)].re());
        }
        let stack = MemStack::new(memory);
        cholesky_in_place(a.as_mut(), Default::default(), Par::Seq, stack, Spec::default())
            .map_err(|LltError::NonPositivePivot { index }| Failure::NotPositive(index + 1))?;
        for column in 1..n {
            a.col_mut(column).subrows_mut(0, column).fill(T::zero_impl());
        }
        out.put(i, a.as_ref());
        Ok(())
    })?;
    out.finish(given.dtype)
}
