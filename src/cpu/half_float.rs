//! Halves to `f32` and back, a slice at a time: kernels compute halves in `f32`.

use super::isa::{PlainBody, run_plain};
use crate::dtype::DType;
use half::f16;
use half::slice::HalfFloatSliceExt;

/// The bits of the nearest bfloat16, ties to even; a NaN stays a NaN.
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

/// `to = from` for `from` in float16 or bfloat16.
pub fn widen(dtype: DType, from: &[u16], to: &mut [f32]) {
    if dtype == DType::F16 {
        // SAFETY: `f16` is a transparent `u16`.
        let from = unsafe { std::slice::from_raw_parts(from.as_ptr().cast::<f16>(), from.len()) };
        from.convert_to_f32_slice(to);
    } else {
        run_plain(WidenBf16(from, to));
    }
}

/// `to = from`, rounded to float16 or bfloat16.
pub fn narrow(dtype: DType, from: &[f32], to: &mut [u16]) {
    if dtype == DType::F16 {
        // SAFETY: `f16` is a transparent `u16`.
        let to = unsafe { std::slice::from_raw_parts_mut(to.as_mut_ptr().cast::<f16>(), to.len()) };
        to.convert_from_f32_slice(from);
    } else {
        run_plain(NarrowBf16(from, to));
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
