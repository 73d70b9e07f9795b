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
use crate::math::{self, Lane};
use std::num::Wrapping;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// An `f32` for loops compiled without fused multiply-adds.
#[repr(transparent)]
#[derive(Copy, Clone, Debug, Default, PartialEq, PartialOrd)]
pub struct F32(pub f32);

/// An `f32` for loops compiled with fused multiply-adds.
#[repr(transparent)]
#[derive(Copy, Clone, Debug, Default, PartialEq, PartialOrd)]
pub struct F32Fma(pub f32);

/// An `f64` for loops compiled without fused multiply-adds.
#[repr(transparent)]
#[derive(Copy, Clone, Debug, Default, PartialEq, PartialOrd)]
pub struct F64(pub f64);

/// An `f64` for loops compiled with fused multiply-adds.
#[repr(transparent)]
#[derive(Copy, Clone, Debug, Default, PartialEq, PartialOrd)]
pub struct F64Fma(pub f64);

/// Implements one operator of a lane: lane with lane, lane with literal, literal with lane.
macro_rules! operator {
    ($lane:ident, $float:ty, $trait:ident, $method:ident) => {
        impl $trait for $lane {
            type Output = $lane;
            #[inline(always)]
            fn $method(self, other: $lane) -> $lane {
                $lane($trait::$method(self.0, other.0))
            }
        }
        impl $trait<f64> for $lane {
            type Output = $lane;
            #[inline(always)]
            fn $method(self, other: f64) -> $lane {
                $lane($trait::$method(self.0, other as $float))
            }
        }
        impl $trait<$lane> for f64 {
            type Output = $lane;
            #[inline(always)]
            fn $method(self, other: $lane) -> $lane {
                $lane($trait::$method(self as $float, other.0))
            }
        }
    };
}

/// Implements the operators of a lane.
macro_rules! operators {
    ($lane:ident, $float:ty) => {
        operator!($lane, $float, Add, add);
        operator!($lane, $float, Sub, sub);
        operator!($lane, $float, Mul, mul);
        operator!($lane, $float, Div, div);
        impl Neg for $lane {
            type Output = $lane;
            #[inline(always)]
            fn neg(self) -> $lane {
                $lane(-self.0)
            }
        }
    };
}

/// Implements the part of `Real` that is the same for every float: constants, selection, comparison, root.
macro_rules! plain_methods {
    ($lane:ident, $float:ty) => {
        type Mask = bool;
        #[inline(always)]
        fn lit(value: f64) -> $lane {
            $lane(value as $float)
        }
        #[inline(always)]
        fn select(mask: bool, yes: $lane, no: $lane) -> $lane {
            if mask { yes } else { no }
        }
        #[inline(always)]
        fn lt(self, other: $lane) -> bool {
            self.0 < other.0
        }
        #[inline(always)]
        fn le(self, other: $lane) -> bool {
            self.0 <= other.0
        }
        #[inline(always)]
        fn eq(self, other: $lane) -> bool {
            self.0 == other.0
        }
        #[inline(always)]
        fn ne(self, other: $lane) -> bool {
            self.0 != other.0
        }
        #[inline(always)]
        fn abs(self) -> $lane {
            $lane(self.0.abs())
        }
        #[inline(always)]
        fn sqrt(self) -> $lane {
            $lane(self.0.sqrt())
        }
    };
}

/// Implements rounding with the processor's instructions.
macro_rules! native_rounding {
    ($lane:ident) => {
        #[inline(always)]
        fn floor(self) -> $lane {
            $lane(self.0.floor())
        }
        #[inline(always)]
        fn round(self) -> $lane {
            $lane(self.0.round_ties_even())
        }
    };
}

/// Implements rounding without instructions for it (x86-64's baseline would call the C library): adding and
/// subtracting `2^(mantissa bits)` rounds, and larger numbers are integers already.
macro_rules! added_rounding {
    ($lane:ident, $edge:expr) => {
        #[inline(always)]
        fn floor(self) -> $lane {
            let nearest = self.round();
            $lane(if nearest.0 > self.0 { nearest.0 - 1.0 } else { nearest.0 })
        }
        #[inline(always)]
        fn round(self) -> $lane {
            let size = self.0.abs();
            let rounded = ((size + $edge) - $edge).copysign(self.0);
            $lane(if size < $edge { rounded } else { self.0 })
        }
    };
}

/// Implements `Lane` for a lane with integers `$int`, which rounds to integers with `$magic`.
macro_rules! bits {
    (
        $lane:ident, $float:ident, $int:ident, $mantissa:literal, $bias:literal, $magic:literal,
        $branches:literal, $mul_add:expr
    ) => {
        impl Lane for $lane {
            type Int = Wrapping<$int>;
            const MANTISSA: usize = $mantissa;
            const BIAS: i64 = $bias;
            const SIGN: i64 = $int::MIN as i64;
            #[inline(always)]
            fn int(value: i64) -> Wrapping<$int> {
                Wrapping(value as $int)
            }
            #[inline(always)]
            fn int_eq(a: Wrapping<$int>, b: Wrapping<$int>) -> bool {
                a == b
            }
            #[inline(always)]
            fn bits(self) -> Wrapping<$int> {
                Wrapping(self.0.to_bits() as $int)
            }
            #[inline(always)]
            fn from_bits(bits: Wrapping<$int>) -> $lane {
                $lane($float::from_bits(bits.0 as _))
            }
            #[inline(always)]
            fn from_int(value: Wrapping<$int>) -> $lane {
                // Not every vector unit converts 64-bit integers; this is `nearest_int` backwards.
                const MAGIC: $float = $magic;
                $lane($float::from_bits(MAGIC.to_bits().wrapping_add(value.0 as _)) - MAGIC)
            }
            #[inline(always)]
            fn nearest_int(self) -> ($lane, Wrapping<$int>) {
                // A cast to integers saturates, so loops would not vectorise; the low bits of the sum are the
                // integer.
                const MAGIC: $float = $magic;
                let sum = self.0 + MAGIC;
                ($lane(sum - MAGIC), Wrapping(sum.to_bits() as $int) - Wrapping(MAGIC.to_bits() as $int))
            }
            #[inline(always)]
            fn special(self, bits: u32) -> $lane {
                $lane(f32::from_bits(bits) as $float)
            }
            #[inline(always)]
            fn mul_add(self, factor: $lane, term: $lane) -> $lane {
                let product_sum: fn($float, $float, $float) -> $float = $mul_add;
                $lane(product_sum(self.0, factor.0, term.0))
            }
            #[inline(always)]
            fn minus_product(self, a: $lane, b: $lane) -> $lane {
                a.mul_add(-b, self)
            }
            #[inline(always)]
            fn may_hold(mask: bool) -> bool {
                mask | !$branches
            }
        }
    };
}

/// Implements `Real` for an `f32` lane. It has no branches, so that the compiler can vectorise its loops.
macro_rules! single {
    ($lane:ident, $rounding:tt, $mul_add:expr) => {
        operators!($lane, f32);
        impl Real for $lane {
            plain_methods!($lane, f32);
            single!(@$rounding $lane);
            math::through_functions!(f32);
        }
        bits!($lane, f32, i32, 23, 127, 12_582_912.0, false, $mul_add);
    };
    (@native $lane:ident) => {
        native_rounding!($lane);
    };
    (@added $lane:ident) => {
        added_rounding!($lane, 8_388_608.0);
    };
}

/// Implements `Real` for an `f64` lane, with branches around rare arguments.
macro_rules! double {
    ($lane:ident, $mul_add:expr) => {
        operators!($lane, f64);
        impl Real for $lane {
            plain_methods!($lane, f64);
            native_rounding!($lane);
            math::through_functions!(f64);
        }
        bits!($lane, f64, i64, 52, 1023, 6_755_399_441_055_744.0, true, $mul_add);
    };
}

single!(F32, added, imitated_f32);
single!(F32Fma, native, f32::mul_add);
double!(F64, imitated_f64);
double!(F64Fma, f64::mul_add);

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

/// `x * y + z`, rounded once if the product neither overflows nor underflows (T. Dekker's product), else
/// about as accurate.
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
