//! Cholesky factorisation: `A = L L'`, from the lower triangle of `A`.

use super::rows::{BLOCK, Block, add_product, dot, negated};
use super::{Failure, Matrices};
use crate::array::Array;
use crate::error::Result;

/// The lower triangular factor of every matrix.
pub fn cholesky(x: &Array) -> Result<Array> {
    let given = Matrices::of(x)?;
    let (n, all) = (given.n, given.all()?);
    let out = given.fresh(&[n, n])?;
    given.each("cholesky", given.work() / 3, |i| {
        let a = out.matrix(i);
        a.copy_from_slice(&all[i * n * n..(i + 1) * n * n]);
        factor(a, n)
    })?;
    out.finish(given.dtype)
}

/// Replaces a matrix by its factor: a block of columns at a time, then what they contribute to all that follows.
pub fn factor(a: &mut [f64], n: usize) -> Result<(), Failure> {
    for k in (0..n).step_by(BLOCK) {
        let end = (k + BLOCK).min(n);
        for i in k..n {
            for j in k..end.min(i + 1) {
                let rest = a[i * n + j] - dot(&a[i * n + k..i * n + j], &a[j * n + k..j * n + j]);
                if i > j {
                    a[i * n + j] = rest / a[j * n + j];
                } else if rest > 0.0 {
                    a[i * n + i] = rest.sqrt();
                } else {
                    return Err(Failure::NotPositive(i + 1));
                }
            }
        }
        let width = end - k;
        let minus = negated(&a[end * n..], n, n - end, k..end);
        let panel: Vec<f64> = minus.iter().map(|v| -v).collect();
        for r in (0..n - end).step_by(BLOCK) {
            let rows = BLOCK.min(n - end - r);
            // Only what lies on or below the diagonal is read again.
            add_product(
                &mut a[(end + r) * n + end..],
                n,
                (rows, width, r + rows),
                Block::rows(&minus[r * width..], width),
                Block::transposed(&panel, width),
            );
        }
    }
    for i in 0..n {
        a[i * n + i + 1..(i + 1) * n].fill(0.0);
    }
    Ok(())
}
