//! Element types, their promotion table, and the `dispatch!` macros that turn a `DType` into a Rust type.

use crate::error::{Error, Result};
use half::{bf16, f16};
use std::fmt;

/// The type of a tensor's elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum DType {
    /// `bool`, one byte, 0 or 1.
    Bool,
    /// Unsigned 8-bit integer.
    U8,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// IEEE half precision.
    F16,
    /// bfloat16: float32's range, 8 bits of precision.
    BF16,
    /// IEEE single precision, the default.
    F32,
    /// IEEE double precision.
    F64,
}

/// The class of a dtype, in promotion order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Category {
    /// Truth values.
    Bool,
    /// Integers.
    Int,
    /// Floating point numbers.
    Float,
}

impl DType {
    /// Every dtype, in promotion order within its category.
    pub const ALL: [DType; 8] =
        [DType::Bool, DType::U8, DType::I32, DType::I64, DType::F16, DType::BF16, DType::F32, DType::F64];

    /// Bytes per element.
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::U8 => 1,
            DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::F32 => 4,
            DType::I64 | DType::F64 => 8,
        }
    }

    /// The public name: `float32`, `int64`, ...
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "uint8",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::F32 => "float32",
            DType::F64 => "float64",
        }
    }

    /// The dtype of a public name; common aliases are understood.
    pub fn from_name(name: &str) -> Option<DType> {
        Some(match name {
            "bool" => DType::Bool,
            "uint8" => DType::U8,
            "int32" | "int" => DType::I32,
            "int64" | "long" => DType::I64,
            "float16" | "half" => DType::F16,
            "bfloat16" => DType::BF16,
            "float32" | "float" => DType::F32,
            "float64" | "double" => DType::F64,
            _ => return None,
        })
    }

    /// Bool, Int or Float.
    pub const fn category(self) -> Category {
        match self {
            DType::Bool => Category::Bool,
            DType::U8 | DType::I32 | DType::I64 => Category::Int,
            _ => Category::Float,
        }
    }

    /// Whether this is a floating point type, the only kind that has derivatives.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
    }

    /// The smallest type that both convert to, as in PyTorch: float16 with bfloat16 gives float32,
    /// an integer with a float gives the float.
    pub fn promote(self, other: DType) -> DType {
        use DType::*;
        if self == other {
            return self;
        }
        match (self.category(), other.category()) {
            (a, b) if a < b => other,
            (a, b) if a > b => self,
            _ => match (self, other) {
                (F16, BF16) | (BF16, F16) => F32,
                (a, b) => a.max(b),
            },
        }
    }

    /// Raises unless an integer that a user wrote has this value in an integer dtype too.
    #[inline]
    pub fn check_fits(self, value: i64) -> Result<()> {
        let (low, high) = match self {
            DType::U8 => (0, u8::MAX as i64),
            DType::I32 => (i32::MIN as i64, i32::MAX as i64),
            _ => return Ok(()),
        };
        if (low..=high).contains(&value) {
            return Ok(());
        }
        Err(Error::value(format!(
            "{value} does not fit into {self}, which holds {low} to {high}; use a wider dtype, or convert the tensor first"
        )))
    }

    /// The type in which kernels compute and accumulate: halves widen to float32.
    pub const fn compute(self) -> DType {
        match self {
            DType::F16 | DType::BF16 => DType::F32,
            other => other,
        }
    }

    /// The float type of an operation that is defined on floats only, such as `exp`.
    pub const fn to_float(self) -> DType {
        if self.is_float() { self } else { DType::F32 }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A Rust type that is stored in tensors.
pub trait Element: Copy + Send + Sync + PartialOrd + 'static {
    /// Its dtype.
    const DTYPE: DType;
    /// Conversion through `f64`, as `as` does (saturating to integers); exact for every value but large
    /// `i64`.
    fn to_f64(self) -> f64;
    /// The inverse of [`Element::to_f64`], rounding to nearest.
    fn from_f64(value: f64) -> Self;
    /// Conversion to `i64`, truncating toward zero.
    fn to_i64(self) -> i64;
    /// Conversion from `i64`, wrapping for narrower integers.
    fn from_i64(value: i64) -> Self;
}

macro_rules! element {
    ($($t:ty, $dtype:ident, |$x:ident| $to:expr, |$v:ident| $from:expr, $to_i:expr, |$i:ident| $from_i:expr;)*) => {
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
        match $dtype {
            $crate::dtype::DType::Bool => {
                type $t = bool;
                $body
            }
            $crate::dtype::DType::U8 => {
                type $t = u8;
                $body
            }
            $crate::dtype::DType::I32 => {
                type $t = i32;
                $body
            }
            $crate::dtype::DType::I64 => {
                type $t = i64;
                $body
            }
            $crate::dtype::DType::F16 => {
                type $t = half::f16;
                $body
            }
            $crate::dtype::DType::BF16 => {
                type $t = half::bf16;
                $body
            }
            $crate::dtype::DType::F32 => {
                type $t = f32;
                $body
            }
            $crate::dtype::DType::F64 => {
                type $t = f64;
                $body
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::DType::*;

    #[test]
    fn promotion_is_commutative_and_follows_pytorch() {
        for a in super::DType::ALL {
            for b in super::DType::ALL {
                assert_eq!(a.promote(b), b.promote(a));
            }
        }
        assert_eq!(F16.promote(BF16), F32);
        assert_eq!(I64.promote(F16), F16);
        assert_eq!(U8.promote(I32), I32);
        assert_eq!(Bool.promote(U8), U8);
    }
}
