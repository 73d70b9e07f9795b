//! `Real`: the number type that every elementwise rule is generic over.
//!
//! A rule such as `g * (1.0 - y * y)` is written once and compiled for
//! * lanes (`src/math/lane.rs`, `src/cpu/pointwise/vector.rs`): the body of a CPU loop,
//! * [`crate::math::terms::Term`]: its operations in order, which [`crate::math::terms::Terms::read`] repeats
//!   with other numbers: [`crate::ops::pointwise::sym::Sym`] for recorded tensor operations,
//!   `gpu::shader::wgsl::Expr` for the text of a WGSL shader body, `cpu::emit::Value` for machine code, and
//!   `Text` (`src/ops/pointwise/reading/`) for a formula in the documentation,
//! * `Count` (there too): how many floating point operations it has,
//! * [`crate::ops::pointwise::jet::Jet`] over one of these: its own derivative along a direction.
//!
//! Read next: `src/ops/pointwise/unary.rs`, the table of rules.

use crate::math::terms::{self, Terms};
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};

/// The result of comparing [`Real`]s, a truth value.
pub trait Truth: Copy + BitAnd<Output = Self> + BitOr<Output = Self> + Not<Output = Self> {}
impl<M: Copy + BitAnd<Output = M> + BitOr<Output = M> + Not<Output = M>> Truth for M {}

/// Declares the primitive functions.
macro_rules! declare {
    ($(#[doc = $doc:literal] $name:ident $row:ident,)*) => {$(
        #[doc = $doc]
        fn $name(self) -> Self;
    )*};
}

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
    // A literal may stand to the left: `1.0 - x`.
    + Implied<
        f64,
        Is: Add<Self, Output = Self>
            + Sub<Self, Output = Self>
            + Mul<Self, Output = Self>
            + Div<Self, Output = Self>,
    >
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
    #[inline(always)]
    fn gt(self, other: Self) -> Self::Mask {
        other.lt(self)
    }
    /// `self >= other`.
    #[inline(always)]
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
    crate::math::functions::primitives!(declare);
    /// `self` to the power `exponent`, as C's `pow`.
    fn pow(self, exponent: Self) -> Self;
    /// Remainder of a division by `divisor`, with the sign of `self`.
    fn fmod(self, divisor: Self) -> Self;
    /// Derivative of order `order`, a whole number, of the digamma function.
    fn polygamma(self, order: usize) -> Self;
    /// Whether a zero cotangent stays zero where the slope is not finite. Always true in kernels; recorded
    /// tensor operations ask their thread (`Modes::STRICT`).
    #[inline(always)]
    fn short_circuits() -> bool {
        true
    }
    /// Attribute `index` of a row, of this value: a parameter of the function where numbers are its text.
    #[inline(always)]
    fn attribute(_index: usize, value: f64) -> Self {
        Self::lit(value)
    }
    /// Returns `value`, which `rule!` defines as `name` of these arguments, for readings that print.
    #[inline(always)]
    fn named<const N: usize>(_name: &'static str, _arguments: [Self; N], value: Self) -> Self {
        value
    }
}

/// A way to imply a bound on another type: `trait A: Implied<f64, Is: Add<Self>>` promises `f64: Add<Self>`
/// wherever `A` is required. A `where` clause of `A` would have to be repeated there.
///
/// Where such a bound is in scope, the compiler takes every `f64 + _` for it: in a function that is generic
/// over [`Real`], arithmetic among plain numbers stands in a constant or in a function of its own.
pub trait Implied<T>: Identity<T, Is = T> {}
impl<S, T> Implied<T> for S {}

/// `Is` is `T`.
pub trait Identity<T> {
    /// `T`.
    type Is;
}
impl<S, T> Identity<T> for S {
    type Is = T;
}

/// The attributes of a row.
#[derive(Clone, Copy)]
pub struct Attributes<R>([f64; 2], std::marker::PhantomData<R>);

impl<R: Real> Attributes<R> {
    /// Attributes of these values.
    #[inline(always)]
    pub fn new(values: [f64; 2]) -> Attributes<R> {
        Attributes(values, std::marker::PhantomData)
    }
    /// The first attribute.
    #[inline(always)]
    pub fn a(self) -> R {
        R::attribute(0, self.0[0])
    }
    /// The second attribute.
    #[inline(always)]
    pub fn b(self) -> R {
        R::attribute(1, self.0[1])
    }
    /// The first attribute as a count, part of the function's identity: `Fun::counts`.
    #[inline(always)]
    pub fn count(self) -> usize {
        self.0[0] as usize
    }
}

/// An elementwise function of `N` reals: one row of a table of rules.
///
/// The kernels of every device are generic over it; `self` carries the row's attributes (a slope, a bound).
pub trait Pointwise<const N: usize>: Copy + Send + Sync {
    /// Whether its loops are compiled for the widest registers, too. Second derivatives use the second
    /// widest: they are many and long, and rarely dominate the time.
    const IS_WIDEST: bool = true;
    /// The attributes.
    fn attributes(&self) -> [f64; 2] {
        [0.0; 2]
    }
    /// The function.
    fn apply<R: Real>(&self, x: [R; N]) -> R;
    /// What it does, written down for numbers that short-circuit ([`Real::short_circuits`]) or do not.
    #[inline(never)]
    fn terms(&self, short_circuits: bool) -> Terms {
        let outer = terms::begin(N, short_circuits);
        let out = self.apply(std::array::from_fn(terms::input));
        terms::end(outer, N, out)
    }
}

/// An integer lane: two's complement, wrapping, with Python's rounding for division and remainder.
pub trait Integer: Copy + Send + Sync + Ord + 'static {
    /// Wrapping sum.
    fn add(self, other: Self) -> Self;
    /// Wrapping difference.
    fn sub(self, other: Self) -> Self;
    /// Wrapping product.
    fn mul(self, other: Self) -> Self;
    /// Floor division; 0 where the divisor is 0.
    fn floor_div(self, other: Self) -> Self;
    /// Remainder with the divisor's sign; 0 where the divisor is 0.
    fn remainder(self, other: Self) -> Self;
    /// Wrapping power; 0 for a negative exponent unless the base is 1 or -1.
    fn pow(self, exponent: Self) -> Self;
    /// Remainder with the sign of `self`; 0 where the divisor is 0.
    fn fmod(self, divisor: Self) -> Self;
    /// Bitwise and.
    fn and(self, other: Self) -> Self;
    /// Bitwise or.
    fn or(self, other: Self) -> Self;
    /// Bitwise exclusive or.
    fn xor(self, other: Self) -> Self;
    /// Left shift; 0 for a count that is negative or not below the number of bits.
    fn shl(self, count: Self) -> Self;
    /// Arithmetic right shift; for other counts only the sign is left: 0 or -1.
    fn shr(self, count: Self) -> Self;
    /// Greatest common divisor, not negative; that of 0 and 0 is 0.
    fn gcd(self, other: Self) -> Self;
    /// Absolute value; the smallest signed number stays what it is.
    fn abs(self) -> Self;
    /// -1, 0 or 1.
    fn sign(self) -> Self;
    /// The constant `value`, wrapping.
    fn lit(value: i64) -> Self;
}

/// An elementwise function of `N` integers.
pub trait PointwiseInt<const N: usize>: Copy + Send + Sync {
    /// The function.
    fn apply<I: Integer>(&self, x: [I; N]) -> I;
}

/// Defines functions that are generic over `R: Real`, with literals on either side of an operator:
/// `rule! { pub fn half(x) { 0.5 * x } }`.
#[macro_export]
macro_rules! rule {
    ($($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident),*) $body:block)*) => {$(
        $(#[$meta])*
        #[inline(always)]
        $vis fn $name<R: $crate::math::real::Real>($($arg: R),*) -> R {
            R::named(stringify!($name), [$($arg),*], $body)
        }
    )*};
}
