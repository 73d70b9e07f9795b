//! The instruction table of AVX2 and FMA: eight `f32` or four `f64`; a mask is a register of ones and zeros.

use super::registers::{Registers, instructions};
use std::arch::x86_64::*;

/// Eight `f32`.
#[derive(Clone, Copy)]
pub struct Single;

/// Four `f64`.
#[derive(Clone, Copy)]
pub struct Double;

/// Ones, then zeros: the mask of the first `count` numbers starts `count` before the middle.
static ONES: [i64; 8] = [-1, -1, -1, -1, 0, 0, 0, 0];
/// [`ONES`] for `f32`.
static ONES_32: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

// SAFETY: every function uses only instructions of the set.
unsafe impl Registers for Single {
    type Number = f32;
    type Floats = __m256;
    type Ints = __m256i;
    type Mask = __m256;
    const WIDTH: usize = 8;
    const MANTISSA: usize = 23;
    const BIAS: i64 = 127;
    const SIGN: i64 = i32::MIN as i64;
    instructions! {
        add(x: Floats, y: Floats) -> Floats = _mm256_add_ps(x, y);
        sub(x: Floats, y: Floats) -> Floats = _mm256_sub_ps(x, y);
        mul(x: Floats, y: Floats) -> Floats = _mm256_mul_ps(x, y);
        div(x: Floats, y: Floats) -> Floats = _mm256_div_ps(x, y);
        fma(x: Floats, y: Floats, z: Floats) -> Floats = _mm256_fmadd_ps(x, y, z);
        fnma(x: Floats, y: Floats, z: Floats) -> Floats = _mm256_fnmadd_ps(x, y, z);
        min(x: Floats, y: Floats) -> Floats = _mm256_min_ps(x, y);
        max(x: Floats, y: Floats) -> Floats = _mm256_max_ps(x, y);
        sqrt(x: Floats) -> Floats = _mm256_sqrt_ps(x);
        floor(x: Floats) -> Floats = _mm256_floor_ps(x);
        round(x: Floats) -> Floats = _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x);
        lt(x: Floats, y: Floats) -> Mask = _mm256_cmp_ps::<_CMP_LT_OQ>(x, y);
        le(x: Floats, y: Floats) -> Mask = _mm256_cmp_ps::<_CMP_LE_OQ>(x, y);
        eq(x: Floats, y: Floats) -> Mask = _mm256_cmp_ps::<_CMP_EQ_OQ>(x, y);
        ne(x: Floats, y: Floats) -> Mask = _mm256_cmp_ps::<_CMP_NEQ_UQ>(x, y);
        select(mask: Mask, yes: Floats, no: Floats) -> Floats = _mm256_blendv_ps(no, yes, mask);
        both(x: Mask, y: Mask) -> Mask = _mm256_and_ps(x, y);
        either(x: Mask, y: Mask) -> Mask = _mm256_or_ps(x, y);
        not(x: Mask) -> Mask = _mm256_xor_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(-1)));
        bits(x: Floats) -> Ints = _mm256_castps_si256(x);
        from_bits(x: Ints) -> Floats = _mm256_castsi256_ps(x);
        int_add(x: Ints, y: Ints) -> Ints = _mm256_add_epi32(x, y);
        int_sub(x: Ints, y: Ints) -> Ints = _mm256_sub_epi32(x, y);
        int_and(x: Ints, y: Ints) -> Ints = _mm256_and_si256(x, y);
        int_or(x: Ints, y: Ints) -> Ints = _mm256_or_si256(x, y);
        int_xor(x: Ints, y: Ints) -> Ints = _mm256_xor_si256(x, y);
        int_eq(x: Ints, y: Ints) -> Mask = _mm256_castsi256_ps(_mm256_cmpeq_epi32(x, y));
    }
    #[inline(always)]
    unsafe fn from_int(x: __m256i) -> __m256 {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm256_cvtepi32_ps(x) }
    }
    #[inline(always)]
    unsafe fn splat(x: f64) -> __m256 {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm256_set1_ps(x as f32) }
    }
    #[inline(always)]
    unsafe fn int(x: i64) -> __m256i {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm256_set1_epi32(x as i32) }
    }
    #[inline(always)]
    unsafe fn any(x: __m256) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm256_movemask_ps(x) != 0 }
    }
    #[inline(always)]
    unsafe fn nearest(x: __m256) -> (__m256, __m256i) {
        // The low bits of the sum are the integer.
        const MAGIC: f32 = 12_582_912.0;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let sum = _mm256_add_ps(x, _mm256_set1_ps(MAGIC));
            let bits = _mm256_sub_epi32(Self::bits(sum), _mm256_set1_epi32(MAGIC.to_bits() as _));
            (_mm256_sub_ps(sum, _mm256_set1_ps(MAGIC)), bits)
        }
    }
    #[inline(always)]
    unsafe fn int_shl(x: __m256i, n: usize) -> __m256i {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm256_sll_epi32(x, _mm_cvtsi32_si128(n as i32)) }
    }
    #[inline(always)]
    unsafe fn int_shr(x: __m256i, n: usize) -> __m256i {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm256_sra_epi32(x, _mm_cvtsi32_si128(n as i32)) }
    }
    #[inline(always)]
    unsafe fn lookup(index: __m256i, table: &[f32; 16]) -> __m256 {
        // The fourth bit of the index selects one of two registers.
        // SAFETY: guaranteed by the caller; the table is two registers long.
        unsafe {
            let (first, second) = (_mm256_loadu_ps(table.as_ptr()), _mm256_loadu_ps(table.as_ptr().add(8)));
            let upper = _mm256_castsi256_ps(_mm256_slli_epi32::<28>(index));
            let (first, second) =
                (_mm256_permutevar8x32_ps(first, index), _mm256_permutevar8x32_ps(second, index));
            _mm256_blendv_ps(first, second, upper)
        }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m256 {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm256_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, x: __m256) {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm256_storeu_ps(to, x) }
    }
    #[inline(always)]
    unsafe fn load_part(from: *const f32, count: usize) -> __m256 {
        // SAFETY: guaranteed by the caller; `count < WIDTH`, so the mask lies in its array.
        unsafe { _mm256_maskload_ps(from, _mm256_loadu_si256(ONES_32.as_ptr().add(8 - count).cast())) }
    }
    #[inline(always)]
    unsafe fn store_part(to: *mut f32, count: usize, x: __m256) {
        // SAFETY: as above.
        unsafe { _mm256_maskstore_ps(to, _mm256_loadu_si256(ONES_32.as_ptr().add(8 - count).cast()), x) }
    }
}

// SAFETY: every function uses only instructions of the set.
unsafe impl Registers for Double {
    type Number = f64;
    type Floats = __m256d;
    type Ints = __m256i;
    type Mask = __m256d;
    const WIDTH: usize = 4;
    const MANTISSA: usize = 52;
    const BIAS: i64 = 1023;
    const SIGN: i64 = i64::MIN;
    instructions! {
        add(x: Floats, y: Floats) -> Floats = _mm256_add_pd(x, y);
        sub(x: Floats, y: Floats) -> Floats = _mm256_sub_pd(x, y);
        mul(x: Floats, y: Floats) -> Floats = _mm256_mul_pd(x, y);
        div(x: Floats, y: Floats) -> Floats = _mm256_div_pd(x, y);
        fma(x: Floats, y: Floats, z: Floats) -> Floats = _mm256_fmadd_pd(x, y, z);
        fnma(x: Floats, y: Floats, z: Floats) -> Floats = _mm256_fnmadd_pd(x, y, z);
        min(x: Floats, y: Floats) -> Floats = _mm256_min_pd(x, y);
        max(x: Floats, y: Floats) -> Floats = _mm256_max_pd(x, y);
        sqrt(x: Floats) -> Floats = _mm256_sqrt_pd(x);
        floor(x: Floats) -> Floats = _mm256_floor_pd(x);
        round(x: Floats) -> Floats = _mm256_round_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x);
        lt(x: Floats, y: Floats) -> Mask = _mm256_cmp_pd::<_CMP_LT_OQ>(x, y);
        le(x: Floats, y: Floats) -> Mask = _mm256_cmp_pd::<_CMP_LE_OQ>(x, y);
        eq(x: Floats, y: Floats) -> Mask = _mm256_cmp_pd::<_CMP_EQ_OQ>(x, y);
        ne(x: Floats, y: Floats) -> Mask = _mm256_cmp_pd::<_CMP_NEQ_UQ>(x, y);
        select(mask: Mask, yes: Floats, no: Floats) -> Floats = _mm256_blendv_pd(no, yes, mask);
        both(x: Mask, y: Mask) -> Mask = _mm256_and_pd(x, y);
        either(x: Mask, y: Mask) -> Mask = _mm256_or_pd(x, y);
        not(x: Mask) -> Mask = _mm256_xor_pd(x, _mm256_castsi256_pd(_mm256_set1_epi32(-1)));
        bits(x: Floats) -> Ints = _mm256_castpd_si256(x);
        from_bits(x: Ints) -> Floats = _mm256_castsi256_pd(x);
        int_add(x: Ints, y: Ints) -> Ints = _mm256_add_epi64(x, y);
        int_sub(x: Ints, y: Ints) -> Ints = _mm256_sub_epi64(x, y);
        int_and(x: Ints, y: Ints) -> Ints = _mm256_and_si256(x, y);
        int_or(x: Ints, y: Ints) -> Ints = _mm256_or_si256(x, y);
        int_xor(x: Ints, y: Ints) -> Ints = _mm256_xor_si256(x, y);
        int_eq(x: Ints, y: Ints) -> Mask = _mm256_castsi256_pd(_mm256_cmpeq_epi64(x, y));
    }
    #[inline(always)]
    unsafe fn from_int(x: __m256i) -> __m256d {
        // There is no such instruction; this is `nearest` backwards.
        const MAGIC: f64 = 6_755_399_441_055_744.0;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let sum = _mm256_add_epi64(x, _mm256_set1_epi64x(MAGIC.to_bits() as i64));
            _mm256_sub_pd(_mm256_castsi256_pd(sum), _mm256_set1_pd(MAGIC))
        }
    }
    #[inline(always)]
    unsafe fn splat(x: f64) -> __m256d {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm256_set1_pd(x) }
    }
    #[inline(always)]
    unsafe fn int(x: i64) -> __m256i {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm256_set1_epi64x(x) }
    }
    #[inline(always)]
    unsafe fn any(x: __m256d) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm256_movemask_pd(x) != 0 }
    }
    #[inline(always)]
    unsafe fn nearest(x: __m256d) -> (__m256d, __m256i) {
        // The low bits of the sum are the integer.
        const MAGIC: f64 = 6_755_399_441_055_744.0;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let sum = _mm256_add_pd(x, _mm256_set1_pd(MAGIC));
            let bits = _mm256_sub_epi64(Self::bits(sum), _mm256_set1_epi64x(MAGIC.to_bits() as _));
            (_mm256_sub_pd(sum, _mm256_set1_pd(MAGIC)), bits)
        }
    }
    #[inline(always)]
    unsafe fn int_shl(x: __m256i, n: usize) -> __m256i {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm256_sll_epi64(x, _mm_cvtsi32_si128(n as i32)) }
    }
    #[inline(always)]
    unsafe fn int_shr(x: __m256i, n: usize) -> __m256i {
        // No such instruction for 64 bits: shift logically, then extend the sign by a subtraction.
        // SAFETY: guaranteed by the caller.
        unsafe {
            let moved = _mm256_srl_epi64(x, _mm_cvtsi32_si128(n as i32));
            let sign = _mm256_set1_epi64x((1_u64 << 63 >> n) as i64);
            _mm256_sub_epi64(_mm256_xor_si256(moved, sign), sign)
        }
    }
    #[inline(always)]
    unsafe fn lookup(index: __m256i, table: &[f64; 16]) -> __m256d {
        // SAFETY: guaranteed by the caller; four bits stay inside the table.
        unsafe {
            let index = _mm256_and_si256(index, _mm256_set1_epi64x(15));
            _mm256_i64gather_pd::<8>(table.as_ptr(), index)
        }
    }
    #[inline(always)]
    unsafe fn load(from: *const f64) -> __m256d {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm256_loadu_pd(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f64, x: __m256d) {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm256_storeu_pd(to, x) }
    }
    #[inline(always)]
    unsafe fn load_part(from: *const f64, count: usize) -> __m256d {
        // SAFETY: guaranteed by the caller; `count < WIDTH`, so the mask lies in its array.
        unsafe { _mm256_maskload_pd(from, _mm256_loadu_si256(ONES.as_ptr().add(4 - count).cast())) }
    }
    #[inline(always)]
    unsafe fn store_part(to: *mut f64, count: usize, x: __m256d) {
        // SAFETY: as above.
        unsafe { _mm256_maskstore_pd(to, _mm256_loadu_si256(ONES.as_ptr().add(4 - count).cast()), x) }
    }
}
