//! Functions of matrices that the factorisations give: determinant, cofactors, pseudoinverse, exponential.

use super::lu;
use super::rows::{Block, add_product, identity, product};
use super::svd::{Parts, decompose};
use super::{Failure, Matrices};
use crate::array::Array;
use crate::error::Result;

/// The factors of a square matrix, and the sign of the permutation.
fn factors(a: &[f64], n: usize) -> (Vec<f64>, Vec<i64>, f64) {
    let (mut lu, mut order, mut exchanges) = (a.to_vec(), vec![0; n], vec![0; n]);
    lu::factor(&mut lu, n, n, &mut order, &mut exchanges);
    let odd = exchanges.iter().zip(1..).filter(|&(&to, i)| to != i).count() % 2 == 1;
    (lu, order, if odd { -1.0 } else { 1.0 })
}

fn diagonal(a: &[f64], n: usize) -> impl Iterator<Item = f64> {
    (0..n).map(move |i| a[i * n + i])
}

/// The determinant of every matrix.
pub fn det(x: &Array) -> Result<Array> {
    let given = Matrices::of(x)?;
    let (n, all) = (given.n, given.all()?);
    let out = given.fresh(&[])?;
    given.each("det", given.work(), |i| {
        let (lu, _, sign) = factors(&all[i * n * n..(i + 1) * n * n], n);
        out.matrix(i)[0] = sign * diagonal(&lu, n).product::<f64>();
        Ok(())
    })?;
    out.finish(given.dtype)
}

/// Ratio of pivots from which on a matrix is inverted rather than decomposed.
const SAFE: f64 = 1e-4;

/// The matrix of cofactors of every matrix, the gradient of its determinant; singular matrices have one too.
pub fn cofactor(x: &Array) -> Result<Array> {
    let given = Matrices::of(x)?;
    let (n, all) = (given.n, given.all()?);
    let out = given.fresh(&[n, n])?;
    given.each("det", 4 * given.work(), |i| {
        let a = &all[i * n * n..(i + 1) * n * n];
        out.matrix(i).copy_from_slice(&cofactors(a, n)?);
        Ok(())
    })?;
    out.finish(given.dtype)
}

/// `det(A)` times the inverse of `A'`; where that is close to 0/0, by the singular values: those of the matrix of
/// cofactors are the products of all others.
fn cofactors(a: &[f64], n: usize) -> Result<Vec<f64>, Failure> {
    let (lu, order, sign) = factors(a, n);
    let sizes = diagonal(&lu, n).map(f64::abs);
    let (least, most) = sizes.fold((f64::INFINITY, 0.0f64), |(l, m), v| (l.min(v), m.max(v)));
    if n > 0 && least > SAFE * most {
        let det = sign * diagonal(&lu, n).product::<f64>();
        let mut out = vec![0.0; n * n];
        lu::substitute(&lu, &order, &identity(n, n), &mut out, n, true);
        out.iter_mut().for_each(|v| *v *= det);
        return Ok(out);
    }
    let Parts { u, s, v } = decompose(a, n, n)?;
    let (turn, _, odd) = factors(&product(&u, &v, (n, n, n)), n);
    let turn = (odd * diagonal(&turn, n).product::<f64>()).signum();
    let mut scaled = v;
    for i in 0..n {
        let others: f64 = (0..n).filter(|&k| k != i).map(|k| s[k]).product();
        scaled[i * n..(i + 1) * n].iter_mut().for_each(|v| *v *= turn * others);
    }
    Ok(product(&u, &scaled, (n, n, n)))
}

/// Which singular values count as zero: those of at most `absolute`, and of at most `relative` times the largest.
#[derive(Clone, Copy, Debug)]
pub struct Cutoff {
    /// In units of the matrix.
    pub absolute: f64,
    /// In units of its largest singular value.
    pub relative: f64,
}

/// The Moore-Penrose inverse of every matrix.
pub fn pinv(x: &Array, cutoff: Cutoff) -> Result<Array> {
    let given = Matrices::of(x)?;
    let (m, n, all) = (given.m, given.n, given.all()?);
    let k = m.min(n);
    let out = given.fresh(&[n, m])?;
    given.each("pinv", 20 * given.work(), |i| {
        let Parts { u, s, mut v } = decompose(&all[i * m * n..(i + 1) * m * n], m, n)?;
        let least = cutoff.absolute.max(cutoff.relative * s.first().copied().unwrap_or(0.0));
        for (row, &s) in v.chunks_exact_mut(n.max(1)).zip(&s) {
            let scale = if s > least { 1.0 / s } else { 0.0 };
            row.iter_mut().for_each(|v| *v *= scale);
        }
        let (v, u) = (Block::transposed(&v, n), Block::transposed(&u, k));
        let to = out.matrix(i);
        to.fill(0.0);
        add_product(to, m, (n, k, m), v, u);
        Ok(())
    })?;
    out.finish(given.dtype)
}

/// The exponential of every matrix.
pub fn matrix_exp(x: &Array) -> Result<Array> {
    let given = Matrices::of(x)?;
    let (n, all) = (given.n, given.all()?);
    let out = given.fresh(&[n, n])?;
    given.each("matrix_exp", 12 * given.work(), |i| {
        out.matrix(i).copy_from_slice(&exponential(&all[i * n * n..(i + 1) * n * n], n));
        Ok(())
    })?;
    out.finish(given.dtype)
}

/// The coefficients of the Pade approximant of degree 13, `(26 - j)! / (j! (13 - j)!)`, over the last of them.
const PADE: [f64; 14] = [
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
];

/// The norm up to which that approximant is exact to rounding.
const NEAR: f64 = 5.37;

/// Scaling and squaring (Higham, "The scaling and squaring method for the matrix exponential revisited", 2005).
fn exponential(a: &[f64], n: usize) -> Vec<f64> {
    let norm = (0..n).map(|j| (0..n).map(|i| a[i * n + j].abs()).sum::<f64>()).fold(0.0, f64::max);
    if !norm.is_finite() || a.iter().any(|v| v.is_nan()) {
        return vec![f64::NAN; n * n];
    }
    // Beyond this many squarings everything but zero has left the range.
    let halvings = (norm / NEAR).log2().ceil().clamp(0.0, 1074.0) as i32;
    let a: Vec<f64> = a.iter().map(|v| v * 0.5f64.powi(halvings)).collect();
    let shape = (n, n, n);
    let a2 = product(&a, &a, shape);
    let a4 = product(&a2, &a2, shape);
    let a6 = product(&a4, &a2, shape);
    // c[0] I + c[1] A^2 + c[2] A^4 + c[3] A^6
    let mixed = |c: [f64; 4]| -> Vec<f64> {
        let mut out: Vec<f64> = (0..n * n).map(|i| c[1] * a2[i] + c[2] * a4[i] + c[3] * a6[i]).collect();
        (0..n).for_each(|i| out[i * n + i] += c[0]);
        out
    };
    let b = &PADE;
    let add = |x: Vec<f64>, y: Vec<f64>| -> Vec<f64> { x.iter().zip(&y).map(|(x, y)| x + y).collect() };
    let odd = add(product(&a6, &mixed([0.0, b[9], b[11], b[13]]), shape), mixed([b[1], b[3], b[5], b[7]]));
    let odd = product(&a, &odd, shape);
    let even = add(product(&a6, &mixed([0.0, b[8], b[10], b[12]]), shape), mixed([b[0], b[2], b[4], b[6]]));
    let below: Vec<f64> = even.iter().zip(&odd).map(|(e, o)| e - o).collect();
    let above = add(even, odd);
    let (lu, order, _) = factors(&below, n);
    let mut out = vec![0.0; n * n];
    lu::substitute(&lu, &order, &above, &mut out, n, false);
    for _ in 0..halvings {
        out = product(&out, &out, shape);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_coefficients_are_those_of_the_formula() {
        let factorial = |n: u32| (1..=n).map(f64::from).product::<f64>();
        for (j, &b) in (0u32..).zip(&PADE) {
            let exact = factorial(26 - j) / (factorial(j) * factorial(13 - j));
            assert!((b - exact).abs() <= 1e-14 * exact, "{j}: {b} {exact}");
        }
    }
}
