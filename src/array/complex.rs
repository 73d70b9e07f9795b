//! Complex numbers as elements: a pair of floats, the real part first. Kernels only move such pairs; complex
//! arithmetic is composed of operations on the parts. Read next: `src/ops/complex/mod.rs`.

use crate::array::dtype::{DType, Element};

/// A complex number. A pair of `f32` is moved as one 8-byte word, and aligned as one.
#[derive(Clone, Copy, PartialEq, PartialOrd, Default, Debug)]
#[repr(C, align(8))]
pub struct Complex<T> {
    /// The real part.
    pub re: T,
    /// The imaginary part.
    pub im: T,
}

macro_rules! element {
    ($($part:ty, $dtype:ident;)*) => {
        /// Conversion from a real number sets the imaginary part to 0; conversion to one drops it.
        $(impl Element for Complex<$part> {
            const DTYPE: DType = DType::$dtype;
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.re as f64
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                Complex { re: value as $part, im: 0.0 }
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                self.re as i64
            }
            #[inline(always)]
            fn from_i64(value: i64) -> Self {
                Complex { re: value as $part, im: 0.0 }
            }
        })*
    };
}

element! {
    f32, C64;
    f64, C128;
}
