//! Rust element types, and the `dispatch!` macros that map a `DType` to its Rust type.

use super::DType;
use crate::array::complex::Complex;
use half::{bf16, f16};

/// A Rust type that a tensor can store.
pub trait Element: Copy + Send + Sync + PartialOrd + 'static {
    /// The dtype of this type.
    const DTYPE: DType;
    /// Converts to `f64`; exact for every value but large 64-bit integers. Drops an imaginary part.
    fn to_f64(self) -> f64;
    /// Converts from `f64`. Floats round to nearest. Integers truncate with `as`: `i32`, `i64` and
    /// non-negative `u64` saturate, the others wrap from `i64`.
    fn from_f64(value: f64) -> Self;
    /// Converts to `i64`, truncating toward zero; `u64` wraps.
    fn to_i64(self) -> i64;
    /// Converts from `i64`; narrower integers wrap.
    fn from_i64(value: i64) -> Self;
}

/// A truth value in memory: every byte but 0 is true. Memory that is shared with another library may hold any
/// byte at any time, which a Rust `bool` must not.
#[derive(Clone, Copy, Default, Debug)]
#[repr(transparent)]
pub struct Truth(u8);

impl Truth {
    /// The value.
    #[inline(always)]
    pub fn is_true(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Truth {
    #[inline(always)]
    fn from(value: bool) -> Truth {
        Truth(u8::from(value))
    }
}

impl From<Truth> for i64 {
    #[inline(always)]
    fn from(truth: Truth) -> i64 {
        i64::from(truth.is_true())
    }
}

impl PartialEq for Truth {
    #[inline(always)]
    fn eq(&self, other: &Truth) -> bool {
        self.is_true() == other.is_true()
    }
}

impl PartialEq<bool> for Truth {
    #[inline(always)]
    fn eq(&self, other: &bool) -> bool {
        self.is_true() == *other
    }
}

impl PartialOrd for Truth {
    #[inline(always)]
    fn partial_cmp(&self, other: &Truth) -> Option<std::cmp::Ordering> {
        self.is_true().partial_cmp(&other.is_true())
    }
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
    Truth, Bool, |x| f64::from(x.is_true()), |v| (v != 0.0).into(), i64::from(x.is_true()),
        |i| (i != 0).into();
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
    Complex<f32>, C64, |x| x.re as f64, |v| Complex { re: v as f32, im: 0.0 }, x.re as i64,
        |i| Complex { re: i as f32, im: 0.0 };
    Complex<f64>, C128, |x| x.re, |v| Complex { re: v, im: 0.0 }, x.re as i64,
        |i| Complex { re: i as f64, im: 0.0 };
}

/// Runs an expression with `$t` bound to the Rust type of `$dtype`, for every dtype.
#[macro_export]
macro_rules! dispatch {
    ($dtype:expr, $t:ident => $body:expr) => {{
        use $crate::array::dtype::DType;
        $crate::dispatch!(@ $dtype, $t, $body;
            DType::Bool => $crate::array::dtype::Truth,
            DType::U8 => u8, DType::I8 => i8, DType::U16 => u16, DType::I16 => i16,
            DType::U32 => u32, DType::I32 => i32, DType::U64 => u64, DType::I64 => i64,
            DType::F16 => half::f16, DType::BF16 => half::bf16, DType::F32 => f32, DType::F64 => f64,
            DType::C64 => $crate::array::complex::Complex<f32>,
            DType::C128 => $crate::array::complex::Complex<f64>)
    }};
    (@ $value:expr, $t:ident, $body:expr; $($case:pat => $element:ty),* $(; $other:ident => $else:expr)?) => {
        match $value {
            $($case => {
                type $t = $element;
                $body
            })*
            $($other => $else,)?
        }
    };
}

/// [`dispatch!`] over the compute types, for operands already converted to theirs; see
/// [`DType::compute`](crate::array::dtype::DType::compute).
#[macro_export]
macro_rules! dispatch_computed {
    ($dtype:expr, $t:ident => $body:expr) => {{
        use $crate::array::dtype::DType;
        $crate::dispatch!(@ $dtype.compute(), $t, $body;
            DType::Bool => $crate::array::dtype::Truth,
            DType::I64 => i64, DType::U64 => u64, DType::F32 => f32, DType::F64 => f64,
            DType::I32 => i32;
            other => {
                return Err($crate::error::Error::dtype(format!("internal: a kernel got dtype {other}")));
            })
    }};
}

/// Runs an expression with `$t` bound to an integer type of `$size` bytes (`[u64; 2]` for 16), for kernels
/// that move elements without reading their values.
#[macro_export]
macro_rules! dispatch_width {
    ($size:expr, $t:ident => $body:expr) => {
        $crate::dispatch!(@ $size, $t, $body; 1 => u8, 2 => u16, 4 => u32, 8 => u64, _ => [u64; 2])
    };
}
