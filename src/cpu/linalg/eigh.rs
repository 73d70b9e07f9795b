//! Eigenvalues and eigenvectors of self-adjoint matrices.

use super::field::{Field, Matrices, in_field, magnitude, scale};
use super::{Failure, each};
use crate::array::Array;
use crate::error::Result;
use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::prelude::*;
use faer::{Par, Spec};

/// Returns the eigenvalues in ascending order and the eigenvectors as columns; reads the lower triangle.
pub fn eigh(x: &Array) -> Result<[Array; 2]> {
    in_field!(x, eigh_of(x))
}

fn eigh_of<T: Field>(x: &Array) -> Result<[Array; 2]> {
    let given = Matrices::<T>::of(x)?;
    let (n, all) = (given.n, given.all()?);
    let (values, vectors) = (given.fresh::<f64>(&[n])?, given.fresh::<T>(&[n, n])?);
    if n > 0 {
        let memory = self_adjoint_evd_scratch::<T>(n, ComputeEigenvectors::Yes, Par::Seq, Spec::default());
        let fresh =
            || (Mat::<T>::zeros(n, n), Diag::<T>::zeros(n), Mat::<T>::zeros(n, n), MemBuffer::new(memory));
        each("eigh", &given.batch, given.cost(9, 20), fresh, |(a, w, v, memory), i| {
            a.copy_from_triangular_lower(all.matrix(i));
            let scale = scale(magnitude(a.as_ref()).ok_or(Failure::NotFinite)?);
            if scale != 1.0 {
                *a = Mat::from_fn(n, n, |i, j| a[(i, j)].scaled(scale));
            }
            let stack = MemStack::new(memory);
            self_adjoint_evd(a.as_ref(), w.as_mut(), Some(v.as_mut()), Par::Seq, stack, Spec::default())
                .map_err(|_| Failure::NoConvergence)?;
            values.matrix(i).iter_mut().enumerate().for_each(|(k, to)| *to = w[k].re() / scale);
            vectors.put(i, v.as_ref());
            Ok(())
        })?;
    }
    Ok([values.finish(given.dtype)?, vectors.finish(given.dtype)?])
}
