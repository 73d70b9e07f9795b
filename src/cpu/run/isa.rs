//! The instruction sets that loops are compiled for, and the one function that chooses between them.
//!
//! A kernel is a [`Body`]: a struct of its arguments with an `#[inline(always)]` method. [`Scalar::run`]
//! inlines it into one function per instruction set ([`run_on`]), so that the compiler vectorises the same
//! source three times. The processor is queried once; `WENGERT_ISA=baseline|avx2|avx512` lowers it, and so
//! does [`lower`], so that processes on different processors compute the same bits.

use crate::array::dtype::Element;
use crate::math::lane::{F32, F32Fma, F64, F64Fma};
use crate::math::real::Real;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, Ordering};

/// An instruction set that loops are compiled for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Isa {
    /// The instructions that every processor of the target has.
    Baseline,
    /// AVX2, FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
}

/// A number type over a stored float: one element of a CPU loop.
pub trait LoopFloat: Real<Mask = bool> + Default + Send + Sync + 'static {
    /// The stored type; `Self` has its memory layout.
    type Float: Element;
    /// Wraps a stored number.
    fn new(value: Self::Float) -> Self;
    /// Returns the stored number.
    fn get(self) -> Self::Float;
}

macro_rules! lane {
    ($($lane:ident $float:ty),*) => {
        $(impl LoopFloat for $lane {
            type Float = $float;
            #[inline(always)]
            fn new(value: $float) -> $lane {
                $lane(value)
            }
            #[inline(always)]
            fn get(self) -> $float {
                self.0
            }
        })*
    };
}

lane!(F32 f32, F32Fma f32, F64 f64, F64Fma f64);

/// A loop over lanes of `T`, `f32` or `f64`.
pub trait Body<T> {
    /// The result of the loop.
    type Output;
    /// Runs the loop. Implementations are `#[inline(always)]` and call only such functions.
    fn run<L: LoopFloat<Float = T>>(self) -> Self::Output;
}

/// A float that loops run over in lanes.
pub trait Scalar: Element {
    /// The lane of instruction sets with fused multiply-adds.
    type Fused: LoopFloat<Float = Self>;
    /// The lane of those without.
    type Plain: LoopFloat<Float = Self>;
    /// Runs `body` compiled for the best instruction set.
    #[inline(always)]
    fn run<B: Body<Self>>(body: B) -> B::Output {
        run_widest(InLanes(body, PhantomData::<Self>))
    }
}

impl Scalar for f32 {
    type Fused = F32Fma;
    type Plain = F32;
}

impl Scalar for f64 {
    type Fused = F64Fma;
    type Plain = F64;
}

/// A loop without the arithmetic of rules: integers, conversions.
pub trait PlainBody: Sized {
    /// The result of the loop.
    type Output;
    /// Runs the loop. Implementations are `#[inline(always)]` and call only such functions.
    fn run(self) -> Self::Output;
    /// [`PlainBody::run`] with fused multiply-adds.
    #[inline(always)]
    fn run_fused(self) -> Self::Output {
        self.run()
    }
    /// [`PlainBody::run`] with the registers of AVX-512.
    #[inline(always)]
    fn run_widest(self) -> Self::Output {
        self.run_fused()
    }
}

/// The instruction set in use: its number, from 1; 0 before the processor was queried.
static ISA: AtomicU8 = AtomicU8::new(0);

/// Returns the best instruction set of this processor, or a lower one that the environment or [`lower`] asks
/// for. Whoever asks twice may get two answers: what is prepared for one set says itself which it is.
#[inline]
pub fn isa() -> Isa {
    match ISA.load(Ordering::Relaxed) {
        1 => Isa::Baseline,
        2 => Isa::Avx2,
        3 => Isa::Avx512,
        _ => first(),
    }
}

#[cold]
fn first() -> Isa {
    let best = detect();
    let found = match std::env::var("WENGERT_ISA").as_deref() {
        Ok("baseline") => Isa::Baseline,
        Ok("avx2") => best.min(Isa::Avx2),
        _ => best,
    };
    ISA.store(found as u8 + 1, Ordering::Relaxed);
    found
}

/// Uses no instruction set above this one from now on.
pub fn lower(most: Isa) {
    ISA.store(isa().min(most) as u8 + 1, Ordering::Relaxed);
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Isa {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match (avx2, avx512) {
        (true, true) => Isa::Avx512,
        (true, false) => Isa::Avx2,
        _ => Isa::Baseline,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Isa {
    Isa::Baseline
}

/// Runs `body` compiled for an instruction set, AVX-512 only if `WIDEST`.
///
/// # Safety
/// The processor has the set.
#[inline(always)]
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
pub unsafe fn run_on<const WIDEST: bool, B: PlainBody>(isa: Isa, body: B) -> B::Output {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
        fn avx512<B: PlainBody>(body: B) -> B::Output {
            body.run_widest()
        }
        #[target_feature(enable = "avx2,fma,f16c")]
        fn avx2<B: PlainBody>(body: B) -> B::Output {
            body.run_fused()
        }
        #[inline(never)]
        fn baseline<B: PlainBody>(body: B) -> B::Output {
            body.run()
        }
        // SAFETY: guaranteed by the caller.
        unsafe {
            match isa {
                Isa::Avx512 if WIDEST => avx512(body),
                Isa::Avx512 | Isa::Avx2 => avx2(body),
                Isa::Baseline => baseline(body),
            }
        }
    }
    // AArch64 has fused multiply-adds in its baseline.
    #[cfg(target_arch = "aarch64")]
    return body.run_fused();
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    body.run()
}

struct InLanes<T, B>(B, PhantomData<T>);

impl<T: Scalar, B: Body<T>> PlainBody for InLanes<T, B> {
    type Output = B::Output;
    #[inline(always)]
    fn run(self) -> B::Output {
        self.0.run::<T::Plain>()
    }
    #[inline(always)]
    fn run_fused(self) -> B::Output {
        self.0.run::<T::Fused>()
    }
}

/// Runs `body` compiled for AVX2 or for the baseline: a third copy would not pay here.
#[inline(always)]
pub fn run_plain<B: PlainBody>(body: B) -> B::Output {
    // SAFETY: `isa` found the set on this processor.
    unsafe { run_on::<false, B>(isa(), body) }
}

/// Runs `body` compiled for AVX-512, too: for loops that wider registers speed up, not memory alone.
#[inline(always)]
pub fn run_widest<B: PlainBody>(body: B) -> B::Output {
    // SAFETY: `isa` found the set on this processor.
    unsafe { run_on::<true, B>(isa(), body) }
}
