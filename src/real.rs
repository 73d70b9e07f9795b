//! `Real`: the number type that every elementwise rule is generic over.
//!
//! A rule such as `g * (1.0 - y * y)` is written once and read three ways:
//! * with [`crate::cpu::lane::F32`] or `F64` it is the body of a CPU loop,
//! * with [`crate::ops::sym::Sym`] it is a sequence of recorded tensor operations,
//! * with `gpu::wgsl::Expr` it is the text of a WGSL shader body.
//!
//! Read next: `src/ops/unary.rs`, the table of rules.

use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};

/// A truth value that goes with a [`Real`]: the result of a comparison.
pub trait Truth: Copy + BitAnd<Output = Self> + BitOr<Output = Self> + Not<Output = Self> {}
impl<M: Copy + BitAnd<Output = M> + BitOr<Output = M> + Not<Output = M>> Truth for M {}

/// A real number, be it a lane of a CPU loop, a recorded tensor or a WGSL expression.
///
/// Comparisons with NaN are false (`ne` is true). `select` never evaluates lazily: both sides are computed.
pub trait Real:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + Add<f64, Output = Self>
    + Sub<f64, Output = Self>
    + Mul<f64, Output = Self>
    + Div<f64, Output = Self>
{
    /// The result of a comparison.
    type Mask: Truth;
    /// The constant `value`.
    fn lit(value: f64) -> Self;
    /// `yes` where `mask` holds, `no` elsewhere.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;
    /// `self < other`.
    fn lt(self, other: Self) -> Self::Mask;
    /// `self <= other`.
    fn le(self, other: Self) -> Self::Mask;
    /// `self == other`.
    fn eq(self, other: Self) -> Self::Mask;
    /// `self != other`; true where either is NaN.
    fn ne(self, other: Self) -> Self::Mask;
    /// `self > other`.
    fn gt(self, other: Self) -> Self::Mask {
        other.lt(self)
    }
    /// `self >= other`.
    fn ge(self, other: Self) -> Self::Mask {
        other.le(self)
    }
    /// Absolute value.
    fn abs(self) -> Self;
    /// Largest integer not above `self`.
    fn floor(self) -> Self;
    /// Nearest integer, ties to even.
    fn round(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Natural exponential.
    fn exp(self) -> Self;
    /// `exp(self) - 1`, accurate near 0.
    fn expm1(self) -> Self;
    /// Natural logarithm.
    fn log(self) -> Self;
    /// `log(1 + self)`, accurate near 0.
    fn log1p(self) -> Self;
    /// Sine.
    fn sin(self) -> Self;
    /// Cosine.
    fn cos(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// Error function.
    fn erf(self) -> Self;
    /// `self` to the power `exponent`, as C's `pow`.
    fn pow(self, exponent: Self) -> Self;
}

/// The bounds under which a rule may be written as plain arithmetic, literals on either side included:
/// `rule!(fn name(g, x) { g * (1.0 - x) })` makes a function generic over `R: Real`.
#[macro_export]
macro_rules! rule {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident),*) $body:expr) => {
        $(#[$meta])*
        #[inline(always)]
        #[allow(unused_variables, clippy::too_many_arguments)]
        $vis fn $name<R: $crate::real::Real>($($arg: R),*) -> R
        where
            f64: std::ops::Add<R, Output = R>
                + std::ops::Sub<R, Output = R>
                + std::ops::Mul<R, Output = R>
                + std::ops::Div<R, Output = R>,
        {
            $body
        }
    };
}
