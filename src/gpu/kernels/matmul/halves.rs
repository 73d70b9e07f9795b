//! How a GPU multiplies halves: which of the texts for products of float16 it can be trusted with.
//!
//! Matrices of the hardware are an experimental feature of wgpu, and drivers are known whose sums are wrong:
//! a GPU that offers them multiplies two matrices first, and the host looks at the result.

use super::{Epilogue, multiply};
use crate::gpu::kernels::prelude::*;
use crate::gpu::runtime::device::{Gpu, gpu};
use crate::gpu::shader::halves::{Halves, Matrices};
use crate::gpu::{download, upload};
use half::f16;

/// Workgroup memory of the largest tile: two steps of float16, sums of rows, matrices of sums.
const MEMORY: u32 = 27 << 10;
/// Rows and columns, and terms of the product that is tested: a whole tile, a sum over several steps of which
/// the last is not whole.
const SIZES: [usize; 2] = [128, 100];

/// How products of `x`, which is on a GPU, are multiplied.
pub fn ways(x: &Array) -> Result<Halves> {
    if x.dtype() == DType::F16 { Ok(found(gpu(index_of(x)?)?).0) } else { Ok(Halves::Packed) }
}

/// The steps that workgroup memory has room for: halves take half of it.
pub fn buffers(way: Halves, [rows, columns]: [usize; 2]) -> usize {
    if rows + columns > 128 && way == Halves::Packed { 1 } else { 2 }
}

/// How GPU `index` multiplies float16, in words, and why it does not otherwise.
pub fn described(index: u8) -> Result<String> {
    let (way, why) = found(gpu(index)?);
    Ok(match way {
        Halves::Packed => format!("in float32; {why}"),
        Halves::Native => format!("from tiles of float16; {why}"),
        Halves::Matrices(Matrices { side, .. }) => format!("by matrices of {side} x {side}"),
    })
}

/// How a GPU multiplies halves, and why it does not otherwise; found on the first call.
fn found(gpu: &'static Gpu) -> &'static (Halves, String) {
    if let Some(found) = gpu.halves.get() {
        return found;
    }
    let has_room = gpu.limits.max_compute_workgroup_storage_size >= MEMORY;
    let made = match (gpu.device.features().contains(wgpu::Features::SHADER_F16), &gpu.matrices) {
        (false, _) => (Halves::Packed, "the adapter has no float16 in shaders".to_string()),
        _ if !has_room => (Halves::Packed, format!("workgroup memory is less than {MEMORY} bytes")),
        (_, Err(why)) => (Halves::Native, why.clone()),
        (_, Ok(matrices)) => match test(gpu.index, Halves::Matrices(*matrices)) {
            Ok(()) => (Halves::Matrices(*matrices), String::new()),
            Err(e) => (Halves::Native, format!("the test of matrices failed: {e}")),
        },
    };
    gpu.halves.get_or_init(|| made)
}

/// Multiplies random matrices; an error if the result is wrong, or there is none.
fn test(index: u8, way: Halves) -> Result<()> {
    let [side, terms] = SIZES;
    let (a, b) = (random(side * terms, 1), random(terms * side, 2));
    verdict(&multiplied(index, way, [&a, &b], side)?, &a, &b, side)
}

/// The product of matrices of `side` rows or columns, in float32.
fn multiplied(index: u8, way: Halves, [a, b]: [&[f16]; 2], side: usize) -> Result<Vec<f32>> {
    let terms = a.len() / side.max(1);
    let up = |v: &[f16], dims: &[usize]| upload(&Array::from_slice(v, Shape::new(dims)?)?, index);
    let operands = [up(a, &[1, side, terms])?, up(b, &[1, terms, side])?];
    let out = Array::empty(Shape::new(&[1, side, side])?, DType::F32, operands[0].device())?;
    multiply(operands, false, &Epilogue::default(), &out, None, way)?;
    Ok(download(&out)?.slice::<f32>()?.to_vec())
}

/// Whether `got` is the product of `a` and `b`, matrices of `side` rows or columns, but for the rounding of
/// sums in float32. Hardware may cut off what it does not round.
fn verdict(got: &[f32], a: &[f16], b: &[f16], side: usize) -> Result<()> {
    let terms = a.len() / side.max(1);
    for (i, &got) in got.iter().enumerate() {
        let term = |k: usize| a[i / side * terms + k].to_f64() * b[k * side + i % side].to_f64();
        let (sum, size) = (0..terms).map(term).fold((0.0, 0.0), |(sum, size), v| (sum + v, size + v.abs()));
        let off = (f64::from(got) - sum).abs();
        if off.is_nan() || off > size * 2f64.powi(-19) {
            let (row, column) = (i / side, i % side);
            let what = format!("element ({row}, {column}) of a product is {got} in place of {sum}");
            return Err(Error::device(what));
        }
    }
    Ok(())
}

/// Random numbers in (-2, 2), of which some are far smaller.
fn random(count: usize, seed: u64) -> Vec<f16> {
    let mut state = seed;
    let mut next = || {
        // The multiplier of D. E. Knuth's MMIX.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32
    };
    (0..count).map(|i| f16::from_f32((next() * 4.0 - 2.0) / [1.0, 1.0, 1.0, 256.0][i % 4])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The product in float64, rounded.
    fn product(a: &[f16], b: &[f16], side: usize) -> Vec<f32> {
        let terms = a.len() / side;
        let at = |i: usize, k: usize| a[i / side * terms + k].to_f64() * b[k * side + i % side].to_f64();
        (0..side * side).map(|i| (0..terms).map(|k| at(i, k)).sum::<f64>() as f32).collect()
    }

    #[test]
    fn a_wrong_product_is_refused() {
        let (side, terms) = (16, 40);
        let (a, b) = (random(side * terms, 1), random(terms * side, 2));
        let right = product(&a, &b, side);
        assert!(verdict(&right, &a, &b, side).is_ok());
        // Twice the sums; sums in float16; one that is off; one that is no number.
        let twice: Vec<f32> = right.iter().map(|v| 2.0 * v).collect();
        let short: Vec<f32> = right.iter().map(|&v| f16::from_f32(v).to_f32()).collect();
        let (mut one, mut nan) = (right.clone(), right.clone());
        one[77] += 0.001;
        nan[255] = f32::NAN;
        for wrong in [&twice, &short, &one, &nan] {
            let error = verdict(wrong, &a, &b, side).err().map(|e| e.to_string()).unwrap_or_default();
            assert!(error.starts_with("element ("), "{error}");
        }
    }

    gpu_test!(halves_have_the_bits_of_float32, {
        let (side, terms) = (130, 100);
        let (a, b) = (random(side * terms, 3), random(terms * side, 4));
        let product = |way| multiplied(0, way, [&a, &b], side);
        let bits = |v: Vec<f32>| v.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        let packed = product(Halves::Packed)?;
        verdict(&packed, &a, &b, side)?;
        let (way, why) = found(gpu(0)?);
        match way {
            Halves::Packed => println!("skipped: {why}"),
            _ => assert_eq!(bits(product(Halves::Native)?), bits(packed)),
        }
        match way {
            Halves::Matrices(_) => {
                let once = product(*way)?;
                verdict(&once, &a, &b, side)?;
                assert_eq!(bits(product(*way)?), bits(once));
            }
            _ => println!("matrices skipped: {why}"),
        }
    });
}
