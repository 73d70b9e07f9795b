//! Squares of elements transposed in registers, for packing: rows are loaded, columns are stored.
//!
//! Every function reads `steps` elements of `lanes` rows, `stride` bytes apart, and writes `steps` whole
//! vectors, `width` elements apart. The shuffles are the textbook ones: pairs, then pairs of pairs, then
//! 128-bit quarters.

use super::x86::{first_of_4, first_of_8};
use std::arch::x86_64::*;

/// Transposes 16 x 16 elements of 4 bytes.
///
/// # Safety
/// The processor has AVX-512, the rows exist, and `to` has capacity for the vectors.
#[inline(always)]
pub unsafe fn transpose_16x16(
    from: *const u8,
    stride: isize,
    lanes: usize,
    steps: usize,
    to: *mut i32,
    width: usize,
) {
    let mask = u16::MAX >> (16 - steps);
    // SAFETY: the caller guarantees AVX-512, the rows and the capacity of `to`.
    unsafe {
        let mut r = [_mm512_setzero_si512(); 16];
        for (i, r) in r.iter_mut().enumerate() {
            if i < lanes {
                *r = _mm512_maskz_loadu_epi32(mask, from.offset(i as isize * stride).cast());
            }
        }
        let mut t = r;
        for i in 0..8 {
            t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
            t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
        }
        for j in [0, 4, 8, 12] {
            r[j] = _mm512_unpacklo_epi64(t[j], t[j + 2]);
            r[j + 1] = _mm512_unpackhi_epi64(t[j], t[j + 2]);
            r[j + 2] = _mm512_unpacklo_epi64(t[j + 1], t[j + 3]);
            r[j + 3] = _mm512_unpackhi_epi64(t[j + 1], t[j + 3]);
        }
        // r[4 g + s] holds, in its quarter p, lanes 4 g to 4 g + 3 of step 4 p + s.
        for s in 0..4 {
            let even = |x, y| _mm512_shuffle_i32x4::<0x88>(x, y);
            let odd = |x, y| _mm512_shuffle_i32x4::<0xdd>(x, y);
            let (a, b) = (even(r[s], r[4 + s]), even(r[8 + s], r[12 + s]));
            let (c, d) = (odd(r[s], r[4 + s]), odd(r[8 + s], r[12 + s]));
            (t[s], t[4 + s], t[8 + s], t[12 + s]) = (even(a, b), even(c, d), odd(a, b), odd(c, d));
        }
        for (l, &t) in t.iter().enumerate() {
            if l < steps {
                _mm512_storeu_epi32(to.add(l * width), t);
            }
        }
    }
}

/// Transposes 8 x 8 elements of 8 bytes.
///
/// # Safety
/// As for [`transpose_16x16`].
#[inline(always)]
pub unsafe fn transpose_8x8_wide(
    from: *const u8,
    stride: isize,
    lanes: usize,
    steps: usize,
    to: *mut f64,
    width: usize,
) {
    let mask = u8::MAX >> (8 - steps);
    // SAFETY: the caller guarantees AVX-512, the rows and the capacity of `to`.
    unsafe {
        let mut r = [_mm512_setzero_pd(); 8];
        for (i, r) in r.iter_mut().enumerate() {
            if i < lanes {
                *r = _mm512_maskz_loadu_pd(mask, from.offset(i as isize * stride).cast());
            }
        }
        let mut t = r;
        for i in 0..4 {
            t[2 * i] = _mm512_unpacklo_pd(r[2 * i], r[2 * i + 1]);
            t[2 * i + 1] = _mm512_unpackhi_pd(r[2 * i], r[2 * i + 1]);
        }
        // t[2 g + s] holds, in its quarter p, lanes 2 g and 2 g + 1 of step 2 p + s.
        for s in 0..2 {
            let even = |x, y| _mm512_shuffle_f64x2::<0x88>(x, y);
            let odd = |x, y| _mm512_shuffle_f64x2::<0xdd>(x, y);
            let (a, b) = (even(t[s], t[2 + s]), even(t[4 + s], t[6 + s]));
            let (c, d) = (odd(t[s], t[2 + s]), odd(t[4 + s], t[6 + s]));
            (r[s], r[2 + s], r[4 + s], r[6 + s]) = (even(a, b), even(c, d), odd(a, b), odd(c, d));
        }
        for (l, &r) in r.iter().enumerate() {
            if l < steps {
                _mm512_storeu_pd(to.add(l * width), r);
            }
        }
    }
}

/// Transposes 8 x 8 elements of 4 bytes.
///
/// # Safety
/// The processor has AVX2, the rows exist, and `to` has capacity for the vectors.
#[inline(always)]
pub unsafe fn transpose_8x8(
    from: *const u8,
    stride: isize,
    lanes: usize,
    steps: usize,
    to: *mut f32,
    width: usize,
) {
    // SAFETY: the caller guarantees AVX2, the rows and the capacity of `to`.
    unsafe {
        let mask = first_of_8(steps);
        let mut r = [_mm256_setzero_ps(); 8];
        for (i, r) in r.iter_mut().enumerate() {
            if i < lanes {
                *r = _mm256_maskload_ps(from.offset(i as isize * stride).cast(), mask);
            }
        }
        let mut t = r;
        for i in 0..4 {
            t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
            t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
        }
        for j in [0, 4] {
            r[j] = _mm256_shuffle_ps::<0x44>(t[j], t[j + 2]);
            r[j + 1] = _mm256_shuffle_ps::<0xee>(t[j], t[j + 2]);
            r[j + 2] = _mm256_shuffle_ps::<0x44>(t[j + 1], t[j + 3]);
            r[j + 3] = _mm256_shuffle_ps::<0xee>(t[j + 1], t[j + 3]);
        }
        for s in 0..4 {
            t[s] = _mm256_permute2f128_ps::<0x20>(r[s], r[4 + s]);
            t[4 + s] = _mm256_permute2f128_ps::<0x31>(r[s], r[4 + s]);
        }
        for (l, &t) in t.iter().enumerate() {
            if l < steps {
                _mm256_storeu_ps(to.add(l * width), t);
            }
        }
    }
}

/// Transposes 4 x 4 elements of 8 bytes.
///
/// # Safety
/// As for [`transpose_8x8`].
#[inline(always)]
pub unsafe fn transpose_4x4(
    from: *const u8,
    stride: isize,
    lanes: usize,
    steps: usize,
    to: *mut f64,
    width: usize,
) {
    // SAFETY: the caller guarantees AVX2, the rows and the capacity of `to`.
    unsafe {
        let mask = first_of_4(steps);
        let mut r = [_mm256_setzero_pd(); 4];
        for (i, r) in r.iter_mut().enumerate() {
            if i < lanes {
                *r = _mm256_maskload_pd(from.offset(i as isize * stride).cast(), mask);
            }
        }
        let (a, b) = (_mm256_unpacklo_pd(r[0], r[1]), _mm256_unpackhi_pd(r[0], r[1]));
        let (c, d) = (_mm256_unpacklo_pd(r[2], r[3]), _mm256_unpackhi_pd(r[2], r[3]));
        let low = |x, y| _mm256_permute2f128_pd::<0x20>(x, y);
        let high = |x, y| _mm256_permute2f128_pd::<0x31>(x, y);
        for (l, t) in [low(a, c), low(b, d), high(a, c), high(b, d)].into_iter().enumerate() {
            if l < steps {
                _mm256_storeu_pd(to.add(l * width), t);
            }
        }
    }
}
