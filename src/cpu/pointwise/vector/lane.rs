//! [`Vector`], the lane over any table of registers.

use super::registers::Registers;
use crate::math::real::Real;
use crate::math::wide::Wide;
use crate::math::{self, Lane};
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Shl, Shr, Sub};

/// A register of numbers.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Vector<R: Registers>(pub(super) R::Floats);

/// A register of integers.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Integers<R: Registers>(pub(super) R::Ints);

/// One truth value per number.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Mask<R: Registers>(R::Mask);

/// Defines methods that are one function of the table each.
macro_rules! methods {
    ($($name:ident($($arg:tt)*) -> $out:ident = $body:expr;)*) => {$(
        #[inline(always)]
        fn $name($($arg)*) -> $out<R> {
            // SAFETY: lanes run only under `Number::run`, so the processor has the instructions.
            $out(unsafe { $body })
        }
    )*};
}

macro_rules! operators {
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
            methods! { $method(self, n: usize) -> Integers = R::$function(self.0, n); }
        }
    )*};
    ($type:ident: $($trait:ident $method:ident = $function:ident),*) => {$(
        impl<R: Registers> $trait for $type<R> {
            type Output = $type<R>;
            methods! { $method(self, other: $type<R>) -> $type = R::$function(self.0, other.0); }
        }
    )*};
}

operators!(Vector: Add add = add, Sub sub = sub, Mul mul = mul, Div div = div);
operators!(literal: Add add, Sub sub, Mul mul, Div div);
operators!(Integers: Add add = int_add, Sub sub = int_sub);
operators!(Integers: BitAnd bitand = int_and, BitOr bitor = int_or, BitXor bitxor = int_xor);
operators!(shift: Shl shl = int_shl, Shr shr = int_shr);
operators!(Mask: BitAnd bitand = both, BitOr bitor = either);

impl<R: Registers> Not for Mask<R> {
    type Output = Mask<R>;
    methods! { not(self) -> Mask = R::not(self.0); }
}

impl<R: Registers> Neg for Vector<R> {
    type Output = Vector<R>;
    #[inline(always)]
    fn neg(self) -> Vector<R> {
        Self::from_bits(self.bits() ^ Self::int(Self::SIGN))
    }
}

impl<R: Registers> Real for Vector<R> {
    type Mask = Mask<R>;
    methods! {
        lit(value: f64) -> Vector = R::splat(value);
        select(mask: Mask<R>, yes: Vector<R>, no: Vector<R>) -> Vector = R::select(mask.0, yes.0, no.0);
        lt(self, other: Vector<R>) -> Mask = R::lt(self.0, other.0);
        le(self, other: Vector<R>) -> Mask = R::le(self.0, other.0);
        eq(self, other: Vector<R>) -> Mask = R::eq(self.0, other.0);
        ne(self, other: Vector<R>) -> Mask = R::ne(self.0, other.0);
        sqrt(self) -> Vector = R::sqrt(self.0);
        floor(self) -> Vector = R::floor(self.0);
        round(self) -> Vector = R::round(self.0);
    }
    #[inline(always)]
    fn abs(self) -> Vector<R> {
        Self::from_bits(self.bits() & Self::int(!Self::SIGN))
    }
    math::through_functions!(R::Number);
}

impl<R: Registers> Lane for Vector<R> {
    type Int = Integers<R>;
    const MANTISSA: usize = if size_of::<R::Number>() == 4 { 23 } else { 52 };
    methods! {
        int(value: i64) -> Integers = R::int(value);
        int_eq(a: Integers<R>, b: Integers<R>) -> Mask = R::int_eq(a.0, b.0);
        bits(self) -> Integers = R::bits(self.0);
        from_bits(bits: Integers<R>) -> Vector = R::from_bits(bits.0);
        from_int(value: Integers<R>) -> Vector = R::from_int(value.0);
        mul_add(self, factor: Vector<R>, term: Vector<R>) -> Vector = R::fma(self.0, factor.0, term.0);
        minus_product(self, a: Vector<R>, b: Vector<R>) -> Vector = R::fnma(a.0, b.0, self.0);
        // A NaN is the second operand and is returned.
        clamp(self, low: f64, high: f64) -> Vector = R::min(R::splat(high), R::max(R::splat(low), self.0));
        scale(self, turns: Vector<R>, n: Integers<R>) -> Vector = R::scale(self.0, turns.0, n.0);
    }
    #[inline(always)]
    fn may_hold(mask: Mask<R>) -> bool {
        // SAFETY: lanes run only under `Number::run`, so the processor has the instructions.
        unsafe { R::any(mask.0) }
    }
}

impl<R: Registers> Wide for Vector<R> {
    type Number = R::Number;
    const WIDTH: usize = size_of::<R::Floats>() / size_of::<R::Number>();
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
        self, mask: Mask<R>, x: [Vector<R>; N], f: fn([R::Number; N]) -> R::Number,
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
            for i in 0..Self::WIDTH {
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
    methods! { lookup(index: Integers<R>, table: &[R::Number; 16]) -> Vector = R::lookup(index.0, table); }
}
