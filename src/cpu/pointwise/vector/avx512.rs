//! The instruction table of AVX-512 (F, BW, DQ and VL): sixteen `f32` or eight `f64`, with mask registers.

use super::registers::{Registers, instructions};
use std::arch::x86_64::*;

/// Sixteen `f32`.
#[derive(Clone, Copy)]
pub struct Single;

/// Eight `f64`.
#[derive(Clone, Copy)]
pub struct Double;

// SAFETY: every function uses only instructions of the set.
unsafe impl Registers for Single {
    type Number = f32;
    type Floats = __m512;
    type Ints = __m512i;
    type Mask = __mmask16;
    const WIDTH: usize = 16;
    const MANTISSA: usize = 23;
    const BIAS: i64 = 127;
    const SIGN: i64 = i32::MIN as i64;
    instructions! {
        add(x: Floats, y: Floats) -> Floats = _mm512_add_ps(x, y);
        sub(x: Floats, y: Floats) -> Floats = _mm512_sub_ps(x, y);
        mul(x: Floats, y: Floats) -> Floats = _mm512_mul_ps(x, y);
        div(x: Floats, y: Floats) -> Floats = _mm512_div_ps(x, y);
        fma(x: Floats, y: Floats, z: Floats) -> Floats = _mm512_fmadd_ps(x, y, z);
        fnma(x: Floats, y: Floats, z: Floats) -> Floats = _mm512_fnmadd_ps(x, y, z);
        min(x: Floats, y: Floats) -> Floats = _mm512_min_ps(x, y);
        max(x: Floats, y: Floats) -> Floats = _mm512_max_ps(x, y);
        sqrt(x: Floats) -> Floats = _mm512_sqrt_ps(x);
        floor(x: Floats) -> Floats = _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(x);
        round(x: Floats) -> Floats =
            _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x);
        lt(x: Floats, y: Floats) -> Mask = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(x, y);
        le(x: Floats, y: Floats) -> Mask = _mm512_cmp_ps_mask::<_CMP_LE_OQ>(x, y);
        eq(x: Floats, y: Floats) -> Mask = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(x, y);
        ne(x: Floats, y: Floats) -> Mask = _mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(x, y);
        select(mask: Mask, yes: Floats, no: Floats) -> Floats = _mm512_mask_blend_ps(mask, no, yes);
        both(x: Mask, y: Mask) -> Mask = x & y;
        either(x: Mask, y: Mask) -> Mask = x | y;
        not(x: Mask) -> Mask = !x;
        bits(x: Floats) -> Ints = _mm512_castps_si512(x);
        from_bits(x: Ints) -> Floats = _mm512_castsi512_ps(x);
        from_int(x: Ints) -> Floats = _mm512_cvtepi32_ps(x);
        int_add(x: Ints, y: Ints) -> Ints = _mm512_add_epi32(x, y);
        int_sub(x: Ints, y: Ints) -> Ints = _mm512_sub_epi32(x, y);
        int_and(x: Ints, y: Ints) -> Ints = _mm512_and_si512(x, y);
        int_or(x: Ints, y: Ints) -> Ints = _mm512_or_si512(x, y);
        int_xor(x: Ints, y: Ints) -> Ints = _mm512_xor_si512(x, y);
        int_eq(x: Ints, y: Ints) -> Mask = _mm512_cmpeq_epi32_mask(x, y);
        scale(x: Floats, turns: Floats, _n: Ints) -> Floats = _mm512_scalef_ps(x, turns);
    }
    #[inline(always)]
    unsafe fn splat(x: f64) -> __m512 {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_set1_ps(x as f32) }
    }
    #[inline(always)]
    unsafe fn int(x: i64) -> __m512i {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_set1_epi32(x as i32) }
    }
    #[inline(always)]
    unsafe fn any(x: __mmask16) -> bool {
        x != 0
    }
    #[inline(always)]
    unsafe fn nearest(x: __m512) -> (__m512, __m512i) {
        // The low bits of the sum are the integer.
        const MAGIC: f32 = 12_582_912.0;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let sum = _mm512_add_ps(x, _mm512_set1_ps(MAGIC));
            let bits = _mm512_sub_epi32(Self::bits(sum), _mm512_set1_epi32(MAGIC.to_bits() as _));
            (_mm512_sub_ps(sum, _mm512_set1_ps(MAGIC)), bits)
        }
    }
    #[inline(always)]
    unsafe fn int_shl(x: __m512i, n: usize) -> __m512i {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_sll_epi32(x, _mm_cvtsi32_si128(n as i32)) }
    }
    #[inline(always)]
    unsafe fn int_shr(x: __m512i, n: usize) -> __m512i {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_sra_epi32(x, _mm_cvtsi32_si128(n as i32)) }
    }
    #[inline(always)]
    unsafe fn lookup(index: __m512i, table: &[f32; 16]) -> __m512 {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_permutexvar_ps(index, _mm512_loadu_ps(table.as_ptr())) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m512 {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, x: __m512) {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_storeu_ps(to, x) }
    }
    #[inline(always)]
    unsafe fn load_part(from: *const f32, count: usize) -> __m512 {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_maskz_loadu_ps(!(__mmask16::MAX << count), from) }
    }
    #[inline(always)]
    unsafe fn store_part(to: *mut f32, count: usize, x: __m512) {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_mask_storeu_ps(to, !(__mmask16::MAX << count), x) }
    }
}

// SAFETY: every function uses only instructions of the set.
unsafe impl Registers for Double {
    type Number = f64;
    type Floats = __m512d;
    type Ints = __m512i;
    type Mask = __mmask8;
    const WIDTH: usize = 8;
    const MANTISSA: usize = 52;
    const BIAS: i64 = 1023;
    const SIGN: i64 = i64::MIN;
    instructions! {
        add(x: Floats, y: Floats) -> Floats = _mm512_add_pd(x, y);
        sub(x: Floats, y: Floats) -> Floats = _mm512_sub_pd(x, y);
        mul(x: Floats, y: Floats) -> Floats = _mm512_mul_pd(x, y);
        div(x: Floats, y: Floats) -> Floats = _mm512_div_pd(x, y);
        fma(x: Floats, y: Floats, z: Floats) -> Floats = _mm512_fmadd_pd(x, y, z);
        fnma(x: Floats, y: Floats, z: Floats) -> Floats = _mm512_fnmadd_pd(x, y, z);
        min(x: Floats, y: Floats) -> Floats = _mm512_min_pd(x, y);
        max(x: Floats, y: Floats) -> Floats = _mm512_max_pd(x, y);
        sqrt(x: Floats) -> Floats = _mm512_sqrt_pd(x);
        floor(x: Floats) -> Floats = _mm512_roundscale_pd::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(x);
        round(x: Floats) -> Floats =
            _mm512_roundscale_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x);
        lt(x: Floats, y: Floats) -> Mask = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(x, y);
        le(x: Floats, y: Floats) -> Mask = _mm512_cmp_pd_mask::<_CMP_LE_OQ>(x, y);
        eq(x: Floats, y: Floats) -> Mask = _mm512_cmp_pd_mask::<_CMP_EQ_OQ>(x, y);
        ne(x: Floats, y: Floats) -> Mask = _mm512_cmp_pd_mask::<_CMP_NEQ_UQ>(x, y);
        select(mask: Mask, yes: Floats, no: Floats) -> Floats = _mm512_mask_blend_pd(mask, no, yes);
        both(x: Mask, y: Mask) -> Mask = x & y;
        either(x: Mask, y: Mask) -> Mask = x | y;
        not(x: Mask) -> Mask = !x;
        bits(x: Floats) -> Ints = _mm512_castpd_si512(x);
        from_bits(x: Ints) -> Floats = _mm512_castsi512_pd(x);
        from_int(x: Ints) -> Floats = _mm512_cvtepi64_pd(x);
        int_add(x: Ints, y: Ints) -> Ints = _mm512_add_epi64(x, y);
        int_sub(x: Ints, y: Ints) -> Ints = _mm512_sub_epi64(x, y);
        int_and(x: Ints, y: Ints) -> Ints = _mm512_and_si512(x, y);
        int_or(x: Ints, y: Ints) -> Ints = _mm512_or_si512(x, y);
        int_xor(x: Ints, y: Ints) -> Ints = _mm512_xor_si512(x, y);
        int_eq(x: Ints, y: Ints) -> Mask = _mm512_cmpeq_epi64_mask(x, y);
        scale(x: Floats, turns: Floats, _n: Ints) -> Floats = _mm512_scalef_pd(x, turns);
    }
    #[inline(always)]
    unsafe fn splat(x: f64) -> __m512d {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_set1_pd(x) }
    }
    #[inline(always)]
    unsafe fn int(x: i64) -> __m512i {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_set1_epi64(x) }
    }
    #[inline(always)]
    unsafe fn any(x: __mmask8) -> bool {
        x != 0
    }
    #[inline(always)]
    unsafe fn nearest(x: __m512d) -> (__m512d, __m512i) {
        // The low bits of the sum are the integer.
        const MAGIC: f64 = 6_755_399_441_055_744.0;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let sum = _mm512_add_pd(x, _mm512_set1_pd(MAGIC));
            let bits = _mm512_sub_epi64(Self::bits(sum), _mm512_set1_epi64(MAGIC.to_bits() as _));
            (_mm512_sub_pd(sum, _mm512_set1_pd(MAGIC)), bits)
        }
    }
    #[inline(always)]
    unsafe fn int_shl(x: __m512i, n: usize) -> __m512i {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_sll_epi64(x, _mm_cvtsi32_si128(n as i32)) }
    }
    #[inline(always)]
    unsafe fn int_shr(x: __m512i, n: usize) -> __m512i {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_sra_epi64(x, _mm_cvtsi32_si128(n as i32)) }
    }
    #[inline(always)]
    unsafe fn lookup(index: __m512i, table: &[f64; 16]) -> __m512d {
        // SAFETY: guaranteed by the caller; the table is two registers long.
        unsafe {
            let (first, second) = (_mm512_loadu_pd(table.as_ptr()), _mm512_loadu_pd(table.as_ptr().add(8)));
            _mm512_permutex2var_pd(first, index, second)
        }
    }
    #[inline(always)]
    unsafe fn load(from: *const f64) -> __m512d {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_loadu_pd(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f64, x: __m512d) {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_storeu_pd(to, x) }
    }
    #[inline(always)]
    unsafe fn load_part(from: *const f64, count: usize) -> __m512d {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_maskz_loadu_pd(!(__mmask8::MAX << count), from) }
    }
    #[inline(always)]
    unsafe fn store_part(to: *mut f64, count: usize, x: __m512d) {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_mask_storeu_pd(to, !(__mmask8::MAX << count), x) }
    }
}
