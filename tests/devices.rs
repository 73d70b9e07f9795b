//! The same tensor program on both devices: values and gradients agree.
#![cfg(feature = "gpu")]

use std::sync::{Mutex, MutexGuard};
use wengert::DType;
use wengert::Device;
use wengert::Result;
use wengert::Tensor;
use wengert::internals::ops as elementwise;
use wengert::internals::ops::{self as table, Fun};
use wengert::internals::ops::{CrossEntropyOptions, Reduction, cross_entropy};
use wengert::vjp;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
const GPU: Device = Device::Gpu(0);

/// Drivers are used by one test at a time.
fn serial() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner())
}

/// Numbers without a pattern, in `low..high`.
fn noise(shape: &[usize], seed: u32, low: f32, high: f32) -> Result<Tensor> {
    let mut state = seed.wrapping_mul(2_654_435_769) | 1;
    let n = shape.iter().product();
    let values: Vec<f32> = (0..n)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            low + (high - low) * ((state >> 8) as f32 / (1 << 24) as f32)
        })
        .collect();
    Tensor::from_slice(&values, shape)
}

/// Elements agree to `relative` of their own size plus the same of 1; equal infinities and NaNs agree.
fn assert_close(got: &Tensor, expected: &Tensor, relative: f64, what: &str) -> Result<()> {
    assert_eq!(got.shape(), expected.shape(), "{what}");
    assert_eq!(got.dtype(), expected.dtype(), "{what}");
    for (i, (a, b)) in got.to_vec()?.into_iter().zip(expected.to_vec()?).enumerate() {
        let same = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= relative * (1.0 + b.abs());
        assert!(same, "{what}: element {i} is {a} on the gpu, {b} on the cpu");
    }
    Ok(())
}

/// Runs `f` and its VJP on both devices.
fn compare(
    what: &str, relative: f64, inputs: &[Tensor], f: impl Fn(&[Tensor]) -> Result<Tensor>,
) -> Result<()> {
    let run = |inputs: &[Tensor]| -> Result<(Tensor, Vec<Option<Tensor>>)> {
        let (y, pullback) = vjp(|x| Ok(vec![f(x)?]), inputs)?;
        let g = noise(&y[0].shape().to_vec(), 99, 0.5, 1.5)?.cast(y[0].dtype())?.to_device(y[0].device())?;
        let grads = if y[0].dtype().is_float() { pullback.call(&[Some(g)], false)? } else { vec![] };
        Ok((y[0].clone(), grads.into_iter().map(Some).collect()))
    };
    let on_gpu: Vec<Tensor> = inputs.iter().map(|x| x.to_device(GPU)).collect::<Result<_>>()?;
    let (y, grads) = run(inputs)?;
    let (gpu_y, gpu_grads) = run(&on_gpu)?;
    assert_eq!(gpu_y.device(), GPU, "{what}");
    assert_close(&gpu_y, &y, relative, what)?;
    for (i, pair) in gpu_grads.iter().zip(&grads).enumerate() {
        if let (Some(a), Some(b)) = pair {
            assert_close(a, b, relative * 4.0, &format!("gradient {i} of {what}"))?;
        }
    }
    Ok(())
}

#[test]
#[ignore = "needs a GPU adapter"]
fn every_elementwise_operation() -> Result<()> {
    let _serial = serial();
    for fun in table::all() {
        let name = fun.name();
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let (low, high) = if matches!(name, "acosh") { (1.1, 3.0) } else { (0.05, 0.95) };
            let relative = if dtype == DType::F32 { 2e-5 } else { 4e-2 };
            let x = noise(&[3, 17], 1, low, high)?.cast(dtype)?;
            let y = noise(&[17], 2, 0.1, 0.9)?.cast(dtype)?;
            let inputs = if matches!(fun, Fun::Binary(_)) { vec![x, y] } else { vec![x] };
            compare(&format!("{name} of {dtype}"), relative, &inputs, |x| apply(fun, x))?;
        }
    }
    Ok(())
}

/// A row of the tables with attributes that are right for it.
fn apply(fun: Fun, x: &[Tensor]) -> Result<Tensor> {
    let op = elementwise::Map { fun, p: [0.3, 0.7].into() };
    wengert::internals::bind(op, &x.iter().collect::<Vec<_>>())
}

#[test]
#[ignore = "needs a GPU adapter"]
fn integer_rules() -> Result<()> {
    let _serial = serial();
    let x = Tensor::from_slice(&[7i32, -7, 0, i32::MIN, 5, -1], &[6])?;
    let y = Tensor::from_slice(&[2i32, 2, 3, -1, 0, -4], &[6])?;
    for fun in table::all() {
        let inputs = if matches!(fun, Fun::Binary(_)) { vec![&x, &y] } else { vec![&x] };
        let p: [f64; 2] = [-2.0, 3.0];
        let run =
            |inputs: &[&Tensor]| wengert::internals::bind(elementwise::Map { fun, p: p.into() }, inputs);
        let Ok(expected) = run(&inputs) else { continue };
        let on_gpu: Vec<Tensor> = inputs.iter().map(|x| x.to_device(GPU)).collect::<Result<_>>()?;
        let got = run(&on_gpu.iter().collect::<Vec<_>>())?;
        assert_eq!(got.to_vec()?, expected.to_vec()?, "{}", fun.name());
    }
    Ok(())
}

#[test]
#[ignore = "needs a GPU adapter"]
fn reductions_products_and_views() -> Result<()> {
    let _serial = serial();
    let x = noise(&[4, 5, 6], 3, -1.0, 1.0)?;
    let w = noise(&[6, 7], 4, -1.0, 1.0)?;
    compare("sum", 1e-5, std::slice::from_ref(&x), |x| x[0].sum(Some(&[0, 2]), false))?;
    compare("mean", 1e-5, std::slice::from_ref(&x), |x| x[0].permute(&[2, 0, 1])?.mean(Some(&[1]), true))?;
    compare("prod", 1e-5, std::slice::from_ref(&x), |x| x[0].prod(Some(&[2]), false))?;
    compare("var", 1e-5, std::slice::from_ref(&x), |x| x[0].var(Some(&[1]), 1.0, false))?;
    compare("amax", 1e-5, std::slice::from_ref(&x), |x| x[0].amax(Some(&[1, 2]), false))?;
    compare("logsumexp", 1e-5, std::slice::from_ref(&x), |x| x[0].logsumexp(Some(&[2]), false))?;
    compare("cumsum", 1e-5, std::slice::from_ref(&x), |x| x[0].cumsum(1))?;
    compare("cumprod", 1e-5, std::slice::from_ref(&x), |x| x[0].cumprod(2))?;
    compare("recurrence", 1e-5, &[x.clone(), x.clone()], |x| {
        x[0].linear_recurrence(&x[1].square()?, 1, true)
    })?;
    compare("logcumsumexp", 1e-5, std::slice::from_ref(&x), |x| x[0].logcumsumexp(1))?;
    compare("max_along", 1e-5, std::slice::from_ref(&x), |x| Ok(x[0].max_along(1, false)?.0))?;
    compare("matmul", 1e-5, &[x.clone(), w.clone()], |x| x[0].matmul(&x[1]))?;
    compare("pad", 1e-5, std::slice::from_ref(&x), |x| x[0].pad(&[(1, 2), (0, 1), (0, 0)], 0.5))?;
    compare("flip", 1e-5, std::slice::from_ref(&x), |x| x[0].flip(&[0, 2])?.narrow(2, 1, 3)?.square())?;
    compare("triangle", 1e-5, std::slice::from_ref(&w), |x| x[0].triangle(1, true))?;
    compare("cat", 1e-5, &[x.clone(), x.clone()], |x| {
        wengert::internals::ops::cat(&[x[0].clone(), x[1].square()?], 1)
    })
}

#[test]
#[ignore = "needs a GPU adapter"]
fn a_layer_of_everything_and_its_gradients() -> Result<()> {
    let _serial = serial();
    let x = noise(&[5, 8], 5, -1.0, 1.0)?;
    compare("softmax", 1e-5, std::slice::from_ref(&x), |x| x[0].softmax(1)?.mul(&x[0]))?;
    compare("log_softmax", 1e-5, std::slice::from_ref(&x), |x| x[0].log_softmax(-1))?;
    compare("where", 1e-5, std::slice::from_ref(&x), |x| x[0].lt(0.25)?.select(&x[0].exp()?, 2.0))?;
    let index = Tensor::from_slice(&[1i32, 4, 1], &[3])?;
    compare("take", 1e-5, std::slice::from_ref(&x), |x| {
        x[0].take(&index.to_device(x[0].device())?, 0)?.square()
    })?;
    let target = Tensor::from_slice(&[1i32, 7, 0, 3, 3], &[5])?;
    let w = noise(&[8, 8], 6, -1.0, 1.0)?;
    compare("a classifier", 2e-5, &[x, w], |x| {
        let target = target.to_device(x[0].device())?;
        let logits = x[0].matmul(&x[1])?.tanh()?.matmul(&x[1].transpose(0, 1)?)?;
        let options =
            CrossEntropyOptions { weight: None, ignore: -100, reduction: Reduction::Mean, smoothing: 0.0 };
        cross_entropy(&logits, &target, options)
    })
}

#[test]
#[ignore = "needs a GPU adapter"]
fn errors_of_the_device() -> Result<()> {
    let _serial = serial();
    let double = Tensor::from_slice(&[1.0f64], &[1])?.to_device(GPU).err().map(|e| e.to_string());
    assert_eq!(
        double.as_deref(),
        Some("gpu:0 has no float64; convert with .float() (float32) or use device='cpu'")
    );
    let x = noise(&[3], 7, 0.0, 1.0)?;
    assert!(x.to_device(GPU)?.add(&x).is_err());
    Ok(())
}
