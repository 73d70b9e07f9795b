//! [`Registers`], the table of an instruction set's operations (`src/cpu/pointwise/vector/avx2.rs` and
//! `src/cpu/pointwise/vector/avx512.rs` fill it in), and [`Vector`], the lane over any such table.

use super::Wide;
use crate::math::real::Real;
use crate::math::{Functions, Lane};
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Shl, Shr, Sub};

/// Defines the functions of a table that are one expression each.
macro_rules! instructions {
    ($($name:ident($($arg:ident: $type:ident),*) -> $out:ident = $body:expr;)*) => {$(
        #[inline(always)]
        unsafe fn $name($($arg: Self::$type),*) -> Self::$out {
            // SAFETY: guaranteed by the caller. Some expressions need no guarantee.
            #[allow(unused_unsafe)]
            unsafe {
                $body
            }
        }
    )*};
}
#[cfg(target_arch = "x86_64")]
pub(crate) use instructions;

/// The registers of an instruction set and the operations on them, for one number type.
///
/// # Safety
/// Every function needs the instruction set. Lanes are only made under `Number::run`, which runs after the
/// processor was checked.
#[allow(missing_docs, reason = "the names say it, and `Lane` and `Real` describe the same operations")]
pub unsafe trait Registers: Copy + 'static {
    type Number: Copy + Default + PartialEq + Functions;
    type Floats: Copy;
    type Ints: Copy;
    type Mask: Copy;
    const WIDTH: usize;
    const MANTISSA: usize;
    const BIAS: i64;
    const SIGN: i64;
    unsafe fn splat(x: f64) -> Self::Floats;
    unsafe fn add(x: Self::Floats, y: Self::Floats) -> Self::Floats;
    unsafe fn sub(x: Self::Floats, y: Self::Floats) -> Self::Floats;
    unsafe fn mul(x: Self::Floats, y: Self::Floats) -> Self::Floats;
    unsafe fn div(x: Self::Floats, y: Self::Floats) -> Self::Floats;
    /// `x * y + z`.
    unsafe fn fma(x: Self::Floats, y: Self::Floats, z: Self::Floats) -> Self::Floats;
    /// `z - x * y`.
    unsafe fn fnma(x: Self::Floats, y: Self::Floats, z: Self::Floats) -> Self::Floats;
    /// The smaller; `y` if one is NaN.
    unsafe fn min(x: Self::Floats, y: Self::Floats) -> Self::Floats;
    /// The larger; `y` if one is NaN.
    unsafe fn max(x: Self::Floats, y: Self::Floats) -> Self::Floats;
    unsafe fn sqrt(x: Self::Floats) -> Self::Floats;
    unsafe fn floor(x: Self::Floats) -> Self::Floats;
    unsafe fn round(x: Self::Floats) -> Self::Floats;
    unsafe fn lt(x: Self::Floats, y: Self::Floats) -> Self::Mask;
    unsafe fn le(x: Self::Floats, y: Self::Floats) -> Self::Mask;
    unsafe fn eq(x: Self::Floats, y: Self::Floats) -> Self::Mask;
    unsafe fn ne(x: Self::Floats, y: Self::Floats) -> Self::Mask;
    unsafe fn select(mask: Self::Mask, yes: Self::Floats, no: Self::Floats) -> Self::Floats;
    unsafe fn both(x: Self::Mask, y: Self::Mask) -> Self::Mask;
    unsafe fn either(x: Self::Mask, y: Self::Mask) -> Self::Mask;
    unsafe fn not(x: Self::Mask) -> Self::Mask;
    unsafe fn any(x: Self::Mask) -> bool;
    unsafe fn bits(x: Self::Floats) -> Self::Ints;
    unsafe fn from_bits(x: Self::Ints) -> Self::Floats;
    /// The float nearest to a small integer.
    unsafe fn from_int(x: Self::Ints) -> Self::Floats;
    /// The nearest integer, as floats and as integers.
    unsafe fn nearest(x: Self::Floats) -> (Self::Floats, Self::Ints);
    unsafe fn int(x: i64) -> Self::Ints;
    unsafe fn int_add(x: Self::Ints, y: Self::Ints) -> Self::Ints;
    unsafe fn int_sub(x: Self::Ints, y: Self::Ints) -> Self::Ints;
    unsafe fn int_and(x: Self::Ints, y: Self::Ints) -> Self::Ints;
    unsafe fn int_or(x: Self::Ints, y: Self::Ints) -> Self::Ints;
    unsafe fn int_xor(x: Self::Ints, y: Self::Ints) -> Self::Ints;
    unsafe fn int_shl(x: Self::Ints, n: usize) -> Self::Ints;
    unsafe fn int_shr(x: Self::Ints, n: usize) -> Self::Ints;
    unsafe fn int_eq(x: Self::Ints, y: Self::Ints) -> Self::Mask;
    unsafe fn lookup(index: Self::Ints, table: &[Self::Number; 16]) -> Self::Floats;
    unsafe fn load(from: *const Self::Number) -> Self::Floats;
    unsafe fn store(to: *mut Self::Number, x: Self::Floats);
    unsafe fn load_part(from: *const Self::Number, count: usize) -> Self::Floats;
    unsafe fn store_part(to: *mut Self::Number, count: usize, x: Self::Floats);
    /// `x * 2^n`, rounded once; `_turns` holds the same `n` as floats.
    #[inline(always)]
    unsafe fn scale(x: Self::Floats, _turns: Self::Floats, n: Self::Ints) -> Self::Floats {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let half = Self::int_shr(n, 1);
            let power =
                |n| Self::from_bits(Self::int_shl(Self::int_add(n, Self::int(Self::BIAS)), Self::MANTISSA));
            Self::mul(Self::mul(x, power(half)), power(Self::int_sub(n, half)))
        }
    }
}

/// A register of numbers.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Vector<R: Registers>(R::Floats);

/// A register of integers.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Integers<R: Registers>(R::Ints);

/// One truth value per number.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Mask<R: Registers>(R::Mask);

macro_rules! operator {
    (literal: $($trait:ident $method:ident),*) => {$(
        impl<R: Registers> $trait<f64> for Vector<R> {
            type Output = Vector<R>;
            #[inline(always)]
            fn $method(self, other: f64) -> Vector<R> {
                self.$method(Vector::lit(other))
            }
        }
        impl<R: Registers> $trait<Vector<R>> for f64 {
            type Output = Vector<R>;
            #[inline(always)]
            fn $method(self, other: Vector<R>) -> Vector<R> {
                Vector::lit(self).$method(other)
            }
        }
    )*};
    (shift: $($trait:ident $method:ident = $function:ident),*) => {$(
        impl<R: Registers> $trait<usize> for Integers<R> {
            type Output = Integers<R>;
            #[inline(always)]
            fn $method(self, n: usize) -> Integers<R> {
                // SAFETY: lanes run only under `Number::run`, so the processor has the instructions.
                Integers(unsafe { R::$function(self.0, n) })
            }
        }
    )*};
    ($type:ident: $($trait:ident $method:ident = $function:ident),*) => {$(
        impl<R: Registers> $trait for $type<R> {
            type Output = $type<R>;
            #[inline(always)]
            fn $method(self, other: $type<R>) -> $type<R> {
                // SAFETY: lanes run only under `Number::run`, so the processor has the instructions.
                $type(unsafe { R::$function(self.0, other.0) })
            }
        }
    )*};
}

operator!(Vector: Add add = add, Sub sub = sub, Mul mul = mul, Div div = div);
operator!(literal: Add add, Sub sub, Mul mul, Div div);
operator!(Integers: Add add = int_add, Sub sub = int_sub);
operator!(Integers: BitAnd bitand = int_and, BitOr bitor = int_or, BitXor bitxor = int_xor);
operator!(shift: Shl shl = int_shl, Shr shr = int_shr);
operator!(Mask: BitAnd bitand = both, BitOr bitor = either);

impl<R: Registers> Not for Mask<R> {
    type Output = Mask<R>;
    #[inline(always)]
    fn not(self) -> Mask<R> {
        // SAFETY: lanes run only under `Number::run`, so the processor has the instructions.
        Mask(unsafe { R::not(self.0) })
    }
}

impl<R: Registers> Neg for Vector<R> {
    type Output = Vector<R>;
    #[inline(always)]
    fn neg(self) -> Vector<R> {
        Self::from_bits(self.bits() ^ Self::int(R::SIGN))
    }
}

macro_rules! compare {
    ($($method:ident),*) => {$(
        #[inline(always)]
        fn $method(self, other: Vector<R>) -> Mask<R> {
            // SAFETY: lanes run only under `Number::run`, so the processor has the instructions.
            Mask(unsafe { R::$method(self.0, other.0) })
        }
    )*};
}

macro_rules! instruction {
    ($($method:ident),*) => {$(
        #[inline(always)]
        fn $method(self) -> Vector<R> {
            // SAFETY: lanes run only under `Number::run`, so the processor has the instructions.
            Vector(unsafe { R::$method(self.0) })
        }
    )*};
}

impl<R: Registers> Real for Vector<R> {
    type Mask = Mask<R>;
    #[inline(always)]
    fn lit(value: f64) -> Vector<R> {
        // SAFETY: lanes run only under `Number::run`, so the processor has the instructions.
        Vector(unsafe { R::splat(value) })
    }
    #[inline(always)]
    fn select(mask: Mask<R>, yes: Vector<R>, no: Vector<R>) -> Vector<R> {
        // SAFETY: lanes run only under `Number::run`, so the processor has the instructions.
        Vector(unsafe { R::select(mask.0, yes.0, no.0) })
    }
    compare!(lt, le, eq, ne);
    instruction!(sqrt, floor, round);
    #[inline(always)]
    fn abs(self) -> Vector<R> {
        Self::from_bits(self.bits() & Self::int(!R::SIGN))
    }
    crate::math::through_functions!(R::Number);
}

impl<R: Registers> Lane for Vector<R> {
    type Int = Integers<R>;
    const MANTISSA: usize = R::MANTISSA;
    const BIAS: i64 = R::BIAS;
    const SIGN: i64 = R::SIGN;
    #[inline(always)]
    fn int(value: i64) -> Integers<R> {
        // SAFETY: lanes run only under `Number::run`, so the processor has the instructions.
        Integers(unsafe { R::int(value) })
    }
    #[inline(always)]
    fn int_eq(a: Integers<R>, b: Integers<R>) -> Mask<R> {
        // SAFETY: lanes run only under `Number::run`, so the processor has the instructions.
        Mask(unsafe { R::int_eq(a.0, b.0) })
    }
    #[inline(always)]
    fn bits(self) -> Integers<R> {
        // SAFETY: lanes run only under `Number::run`, so the processor has the instructions.
        Integers(unsafe { R::bits(self.0) })
    }
    #[inline(always)]
    fn from_bits(bits: Integers<R>) -> Vector<R> {
        // SAFETY: lanes run only under `Number::run`, so the processor has the instructions.
        Vector(unsafe { R::from_bits(bits.0) })
    }
    #[inline(always)]
    fn from_int(value: Integers<R>) -> Vector<R> {
        // SAFETY: lanes run only under `Number::run`, so the processor has the instructions.
        Vector(unsafe { R::from_int(value.0) })
    }
    #[inline(always)]
    fn nearest_int(self) -> (Vector<R>, Integers<R>) {
        // SAFETY: lanes run only under `Number::run`, so the processor has the instructions.
        let (turns, n) = unsafe { R::nearest(self.0) };
        (Vector(turns), Integers(n))
    }
    #[inline(always)]
    fn special(self, bits: u32) -> Vector<R> {
        Self::lit(f64::from(f32::from_bits(bits)))
    }
    #[inline(always)]
    fn mul_add(self, factor: Vector<R>, term: Vector<R>) -> Vector<R> {
        // SAFETY: lanes run only under `Number::run`, so the processor has the instructions.
        Vector(unsafe { R::fma(self.0, factor.0, term.0) })
    }
    #[inline(always)]
    fn minus_product(self, a: Vector<R>, b: Vector<R>) -> Vector<R> {
        // SAFETY: lanes run only under `Number::run`, so the processor has the instructions.
        Vector(unsafe { R::fnma(a.0, b.0, self.0) })
    }
    #[inline(always)]
    fn clamp(self, low: f64, high: f64) -> Vector<R> {
        // SAFETY: lanes run only under `Number::run`. A NaN is the second operand and is returned.
        Vector(unsafe { R::min(R::splat(high), R::max(R::splat(low), self.0)) })
    }
    #[inline(always)]
    fn scale(self, turns: Vector<R>, n: Integers<R>) -> Vector<R> {
        // SAFETY: lanes run only under `Number::run`, so the processor has the instructions.
        Vector(unsafe { R::scale(self.0, turns.0, n.0) })
    }
    #[inline(always)]
    fn may_hold(mask: Mask<R>) -> bool {
        // SAFETY: lanes run only under `Number::run`, so the processor has the instructions.
        unsafe { R::any(mask.0) }
    }
}

impl<R: Registers> Wide for Vector<R> {
    type Number = R::Number;
    const WIDTH: usize = R::WIDTH;
    #[inline(always)]
    unsafe fn load(from: *const R::Number) -> Vector<R> {
        // SAFETY: guaranteed by the caller.
        Vector(unsafe { R::load(from) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut R::Number) {
        // SAFETY: guaranteed by the caller.
        unsafe { R::store(to, self.0) }
    }
    #[inline(always)]
    unsafe fn load_part(from: *const R::Number, count: usize) -> Vector<R> {
        // SAFETY: guaranteed by the caller.
        Vector(unsafe { R::load_part(from, count) })
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut R::Number, count: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { R::store_part(to, count, self.0) }
    }
    #[inline(always)]
    fn replace<const N: usize>(
        self,
        mask: Mask<R>,
        x: [Vector<R>; N],
        f: fn([R::Number; N]) -> R::Number,
    ) -> Vector<R> {
        let zero = R::Number::default();
        let (mut from, mut to, mut marks) = ([[zero; 16]; N], [zero; 16], [zero; 16]);
        // SAFETY: no register is wider than the arrays.
        unsafe {
            for k in 0..N {
                x[k].store(from[k].as_mut_ptr());
            }
            self.store(to.as_mut_ptr());
            Self::select(mask, Self::lit(1.0), Self::lit(0.0)).store(marks.as_mut_ptr());
            for i in 0..R::WIDTH {
                if marks[i] != zero {
                    let mut one = [zero; N];
                    for k in 0..N {
                        one[k] = from[k][i];
                    }
                    to[i] = f(one);
                }
            }
            Self::load(to.as_ptr())
        }
    }
    #[inline(always)]
    fn lookup(index: Integers<R>, table: &[R::Number; 16]) -> Vector<R> {
        // SAFETY: lanes run only under `Number::run`, so the processor has the instructions.
        Vector(unsafe { R::lookup(index.0, table) })
    }
}
