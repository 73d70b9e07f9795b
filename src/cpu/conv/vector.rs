//! Vectors of floats for sums of products: the same loops compile for every instruction set.

use crate::array::dtype::Element;
use crate::cpu::run::isa::{Isa, isa};
use crate::error::Result;
use std::ops::{Add, AddAssign, Mul};

/// Loads, stores and fused multiply-adds of `LANES` floats at a time.
///
/// # Safety
/// The instruction set is available, as [`Float::run`] checks; pointers are valid for `LANES` floats.
pub trait Vector: Copy {
    /// The element type.
    type Float: Float;
    /// The register type.
    type Register: Copy;
    /// Floats per register.
    const LANES: usize;
    /// Rows of the largest tile of sums that stays in registers, with three registers per row.
    const ROWS: usize;
    /// Returns zeros.
    unsafe fn zero() -> Self::Register;
    /// Returns `x` in every lane.
    unsafe fn splat(x: Self::Float) -> Self::Register;
    /// Loads the numbers at `from`.
    unsafe fn load(from: *const Self::Float) -> Self::Register;
    /// Stores the numbers at `to`.
    unsafe fn store(to: *mut Self::Float, x: Self::Register);
    /// Returns `x * y + sum`.
    unsafe fn add_product(x: Self::Register, y: Self::Register, sum: Self::Register) -> Self::Register;
    /// Returns the sum of all lanes, in a fixed order.
    unsafe fn total(x: Self::Register) -> Self::Float;
}

/// A loop over vectors, compiled once per instruction set.
pub trait Body<T> {
    /// Runs the loop; fails if it cannot allocate scratch memory. Implementations are `#[inline(always)]`.
    ///
    /// # Safety
    /// The conditions of the implementing type, and `V` is available.
    unsafe fn run<V: Vector<Float = T>>(self) -> Result<()>;
}

/// A float type of vectors.
pub trait Float:
    Element + Default + PartialEq + Add<Output = Self> + Mul<Output = Self> + AddAssign + Send + Sync
{
    /// Runs `body` with the widest vectors of this processor.
    ///
    /// # Safety
    /// The conditions of `body`.
    unsafe fn run<B: Body<Self>>(body: B) -> Result<()>;
}

/// Four lanes that the compiler maps to the vectors of the target.
#[derive(Clone, Copy)]
pub struct Plain<T>(std::marker::PhantomData<T>);

impl<T: Float> Vector for Plain<T> {
    type Float = T;
    type Register = [T; 4];
    const LANES: usize = 4;
    const ROWS: usize = 4;
    #[inline(always)]
    unsafe fn zero() -> [T; 4] {
        [T::default(); 4]
    }
    #[inline(always)]
    unsafe fn splat(x: T) -> [T; 4] {
        [x; 4]
    }
    #[inline(always)]
    unsafe fn load(from: *const T) -> [T; 4] {
        // SAFETY: the caller guarantees four floats at `from`.
        unsafe { from.cast::<[T; 4]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(to: *mut T, x: [T; 4]) {
        // SAFETY: the caller guarantees four floats at `to`.
        unsafe { to.cast::<[T; 4]>().write_unaligned(x) }
    }
    #[inline(always)]
    unsafe fn add_product(x: [T; 4], y: [T; 4], sum: [T; 4]) -> [T; 4] {
        std::array::from_fn(|i| x[i] * y[i] + sum[i])
    }
    #[inline(always)]
    unsafe fn total(x: [T; 4]) -> T {
        (x[0] + x[2]) + (x[1] + x[3])
    }
}

/// The vectors of x86-64: AVX2 with FMA, and AVX-512.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Vector;
    use std::arch::x86_64::*;

    macro_rules! vector {
        ($(#[$doc:meta])* $name:ident: $lanes:literal x $float:ty, $register:ty, rows $rows:literal;
         $zero:ident $splat:ident $load:ident $store:ident $fma:ident $total:ident) => {
            $(#[$doc])*
            #[derive(Clone, Copy)]
            pub struct $name;
            impl Vector for $name {
                type Float = $float;
                type Register = $register;
                const LANES: usize = $lanes;
                const ROWS: usize = $rows;
                #[inline(always)]
                unsafe fn zero() -> $register {
                    // SAFETY: the caller guarantees the instruction set.
                    unsafe { $zero() }
                }
                #[inline(always)]
                unsafe fn splat(x: $float) -> $register {
                    // SAFETY: the caller guarantees the instruction set.
                    unsafe { $splat(x) }
                }
                #[inline(always)]
                unsafe fn load(from: *const $float) -> $register {
                    // SAFETY: the caller guarantees the instruction set and `LANES` floats at `from`.
                    unsafe { $load(from) }
                }
                #[inline(always)]
                unsafe fn store(to: *mut $float, x: $register) {
                    // SAFETY: the caller guarantees the instruction set and `LANES` floats at `to`.
                    unsafe { $store(to, x) }
                }
                #[inline(always)]
                unsafe fn add_product(x: $register, y: $register, sum: $register) -> $register {
                    // SAFETY: the caller guarantees the instruction set.
                    unsafe { $fma(x, y, sum) }
                }
                #[inline(always)]
                unsafe fn total(x: $register) -> $float {
                    // SAFETY: the caller guarantees the instruction set.
                    unsafe { $total(x) }
                }
            }
        };
    }

    vector! {
        /// Sixteen `f32` of AVX-512.
        F32x16: 16 x f32, __m512, rows 8;
        _mm512_setzero_ps _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_fmadd_ps _mm512_reduce_add_ps
    }
    vector! {
        /// Eight `f64` of AVX-512.
        F64x8: 8 x f64, __m512d, rows 8;
        _mm512_setzero_pd _mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_fmadd_pd _mm512_reduce_add_pd
    }
    vector! {
        /// Eight `f32` of AVX2.
        F32x8: 8 x f32, __m256, rows 4;
        _mm256_setzero_ps _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_fmadd_ps total_ps
    }
    vector! {
        /// Four `f64` of AVX2.
        F64x4: 4 x f64, __m256d, rows 4;
        _mm256_setzero_pd _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_fmadd_pd total_pd
    }

    #[inline(always)]
    unsafe fn total_ps(x: __m256) -> f32 {
        // SAFETY: the caller guarantees AVX2.
        unsafe {
            let half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
            let pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
            _mm_cvtss_f32(_mm_add_ss(pair, _mm_shuffle_ps::<1>(pair, pair)))
        }
    }

    #[inline(always)]
    unsafe fn total_pd(x: __m256d) -> f64 {
        // SAFETY: the caller guarantees AVX2.
        unsafe {
            let pair = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd::<1>(x));
            _mm_cvtsd_f64(_mm_add_sd(pair, _mm_unpackhi_pd(pair, pair)))
        }
    }
}

macro_rules! float {
    ($float:ty, $avx2:ident, $avx512:ident) => {
        impl Float for $float {
            #[cfg(target_arch = "x86_64")]
            unsafe fn run<B: Body<$float>>(body: B) -> Result<()> {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                unsafe fn avx512<B: Body<$float>>(body: B) -> Result<()> {
                    // SAFETY: the caller of `Float::run` guarantees the conditions of `body`.
                    unsafe { body.run::<x86::$avx512>() }
                }
                #[target_feature(enable = "avx2,fma")]
                unsafe fn avx2<B: Body<$float>>(body: B) -> Result<()> {
                    // SAFETY: the caller of `Float::run` guarantees the conditions of `body`.
                    unsafe { body.run::<x86::$avx2>() }
                }
                // SAFETY: the caller guarantees the conditions of `body`; `isa` found the CPU features.
                unsafe {
                    match isa() {
                        Isa::Avx512 => avx512(body),
                        Isa::Avx2 => avx2(body),
                        Isa::Baseline => body.run::<Plain<$float>>(),
                    }
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            unsafe fn run<B: Body<$float>>(body: B) -> Result<()> {
                // SAFETY: the caller guarantees the conditions of `body`.
                unsafe { body.run::<Plain<$float>>() }
            }
        }
    };
}

float!(f32, F32x8, F32x16);
float!(f64, F64x4, F64x8);
