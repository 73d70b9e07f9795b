//! Conversions of slices of halves to `f32` and back: kernels compute halves in `f32`.

use crate::array::dtype::DType;
use crate::cpu::run::isa::{Isa, PlainBody, isa, run_widest};
use half::f16;
use half::slice::HalfFloatSliceExt;

/// Returns the bits of the nearest bfloat16, ties to even; a NaN stays a NaN.
#[inline(always)]
pub fn bf16_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    let nan = bits >> 16 | 0x40;
    (if bits & 0x7fff_ffff > 0x7f80_0000 { nan } else { rounded }) as u16
}

struct WidenBf16<'a>(&'a [u16], &'a mut [f32]);

impl PlainBody for WidenBf16<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (y, &x) in self.1.iter_mut().zip(self.0) {
            *y = f32::from_bits((x as u32) << 16);
        }
    }
}

struct NarrowBf16<'a>(&'a [f32], &'a mut [u16]);

impl PlainBody for NarrowBf16<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (y, &x) in self.1.iter_mut().zip(self.0) {
            *y = bf16_bits(x);
        }
    }
}

/// Converts float16 or bfloat16 to `f32`.
pub fn widen(dtype: DType, from: &[u16], to: &mut [f32]) {
    if dtype != DType::F16 {
        return run_widest(WidenBf16(from, to));
    }
    #[cfg(target_arch = "x86_64")]
    if isa() != Isa::Baseline {
        // SAFETY: `isa` found AVX2 and F16C on this processor.
        return unsafe { widen_f16(from, to) };
    }
    // SAFETY: `f16` is a transparent `u16`.
    let from = unsafe { std::slice::from_raw_parts(from.as_ptr().cast::<f16>(), from.len()) };
    from.convert_to_f32_slice(to);
}

/// Rounds `f32` to float16 or bfloat16.
pub fn narrow(dtype: DType, from: &[f32], to: &mut [u16]) {
    if dtype != DType::F16 {
        return run_widest(NarrowBf16(from, to));
    }
    #[cfg(target_arch = "x86_64")]
    if isa() != Isa::Baseline {
        // SAFETY: `isa` found AVX2 and F16C on this processor.
        return unsafe { narrow_f16(from, to) };
    }
    // SAFETY: `f16` is a transparent `u16`.
    let to = unsafe { std::slice::from_raw_parts_mut(to.as_mut_ptr().cast::<f16>(), to.len()) };
    to.convert_from_f32_slice(from);
}

/// Converts eight at a time by F16C, which the compiler does not use by itself; the rest in a padded block.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
fn widen_f16(from: &[u16], to: &mut [f32]) {
    use std::arch::x86_64::{_mm_loadu_si128, _mm256_cvtph_ps, _mm256_storeu_ps};
    let (blocks, rest) = from.as_chunks::<8>();
    let (to_blocks, to_rest) = to.as_chunks_mut::<8>();
    for (x, y) in blocks.iter().zip(to_blocks) {
        // SAFETY: both blocks have eight elements.
        unsafe { _mm256_storeu_ps(y.as_mut_ptr(), _mm256_cvtph_ps(_mm_loadu_si128(x.as_ptr().cast()))) }
    }
    if !rest.is_empty() {
        let (mut x, mut y) = ([0u16; 8], [0f32; 8]);
        x[..rest.len()].copy_from_slice(rest);
        widen_f16(&x, &mut y);
        to_rest.copy_from_slice(&y[..rest.len()]);
    }
}

/// [`widen_f16`] in the other direction.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
fn narrow_f16(from: &[f32], to: &mut [u16]) {
    use std::arch::x86_64::{_MM_FROUND_TO_NEAREST_INT, _mm_storeu_si128, _mm256_cvtps_ph, _mm256_loadu_ps};
    let (blocks, rest) = from.as_chunks::<8>();
    let (to_blocks, to_rest) = to.as_chunks_mut::<8>();
    for (x, y) in blocks.iter().zip(to_blocks) {
        // SAFETY: both blocks have eight elements.
        unsafe {
            let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(x.as_ptr()));
            _mm_storeu_si128(y.as_mut_ptr().cast(), halves);
        }
    }
    if !rest.is_empty() {
        let (mut x, mut y) = ([0f32; 8], [0u16; 8]);
        x[..rest.len()].copy_from_slice(rest);
        narrow_f16(&x, &mut y);
        to_rest.copy_from_slice(&y[..rest.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::bf16;

    #[test]
    fn bf16_rounds_as_the_half_crate_does() {
        for i in 0..=u16::MAX {
            for low in [0u32, 1, 0x7fff, 0x8000, 0x8001, 0xffff] {
                let value = f32::from_bits((i as u32) << 16 | low);
                assert_eq!(bf16_bits(value), bf16::from_f32(value).to_bits(), "{value}");
            }
        }
    }
}
