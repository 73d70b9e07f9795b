//! Pieces of formulas that several rows of the tables share.

use crate::real::Real;
use crate::rule;

/// `rule!` without literals on the left of an operator: for rules that jets are made of.
macro_rules! plain_rule {
    ($(#[$meta:meta])* pub fn $name:ident($($arg:ident),*) $body:expr) => {
        $(#[$meta])*
        #[inline(always)]
        pub fn $name<R: Real>($($arg: R),*) -> R {
            R::named(stringify!($name), [$($arg),*], $body)
        }
    };
}

plain_rule! {
    /// -1, 0 or 1; NaN stays NaN.
    pub fn sign(x) {
        let one = R::select(x.gt(R::lit(0.0)), R::lit(1.0), R::select(x.lt(R::lit(0.0)), R::lit(-1.0), R::lit(0.0)));
        R::select(x.eq(x), one, x)
    }
}
rule! {
    /// The logistic function without overflow: the exponential is always of a non-positive number.
    pub fn stable_sigmoid(x) {
        let e = (-(x.abs())).exp();
        R::select(x.lt(R::lit(0.0)), e, R::lit(1.0)) / (1.0 + e)
    }
}
rule! {
    /// Density of the standard normal distribution.
    pub fn normal_pdf(x) 0.3989422804014327 * (-0.5 * (x * x)).exp()
}
rule! {
    /// Derivative of GELU's tanh approximation.
    pub fn gelu_slope(x) {
        let t = (0.7978845608028654 * (x + 0.044715 * (x * x * x))).tanh();
        0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * (0.7978845608028654 * (1.0 + 0.134145 * (x * x)))
    }
}
plain_rule! {
    /// The derivative `d` that the cotangent `g` is multiplied with; 0 where `g` is 0 and `d` infinite or
    /// NaN. Replacing the factor instead of the product keeps the product's own derivative wherever `d` is
    /// finite. Under `ieee_gradients` it is `d` itself.
    pub fn tame(g, d) if R::short_circuits() {
        R::select(g.eq(R::lit(0.0)) & !(d.abs().le(R::lit(3e38))), R::lit(0.0), d)
    } else {
        d
    }
}
plain_rule! {
    /// `x`, as what the cotangent `g` is divided by; 1 where `g` is 0 and `x` is 0 or NaN. Under `ieee_gradients`
    /// it is `x` itself.
    pub fn divisor(g, x) if R::short_circuits() {
        R::select(g.eq(R::lit(0.0)) & !(x.abs().gt(R::lit(0.0))), R::lit(1.0), x)
    } else {
        x
    }
}
plain_rule! {
    /// `value` where `condition` is not 0, else 0.
    pub fn where_nonzero(condition, value) R::select(condition.eq(R::lit(0.0)), R::lit(0.0), value)
}
rule! {
    /// `g` where `winner > loser`, half of it at a tie.
    pub fn half_tie(winner, loser, g) {
        R::select(winner.gt(loser), g, R::select(winner.eq(loser), 0.5 * g, R::lit(0.0)))
    }
}
rule! {
    /// `g` times the share of `x` in `exp(x) + exp(y)`; half of it where both are equal, infinite ones too.
    pub fn share(x, y, g) g * stable_sigmoid(R::select(x.eq(y), R::lit(0.0), x - y))
}
rule! {
    /// Length of the vector of two non-negative numbers: the larger one taken out of the root.
    pub fn length(x, y) {
        let (top, low) = (R::select(x.gt(y) | x.ne(x), x, y), R::select(x.gt(y) | x.ne(x), y, x));
        let ratio = R::select(top.eq(low), R::lit(1.0), low / top);
        R::select(top.eq(R::lit(0.0)), top, top * (1.0 + ratio * ratio).sqrt())
    }
}
