//! Counts of nonzero elements, read in memory order and not copied.

use super::fold::Sum;
use crate::array::complex::Complex;
use crate::array::shape::Axes;
use crate::cpu::pointwise::drive::{LoopFn, kernel};
use crate::cpu::prelude::*;
use crate::cpu::reduce::converted;

/// Defines elements that count as 1 or 0 in a sum: whether each is nonzero, as NaN is.
macro_rules! truths {
    ($($name:ident($t:ty) = |$x:ident| $holds:expr;)*) => {$(
        kernel! {
            fn $name(; x: $t; out: i64) by run_plain {
                for (y, &$x) in out.iter_mut().zip(x) {
                    *y = i64::from($holds);
                }
            }
        }
    )*};
}

truths! {
    width8(u8) = |x| x != 0;
    width16(u16) = |x| x != 0;
    width32(u32) = |x| x != 0;
    width64(u64) = |x| x != 0;
    // All bits but the sign.
    half(u16) = |x| x << 1 != 0;
    single(f32) = |x| x != 0.0;
    double(f64) = |x| x != 0.0;
    single_pair(Complex<f32>) = |x| (x.re != 0.0) | (x.im != 0.0);
    double_pair(Complex<f64>) = |x| (x.re != 0.0) | (x.im != 0.0);
}

/// Returns the number of nonzero elements over `axes`, int64.
pub fn count_nonzero(x: &Array, axes: Axes, keepdim: bool) -> Result<Array> {
    let kernel: LoopFn = match x.dtype() {
        DType::Bool | DType::U8 | DType::I8 => width8,
        DType::U16 | DType::I16 => width16,
        DType::U32 | DType::I32 => width32,
        DType::U64 | DType::I64 => width64,
        DType::F16 | DType::BF16 => half,
        DType::F32 => single,
        DType::F64 => double,
        DType::C64 => single_pair,
        DType::C128 => double_pair,
    };
    converted::<i64, Sum>(x, kernel, axes, keepdim)
}
