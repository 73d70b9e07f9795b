//! Compares matrix products with their definition.

use super::*;
use crate::math::real::{Pointwise, Real};

#[derive(Clone, Copy)]
struct Relu;

impl Pointwise<1> for Relu {
    fn apply<R: Real>(&self, [x]: [R; 1]) -> R {
        R::select(x.le(R::lit(0.0)), R::lit(0.0), x)
    }
}

fn check(a: &Array, b: &Array, tolerance: f64) -> Result<()> {
    let got = same_for_any_threads(|| matmul(a, b))?;
    let rank = a.rank();
    let (m, k, n) = (a.dim(rank - 2), a.dim(rank - 1), b.dim(rank - 1));
    let batch = got.shape().part(0, rank - 2).to_vec();
    let stretch = |x: &Array, rows, columns| {
        x.expand(&Shape::new(&[&batch[..], &[rows, columns]].concat())?).map(|x| values(&x))
    };
    let (x, y) = (stretch(a, m, k)?, stretch(b, k, n)?);
    for (i, got) in values(&got).iter().enumerate() {
        let (item, row, column) = (i / (m * n), i / n % m, i % n);
        let want: f64 = (0..k).map(|l| x[(item * m + row) * k + l] * y[(item * k + l) * n + column]).sum();
        assert!((got - want).abs() <= tolerance * (k as f64).sqrt(), "{a:?} {b:?}: {got} {want}");
    }
    Ok(())
}

#[test]
fn every_dtype_layout_and_size() -> Result<()> {
    for (dtype, tolerance) in [
        (DType::F32, 4e-6),
        (DType::F64, 1e-14),
        (DType::I32, 0.0),
        (DType::I64, 0.0),
        (DType::F16, 0.02),
        (DType::BF16, 0.1),
    ] {
        for (m, k, n) in [(1, 1, 1), (3, 5, 2), (1, 40, 30), (30, 40, 1), (17, 9, 33)] {
            for a in layouts(&[m, k], dtype)?.into_iter().take(4) {
                for b in layouts(&[k, n], dtype)?.into_iter().take(4) {
                    check(&a, &b, tolerance)?;
                }
            }
        }
    }
    Ok(())
}

#[test]
fn an_epilogue_is_what_follows_the_product() -> Result<()> {
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        let (a, b) = (sample(&[2, 3, 5], dtype)?, sample(&[1, 5, 4], dtype)?);
        let plain = values(&matmul(&a, &b)?);
        for (bias, row) in [(sample(&[4], dtype)?, false), (sample(&[3, 1], dtype)?, true)] {
            let epilogue = Epilogue { alpha: 0.5, bias: Some(&bias), act: Some(&Relu) };
            let got = same_for_any_threads(|| matmul_with(&a, &b, &epilogue))?;
            let bias = values(&bias);
            for (i, (got, plain)) in values(&got).iter().zip(&plain).enumerate() {
                let want = (0.5 * plain + bias[if row { i / 4 % 3 } else { i % 4 }]).max(0.0);
                assert!((got - want).abs() <= if dtype == DType::BF16 { 0.05 } else { 1e-6 }, "{got} {want}");
            }
        }
    }
    Ok(())
}

#[test]
fn batches_broadcast() -> Result<()> {
    for dtype in [DType::F32, DType::I32] {
        for (a, b) in [
            (&[4, 3, 5][..], &[1, 5, 2][..]),
            (&[1, 3, 5], &[4, 5, 2]),
            (&[2, 1, 3, 5], &[1, 6, 5, 2]),
            (&[2, 6, 3, 5], &[1, 1, 5, 20]),
            (&[0, 3, 5], &[1, 5, 2]),
            (&[2, 3, 0], &[1, 0, 2]),
        ] {
            for a in layouts(a, dtype)?.into_iter().take(3) {
                for b in layouts(b, dtype)?.into_iter().take(3) {
                    check(&a, &b, 4e-6)?;
                }
            }
        }
    }
    Ok(())
}

#[test]
fn large_and_deep_products() -> Result<()> {
    for (m, k, n) in [(500, 40, 430), (1000, 100, 90), (30, 20_000, 8), (1, 9000, 1), (1, 700, 13_000)] {
        check(&sample(&[m, k], DType::F32)?, &sample(&[k, n], DType::F32)?, 1e-5)?;
    }
    check(&sample(&[3, 4, 9000], DType::F64)?, &sample(&[1, 9000, 5], DType::F64)?, 1e-13)
}
