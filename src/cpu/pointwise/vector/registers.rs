//! [`Registers`], the registers of an instruction set and its operations as one table.
//!
//! AVX2 (with FMA) holds eight `f32` or four `f64`, and its masks are registers of ones and zeros. AVX-512
//! (F, BW, DQ and VL) holds twice as many, and has mask registers.
//!
//! Read next: `src/cpu/pointwise/vector/lane.rs`, the lane over any of them.

use super::lane::{Integers, Vector};
use crate::math::{self, Functions};
use std::arch::x86_64::*;
use std::marker::PhantomData;

/// The registers of AVX2 for numbers of type `T`.
#[derive(Clone, Copy)]
pub struct Avx2<T>(PhantomData<T>);

/// The registers of AVX-512 for numbers of type `T`.
#[derive(Clone, Copy)]
pub struct Avx512<T>(PhantomData<T>);

/// Declares a function of [`Registers`], or defines it as an expression.
macro_rules! function {
    ($(#[$doc:meta])* $name:ident ($($arg:ident: $type:ty),*) -> $out:ty) => {
        $(#[$doc])*
        unsafe fn $name($($arg: $type),*) -> $out;
    };
    ($name:ident ($($arg:ident: $type:ty),*) -> $out:ty = $body:expr) => {
        #[inline(always)]
        #[allow(unused_variables)] // one set needs `turns`, the other `n`
        unsafe fn $name($($arg: $type),*) -> $out {
            // SAFETY: guaranteed by the caller. Some expressions need no guarantee.
            #[allow(unused_unsafe)]
            unsafe {
                $body
            }
        }
    };
}

/// Declares [`Registers`], and implements it by the columns of the table.
macro_rules! registers {
    (
        [$($kind:ident: $s:ty, $d:ty, $s512:ty, $d512:ty;)*]
        $($signature:tt -> $out:ty {
            $($(#[$doc:meta])* $name:ident: $f:expr, $g:expr, $f512:expr, $g512:expr;)*
        })*
    ) => {
        /// The registers of an instruction set and the operations on them, for one number type.
        ///
        /// # Safety
        /// Every function needs the instruction set. Lanes are only made under `Number::run`, which runs
        /// after the processor was checked.
        #[allow(missing_docs, reason = "`Lane` and `Real` describe the same operations")]
        pub unsafe trait Registers: Copy + 'static {
            type Number: Copy + Default + PartialEq + Functions;
            $(type $kind: Copy;)*
            $($(function!($(#[$doc])* $name $signature -> $out);)*)*
        }
        registers!(@Avx2<f32>; [$($kind = $s;)*] $($($name $signature -> $out = $f;)*)*);
        registers!(@Avx2<f64>; [$($kind = $d;)*] $($($name $signature -> $out = $g;)*)*);
        registers!(@Avx512<f32>; [$($kind = $s512;)*] $($($name $signature -> $out = $f512;)*)*);
        registers!(@Avx512<f64>; [$($kind = $d512;)*] $($($name $signature -> $out = $g512;)*)*);
    };
    (
        @$set:ident<$number:ty>;
        [$($kind:ident = $type:ty;)*] $($name:ident $signature:tt -> $out:ty = $body:expr;)*
    ) => {
        // SAFETY: every function uses only instructions of the set.
        unsafe impl Registers for $set<$number> {
            type Number = $number;
            $(type $kind = $type;)*
            $(function!($name $signature -> $out = $body);)*
        }
    };
}

const FLOOR: i32 = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

registers! {
    // AVX2 with f32, with f64, AVX-512 with f32, with f64.
    [
        Floats: __m256, __m256d, __m512, __m512d;
        Ints: __m256i, __m256i, __m512i, __m512i;
        Mask: __m256, __m256d, __mmask16, __mmask8;
    ]
    (x: f64) -> Self::Floats {
        splat: _mm256_set1_ps(x as f32), _mm256_set1_pd(x), _mm512_set1_ps(x as f32), _mm512_set1_pd(x);
    }
    (x: Self::Floats) -> Self::Floats {
        sqrt: _mm256_sqrt_ps(x), _mm256_sqrt_pd(x), _mm512_sqrt_ps(x), _mm512_sqrt_pd(x);
        floor: _mm256_round_ps::<FLOOR>(x), _mm256_round_pd::<FLOOR>(x),
            _mm512_roundscale_ps::<FLOOR>(x), _mm512_roundscale_pd::<FLOOR>(x);
        round: _mm256_round_ps::<NEAREST>(x), _mm256_round_pd::<NEAREST>(x),
            _mm512_roundscale_ps::<NEAREST>(x), _mm512_roundscale_pd::<NEAREST>(x);
    }
    (x: Self::Floats, y: Self::Floats) -> Self::Floats {
        add: _mm256_add_ps(x, y), _mm256_add_pd(x, y), _mm512_add_ps(x, y), _mm512_add_pd(x, y);
        sub: _mm256_sub_ps(x, y), _mm256_sub_pd(x, y), _mm512_sub_ps(x, y), _mm512_sub_pd(x, y);
        mul: _mm256_mul_ps(x, y), _mm256_mul_pd(x, y), _mm512_mul_ps(x, y), _mm512_mul_pd(x, y);
        div: _mm256_div_ps(x, y), _mm256_div_pd(x, y), _mm512_div_ps(x, y), _mm512_div_pd(x, y);
        /// The smaller; `y` if one is NaN.
        min: _mm256_min_ps(x, y), _mm256_min_pd(x, y), _mm512_min_ps(x, y), _mm512_min_pd(x, y);
        /// The larger; `y` if one is NaN.
        max: _mm256_max_ps(x, y), _mm256_max_pd(x, y), _mm512_max_ps(x, y), _mm512_max_pd(x, y);
    }
    (x: Self::Floats, y: Self::Floats, z: Self::Floats) -> Self::Floats {
        /// `x * y + z`.
        fma: _mm256_fmadd_ps(x, y, z), _mm256_fmadd_pd(x, y, z),
            _mm512_fmadd_ps(x, y, z), _mm512_fmadd_pd(x, y, z);
        /// `z - x * y`.
        fnma: _mm256_fnmadd_ps(x, y, z), _mm256_fnmadd_pd(x, y, z),
            _mm512_fnmadd_ps(x, y, z), _mm512_fnmadd_pd(x, y, z);
    }
    (x: Self::Floats, y: Self::Floats) -> Self::Mask {
        lt: _mm256_cmp_ps::<_CMP_LT_OQ>(x, y), _mm256_cmp_pd::<_CMP_LT_OQ>(x, y),
            _mm512_cmp_ps_mask::<_CMP_LT_OQ>(x, y), _mm512_cmp_pd_mask::<_CMP_LT_OQ>(x, y);
        le: _mm256_cmp_ps::<_CMP_LE_OQ>(x, y), _mm256_cmp_pd::<_CMP_LE_OQ>(x, y),
            _mm512_cmp_ps_mask::<_CMP_LE_OQ>(x, y), _mm512_cmp_pd_mask::<_CMP_LE_OQ>(x, y);
        eq: _mm256_cmp_ps::<_CMP_EQ_OQ>(x, y), _mm256_cmp_pd::<_CMP_EQ_OQ>(x, y),
            _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(x, y), _mm512_cmp_pd_mask::<_CMP_EQ_OQ>(x, y);
        ne: _mm256_cmp_ps::<_CMP_NEQ_UQ>(x, y), _mm256_cmp_pd::<_CMP_NEQ_UQ>(x, y),
            _mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(x, y), _mm512_cmp_pd_mask::<_CMP_NEQ_UQ>(x, y);
    }
    (mask: Self::Mask, yes: Self::Floats, no: Self::Floats) -> Self::Floats {
        select: _mm256_blendv_ps(no, yes, mask), _mm256_blendv_pd(no, yes, mask),
            _mm512_mask_blend_ps(mask, no, yes), _mm512_mask_blend_pd(mask, no, yes);
    }
    (x: Self::Mask, y: Self::Mask) -> Self::Mask {
        both: _mm256_and_ps(x, y), _mm256_and_pd(x, y), x & y, x & y;
        either: _mm256_or_ps(x, y), _mm256_or_pd(x, y), x | y, x | y;
    }
    (x: Self::Mask) -> Self::Mask {
        not: _mm256_xor_ps(x, Self::from_bits(Self::int(-1))),
            _mm256_xor_pd(x, Self::from_bits(Self::int(-1))), !x, !x;
    }
    (x: Self::Mask) -> bool {
        any: _mm256_movemask_ps(x) != 0, _mm256_movemask_pd(x) != 0, x != 0, x != 0;
    }
    (x: i64) -> Self::Ints {
        int: _mm256_set1_epi32(x as i32), _mm256_set1_epi64x(x),
            _mm512_set1_epi32(x as i32), _mm512_set1_epi64(x);
    }
    (x: Self::Floats) -> Self::Ints {
        bits: _mm256_castps_si256(x), _mm256_castpd_si256(x), _mm512_castps_si512(x), _mm512_castpd_si512(x);
    }
    (x: Self::Ints) -> Self::Floats {
        from_bits: _mm256_castsi256_ps(x), _mm256_castsi256_pd(x),
            _mm512_castsi512_ps(x), _mm512_castsi512_pd(x);
        /// The float nearest to a small integer; AVX2 has no such instruction for 64 bits.
        from_int: _mm256_cvtepi32_ps(x), math::from_small_int::<Vector<Self>>(Integers(x)).0,
            _mm512_cvtepi32_ps(x), _mm512_cvtepi64_pd(x);
    }
    (x: Self::Ints, y: Self::Ints) -> Self::Ints {
        int_add: _mm256_add_epi32(x, y), _mm256_add_epi64(x, y),
            _mm512_add_epi32(x, y), _mm512_add_epi64(x, y);
        int_sub: _mm256_sub_epi32(x, y), _mm256_sub_epi64(x, y),
            _mm512_sub_epi32(x, y), _mm512_sub_epi64(x, y);
        int_and: _mm256_and_si256(x, y), _mm256_and_si256(x, y),
            _mm512_and_si512(x, y), _mm512_and_si512(x, y);
        int_or: _mm256_or_si256(x, y), _mm256_or_si256(x, y),
            _mm512_or_si512(x, y), _mm512_or_si512(x, y);
        int_xor: _mm256_xor_si256(x, y), _mm256_xor_si256(x, y),
            _mm512_xor_si512(x, y), _mm512_xor_si512(x, y);
    }
    (x: Self::Ints, n: usize) -> Self::Ints {
        int_shl: _mm256_sll_epi32(x, count(n)), _mm256_sll_epi64(x, count(n)),
            _mm512_sll_epi32(x, count(n)), _mm512_sll_epi64(x, count(n));
        int_shr: _mm256_sra_epi32(x, count(n)), arithmetic_shift_64(x, n),
            _mm512_sra_epi32(x, count(n)), _mm512_sra_epi64(x, count(n));
    }
    (x: Self::Ints, y: Self::Ints) -> Self::Mask {
        int_eq: Self::from_bits(_mm256_cmpeq_epi32(x, y)), Self::from_bits(_mm256_cmpeq_epi64(x, y)),
            _mm512_cmpeq_epi32_mask(x, y), _mm512_cmpeq_epi64_mask(x, y);
    }
    (x: Self::Floats, turns: Self::Floats, n: Self::Ints) -> Self::Floats {
        /// `x * 2^n`, rounded once; `turns` holds the same `n` as floats.
        scale: math::scaled(Vector::<Self>(x), Integers(n)).0, math::scaled(Vector::<Self>(x), Integers(n)).0,
            _mm512_scalef_ps(x, turns), _mm512_scalef_pd(x, turns);
    }
    (index: Self::Ints, table: &[Self::Number; 16]) -> Self::Floats {
        lookup: lookup_256(index, table),
            _mm256_i64gather_pd::<8>(table.as_ptr(), Self::int_and(index, Self::int(15))),
            _mm512_permutexvar_ps(index, _mm512_loadu_ps(table.as_ptr())),
            _mm512_permutex2var_pd(Self::load(table.as_ptr()), index, Self::load(table.as_ptr().add(8)));
    }
    (from: *const Self::Number) -> Self::Floats {
        load: _mm256_loadu_ps(from), _mm256_loadu_pd(from), _mm512_loadu_ps(from), _mm512_loadu_pd(from);
    }
    (to: *mut Self::Number, x: Self::Floats) -> () {
        store: _mm256_storeu_ps(to, x), _mm256_storeu_pd(to, x),
            _mm512_storeu_ps(to, x), _mm512_storeu_pd(to, x);
    }
    // The first `n < WIDTH` numbers.
    (from: *const Self::Number, n: usize) -> Self::Floats {
        load_part: _mm256_maskload_ps(from, ones_32(n)), _mm256_maskload_pd(from, ones_64(n)),
            _mm512_maskz_loadu_ps(!(__mmask16::MAX << n), from),
            _mm512_maskz_loadu_pd(!(__mmask8::MAX << n), from);
    }
    (to: *mut Self::Number, n: usize, x: Self::Floats) -> () {
        store_part: _mm256_maskstore_ps(to, ones_32(n), x), _mm256_maskstore_pd(to, ones_64(n), x),
            _mm512_mask_storeu_ps(to, !(__mmask16::MAX << n), x),
            _mm512_mask_storeu_pd(to, !(__mmask8::MAX << n), x);
    }
}

/// A shift count as the instructions take it.
#[inline(always)]
fn count(n: usize) -> __m128i {
    // SAFETY: SSE2 is part of the target.
    unsafe { _mm_cvtsi32_si128(n as i32) }
}

/// A signed shift of 64 bits, which AVX2 lacks: a logical one, then a subtraction extends the sign.
#[inline(always)]
unsafe fn arithmetic_shift_64(x: __m256i, n: usize) -> __m256i {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let sign = _mm256_set1_epi64x((1_u64 << 63 >> n) as i64);
        _mm256_sub_epi64(_mm256_xor_si256(_mm256_srl_epi64(x, count(n)), sign), sign)
    }
}

/// The elements of a table of two registers; the fourth bit of the index selects one.
#[inline(always)]
unsafe fn lookup_256(index: __m256i, table: &[f32; 16]) -> __m256 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (first, second) = (_mm256_loadu_ps(table.as_ptr()), _mm256_loadu_ps(table.as_ptr().add(8)));
        let (first, second) =
            (_mm256_permutevar8x32_ps(first, index), _mm256_permutevar8x32_ps(second, index));
        _mm256_blendv_ps(first, second, _mm256_castsi256_ps(_mm256_slli_epi32::<28>(index)))
    }
}

/// The mask of the first `n < 8` numbers.
#[inline(always)]
unsafe fn ones_32(n: usize) -> __m256i {
    static ONES: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
    // SAFETY: the mask lies in the array: it starts `n` before the middle.
    unsafe { _mm256_loadu_si256(ONES.as_ptr().add(8 - n).cast()) }
}

/// The mask of the first `n < 4` numbers of 64 bits.
#[inline(always)]
unsafe fn ones_64(n: usize) -> __m256i {
    static ONES: [i64; 8] = [-1, -1, -1, -1, 0, 0, 0, 0];
    // SAFETY: as above.
    unsafe { _mm256_loadu_si256(ONES.as_ptr().add(4 - n).cast()) }
}
