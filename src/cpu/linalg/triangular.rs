//! Systems with a triangular matrix: substitution within blocks, products between them.

use super::Matrices;
use super::rows::{BLOCK, Block, add_product, axpy, negated, two_rows};
use crate::array::Array;
use crate::error::Result;

/// What is read of a matrix.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Triangle {
    /// The upper triangle, instead of the lower.
    pub upper: bool,
    /// Ones on the diagonal, whatever the matrix has there.
    pub unit: bool,
}

/// `X` with `T X = B`, for the triangle `T` of every matrix of `t`; `t` and `b` have the same batch. A zero on the
/// diagonal divides, as any number does.
pub fn triangular_solve(t: &Array, b: &Array, triangle: Triangle) -> Result<Array> {
    let (t, given) = (Matrices::of(t)?, Matrices::of(b)?);
    let (n, columns) = (given.m, given.n);
    let (matrices, right) = (t.all()?, given.all()?);
    let out = given.fresh(&[n, columns])?;
    given.each("triangular_solve", n * n * columns / 2, |i| {
        let x = out.matrix(i);
        x.copy_from_slice(&right[i * n * columns..(i + 1) * n * columns]);
        solve(&matrices[i * n * n..(i + 1) * n * n], n, x, columns, triangle);
        Ok(())
    })?;
    out.finish(given.dtype)
}

/// Replaces the right-hand sides, rows of `columns` elements, by the solution.
pub fn solve(t: &[f64], n: usize, x: &mut [f64], columns: usize, triangle: Triangle) {
    let blocks = n.div_ceil(BLOCK);
    for b in 0..blocks {
        let k = if triangle.upper { blocks - 1 - b } else { b } * BLOCK;
        let end = (k + BLOCK).min(n);
        // What is known already moves to the right-hand side.
        let known = if triangle.upper { end..n } else { 0..k };
        let minus = negated(&t[k * n..], n, end - k, known.clone());
        let (front, back) = x.split_at_mut(if triangle.upper { end * columns } else { k * columns });
        let (rows, solved) =
            if triangle.upper { (&mut front[k * columns..], &*back) } else { (back, &*front) };
        add_product(
            rows,
            columns,
            (end - k, known.len(), columns),
            Block::rows(&minus, known.len()),
            Block::rows(solved, columns),
        );
        substitute(t, n, &mut x[k * columns..end * columns], columns, k..end, triangle);
    }
}

/// Substitution within one block on the diagonal; `x` holds its rows.
fn substitute(
    t: &[f64],
    n: usize,
    x: &mut [f64],
    columns: usize,
    block: std::ops::Range<usize>,
    triangle: Triangle,
) {
    let (k, size) = (block.start, block.len());
    for step in 0..size {
        let i = if triangle.upper { size - 1 - step } else { step };
        let row = &t[(k + i) * n + k..];
        for j in if triangle.upper { i + 1..size } else { 0..i } {
            let (a, b) = two_rows(x, columns, i.min(j), i.max(j));
            let (own, other) = if i < j { (a, b) } else { (b, a) };
            axpy(own, -row[j], other);
        }
        if !triangle.unit {
            x[i * columns..(i + 1) * columns].iter_mut().for_each(|v| *v /= row[i]);
        }
    }
}
