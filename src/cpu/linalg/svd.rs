//! Singular value decomposition.

use super::prelude::*;
use faer::linalg::svd::{ComputeSvdVectors, svd as decompose, svd_scratch};

/// Returns `U`, the singular values in descending order, and `V*`; as many as the shorter side is long.
pub fn svd(x: &Array) -> Result<[Array; 3]> {
    in_field!(x, svd_of(x))
}

fn svd_of<T: Field>(x: &Array) -> Result<[Array; 3]> {
    let given = Matrices::<T>::of(x)?;
    let (m, n, k) = (given.m, given.n, given.m.min(given.n));
    let (u, s, v) = (given.fresh::<T>(&[m, k])?, given.fresh::<f64>(&[k])?, given.fresh::<T>(&[k, n])?);
    let fresh = || Parts::<T>::with_shape(m, n);
    given.each("svd", given.cost(20, 35), fresh, |parts, matrix, i| {
        parts.decompose(matrix)?;
        u.put(i, parts.u.as_ref());
        s.matrix(i).copy_from_slice(&parts.s);
        v.put(i, parts.v.adjoint().to_owned().as_ref());
        Ok(())
    })?;
    Ok([u.finish(given.dtype)?, s.finish(given.dtype)?, v.finish(given.dtype)?])
}

/// The decomposition of one matrix, with scratch memory that is reused for matrices of the same shape.
pub struct Parts<T> {
    /// `U`, with a column per singular value.
    pub u: Mat<T>,
    /// The singular values.
    pub s: Vec<f64>,
    /// `V`, with a column per singular value.
    pub v: Mat<T>,
    given: Mat<T>,
    diagonal: Diag<T>,
    memory: MemBuffer,
}

impl<T: Field> Parts<T> {
    /// Returns buffers for a matrix of this shape.
    pub fn with_shape(m: usize, n: usize) -> Parts<T> {
        let (k, thin) = (m.min(n), ComputeSvdVectors::Thin);
        Parts {
            u: Mat::zeros(m, k),
            s: vec![0.0; k],
            v: Mat::zeros(n, k),
            given: Mat::zeros(m, n),
            diagonal: Diag::zeros(k),
            memory: MemBuffer::new(svd_scratch::<T>(m, n, thin, thin, Par::Seq, Spec::default())),
        }
    }

    /// Decomposes a matrix.
    pub fn decompose(&mut self, a: MatRef<'_, T>) -> Result<(), Failure> {
        let scale = scale(magnitude(a).ok_or(Failure::NotFinite)?);
        self.given.copy_from(a);
        rescale(&mut self.given, [scale]);
        let (a, s, stack) = (self.given.as_ref(), self.diagonal.as_mut(), MemStack::new(&mut self.memory));
        let (u, v) = (Some(self.u.as_mut()), Some(self.v.as_mut()));
        decompose(a, s, u, v, Par::Seq, stack, Spec::default()).map_err(|_| Failure::NoConvergence)?;
        self.s.iter_mut().enumerate().for_each(|(k, to)| *to = self.diagonal[k].re() / scale);
        Ok(())
    }
}
