//! How a reduction combines two numbers: sum, product, largest, smallest.
//!
//! A fold works at two widths. Blocks of at most [`Fold::BLOCK`] elements fold in their own type, in vector
//! lanes; blocks are combined in a wider one, so the error of a sum does not grow with its length.

use super::registers;
use crate::cpu::run::isa::{PlainBody, run_plain, run_widest};

/// A way to combine many `T` into one.
pub trait Fold<T: Copy>: Send + Sync + 'static {
    /// The type in which blocks are combined.
    type Wide: Copy + Send + Sync;
    /// Number of elements that are folded in their own type before they are combined in a wider one.
    const BLOCK: usize = if size_of::<Self::Wide>() > size_of::<T>() { 1024 } else { usize::MAX };
    /// Whether it runs so rarely that its loops are compiled once, not for each instruction set.
    const IS_RARE: bool = false;
    /// Whether registers of 512 bits pay for a third copy of its loops.
    const IS_WIDE: bool = false;
    /// Whether it is common: few elements are folded without a plan.
    const COMMON: bool = false;
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

/// Runs a loop over a fold, compiled for as many instruction sets as pay.
#[inline(always)]
pub fn run_fold<T: Copy, F: Fold<T>, B: PlainBody>(body: B) -> B::Output {
    match (F::IS_RARE, F::IS_WIDE) {
        (true, _) => body.run(),
        (_, true) => run_widest(body),
        _ => run_plain(body),
    }
}

/// Sum.
pub struct Sum;
/// Product.
pub struct Prod;
/// Largest; NaN if there is one.
pub struct Max;
/// Smallest; NaN if there is one.
pub struct Min;

/// Sum of `f64` whose blocks are combined like elements.
pub struct Running;

/// Implements a fold by one operation, of elements and of blocks in the wider type.
macro_rules! fold {
    (
        $fold:ident $t:ident $wide:ident, $start:expr, |$a:ident, $b:ident| $join:expr
        $(, $block:path)? $(; $($is:ident)*)?
    ) => {
        #[allow(clippy::eq_op)] // `b != b` is the NaN test that vectorises
        impl Fold<$t> for $fold {
            type Wide = $wide;
            $($(const $is: bool = true;)*)?
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
            fn widen(a: $t) -> $wide {
                a as $wide
            }
            #[inline(always)]
            fn merge($a: $wide, $b: $wide) -> $wide {
                $join
            }
            #[inline(always)]
            fn finish(a: $wide) -> $t {
                a as $t
            }
        }
    };
}

macro_rules! extremes {
    ($($t:ident $($is:ident)?;)*) => {$(
        fold!(Max $t $t, $t::MIN, |a, b| if b > a { b } else { a }; $($is)?);
        fold!(Min $t $t, $t::MAX, |a, b| if b < a { b } else { a }; $($is)?);
    )*};
}

extremes! {
    u8;
    i32;
    i64;
    u64 IS_RARE;
}
fold!(Sum i32 i32, 0, |a, b| a.wrapping_add(b); IS_WIDE);
fold!(Sum i64 i64, 0, |a, b| a.wrapping_add(b); IS_WIDE);
fold!(Prod i32 i32, 1, |a, b| a.wrapping_mul(b); IS_RARE);
fold!(Prod i64 i64, 1, |a, b| a.wrapping_mul(b));
fold!(
    Max f32 f32, f32::NEG_INFINITY, |a, b| if (b > a) | (b != b) { b } else { a }, registers::max_f32;
    COMMON
);
fold!(
    Min f32 f32, f32::INFINITY, |a, b| if (b < a) | (b != b) { b } else { a }, registers::min_f32;
    COMMON
);
fold!(
    Max f64 f64, f64::NEG_INFINITY, |a, b| if (b > a) | (b != b) { b } else { a }, registers::max_f64;
    COMMON
);
fold!(
    Min f64 f64, f64::INFINITY, |a, b| if (b < a) | (b != b) { b } else { a }, registers::min_f64;
    COMMON
);
fold!(Sum f32 f64, 0.0, |a, b| a + b, registers::sum_f32; COMMON IS_WIDE);
fold!(Prod f32 f64, 1.0, |a, b| a * b, registers::prod_f32);
fold!(Prod f64 f64, 1.0, |a, b| a * b, registers::prod_f64);
fold!(Running f64 f64, 0.0, |a, b| a + b; IS_WIDE);

/// Blocks are combined with the rounding errors of the additions in a second number (Knuth's two-sum).
impl Fold<f64> for Sum {
    type Wide = (f64, f64);
    const IS_WIDE: bool = true;
    const COMMON: bool = true;
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
