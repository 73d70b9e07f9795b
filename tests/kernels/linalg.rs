//! Tests of the factorisations at sizes on both sides of a block, and with any number of threads.

use super::*;
use crate::arguments::linalg::Triangle;
use crate::array::complex::Complex;
use crate::cpu::prelude::*;

/// Returns a well-conditioned matrix: the sample with a heavy diagonal.
fn heavy(batch: usize, m: usize, n: usize) -> Result<Array> {
    let x = sample(&[batch, m, n], DType::F64)?;
    let mut v = values(&x);
    for k in 0..batch {
        (0..m.min(n)).for_each(|i| v[(k * m + i) * n + i] += 3.0 * (m + n) as f64);
    }
    Array::from_slice(&v, Shape::new(&[batch, m, n])?)
}

fn one(x: &Array, k: usize) -> Vec<f64> {
    let size = x.dim(1) * x.dim(2);
    values(x)[k * size..(k + 1) * size].to_vec()
}

fn near(got: &[f64], expected: &[f64]) {
    let size = expected.iter().fold(1.0f64, |m, v| m.max(v.abs()));
    assert_eq!(got.len(), expected.len());
    for (a, b) in got.iter().zip(expected) {
        assert!((a - b).abs() <= 1e-12 * size, "{a} {b}");
    }
}

fn product(a: &[f64], b: &[f64], (m, k, n): (usize, usize, usize)) -> Vec<f64> {
    let element = |i: usize, j: usize| (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum();
    (0..m * n).map(|at| element(at / n, at % n)).collect()
}

fn transposed(a: &[f64], m: usize, n: usize) -> Vec<f64> {
    (0..n * m).map(|at| a[at % m * n + at / m]).collect()
}

fn identity(m: usize, n: usize) -> Vec<f64> {
    (0..m * n).map(|at| if at / n == at % n { 1.0 } else { 0.0 }).collect()
}

const SHAPES: [(usize, usize); 9] =
    [(1, 1), (3, 2), (2, 3), (31, 31), (48, 48), (49, 33), (33, 70), (100, 100), (130, 97)];

#[test]
fn factors_multiply_to_the_matrix() -> Result<()> {
    for (m, n) in SHAPES {
        let x = heavy(2, m, n)?;
        let k = m.min(n);
        let [packed, order, _] = lu(&x)?;
        let (q, s, parts) = (qr(&x, false)?, svd(&x)?, qr(&x, true)?);
        for i in 0..2 {
            let a = one(&x, i);
            let (lu, order) = (one(&packed, i), &values(&order)[i * m..(i + 1) * m]);
            let (mut l, mut u) = (vec![0.0; m * k], vec![0.0; k * n]);
            for r in 0..m {
                for c in 0..n {
                    if c < r { l[r * k + c] = lu[r * n + c] } else { u[r * n + c] = lu[r * n + c] }
                }
                if r < k {
                    l[r * k + r] = 1.0;
                }
            }
            let rows: Vec<f64> =
                order.iter().flat_map(|&r| a[r as usize * n..][..n].iter().copied()).collect();
            near(&product(&l, &u, (m, k, n)), &rows);
            near(&product(&one(&q[0], i), &one(&q[1], i), (m, k, n)), &a);
            near(&product(&one(&parts[0], i), &one(&parts[1], i), (m, m, n)), &a);
            let full = one(&parts[0], i);
            near(&product(&transposed(&full, m, m), &full, (m, m, m)), &identity(m, m));
            let mut us = one(&s[0], i);
            let sv = &values(&s[1])[i * k..(i + 1) * k];
            us.iter_mut().enumerate().for_each(|(at, v)| *v *= sv[at % k]);
            near(&product(&us, &one(&s[2], i), (m, k, n)), &a);
            assert!(sv.is_sorted_by(|a, b| a >= b) && sv[k - 1] >= 0.0);
        }
    }
    Ok(())
}

#[test]
fn symmetric_matrices() -> Result<()> {
    for (n, _) in SHAPES {
        let x = heavy(1, n, n)?;
        let a = one(&x, 0);
        let symmetric: Vec<f64> = a.iter().zip(&transposed(&a, n, n)).map(|(x, y)| x + y).collect();
        let x = Array::from_slice(&symmetric, Shape::new(&[1, n, n])?)?;
        let l = one(&cholesky(&x)?, 0);
        near(&product(&l, &transposed(&l, n, n), (n, n, n)), &symmetric);
        let [w, v] = eigh(&x)?;
        let (w, v) = (values(&w), one(&v, 0));
        let mut scaled = v.clone();
        scaled.iter_mut().enumerate().for_each(|(at, x)| *x *= w[at % n]);
        near(&product(&scaled, &transposed(&v, n, n), (n, n, n)), &symmetric);
        near(&product(&transposed(&v, n, n), &v, (n, n, n)), &identity(n, n));
        assert!(w.is_sorted());
    }
    Ok(())
}

#[test]
fn systems_of_equations() -> Result<()> {
    for (n, columns) in SHAPES {
        let (a, b) = (heavy(1, n, n)?, sample(&[1, n, columns], DType::F64)?);
        let [packed, order, _] = lu(&a)?;
        for adjoint in [false, true] {
            let x = one(&lu_solve("solve", &packed, &order, &b, adjoint)?, 0);
            let matrix = if adjoint { transposed(&one(&a, 0), n, n) } else { one(&a, 0) };
            near(&product(&matrix, &x, (n, n, columns)), &one(&b, 0));
        }
        let full = one(&a, 0);
        for (upper, unit) in [(false, false), (true, false)] {
            let mut t = full.clone();
            (0..n * n).filter(|&i| (i % n > i / n) != upper && i % n != i / n).for_each(|i| t[i] = 0.0);
            let x = one(&triangular_solve(&a, &b, Triangle { upper, unit })?, 0);
            near(&product(&t, &x, (n, n, columns)), &one(&b, 0));
        }
    }
    Ok(())
}

#[test]
fn singular_matrices() -> Result<()> {
    // Rank one, zero, and a repeated singular value.
    let ones = Array::from_slice(&[1.0f64; 16], Shape::new(&[1, 4, 4])?)?;
    let [u, s, v] = svd(&ones)?;
    near(&values(&s), &[4.0, 0.0, 0.0, 0.0]);
    for x in [&u, &v] {
        near(&product(&one(x, 0), &transposed(&one(x, 0), 4, 4), (4, 4, 4)), &identity(4, 4));
    }
    let zero = Array::from_slice(&[0.0f64; 6], Shape::new(&[1, 3, 2])?)?;
    assert_eq!(values(&svd(&zero)?[1]), [0.0, 0.0]);
    near(&values(&pinv(&ones, Cutoff { absolute: 0.0, relative: 1e-12 })?), &[1.0 / 16.0; 16]);
    near(&values(&cofactor(&ones)?), &[0.0; 16]);
    let rank_one = Array::from_slice(&[1.0f64, 2.0, 2.0, 4.0], Shape::new(&[1, 2, 2])?)?;
    near(&values(&cofactor(&rank_one)?), &[4.0, -2.0, -2.0, 1.0]);
    let [packed, order, _] = lu(&rank_one)?;
    let error = lu_solve("inv", &packed, &order, &rank_one, false).map(|_| ()).err();
    let text = "inv: matrix [0] of the batch is singular: pivot 2 of its LU factorisation is zero; \
                linalg.lstsq and \
                linalg.pinv take it";
    assert_eq!(error.map(|e| e.to_string()).as_deref(), Some(text));
    Ok(())
}

#[test]
fn complex_numbers_at_the_end_of_the_range() -> Result<()> {
    let least = Complex { re: 5e-324f64, im: 0.0 };
    let x =
        Array::from_slice(&[least, least, least, Complex { re: 0.0, im: 1e-323 }], Shape::new(&[1, 2, 2])?)?;
    let [q, r] = qr(&x, false)?;
    let (q, r) = (values(&q.as_real()?), values(&r.as_real()?));
    near(&[q.iter().map(|v| v * v).sum::<f64>()], &[2.0]);
    assert!(r[0] != 0.0 && r[1] == 0.0 && r.iter().all(|v| v.is_finite()));
    let packed = values(&lu(&x)?[0].as_real()?);
    assert!(packed.iter().all(|v| v.is_finite()));
    Ok(())
}

#[test]
fn threads_do_not_change_a_bit() -> Result<()> {
    for (batch, n) in [(1, 200), (40, 30)] {
        let x = heavy(batch, n, n)?;
        same_for_any_threads(|| Ok(lu(&x)?[0].clone()))?;
        same_for_any_threads(|| Ok(qr(&x, false)?[0].clone()))?;
        same_for_any_threads(|| Ok(eigh(&x)?[1].clone()))?;
        same_for_any_threads(|| Ok(svd(&x)?[0].clone()))?;
        same_for_any_threads(|| matrix_exp(&x))?;
    }
    Ok(())
}
