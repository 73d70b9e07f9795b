//! Squares of elements transposed in registers, for packing: rows are loaded, columns are stored. The
//! shuffles are the textbook ones: pairs, then pairs of pairs, then 128-bit quarters.

use super::vector::{Square, Vector};
use super::x86::{F32x8, F32x16, F64x4, F64x8};
use std::arch::x86_64::*;

/// The registers of a square; the first `LANES` are used.
type Rows<V> = [<V as Vector>::Register; 16];

/// Floats of which `LANES` vectors can be transposed in registers.
pub trait Turn: Vector {
    /// Returns the transpose of the first `LANES` vectors.
    ///
    /// # Safety
    /// As for [`Vector`].
    unsafe fn turn(r: Rows<Self>) -> Rows<Self>;
}

/// [`Vector::transpose`] of elements of the size of these floats.
///
/// # Safety
/// As for [`Vector`].
#[inline(always)]
pub unsafe fn transpose<V: Turn>(square: Square, to: *mut V::Number, width: usize) {
    let Square { from, stride, lanes, steps } = square;
    // SAFETY: the caller guarantees the instructions, the lanes and the capacity of `to`.
    unsafe {
        let mut rows = [V::zero(); 16];
        for (i, row) in rows[..V::LANES].iter_mut().enumerate() {
            if i < lanes {
                *row = V::load_first(from.offset(i as isize * stride).cast(), steps);
            }
        }
        for (l, &column) in V::turn(rows)[..V::LANES].iter().enumerate() {
            if l < steps {
                V::store(to.add(l * width), column);
            }
        }
    }
}

/// Transposes the 4 x 4 squares of floats in the quarters of registers `r`, by way of `t`.
macro_rules! quarters {
    ($r:ident, $t:ident, $low:ident, $high:ident, $shuffle:ident) => {
        for i in (0..Self::LANES).step_by(2) {
            ($t[i], $t[i + 1]) = ($low($r[i], $r[i + 1]), $high($r[i], $r[i + 1]));
        }
        for j in (0..Self::LANES).step_by(4) {
            let pair = |i: usize| ($shuffle::<0x44>($t[i], $t[i + 2]), $shuffle::<0xee>($t[i], $t[i + 2]));
            (($r[j], $r[j + 1]), ($r[j + 2], $r[j + 3])) = (pair(j), pair(j + 1));
        }
    };
}

impl Turn for F32x16 {
    #[inline(always)]
    unsafe fn turn(mut r: Rows<Self>) -> Rows<Self> {
        // SAFETY: the caller guarantees AVX-512.
        unsafe {
            let mut t = r;
            quarters!(r, t, _mm512_unpacklo_ps, _mm512_unpackhi_ps, _mm512_shuffle_ps);
            // r[4 g + s] holds, in its quarter p, lanes 4 g to 4 g + 3 of step 4 p + s.
            for s in 0..4 {
                let even = |x, y| _mm512_shuffle_f32x4::<0x88>(x, y);
                let odd = |x, y| _mm512_shuffle_f32x4::<0xdd>(x, y);
                let (a, b) = (even(r[s], r[4 + s]), even(r[8 + s], r[12 + s]));
                let (c, d) = (odd(r[s], r[4 + s]), odd(r[8 + s], r[12 + s]));
                (t[s], t[4 + s], t[8 + s], t[12 + s]) = (even(a, b), even(c, d), odd(a, b), odd(c, d));
            }
            t
        }
    }
}

impl Turn for F64x8 {
    #[inline(always)]
    unsafe fn turn(mut r: Rows<Self>) -> Rows<Self> {
        // SAFETY: the caller guarantees AVX-512.
        unsafe {
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
            r
        }
    }
}

impl Turn for F32x8 {
    #[inline(always)]
    unsafe fn turn(mut r: Rows<Self>) -> Rows<Self> {
        // SAFETY: the caller guarantees AVX2.
        unsafe {
            let mut t = r;
            quarters!(r, t, _mm256_unpacklo_ps, _mm256_unpackhi_ps, _mm256_shuffle_ps);
            for s in 0..4 {
                t[s] = _mm256_permute2f128_ps::<0x20>(r[s], r[4 + s]);
                t[4 + s] = _mm256_permute2f128_ps::<0x31>(r[s], r[4 + s]);
            }
            t
        }
    }
}

impl Turn for F64x4 {
    #[inline(always)]
    unsafe fn turn(mut r: Rows<Self>) -> Rows<Self> {
        // SAFETY: the caller guarantees AVX2.
        unsafe {
            let (a, b) = (_mm256_unpacklo_pd(r[0], r[1]), _mm256_unpackhi_pd(r[0], r[1]));
            let (c, d) = (_mm256_unpacklo_pd(r[2], r[3]), _mm256_unpackhi_pd(r[2], r[3]));
            let low = |x, y| _mm256_permute2f128_pd::<0x20>(x, y);
            let high = |x, y| _mm256_permute2f128_pd::<0x31>(x, y);
            (r[0], r[1], r[2], r[3]) = (low(a, c), low(b, d), high(a, c), high(b, d));
            r
        }
    }
}
