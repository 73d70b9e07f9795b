//! Systems with a triangular matrix.

use super::field::{Field, Matrices, graded, in_field, rescale};
use super::{Cost, each};
use crate::array::Array;
use crate::error::Result;
use faer::Par;
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_unit_lower_triangular_in_place,
    solve_unit_upper_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::prelude::*;

/// Which part of a matrix is read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Triangle {
    /// Whether to read the upper triangle instead of the lower.
    pub upper: bool,
    /// Whether the diagonal counts as ones, whatever the matrix has there.
    pub unit: bool,
}

/// Returns `X` with `T X = B`, for the triangle `T` of every matrix of `t`; `t` and `b` have the same batch.
/// Divides by the diagonal even where it is zero.
pub fn triangular_solve(t: &Array, b: &Array, triangle: Triangle) -> Result<Array> {
    in_field!(b, solve(t, b, triangle))
}

fn solve<T: Field>(t: &Array, b: &Array, triangle: Triangle) -> Result<Array> {
    let (t, given) = (Matrices::<T>::of(t)?, Matrices::<T>::of(b)?);
    let (n, columns) = (given.m, given.n);
    let (matrices, right) = (t.all()?, given.all()?);
    let out = given.fresh::<T>(&[n, columns])?;
    let fresh = || (Mat::<T>::zeros(n, n), Mat::<T>::zeros(n, columns));
    let cost = Cost::new(n * n * columns / 2, 4, n * (n + columns));
    each("triangular_solve", &given.batch, cost, fresh, |(t, x), i| {
        t.copy_from(matrices.matrix(i));
        x.copy_from(right.matrix(i));
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
