//! Triangular matrices: the Cholesky factorisation `A = L L*`, from the lower triangle of `A`, and systems.

use super::prelude::*;
use crate::arguments::linalg::Triangle;
use faer::linalg::cholesky::llt::factor::{LltError, cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_unit_lower_triangular_in_place,
    solve_unit_upper_triangular_in_place, solve_upper_triangular_in_place,
};

/// Returns the lower triangular factor of every matrix.
pub fn cholesky(x: &Array) -> Result<Array> {
    in_field!(x, cholesky_of(x))
}

fn cholesky_of<T: Field>(x: &Array) -> Result<Array> {
    let given = Matrices::<T>::of(x)?;
    let n = given.n;
    let out = given.fresh::<T>(&[n, n])?;
    let memory = cholesky_in_place_scratch::<T>(n, Par::Seq, Spec::default());
    let fresh = || (Mat::<T>::zeros(n, n), MemBuffer::new(memory));
    given.each("cholesky", given.cost(1, 3), fresh, |(a, memory), matrix, i| {
        a.copy_from(matrix);
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

/// Returns `X` with `T X = B`, for the triangle `T` of every matrix of `t`; `t` and `b` have the same batch.
/// Divides by the diagonal even where it is zero.
pub fn triangular_solve(t: &Array, b: &Array, triangle: Triangle) -> Result<Array> {
    in_field!(b, solve(t, b, triangle))
}

fn solve<T: Field>(t: &Array, b: &Array, triangle: Triangle) -> Result<Array> {
    let (t, given) = (Matrices::<T>::of(t)?, Matrices::<T>::of(b)?);
    let (n, columns) = (given.m, given.n);
    let matrices = t.all()?;
    let out = given.fresh::<T>(&[n, columns])?;
    let fresh = || (Mat::<T>::zeros(n, n), Mat::<T>::zeros(n, columns));
    let cost = Cost::new(n * n * columns / 2, 4, n * (n + columns));
    given.each("triangular_solve", cost, fresh, |(t, x), right, i| {
        t.copy_from(matrices(i));
        x.copy_from(right);
        let solve = match (triangle.upper, triangle.unit) {
            (false, false) => solve_lower_triangular_in_place,
            (false, true) => solve_unit_lower_triangular_in_place,
            (true, false) => solve_upper_triangular_in_place,
            (true, true) => solve_unit_upper_triangular_in_place,
        };
        let scales = if triangle.unit { [1.0; 2] } else { graded(t.as_mut(), triangle.upper, x) };
        solve(t.as_ref(), x.as_mut(), Par::Seq);
        rescale(x, scales);
        out.put(i, x.as_ref());
        Ok(())
    })?;
    out.finish(given.dtype)
}
