//! CPU lanes: single numbers that implement [`Real`], one element of a loop each.
//!
//! Everything here is `#[inline(always)]` and free of branches, so a loop over a slice of lanes is vectorised
//! for the instruction set that it is compiled for. `F32Fma` and `F64Fma` are for loops compiled with fused
//! multiply-add (elsewhere they would call the C library for each product); `F32` and `F64` are for all
//! others and imitate it: slower, but every processor computes the same bits.
//!
//! Elementwise loops use whole registers where they can: `src/cpu/pointwise/vector.rs`.
//!
//! Read next: `src/math/mod.rs`, the polynomials of the `f32` lanes.

use crate::math::real::Real;
use crate::math::wide::Wide;
use crate::math::{self, Lane};
use std::num::Wrapping;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Defines methods that are one expression each.
macro_rules! methods {
    ($($name:ident($($arg:tt)*) -> $out:ty = $body:expr;)*) => {$(
        #[inline(always)]
        fn $name($($arg)*) -> $out {
            $body
        }
    )*};
}
pub(crate) use methods;

/// Implements operators of a lane: lane with lane, lane with literal, literal with lane.
macro_rules! operators {
    ($lane:ident($float:ty): $($trait:ident $method:ident),*) => {$(
        impl $trait for $lane {
            type Output = $lane;
            methods! { $method(self, other: $lane) -> $lane = $lane($trait::$method(self.0, other.0)); }
        }
        impl $trait<f64> for $lane {
            type Output = $lane;
            methods! { $method(self, other: f64) -> $lane = $lane($trait::$method(self.0, other as $float)); }
        }
        impl $trait<$lane> for f64 {
            type Output = $lane;
            methods! {
                $method(self, other: $lane) -> $lane = $lane($trait::$method(self as $float, other.0));
            }
        }
    )*};
}

/// Defines a lane: its float and the integer of that size, the number of bits of the mantissa, whether it
/// branches around rare arguments (loops without branches are vectorised), rounding and fused products.
macro_rules! lane {
    (
        $(#[$doc:meta])*
        $lane:ident($float:ident, $int:ident), $mantissa:literal, branches $branches:literal,
        $floor:path, $round:path, $mul_add:path
    ) => {
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Copy, Clone, Debug, Default, PartialEq, PartialOrd)]
        pub struct $lane(pub $float);

        operators!($lane($float): Add add, Sub sub, Mul mul, Div div);
        impl Neg for $lane {
            type Output = $lane;
            methods! { neg(self) -> $lane = $lane(-self.0); }
        }
        impl Real for $lane {
            type Mask = bool;
            methods! {
                lit(value: f64) -> $lane = $lane(value as $float);
                select(mask: bool, yes: $lane, no: $lane) -> $lane = if mask { yes } else { no };
                lt(self, other: $lane) -> bool = self.0 < other.0;
                le(self, other: $lane) -> bool = self.0 <= other.0;
                eq(self, other: $lane) -> bool = self.0 == other.0;
                ne(self, other: $lane) -> bool = self.0 != other.0;
                abs(self) -> $lane = $lane(self.0.abs());
                sqrt(self) -> $lane = $lane(self.0.sqrt());
                floor(self) -> $lane = $lane($floor(self.0));
                round(self) -> $lane = $lane($round(self.0));
            }
            math::through_functions!($float);
        }
        impl Lane for $lane {
            type Int = Wrapping<$int>;
            const MANTISSA: usize = $mantissa;
            methods! {
                int(value: i64) -> Wrapping<$int> = Wrapping(value as $int);
                int_eq(a: Wrapping<$int>, b: Wrapping<$int>) -> bool = a == b;
                bits(self) -> Wrapping<$int> = Wrapping(self.0.to_bits() as $int);
                from_bits(bits: Wrapping<$int>) -> $lane = $lane($float::from_bits(bits.0 as _));
                mul_add(self, x: $lane, term: $lane) -> $lane = $lane($mul_add(self.0, x.0, term.0));
                may_hold(mask: bool) -> bool = mask | !$branches;
            }
        }
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
                if $branches && !mask {
                    return self;
                }
                let value = f(x.map(|x| x.0));
                $lane(if mask { value } else { self.0 })
            }
            #[inline(always)]
            fn lookup(index: Self::Int, table: &[$float; 16]) -> $lane {
                $lane(table[index.0 as usize & 15])
            }
        }
    };
}

lane! {
    /// An `f32` for loops compiled without fused multiply-adds.
    F32(f32, i32), 23, branches false, added_floor, added_round, imitated_f32
}
lane! {
    /// An `f32` for loops compiled with fused multiply-adds.
    F32Fma(f32, i32), 23, branches false, f32::floor, f32::round_ties_even, f32::mul_add
}
lane! {
    /// An `f64` for loops compiled without fused multiply-adds.
    F64(f64, i64), 52, branches true, f64::floor, f64::round_ties_even, imitated_f64
}
lane! {
    /// An `f64` for loops compiled with fused multiply-adds.
    F64Fma(f64, i64), 52, branches true, f64::floor, f64::round_ties_even, f64::mul_add
}

/// The nearest integer without an instruction for it (x86-64's baseline would call the C library): adding and
/// subtracting `2^(mantissa bits)` rounds, and larger numbers are integers already.
#[inline(always)]
fn added_round(x: f32) -> f32 {
    const EDGE: f32 = 8_388_608.0;
    let size = x.abs();
    let rounded = ((size + EDGE) - EDGE).copysign(x);
    if size < EDGE { rounded } else { x }
}

/// The largest integer that is not above `x`, likewise.
#[inline(always)]
fn added_floor(x: f32) -> f32 {
    let nearest = added_round(x);
    if nearest > x { nearest - 1.0 } else { nearest }
}

/// Rounds to odd: `sum` is the number nearest to the exact value and `lost` the rest. A number rounded to odd
/// can be rounded to fewer bits as if it were exact (S. Boldo and G. Melquiond, 2008).
#[inline(always)]
fn to_odd(sum: f64, lost: f64) -> f64 {
    // If the sum is too far from 0, the odd neighbour is one below.
    let inexact = (lost < 0.0) | (lost > 0.0);
    let too_far = inexact & ((lost < 0.0) != (sum < 0.0));
    f64::from_bits(sum.to_bits().wrapping_sub(u64::from(too_far)) | u64::from(inexact))
}

/// `(x + y, rounding error of the sum)` (D. Knuth).
#[inline(always)]
fn two_sum(x: f64, y: f64) -> (f64, f64) {
    let sum = x + y;
    let part = sum - x;
    (sum, (x - (sum - part)) + (y - part))
}

/// `x * y + z`, rounded once: the product of two floats is exact in double precision.
///
/// Not inlined, nor is `imitated_f64`: formulas have hundreds of products, and compiling their loops for
/// processors without fused multiply-adds would take most of the compile time.
#[inline(never)]
fn imitated_f32(x: f32, y: f32, z: f32) -> f32 {
    let (sum, lost) = two_sum(f64::from(x) * f64::from(y), f64::from(z));
    to_odd(sum, lost) as f32
}

/// `x * y + z`, rounded once unless the product over- or underflows (T. Dekker's product), then nearly so.
#[inline(never)]
fn imitated_f64(x: f64, y: f64, z: f64) -> f64 {
    const SPLIT: f64 = 134_217_729.0;
    let halves = |v: f64| {
        let high = v * SPLIT - (v * SPLIT - v);
        (high, v - high)
    };
    let product = x * y;
    let ((x_high, x_low), (y_high, y_low)) = (halves(x), halves(y));
    let lost = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low;
    // A product whose parts overflowed has no meaningful rest.
    let lost = if lost.abs() <= product.abs() { lost } else { 0.0 };
    let (low, low_lost) = two_sum(z, lost);
    let (high, high_lost) = two_sum(product, low);
    let sum = high + to_odd_sum(high_lost, low_lost);
    if sum.is_finite() { sum } else { product + z }
}

/// `x + y`, rounded to odd.
#[inline(always)]
fn to_odd_sum(x: f64, y: f64) -> f64 {
    let (sum, lost) = two_sum(x, y);
    to_odd(sum, lost)
}
