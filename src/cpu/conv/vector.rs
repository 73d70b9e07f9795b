//! Sums of products of floats: the same loops compile for all sets of `src/cpu/product/vector.rs`.

use crate::cpu::prelude::*;
use crate::cpu::product::vector::{Arithmetic, Plain, Vector};
#[cfg(target_arch = "x86_64")]
use crate::cpu::product::x86;
use crate::cpu::run::isa::{Isa, isa};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::ops::{Add, AddAssign, Mul};

/// Vectors that sums are held in.
///
/// # Safety
/// The instruction set is available, as [`Float::run`] checks.
pub trait Sums: Vector<Number: Float> {
    /// Rows of the largest tile of sums that stays in registers, with three registers per row.
    const ROWS: usize;
    /// Returns the sum of all lanes, in a fixed order.
    unsafe fn total(x: Self::Register) -> Self::Number;
}

/// A loop over vectors, compiled once per instruction set.
pub trait Body<T> {
    /// Runs the loop; fails if it cannot allocate scratch memory. Implementations are `#[inline(always)]`.
    ///
    /// # Safety
    /// The conditions of the implementing type, and `V` is available.
    unsafe fn run<V: Sums<Number = T>>(self) -> Result<()>;
}

/// A float type of vectors.
pub trait Float:
    Element + Arithmetic + PartialEq + Add<Output = Self> + Mul<Output = Self> + AddAssign
{
    /// Runs `body` with the widest vectors of this processor.
    ///
    /// # Safety
    /// The conditions of `body`.
    unsafe fn run<B: Body<Self>>(body: B) -> Result<()>;
}

impl<T: Float> Sums for Plain<T, 4, false> {
    const ROWS: usize = 4;
    #[inline(always)]
    unsafe fn total(x: [T; 4]) -> T {
        (x[0] + x[2]) + (x[1] + x[3])
    }
}

macro_rules! sums {
    ($($vectors:ident: rows $rows:literal, total $total:ident;)*) => {
        $(#[cfg(target_arch = "x86_64")]
        impl Sums for x86::$vectors {
            const ROWS: usize = $rows;
            #[inline(always)]
            unsafe fn total(x: Self::Register) -> Self::Number {
                // SAFETY: the caller guarantees the instruction set.
                unsafe { $total(x) }
            }
        })*
    };
}

sums! {
    F32x16: rows 8, total _mm512_reduce_add_ps;
    F64x8: rows 8, total _mm512_reduce_add_pd;
    F32x8: rows 4, total total_ps;
    F64x4: rows 4, total total_pd;
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn total_ps(x: __m256) -> f32 {
    // SAFETY: the caller guarantees AVX2.
    unsafe {
        let half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
        let pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
        _mm_cvtss_f32(_mm_add_ss(pair, _mm_shuffle_ps::<1>(pair, pair)))
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn total_pd(x: __m256d) -> f64 {
    // SAFETY: the caller guarantees AVX2.
    unsafe {
        let pair = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd::<1>(x));
        _mm_cvtsd_f64(_mm_add_sd(pair, _mm_unpackhi_pd(pair, pair)))
    }
}

macro_rules! float {
    ($float:ty, $avx2:ident, $avx512:ident) => {
        impl Float for $float {
            unsafe fn run<B: Body<$float>>(body: B) -> Result<()> {
                #[cfg(target_arch = "x86_64")]
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                unsafe fn avx512<B: Body<$float>>(body: B) -> Result<()> {
                    // SAFETY: the caller of `Float::run` guarantees the conditions of `body`.
                    unsafe { body.run::<x86::$avx512>() }
                }
                #[cfg(target_arch = "x86_64")]
                #[target_feature(enable = "avx2,fma")]
                unsafe fn avx2<B: Body<$float>>(body: B) -> Result<()> {
                    // SAFETY: the caller of `Float::run` guarantees the conditions of `body`.
                    unsafe { body.run::<x86::$avx2>() }
                }
                // SAFETY: the caller guarantees the conditions of `body`; `isa` found the CPU features.
                unsafe {
                    match isa() {
                        #[cfg(target_arch = "x86_64")]
                        Isa::Avx512 => avx512(body),
                        #[cfg(target_arch = "x86_64")]
                        Isa::Avx2 => avx2(body),
                        _ => body.run::<Plain<$float, 4, false>>(),
                    }
                }
            }
        }
    };
}

float!(f32, F32x8, F32x16);
float!(f64, F64x4, F64x8);
