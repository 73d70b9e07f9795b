//! Tests of reductions, products, normalisation, indexing and random numbers against float64 loops.

use super::super::{copy, gather, matmul, norm, random, recurrence, reduce, scan};
use super::{host, ramp, serial, values};
use crate::array::Array;
use crate::array::dtype::DType;
use crate::array::shape::{Axes, Shape};
use crate::cpu;
use crate::error::{Kind, Result};
use crate::gpu;

/// Numbers without a pattern in -1..1.
pub(super) fn noise(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_769) | 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

pub(super) fn on_gpu(values: &[f32], dims: &[usize], dtype: DType) -> Result<Array> {
    copy::cast(&gpu::upload(&host(values, dims)?, 0)?, dtype)
}

/// The elements as float64, read through float32.
pub(super) fn floats(x: &Array) -> Result<Vec<f64>> {
    Ok(values::<f32>(&copy::cast(x, DType::F32)?)?.into_iter().map(f64::from).collect())
}

/// Asserts that all elements agree to `relative` times the largest expected one.
pub(super) fn assert_close(got: &[f64], expected: &[f64], relative: f64, what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(1e-30, |m: f64, v| m.max(v.abs()));
    for (i, (a, b)) in got.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= relative * scale, "{what}: element {i} is {a}, expected {b}");
    }
}

fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 1e-3,
        DType::BF16 => 8e-3,
        _ => 2e-6,
    }
}

const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

#[test]
#[ignore = "needs a GPU adapter"]
fn sums_over_any_axes() -> Result<()> {
    let _serial = serial();
    for dtype in FLOATS {
        let x = on_gpu(&noise(5 * 7 * 9, 1), &[5, 7, 9], dtype)?;
        let full = floats(&x)?;
        let permuted = x.permute(&[2, 0, 1])?;
        for bits in 1..8u8 {
            let axes: Axes = (0..3).filter(|i| bits >> i & 1 == 1).collect();
            let got = reduce::sum(&permuted, axes, false)?;
            let mut expected = vec![0.0; got.numel()];
            let strides = permuted.shape().reduced(axes, true).strides();
            for (i, v) in full.iter().enumerate() {
                let at = [i % 9, i / 63, i / 9 % 7];
                let to: usize =
                    (0..3).filter(|&a| !axes.contains(a)).map(|a| at[a] * strides[a] as usize).sum();
                expected[to] += v;
            }
            assert_close(&floats(&got)?, &expected, tolerance(dtype), &format!("{dtype} {axes:?}"));
        }
    }
    Ok(())
}

#[test]
#[ignore = "needs a GPU adapter"]
fn long_reductions_are_cut_and_exact() -> Result<()> {
    let _serial = serial();
    let n = 100_003;
    let x = gpu::upload(&host(&vec![1.0f32; n], &[n])?, 0)?;
    assert_eq!(values::<f32>(&reduce::sum(&x, Axes::one(0), false)?)?, [n as f32]);
    let i = copy::cast(&gpu::upload(&host(&ramp(n), &[n])?, 0)?, DType::I32)?;
    assert_eq!(values::<i32>(&reduce::max(&i, Axes::one(0), true)?)?, [n as i32 - 1]);
    assert_eq!(values::<i32>(&reduce::min(&i, Axes::one(0), true)?)?, [0]);
    let mut row = noise(n, 2);
    row[70_000] = f32::NEG_INFINITY;
    let x = gpu::upload(&host(&row, &[n])?, 0)?;
    assert_eq!(values::<f32>(&reduce::min(&x, Axes::one(0), false)?)?, [f32::NEG_INFINITY]);
    row[n - 1] = f32::NAN;
    let x = gpu::upload(&host(&row, &[n])?, 0)?;
    assert!(values::<f32>(&reduce::max(&x, Axes::one(0), false)?)?[0].is_nan());
    assert_eq!(values::<i32>(&reduce::argmax(&x, 0, false)?)?, [n as i32 - 1]);
    let columns = gpu::upload(&host(&ramp(20_000 * 3), &[20_000, 3])?, 0)?;
    let sums = floats(&reduce::sum(&columns, Axes::one(0), false)?)?;
    let expected: Vec<f64> = (0..3).map(|c| (0..20_000).map(|r| f64::from(r * 3 + c)).sum()).collect();
    assert_close(&sums, &expected, 1e-6, "columns");
    // Many short rows, wide columns, and both in 16 bits.
    for (rows, cols, axis) in [(700, 40, 1), (300, 70, 0), (2000, 33, 0), (9, 5000, 1), (5000, 9, 0)] {
        for dtype in FLOATS {
            let x = on_gpu(&noise(rows * cols, 21), &[rows, cols], dtype)?;
            let full = floats(&x)?;
            let mut expected = vec![0.0; if axis == 1 { rows } else { cols }];
            for (i, v) in full.iter().enumerate() {
                expected[if axis == 1 { i / cols } else { i % cols }] += v;
            }
            let got = floats(&reduce::sum(&x, Axes::one(axis), false)?)?;
            assert_close(&got, &expected, tolerance(dtype) * 4.0, &format!("{dtype} {rows} {cols} {axis}"));
        }
    }
    Ok(())
}

#[test]
#[ignore = "needs a GPU adapter"]
fn extremes_and_truth() -> Result<()> {
    let _serial = serial();
    let x = gpu::upload(
        &host(&[1.0f32, 3.0, 3.0, f32::NEG_INFINITY, f32::NEG_INFINITY, f32::NEG_INFINITY], &[2, 3])?,
        0,
    )?;
    assert_eq!(values::<f32>(&reduce::max(&x, Axes::one(1), false)?)?, [3.0, f32::NEG_INFINITY]);
    assert_eq!(values::<i32>(&reduce::argmax(&x, 1, false)?)?, [1, 0]);
    assert_eq!(values::<i32>(&reduce::argmin(&x, 0, true)?)?, [1, 1, 1]);
    let flags = gpu::upload(&host(&[false, true, true, true], &[2, 2])?, 0)?;
    assert_eq!(values::<bool>(&reduce::max(&flags, Axes::one(0), false)?)?, [true, true]);
    assert_eq!(values::<bool>(&reduce::min(&flags, Axes::one(1), false)?)?, [false, true]);
    let none = gpu::upload(&host::<f32>(&[], &[0, 2])?, 0)?;
    assert_eq!(values::<f32>(&reduce::sum(&none, Axes::one(0), false)?)?, [0.0, 0.0]);
    assert_eq!(values::<f32>(&reduce::prod(&none, Axes::one(0), false)?)?, [1.0, 1.0]);
    let i = copy::cast(&gpu::upload(&host(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?, 0)?, DType::I32)?;
    assert_eq!(values::<i32>(&scan::cumsum(&i, 0)?)?, [1, 2, 4, 6]);
    let long = gpu::upload(&host(&vec![1.0f32; 3000], &[3, 1000])?, 0)?;
    assert_eq!(values::<f32>(&scan::cumsum(&long, 1)?)?[1999], 1000.0);
    assert_eq!(values::<f32>(&scan::cumprod(&long, 0)?)?[5], 1.0);
    assert_eq!(values::<f32>(&recurrence::recurrence(&long, &long, 0)?)?[2999], 3.0);
    Ok(())
}

/// The product of `[b, m, k]` and `[b, k, n]`.
fn product(x: &[f64], y: &[f64], [b, m, k, n]: [usize; 4]) -> Vec<f64> {
    let at = |i: usize| (i / (m * n), i / n % m, i % n);
    (0..b * m * n)
        .map(|i| {
            let (b, r, c) = at(i);
            (0..k).map(|j| x[(b * m + r) * k + j] * y[(b * k + j) * n + c]).sum()
        })
        .collect()
}

#[test]
#[ignore = "needs a GPU adapter"]
fn products_of_any_shape_and_layout() -> Result<()> {
    let _serial = serial();
    for dtype in FLOATS {
        for size in [
            [1, 3, 4, 5],
            [2, 65, 17, 66],
            [3, 1, 33, 7],
            [2, 9, 40, 1],
            [1, 1, 5, 1],
            [1, 2, 0, 3],
            [2, 7, 7, 7],
        ] {
            let [b, m, k, n] = size;
            let x = on_gpu(&noise(b * m * k, 3), &[b, m, k], dtype)?;
            let y = on_gpu(&noise(b * k * n, 4), &[b, k, n], dtype)?;
            let expected = product(&floats(&x)?, &floats(&y)?, size);
            let what = format!("{dtype} {size:?}");
            assert_close(&floats(&matmul::matmul(&x, &y)?)?, &expected, tolerance(dtype), &what);
            let turn = |a: &Array| copy::convert(&a.permute(&[0, 2, 1])?, dtype)?.permute(&[0, 2, 1]);
            assert_close(
                &floats(&matmul::matmul(&turn(&x)?, &turn(&y)?)?)?,
                &expected,
                tolerance(dtype),
                &what,
            );
        }
    }
    Ok(())
}

#[test]
#[ignore = "needs a GPU adapter"]
fn products_broadcast_their_batches() -> Result<()> {
    let _serial = serial();
    let x = on_gpu(&noise(2 * 3 * 4, 5), &[2, 1, 1, 3, 4], DType::F32)?;
    let y = on_gpu(&noise(3 * 2 * 4 * 2, 6), &[1, 3, 2, 4, 2], DType::F32)?;
    let got = matmul::matmul(&x, &y)?;
    assert_eq!(got.shape(), Shape::new(&[2, 3, 2, 3, 2])?);
    let (xs, ys) = (floats(&x)?, floats(&y)?);
    let mut expected = Vec::new();
    for i in 0..12 {
        expected.extend(product(&xs[i / 6 * 12..][..12], &ys[i % 6 * 8..][..8], [1, 3, 4, 2]));
    }
    assert_close(&floats(&got)?, &expected, 2e-6, "broadcast");
    let i = copy::cast(&gpu::upload(&host(&ramp(6), &[2, 3])?, 0)?, DType::I32)?;
    assert_eq!(values::<i32>(&matmul::matmul(&i, &i.permute(&[1, 0])?)?)?, [5, 14, 14, 50]);
    Ok(())
}

#[test]
#[ignore = "needs a GPU adapter"]
fn softmax_and_its_vjp() -> Result<()> {
    let _serial = serial();
    for (dtype, cols) in [
        (DType::F32, 5),
        (DType::F32, 300),
        (DType::F32, 1500),
        (DType::F32, 5000),
        (DType::F16, 9),
        (DType::BF16, 8),
    ] {
        let x = on_gpu(&noise(3 * cols, 7), &[3, cols], dtype)?;
        let g = on_gpu(&noise(3 * cols, 8), &[3, cols], dtype)?;
        for log in [false, true] {
            let y = norm::softmax(&x, log)?;
            let dx = norm::softmax_vjp(&g, &y, log)?;
            let (xs, gs, ys) = (floats(&x)?, floats(&g)?, floats(&y)?);
            let (mut want_y, mut want_dx) = (Vec::new(), Vec::new());
            for r in 0..3 {
                let row = r * cols..(r + 1) * cols;
                let lse = xs[row.clone()].iter().map(|v| v.exp()).sum::<f64>().ln();
                want_y.extend(xs[row.clone()].iter().map(|v| if log { v - lse } else { (v - lse).exp() }));
                let p = |i: usize| if log { ys[i].exp() } else { ys[i] };
                let dot: f64 = row.clone().map(|i| if log { gs[i] } else { gs[i] * ys[i] }).sum();
                want_dx.extend(row.map(|i| if log { gs[i] - p(i) * dot } else { p(i) * (gs[i] - dot) }));
            }
            let what = format!("{dtype} {cols} {log}");
            assert_close(&floats(&y)?, &want_y, tolerance(dtype) * 2.0, &what);
            assert_close(&floats(&dx)?, &want_dx, tolerance(dtype) * 4.0, &what);
        }
    }
    Ok(())
}

#[test]
#[ignore = "needs a GPU adapter"]
fn layer_norm_and_its_vjp() -> Result<()> {
    let _serial = serial();
    for (dtype, rows, cols) in
        [(DType::F32, 5, 6), (DType::F32, 40, 300), (DType::F32, 2, 4200), (DType::F16, 3, 7)]
    {
        let x = on_gpu(&noise(rows * cols, 9), &[rows, cols], dtype)?;
        let g = on_gpu(&noise(rows * cols, 10), &[rows, cols], dtype)?;
        let w = on_gpu(&noise(cols, 11), &[cols], dtype)?;
        let b = on_gpu(&noise(cols, 12), &[cols], dtype)?;
        let (y, mean, rstd) = norm::layer_norm(&x, Some(&w), Some(&b), 1, 1e-5)?;
        let (dx, dw, db) = norm::layer_norm_vjp(&g, &x, Some(&w), &mean, &rstd, 1)?;
        let (xs, gs, ws, bs) = (floats(&x)?, floats(&g)?, floats(&w)?, floats(&b)?);
        let (mut want_y, mut want_dx, mut want_dw, mut want_db) =
            (vec![], vec![], vec![0.0; cols], vec![0.0; cols]);
        let n = cols as f64;
        for r in 0..rows {
            let row = &xs[r * cols..][..cols];
            let m = row.iter().sum::<f64>() / n;
            let s = (row.iter().map(|v| (v - m).powi(2)).sum::<f64>() / n + 1e-5).sqrt().recip();
            let unit: Vec<f64> = row.iter().map(|v| (v - m) * s).collect();
            let h: Vec<f64> = (0..cols).map(|c| gs[r * cols + c] * ws[c]).collect();
            let (a, d) =
                (h.iter().sum::<f64>() / n, h.iter().zip(&unit).map(|(h, u)| h * u).sum::<f64>() / n);
            for c in 0..cols {
                want_y.push(unit[c] * ws[c] + bs[c]);
                want_dx.push(s * (h[c] - a - unit[c] * d));
                want_dw[c] += gs[r * cols + c] * unit[c];
                want_db[c] += gs[r * cols + c];
            }
        }
        let t = tolerance(dtype) * 3.0;
        assert_close(&floats(&y)?, &want_y, t, "y");
        assert_close(&floats(&dx)?, &want_dx, t, "dx");
        assert_close(&floats(&dw)?, &want_dw, t, "dw");
        assert_close(&floats(&db)?, &want_db, t, "db");
    }
    Ok(())
}

#[test]
#[ignore = "needs a GPU adapter"]
fn cross_entropy_its_vjp_and_its_errors() -> Result<()> {
    let _serial = serial();
    let x = on_gpu(&noise(4 * 5, 13), &[4, 5], DType::F32)?;
    let target = gpu::upload(&host(&[0i32, 4, -100, 2], &[4])?, 0)?;
    let (loss, lse) = norm::cross_entropy(&x, &target, -100)?;
    let g = gpu::upload(&host(&[1.0f32, 2.0, 3.0, 4.0], &[4])?, 0)?;
    let dx = floats(&norm::cross_entropy_vjp(&g, &x, &target, &lse, -100)?)?;
    let xs = floats(&x)?;
    let (mut want_loss, mut want_dx) = (vec![], vec![]);
    for (r, t) in [Some(0), Some(4), None, Some(2)].into_iter().enumerate() {
        let row = &xs[r * 5..][..5];
        let norm = row.iter().map(|v| v.exp()).sum::<f64>().ln();
        want_loss.push(t.map_or(0.0, |t: usize| norm - row[t]));
        let hit = |c| f64::from(u8::from(Some(c) == t));
        want_dx.extend((0..5).map(|c| t.map_or(0.0, |_| (r + 1) as f64 * ((row[c] - norm).exp() - hit(c)))));
    }
    assert_close(&floats(&loss)?, &want_loss, 2e-6, "loss");
    assert_close(&dx, &want_dx, 2e-6, "dx");
    let wrong = gpu::upload(&host(&[0i32, 5, 1, 2], &[4])?, 0)?;
    let (loss, _) = norm::cross_entropy(&x, &wrong, -100)?;
    let e = gpu::download(&loss).err().map(|e| (e.kind(), e.to_string()));
    let text = "cross_entropy: index 5 is out of range for 5 classes, expected 0..4".to_string();
    assert_eq!(e, Some((Kind::Index, text)));
    assert!(gpu::download(&loss).is_ok());
    Ok(())
}

#[test]
#[ignore = "needs a GPU adapter"]
fn indexing_and_its_transposes() -> Result<()> {
    let _serial = serial();
    for dtype in [DType::F32, DType::F16, DType::I32] {
        let x = copy::cast(&gpu::upload(&host(&ramp(12), &[3, 4])?, 0)?, dtype)?;
        let idx = gpu::upload(&host(&[2i32, -3, 2], &[3, 1])?, 0)?;
        let rows = gather::take(&x, &idx, 0)?;
        assert_eq!(rows.shape(), Shape::new(&[3, 1, 4])?);
        assert_eq!(floats(&rows)?, [8.0, 9.0, 10.0, 11.0, 0.0, 1.0, 2.0, 3.0, 8.0, 9.0, 10.0, 11.0]);
        let back = gather::take_add(&rows, &idx, 0, &x.shape())?;
        assert_eq!(floats(&back)?, [0.0, 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 16.0, 18.0, 20.0, 22.0]);
        let picked = gather::gather(&x, &idx, 1)?;
        assert_eq!(floats(&picked)?, [2.0, 5.0, 10.0]);
        let spread = gather::scatter_add(&picked, &idx, 1, &x.shape())?;
        assert_eq!(floats(&spread)?, [0.0, 0.0, 2.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 0.0, 10.0, 0.0]);
        let padded = gather::pad(&x, &Shape::new(&[3, 7])?, &[0, 6], &[1, -2], 9.0)?;
        assert_eq!(floats(&padded)?[..7], [3.0, 9.0, 2.0, 9.0, 1.0, 9.0, 0.0]);
    }
    let x = gpu::upload(&host(&ramp(4), &[4])?, 0)?;
    let out = gather::take(&x, &gpu::upload(&host(&[4i32], &[1])?, 0)?, 0)?;
    let e = gpu::synchronize(0).err().map(|e| e.to_string()).unwrap_or_default();
    assert_eq!(e, "take: index 4 is out of range for an axis of size 4, expected -4..3");
    assert_eq!(values::<f32>(&out)?, [0.0]);
    Ok(())
}

#[test]
#[ignore = "needs a GPU adapter"]
fn random_streams() -> Result<()> {
    let _serial = serial();
    let shape = Shape::new(&[4003])?;
    let u = floats(&random::uniform(0, shape, DType::F32, 7, 3)?)?;
    assert!(u.iter().all(|v| (0.0..1.0).contains(v)));
    let mean = u.iter().sum::<f64>() / 4003.0;
    assert!((mean - 0.5).abs() < 0.02, "{mean}");
    let later = floats(&random::uniform(0, Shape::new(&[8])?, DType::F32, 7, 5)?)?;
    assert_eq!(later, u[8..16]);
    let z = floats(&random::normal(0, shape, DType::F32, 7, 3)?)?;
    let second = z.iter().map(|v| v * v).sum::<f64>() / 4003.0;
    assert!((second - 1.0).abs() < 0.08, "{second}");
    let k = values::<i32>(&random::randint(0, shape, DType::I32, -3, 4, 7, 3)?)?;
    assert!(k.iter().all(|v| (-3..4).contains(v)) && k.contains(&-3) && k.contains(&3));
    let half = floats(&random::uniform(0, Shape::new(&[20_001])?, DType::BF16, 1, 0)?)?;
    assert!(half.iter().all(|&v| v < 1.0));
    Ok(())
}

#[test]
#[ignore = "needs a GPU adapter"]
fn both_devices_draw_the_same_stream() -> Result<()> {
    let _serial = serial();
    let shape = Shape::new(&[1001])?;
    for (seed, offset) in [(7, 3), (u64::MAX, u64::from(u32::MAX) - 5)] {
        let (a, b) = (
            cpu::random::uniform(shape, DType::F32, seed, offset)?,
            gpu::download(&random::uniform(0, shape, DType::F32, seed, offset)?)?,
        );
        assert_eq!(a.slice::<f32>()?, b.slice::<f32>()?);
        let (a, b) = (
            cpu::random::randint(shape, DType::I32, -9, 1000, seed, offset)?,
            gpu::download(&random::randint(0, shape, DType::I32, -9, 1000, seed, offset)?)?,
        );
        assert_eq!(a.slice::<i32>()?, b.slice::<i32>()?);
        let a = cpu::random::normal(shape, DType::F32, seed, offset)?;
        let a: Vec<f64> = a.slice::<f32>()?.iter().map(|&v| f64::from(v)).collect();
        assert_close(&floats(&random::normal(0, shape, DType::F32, seed, offset)?)?, &a, 1e-6, "normal");
    }
    Ok(())
}
