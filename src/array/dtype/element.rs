//! Rust element types, and the `dispatch!` macros that map a `DType` to its Rust type.

use super::DType;
use half::{bf16, f16};

/// A Rust type that a tensor can store.
pub trait Element: Copy + Send + Sync + PartialOrd + 'static {
    /// The dtype of this type.
    const DTYPE: DType;
    /// Converts to `f64`; exact for every value but large 64-bit integers.
    fn to_f64(self) -> f64;
    /// Converts from `f64`. Floats round to nearest. Integers truncate with `as`: `i32`, `i64` and
    /// non-negative `u64` saturate, the others wrap from `i64`.
    fn from_f64(value: f64) -> Self;
    /// Converts to `i64`, truncating toward zero; `u64` wraps.
    fn to_i64(self) -> i64;
    /// Converts from `i64`; narrower integers wrap.
    fn from_i64(value: i64) -> Self;
}

macro_rules! element {
    ($(
        $t:ty, $dtype:ident, |$x:ident| $to:expr, |$v:ident| $from:expr, $to_i:expr, |$i:ident| $from_i:expr;
    )*) => {
        $(impl Element for $t {
            const DTYPE: DType = DType::$dtype;
            #[inline(always)]
            fn to_f64(self) -> f64 { let $x = self; $to }
            #[inline(always)]
            fn from_f64($v: f64) -> Self { $from }
            #[inline(always)]
            fn to_i64(self) -> i64 { let $x = self; $to_i }
            #[inline(always)]
            fn from_i64($i: i64) -> Self { $from_i }
        })*
    };
}

element! {
    bool, Bool, |x| x as u8 as f64, |v| v != 0.0, x as i64, |i| i != 0;
    u8, U8, |x| x as f64, |v| v as i64 as u8, x as i64, |i| i as u8;
    i8, I8, |x| x as f64, |v| v as i64 as i8, x as i64, |i| i as i8;
    u16, U16, |x| x as f64, |v| v as i64 as u16, x as i64, |i| i as u16;
    i16, I16, |x| x as f64, |v| v as i64 as i16, x as i64, |i| i as i16;
    u32, U32, |x| x as f64, |v| v as i64 as u32, x as i64, |i| i as u32;
    u64, U64, |x| x as f64, |v| if v < 0.0 { v as i64 as u64 } else { v as u64 }, x as i64, |i| i as u64;
    i32, I32, |x| x as f64, |v| v as i32, x as i64, |i| i as i32;
    i64, I64, |x| x as f64, |v| v as i64, x, |i| i;
    f16, F16, |x| x.to_f64(), |v| f16::from_f64(v), x.to_f32() as i64, |i| f16::from_f64(i as f64);
    bf16, BF16, |x| x.to_f64(), |v| bf16::from_f64(v), x.to_f32() as i64, |i| bf16::from_f64(i as f64);
    f32, F32, |x| x as f64, |v| v as f32, x as i64, |i| i as f32;
    f64, F64, |x| x, |v| v, x as i64, |i| i as f64;
}

/// Runs an expression with `$t` bound to the Rust type of `$dtype`, for every dtype.
#[macro_export]
macro_rules! dispatch {
    ($dtype:expr, $t:ident => $body:expr) => {
        $crate::dispatch!(@$dtype, $t, $body;
            Bool bool, U8 u8, I8 i8, U16 u16, I16 i16, U32 u32, I32 i32, U64 u64, I64 i64,
            F16 half::f16, BF16 half::bf16, F32 f32, F64 f64,
            C64 $crate::array::complex::Complex<f32>, C128 $crate::array::complex::Complex<f64>)
    };
    (@$dtype:expr, $t:ident, $body:expr; $($variant:ident $element:ty),*) => {
        match $dtype {
            $($crate::array::dtype::DType::$variant => {
                type $t = $element;
                $body
            })*
        }
    };
}

/// [`dispatch!`] over the compute types, for operands already converted to theirs; see
/// [`DType::compute`](crate::array::dtype::DType::compute).
#[macro_export]
macro_rules! dispatch_computed {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype.compute() {
            $crate::array::dtype::DType::Bool => {
                type $t = bool;
                $body
            }
            $crate::array::dtype::DType::I64 => {
                type $t = i64;
                $body
            }
            $crate::array::dtype::DType::U64 => {
                type $t = u64;
                $body
            }
            $crate::array::dtype::DType::F32 => {
                type $t = f32;
                $body
            }
            $crate::array::dtype::DType::F64 => {
                type $t = f64;
                $body
            }
            $crate::array::dtype::DType::I32 => {
                type $t = i32;
                $body
            }
            other => {
                return Err($crate::error::Error::dtype(format!("internal: a kernel got dtype {other}")));
            }
        }
    };
}

/// Runs an expression with `$t` bound to an integer type of `$size` bytes (`[u64; 2]` for 16), for kernels
/// that move elements without reading their values.
#[macro_export]
macro_rules! dispatch_width {
    ($size:expr, $t:ident => $body:expr) => {
        match $size {
            1 => {
                type $t = u8;
                $body
            }
            2 => {
                type $t = u16;
                $body
            }
            4 => {
                type $t = u32;
                $body
            }
            8 => {
                type $t = u64;
                $body
            }
            _ => {
                type $t = [u64; 2];
                $body
            }
        }
    };
}
