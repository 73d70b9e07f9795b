//! QR factorisation by Householder reflections, which are gathered in blocks: the product of several is
//! `I - V T V'` (Schreiber and Van Loan, "A storage-efficient WY representation", 1989).

use super::Matrices;
use super::rows::{Block, add_product, axpy, identity, length};
use crate::array::Array;
use crate::error::Result;

/// Reflections that are gathered.
const WIDTH: usize = 32;

/// The reflection `I - tau v v'` that takes `x` to a multiple of the first axis: turns `x` into `v`, whose first element
/// is 1, and returns `tau` and the multiple. As in LAPACK its sign is not that of `x[0]`, and nothing is
/// reflected where only `x[0]` is not zero.
pub fn reflection(x: &mut [f64]) -> (f64, f64) {
    let first = x[0];
    let below = length(&x[1..]);
    x[0] = 1.0;
    if below == 0.0 {
        return (0.0, first);
    }
    let to = -first.hypot(below).copysign(first);
    x[1..].iter_mut().for_each(|v| *v /= first - to);
    ((to - first) / to, to)
}

/// A block of reflections, which act from row `start` on.
pub struct Reflections {
    start: usize,
    width: usize,
    v: Vec<f64>,
    t: Vec<f64>,
}

impl Reflections {
    /// Reflects columns `start..start + width` of a matrix to triangular form.
    fn of(a: &mut [f64], m: usize, n: usize, start: usize, width: usize) -> Reflections {
        let rows = m - start;
        let (mut v, mut t) = (vec![0.0; rows * width], vec![0.0; width * width]);
        let mut sums = vec![0.0; width];
        for j in 0..width {
            let column = start + j;
            let mut x: Vec<f64> = (column..m).map(|i| a[i * n + column]).collect();
            let (tau, to) = reflection(&mut x);
            // The remaining columns of the block.
            sums.fill(0.0);
            for (i, &w) in (column..m).zip(&x) {
                axpy(&mut sums[j + 1..], w, &a[i * n + column + 1..i * n + start + width]);
            }
            for (i, &w) in (column..m).zip(&x) {
                axpy(&mut a[i * n + column + 1..i * n + start + width], -tau * w, &sums[j + 1..]);
                a[i * n + column] = 0.0;
                v[(i - start) * width + j] = w;
            }
            a[column * n + column] = to;
            // Column j of T: -tau T (V' v).
            let mut inner = vec![0.0; j];
            for i in j..rows {
                axpy(&mut inner, v[i * width + j], &v[i * width..i * width + j]);
            }
            for i in 0..j {
                t[i * width + j] = -tau * (i..j).map(|l| t[i * width + l] * inner[l]).sum::<f64>();
            }
            t[j * width + j] = tau;
        }
        Reflections { start, width, v, t }
    }

    /// Applies the product of the reflections, or its transpose, to the columns of `c` from `first` on; `c` has `m` rows
    /// and `n` columns.
    fn apply(&self, c: &mut [f64], (m, n): (usize, usize), first: usize, adjoint: bool) {
        let (rows, width, columns) = (m - self.start, self.width, n - first.min(n));
        if columns == 0 {
            return;
        }
        let c = &mut c[self.start * n + first..];
        let mut inner = vec![0.0; width * columns];
        add_product(
            &mut inner,
            columns,
            (width, rows, columns),
            Block::transposed(&self.v, width),
            Block::rows(c, n),
        );
        let minus: Vec<f64> = self.t.iter().map(|v| -v).collect();
        let t = if adjoint { Block::transposed(&minus, width) } else { Block::rows(&minus, width) };
        let mut moved = vec![0.0; width * columns];
        add_product(&mut moved, columns, (width, width, columns), t, Block::rows(&inner, columns));
        add_product(c, n, (rows, width, columns), Block::rows(&self.v, width), Block::rows(&moved, columns));
    }
}

/// Replaces a matrix by `R` and returns the reflections whose product is `Q`.
pub fn factor(a: &mut [f64], m: usize, n: usize) -> Vec<Reflections> {
    let depth = m.min(n);
    (0..depth)
        .step_by(WIDTH)
        .map(|start| {
            let width = WIDTH.min(depth - start);
            let block = Reflections::of(a, m, n, start, width);
            block.apply(a, (m, n), start + width, true);
            block
        })
        .collect()
}

/// The first `columns` columns of `Q`.
pub fn orthogonal(reflections: &[Reflections], m: usize, columns: usize) -> Vec<f64> {
    let mut q = identity(m, columns);
    for block in reflections.iter().rev() {
        // In the columns further left, these rows are still zero.
        block.apply(&mut q, (m, columns), block.start, false);
    }
    q
}

/// `Q` with as many columns as the shorter side, or square if `complete`, and `R` to match.
pub fn qr(x: &Array, complete: bool) -> Result<[Array; 2]> {
    let given = Matrices::of(x)?;
    let (m, n, all) = (given.m, given.n, given.all()?);
    let k = if complete { m } else { m.min(n) };
    let (q, r) = (given.fresh(&[m, k])?, given.fresh(&[k, n])?);
    given.each("qr", 2 * given.work(), |i| {
        let mut a = all[i * m * n..(i + 1) * m * n].to_vec();
        let reflections = factor(&mut a, m, n);
        r.matrix(i).copy_from_slice(&a[..k * n]);
        q.matrix(i).copy_from_slice(&orthogonal(&reflections, m, k));
        Ok(())
    })?;
    Ok([q.finish(given.dtype)?, r.finish(given.dtype)?])
}
