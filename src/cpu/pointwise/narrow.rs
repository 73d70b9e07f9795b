//! Conversions of narrow dtypes to those that kernels compute in, and back: halves to `f32`, small integers
//! to `i32`, `u32` to `i64`. Converting an integer back drops its upper bits.
//!
//! Read next: `src/cpu/pointwise/drive.rs`, which converts tile by tile.

use super::half_float;
use crate::cpu::prelude::*;

/// Elements that are read before any of them is written: a few registers.
const BLOCK: usize = 32;

/// Conversion between integer sizes: sign or zero extension, or the low bits.
struct Resize<A, B> {
    from: *const A,
    to: *mut B,
    n: usize,
}

impl<A: Element, B: Element> PlainBody for Resize<A, B> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Resize { from, to, n } = self;
        let whole = n / BLOCK * BLOCK;
        let mut i = 0;
        // SAFETY: `resize`'s caller guarantees `n` elements on both sides.
        unsafe {
            while i < whole {
                let block = from.add(i).cast::<[A; BLOCK]>().read();
                let mut wide = [B::from_i64(0); BLOCK];
                for k in 0..BLOCK {
                    wide[k] = B::from_i64(block[k].to_i64());
                }
                to.add(i).cast::<[B; BLOCK]>().write(wide);
                i += BLOCK;
            }
            while i < n {
                *to.add(i) = B::from_i64((*from.add(i)).to_i64());
                i += 1;
            }
        }
    }
}

/// # Safety
/// `from` holds `n` elements of `A`, `to` is writable for as many of `B`. They may overlap if each written
/// block covers only elements that were read before.
unsafe fn resize<A: Element, B: Element>(from: *const u8, to: *mut u8, n: usize) {
    run_widest(Resize { from: from.cast::<A>(), to: to.cast::<B>(), n });
}

/// Converts `n` elements of `dtype` at `from` to `dtype.compute()` at `to`.
///
/// # Safety
/// `from` holds them and `to` is writable for them. They do not overlap, except that `uint32` may be in the
/// second half of `1024` eight-byte elements at `to`.
pub unsafe fn widen(dtype: DType, from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match dtype {
            DType::U8 => resize::<u8, i32>(from, to, n),
            DType::I8 => resize::<i8, i32>(from, to, n),
            DType::U16 => resize::<u16, i32>(from, to, n),
            DType::I16 => resize::<i16, i32>(from, to, n),
            DType::U32 => resize::<u32, i64>(from, to, n),
            half => half_float::widen(
                half,
                std::slice::from_raw_parts(from.cast(), n),
                std::slice::from_raw_parts_mut(to.cast(), n),
            ),
        }
    }
}

/// Converts `n` elements of `dtype.compute()` at `from` to `dtype` at `to`: rounds floats, wraps integers.
///
/// # Safety
/// `from` holds them and `to` is writable for them; they do not overlap.
pub unsafe fn narrow(dtype: DType, from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match dtype {
            DType::U8 | DType::I8 => resize::<i32, u8>(from, to, n),
            DType::U16 | DType::I16 => resize::<i32, u16>(from, to, n),
            DType::U32 => resize::<i64, u32>(from, to, n),
            half => half_float::narrow(
                half,
                std::slice::from_raw_parts(from.cast(), n),
                std::slice::from_raw_parts_mut(to.cast(), n),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tile_of_uint32_is_widened_where_it_stands() {
        let mut tile = vec![0u64; 1024];
        let base = tile.as_mut_ptr().cast::<u8>();
        let value = |i: usize| (i as u32).wrapping_mul(2654435761);
        for n in [1024, 1021, 9, 3] {
            // SAFETY: the upper half of the tile can hold 1024 numbers of four bytes.
            let found: Vec<i64> = unsafe {
                let upper = base.add(4096);
                (0..n).for_each(|i| *upper.cast::<u32>().add(i) = value(i));
                widen(DType::U32, upper, base, n);
                (0..n).map(|i| *base.cast::<i64>().add(i)).collect()
            };
            let expected: Vec<i64> = (0..n).map(|i| value(i).into()).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn integers_extend_their_sign_and_wrap_back() {
        let from: Vec<i8> = (-128..=127).collect();
        let mut wide = vec![0i32; 256];
        let mut back = vec![0u8; 256];
        // SAFETY: each holds 256 elements.
        unsafe {
            widen(DType::I8, from.as_ptr().cast(), wide.as_mut_ptr().cast(), 256);
            narrow(DType::U8, wide.as_ptr().cast(), back.as_mut_ptr(), 256);
        }
        assert!(wide.iter().zip(-128..=127).all(|(&a, b)| a == b));
        assert!(back.iter().zip(&from).all(|(&a, &b)| a == b as u8));
    }
}
