//! How a reduction combines two numbers: sum, product, largest, smallest.
//!
//! A fold works at two widths. Blocks of at most [`Fold::BLOCK`] elements fold in their own type, in vector
//! lanes; blocks are combined in a wider one, so the error of a sum does not grow with its length.

use super::registers;

/// Which loops over a fold run so rarely that they are compiled once, not for each instruction set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rare {
    /// None of them.
    Never,
    /// Those whose elements are converted first.
    Converted,
    /// All of them.
    Always,
}

/// A way to combine many `T` into one.
pub trait Fold<T: Copy>: Send + Sync + 'static {
    /// The type in which blocks are combined.
    type Wide: Copy + Send + Sync;
    /// Number of elements that are folded in their own type before they are combined in a wider one.
    const BLOCK: usize = 1024;
    /// Which of its loops are compiled once.
    const RARE: Rare = Rare::Never;
    /// The result for no elements.
    const START: T;
    /// Combines two elements of a block.
    fn join(a: T, b: T) -> T;
    /// Folds at most [`Fold::BLOCK`] elements, in an order that depends on their number alone.
    #[inline(always)]
    fn block(x: &[T]) -> T {
        x.iter().fold(Self::START, |a, &b| Self::join(a, b))
    }
    /// Widens the result of a block, to be combined.
    fn widen(a: T) -> Self::Wide;
    /// Combines two blocks.
    fn merge(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// Converts the final result.
    fn finish(a: Self::Wide) -> T;
}

/// Sum.
pub struct Sum;
/// Product.
pub struct Prod;
/// Largest; NaN if there is one.
pub struct Max;
/// Smallest; NaN if there is one.
pub struct Min;

/// Implements a fold that combines blocks like elements.
macro_rules! plain {
    ($fold:ty, $t:ty, $start:expr, |$a:ident, $b:ident| $join:expr $(, $block:path)? $(; $rare:ident)?) => {
        impl Fold<$t> for $fold {
            type Wide = $t;
            $(const RARE: Rare = Rare::$rare;)?
            const BLOCK: usize = usize::MAX;
            const START: $t = $start;
            #[inline(always)]
            fn join($a: $t, $b: $t) -> $t {
                $join
            }
            $(#[inline(always)]
            fn block(x: &[$t]) -> $t {
                $block(x)
            })?
            #[inline(always)]
            fn widen(a: $t) -> $t {
                a
            }
            #[inline(always)]
            fn merge(a: $t, b: $t) -> $t {
                Self::join(a, b)
            }
            #[inline(always)]
            fn finish(a: $t) -> $t {
                a
            }
        }
    };
}

macro_rules! integers {
    ($($t:ident $arithmetic:ident $order:ident;)*) => {$(
        plain!(Sum, $t, 0, |a, b| a.wrapping_add(b); $arithmetic);
        plain!(Prod, $t, 1, |a, b| a.wrapping_mul(b); Converted);
        plain!(Max, $t, $t::MIN, |a, b| if b > a { b } else { a }; $order);
        plain!(Min, $t, $t::MAX, |a, b| if b < a { b } else { a }; $order);
    )*};
}

#[allow(clippy::eq_op)] // `b != b` is the NaN test that vectorises
mod floats {
    use super::*;
    plain!(Max, f32, f32::NEG_INFINITY, |a, b| if (b > a) | (b != b) { b } else { a }, registers::max_f32);
    plain!(Min, f32, f32::INFINITY, |a, b| if (b < a) | (b != b) { b } else { a }, registers::min_f32);
    plain!(Max, f64, f64::NEG_INFINITY, |a, b| if (b > a) | (b != b) { b } else { a }, registers::max_f64);
    plain!(Min, f64, f64::INFINITY, |a, b| if (b < a) | (b != b) { b } else { a }, registers::min_f64);
}

// Which loops are rare: of sums, then of extremes.
integers! {
    u8 Always Never;
    i8 Always Always;
    u16 Always Always;
    i16 Always Always;
    u32 Always Always;
    i32 Never Never;
    u64 Always Never;
    i64 Never Never;
}
plain!(Prod, f64, 1.0, |a, b| a * b, registers::prod_f64);

/// Implements a fold that combines blocks of `f32` in `f64`.
macro_rules! single {
    ($fold:ty, $start:expr, $op:tt, $block:path) => {
        impl Fold<f32> for $fold {
            type Wide = f64;
            const START: f32 = $start;
            #[inline(always)]
            fn join(a: f32, b: f32) -> f32 {
                a $op b
            }
            #[inline(always)]
            fn block(x: &[f32]) -> f32 {
                $block(x)
            }
            #[inline(always)]
            fn widen(a: f32) -> f64 {
                a as f64
            }
            #[inline(always)]
            fn merge(a: f64, b: f64) -> f64 {
                a $op b
            }
            #[inline(always)]
            fn finish(a: f64) -> f32 {
                a as f32
            }
        }
    };
}

single!(Sum, 0.0, +, registers::sum_f32);
single!(Prod, 1.0, *, registers::prod_f32);

/// Blocks are combined with the rounding errors of the additions in a second number (Knuth's two-sum).
impl Fold<f64> for Sum {
    type Wide = (f64, f64);
    const START: f64 = 0.0;
    #[inline(always)]
    fn join(a: f64, b: f64) -> f64 {
        a + b
    }
    #[inline(always)]
    fn block(x: &[f64]) -> f64 {
        registers::sum_f64(x)
    }
    #[inline(always)]
    fn widen(a: f64) -> (f64, f64) {
        (a, 0.0)
    }
    #[inline(always)]
    fn merge(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
        let sum = a.0 + b.0;
        let part = sum - a.0;
        (sum, a.1 + b.1 + ((a.0 - (sum - part)) + (b.0 - part)))
    }
    #[inline(always)]
    fn finish(a: (f64, f64)) -> f64 {
        // Infinities make the error term NaN.
        if a.1.is_nan() { a.0 } else { a.0 + a.1 }
    }
}
