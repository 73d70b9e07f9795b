//! CPU lanes: single numbers that implement [`Real`], one element of a loop each.
//!
//! Everything here is `#[inline(always)]` and free of branches, so a loop over a slice of lanes
//! becomes vector code of whatever instruction set the loop was compiled for. `F32Fma` is for loops
//! compiled with fused multiply-add (elsewhere it would call the C library for each product); `F32`
//! is for all others. Their results may differ in the last place; neither depends on the number of
//! threads or on the position in the slice.
//!
//! Read next: `src/math.rs`, the polynomials of the `f32` lanes.

use crate::math::{self, Lane, double};
use crate::real::Real;
use std::num::Wrapping;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// An `f32` computed with separate products and sums.
#[repr(transparent)]
#[derive(Copy, Clone, Debug, Default, PartialEq, PartialOrd)]
pub struct F32(pub f32);

/// An `f32` computed with fused multiply-adds; use it only in loops compiled for an instruction set
/// that has them.
#[repr(transparent)]
#[derive(Copy, Clone, Debug, Default, PartialEq, PartialOrd)]
pub struct F32Fma(pub f32);

/// An `f64`; its transcendental functions are the C library's, except `erf`.
#[repr(transparent)]
#[derive(Copy, Clone, Debug, Default, PartialEq, PartialOrd)]
pub struct F64(pub f64);

/// One operator of a lane: lane with lane, lane with literal, literal with lane.
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

/// The operators of a lane.
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

/// The part of `Real` that is the same for every float: constants, selection, comparison, root.
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

/// Rounding by the processor's own instructions.
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

/// Rounding without instructions for it (x86-64's baseline would call the C library): adding and
/// subtracting `2^(mantissa bits)` rounds, and what is larger than that is whole already.
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

/// `Real` and `Lane` for an `f32` lane.
macro_rules! single {
    ($lane:ident, $rounding:tt, $mul_add:expr) => {
        operators!($lane, f32);
        impl Real for $lane {
            plain_methods!($lane, f32);
            single!(@$rounding $lane);
            single!(@through $lane, exp, expm1, log, log1p, sin, cos, tanh, erf);
            #[inline(always)]
            fn pow(self, exponent: $lane) -> $lane {
                math::pow(self, exponent)
            }
        }
        impl Lane for $lane {
            type Int = Wrapping<i32>;
            #[inline(always)]
            fn int(value: i32) -> Wrapping<i32> {
                Wrapping(value)
            }
            #[inline(always)]
            fn int_eq(a: Wrapping<i32>, b: Wrapping<i32>) -> bool {
                a == b
            }
            #[inline(always)]
            fn bits(self) -> Wrapping<i32> {
                Wrapping(self.0.to_bits() as i32)
            }
            #[inline(always)]
            fn from_bits(bits: Wrapping<i32>) -> $lane {
                $lane(f32::from_bits(bits.0 as u32))
            }
            #[inline(always)]
            fn from_int(value: Wrapping<i32>) -> $lane {
                $lane(value.0 as f32)
            }
            #[inline(always)]
            fn nearest_int(self) -> ($lane, Wrapping<i32>) {
                // A cast to i32 saturates and keeps loops from vectorising; the low bits of the sum
                // are the integer.
                const MAGIC: f32 = 12_582_912.0;
                let sum = self.0 + MAGIC;
                ($lane(sum - MAGIC), Wrapping(sum.to_bits() as i32) - Wrapping(MAGIC.to_bits() as i32))
            }
            #[inline(always)]
            fn special(self, bits: u32) -> $lane {
                $lane(f32::from_bits(bits))
            }
            #[inline(always)]
            fn mul_add(self, factor: $lane, term: $lane) -> $lane {
                let product_sum: fn(f32, f32, f32) -> f32 = $mul_add;
                $lane(product_sum(self.0, factor.0, term.0))
            }
            #[inline(always)]
            fn minus_product(self, a: $lane, b: $lane) -> $lane {
                a.mul_add(-b, self)
            }
            #[inline(always)]
            fn quarter_turns(self) -> ($lane, Wrapping<i32>) {
                let (rest, turns) = double::quarter_turns(f64::from(self.0));
                ($lane(rest as f32), Wrapping(turns))
            }
        }
    };
    (@native $lane:ident) => {
        native_rounding!($lane);
    };
    (@added $lane:ident) => {
        added_rounding!($lane, 8_388_608.0);
    };
    (@through $lane:ident, $($name:ident),*) => {
        $(
            #[inline(always)]
            fn $name(self) -> $lane {
                math::$name(self)
            }
        )*
    };
}

single!(F32, added, |a, b, c| a * b + c);
single!(F32Fma, native, f32::mul_add);

operators!(F64, f64);
impl Real for F64 {
    plain_methods!(F64, f64);
    native_rounding!(F64);
    #[inline(always)]
    fn exp(self) -> F64 {
        F64(self.0.exp())
    }
    #[inline(always)]
    fn expm1(self) -> F64 {
        F64(self.0.exp_m1())
    }
    #[inline(always)]
    fn log(self) -> F64 {
        F64(self.0.ln())
    }
    #[inline(always)]
    fn log1p(self) -> F64 {
        F64(self.0.ln_1p())
    }
    #[inline(always)]
    fn sin(self) -> F64 {
        F64(self.0.sin())
    }
    #[inline(always)]
    fn cos(self) -> F64 {
        F64(self.0.cos())
    }
    #[inline(always)]
    fn tanh(self) -> F64 {
        F64(self.0.tanh())
    }
    #[inline(always)]
    fn erf(self) -> F64 {
        F64(double::erf(self.0))
    }
    #[inline(always)]
    fn pow(self, exponent: F64) -> F64 {
        F64(self.0.powf(exponent.0))
    }
}
