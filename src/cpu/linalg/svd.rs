//! Singular values and vectors by rotations (Hestenes; Demmel and Veselic, "Jacobi's method is more accurate than QR",
//! 1992), after a QR factorisation that leaves a triangle.
//!
//! Rotating the rows of `R` against each other until they are orthogonal gives `R = J S V'`: the rotations are `J`, the
//! lengths of the rows `S`, their directions `V'`.

use super::eigh::magnitude;
use super::qr::{factor, orthogonal};
use super::rows::{dot, identity, product, rotate, transposed, two_rows};
use super::{Failure, Matrices};
use crate::array::Array;
use crate::cpu::isa::{PlainBody, run_widest};
use crate::error::Result;

/// Passes over all pairs of rows; six to ten are usual.
const PASSES: usize = 60;
/// Squared lengths below this, relative to the largest element, count as zero.
const NOTHING: f64 = 1e-290;

/// `U`, the singular values in descending order, and `V'`; as many as the shorter side.
pub fn svd(x: &Array) -> Result<[Array; 3]> {
    let given = Matrices::of(x)?;
    let (m, n, all) = (given.m, given.n, given.all()?);
    let k = m.min(n);
    let (u, s, v) = (given.fresh(&[m, k])?, given.fresh(&[k])?, given.fresh(&[k, n])?);
    given.each("svd", 20 * given.work(), |i| {
        let parts = decompose(&all[i * m * n..(i + 1) * m * n], m, n)?;
        u.matrix(i).copy_from_slice(&parts.u);
        s.matrix(i).copy_from_slice(&parts.s);
        v.matrix(i).copy_from_slice(&parts.v);
        Ok(())
    })?;
    Ok([u.finish(given.dtype)?, s.finish(given.dtype)?, v.finish(given.dtype)?])
}

/// The singular value decomposition of one matrix.
pub struct Parts {
    /// `U`, `m` x `k`.
    pub u: Vec<f64>,
    /// The singular values.
    pub s: Vec<f64>,
    /// `V'`, `k` x `n`.
    pub v: Vec<f64>,
}

/// Decomposes a matrix with `m` rows and `n` columns.
pub fn decompose(a: &[f64], m: usize, n: usize) -> Result<Parts, Failure> {
    if m < n {
        let Parts { u, s, v } = decompose(&transposed(a, m, n), n, m)?;
        return Ok(Parts { u: transposed(&v, m, m), s, v: transposed(&u, n, m) });
    }
    // Squares of elements must neither overflow nor vanish.
    let size = magnitude(a)?;
    if size == 0.0 {
        return Ok(Parts { u: identity(m, n), s: vec![0.0; n], v: identity(n, n) });
    }
    let mut r: Vec<f64> = a.iter().map(|v| v / size).collect();
    let reflections = factor(&mut r, m, n);
    r.truncate(n * n);
    let mut turned = identity(n, n);
    orthogonalize(&mut r, &mut turned, n)?;
    let row = |i: usize| i * n..(i + 1) * n;
    let squares: Vec<f64> = (0..n).map(|i| dot(&r[row(i)], &r[row(i)])).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| squares[j].total_cmp(&squares[i]));
    let (mut j, mut v, mut s) = (vec![0.0; n * n], vec![0.0; n * n], vec![0.0; n]);
    let mut rank = n;
    for (to, &from) in order.iter().enumerate() {
        j[row(to)].copy_from_slice(&turned[row(from)]);
        if squares[from] < NOTHING {
            rank = rank.min(to);
            continue;
        }
        let length = squares[from].sqrt();
        s[to] = length * size;
        v[row(to)].iter_mut().zip(&r[row(from)]).for_each(|(v, r)| *v = r / length);
    }
    complete(&mut v, n, rank);
    let u = product(&orthogonal(&reflections, m, n), &transposed(&j, n, n), (m, n, n));
    Ok(Parts { u, s, v })
}

/// Fills the rows from `rank` on with vectors that are orthogonal to those before and to each other.
fn complete(v: &mut [f64], n: usize, rank: usize) {
    if rank == n {
        return;
    }
    let mut columns = transposed(&v[..rank * n], rank, n);
    let reflections = factor(&mut columns, n, rank);
    let all = transposed(&orthogonal(&reflections, n, n), n, n);
    v[rank * n..].copy_from_slice(&all[rank * n..]);
}

/// The three inner products of two rows.
struct Gram<'a>(&'a [f64], &'a [f64]);

impl PlainBody for Gram<'_> {
    type Output = [f64; 3];
    #[inline(always)]
    fn run(self) -> [f64; 3] {
        let (mut xx, mut xy, mut yy) = ([0.0; 8], [0.0; 8], [0.0; 8]);
        let (x, y) = (self.0.chunks_exact(8), self.1.chunks_exact(8));
        let mut sums = [0.0; 3];
        for (a, b) in x.remainder().iter().zip(y.remainder()) {
            sums = [sums[0] + a * a, sums[1] + a * b, sums[2] + b * b];
        }
        for (a, b) in x.zip(y) {
            for i in 0..8 {
                xx[i] += a[i] * a[i];
                xy[i] += a[i] * b[i];
                yy[i] += b[i] * b[i];
            }
        }
        [sums[0] + xx.iter().sum::<f64>(), sums[1] + xy.iter().sum::<f64>(), sums[2] + yy.iter().sum::<f64>()]
    }
}

/// Rotates pairs of rows until all are orthogonal; the rows of `turned` follow.
fn orthogonalize(r: &mut [f64], turned: &mut [f64], n: usize) -> Result<(), Failure> {
    for _ in 0..PASSES {
        let mut moved = false;
        for i in 0..n {
            for j in i + 1..n {
                let (x, y) = two_rows(r, n, i, j);
                let [xx, xy, yy] = run_widest(Gram(x, y));
                let done = xy.abs() <= f64::EPSILON * (xx * yy).sqrt() || xx < NOTHING || yy < NOTHING;
                // The longer row comes first: then fewer passes are needed.
                if done && (xx >= yy || xx.max(yy) < NOTHING) {
                    continue;
                }
                let (c, s) = if done { (0.0, 1.0) } else { rotation(xx, xy, yy) };
                moved |= !done;
                rotate(x, y, c, s);
                let (x, y) = two_rows(turned, n, i, j);
                rotate(x, y, c, s);
            }
        }
        if !moved {
            return Ok(());
        }
    }
    Err(Failure::NoConvergence)
}

/// Cosine and sine of the rotation that makes two rows with these products orthogonal, the longer one first.
fn rotation(xx: f64, xy: f64, yy: f64) -> (f64, f64) {
    let zeta = (yy - xx) / (2.0 * xy);
    let t = 1.0 / (zeta + zeta.hypot(1.0).copysign(zeta));
    let c = 1.0 / t.hypot(1.0);
    let s = c * t;
    // With c x - s y the row that was longer stays longer.
    if xx >= yy { (c, s) } else { (-s, c) }
}
