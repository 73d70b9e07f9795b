//! Pieces of formulas that several rows of the tables share.

use crate::math::real::Real;
use crate::rule;

/// The polynomial with these coefficients, lowest power first.
#[inline(always)]
pub fn polynomial<R: Real>(x: R, coefficients: &[f64]) -> R {
    let mut k = coefficients.len() - 1;
    let mut sum = R::lit(coefficients[k]);
    while k > 0 {
        k -= 1;
        sum = sum * x + coefficients[k];
    }
    sum
}

rule! {
    /// -1, 0 or 1; NaN stays NaN.
    pub fn sign(x) {
        let below = R::select(x.lt(R::lit(0.0)), R::lit(-1.0), R::lit(0.0));
        let one = R::select(x.gt(R::lit(0.0)), R::lit(1.0), below);
        R::select(x.eq(x), one, x)
    }
}
/// `x` limited to `[low, high]`.
#[inline(always)]
pub fn within<R: Real>(x: R, low: R, high: R) -> R {
    R::select(x.lt(low), low, R::select(x.gt(high), high, x))
}
rule! {
    /// Density of the standard normal distribution.
    pub fn normal_pdf(x) { (x * (x * -0.5)).exp() * 0.3989422804014327 }

    /// `exp(-x^2)`: 0 far out, where the square and its derivatives overflow.
    pub fn bell(x) {
        let far = R::select(x.abs().gt(R::lit(1e4)), R::lit(1e4), x);
        (-(far * far)).exp()
    }

    /// `1 - x^2`, without cancellation where that is small, nor in its derivative near 0.
    pub fn one_minus_square(x) {
        R::select(
            x.abs().lt(R::lit(0.5)),
            R::lit(1.0) - x * x,
            (R::lit(1.0) - x) * (x + 1.0)
        )
    }

    /// Derivative of the arc sine.
    pub fn arc_slope(x) { R::lit(1.0) / one_minus_square(x).sqrt() }

    /// Derivative of the arc tangent: outside of `[-1, 1]` by `1 / x`, since there the square may overflow.
    pub fn atan_slope(x) {
        let (one, far) = (R::lit(1.0), x.abs().gt(R::lit(1.0)));
        let near = R::select(far, R::lit(0.0), x);
        let outside = R::select(far, x, one);
        let inverse = one / outside;
        R::select(far, inverse / (outside + inverse), one / (near * near + 1.0))
    }
}
/// The logistic function of `x` and of `-x`, each with all its digits, and so their derivatives.
#[inline(always)]
fn logistics<R: Real>(x: R) -> (R, R) {
    let power = (-magnitude(x)).exp();
    let more = R::lit(1.0) / (power + 1.0);
    let less = power * more;
    // The side of zero is that of `magnitude`, for the derivatives there.
    let right = x.ge(R::lit(0.0));
    (R::select(right, more, less), R::select(right, less, more))
}
rule! {
    /// Derivative of the sigmoid linear unit.
    pub fn silu_slope(x) {
        let (logistic, other) = logistics(x);
        logistic * (x * other + 1.0)
    }
}
/// `i1(x) / (x i0(x))` in `x^2`, near 0.
const BESSEL_RATIO: [f64; 5] = [0.5, -1.0 / 16.0, 1.0 / 96.0, -11.0 / 6144.0, 19.0 / 61440.0];

rule! {
    /// `i1(x) / (x i0(x))`, which is 1/2 at 0, and its series there, whose derivatives are right.
    pub fn bessel_ratio(x) {
        let (zero, square) = (R::lit(0.0), x * x);
        let near = x.abs().lt(R::lit(0.03));
        let series = polynomial(square, &BESSEL_RATIO);
        let ratio = R::select(near, series, x.i1e() / (x.i0e() * R::select(near, R::lit(1.0), x)));
        R::select(x.abs().lt(R::lit(1e12)), ratio, zero)
    }

    /// Derivative of the modified Bessel function of order 1.
    pub fn i1_slope(x) { x.i0() * (R::lit(1.0) - bessel_ratio(x)) }
}
/// `1 - i1(x) / i0(x)` far out, in powers of `1 / x`: from `r' = 1 - r / x - r^2` for `r = i1 / i0`.
const BESSEL_GAP: [f64; 18] = [
    0.5, 0.125, 0.125, 0.1953125, 0.40625, 1.0478515625, 3.21875, 11.466461181640625, 46.478515625,
    211.27614974975586, 1064.67822265625, 5892.0457146167755, 35528.87744140625, 231884.6359563172,
    1628749.4532470703, 12251067.63286615, 98252781.81546783, 836956449.7799761,
];
/// From here on that series is used.
const BESSEL_FAR: f64 = 20.0;

rule! {
    /// `1 - i1(x) / i0(x)` for `x` from 20 on.
    pub fn bessel_gap(x) {
        let inverse = R::lit(1.0) / x;
        // A counting loop: a closure that is not inlined would be a call for each term.
        let (mut sum, mut k) = (R::lit(0.0), BESSEL_GAP.len());
        while k > 0 {
            k -= 1;
            sum = (sum + BESSEL_GAP[k]) * inverse;
        }
        sum
    }

    /// Derivative of `i0e`: far out the difference of two numbers that are nearly the same.
    pub fn i0e_slope(x) {
        let (size, end) = (magnitude(x), R::lit(BESSEL_FAR));
        let far = size.gt(end);
        let gap = bessel_gap(R::select(far, size, end));
        R::select(far, -(sign(x) * (x.i0e() * gap)), x.i1e() - sign(x) * x.i0e())
    }

    /// Derivative of `i1e`: far out the difference of two numbers that are nearly the same.
    pub fn i1e_slope(x) {
        let (size, end) = (magnitude(x), R::lit(BESSEL_FAR));
        let far = size.gt(end);
        let outside = R::select(far, size, end);
        let gap = bessel_gap(outside);
        let above = x.i0e() * (gap - (R::lit(1.0) - gap) / outside);
        R::select(far, above, x.i0e() * (R::lit(1.0) - bessel_ratio(x)) - sign(x) * x.i1e())
    }

    /// The nearest integer towards 0.
    pub fn truncated(x) { R::select(x.lt(R::lit(0.0)), -((-x).floor()), x.floor()) }

    /// Remainder of `x / y` with the sign of `y`.
    pub fn floor_remainder(x, y) {
        let (rest, zero) = (x.fmod(y), R::lit(0.0));
        let signed_zero = R::select(y.lt(zero), R::lit(-0.0), zero);
        let wrong = rest.lt(zero) & y.gt(zero) | rest.gt(zero) & y.lt(zero);
        R::select(rest.eq(zero), signed_zero, R::select(wrong, rest + y, rest))
    }

    /// `x / y` rounded down: the remainder goes first, lest a rounded quotient reach the next integer.
    pub fn floor_quotient(x, y) {
        let (rest, zero) = (x.fmod(y), R::lit(0.0));
        let below = R::select(rest.lt(zero) & y.gt(zero) | rest.gt(zero) & y.lt(zero), R::lit(1.0), zero);
        let whole = ((x - rest) / y - below).round();
        let signed = R::select(whole.eq(zero), x / y * 0.0, whole);
        R::select(y.eq(zero), x / y, signed)
    }

    /// Angle of the point `(x, y)`, from `-pi` to `pi`; signs of zeros choose the end, and the side at 0.
    pub fn angle(y, x) {
        let zero = R::lit(0.0);
        let (height, width) = (y.abs(), x.abs());
        let steep = height.gt(width);
        let (low, top) = (R::select(steep, width, height), R::select(steep, height, width));
        let ratio = R::select(low.eq(top), R::select(top.eq(zero), zero, R::lit(1.0)), low / top);
        let part = ratio.atan();
        let part = R::select(steep, R::lit(std::f64::consts::FRAC_PI_2) - part, part);
        let left = x.lt(zero) | (R::lit(1.0) / x).lt(zero);
        let part = R::select(left, R::lit(std::f64::consts::PI) - part, part);
        let part = R::select(y.lt(zero) | (R::lit(1.0) / y).lt(zero), -part, part);
        R::select(x.ne(x) | y.ne(y), x + y, part)
    }

    /// The logistic function's argument in GELU's tanh approximation: `(1 + tanh(u)) / 2` is that of `2 u`.
    pub fn gelu_gate(x) { 1.5957691216057308 * (x + 0.044715 * (x * x * x)) }

    /// Derivative of GELU's tanh approximation; far out, where the cube overflows, that of a closer number.
    pub fn gelu_slope(x) {
        let end = R::lit(1e4);
        let y = R::select(x.gt(end), end, R::select(x.lt(-end), -end, x));
        let (s, other) = logistics(gelu_gate(y));
        s + y * (s * other) * (1.5957691216057308 * (1.0 + 0.134145 * (y * y)))
    }

    /// `1 / (1 + |x|)^2`, the derivative of `x / (1 + |x|)`.
    pub fn softsign_slope(x) {
        let inverse = 1.0 / (1.0 + x.abs());
        inverse * inverse
    }

    /// The derivative `d` that the cotangent `g` is multiplied with; 0 where `g` is 0 and `d` infinite or
    /// NaN. Replacing the factor instead of the product keeps the product's own derivative wherever `d` is
    /// at most 3e38. Under `ieee_gradients` it is `d` itself.
    pub fn zero_guard(g, d) {
        if R::short_circuits() {
            R::select(g.eq(R::lit(0.0)) & !(d.abs().le(R::lit(3e38))), R::lit(0.0), d)
        } else {
            d
        }
    }

    /// `x`, as what the cotangent `g` is divided by; 1 where `g` is 0 and `x` is 0 or NaN. Under
    /// `ieee_gradients` it is `x` itself.
    pub fn divisor(g, x) {
        if R::short_circuits() {
            R::select(g.eq(R::lit(0.0)) & !(x.abs().gt(R::lit(0.0))), R::lit(1.0), x)
        } else {
            x
        }
    }

    /// `y x^(y - 1)`, and 0 for `y = 0` at `x = 0`.
    pub fn power_slope(x, y) {
        let slope = y * x.pow(y - 1.0);
        R::select(y.eq(R::lit(0.0)) & slope.ne(slope), R::lit(0.0), slope)
    }

    /// `g` times `o log(x)`, the slope of `o = x^y` in `y`; 0 at `x = 0` for `y >= 0`, where `o` is finite.
    pub fn exponent_slope(x, o, g) {
        R::select(
            x.eq(R::lit(0.0)) & o.abs().le(R::lit(1.0)),
            R::lit(0.0),
            g * zero_guard(g, o * x.log())
        )
    }

    /// `value` where `condition` is not 0, else 0.
    pub fn where_nonzero(condition, value) { R::select(condition.eq(R::lit(0.0)), R::lit(0.0), value) }

    /// `g` where `winner > loser`, half of it at a tie.
    pub fn half_tie(winner, loser, g) {
        R::select(winner.gt(loser), g, R::select(winner.eq(loser), 0.5 * g, R::lit(0.0)))
    }

    /// `g` times the share of `x` in `exp(x) + exp(y)`; half of it where both are equal, infinite ones too.
    pub fn share(x, y, g) {
        let lead = x - y;
        g * R::select(x.eq(y) & lead.ne(lead), R::lit(0.0), lead).sigmoid()
    }

    /// Length of the vector of two non-negative numbers: the larger one taken out of the root.
    pub fn length(x, y) {
        let (top, low) = (R::select(x.gt(y) | x.ne(x), x, y), R::select(x.gt(y) | x.ne(x), y, x));
        let quotient = low / top;
        let ratio = R::select(top.eq(low) & quotient.ne(quotient), R::lit(1.0), quotient);
        R::select(top.eq(R::lit(0.0)), top, top * (ratio * ratio + 1.0).sqrt())
    }

    /// The absolute value for formulas that are smooth in it: its slope at 0 is 1, so that nothing of an even
    /// function's derivatives is lost there.
    pub fn magnitude(x) { R::select(x.lt(R::lit(0.0)), -x, x) }

    /// `x / (x^2 + y^2)` without overflow; 0 where both are 0.
    pub fn angle_slope(x, y) {
        let size = length(magnitude(x), magnitude(y));
        where_nonzero(size, x / size / size)
    }

    /// The slope of the length of `(x, y)` in `x`, by their ratio, whose derivatives do not cancel; 0 at 0.
    pub fn hypot_slope(x, y) {
        let (one, zero) = (R::lit(1.0), R::lit(0.0));
        let wide = x.abs().ge(y.abs());
        let (top, low) = (R::select(wide, x, y), R::select(wide, y, x));
        let ratio = low / R::select(top.eq(zero), one, top);
        let length = (ratio * ratio + 1.0).sqrt();
        R::select(wide, sign(x) / length, sign(y) * ratio / length)
    }

    /// Length of the vector of two numbers that are not negative, infinite where either is, NaN or not.
    pub fn hypotenuse(x, y) {
        let infinity = R::lit(f64::INFINITY);
        R::select(x.eq(infinity) | y.eq(infinity), infinity, length(x, y))
    }
}
