//! Vector lanes: whole registers that implement [`Real`](crate::math::real::Real), so that a rule is written
//! once and runs on 4 to 16 numbers at a time.
//!
//! Loops over scalar lanes (`src/math/lane.rs`) become vector code only if the compiler vectorises them.
//! Vector lanes do not depend on that: the functions of `src/math/mod.rs` may branch around rare arguments
//! ([`may_hold`](crate::math::Lane::may_hold)) and use instructions that no scalar code compiles to, and the
//! end of a slice is a masked load, not a second loop. Results have the same bits as those of a scalar lane.
//!
//! Read next: `src/cpu/pointwise/vector/registers.rs`, the table of instructions and the lane over it.

#[cfg(target_arch = "x86_64")]
mod lane;
#[cfg(target_arch = "x86_64")]
mod registers;

use crate::cpu::run::isa::{Isa, PlainBody, isa, run_on};
use crate::math::lane as scalar;
use crate::math::real::Pointwise;
use crate::math::wide::Wide;
use std::marker::PhantomData;
#[cfg(target_arch = "x86_64")]
use {
    lane::Vector,
    registers::{Avx2, Avx512},
};

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
    /// The lane of the widest registers.
    type Widest: Wide<Number = Self>;
    /// The lane of other instruction sets with fused multiply-adds.
    type Fused: Wide<Number = Self>;
    /// The lane of those without.
    type Plain: Wide<Number = Self>;
    /// Runs `body` with the widest lanes of an instruction set.
    ///
    /// # Safety
    /// The contract of `body`, and the processor has the set.
    #[inline(always)]
    unsafe fn run<B: Loop<Self>>(isa: Isa, body: B) {
        let body = InLanes(body, PhantomData::<Self>);
        // SAFETY: guaranteed by the caller.
        unsafe { if B::IS_WIDEST { run_on::<true, _>(isa, body) } else { run_on::<false, _>(isa, body) } }
    }
}

macro_rules! number {
    ($($float:ty: $widest:ty, $fused:ty, $plain:ty;)*) => {
        $(impl Number for $float {
            type Widest = $widest;
            type Fused = $fused;
            type Plain = $plain;
        })*
    };
}

#[cfg(target_arch = "x86_64")]
number! {
    f32: Vector<Avx512<f32>>, Vector<Avx2<f32>>, scalar::F32;
    f64: Vector<Avx512<f64>>, Vector<Avx2<f64>>, scalar::F64;
}
#[cfg(not(target_arch = "x86_64"))]
number! {
    f32: scalar::F32Fma, scalar::F32Fma, scalar::F32;
    f64: scalar::F64Fma, scalar::F64Fma, scalar::F64;
}

struct InLanes<T, B>(B, PhantomData<T>);

impl<T: Number, B: Loop<T>> PlainBody for InLanes<T, B> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        // SAFETY: `Number::run`'s caller keeps the contract of the loop.
        unsafe { self.0.run::<T::Plain>() }
    }
    #[inline(always)]
    fn run_fused(self) {
        // SAFETY: as above.
        unsafe { self.0.run::<T::Fused>() }
    }
    #[inline(always)]
    fn run_widest(self) {
        // SAFETY: as above.
        unsafe { self.0.run::<T::Widest>() }
    }
}

/// Computes `out[i] = rule(x[0][i], x[1][i], ...)` for `i < n`.
///
/// # Safety Each of `x` points to `n` readable numbers, `out` to `n` writable ones; `out` is an `x` or
/// overlaps none.
pub unsafe fn map<const N: usize, P: Pointwise<N>, T: Number>(
    rule: P, x: [*const T; N], out: *mut T, n: usize,
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
    isa: Isa, rule: P, x: [*const T; N], out: *mut T, n: usize,
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
