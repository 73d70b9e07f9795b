//! All of one-variable calculus in one table: value and derivative of every unary function.
//!
//! A row reads `Variant method(x) = value, [(what the derivative reads) => g * derivative], precision, slope,
//! integers, complex;` where `x` is the input, `o` the output and `g` the cotangent (or, in forward mode, the
//! tangent: the Jacobian is diagonal). What the derivative reads is what the tape keeps. `[]` means that the
//! derivative is zero. Functions with attributes (a bound, a slope) stand in the second table: `p.a()` and
//! `p.b()`; their methods are written by hand in `operand.rs` and `src/py/tensor/operators.rs`.
//!
//! The columns after the derivatives:
//! * precision under autocast: `F32`, or `Any`, that of the input. `F32` have the functions that grow or
//!   shrink so fast, or are so steep, that halves overflow or lose their digits; the choice is PyTorch's.
//! * slope, what the derivative costs: `Cheap`, or `Costly`, an exponential or the like,
//! * integers: `float`, which converts them, or the formula for them,
//! * complex numbers: a [`ComplexRule`].
//!
//! From a row come the CPU and GPU kernels, the fused VJP kernel, the recorded derivative for higher orders,
//! the documentation and, without attributes, the Rust and Python methods and the type stub. The other half
//! of adding a function is its record in `tests/samples/op_samples.py`.
//!
//! Formulas are in any table of derivatives; `docs/formulas.md` lists the singular points. A cotangent of 0
//! stays 0 there, so that a branch which `where` did not take cannot spoil a gradient: fused kernels see to
//! it, and a slope that is infinite or NaN somewhere says `zero_guard` or `divisor`, for the recorded
//! derivative.

use crate::ops::complex::number::ComplexSym;
use crate::ops::pointwise::cylinder::*;
use crate::ops::pointwise::formulas::*;
use crate::ops::pointwise::smooth::*;
use crate::ops::pointwise::table::*;
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LOG10_E};

/// `sqrt(2 pi)`.
const ROOT_TAU: f64 = 2.506_628_274_631_000_5;

macro_rules! unary_table {
    ($callback:ident) => {
        $callback! { Unary, 1, p;
            /// Negates: `-x`.
            Neg neg(x) = -x, [(g) => -g], Any, Cheap, (I::lit(0).sub(x)), Parts;
            /// Returns the absolute value; its derivative at 0 is 0.
            Abs abs(x) = x.abs(), [(g, x) => g * sign(x)], Any, Cheap, (x.abs()), Real(ComplexSym::size);
            /// Returns the sign: -1, 0 or 1.
            Sign sign(x) = sign(x), [], Any, Cheap, (x.sign()), One(ComplexSym::sign);
            /// Squares: `x * x`.
            Square square(x) = x * x, [(g, x) => g * (2.0 * x)], Any, Cheap, (x.mul(x)), Product;
            /// Returns the square root.
            Sqrt sqrt(x) = x.sqrt(), [(g, o) => g * zero_guard(g, 0.5 / o)],
                Any, Cheap, float, One(ComplexSym::sqrt);
            /// Returns the reciprocal square root.
            Rsqrt rsqrt(x) = 1.0 / x.sqrt(), [(g, o) => g * zero_guard(g, -0.5 * (o * o * o))],
                F32, Cheap, float, One(ComplexSym::rsqrt);
            /// Returns the reciprocal `1 / x`.
            Reciprocal reciprocal(x) = 1.0 / x, [(g, o) => -(g * zero_guard(g, o * o))],
                F32, Cheap, float, One(ComplexSym::reciprocal);
            /// Returns the natural exponential.
            Exp exp(x) = x.exp(), [(g, o) => g * zero_guard(g, o)], F32, Cheap, float, Fresh(ComplexSym::exp);
            /// Returns `exp(x) - 1`, accurate near 0.
            Expm1 expm1(x) = x.expm1(), [(g, o) => g * zero_guard(g, o + 1.0)],
                F32, Cheap, float, One(ComplexSym::expm1);
            /// Returns `2 ** x`.
            Exp2 exp2(x) = x.exp2(), [(g, o) => g * zero_guard(g, LN_2 * o)],
                Any, Cheap, float, One(ComplexSym::exp2);
            /// Returns the natural logarithm.
            Log log(x) = x.log(), [(g, x) => g / divisor(g, x)], F32, Cheap, float, One(ComplexSym::log);
            /// Returns `log(1 + x)`, accurate near 0.
            Log1p log1p(x) = x.log1p(), [(g, x) => g / divisor(g, 1.0 + x)],
                F32, Cheap, float, One(ComplexSym::log1p);
            /// Returns the logarithm to base 2.
            Log2 log2(x) = x.log2(), [(g, x) => g / divisor(g, LN_2 * x)],
                F32, Cheap, float, One(ComplexSym::log2);
            /// Returns the logarithm to base 10.
            Log10 log10(x) = x.log10(), [(g, x) => g / divisor(g, x) * LOG10_E],
                F32, Cheap, float, One(ComplexSym::log10);
            /// Returns the sine of an angle in radians.
            Sin sin(x) = x.sin(), [(g, x) => g * x.cos()], Any, Costly, float, One(ComplexSym::sin);
            /// Returns the cosine of an angle in radians.
            Cos cos(x) = x.cos(), [(g, x) => -(g * x.sin())], Any, Costly, float, One(ComplexSym::cos);
            /// Returns the tangent of an angle in radians.
            Tan tan(x) = x.tan(), [(g, o) => g * zero_guard(g, 1.0 + o * o)],
                F32, Cheap, float, One(ComplexSym::tan);
            /// Returns the arc sine, from `-pi/2` to `pi/2`; NaN outside of `[-1, 1]`.
            Asin asin(x) = x.asin(), [(g, x) => g * zero_guard(g, arc_slope(x))],
                F32, Cheap, float, One(ComplexSym::asin);
            /// Returns the arc cosine, from 0 to `pi`; NaN outside of `[-1, 1]`.
            Acos acos(x) = x.acos(), [(g, x) => -(g * zero_guard(g, arc_slope(x)))],
                F32, Cheap, float, One(ComplexSym::acos);
            /// Returns the arc tangent, from `-pi/2` to `pi/2`.
            Atan atan(x) = x.atan(), [(g, x) => g * atan_slope(x)], Any, Cheap, float, One(ComplexSym::atan);
            /// Returns the hyperbolic sine.
            Sinh sinh(x) = x.sinh(), [(g, x) => g * zero_guard(g, x.cosh())],
                F32, Costly, float, One(ComplexSym::sinh);
            /// Returns the hyperbolic cosine.
            Cosh cosh(x) = x.cosh(), [(g, x) => g * zero_guard(g, x.sinh())],
                F32, Costly, float, One(ComplexSym::cosh);
            /// Returns the hyperbolic tangent.
            Tanh tanh(x) = x.tanh(), [(g, o) => g * (1.0 - o * o)], Any, Cheap, float, One(ComplexSym::tanh);
            /// Returns the inverse hyperbolic sine.
            Asinh asinh(x) = x.asinh(), [(g, x) => g / length(magnitude(x), R::lit(1.0))],
                Any, Cheap, float, One(ComplexSym::asinh);
            /// Returns the inverse hyperbolic cosine; NaN below 1.
            Acosh acosh(x) = x.acosh(), [(g, x) => g / divisor(g, (x - 1.0).sqrt() * (x + 1.0).sqrt())],
                Any, Cheap, float, One(ComplexSym::acosh);
            /// Returns the inverse hyperbolic tangent; NaN outside of `[-1, 1]`.
            Atanh atanh(x) = x.atanh(), [(g, x) => g / divisor(g, one_minus_square(x))],
                Any, Cheap, float, One(ComplexSym::atanh);
            /// Returns the error function.
            Erf erf(x) = x.erf(), [(g, x) => g * (FRAC_2_SQRT_PI * bell(x))], Any, Costly, float, Undefined;
            /// Returns `1 - erf(x)`, accurate where that is small.
            Erfc erfc(x) = x.erfc(), [(g, x) => -(g * (FRAC_2_SQRT_PI * bell(x)))],
                Any, Costly, float, Undefined;
            /// Returns the inverse of the error function; NaN outside of `[-1, 1]`.
            Erfinv erfinv(x) = x.erfinv(), [(g, o) => g * zero_guard(g, (o * o).exp() / FRAC_2_SQRT_PI)],
                F32, Costly, float, Undefined;
            /// Returns the distribution function of the standard normal distribution.
            Ndtr ndtr(x) = x.ndtr(), [(g, x) => g * normal_pdf(x)], Any, Costly, float, Undefined;
            /// Returns the logarithm of the absolute value of the gamma function.
            Lgamma lgamma(x) = x.lgamma(), [(g, x) => g * zero_guard(g, x.digamma())],
                Any, Costly, float, Undefined;
            /// Returns the digamma function, the derivative of `lgamma`; NaN at negative integers.
            Digamma digamma(x) = x.digamma(), [(g, x) => g * zero_guard(g, x.polygamma(1))],
                Any, Costly, float, Undefined;
            /// Returns the logarithm of the standard normal distribution function, by its asymptotic series
            /// far below 0 (M. Abramowitz and I. Stegun, 1964, 26.2.12).
            LogNdtr log_ndtr(x) = log_ndtr(x), [(g, x) => g * log_ndtr_slope(x)],
                F32, Costly, float, Undefined;
            /// Returns `sin(pi x) / (pi x)`, and 1 at zero.
            Sinc sinc(x) = sinc(x), [(g, x) => g * sinc_slope(x)], Any, Costly, float, One(ComplexSym::sinc);
            /// Returns `-x * log(x)`, 0 at zero, where its slope is infinite, and minus infinity below: the
            /// entropy of a probability.
            Entr entr(x) = entropy(x), [(g, x) => g * zero_guard(g, entropy_slope(x))],
                F32, Costly, float, Undefined;
            /// Returns `x / (1 + |x|)`.
            Softsign softsign(x) = x / (1.0 + x.abs()), [(g, x) => g * softsign_slope(x)],
                Any, Cheap, float, Undefined;
            /// Returns `x - tanh(x)`, by its continued fraction near 0.
            Tanhshrink tanhshrink(x) = without_tanh(x), [(g, x) => g * tanh_square(x)],
                Any, Costly, float, Undefined;
            /// Returns the modified Bessel function of the first kind, of order 0.
            I0 i0(x) = x.i0(), [(g, x) => g * zero_guard(g, x.i1())], Any, Costly, float, Undefined;
            /// Returns `exp(-|x|) i0(x)`.
            I0e i0e(x) = x.i0e(), [(g, x) => g * i0e_slope(x)], Any, Costly, float, Undefined;
            /// Returns the modified Bessel function of the first kind, of order 1.
            I1 i1(x) = x.i1(), [(g, x) => g * zero_guard(g, i1_slope(x))], Any, Costly, float, Undefined;
            /// Returns `exp(-|x|) i1(x)`.
            I1e i1e(x) = x.i1e(), [(g, x) => g * i1e_slope(x)], Any, Costly, float, Undefined;
            /// Returns `exp(x^2) erfc(x)`, the scaled complement of the error function; infinite far below 0.
            Erfcx erfcx(x) = x.erfcx(), [(g, x) => g * zero_guard(g, erfcx_slope(x))],
                F32, Costly, float, Undefined;
            /// Returns the quantile of the standard normal distribution, the inverse of `ndtr`: infinite at 0
            /// and 1, NaN outside.
            Ndtri ndtri(x) = x.ndtri(), [(g, o) => g * zero_guard(g, (o * o * 0.5).exp() * ROOT_TAU)],
                F32, Costly, float, Undefined;
            /// Returns the Bessel function of the first kind, of order 0.
            BesselJ0 bessel_j0(x) = x.bessel_j0(), [(g, x) => -(g * x.bessel_j1())],
                Any, Costly, float, Undefined;
            /// Returns the Bessel function of the first kind, of order 1.
            BesselJ1 bessel_j1(x) = x.bessel_j1(), [(g, x) => g * bessel_j1_slope(x)],
                Any, Costly, float, Undefined;
            /// Returns the Bessel function of the second kind, of order 0: minus infinity at 0, NaN below.
            BesselY0 bessel_y0(x) = x.bessel_y0(), [(g, x) => -(g * zero_guard(g, x.bessel_y1()))],
                Any, Costly, float, Undefined;
            /// Returns the Bessel function of the second kind, of order 1: minus infinity at 0, NaN below.
            BesselY1 bessel_y1(x) = x.bessel_y1(), [(g, x) => g * zero_guard(g, bessel_y1_slope(x))],
                Any, Costly, float, Undefined;
            /// Returns the modified Bessel function of the second kind, of order 0: infinite at 0, NaN below.
            ModifiedBesselK0 modified_bessel_k0(x) = x.modified_bessel_k0(),
                [(g, x) => -(g * zero_guard(g, x.modified_bessel_k1()))], Any, Costly, float, Undefined;
            /// Returns the modified Bessel function of the second kind, of order 1: infinite at 0, NaN below.
            ModifiedBesselK1 modified_bessel_k1(x) = x.modified_bessel_k1(),
                [(g, x) => g * zero_guard(g, modified_k1_slope(x))], Any, Costly, float, Undefined;
            /// Returns `exp(x) modified_bessel_k0(x)`.
            ScaledModifiedBesselK0 scaled_modified_bessel_k0(x) = x.scaled_modified_bessel_k0(),
                [(g, x) => g * zero_guard(g, scaled_k0_slope(x))], Any, Costly, float, Undefined;
            /// Returns `exp(x) modified_bessel_k1(x)`.
            ScaledModifiedBesselK1 scaled_modified_bessel_k1(x) = x.scaled_modified_bessel_k1(),
                [(g, x) => g * zero_guard(g, scaled_k1_slope(x))], Any, Costly, float, Undefined;
            /// Returns the spherical Bessel function of the first kind, of order 0: `sin(x) / x`, 1 at 0.
            SphericalBesselJ0 spherical_bessel_j0(x) = spherical_j0(x), [(g, x) => g * spherical_j0_slope(x)],
                Any, Costly, float, Undefined;
            /// Returns the logistic sigmoid `1 / (1 + exp(-x))`.
            Sigmoid sigmoid(x) = x.sigmoid(), [(g, o) => g * (o * (1.0 - o))],
                Any, Cheap, float, One(ComplexSym::sigmoid);
            /// Returns the rectified linear unit `max(x, 0)`; its derivative at 0 is 0.
            Relu relu(x) = R::select(x.le(R::lit(0.0)), R::lit(0.0), x),
                [(g, o) => R::select(o.gt(R::lit(0.0)), g, R::lit(0.0))],
                Any, Cheap, (x.max(I::lit(0))), Undefined;
            /// Returns the Gaussian error linear unit `x * Phi(x)` (Hendrycks and Gimpel 2016), exact form.
            Gelu gelu_exact(x) = x.gelu(), [(g, x) => g * (x.ndtr() + x * normal_pdf(x))],
                Any, Costly, float, Undefined;
            /// Returns the GELU by the tanh approximation (Hendrycks and Gimpel 2016).
            GeluTanh gelu_tanh(x) = x * gelu_gate(x).sigmoid(),
                [(g, x) => g * gelu_slope(x)], Any, Costly, float, Undefined;
            /// Returns the sigmoid linear unit `x * sigmoid(x)` (Elfwing et al. 2017).
            Silu silu(x) = x.silu(), [(g, x) => g * silu_slope(x)],
                Any, Costly, float, One(ComplexSym::silu);
            /// Returns `x tanh(log(1 + exp(x)))` (Misra 2019).
            Mish mish(x) = mish_value(x), [(g, x) => g * mish_slope(x)], Any, Costly, float, Undefined;
            /// Returns `log(sigmoid(x))`.
            LogSigmoid logsigmoid(x) =
                R::select(x.lt(R::lit(0.0)), x, R::lit(0.0)) - (-x.abs()).exp().log1p(),
                [(g, x) => g * (-x).sigmoid()], Any, Costly, float, Undefined;
            /// Returns `clamp(x / 6 + 1/2, 0, 1)`; its derivative at -3 and 3 is 1/6.
            Hardsigmoid hardsigmoid(x) = within(x + 3.0, R::lit(0.0), R::lit(6.0)) / 6.0,
                [(g, x) => R::select(x.abs().le(R::lit(3.0)), g / 6.0, R::lit(0.0))],
                Any, Cheap, float, Undefined;
            /// Returns `x clamp(x / 6 + 1/2, 0, 1)` (Howard et al. 2019).
            Hardswish hardswish(x) = x * (within(x + 3.0, R::lit(0.0), R::lit(6.0)) / 6.0),
                [(g, x) => g * R::select(
                    x.lt(R::lit(-3.0)),
                    R::lit(0.0),
                    R::select(x.gt(R::lit(3.0)), R::lit(1.0), x / 3.0 + 0.5)
                )],
                Any, Cheap, float, Undefined;
            /// Returns the largest integer not above `x`.
            Floor floor(x) = x.floor(), [], Any, Cheap, (x), Undefined;
            /// Returns the smallest integer not below `x`.
            Ceil ceil(x) = -((-x).floor()), [], Any, Cheap, (x), Undefined;
            /// Rounds to the nearest integer, ties to even.
            Round round(x) = x.round(), [], Any, Cheap, (x), Undefined;
            /// Rounds towards 0.
            Trunc trunc(x) = truncated(x), [], Any, Cheap, (x), Undefined;
            /// Returns the fractional part, with the sign of `x`.
            Frac frac(x) = x - truncated(x), [(g) => g], Any, Cheap, (x.sub(x)), Undefined;
        }
    };
}
pub(crate) use unary_table;

unary_table!(define_table);

macro_rules! parametric_table {
    ($callback:ident) => {
        $callback! { Parametric, 1, p;
            /// Returns `log(1 + exp(b x)) / b` with attribute `b`, linear where `b x` exceeds the threshold.
            Softplus softplus(x) = R::select((x * p.a()).gt(p.b()), x,
                    (R::select((x * p.a()).gt(R::lit(0.0)), x * p.a(), R::lit(0.0))
                        + (-((x * p.a()).abs())).exp().log1p()) / p.a()),
                [(g, x) => g * R::select((x * p.a()).gt(p.b()), R::lit(1.0), (x * p.a()).sigmoid())],
                F32, Costly, float, Undefined;
            /// Returns `x` above 0, else `alpha (exp(x) - 1)`, both times `scale`: attributes `[alpha,
            /// scale]` (Clevert et al. 2015).
            Elu elu(x) = R::select(x.ge(R::lit(0.0)), x, negative_part(x).expm1() * p.a()) * p.b(),
                [(g, x) =>
                    g * (R::select(x.gt(R::lit(0.0)), R::lit(1.0), negative_part(x).exp() * p.a()) * p.b())],
                Any, Costly, float, Undefined;
            /// Returns `x` above 0, else `alpha (exp(x / alpha) - 1)` with attribute `alpha` (Barron 2017).
            Celu celu(x) = R::select(x.ge(R::lit(0.0)), x, (negative_part(x) / p.a()).expm1() * p.a()),
                [(g, x) => g * R::select(x.gt(R::lit(0.0)), R::lit(1.0), (negative_part(x) / p.a()).exp())],
                Any, Costly, float, Undefined;
            /// Returns `x` above 0, else `slope x` with attribute `slope`; its derivative at 0 is `slope`
            /// (Maas et al. 2013).
            LeakyRelu leaky_relu(x) = R::select(x.gt(R::lit(0.0)), x, x * p.a()),
                [(g, x) => R::select(x.gt(R::lit(0.0)), g, g * p.a())], Any, Cheap, float, Undefined;
            /// Moves `x` towards 0 by an attribute, and 0 within it: the proximal map of `l |x|`.
            Softshrink softshrink(x) = R::select(
                    x.gt(p.a()),
                    x - p.a(),
                    R::select(x.lt(-p.a()), x + p.a(), R::select(x.eq(x), R::lit(0.0), x))
                ),
                [(g, x) => R::select(x.abs().le(p.a()), R::lit(0.0), g)], Any, Cheap, float, Undefined;
            /// Returns `x` where its magnitude exceeds an attribute, else 0.
            Hardshrink hardshrink(x) = R::select(x.abs().le(p.a()), R::lit(0.0), x),
                [(g, x) => R::select(x.abs().le(p.a()), R::lit(0.0), g)], Any, Cheap, float, Undefined;
            /// Returns `log(x / (1 - x))` of `x` limited to attributes `[low, high]`, the inverse of the
            /// logistic function.
            Logit logit(x) = log_odds(within(x, p.a(), p.b())),
                [(g, x) => R::select(
                    x.lt(p.a()) | x.gt(p.b()),
                    R::lit(0.0),
                    g / divisor(g, odds_divisor(x))
                )],
                F32, Cheap, float, Undefined;
            /// Limits values to attributes `[low, high]`; the derivative at a bound is 1.
            Clamp clamp(x) = within(x, p.a(), p.b()),
                [(g, x) => R::select(x.ge(p.a()) & x.le(p.b()), g, R::lit(0.0))],
                Any, Cheap, float, Undefined;
            /// Limits values to an attribute from below; the derivative at the bound is 1.
            ClampMin clamp_min(x) = R::select(x.lt(p.a()), p.a(), x),
                [(g, x) => R::select(x.ge(p.a()), g, R::lit(0.0))], Any, Cheap, float, Undefined;
            /// Limits values to an attribute from above; the derivative at the bound is 1.
            ClampMax clamp_max(x) = R::select(x.gt(p.a()), p.a(), x),
                [(g, x) => R::select(x.le(p.a()), g, R::lit(0.0))], Any, Cheap, float, Undefined;
            /// Returns the derivative of an order, the attribute, of the digamma function.
            Polygamma polygamma(x) = x.polygamma(p.count()),
                [(g, x) => g * zero_guard(
                    g,
                    R::named("polygamma", [1.0 + p.a(), x], x.polygamma(p.count() + 1))
                )], Any, Costly, float, Undefined;
        }
    };
}

parametric_table!(define_table);
