//! Vector lanes: whole registers that implement [`Real`](crate::math::real::Real), so that a rule is written
//! once and runs on 4 to 16 numbers at a time.
//!
//! Loops over scalar lanes (`src/math/lane.rs`) become vector code only if the compiler vectorises them.
//! Vector lanes do not depend on that: the functions of `src/math/mod.rs` may branch around rare arguments
//! ([`may_hold`](crate::math::Lane::may_hold)) and use instructions that no scalar code compiles to, and the
//! end of a slice is a masked load, not a second loop. Results have the same bits as those of a scalar lane.
//!
//! Read next: `src/cpu/pointwise/vector/registers.rs`, the lane over any table of instructions.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod registers;

use crate::cpu::run::isa::{Isa, isa};
use crate::math::lane::{F32, F32Fma, F64, F64Fma};
use crate::math::real::Pointwise;
use crate::math::wide::Wide;
#[cfg(target_arch = "x86_64")]
use registers::Vector;

/// A loop over numbers of type `T`, compiled once for each instruction set.
pub trait Loop<T> {
    /// Whether it is also compiled for the widest registers.
    const IS_WIDEST: bool = true;
    /// Runs the loop. Implementations are `#[inline(always)]` and call only such functions.
    ///
    /// # Safety
    /// As the implementing type says.
    unsafe fn run<L: Wide<Number = T>>(self);
}

/// A float that loops run over.
pub trait Number: Copy + 'static {
    /// Runs `body` with the widest lanes of an instruction set.
    ///
    /// # Safety
    /// The contract of `body`, and the processor has the set.
    unsafe fn run<B: Loop<Self>>(isa: Isa, body: B);
}

/// Computes `out[i] = rule(x[0][i], x[1][i], ...)` for `i < n`.
///
/// # Safety
/// Each of `x` points to `n` readable numbers, `out` to `n` writable ones; `out` is one of `x` or overlaps
/// none.
pub unsafe fn map<const N: usize, P: Pointwise<N>, T: Number>(
    rule: P,
    x: [*const T; N],
    out: *mut T,
    n: usize,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { map_on(isa(), rule, x, out, n) }
}

/// [`map`] with a given instruction set, for tests.
///
/// # Safety
/// As for [`map`], and the processor has the set.
#[inline(always)]
pub unsafe fn map_on<const N: usize, P: Pointwise<N>, T: Number>(
    isa: Isa,
    rule: P,
    x: [*const T; N],
    out: *mut T,
    n: usize,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { T::run(isa, Map { rule, x, out, n }) }
}

/// Computes `x[i] = rule(x[i])`.
pub fn map_in_place<P: Pointwise<1>, T: Number>(rule: P, x: &mut [T]) {
    let (out, n) = (x.as_mut_ptr(), x.len());
    // SAFETY: the slice is both operand and result, which `map` allows.
    unsafe { map(rule, [out.cast_const()], out, n) }
}

struct Map<const N: usize, P, T> {
    rule: P,
    x: [*const T; N],
    out: *mut T,
    n: usize,
}

impl<const N: usize, P: Pointwise<N>, T: Number> Loop<T> for Map<N, P, T> {
    const IS_WIDEST: bool = P::IS_WIDEST;

    /// # Safety
    /// That of [`map`].
    #[inline(always)]
    unsafe fn run<L: Wide<Number = T>>(self) {
        // Counting loops, not iterators: a closure or adapter that is not inlined would keep the registers in
        // memory and call a function per instruction.
        let Map { rule, x: from, out, n } = self;
        let mut x = [L::lit(0.0); N];
        let mut i = 0;
        while i + L::WIDTH <= n {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let mut k = 0;
                while k < N {
                    x[k] = L::load(from[k].add(i));
                    k += 1;
                }
                rule.apply(x).store(out.add(i));
            }
            i += L::WIDTH;
        }
        if i < n {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let mut k = 0;
                while k < N {
                    x[k] = L::load_part(from[k].add(i), n - i);
                    k += 1;
                }
                rule.apply(x).store_part(out.add(i), n - i);
            }
        }
    }
}

macro_rules! number {
    ($float:ty, $scalar:ty, $fused:ty, $avx2:ty, $avx512:ty) => {
        impl Number for $float {
            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            unsafe fn run<B: Loop<$float>>(isa: Isa, body: B) {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
                unsafe fn avx512<B: Loop<$float>>(body: B) {
                    // SAFETY: guaranteed by the caller.
                    unsafe { body.run::<$avx512>() }
                }
                #[target_feature(enable = "avx2,fma,f16c")]
                unsafe fn avx2<B: Loop<$float>>(body: B) {
                    // SAFETY: guaranteed by the caller.
                    unsafe { body.run::<$avx2>() }
                }
                #[inline(never)]
                unsafe fn baseline<B: Loop<$float>>(body: B) {
                    // SAFETY: guaranteed by the caller.
                    unsafe { body.run::<$scalar>() }
                }
                // SAFETY: guaranteed by the caller.
                unsafe {
                    match isa {
                        Isa::Avx512 if B::IS_WIDEST => avx512(body),
                        Isa::Avx512 | Isa::Avx2 => avx2(body),
                        Isa::Baseline => baseline(body),
                    }
                }
            }
            #[cfg(target_arch = "aarch64")]
            #[inline(always)]
            unsafe fn run<B: Loop<$float>>(_isa: Isa, body: B) {
                // SAFETY: guaranteed by the caller.
                unsafe { body.run::<$fused>() }
            }
            #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
            #[inline(always)]
            unsafe fn run<B: Loop<$float>>(_isa: Isa, body: B) {
                // SAFETY: guaranteed by the caller.
                unsafe { body.run::<$scalar>() }
            }
        }
    };
}

number!(f32, F32, F32Fma, Vector<avx2::Single>, Vector<avx512::Single>);
number!(f64, F64, F64Fma, Vector<avx2::Double>, Vector<avx512::Double>);

macro_rules! scalar_loops {
    ($($lane:ident $float:ty, branches $branches:literal;)*) => {$(
        impl Wide for $lane {
            type Number = $float;
            const WIDTH: usize = 1;
            #[inline(always)]
            unsafe fn load(from: *const $float) -> $lane {
                // SAFETY: guaranteed by the caller.
                $lane(unsafe { *from })
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $float) {
                // SAFETY: guaranteed by the caller.
                unsafe { *to = self.0 }
            }
            #[inline(always)]
            unsafe fn load_part(_from: *const $float, _count: usize) -> $lane {
                $lane(0.0)
            }
            #[inline(always)]
            unsafe fn store_part(self, _to: *mut $float, _count: usize) {}
            #[inline(always)]
            fn replace<const N: usize>(
                self,
                mask: bool,
                x: [$lane; N],
                f: fn([$float; N]) -> $float,
            ) -> $lane {
                // Single precision computes both, so that loops stay free of branches.
                if $branches {
                    return if mask { $lane(f(x.map(|x| x.0))) } else { self };
                }
                let value = f(x.map(|x| x.0));
                $lane(if mask { value } else { self.0 })
            }
            #[inline(always)]
            fn lookup(index: Self::Int, table: &[$float; 16]) -> $lane {
                $lane(table[index.0 as usize & 15])
            }
        }
    )*};
}

scalar_loops! {
    F32 f32, branches false;
    F32Fma f32, branches false;
    F64 f64, branches true;
    F64Fma f64, branches true;
}
