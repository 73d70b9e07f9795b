//! Element types and their promotion table. Kernels that compute have loops only for the types of
//! [`DType::compute`]; kernels that move elements depend on the element size alone.
//! Read next: `src/array/dtype/element.rs`, the Rust types behind them.

use crate::array::complex::Complex;
use crate::error::{Error, Result};
use half::{bf16, f16};
use std::fmt;

mod element;

pub use element::{Element, Truth};

/// Defines `DType` from a list in promotion order within each category. A row: Rust element type, public
/// name, category, and the type in which kernels compute.
macro_rules! dtypes {
    ($(
        $(#[doc = $doc:literal])*
        $variant:ident $element:ty, $name:literal, $category:ident, $compute:ident;
    )*) => {
        /// The type of a tensor's elements.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum DType {
            $($(#[doc = $doc])* $variant,)*
        }

        impl DType {
            /// Every dtype, in promotion order within its category.
            pub const ALL: [DType; [$(DType::$variant as u8),*].len()] = [$(DType::$variant),*];

            /// Bytes per element.
            pub const fn size(self) -> usize {
                match self {
                    $(DType::$variant => size_of::<$element>(),)*
                }
            }

            /// Alignment of an element in memory, in bytes.
            pub const fn align(self) -> usize {
                match self {
                    $(DType::$variant => align_of::<$element>(),)*
                }
            }

            /// The public name: `float32`, `int64`, ...
            pub const fn name(self) -> &'static str {
                match self {
                    $(DType::$variant => $name,)*
                }
            }

            /// Bool, Int, Float or Complex.
            pub const fn category(self) -> Category {
                match self {
                    $(DType::$variant => Category::$category,)*
                }
            }

            /// The type in which kernels compute and accumulate. Halves widen to float32, narrow integers to
            /// int32, uint32 to int64; integer results wrapped back equal the narrow type's own arithmetic.
            pub const fn compute(self) -> DType {
                match self {
                    $(DType::$variant => DType::$compute,)*
                }
            }
        }
    };
}

dtypes! {
    /// `bool`, one byte, 0 or 1.
    Bool bool, "bool", Bool, Bool;
    /// Unsigned 8-bit integer.
    U8 u8, "uint8", Int, I32;
    /// Signed 8-bit integer.
    I8 i8, "int8", Int, I32;
    /// Unsigned 16-bit integer.
    U16 u16, "uint16", Int, I32;
    /// Signed 16-bit integer.
    I16 i16, "int16", Int, I32;
    /// Unsigned 32-bit integer.
    U32 u32, "uint32", Int, I64;
    /// Signed 32-bit integer.
    I32 i32, "int32", Int, I32;
    /// Unsigned 64-bit integer.
    U64 u64, "uint64", Int, U64;
    /// Signed 64-bit integer.
    I64 i64, "int64", Int, I64;
    /// IEEE half precision.
    F16 f16, "float16", Float, F32;
    /// bfloat16: float32's range, 8 bits of precision.
    BF16 bf16, "bfloat16", Float, F32;
    /// IEEE single precision, the default.
    F32 f32, "float32", Float, F32;
    /// IEEE double precision.
    F64 f64, "float64", Float, F64;
    /// A pair of float32, real and imaginary part.
    C64 Complex<f32>, "complex64", Complex, C64;
    /// A pair of float64.
    C128 Complex<f64>, "complex128", Complex, C128;
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
    /// Complex numbers.
    Complex,
}

impl DType {
    /// Returns the dtype of a public name or of a common alias such as `half`.
    pub fn from_name(name: &str) -> Option<DType> {
        let name = match name {
            "short" => "int16",
            "int" => "int32",
            "long" => "int64",
            "half" => "float16",
            "float" => "float32",
            "double" => "float64",
            "cfloat" => "complex64",
            "cdouble" => "complex128",
            other => other,
        };
        DType::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// Returns all names for messages: `bool, uint8, ...`.
    pub fn names() -> String {
        DType::ALL.map(DType::name).join(", ")
    }

    /// Whether this is a real floating point type.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
    }

    /// Whether this is float16 or bfloat16, which compute in float32.
    #[inline(always)]
    pub const fn is_half(self) -> bool {
        matches!(self, DType::F16 | DType::BF16)
    }

    /// The result dtype of an elementwise rule: the common dtype, or the half dtype where float32 (in which
    /// halves compute) meets a half. `None` for any other mix and for no operands.
    pub fn of_rule(mut operands: impl Iterator<Item = DType>) -> Option<DType> {
        let first = operands.next()?;
        operands.try_fold(first, |found, next| match (found, next) {
            (x, y) if x == y => Some(x),
            (half, DType::F32) | (DType::F32, half) if half.is_half() => Some(half),
            _ => None,
        })
    }

    /// Whether this is a complex type.
    #[inline(always)]
    pub const fn is_complex(self) -> bool {
        self as u8 >= DType::C64 as u8
    }

    /// Whether this type has derivatives: floats and complex types.
    #[inline(always)]
    pub const fn is_differentiable(self) -> bool {
        self as u8 >= DType::F16 as u8
    }

    /// The type of a complex number's parts; any other type is returned unchanged.
    pub const fn real(self) -> DType {
        match self {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            other => other,
        }
    }

    /// The complex type whose parts hold this type: complex128 for float64, complex64 for the others.
    pub const fn complex(self) -> DType {
        match self {
            DType::F64 | DType::C128 => DType::C128,
            _ => DType::C64,
        }
    }

    /// Whether this is an integer type.
    pub const fn is_integer(self) -> bool {
        matches!(self.category(), Category::Int)
    }

    /// Whether this is an unsigned integer type.
    pub const fn is_unsigned(self) -> bool {
        matches!(self, DType::U8 | DType::U16 | DType::U32 | DType::U64)
    }

    /// The smallest type that both convert to. As in PyTorch, float16 with bfloat16 gives float32, and an
    /// integer with a float gives the float. As in NumPy, a signed with an unsigned integer gives the
    /// smallest signed type that holds both, float64 where none does.
    pub fn promote(self, other: DType) -> DType {
        use DType::*;
        if self == other {
            return self;
        }
        match (self.category(), other.category()) {
            _ if self.is_complex() || other.is_complex() => self.complex().max(other.complex()),
            (a, b) if a < b => other,
            (a, b) if a > b => self,
            _ => match (self, other) {
                (F16, BF16) | (BF16, F16) => F32,
                (a, b) if a.is_unsigned() && !b.is_unsigned() => signed_for(a, b),
                (a, b) if b.is_unsigned() && !a.is_unsigned() => signed_for(b, a),
                (a, b) if a.size() > b.size() => a,
                (_, b) => b,
            },
        }
    }

    /// The type in which sums accumulate before rounding: float32 for halves, otherwise the type itself.
    pub const fn accumulator(self) -> DType {
        if self.is_float() { self.compute() } else { self }
    }

    /// The type (int32 or int64) in which wrapping sums and products of integers are computed: the low bits
    /// equal those of this type's own arithmetic. Other types are returned unchanged.
    pub const fn modular(self) -> DType {
        match self {
            DType::U8 | DType::I8 | DType::U16 | DType::I16 | DType::U32 => DType::I32,
            DType::U64 => DType::I64,
            other => other,
        }
    }

    /// The smallest and largest value of an integer type; 0 and 1 for bool, the range of int64 for floats.
    pub const fn range(self) -> (i128, i128) {
        let bits = self.size() * 8;
        match self.category() {
            Category::Bool => (0, 1),
            Category::Int if self.is_unsigned() => (0, (1 << bits) - 1),
            Category::Int => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            Category::Float | Category::Complex => (i64::MIN as i128, i64::MAX as i128),
        }
    }

    /// Raises if this is an integer dtype that cannot represent `value`, an integer given by the user.
    #[inline]
    pub fn check_fits(self, value: impl Into<i128>) -> Result<()> {
        let (value, (low, high)) = (value.into(), self.range());
        if !self.is_integer() || (low..=high).contains(&value) {
            return Ok(());
        }
        Err(self.misfit(&value))
    }

    /// The number of this type next to `value`, where it is a half; any other type keeps the digits.
    pub fn nearest_half(self, value: f64) -> f64 {
        match self {
            DType::F16 => f16::from_f64(value).to_f64(),
            DType::BF16 => bf16::from_f64(value).to_f64(),
            _ => value,
        }
    }

    /// [`DType::check_fits`] for the integer part of `value`, a float given by the user.
    #[inline]
    pub fn check_fits_float(self, value: f64) -> Result<()> {
        let (low, high) = self.range();
        if !self.is_integer() || (value.is_finite() && (low..=high).contains(&(value as i128))) {
            return Ok(());
        }
        if value.is_finite() {
            return Err(self.misfit(&value));
        }
        Err(Error::value(format!(
            "{value} does not fit into {self}; no integer does, so use a floating point dtype"
        )))
    }

    #[cold]
    fn misfit(self, value: &dyn fmt::Display) -> Error {
        let (low, high) = self.range();
        Error::value(format!(
            "{value} does not fit into {self}, which holds {low} to {high}; use a wider dtype, or convert \
             the tensor first"
        ))
    }

    /// The result type of an operation not defined on integers, such as `exp`: that of floats for bool and
    /// integers.
    #[inline]
    pub fn to_float(self) -> DType {
        if self.is_differentiable() { self } else { crate::array::defaults::float() }
    }
}

/// The smallest signed type that holds both; float64 if there is none.
fn signed_for(unsigned: DType, signed: DType) -> DType {
    match unsigned.size() {
        size if size < signed.size() => signed,
        1 => DType::I16,
        2 => DType::I32,
        4 => DType::I64,
        _ => DType::F64,
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::DType::*;

    #[test]
    fn promotion_is_commutative_and_follows_pytorch_and_numpy() {
        for a in super::DType::ALL {
            for b in super::DType::ALL {
                assert_eq!(a.promote(b), b.promote(a));
            }
        }
        let table = [
            (F16, BF16, F32),
            (I64, F16, F16),
            (U8, I32, I32),
            (Bool, U8, U8),
            (C64, F64, C128),
            (C64, I64, C64),
            (F16, C64, C64),
            // Signed with unsigned integers.
            (U8, I8, I16),
            (U8, I16, I16),
            (U16, I8, I32),
            (U16, I16, I32),
            (U32, I32, I64),
            (U32, I8, I64),
            (U16, I64, I64),
            (U64, I8, F64),
            (U64, I64, F64),
            (U64, U8, U64),
            (I8, I16, I16),
            (U32, F16, F16),
        ];
        for (a, b, expected) in table {
            assert_eq!(a.promote(b), expected, "{a} with {b}");
        }
    }

    #[test]
    fn ranges_are_those_of_the_types() {
        assert_eq!(U64.range(), (0, u64::MAX.into()));
        assert_eq!(I64.range(), (i64::MIN.into(), i64::MAX.into()));
        assert_eq!(I8.range(), (-128, 127));
        assert!(U64.check_fits(u64::MAX).is_ok() && U64.check_fits(-1i64).is_err());
    }
}
