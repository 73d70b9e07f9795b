//! Tests of reductions, products, normalisation, indexing and random numbers against the CPU in float64.

use super::super::{copy, gather, matmul, norm, random, recurrence, reduce, scan};
use super::{host, ramp, up, values};
use crate::array::buffer::Device;
use crate::array::dtype::Truth;
use crate::array::shape::Axes;
use crate::cpu;
use crate::error::Kind;
use crate::gpu;
use crate::gpu::kernels::prelude::*;

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
    copy::cast(&up(values, dims)?, dtype)
}

/// An array of noise.
fn noisy(dims: &[usize], seed: u32, dtype: DType) -> Result<Array> {
    on_gpu(&noise(dims.iter().product(), seed), dims, dtype)
}

/// The array on the CPU in float64.
fn exact(x: &Array) -> Result<Array> {
    cpu::copy::cast(&x.to_device(Device::Cpu)?, DType::F64)
}

/// The elements as float64.
pub(super) fn floats(x: &Array) -> Result<Vec<f64>> {
    Ok(exact(x)?.slice::<f64>()?.to_vec())
}

/// Asserts that all elements agree to `relative` times the largest expected one.
pub(super) fn assert_close(got: &[f64], expected: &[f64], relative: f64, what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(1e-30, |m: f64, v| m.max(v.abs()));
    for (i, (a, b)) in got.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= relative * scale, "{what}: element {i} is {a}, expected {b}");
    }
}

/// Asserts that an array has the shape of one on the CPU and its elements, to `relative`.
fn assert_same(got: &Array, expected: &Array, relative: f64, what: &str) -> Result<()> {
    assert_eq!(got.shape(), expected.shape(), "{what}");
    assert_close(&floats(got)?, &floats(expected)?, relative, what);
    Ok(())
}

fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 1e-3,
        DType::BF16 => 8e-3,
        _ => 2e-6,
    }
}

const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

gpu_test!(sums_over_any_axes, {
    for dtype in FLOATS {
        let x = noisy(&[5, 7, 9], 1, dtype)?.permute(&[2, 0, 1])?;
        for bits in 1..8u8 {
            let axes: Axes = (0..3).filter(|i| bits >> i & 1 == 1).collect();
            let expected = cpu::reduce::sum(&exact(&x)?, axes, false)?;
            let what = format!("{dtype} {axes:?}");
            assert_same(&reduce::sum(&x, axes, false)?, &expected, tolerance(dtype), &what)?;
        }
    }
});

gpu_test!(long_reductions_are_cut_and_exact, {
    let (n, all) = (100_003, Axes::one(0));
    assert_eq!(values::<f32>(&reduce::sum(&up(&vec![1.0f32; n], &[n])?, all, false)?)?, [n as f32]);
    let i = on_gpu(&ramp(n), &[n], DType::I32)?;
    assert_eq!(values::<i32>(&reduce::max(&i, all, true)?)?, [n as i32 - 1]);
    assert_eq!(values::<i32>(&reduce::min(&i, all, true)?)?, [0]);
    let mut row = noise(n, 2);
    row[70_000] = f32::NEG_INFINITY;
    assert_eq!(values::<f32>(&reduce::min(&up(&row, &[n])?, all, false)?)?, [f32::NEG_INFINITY]);
    row[n - 1] = f32::NAN;
    let x = up(&row, &[n])?;
    assert!(values::<f32>(&reduce::max(&x, all, false)?)?[0].is_nan());
    assert_eq!(values::<i32>(&reduce::argmax(&x, 0, false)?)?, [n as i32 - 1]);
    let columns = up(&ramp(20_000 * 3), &[20_000, 3])?;
    let expected = cpu::reduce::sum(&exact(&columns)?, all, false)?;
    assert_same(&reduce::sum(&columns, all, false)?, &expected, 1e-6, "columns")?;
    // Many short rows, wide columns, and both in 16 bits.
    for (rows, cols, axis) in [(700, 40, 1), (300, 70, 0), (2000, 33, 0), (9, 5000, 1), (5000, 9, 0)] {
        for dtype in FLOATS {
            let (x, axes) = (noisy(&[rows, cols], 21, dtype)?, Axes::one(axis));
            let expected = cpu::reduce::sum(&exact(&x)?, axes, false)?;
            let what = format!("{dtype} {rows} {cols} {axis}");
            assert_same(&reduce::sum(&x, axes, false)?, &expected, tolerance(dtype) * 4.0, &what)?;
        }
    }
});

gpu_test!(extremes_and_truth, {
    let x = up(&[1.0, 3.0, 3.0, f32::NEG_INFINITY, f32::NEG_INFINITY, f32::NEG_INFINITY], &[2, 3])?;
    assert_eq!(values::<f32>(&reduce::max(&x, Axes::one(1), false)?)?, [3.0, f32::NEG_INFINITY]);
    assert_eq!(values::<i32>(&reduce::argmax(&x, 1, false)?)?, [1, 0]);
    assert_eq!(values::<i32>(&reduce::argmin(&x, 0, true)?)?, [1, 1, 1]);
    let flags = up(&[false, true, true, true].map(Truth::from), &[2, 2])?;
    assert_eq!(values::<Truth>(&reduce::max(&flags, Axes::one(0), false)?)?, [true, true]);
    assert_eq!(values::<Truth>(&reduce::min(&flags, Axes::one(1), false)?)?, [false, true]);
    let none = up::<f32>(&[], &[0, 2])?;
    assert_eq!(values::<f32>(&reduce::sum(&none, Axes::one(0), false)?)?, [0.0, 0.0]);
    assert_eq!(values::<f32>(&reduce::prod(&none, Axes::one(0), false)?)?, [1.0, 1.0]);
    let i = on_gpu(&[1.0, 2.0, 3.0, 4.0], &[2, 2], DType::I32)?;
    assert_eq!(values::<i32>(&scan::cumsum(&i, 0)?)?, [1, 2, 4, 6]);
    let long = up(&vec![1.0f32; 3000], &[3, 1000])?;
    assert_eq!(values::<f32>(&scan::cumsum(&long, 1)?)?[1999], 1000.0);
    assert_eq!(values::<f32>(&scan::cumprod(&long, 0)?)?[5], 1.0);
    assert_eq!(values::<f32>(&recurrence::recurrence(&long, &long, 0)?)?[2999], 3.0);
});

gpu_test!(products_of_any_shape_and_layout, {
    for dtype in FLOATS {
        for [b, m, k, n] in [
            [1, 3, 4, 5],
            [2, 65, 17, 66],
            [3, 1, 33, 7],
            [2, 9, 40, 1],
            [1, 1, 5, 1],
            [1, 2, 0, 3],
            [2, 7, 7, 7],
            [1, 70, 1030, 66],
            [2, 20, 9, 140],
            [1, 140, 5, 20],
            [2, 5, 1100, 30],
            [1, 40, 2100, 6],
        ] {
            let (x, y) = (noisy(&[b, m, k], 3, dtype)?, noisy(&[b, k, n], 4, dtype)?);
            let expected = cpu::matmul::matmul(&exact(&x)?, &exact(&y)?)?;
            let turn = |a: &Array| copy::convert(&a.permute(&[0, 2, 1])?, dtype)?.permute(&[0, 2, 1]);
            for (x, y) in [(x.clone(), y.clone()), (turn(&x)?, turn(&y)?)] {
                let what = format!("{dtype} {b} {m} {k} {n}");
                assert_same(&matmul::matmul(&x, &y)?, &expected, tolerance(dtype), &what)?;
            }
        }
    }
});

gpu_test!(products_broadcast_their_batches, {
    let x = noisy(&[2, 1, 1, 3, 4], 5, DType::F32)?;
    let y = noisy(&[1, 3, 2, 4, 2], 6, DType::F32)?;
    let got = matmul::matmul(&x, &y)?;
    assert_eq!(got.shape(), Shape::new(&[2, 3, 2, 3, 2])?);
    assert_same(&got, &cpu::matmul::matmul(&exact(&x)?, &exact(&y)?)?, 2e-6, "broadcast")?;
    let i = on_gpu(&ramp(6), &[2, 3], DType::I32)?;
    assert_eq!(values::<i32>(&matmul::matmul(&i, &i.permute(&[1, 0])?)?)?, [5, 14, 14, 50]);
});

gpu_test!(softmax_and_its_vjp, {
    for (dtype, cols) in [
        (DType::F32, 5),
        (DType::F32, 300),
        (DType::F32, 1500),
        (DType::F32, 5000),
        (DType::F16, 9),
        (DType::BF16, 8),
    ] {
        let (x, g) = (noisy(&[3, cols], 7, dtype)?, noisy(&[3, cols], 8, dtype)?);
        for log in [false, true] {
            let y = norm::softmax(&x, log)?;
            let (t, what) = (tolerance(dtype), format!("{dtype} {cols} {log}"));
            assert_same(&y, &cpu::norm::softmax(&exact(&x)?, log)?, t * 2.0, &what)?;
            let expected = cpu::norm::softmax_vjp(&exact(&g)?, &exact(&y)?, log)?;
            assert_same(&norm::softmax_vjp(&g, &y, log)?, &expected, t * 4.0, &what)?;
        }
    }
});

gpu_test!(layer_norm_and_its_vjp, {
    for (dtype, rows, cols) in
        [(DType::F32, 5, 6), (DType::F32, 40, 300), (DType::F32, 2, 4200), (DType::F16, 3, 7)]
    {
        let (x, g) = (noisy(&[rows, cols], 9, dtype)?, noisy(&[rows, cols], 10, dtype)?);
        let (w, b) = (noisy(&[cols], 11, dtype)?, noisy(&[cols], 12, dtype)?);
        for centered in [true, false] {
            // Mean, if there is one, and reciprocal deviation.
            let statistics = |y: &[Array]| (y.get(2).map(|_| y[1].clone()), y[y.len() - 1].clone());
            let bias = centered.then_some(&b);
            let mut got = norm::layer_norm(&x, Some(&w), bias, 1, centered, 1e-5)?;
            let (mean, rstd) = statistics(&got);
            got.extend(norm::layer_norm_vjp(&g, &x, Some(&w), mean.as_ref(), &rstd, 1)?);
            let (x, g, w, b) = (exact(&x)?, exact(&g)?, exact(&w)?, exact(&b)?);
            let bias = centered.then_some(&b);
            let mut want = cpu::norm::layer_norm(&x, Some(&w), bias, 1, centered, 1e-5)?;
            let (mean, rstd) = statistics(&want);
            want.extend(cpu::norm::layer_norm_vjp(&g, &x, Some(&w), mean.as_ref(), &rstd, 1)?);
            assert_eq!((got.len(), want.len()), if centered { (6, 6) } else { (4, 4) });
            for (i, (got, expected)) in got.iter().zip(&want).enumerate() {
                let what = format!("{dtype} {rows} {cols} {centered} {i}");
                assert_same(got, expected, tolerance(dtype) * 3.0, &what)?;
            }
        }
    }
});

gpu_test!(cross_entropy_its_vjp_and_its_errors, {
    let (x, g) = (noisy(&[4, 5], 13, DType::F32)?, up(&[1.0f32, 2.0, 3.0, 4.0], &[4])?);
    let classes = host(&[0i32, 4, -100, 2], &[4])?;
    let target = gpu::upload(&classes, 0)?;
    let (loss, lse) = norm::cross_entropy(&x, &target, -100)?;
    let dx = norm::cross_entropy_vjp(&g, &x, &target, &lse, -100)?;
    let (want_loss, want_lse) = cpu::norm::cross_entropy(&exact(&x)?, &classes, -100)?;
    let want_dx = cpu::norm::cross_entropy_vjp(&exact(&g)?, &exact(&x)?, &classes, &want_lse, -100)?;
    assert_same(&loss, &want_loss, 2e-6, "loss")?;
    assert_same(&dx, &want_dx, 2e-6, "dx")?;
    let (loss, _) = norm::cross_entropy(&x, &up(&[0i32, 5, 1, 2], &[4])?, -100)?;
    let e = gpu::download(&loss).err().map(|e| (e.kind(), e.to_string()));
    let text = "cross_entropy: index 5 is out of range for 5 classes, expected 0..4".to_string();
    assert_eq!(e, Some((Kind::Index, text)));
    assert!(gpu::download(&loss).is_ok());
});

gpu_test!(indexing_and_its_transposes, {
    for dtype in [DType::F32, DType::F16, DType::I32] {
        let x = on_gpu(&ramp(12), &[3, 4], dtype)?;
        let idx = up(&[2i32, -3, 2], &[3, 1])?;
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
    let out = gather::take(&up(&ramp(4), &[4])?, &up(&[4i32], &[1])?, 0)?;
    let e = gpu::synchronize(0).err().map(|e| e.to_string()).unwrap_or_default();
    assert_eq!(e, "take: index 4 is out of range for an axis of size 4, expected -4..3");
    assert_eq!(values::<f32>(&out)?, [0.0]);
});

gpu_test!(random_streams, {
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
});

gpu_test!(both_devices_draw_the_same_stream, {
    let shape = Shape::new(&[1001])?;
    for (seed, offset) in [(7, 3), (u64::MAX, u64::from(u32::MAX) - 5)] {
        let a = cpu::random::uniform(shape, DType::F32, seed, offset)?;
        let b = values::<f32>(&random::uniform(0, shape, DType::F32, seed, offset)?)?;
        assert_eq!(a.slice::<f32>()?, b);
        let a = cpu::random::randint(shape, DType::I32, -9, 1000, seed, offset)?;
        let b = values::<i32>(&random::randint(0, shape, DType::I32, -9, 1000, seed, offset)?)?;
        assert_eq!(a.slice::<i32>()?, b);
        let a = cpu::random::normal(shape, DType::F32, seed, offset)?;
        assert_same(&random::normal(0, shape, DType::F32, seed, offset)?, &a, 1e-6, "normal")?;
    }
});
