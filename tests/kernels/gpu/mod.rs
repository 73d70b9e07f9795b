//! Tests of the kernels against the host, on any GPU: the software driver on machines without one.

use super::{copy, create, logic, map};
use crate::arguments::logic::{Logic, Relation};
use crate::array::dtype::Truth;
use crate::gpu;
use crate::gpu::kernels::prelude::*;
use crate::math::real::{Pointwise, PointwiseInt, Real};
use half::{bf16, f16};
use std::sync::{Mutex, MutexGuard};

mod families;
mod optim;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Lets only one test at a time use the driver.
pub fn serial() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner())
}

/// A CPU array of this shape.
pub fn host<T: crate::array::dtype::Element>(values: &[T], dims: &[usize]) -> Result<Array> {
    Array::from_slice(values, Shape::new(dims)?)
}

/// A GPU array of this shape.
pub fn up<T: crate::array::dtype::Element>(values: &[T], dims: &[usize]) -> Result<Array> {
    gpu::upload(&host(values, dims)?, 0)
}

/// The elements of a GPU array.
pub fn values<T: crate::array::dtype::Element>(x: &Array) -> Result<Vec<T>> {
    Ok(gpu::download(x)?.slice::<T>()?.to_vec())
}

/// The numbers 0, 1, 2, ...
pub fn ramp(n: usize) -> Vec<f32> {
    (0..n).map(|i| i as f32).collect()
}

#[derive(Clone, Copy)]
struct Scaled(f64);

impl Pointwise<2> for Scaled {
    fn apply<R: Real>(&self, [x, y]: [R; 2]) -> R {
        1.0 + x * y * self.0
    }
}

#[derive(Clone, Copy)]
struct Tanh;

impl Pointwise<1> for Tanh {
    fn apply<R: Real>(&self, [x]: [R; 1]) -> R {
        x.tanh()
    }
}

#[derive(Clone, Copy)]
struct DivMax;

impl PointwiseInt<2> for DivMax {
    fn apply<I: crate::math::real::Integer>(&self, [x, y]: [I; 2]) -> I {
        x.floor_div(y).max(I::lit(-2)).add(x.remainder(y).mul(I::lit(100)))
    }
}

gpu_test!(transfers_keep_every_bit, {
    let x = host(&[1.5f32, f32::NAN, -0.0, f32::INFINITY, 1e-42], &[5])?;
    let back = gpu::download(&gpu::upload(&x, 0)?)?;
    let bits = |a: &Array| a.slice::<f32>().map(|s| s.iter().map(|v| v.to_bits()).collect::<Vec<_>>());
    assert_eq!(bits(&back)?, bits(&x)?);
    assert_eq!(values::<Truth>(&up(&[true, false, true].map(Truth::from), &[3])?)?, [true, false, true]);
    let halves: Vec<f16> = (0..7).map(|i| f16::from_f32(i as f32 * 0.3)).collect();
    let x = up(&halves, &[7])?;
    assert_eq!(values::<f16>(&x)?, halves);
    let tail = x.slice_view(&[3], &[1], &Shape::new(&[3])?)?;
    assert_eq!(values::<f16>(&tail)?, halves[3..6]);
    let refused = up(&[1.0f64], &[1]).err().map(|e| e.to_string()).unwrap_or_default();
    assert_eq!(refused, "gpu:0 has no float64; convert with .float() (float32) or use device='cpu'");
});

#[test]
fn missing_devices_are_typed_errors() {
    let _serial = serial();
    let e = gpu::info(15).err().map(|e| (e.kind(), e.to_string()));
    assert!(matches!(&e, Some((crate::error::Kind::Device, _))), "{e:?}");
}

gpu_test!(reuse_of_memory_keeps_the_order_of_work, {
    // Each round frees a buffer that recorded work still reads, and uploads into the same memory.
    let mut sums = Vec::new();
    for i in 0..20 {
        let x = up(&vec![i as f32; 100], &[100])?;
        sums.push(map::pointwise("scaled", [0, 0], [&x, &x], Scaled(1.0))?);
    }
    for (i, s) in sums.iter().enumerate() {
        assert_eq!(values::<f32>(s)?, vec![(i * i + 1) as f32; 100], "{i}");
    }
});

gpu_test!(strided_copies_and_casts, {
    let x = up(&ramp(24), &[2, 3, 4])?;
    let permuted = x.permute(&[2, 0, 1])?;
    let expected: Vec<f32> = (0..24).map(|i| ((i / 3 % 2) * 12 + i % 3 * 4 + i / 6) as f32).collect();
    assert_eq!(values::<f32>(&permuted)?, expected);
    let reversed = x
        .reshape_view(&Shape::new(&[24])?)
        .map(|v| v.slice_view(&[23], &[-2], &Shape::new(&[12]).unwrap_or_default()));
    let Some(reversed) = reversed.transpose()? else {
        return Ok(());
    };
    assert_eq!(values::<f32>(&reversed)?[..3], [23.0, 21.0, 19.0]);
    assert_eq!(values::<i32>(&copy::cast(&permuted, DType::I32)?)?[1], 4);
    assert_eq!(values::<Truth>(&copy::cast(&x, DType::Bool)?)?[..2], [false, true]);
});

gpu_test!(halves_round_to_nearest_even, {
    let mut given = vec![0.0f32, -0.0, 65504.0, 65519.9, 65520.0, 1e30, f32::INFINITY];
    given.extend([6.1e-5, 5.96e-8, 2.98e-8, 3e-8, 1e-9]);
    given.extend((0..2000).map(|i| f32::from_bits(0x3800_0000 + i * 40_503 + i * i * 7)));
    given.extend((0..2000).map(|i| -f32::from_bits(0x3300_0000 + i * 17_011)));
    let x = up(&given, &[given.len()])?;
    let half: Vec<u16> = values::<f16>(&copy::cast(&x, DType::F16)?)?.iter().map(|h| h.to_bits()).collect();
    let brain: Vec<u16> =
        values::<bf16>(&copy::cast(&x, DType::BF16)?)?.iter().map(|h| h.to_bits()).collect();
    for (i, v) in given.iter().enumerate() {
        assert_eq!(half[i], f16::from_f32(*v).to_bits(), "f16 of {v:e}");
        assert_eq!(brain[i], bf16::from_f32(*v).to_bits(), "bf16 of {v:e}");
    }
});

gpu_test!(views_are_written_without_touching_their_surroundings, {
    for dtype in [DType::F32, DType::F16, DType::BF16, DType::I32, DType::Bool] {
        let x = create::full(0, Shape::new(&[4, 5])?, 1.0, dtype)?;
        let view = x.slice_view(&[1, 1], &[1, 2], &Shape::new(&[2, 2])?)?;
        create::fill(&view, 0.0)?;
        let out = values::<f32>(&copy::cast(&x, DType::F32)?)?;
        let zeros: Vec<usize> = (0..20).filter(|&i| out[i] == 0.0).collect();
        assert_eq!(zeros, [6, 8, 11, 13], "{dtype}");
    }
    let x = up(&ramp(5), &[5])?;
    let n = Shape::new(&[4])?;
    copy::copy_into(&x.slice_view(&[1], &[1], &n)?, &x.slice_view(&[0], &[1], &n)?)?;
    assert_eq!(values::<f32>(&x)?, [0.0, 0.0, 1.0, 2.0, 3.0]);
    assert_eq!(values::<f32>(&create::eye(0, 2, 3, 0, DType::F32)?)?, [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    let square = up(&ramp(9), &[3, 3])?;
    assert_eq!(
        values::<f32>(&create::tri(&square, -1, false)?)?,
        [0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 6.0, 7.0, 0.0]
    );
});

gpu_test!(rules_run_on_every_dtype_and_layout, {
    let x = up(&ramp(12), &[3, 4])?;
    let row = up(&[1.0f32, 2.0, 3.0], &[3])?;
    let out = map::pointwise("scaled", [1, 0], [&x.permute(&[1, 0])?, &row], Scaled(0.5))?;
    let expected: Vec<f32> =
        (0..12).map(|i| 1.0 + ((i % 3) * 4 + i / 3) as f32 * (i % 3 + 1) as f32 * 0.5).collect();
    assert_eq!(values::<f32>(&out)?, expected);
    let short = up(&[f16::from_f32(0.5); 5], &[5])?;
    let t = values::<f16>(&map::pointwise("tanh", [0, 0], [&short], Tanh)?)?;
    assert_eq!(t, [f16::from_f32(0.5f32.tanh()); 5]);
    let a = up(&[7i32, -7, 7, -7, 5, i32::MIN], &[6])?;
    let b = up(&[2i32, 2, -2, -2, 0, -1], &[6])?;
    let out = values::<i32>(&map::pointwise_int("div_max", 0, [&a, &b], DivMax)?)?;
    assert_eq!(out, [103, 98, -102, -97, 0, -2]);
    let mask = up(&[true, false, true].map(Truth::from), &[3, 1])?;
    let picked = logic::select(&mask, &x, &gpu::scalar(0, -1.0, DType::F32)?)?;
    assert_eq!(values::<f32>(&picked)?, [0.0, 1.0, 2.0, 3.0, -1.0, -1.0, -1.0, -1.0, 8.0, 9.0, 10.0, 11.0]);
});

gpu_test!(relations_and_connectives, {
    let x = up(&[1.0f32, 2.0, f32::NAN, f32::INFINITY], &[4])?;
    let y = up(&[2.0f32, 2.0, f32::NAN, 1.0], &[4])?;
    let table = [
        (Relation::Lt, [true, false, false, false]),
        (Relation::Le, [true, true, false, false]),
        (Relation::Eq, [false, true, false, false]),
        (Relation::Ne, [true, false, true, true]),
        (Relation::Gt, [false, false, false, true]),
        (Relation::Ge, [false, true, false, true]),
    ];
    for (relation, expected) in table {
        assert_eq!(values::<Truth>(&logic::compare(&x, &y, relation)?)?, expected, "{relation:?}");
    }
    let i = up(&[i32::MAX, -1], &[2])?;
    let j = up(&[i32::MAX - 1, 1], &[2])?;
    assert_eq!(values::<Truth>(&logic::compare(&i, &j, Relation::Gt)?)?, [true, false]);
    let a = up(&[false, false, true, true].map(Truth::from), &[4])?;
    let b = up(&[false, true, false, true].map(Truth::from), &[4])?;
    let table = [
        (Logic::And, &[&a, &b][..], [false, false, false, true]),
        (Logic::Or, &[&a, &b], [false, true, true, true]),
        (Logic::Xor, &[&a, &b], [false, true, true, false]),
        (Logic::Not, &[&a], [true, true, false, false]),
    ];
    for (logic, x, expected) in table {
        assert_eq!(values::<Truth>(&logic::logical(logic, x)?)?, expected, "{logic:?}");
    }
    let n = create::arange(0, 3.0, -0.5, 4, DType::F32)?;
    assert_eq!(values::<f32>(&n)?, [3.0, 2.5, 2.0, 1.5]);
    assert_eq!(values::<f32>(&create::linspace(0, 0.0, 1.0, 3, DType::F32)?)?, [0.0, 0.5, 1.0]);
});

gpu_test!(empty_and_large_arrays, {
    let none = up::<f32>(&[], &[0, 3])?;
    assert_eq!(map::pointwise("tanh", [0, 0], [&none], Tanh)?.shape(), none.shape());
    assert!(values::<f32>(&none)?.is_empty());
    let n = 300_001;
    let x = up(&ramp(n), &[n])?;
    let one = gpu::scalar(0, 1.0, DType::F32)?;
    let out = values::<f32>(&map::pointwise("scaled", [4, 0], [&x, &one], Scaled(1.0))?)?;
    assert!(out.iter().enumerate().all(|(i, &v)| v == i as f32 + 1.0));
    let stats = gpu::stats(0)?;
    assert!(stats.submits > 0 && stats.dispatches > 0 && stats.pipelines_created > 0);
    gpu::empty_cache(0)?;
    assert_eq!(gpu::stats(0)?.cached_bytes, 0);
});
