//! Eigenvalues and eigenvectors of symmetric matrices: Householder reflections make the matrix tridiagonal, and QL steps
//! with shifts take its off-diagonal to zero (Golub and Van Loan, "Matrix Computations", 8.3).

use super::rows::{axpy, dot, identity, rotate, transposed, two_rows};
use super::{Failure, Matrices, qr::reflection};
use crate::array::Array;
use crate::error::Result;

/// QL steps for one eigenvalue; two are usual.
const STEPS: usize = 60;

/// Eigenvalues in ascending order, and the eigenvectors as columns; the lower triangle is read.
pub fn eigh(x: &Array) -> Result<[Array; 2]> {
    let given = Matrices::of(x)?;
    let (n, all) = (given.n, given.all()?);
    let (values, vectors) = (given.fresh(&[n])?, given.fresh(&[n, n])?);
    given.each("eigh", 9 * given.work(), |i| {
        let lower = &all[i * n * n..(i + 1) * n * n];
        let (w, rows) = decompose(lower, n)?;
        values.matrix(i).copy_from_slice(&w);
        vectors.matrix(i).copy_from_slice(&transposed(&rows, n, n));
        Ok(())
    })?;
    Ok([values.finish(given.dtype)?, vectors.finish(given.dtype)?])
}

/// The largest magnitude, or the failure if an element is not finite.
pub fn magnitude(a: &[f64]) -> Result<f64, Failure> {
    let size = a.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let finite = size.is_finite() && a.iter().all(|v| !v.is_nan());
    if finite { Ok(size) } else { Err(Failure::NotFinite) }
}

/// Eigenvalues in ascending order and the eigenvectors as rows.
fn decompose(lower: &[f64], n: usize) -> Result<(Vec<f64>, Vec<f64>), Failure> {
    let mut a = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            (a[i * n + j], a[j * n + i]) = (lower[i * n + j], lower[i * n + j]);
        }
    }
    // Squares of elements must neither overflow nor vanish.
    let size = magnitude(&a)?;
    if size == 0.0 {
        return Ok((vec![0.0; n], identity(n, n)));
    }
    a.iter_mut().for_each(|v| *v /= size);
    let (mut d, mut e, mut rows) = tridiagonal(&mut a, n);
    diagonalize(&mut d, &mut e, &mut rows, n)?;
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| d[i].total_cmp(&d[j]));
    let sorted = order.iter().flat_map(|&i| rows[i * n..(i + 1) * n].iter().copied()).collect();
    Ok((order.iter().map(|&i| d[i] * size).collect(), sorted))
}

/// Diagonal, off-diagonal (with a zero behind it) and `Q'` of the tridiagonal `Q' A Q`. All of the symmetric `a` is
/// kept up to date, so that every loop runs along rows.
fn tridiagonal(a: &mut [f64], n: usize) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let mut e = vec![0.0; n];
    let mut taus = vec![0.0; n];
    for k in 0..n.saturating_sub(1) {
        let (front, rest) = a.split_at_mut((k + 1) * n);
        let v = &mut front[k * n + k + 1..];
        let (tau, to) = reflection(v);
        (e[k], taus[k]) = (to, tau);
        if tau == 0.0 {
            continue;
        }
        // (I - tau v v') A (I - tau v v') = A - v w' - w v'.
        let mut w: Vec<f64> = rest.chunks_exact(n).map(|row| tau * dot(&row[k + 1..], v)).collect();
        let half = tau / 2.0 * dot(&w, v);
        axpy(&mut w, -half, v);
        for (i, row) in rest.chunks_exact_mut(n).enumerate() {
            axpy(&mut row[k + 1..], -v[i], &w);
            axpy(&mut row[k + 1..], -w[i], v);
        }
    }
    let d = (0..n).map(|i| a[i * n + i]).collect();
    // Q is the product of the reflections; the first acts on all but the first row.
    let mut q = identity(n, n);
    for k in (0..n.saturating_sub(1)).rev().filter(|&k| taus[k] != 0.0) {
        let v = &a[k * n + k + 1..(k + 1) * n];
        let rows = &mut q[(k + 1) * n..];
        let mut sums = vec![0.0; n - k - 1];
        for (row, &weight) in rows.chunks_exact(n).zip(v) {
            axpy(&mut sums, weight, &row[k + 1..]);
        }
        for (row, &weight) in rows.chunks_exact_mut(n).zip(v) {
            axpy(&mut row[k + 1..], -taus[k] * weight, &sums);
        }
    }
    (d, e, transposed(&q, n, n))
}

/// Takes the off-diagonal `e` to zero by rotations, which the rows of `q` follow.
fn diagonalize(d: &mut [f64], e: &mut [f64], q: &mut [f64], n: usize) -> Result<(), Failure> {
    for first in 0..n {
        for step in 0.. {
            // The block that begins here ends where the off-diagonal is nothing beside its neighbours.
            let nothing =
                |k: usize| e[k].abs() <= f64::EPSILON * (d[k].abs() + d[k + 1].abs()) + f64::MIN_POSITIVE;
            let last = (first..n - 1).find(|&k| nothing(k)).unwrap_or(n - 1);
            if last == first {
                break;
            }
            if step == STEPS {
                return Err(Failure::NoConvergence);
            }
            ql_step(d, e, q, n, first, last);
        }
    }
    Ok(())
}

/// One implicit QL step on rows `first..=last`, with the eigenvalue of the leading 2 x 2 block that is nearer to its
/// first element as shift.
fn ql_step(d: &mut [f64], e: &mut [f64], q: &mut [f64], n: usize, first: usize, last: usize) {
    let slope = (d[first + 1] - d[first]) / (2.0 * e[first]);
    let shift = d[first] - e[first] / (slope + slope.hypot(1.0).copysign(slope));
    // The bulge that the first rotation makes is chased to the front.
    let (mut c, mut s, mut carried) = (1.0, 1.0, 0.0);
    let mut g = d[last] - shift;
    for i in (first..last).rev() {
        let (bulge, off) = (s * e[i], c * e[i]);
        let r = bulge.hypot(g);
        e[i + 1] = r;
        if r == 0.0 {
            // The matrix falls apart here.
            d[i + 1] -= carried;
            e[last] = 0.0;
            return;
        }
        (s, c) = (bulge / r, g / r);
        let gap = d[i + 1] - carried;
        let turned = (d[i] - gap) * s + 2.0 * c * off;
        carried = s * turned;
        d[i + 1] = gap + carried;
        g = c * turned - off;
        let (x, y) = two_rows(q, n, i, i + 1);
        rotate(x, y, c, s);
    }
    d[first] -= carried;
    e[first] = g;
    e[last] = 0.0;
}
