//! The vectors of x86-64: AVX-512, AVX-512 with bfloat16 pairs, and AVX2.

use super::mac::Mac;
use super::transpose::transpose;
use super::vector::{Square, Vector, inlined};
use std::arch::x86_64::*;

/// Implements [`Vector`]; `as` names the floats of the same size, as which elements are transposed.
macro_rules! vectors {
    ($(
        $(#[$doc:meta])*
        $name:ident($t:ty, $register:ty, $lanes:literal, $masks:literal) as $floats:ident,
        zero $zero:ident, splat $splat:ident, load $load:ident, load_first $load_first:expr,
        store $store:ident, store_first $store_first:expr, plus $plus:ident, add_product $add_product:expr;
    )*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name;

        impl Vector for $name {
            type Number = $t;
            type Register = $register;
            const LANES: usize = $lanes;
            const MASKS: bool = $masks;
            inlined! {
                zero() -> $register = $zero();
                splat(x: $t) -> $register = $splat(x);
                load(from: *const $t) -> $register = $load(from.cast());
                load_first(from: *const $t, n: usize) -> $register = $load_first(from, n);
                store(to: *mut $t, x: $register) = $store(to.cast(), x);
                store_first(to: *mut $t, x: $register, n: usize) = $store_first(to, x, n);
                plus(x: $register, y: $register) -> $register = $plus(x, y);
                add_product(x: $register, y: $register, sum: $register) -> $register =
                    $add_product(x, y, sum);
                transpose(square: Square, to: *mut $t, width: usize) =
                    transpose::<$floats>(square, to.cast(), width);
            }
        })*
    };
}

vectors! {
    /// Sixteen `f32`.
    F32x16(f32, __m512, 16, true) as F32x16,
        zero _mm512_setzero_ps, splat _mm512_set1_ps, load _mm512_loadu_ps,
        load_first |p, n| _mm512_maskz_loadu_ps(first(n), p), store _mm512_storeu_ps,
        store_first |p, x, n| _mm512_mask_storeu_ps(p, first(n), x), plus _mm512_add_ps,
        add_product _mm512_fmadd_ps;
    /// Eight `f64`.
    F64x8(f64, __m512d, 8, true) as F64x8,
        zero _mm512_setzero_pd, splat _mm512_set1_pd, load _mm512_loadu_pd,
        load_first |p, n| _mm512_maskz_loadu_pd(first(n) as u8, p), store _mm512_storeu_pd,
        store_first |p, x, n| _mm512_mask_storeu_pd(p, first(n) as u8, x), plus _mm512_add_pd,
        add_product _mm512_fmadd_pd;
    /// Sixteen `i32`, wrapping.
    I32x16(i32, __m512i, 16, true) as F32x16,
        zero _mm512_setzero_si512, splat _mm512_set1_epi32, load _mm512_loadu_epi32,
        load_first |p, n| _mm512_maskz_loadu_epi32(first(n), p), store _mm512_storeu_epi32,
        store_first |p, x, n| _mm512_mask_storeu_epi32(p, first(n), x), plus _mm512_add_epi32,
        add_product |x, y, sum| _mm512_add_epi32(sum, _mm512_mullo_epi32(x, y));
    /// Eight `i64`, wrapping.
    I64x8(i64, __m512i, 8, true) as F64x8,
        zero _mm512_setzero_si512, splat _mm512_set1_epi64, load _mm512_loadu_epi64,
        load_first |p, n| _mm512_maskz_loadu_epi64(first(n) as u8, p), store _mm512_storeu_epi64,
        store_first |p, x, n| _mm512_mask_storeu_epi64(p, first(n) as u8, x), plus _mm512_add_epi64,
        add_product |x, y, sum| _mm512_add_epi64(sum, _mm512_mullo_epi64(x, y));
    /// Eight `f32`.
    F32x8(f32, __m256, 8, false) as F32x8,
        zero _mm256_setzero_ps, splat _mm256_set1_ps, load _mm256_loadu_ps,
        load_first |p, n| _mm256_maskload_ps(p, first_of_8(n)), store _mm256_storeu_ps,
        store_first |p, x, n| _mm256_maskstore_ps(p, first_of_8(n), x), plus _mm256_add_ps,
        add_product _mm256_fmadd_ps;
    /// Four `f64`.
    F64x4(f64, __m256d, 4, false) as F64x4,
        zero _mm256_setzero_pd, splat _mm256_set1_pd, load _mm256_loadu_pd,
        load_first |p, n| _mm256_maskload_pd(p, first_of_8(2 * n)), store _mm256_storeu_pd,
        store_first |p, x, n| _mm256_maskstore_pd(p, first_of_8(2 * n), x), plus _mm256_add_pd,
        add_product _mm256_fmadd_pd;
    /// Eight `i32`, wrapping.
    I32x8(i32, __m256i, 8, false) as F32x8,
        zero _mm256_setzero_si256, splat _mm256_set1_epi32, load _mm256_loadu_si256,
        load_first |p, n| _mm256_maskload_epi32(p, first_of_8(n)), store _mm256_storeu_si256,
        store_first |p, x, n| _mm256_maskstore_epi32(p, first_of_8(n), x), plus _mm256_add_epi32,
        add_product |x, y, sum| _mm256_add_epi32(sum, _mm256_mullo_epi32(x, y));
}

/// Sixteen pairs of bfloat16, which one instruction multiplies into `f32`, subnormals as zero.
#[derive(Clone, Copy)]
pub struct Bf16x32;

impl Mac for Bf16x32 {
    type Stored = u16;
    type In = i32;
    type Out = f32;
    type Operands = I32x16;
    type Sums = F32x16;
    const STEP: usize = 2;

    inlined! {
        mac(sum: __m512, x: __m512i, y: __m512i) -> __m512 = {
            // The two types differ only in name.
            let pairs = |x| std::mem::transmute::<__m512i, __m512bh>(x);
            _mm512_dpbf16_ps(sum, pairs(x), pairs(y))
        };
        one(from: *const u16, step: isize, single: bool) -> i32 =
            *from as i32 | if single { 0 } else { (*from.offset(step) as i32) << 16 };
        beside(from: *const u16, step: isize, n: usize) -> __m512i = {
            let wide = |p: *const u16| _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(first(n), p.cast()));
            _mm512_or_si512(wide(from), _mm512_slli_epi32::<16>(wide(from.offset(step))))
        };
    }
}

/// Returns a mask of the first `n` lanes, 1 to 16.
#[inline(always)]
fn first(n: usize) -> u16 {
    u16::MAX >> (16 - n)
}

static MASK: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

/// Returns a mask of the first `n` of 8 lanes of 4 bytes; two of them make one of 8 bytes.
///
/// # Safety
/// The processor has AVX2, and `n` is at most 8.
#[inline(always)]
unsafe fn first_of_8(n: usize) -> __m256i {
    // SAFETY: eight numbers from `8 - n` on are inside the table; the caller guarantees AVX2.
    unsafe { _mm256_loadu_si256(MASK.as_ptr().add(8 - n).cast()) }
}
