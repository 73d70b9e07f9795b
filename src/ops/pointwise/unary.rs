//! All of one-variable calculus in one table: value and derivative of every unary function.
//!
//! A row reads `Variant method(x) = value, [(what the derivative reads) => g * derivative];` where `x` is the
//! input, `o` the output and `g` the cotangent (or, in forward mode, the tangent: the Jacobian is diagonal).
//! What the derivative reads is what the tape keeps. `[]` means that the derivative is zero. Functions with
//! attributes (a bound, a slope) stand in the second table, where `p` holds the attributes; their methods are
//! written by hand in `operand.rs`.
//!
//! From a row come the CPU and GPU kernels, the fused VJP kernel, the recorded derivative for higher orders,
//! the Rust and Python methods, the type stub and the documentation. The other half of adding a function is
//! its record in `tests/op_samples.py`. Formulas: any table of derivatives; singular points follow PyTorch,
//! but a cotangent of 0 stays 0 there (`zero_guard`), so that a branch which `where` did not take cannot
//! spoil a gradient.

use crate::ops::pointwise::formulas::{
    arc_slope, atan_slope, bell, divisor, gelu_gate, gelu_slope, i0e_slope, i1_slope, i1e_slope, length,
    magnitude, normal_pdf, one_minus_square, sign, silu_slope, softsign_slope, truncated, zero_guard,
};
use crate::ops::pointwise::smooth::{
    entropy, entropy_slope, log_ndtr, log_ndtr_slope, mish_slope, mish_value, negative_part, sinc,
    sinc_slope, tanh_square, without_tanh,
};
use crate::ops::pointwise::table::define_table;
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LOG10_E};

macro_rules! unary_table {
    ($callback:ident) => {
        $callback! { Unary, 1, p;
            /// Negative `-x`.
            Neg neg(x) = -x, [(g) => -g];
            /// Absolute value; its derivative at 0 is 0.
            Abs abs(x) = x.abs(), [(g, x) => g * sign(x)];
            /// Sign: -1, 0 or 1.
            Sign sign(x) = sign(x), [];
            /// Square `x * x`.
            Square square(x) = x * x, [(g, x) => g * (2.0 * x)];
            /// Square root.
            Sqrt sqrt(x) = x.sqrt(), [(g, o) => g * zero_guard(g, 0.5 / o)];
            /// Reciprocal square root.
            Rsqrt rsqrt(x) = 1.0 / x.sqrt(), [(g, o) => g * zero_guard(g, -0.5 * (o * o * o))];
            /// Reciprocal `1 / x`.
            Reciprocal reciprocal(x) = 1.0 / x, [(g, o) => -(g * zero_guard(g, o * o))];
            /// Natural exponential.
            Exp exp(x) = x.exp(), [(g, o) => g * zero_guard(g, o)];
            /// `exp(x) - 1`, accurate near 0.
            Expm1 expm1(x) = x.expm1(), [(g, o) => g * zero_guard(g, o + 1.0)];
            /// `2 ** x`.
            Exp2 exp2(x) = x.exp2(), [(g, o) => g * zero_guard(g, LN_2 * o)];
            /// Natural logarithm.
            Log log(x) = x.log(), [(g, x) => g / divisor(g, x)];
            /// `log(1 + x)`, accurate near 0.
            Log1p log1p(x) = x.log1p(), [(g, x) => g / divisor(g, 1.0 + x)];
            /// Logarithm to base 2.
            Log2 log2(x) = x.log2(), [(g, x) => g / divisor(g, LN_2 * x)];
            /// Logarithm to base 10.
            Log10 log10(x) = x.log10(), [(g, x) => g / divisor(g, x) * LOG10_E];
            /// Sine of an angle in radians.
            Sin sin(x) = x.sin(), [(g, x) => g * x.cos()];
            /// Cosine of an angle in radians.
            Cos cos(x) = x.cos(), [(g, x) => -(g * x.sin())];
            /// Tangent of an angle in radians.
            Tan tan(x) = x.tan(), [(g, o) => g * zero_guard(g, 1.0 + o * o)];
            /// Arc sine, from `-pi/2` to `pi/2`; NaN outside of `[-1, 1]`.
            Asin asin(x) = x.asin(), [(g, x) => g * zero_guard(g, arc_slope(x))];
            /// Arc cosine, from 0 to `pi`; NaN outside of `[-1, 1]`.
            Acos acos(x) = x.acos(), [(g, x) => -(g * zero_guard(g, arc_slope(x)))];
            /// Arc tangent, from `-pi/2` to `pi/2`.
            Atan atan(x) = x.atan(), [(g, x) => g * atan_slope(x)];
            /// Hyperbolic sine.
            Sinh sinh(x) = x.sinh(), [(g, x) => g * zero_guard(g, x.cosh())];
            /// Hyperbolic cosine.
            Cosh cosh(x) = x.cosh(), [(g, x) => g * zero_guard(g, x.sinh())];
            /// Hyperbolic tangent.
            Tanh tanh(x) = x.tanh(), [(g, o) => g * (1.0 - o * o)];
            /// Inverse hyperbolic sine.
            Asinh asinh(x) = x.asinh(), [(g, x) => g / length(magnitude(x), R::lit(1.0))];
            /// Inverse hyperbolic cosine; NaN below 1.
            Acosh acosh(x) = x.acosh(), [(g, x) => g / divisor(g, (x - 1.0).sqrt() * (x + 1.0).sqrt())];
            /// Inverse hyperbolic tangent; NaN outside of `[-1, 1]`.
            Atanh atanh(x) = x.atanh(), [(g, x) => g / divisor(g, one_minus_square(x))];
            /// Error function.
            Erf erf(x) = x.erf(), [(g, x) => g * (FRAC_2_SQRT_PI * bell(x))];
            /// `1 - erf(x)`, accurate where that is small.
            Erfc erfc(x) = x.erfc(), [(g, x) => -(g * (FRAC_2_SQRT_PI * bell(x)))];
            /// Inverse of the error function; NaN outside of `[-1, 1]`.
            Erfinv erfinv(x) = x.erfinv(), [(g, o) => g * zero_guard(g, (o * o).exp() / FRAC_2_SQRT_PI)];
            /// Distribution function of the standard normal distribution.
            Ndtr ndtr(x) = x.ndtr(), [(g, x) => g * normal_pdf(x)];
            /// Logarithm of the size of the gamma function.
            Lgamma lgamma(x) = x.lgamma(), [(g, x) => g * zero_guard(g, x.digamma())];
            /// Digamma function, the derivative of `lgamma`; NaN at negative integers.
            Digamma digamma(x) = x.digamma(), [(g, x) => g * zero_guard(g, x.polygamma(1))];
            /// Logarithm of the standard normal distribution function, by its asymptotic series far below 0
            /// (M. Abramowitz and I. Stegun, 1964, 26.2.12).
            LogNdtr log_ndtr(x) = log_ndtr(x), [(g, x) => g * log_ndtr_slope(x)];
            /// `sin(pi x) / (pi x)`, and 1 at zero.
            Sinc sinc(x) = sinc(x), [(g, x) => g * sinc_slope(x)];
            /// `-x * log(x)`, 0 at zero, where its slope is infinite, and minus infinity below: the entropy
            /// of a probability.
            Entr entr(x) = entropy(x), [(g, x) => g * zero_guard(g, entropy_slope(x))];
            /// `x / (1 + |x|)`.
            Softsign softsign(x) = x / (1.0 + x.abs()), [(g, x) => g * softsign_slope(x)];
            /// `x - tanh(x)`, by its continued fraction near 0.
            Tanhshrink tanhshrink(x) = without_tanh(x), [(g, x) => g * tanh_square(x)];
            /// Modified Bessel function of the first kind, of order 0.
            I0 i0(x) = x.i0(), [(g, x) => g * zero_guard(g, x.i1())];
            /// `exp(-|x|) i0(x)`.
            I0e i0e(x) = x.i0e(), [(g, x) => g * i0e_slope(x)];
            /// Modified Bessel function of the first kind, of order 1.
            I1 i1(x) = x.i1(), [(g, x) => g * zero_guard(g, i1_slope(x))];
            /// `exp(-|x|) i1(x)`.
            I1e i1e(x) = x.i1e(), [(g, x) => g * i1e_slope(x)];
            /// Logistic sigmoid `1 / (1 + exp(-x))`.
            Sigmoid sigmoid(x) = x.sigmoid(), [(g, o) => g * (o * (1.0 - o))];
            /// Rectified linear unit `max(x, 0)`; its derivative at 0 is 0.
            Relu relu(x) = R::select(x.le(R::lit(0.0)), R::lit(0.0), x),
                [(g, o) => R::select(o.gt(R::lit(0.0)), g, R::lit(0.0))];
            /// Gaussian error linear unit `x * Phi(x)` (Hendrycks and Gimpel 2016), exact form.
            Gelu gelu_exact(x) = x.gelu(), [(g, x) => g * (x.ndtr() + x * normal_pdf(x))];
            /// GELU by the tanh approximation (Hendrycks and Gimpel 2016).
            GeluTanh gelu_tanh(x) = x * gelu_gate(x).sigmoid(),
                [(g, x) => g * gelu_slope(x)];
            /// Sigmoid linear unit `x * sigmoid(x)` (Elfwing et al. 2017).
            Silu silu(x) = x.silu(), [(g, x) => g * silu_slope(x)];
            /// `x tanh(log(1 + exp(x)))` (Misra 2019).
            Mish mish(x) = mish_value(x), [(g, x) => g * mish_slope(x)];
            /// Largest integer not above `x`.
            Floor floor(x) = x.floor(), [];
            /// Smallest integer not below `x`.
            Ceil ceil(x) = -((-x).floor()), [];
            /// Nearest integer, ties to even.
            Round round(x) = x.round(), [];
            /// Nearest integer towards 0.
            Trunc trunc(x) = truncated(x), [];
            /// What is behind the decimal point, with the sign of `x`.
            Frac frac(x) = x - truncated(x), [(g) => g];
        }
    };
}
pub(crate) use unary_table;

unary_table!(define_table);

macro_rules! parametric_table {
    ($callback:ident) => {
        $callback! { Parametric, 1, p;
            /// `log(1 + exp(b x)) / b` with attribute `b`, linear where `b x` exceeds the threshold.
            Softplus softplus(x) = R::select((x * p[0]).gt(R::lit(p[1])), x,
                    (R::select((x * p[0]).gt(R::lit(0.0)), x * p[0], R::lit(0.0))
                        + (-((x * p[0]).abs())).exp().log1p()) / p[0]),
                [(g, x) => g * R::select((x * p[0]).gt(R::lit(p[1])), R::lit(1.0), (x * p[0]).sigmoid())];
            /// `x` above 0, else `alpha (exp(x) - 1)`, both times `scale`: attributes `[alpha, scale]`
            /// (Clevert et al. 2015).
            Elu elu(x) = R::select(x.ge(R::lit(0.0)), x, negative_part(x).expm1() * p[0]) * p[1],
                [(g, x) =>
                    g * (R::select(x.gt(R::lit(0.0)), R::lit(1.0), negative_part(x).exp() * p[0]) * p[1])];
            /// `x` above 0, else `alpha (exp(x / alpha) - 1)` with attribute `alpha` (Barron 2017).
            Celu celu(x) = R::select(x.ge(R::lit(0.0)), x, (negative_part(x) / p[0]).expm1() * p[0]),
                [(g, x) => g * R::select(x.gt(R::lit(0.0)), R::lit(1.0), (negative_part(x) / p[0]).exp())];
            /// Values limited to attributes `[low, high]`; the derivative at a bound is 1.
            Clamp clamp(x) =
                R::select(x.lt(R::lit(p[0])), R::lit(p[0]), R::select(x.gt(R::lit(p[1])), R::lit(p[1]), x)),
                [(g, x) => R::select(x.ge(R::lit(p[0])) & x.le(R::lit(p[1])), g, R::lit(0.0))];
            /// Values not below an attribute; the derivative at the bound is 1.
            ClampMin clamp_min(x) = R::select(x.lt(R::lit(p[0])), R::lit(p[0]), x),
                [(g, x) => R::select(x.ge(R::lit(p[0])), g, R::lit(0.0))];
            /// Values not above an attribute; the derivative at the bound is 1.
            ClampMax clamp_max(x) = R::select(x.gt(R::lit(p[0])), R::lit(p[0]), x),
                [(g, x) => R::select(x.le(R::lit(p[0])), g, R::lit(0.0))];
            /// Derivative of an order, the attribute, of the digamma function.
            Polygamma polygamma(x) = x.polygamma(p[0] as usize),
                [(g, x) => g * zero_guard(
                    g,
                    R::named("polygamma", [1.0 + R::lit(p[0]), x], x.polygamma(p[0] as usize + 1))
                )];
        }
    };
}

parametric_table!(define_table);
