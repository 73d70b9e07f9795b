//! The multiply-accumulate instructions of x86-64: AVX-512, AVX-512 with bfloat16 pairs, and AVX2.

use super::inner::{Inner, inner};
use super::mac::Mac;
use super::pack::{Strip, pack};
use super::tile::{Tile, tile};
use super::transpose::{transpose_4x4, transpose_8x8, transpose_8x8_wide, transpose_16x16};
use std::arch::x86_64::*;

/// Compiles the loops for a set of features, in their own module.
macro_rules! compiled {
    ($set:ident, $features:literal) => {
        mod $set {
            use super::*;
            /// [`tile`] with these instructions.
            #[target_feature(enable = $features)]
            pub unsafe fn tiles<M: Mac, const R: usize, const V: usize>(t: &Tile<M>) {
                // SAFETY: the caller guarantees the conditions of `tile` and the features.
                unsafe { tile::<M, R, V>(t) }
            }
            /// [`inner`] with these instructions.
            #[target_feature(enable = $features)]
            pub unsafe fn inners<M: Mac, const R: usize, const C: usize, const U: usize>(t: &Inner<M>) {
                // SAFETY: the caller guarantees the conditions of `inner` and the features.
                unsafe { inner::<M, R, C, U>(t) }
            }
            /// [`pack`] with these instructions.
            #[target_feature(enable = $features)]
            pub unsafe fn packs<M: Mac>(s: &Strip<M>) {
                // SAFETY: the caller guarantees the conditions of `pack` and the features.
                unsafe { pack::<M>(s) }
            }
        }
    };
}

compiled!(avx512, "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma");
compiled!(bf16, "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma");
compiled!(avx2, "avx2,fma");

/// The tables of functions: tiles up to four vectors wide for `$low` rows, up to two for `$high` rows.
macro_rules! tables {
    ($set:ident; $($low:literal)*; $($high:literal)*) => {
        const TILES: &'static [[Option<super::tile::TileFn<Self>>; 4]] = &[
            $([
                Some($set::tiles::<Self, $low, 1>),
                Some($set::tiles::<Self, $low, 2>),
                Some($set::tiles::<Self, $low, 3>),
                Some($set::tiles::<Self, $low, 4>),
            ],)*
            $([Some($set::tiles::<Self, $high, 1>), Some($set::tiles::<Self, $high, 2>), None, None],)*
        ];
        const INNER: [[super::inner::InnerFn<Self>; 2]; 4] = [
            [$set::inners::<Self, 1, 1, 8>, $set::inners::<Self, 1, 4, 2>],
            [$set::inners::<Self, 2, 1, 4>, $set::inners::<Self, 2, 4, 1>],
            [$set::inners::<Self, 3, 1, 2>, $set::inners::<Self, 3, 4, 1>],
            [$set::inners::<Self, 4, 1, 2>, $set::inners::<Self, 4, 4, 1>],
        ];
        const PACK: super::pack::PackFn<Self> = $set::packs::<Self>;
    };
}

/// What all implementations share: how results are read and written.
macro_rules! results {
    ($out:ty, $y:ty, $lanes:literal, $zero:expr, $plus:ident, $get:expr, $get_first:expr, $put:expr,
     $put_first:expr) => {
        #[inline(always)]
        unsafe fn zero() -> $y {
            // SAFETY: the caller guarantees the conditions of `Mac`.
            unsafe { $zero() }
        }
        #[inline(always)]
        unsafe fn plus(x: $y, y: $y) -> $y {
            // SAFETY: the caller guarantees the conditions of `Mac`.
            unsafe { $plus(x, y) }
        }
        #[inline(always)]
        unsafe fn get(from: *const $out) -> $y {
            // SAFETY: the caller guarantees the conditions of `Mac`.
            unsafe { $get(from.cast()) }
        }
        #[inline(always)]
        unsafe fn get_first(from: *const $out, n: usize) -> $y {
            // SAFETY: the caller guarantees the conditions of `Mac`.
            unsafe { $get_first(from, n) }
        }
        #[inline(always)]
        unsafe fn put(to: *mut $out, sum: $y) {
            // SAFETY: the caller guarantees the conditions of `Mac`.
            unsafe { $put(to.cast(), sum) }
        }
        #[inline(always)]
        unsafe fn put_first(to: *mut $out, sum: $y, n: usize) {
            // SAFETY: the caller guarantees the conditions of `Mac`.
            unsafe { $put_first(to, sum, n) }
        }
    };
}

/// Element types whose operands are multiplied as stored.
macro_rules! vectors {
    ($(
        $(#[$doc:meta])*
        $name:ident($t:ty, $x:ty, $lanes:literal, $masks:literal),
        $set:ident($rows:literal; $($low:literal)*; $($high:literal)*),
        zero $zero:ident, splat $splat:ident, load $load:ident, load_first $load_first:expr,
        store $store:ident, store_first $store_first:expr, plus $plus:ident, mac $mac:expr,
        transpose $transpose:ident;
    )*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name;

        impl Mac for $name {
            type Stored = $t;
            type In = $t;
            type Out = $t;
            type X = $x;
            type Y = $x;
            const LANES: usize = $lanes;
            const ROWS: usize = $rows;
            const STEP: usize = 1;
            const MASKS: bool = $masks;
            tables!($set; $($low)*; $($high)*);
            results!($t, $x, $lanes, $zero, $plus, $load, $load_first, $store, $store_first);
            #[inline(always)]
            unsafe fn splat(from: *const $t) -> $x {
                // SAFETY: the caller guarantees the conditions of `Mac`.
                unsafe { $splat(*from) }
            }
            #[inline(always)]
            unsafe fn load(from: *const $t) -> $x {
                // SAFETY: the caller guarantees the conditions of `Mac`.
                unsafe { $load(from.cast()) }
            }
            #[inline(always)]
            unsafe fn load_first(from: *const $t, n: usize) -> $x {
                // SAFETY: the caller guarantees the conditions of `Mac`.
                unsafe { $load_first(from, n) }
            }
            #[inline(always)]
            unsafe fn store(to: *mut $t, x: $x) {
                // SAFETY: the caller guarantees the conditions of `Mac`.
                unsafe { $store(to.cast(), x) }
            }
            #[inline(always)]
            unsafe fn mac(sum: $x, x: $x, y: $x) -> $x {
                // SAFETY: the caller guarantees the conditions of `Mac`.
                unsafe { $mac(sum, x, y) }
            }
            #[inline(always)]
            unsafe fn one(from: *const $t, _step: isize, _single: bool) -> $t {
                // SAFETY: the caller guarantees the conditions of `Mac`.
                unsafe { *from }
            }
            #[inline(always)]
            unsafe fn beside(from: *const $t, _step: isize, n: usize) -> $x {
                // SAFETY: the caller guarantees the conditions of `Mac`.
                unsafe { $load_first(from, n) }
            }
            #[inline(always)]
            unsafe fn transpose(
                from: *const u8,
                stride: isize,
                lanes: usize,
                steps: usize,
                to: *mut $t,
                width: usize,
            ) {
                // SAFETY: the caller guarantees the conditions of `Mac`.
                unsafe { $transpose(from, stride, lanes, steps, to.cast(), width) }
            }
        })*
    };
}

vectors! {
    /// Sixteen `f32`.
    F32x16(f32, __m512, 16, true), avx512(12; 1 2 3 4 5 6; 7 8 9 10 11 12),
        zero _mm512_setzero_ps, splat _mm512_set1_ps, load _mm512_loadu_ps,
        load_first |p, n| _mm512_maskz_loadu_ps(first(n), p), store _mm512_storeu_ps,
        store_first |p, x, n| _mm512_mask_storeu_ps(p, first(n), x), plus _mm512_add_ps,
        mac |s, x, y| _mm512_fmadd_ps(x, y, s), transpose transpose_16x16;
    /// Eight `f64`.
    F64x8(f64, __m512d, 8, true), avx512(12; 1 2 3 4 5 6; 7 8 9 10 11 12),
        zero _mm512_setzero_pd, splat _mm512_set1_pd, load _mm512_loadu_pd,
        load_first |p, n| _mm512_maskz_loadu_pd(first(n) as u8, p), store _mm512_storeu_pd,
        store_first |p, x, n| _mm512_mask_storeu_pd(p, first(n) as u8, x), plus _mm512_add_pd,
        mac |s, x, y| _mm512_fmadd_pd(x, y, s), transpose transpose_8x8_wide;
    /// Sixteen `i32`, wrapping.
    I32x16(i32, __m512i, 16, true), avx512(12; 1 2 3 4 5 6; 7 8 9 10 11 12),
        zero _mm512_setzero_si512, splat _mm512_set1_epi32, load _mm512_loadu_epi32,
        load_first |p, n| _mm512_maskz_loadu_epi32(first(n), p), store _mm512_storeu_epi32,
        store_first |p, x, n| _mm512_mask_storeu_epi32(p, first(n), x), plus _mm512_add_epi32,
        mac |s, x, y| _mm512_add_epi32(s, _mm512_mullo_epi32(x, y)), transpose transpose_16x16;
    /// Eight `i64`, wrapping.
    I64x8(i64, __m512i, 8, true), avx512(12; 1 2 3 4 5 6; 7 8 9 10 11 12),
        zero _mm512_setzero_si512, splat _mm512_set1_epi64, load _mm512_loadu_epi64,
        load_first |p, n| _mm512_maskz_loadu_epi64(first(n) as u8, p), store _mm512_storeu_epi64,
        store_first |p, x, n| _mm512_mask_storeu_epi64(p, first(n) as u8, x), plus _mm512_add_epi64,
        mac |s, x, y| _mm512_add_epi64(s, _mm512_mullo_epi64(x, y)), transpose transpose_8x8_wide;
    /// Eight `f32`.
    F32x8(f32, __m256, 8, false), avx2(6; 1 2 3; 4 5 6),
        zero _mm256_setzero_ps, splat _mm256_set1_ps, load _mm256_loadu_ps,
        load_first |p, n| _mm256_maskload_ps(p, first_of_8(n)), store _mm256_storeu_ps,
        store_first |p, x, n| _mm256_maskstore_ps(p, first_of_8(n), x), plus _mm256_add_ps,
        mac |s, x, y| _mm256_fmadd_ps(x, y, s), transpose transpose_8x8;
    /// Four `f64`.
    F64x4(f64, __m256d, 4, false), avx2(6; 1 2 3; 4 5 6),
        zero _mm256_setzero_pd, splat _mm256_set1_pd, load _mm256_loadu_pd,
        load_first |p, n| _mm256_maskload_pd(p, first_of_4(n)), store _mm256_storeu_pd,
        store_first |p, x, n| _mm256_maskstore_pd(p, first_of_4(n), x), plus _mm256_add_pd,
        mac |s, x, y| _mm256_fmadd_pd(x, y, s), transpose transpose_4x4;
    /// Eight `i32`, wrapping.
    I32x8(i32, __m256i, 8, false), avx2(6; 1 2 3; 4 5 6),
        zero _mm256_setzero_si256, splat _mm256_set1_epi32, load _mm256_loadu_si256,
        load_first |p, n| _mm256_maskload_epi32(p, first_of_8(n)), store _mm256_storeu_si256,
        store_first |p, x, n| _mm256_maskstore_epi32(p, first_of_8(n), x), plus _mm256_add_epi32,
        mac |s, x, y| _mm256_add_epi32(s, _mm256_mullo_epi32(x, y)), transpose transpose_8x8;
}

/// Sixteen pairs of bfloat16, which one instruction multiplies and adds to `f32`. It treats subnormals as
/// zero.
#[derive(Clone, Copy)]
pub struct Bf16x32;

impl Mac for Bf16x32 {
    type Stored = u16;
    type In = u32;
    type Out = f32;
    type X = __m512i;
    type Y = __m512;
    const LANES: usize = 16;
    const ROWS: usize = 12;
    const STEP: usize = 2;
    const MASKS: bool = true;
    tables!(bf16; 1 2 3 4 5 6; 7 8 9 10 11 12);
    results!(
        f32,
        __m512,
        16,
        _mm512_setzero_ps,
        _mm512_add_ps,
        _mm512_loadu_ps,
        F32x16::get_first,
        _mm512_storeu_ps,
        F32x16::put_first
    );
    #[inline(always)]
    unsafe fn splat(from: *const u32) -> __m512i {
        // SAFETY: the caller guarantees the conditions of `Mac`.
        unsafe { _mm512_set1_epi32(from.cast::<i32>().read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn load(from: *const u32) -> __m512i {
        // SAFETY: the caller guarantees the conditions of `Mac`.
        unsafe { _mm512_loadu_epi32(from.cast()) }
    }
    #[inline(always)]
    unsafe fn load_first(from: *const u32, n: usize) -> __m512i {
        // SAFETY: the caller guarantees the conditions of `Mac`.
        unsafe { _mm512_maskz_loadu_epi32(first(n), from.cast()) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut u32, x: __m512i) {
        // SAFETY: the caller guarantees the conditions of `Mac`.
        unsafe { _mm512_storeu_epi32(to.cast(), x) }
    }
    #[inline(always)]
    unsafe fn mac(sum: __m512, x: __m512i, y: __m512i) -> __m512 {
        // SAFETY: the two types differ only in name, and the caller guarantees the instruction.
        unsafe {
            let pairs = |x| std::mem::transmute::<__m512i, __m512bh>(x);
            _mm512_dpbf16_ps(sum, pairs(x), pairs(y))
        }
    }
    #[inline(always)]
    unsafe fn one(from: *const u16, step: isize, single: bool) -> u32 {
        // SAFETY: the caller guarantees the conditions of `Mac`.
        unsafe { *from as u32 | if single { 0 } else { (*from.offset(step) as u32) << 16 } }
    }
    #[inline(always)]
    unsafe fn beside(from: *const u16, step: isize, n: usize) -> __m512i {
        // SAFETY: the caller guarantees the conditions of `Mac`.
        unsafe {
            let wide = |p: *const u16| _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(first(n), p.cast()));
            _mm512_or_si512(wide(from), _mm512_slli_epi32::<16>(wide(from.offset(step))))
        }
    }
    #[inline(always)]
    unsafe fn transpose(
        from: *const u8,
        stride: isize,
        lanes: usize,
        steps: usize,
        to: *mut u32,
        width: usize,
    ) {
        // SAFETY: the caller guarantees the conditions of `Mac`.
        unsafe { transpose_16x16(from, stride, lanes, steps, to.cast(), width) }
    }
}

/// Returns a mask of the first `n` lanes, 1 to 16.
#[inline(always)]
fn first(n: usize) -> u16 {
    u16::MAX >> (16 - n)
}

static MASK: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

/// Returns a mask of the first `n` of 8 lanes of 4 bytes.
///
/// # Safety
/// The processor has AVX2, and `n` is at most 8.
#[inline(always)]
pub unsafe fn first_of_8(n: usize) -> __m256i {
    // SAFETY: eight numbers from `8 - n` on are inside the table; the caller guarantees AVX2.
    unsafe { _mm256_loadu_si256(MASK.as_ptr().add(8 - n).cast()) }
}

/// Returns a mask of the first `n` of 4 lanes of 8 bytes.
///
/// # Safety
/// The processor has AVX2, and `n` is at most 4.
#[inline(always)]
pub unsafe fn first_of_4(n: usize) -> __m256i {
    // SAFETY: eight numbers from `8 - 2 n` on are inside the table; the caller guarantees AVX2.
    unsafe { _mm256_loadu_si256(MASK.as_ptr().add(8 - 2 * n).cast()) }
}
