//! Counts of nonzero elements, read in memory order and not copied.

use super::fold::Sum;
use super::sweep::Widens;
use crate::array::complex::Complex;
use crate::array::shape::Axes;
use crate::cpu::prelude::*;
use crate::cpu::reduce::folded;

/// Defines elements that count as 1 or 0 in a sum: whether each is nonzero, as NaN is.
macro_rules! truths {
    ($($name:ident($t:ty) = |$x:ident| $holds:expr;)*) => {
        $(
            #[derive(Clone, Copy)]
            #[repr(transparent)]
            struct $name($t);

            impl Widens<i64> for $name {
                const IS_RARE: bool = true;
                #[inline(always)]
                fn to(self) -> i64 {
                    let $x = self.0;
                    i64::from($holds)
                }
            }
        )*
    };
}

truths! {
    Width8(u8) = |x| x != 0;
    Width16(u16) = |x| x != 0;
    Width32(u32) = |x| x != 0;
    Width64(u64) = |x| x != 0;
    // All bits but the sign.
    Half(u16) = |x| x << 1 != 0;
    Single(f32) = |x| x != 0.0;
    Double(f64) = |x| x != 0.0;
    SinglePair(Complex<f32>) = |x| (x.re != 0.0) | (x.im != 0.0);
    DoublePair(Complex<f64>) = |x| (x.re != 0.0) | (x.im != 0.0);
}

/// Returns the number of nonzero elements over `axes`, int64.
pub fn count_nonzero(x: &Array, axes: Axes, keepdim: bool) -> Result<Array> {
    dispatch!(@ x.dtype(), S, folded::<S, i64, Sum>(x, axes, keepdim);
        DType::Bool | DType::U8 | DType::I8 => Width8, DType::U16 | DType::I16 => Width16,
        DType::U32 | DType::I32 => Width32, DType::U64 | DType::I64 => Width64,
        DType::F16 | DType::BF16 => Half, DType::F32 => Single, DType::F64 => Double,
        DType::C64 => SinglePair, DType::C128 => DoublePair)
}
