//! The list of primitive functions, and the formula that each kind of lane uses for them.
//!
//! Rules call functions as methods of [`Real`](crate::math::real::Real). Only the list here names those of
//! one number: it declares the methods, and dispatches CPU lanes to the formulas of their precision, GPUs to
//! the WGSL library, and recorded rules to the table row of the function. A new function needs a line here,
//! its formula and its row in `src/ops/pointwise/unary.rs`.

use super::{double, power, special, table_tanh, turns};
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
            /// `erfc` times `exp(self^2)`.
            erfcx Erfcx,
            /// Quantile of the standard normal distribution, the inverse of `ndtr`.
            ndtri Ndtri,
            /// Bessel function of the first kind, of order 0.
            bessel_j0 BesselJ0,
            /// Bessel function of the first kind, of order 1.
            bessel_j1 BesselJ1,
            /// Bessel function of the second kind, of order 0.
            bessel_y0 BesselY0,
            /// Bessel function of the second kind, of order 1.
            bessel_y1 BesselY1,
            /// Modified Bessel function of the second kind, of order 0.
            modified_bessel_k0 ModifiedBesselK0,
            /// Modified Bessel function of the second kind, of order 1.
            modified_bessel_k1 ModifiedBesselK1,
            /// `modified_bessel_k0` times `exp(self)`.
            scaled_modified_bessel_k0 ScaledModifiedBesselK0,
            /// `modified_bessel_k1` times `exp(self)`.
            scaled_modified_bessel_k1 ScaledModifiedBesselK1,
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

/// Implements the functions of a precision: its own, and those that have one formula for both.
macro_rules! functions {
    ($float:ty: $($name:ident($($x:ident),*) = $body:expr;)*) => {
        impl Functions for $float {
            functions!(@own
                $($name($($x),*) = $body;)*
                sigmoid(x) = special::exact_sigmoid(x);
                silu(x) = special::silu::<$float, L>(x, special::exact_sigmoid(x));
                fmod(x, y) = remainder(x, y, |[x, y]| x % y);
            );
            functions!(@shared $float: exp2 log2 log10 asin acos atan sinh cosh asinh acosh atanh);
            functions!(@shared $float: erfc ndtr gelu lgamma digamma i0 i0e i1 i1e);
            functions!(@one $float: erfcx ndtri bessel_j0 bessel_j1 bessel_y0 bessel_y1);
            functions!(@one $float: modified_bessel_k0 modified_bessel_k1);
            functions!(@one $float: scaled_modified_bessel_k0 scaled_modified_bessel_k1);
            #[inline(always)]
            fn polygamma<L: Wide<Number = Self>>(x: L, order: usize) -> L {
                let everywhere = L::lit(0.0).eq(L::lit(0.0));
                let n = L::lit(order as f64);
                x.replace(everywhere, [x, n], |[x, n]| one::polygamma(f64::from(x), n as usize) as $float)
            }
        }
    };
    (@shared $float:ty: $($name:ident)*) => {
        functions!(@own $($name(x) = special::$name::<$float, L>(x);)*);
    };
    (@one $float:ty: $($name:ident)*) => {$(
        #[inline(always)]
        fn $name<L: Wide<Number = Self>>(x: L) -> L {
            let everywhere = L::lit(0.0).eq(L::lit(0.0));
            x.replace(everywhere, [x], |[x]| one::$name(f64::from(x)) as $float)
        }
    )*};
    (@own $($name:ident($($x:ident),*) = $body:expr;)*) => {$(
        #[inline(always)]
        fn $name<L: Wide<Number = Self>>($($x: L),*) -> L {
            $body
        }
    )*};
}

functions! { f32:
    exp(x) = super::exp(x);
    expm1(x) = super::expm1(x);
    log(x) = super::log(x);
    log1p(x) = super::log1p(x);
    sin(x) = super::sin(x, turns::quarters(x));
    cos(x) = super::cos(turns::quarters(x));
    tan(x) = special::tan(x, turns::quarters(x));
    tanh(x) = table_tanh(x);
    erf(x) = super::erf(x);
    erfinv(x) = special::erfinv::<f32, L>(x);
    pow(x, y) = power::pow::<f32, L>(x, y);
}

functions! { f64:
    exp(x) = double::exp(x);
    expm1(x) = double::expm1(x);
    log(x) = double::log(x);
    log1p(x) = double::log1p(x);
    sin(x) = double::sin(x);
    cos(x) = double::cos(x);
    tan(x) = double::tan(x);
    tanh(x) = double::tanh(x);
    erf(x) = double::erf(x);
    erfinv(x) = special::double_erfinv(x);
    pow(x, y) = power::pow::<f64, L>(x, y);
}

/// Functions of one number at a time, in double precision. They have no vector version: few programs need
/// them for many numbers, and the code is long.
mod one {
    use super::{F64Fma, special};

    /// The derivative of order `n` of the digamma function.
    #[cold]
    pub fn polygamma(x: f64, n: usize) -> f64 {
        special::polygamma::<f64, F64Fma>(F64Fma(x), n).0
    }

    macro_rules! functions {
        ($($name:ident)*) => {$(
            #[inline(never)]
            pub fn $name(x: f64) -> f64 {
                special::$name::<f64, F64Fma>(F64Fma(x)).0
            }
        )*};
    }
    functions! {
        erfcx ndtri bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_k0 modified_bessel_k1
        scaled_modified_bessel_k0 scaled_modified_bessel_k1
    }
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
        $crate::math::functions::primitives!($crate::math::functions::through_functions, $number);
        $crate::math::lane::methods! {
            pow(self, y: Self) -> Self = <$number as $crate::math::Functions>::pow(self, y);
            fmod(self, y: Self) -> Self = <$number as $crate::math::Functions>::fmod(self, y);
            polygamma(self, n: usize) -> Self = <$number as $crate::math::Functions>::polygamma(self, n);
        }
    };
    ($number:ty; $(#[doc = $doc:literal] $name:ident $row:ident,)*) => {
        $crate::math::lane::methods! {
            $($name(self) -> Self = <$number as $crate::math::Functions>::$name(self);)*
        }
    };
}
pub(crate) use through_functions;
