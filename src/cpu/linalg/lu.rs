//! LU factorisation with row exchanges: `A[permutation] = L U`, and systems solved with it.

use super::rows::{BLOCK, Block, add_product, axpy, negated, transposed, two_rows};
use super::triangular::{Triangle, solve};
use super::{Failure, Matrices, Output};
use crate::array::Array;
use crate::error::Result;

/// `L` (below the diagonal, on which it has ones) and `U` in one matrix; the permutation, which row of the matrix each
/// of its rows is; the exchanges as LAPACK counts them, from 1.
pub fn lu(x: &Array) -> Result<[Array; 3]> {
    let given = Matrices::of(x)?;
    let (m, n, all) = (given.m, given.n, given.all()?);
    let out = given.fresh(&[m, n])?;
    let order = Output::<i64>::new(&given.batch, &[m])?;
    let exchanges = Output::<i32>::new(&given.batch, &[m.min(n)])?;
    given.each("lu", given.work(), |i| {
        let a = out.matrix(i);
        a.copy_from_slice(&all[i * m * n..(i + 1) * m * n]);
        factor(a, m, n, order.matrix(i), exchanges.matrix(i));
        Ok(())
    })?;
    Ok([out.finish(given.dtype)?, order.array, exchanges.array])
}

/// Replaces a matrix by its factors. A column without a pivot is left as it is.
pub fn factor(a: &mut [f64], m: usize, n: usize, order: &mut [i64], exchanges: &mut [i32]) {
    order.iter_mut().zip(0..).for_each(|(to, i)| *to = i);
    let depth = m.min(n);
    for k in (0..depth).step_by(BLOCK) {
        let end = (k + BLOCK).min(depth);
        for j in k..end {
            let size = |i: usize| a[i * n + j].abs();
            let pivot = (j + 1..m).fold(j, |best, i| if size(i) > size(best) { i } else { best });
            exchanges[j] = pivot as i32 + 1;
            if pivot != j {
                let (x, y) = two_rows(a, n, j, pivot);
                x.swap_with_slice(y);
                order.swap(j, pivot);
            }
            let divisor = a[j * n + j];
            if divisor == 0.0 {
                continue;
            }
            for i in j + 1..m {
                let (top, row) = two_rows(a, n, j, i);
                let factor = row[j] / divisor;
                row[j] = factor;
                axpy(&mut row[j + 1..end], -factor, &top[j + 1..end]);
            }
        }
        for i in k + 1..end {
            for j in k..i {
                let (top, row) = two_rows(a, n, j, i);
                let factor = row[j];
                axpy(&mut row[end..], -factor, &top[end..]);
            }
        }
        let minus = negated(&a[end * n..], n, m - end, k..end);
        let (top, rest) = a.split_at_mut(end * n);
        if end < n && end < m {
            let shape = (m - end, end - k, n - end);
            add_product(
                &mut rest[end..],
                n,
                shape,
                Block::rows(&minus, end - k),
                Block::rows(&top[k * n + end..], n),
            );
        }
    }
}

/// `X` with `A X = B`, or with `A' X = B`, from the factors of `A`; all have the same batch. `name` is for the error
/// of a singular matrix.
pub fn lu_solve(name: &str, factors: &Array, order: &Array, b: &Array, adjoint: bool) -> Result<Array> {
    let (factors, given) = (Matrices::of(factors)?, Matrices::of(b)?);
    let order = crate::cpu::copy::contiguous(order)?;
    let (n, columns) = (given.m, given.n);
    let (lu, order, right) = (factors.all()?, order.slice::<i64>()?, given.all()?);
    let out = given.fresh(&[n, columns])?;
    given.each(name, n * n * columns, |i| {
        let (lu, order) = (&lu[i * n * n..(i + 1) * n * n], &order[i * n..(i + 1) * n]);
        let right = &right[i * n * columns..(i + 1) * n * columns];
        if let Some(zero) = (0..n).find(|&k| lu[k * n + k] == 0.0) {
            return Err(Failure::Singular(zero + 1));
        }
        substitute(lu, order, right, out.matrix(i), columns, adjoint);
        Ok(())
    })?;
    out.finish(given.dtype)
}

/// Solves with the factors of one matrix.
pub fn substitute(lu: &[f64], order: &[i64], b: &[f64], x: &mut [f64], columns: usize, adjoint: bool) {
    let n = order.len();
    let rows = |i: usize| i * columns..(i + 1) * columns;
    if !adjoint {
        for (i, &from) in order.iter().enumerate() {
            x[rows(i)].copy_from_slice(&b[rows(from as usize)]);
        }
        solve(lu, n, x, columns, Triangle { upper: false, unit: true });
        return solve(lu, n, x, columns, Triangle { upper: true, unit: false });
    }
    let turned = transposed(lu, n, n);
    let mut y = b.to_vec();
    solve(&turned, n, &mut y, columns, Triangle { upper: false, unit: false });
    solve(&turned, n, &mut y, columns, Triangle { upper: true, unit: true });
    for (i, &to) in order.iter().enumerate() {
        x[rows(to as usize)].copy_from_slice(&y[rows(i)]);
    }
}
