//! The list of primitive functions, and the formula that each kind of lane uses for them.
//!
//! Rules call functions as methods of [`Real`](crate::math::real::Real). Only the list here names those of
//! one number: it declares the methods, and dispatches CPU lanes to the formulas of their precision, GPUs to
//! the WGSL library, and recorded rules to the table row of the function. A new function needs a line here,
//! its formula and its row in `src/ops/pointwise/unary.rs`.

use super::{double, special, table_pow, table_tanh, turns};
use crate::math::lane::F64Fma;
use crate::math::wide::Wide;

/// Calls a macro with its own arguments, then the functions of one number: documentation, name, table row.
macro_rules! primitives {
    ($callback:path $(, $($more:tt)*)?) => {
        $callback! { $($($more)*;)?
            /// Natural exponential.
            exp Exp,
            /// `exp(self) - 1`, accurate near 0.
            expm1 Expm1,
            /// `2^self`.
            exp2 Exp2,
            /// Natural logarithm.
            log Log,
            /// `log(1 + self)`, accurate near 0.
            log1p Log1p,
            /// Logarithm to base 2.
            log2 Log2,
            /// Logarithm to base 10.
            log10 Log10,
            /// Sine.
            sin Sin,
            /// Cosine.
            cos Cos,
            /// Tangent.
            tan Tan,
            /// Arc sine.
            asin Asin,
            /// Arc cosine.
            acos Acos,
            /// Arc tangent.
            atan Atan,
            /// Hyperbolic sine.
            sinh Sinh,
            /// Hyperbolic cosine.
            cosh Cosh,
            /// Hyperbolic tangent.
            tanh Tanh,
            /// Inverse hyperbolic sine.
            asinh Asinh,
            /// Inverse hyperbolic cosine.
            acosh Acosh,
            /// Inverse hyperbolic tangent.
            atanh Atanh,
            /// Logistic function.
            sigmoid Sigmoid,
            /// `self` times its logistic function.
            silu Silu,
            /// Error function.
            erf Erf,
            /// `1 - erf(self)`, accurate where that is small.
            erfc Erfc,
            /// Inverse of the error function.
            erfinv Erfinv,
            /// Distribution function of the standard normal distribution.
            ndtr Ndtr,
            /// `self` times its `ndtr`.
            gelu Gelu,
            /// Logarithm of the absolute value of the gamma function.
            lgamma Lgamma,
            /// Derivative of `lgamma`.
            digamma Digamma,
            /// Modified Bessel function of the first kind, of order 0.
            i0 I0,
            /// `i0` times `exp(-|self|)`.
            i0e I0e,
            /// Modified Bessel function of the first kind, of order 1.
            i1 I1,
            /// `i1` times `exp(-|self|)`.
            i1e I1e,
        }
    };
}
pub(crate) use primitives;

macro_rules! declare {
    ($(#[doc = $doc:literal] $name:ident $row:ident,)*) => {
        /// The functions of one precision, for lanes that are generic over it.
        pub trait Functions: Copy + 'static {
            $(
                #[doc = $doc]
                fn $name<L: Wide<Number = Self>>(x: L) -> L;
            )*
            /// `x` to the power `y`, as C's `pow`.
            fn pow<L: Wide<Number = Self>>(x: L, y: L) -> L;
            /// Remainder of a division, with the sign of `x`.
            fn fmod<L: Wide<Number = Self>>(x: L, y: L) -> L;
            /// Derivative of order `order` of the digamma function.
            fn polygamma<L: Wide<Number = Self>>(x: L, order: usize) -> L;
        }
    };
}
primitives!(declare);

macro_rules! functions {
    ($float:ty: $($name:ident($($x:ident),*) = $body:expr;)*) => {
        impl Functions for $float {
            $(
                #[inline(always)]
                fn $name<L: Wide<Number = Self>>($($x: L),*) -> L {
                    $body
                }
            )*
            #[inline(always)]
            fn polygamma<L: Wide<Number = Self>>(x: L, order: usize) -> L {
                let everywhere = L::lit(0.0).eq(L::lit(0.0));
                let n = L::lit(order as f64);
                x.replace(everywhere, [x, n], |[x, n]| one_polygamma(f64::from(x), n as usize) as $float)
            }
        }
    };
}

functions! { f32:
    exp(x) = super::exp(x);
    expm1(x) = super::expm1(x);
    exp2(x) = special::exp2::<f32, L>(x);
    log(x) = super::log(x);
    log1p(x) = super::log1p(x);
    log2(x) = special::log2::<f32, L>(x);
    log10(x) = special::log10::<f32, L>(x);
    sin(x) = super::sin(x, turns::quarters(x));
    cos(x) = super::cos(turns::quarters(x));
    tan(x) = special::tan(x, turns::quarters(x));
    asin(x) = special::asin::<f32, L>(x);
    acos(x) = special::acos::<f32, L>(x);
    atan(x) = special::atan::<f32, L>(x);
    sinh(x) = special::sinh::<f32, L>(x);
    cosh(x) = special::cosh::<f32, L>(x);
    tanh(x) = table_tanh(x);
    asinh(x) = special::asinh::<f32, L>(x);
    acosh(x) = special::acosh::<f32, L>(x);
    atanh(x) = special::atanh::<f32, L>(x);
    sigmoid(x) = special::exact_sigmoid(x);
    silu(x) = special::silu::<f32, L>(x, special::exact_sigmoid(x));
    erf(x) = super::erf(x);
    erfc(x) = special::erfc::<f32, L>(x);
    erfinv(x) = special::erfinv::<f32, L>(x);
    ndtr(x) = special::ndtr::<f32, L>(x);
    gelu(x) = special::gelu::<f32, L>(x);
    lgamma(x) = special::lgamma::<f32, L>(x);
    digamma(x) = special::digamma::<f32, L>(x);
    i0(x) = special::i0::<f32, L>(x);
    i0e(x) = special::i0e::<f32, L>(x);
    i1(x) = special::i1::<f32, L>(x);
    i1e(x) = special::i1e::<f32, L>(x);
    pow(x, y) = table_pow(x, y);
    fmod(x, y) = remainder(x, y, |[x, y]| x % y);
}

functions! { f64:
    exp(x) = double::exp(x);
    expm1(x) = double::expm1(x);
    exp2(x) = special::exp2::<f64, L>(x);
    log(x) = double::log(x);
    log1p(x) = double::log1p(x);
    log2(x) = special::log2::<f64, L>(x);
    log10(x) = special::log10::<f64, L>(x);
    sin(x) = double::sin(x);
    cos(x) = double::cos(x);
    tan(x) = double::tan(x);
    asin(x) = special::asin::<f64, L>(x);
    acos(x) = special::acos::<f64, L>(x);
    atan(x) = special::atan::<f64, L>(x);
    sinh(x) = special::sinh::<f64, L>(x);
    cosh(x) = special::cosh::<f64, L>(x);
    tanh(x) = double::tanh(x);
    asinh(x) = special::asinh::<f64, L>(x);
    acosh(x) = special::acosh::<f64, L>(x);
    atanh(x) = special::atanh::<f64, L>(x);
    sigmoid(x) = special::exact_sigmoid(x);
    silu(x) = special::silu::<f64, L>(x, special::exact_sigmoid(x));
    erf(x) = double::erf(x);
    erfc(x) = special::erfc::<f64, L>(x);
    erfinv(x) = special::double_erfinv(x);
    ndtr(x) = special::ndtr::<f64, L>(x);
    gelu(x) = special::gelu::<f64, L>(x);
    lgamma(x) = special::lgamma::<f64, L>(x);
    digamma(x) = special::digamma::<f64, L>(x);
    i0(x) = special::i0::<f64, L>(x);
    i0e(x) = special::i0e::<f64, L>(x);
    i1(x) = special::i1::<f64, L>(x);
    i1e(x) = special::i1e::<f64, L>(x);
    pow(x, y) = double::pow(x, y);
    fmod(x, y) = remainder(x, y, |[x, y]| x % y);
}

/// The derivative of order `n` of the digamma function at one number. It has no vector version: few programs
/// need it for many numbers, and the code is long.
#[cold]
fn one_polygamma(x: f64, n: usize) -> f64 {
    special::polygamma::<f64, F64Fma>(F64Fma(x), n).0
}

/// The exact remainder of a division; `scalar` is for quotients that have more bits than a mantissa.
#[inline(always)]
fn remainder<L: Wide>(x: L, y: L, scalar: fn([L::Number; 2]) -> L::Number) -> L {
    let value = super::fmod(x, y);
    let quotient = (x / y).abs();
    let large = quotient.ge(L::lit(super::small_quotients::<L>())) & x.abs().lt(x.special(super::INFINITY));
    if L::may_hold(large) { value.replace(large, [x, y], scalar) } else { value }
}

/// Implements the methods of [`Real`](crate::math::real::Real) that are library functions of `$number`.
macro_rules! through_functions {
    ($number:ty) => {
        $crate::math::functions::primitives!($crate::math::functions::through, $number);
        #[inline(always)]
        fn pow(self, exponent: Self) -> Self {
            <$number as $crate::math::Functions>::pow(self, exponent)
        }
        #[inline(always)]
        fn fmod(self, divisor: Self) -> Self {
            <$number as $crate::math::Functions>::fmod(self, divisor)
        }
        #[inline(always)]
        fn polygamma(self, order: usize) -> Self {
            <$number as $crate::math::Functions>::polygamma(self, order)
        }
    };
}
pub(crate) use through_functions;

/// Implements the primitive functions among them.
macro_rules! through {
    ($number:ty; $(#[doc = $doc:literal] $name:ident $row:ident,)*) => {$(
        #[inline(always)]
        fn $name(self) -> Self {
            <$number as $crate::math::Functions>::$name(self)
        }
    )*};
}
pub(crate) use through;
