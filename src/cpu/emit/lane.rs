//! The lanes of a list: rules and functions read with them write rows instead of computing.
//!
//! Rules are read with [`Value`], once for both precisions; the functions they call, with [`Typed`].

use super::composed;
use super::ssa::{self, Code, NONE, push};
use crate::math::functions::primitives;
use crate::math::lane::methods;
use crate::math::real::Real;
use crate::math::wide::Wide;
use crate::math::{Functions, Lane};
use std::marker::PhantomData;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Shl, Shr, Sub};

/// A number, by its row.
#[derive(Clone, Copy, Debug)]
pub struct Value(pub u32);

/// A truth value.
#[derive(Clone, Copy)]
pub struct Truth(pub u32);

/// An integer of the size of a number.
#[derive(Clone, Copy)]
pub struct Whole(pub u32);

/// A number of a known precision.
#[derive(Clone, Copy)]
pub struct Typed<T>(Value, PhantomData<T>);

// Rules consist of these calls: what they do is never inlined.

/// A row that reads two others.
#[inline(never)]
pub fn two(code: Code, x: u32, y: u32) -> u32 {
    push(code, [x, y, NONE], 0)
}

/// A row that reads one other.
#[inline(never)]
pub fn one(code: Code, x: u32) -> u32 {
    push(code, [x, NONE, NONE], 0)
}

/// A row that reads three others.
#[inline(never)]
pub fn three(code: Code, x: u32, y: u32, z: u32) -> u32 {
    push(code, [x, y, z], 0)
}

/// An integer that is shifted by `n`.
#[inline(never)]
pub fn shifted(code: Code, x: u32, n: usize) -> u32 {
    push(code, [x, NONE, NONE], n as u64)
}

/// A sum, product or the like with a literal.
#[inline(never)]
fn with_literal(code: Code, x: u32, y: f64) -> u32 {
    two(code, x, ssa::constant(y))
}

/// The same with the literal on the left.
#[inline(never)]
fn after_literal(code: Code, x: f64, y: u32) -> u32 {
    two(code, ssa::constant(x), y)
}

macro_rules! operators {
    ($($trait:ident $method:ident)*) => {$(
        impl $trait for Value {
            type Output = Value;
            methods! { $method(self, other: Value) -> Value = Value(two(Code::$trait, self.0, other.0)); }
        }
        impl $trait<f64> for Value {
            type Output = Value;
            methods! {
                $method(self, other: f64) -> Value = Value(with_literal(Code::$trait, self.0, other));
            }
        }
        impl $trait<Value> for f64 {
            type Output = Value;
            methods! {
                $method(self, other: Value) -> Value = Value(after_literal(Code::$trait, self, other.0));
            }
        }
        impl<T> $trait for Typed<T> {
            type Output = Typed<T>;
            methods! { $method(self, other: Typed<T>) -> Typed<T> = typed(self.0.$method(other.0)); }
        }
        impl<T> $trait<f64> for Typed<T> {
            type Output = Typed<T>;
            methods! { $method(self, other: f64) -> Typed<T> = typed(self.0.$method(other)); }
        }
        impl<T> $trait<Typed<T>> for f64 {
            type Output = Typed<T>;
            methods! { $method(self, other: Typed<T>) -> Typed<T> = typed(self.$method(other.0)); }
        }
    )*};
    ($type:ident: $($trait:ident $method:ident $code:ident,)*) => {$(
        impl $trait for $type {
            type Output = $type;
            methods! { $method(self, other: $type) -> $type = $type(two(Code::$code, self.0, other.0)); }
        }
    )*};
}

operators! { Add add Sub sub Mul mul Div div }
operators! { Whole: Add add IntAdd, Sub sub IntSub, }
operators! { Whole: BitAnd bitand IntAnd, BitOr bitor IntOr, BitXor bitxor IntXor, }
operators! { Truth: BitAnd bitand Both, BitOr bitor Either, }

impl Not for Truth {
    type Output = Truth;
    methods! { not(self) -> Truth = Truth(composed::not(self.0)); }
}

impl Shl<usize> for Whole {
    type Output = Whole;
    methods! { shl(self, n: usize) -> Whole = Whole(shifted(Code::Shl, self.0, n)); }
}

impl Shr<usize> for Whole {
    type Output = Whole;
    methods! { shr(self, n: usize) -> Whole = Whole(composed::shr(self.0, n)); }
}

impl Neg for Value {
    type Output = Value;
    #[inline(never)]
    fn neg(self) -> Value {
        let sign = ssa::int(if ssa::is_wide() { i64::MIN } else { i32::MIN.into() });
        Value(two(Code::IntXor, self.0, sign))
    }
}

impl<T> Neg for Typed<T> {
    type Output = Typed<T>;
    methods! { neg(self) -> Typed<T> = typed(-self.0); }
}

impl<T> Typed<T> {
    /// A number that has this precision.
    pub fn new(value: Value) -> Typed<T> {
        typed(value)
    }
    /// Without its precision.
    #[cfg(test)]
    pub fn value(self) -> Value {
        self.0
    }
}

/// A number whose precision is known to be that of the list.
#[inline(always)]
fn typed<T>(value: Value) -> Typed<T> {
    Typed(value, PhantomData)
}

/// A function that is left to compiled loops.
#[inline(never)]
fn refused(x: Value) -> Value {
    ssa::refuse();
    x
}

/// How a function is read: not at all where it is rare and long; computing all arguments where those that the
/// compiled loop branches around are frequent; otherwise leaving the loop for the rare ones.
macro_rules! function {
    ($read:ident, $x:ident, lgamma) => {
        refused($x)
    };
    ($read:ident, $x:ident, digamma) => {
        refused($x)
    };
    ($read:ident, $x:ident, erfinv) => {
        refused($x)
    };
    ($read:ident, $x:ident, i0) => {
        refused($x)
    };
    ($read:ident, $x:ident, i0e) => {
        refused($x)
    };
    ($read:ident, $x:ident, i1) => {
        refused($x)
    };
    ($read:ident, $x:ident, i1e) => {
        refused($x)
    };
    ($read:ident, $x:ident, erfcx) => {
        refused($x)
    };
    ($read:ident, $x:ident, ndtri) => {
        refused($x)
    };
    ($read:ident, $x:ident, bessel_j0) => {
        refused($x)
    };
    ($read:ident, $x:ident, bessel_j1) => {
        refused($x)
    };
    ($read:ident, $x:ident, bessel_y0) => {
        refused($x)
    };
    ($read:ident, $x:ident, bessel_y1) => {
        refused($x)
    };
    ($read:ident, $x:ident, modified_bessel_k0) => {
        refused($x)
    };
    ($read:ident, $x:ident, modified_bessel_k1) => {
        refused($x)
    };
    ($read:ident, $x:ident, scaled_modified_bessel_k0) => {
        refused($x)
    };
    ($read:ident, $x:ident, scaled_modified_bessel_k1) => {
        refused($x)
    };
    ($read:ident, $x:ident, asinh) => {
        refused($x)
    };
    ($read:ident, $x:ident, acosh) => {
        refused($x)
    };
    ($read:ident, $x:ident, atanh) => {
        refused($x)
    };
    ($read:ident, $x:ident, tanh) => {
        ssa::whole(|| $read!($x, tanh))
    };
    ($read:ident, $x:ident, erf) => {
        ssa::whole(|| $read!($x, erf))
    };
    ($read:ident, $x:ident, silu) => {
        ssa::whole(|| $read!($x, silu))
    };
    ($read:ident, $x:ident, $name:ident) => {
        $read!($x, $name)
    };
}

/// A function of the precision of the list.
macro_rules! by_precision {
    ($x:ident, $name:ident $(, $y:ident)?) => {
        if ssa::is_wide() {
            <f64 as Functions>::$name::<Typed<f64>>(typed($x) $(, typed($y))?).0
        } else {
            <f32 as Functions>::$name::<Typed<f32>>(typed($x) $(, typed($y))?).0
        }
    };
}

macro_rules! functions {
    ($($(#[doc = $doc:literal])? $name:ident $row:ident,)*) => {$(
        // Compiled once, for all rules.
        #[inline(never)]
        fn $name(self) -> Value {
            let x = self;
            function!(by_precision, x, $name)
        }
    )*};
}

impl Real for Value {
    type Mask = Truth;
    methods! {
        select(mask: Truth, yes: Value, no: Value) -> Value =
            Value(three(Code::Select, mask.0, yes.0, no.0));
        lt(self, other: Value) -> Truth = Truth(two(Code::Lt, self.0, other.0));
        le(self, other: Value) -> Truth = Truth(two(Code::Le, self.0, other.0));
        eq(self, other: Value) -> Truth = Truth(two(Code::Eq, self.0, other.0));
        ne(self, other: Value) -> Truth = Truth(two(Code::Ne, self.0, other.0));
        sqrt(self) -> Value = Value(one(Code::Sqrt, self.0));
        floor(self) -> Value = Value(one(Code::Floor, self.0));
        round(self) -> Value = Value(one(Code::Round, self.0));
    }
    #[inline(never)]
    fn lit(value: f64) -> Value {
        Value(ssa::constant(value))
    }
    #[inline(never)]
    fn abs(self) -> Value {
        let all_but_sign = ssa::int(if ssa::is_wide() { i64::MAX } else { i32::MAX.into() });
        Value(two(Code::IntAnd, self.0, all_but_sign))
    }
    primitives!(functions);
    #[inline(never)]
    fn pow(self, y: Value) -> Value {
        let x = self;
        by_precision!(x, pow, y)
    }
    #[inline(never)]
    fn fmod(self, y: Value) -> Value {
        let x = self;
        by_precision!(x, fmod, y)
    }
    fn polygamma(self, _order: usize) -> Value {
        refused(self)
    }
}

macro_rules! through_value {
    ($($(#[doc = $doc:literal])? $name:ident $row:ident,)*) => {
        methods! { $($name(self) -> Typed<T> = typed(self.0.$name());)* }
    };
}

impl<T: Copy + 'static> Real for Typed<T> {
    type Mask = Truth;
    methods! {
        lit(value: f64) -> Typed<T> = typed(Value::lit(value));
        select(mask: Truth, yes: Typed<T>, no: Typed<T>) -> Typed<T> =
            typed(Value::select(mask, yes.0, no.0));
        lt(self, other: Typed<T>) -> Truth = self.0.lt(other.0);
        le(self, other: Typed<T>) -> Truth = self.0.le(other.0);
        eq(self, other: Typed<T>) -> Truth = self.0.eq(other.0);
        ne(self, other: Typed<T>) -> Truth = self.0.ne(other.0);
        abs(self) -> Typed<T> = typed(self.0.abs());
        floor(self) -> Typed<T> = typed(self.0.floor());
        round(self) -> Typed<T> = typed(self.0.round());
        sqrt(self) -> Typed<T> = typed(self.0.sqrt());
        pow(self, y: Typed<T>) -> Typed<T> = typed(self.0.pow(y.0));
        fmod(self, y: Typed<T>) -> Typed<T> = typed(self.0.fmod(y.0));
        polygamma(self, order: usize) -> Typed<T> = typed(self.0.polygamma(order));
    }
    primitives!(through_value);
}

/// `min(high, max(low, x))`: a NaN is the second operand and is returned.
#[inline(never)]
fn clamped(x: Value, low: f64, high: f64) -> Value {
    Value(after_literal(Code::Min, high, after_literal(Code::Max, low, x.0)))
}

impl<T: Copy + 'static> Lane for Typed<T> {
    type Int = Whole;
    const MANTISSA: usize = if size_of::<T>() == 4 { 23 } else { 52 };
    methods! {
        int(value: i64) -> Whole = Whole(ssa::int(value));
        int_eq(a: Whole, b: Whole) -> Truth = Truth(two(Code::IntEq, a.0, b.0));
        bits(self) -> Whole = Whole(self.0.0);
        from_bits(bits: Whole) -> Typed<T> = typed(Value(bits.0));
        from_int(value: Whole) -> Typed<T> = typed(Value(composed::from_int(value.0)));
        mul_add(self, factor: Typed<T>, term: Typed<T>) -> Typed<T> =
            typed(Value(three(Code::Fma, self.0.0, factor.0.0, term.0.0)));
        minus_product(self, a: Typed<T>, b: Typed<T>) -> Typed<T> =
            typed(Value(three(Code::Fnma, a.0.0, b.0.0, self.0.0)));
        clamp(self, low: f64, high: f64) -> Typed<T> = typed(clamped(self.0, low, high));
        scale(self, turns: Typed<T>, n: Whole) -> Typed<T> =
            typed(Value(composed::scale(self.0.0, turns.0.0, n.0)));
        may_hold(mask: Truth) -> bool = ssa::may_hold(mask.0);
    }
}

/// A number of a table as bits.
pub trait Number: Copy + 'static {
    /// The bits.
    fn to_bits(self) -> u64;
}

impl Number for f32 {
    fn to_bits(self) -> u64 {
        f32::to_bits(self).into()
    }
}

impl Number for f64 {
    fn to_bits(self) -> u64 {
        f64::to_bits(self)
    }
}

impl<T: Number> Wide for Typed<T> {
    type Number = T;
    const WIDTH: usize = 1;
    unsafe fn load(_from: *const T) -> Typed<T> {
        typed(refused(Value(0)))
    }
    unsafe fn store(self, _to: *mut T) {}
    unsafe fn load_part(_from: *const T, _count: usize) -> Typed<T> {
        typed(refused(Value(0)))
    }
    unsafe fn store_part(self, _to: *mut T, _count: usize) {}
    #[inline(always)]
    fn replace<const N: usize>(self, _mask: Truth, _x: [Typed<T>; N], _f: fn([T; N]) -> T) -> Typed<T> {
        typed(refused(self.0))
    }
    #[inline(always)]
    fn lookup(index: Whole, table: &[T; 16]) -> Typed<T> {
        typed(Value(composed::lookup(index.0, table.map(T::to_bits))))
    }
}
