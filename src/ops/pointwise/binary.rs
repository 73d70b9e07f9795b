//! Functions of two variables in one table: value and both partial derivatives.
//!
//! Same columns as `unary.rs`, with two inputs `x`, `y` and one derivative for each.

use crate::ops::complex::number::ComplexSym;
use crate::ops::pointwise::formulas::*;
use crate::ops::pointwise::smooth::*;
use crate::ops::pointwise::table::*;
use std::f64::consts::LN_2;

macro_rules! binary_table {
    ($callback:ident) => {
        $callback! { Binary, 2, p;
            /// Adds: `x + y`.
            Add add(x, y) = x + y, [(g) => g, (g) => g], Any, Cheap, (x.add(y)), Parts;
            /// Subtracts: `x - y`.
            Sub sub(x, y) = x - y, [(g) => g, (g) => -g], Any, Cheap, (x.sub(y)), Parts;
            /// Multiplies: `x * y`.
            Mul mul(x, y) = x * y, [(g, y) => g * y, (g, x) => g * x], Any, Cheap, (x.mul(y)), Product;
            /// Divides: `x / y`; integers give a float.
            Div div(x, y) = x / y, [(g, y) => g / divisor(g, y), (g, y, o) => -(g * zero_guard(g, o / y))],
                Any, Cheap, float, Two(|z, w| z / w);
            /// Returns the power `x ** y`. At `x = 0` the partial in `y` is 0 for `y >= 0`, as in PyTorch.
            Pow pow(x, y) = x.pow(y),
                [(g, x, y) => g * zero_guard(g, power_slope(x, y)),
                 (g, x, o) => exponent_slope(x, o, g)], F32, Costly, (x.pow(y)), Two(ComplexSym::pow);
            /// Returns the larger of two values; at a tie each gets half of the gradient.
            Maximum maximum(x, y) = R::select(x.gt(y) | x.ne(x), x, y),
                [(g, x, y) => half_tie(x, y, g), (g, x, y) => half_tie(y, x, g)],
                Any, Cheap, (x.max(y)), Undefined;
            /// Returns the smaller of two values; at a tie each gets half of the gradient.
            Minimum minimum(x, y) = R::select(x.lt(y) | x.ne(x), x, y),
                [(g, x, y) => half_tie(y, x, g), (g, x, y) => half_tie(x, y, g)],
                Any, Cheap, (x.min(y)), Undefined;
            /// Returns `floor(x / y)`. Integers over zero raise ZeroDivisionError; on a GPU the result is 0.
            FloorDivide floor_divide(x, y) = floor_quotient(x, y), [],
                Any, Cheap, (x.floor_div(y)), Undefined;
            /// Returns the remainder with the sign of the divisor, as Python's `%`. Integers over zero raise
            /// ZeroDivisionError; on a GPU the result is 0.
            Remainder remainder(x, y) = floor_remainder(x, y),
                [(g) => g, (g, x, y) => -(g * floor_quotient(x, y))], Any, Cheap, (x.remainder(y)), Undefined;
            /// Returns the remainder with the sign of the dividend, as C's `fmod`. Integers over zero raise
            /// ZeroDivisionError; on a GPU the result is 0.
            Fmod fmod(x, y) = x.fmod(y), [(g) => g, (g, x, y) => -(g * truncated(x / y))],
                Any, Cheap, (x.fmod(y)), Undefined;
            /// Returns the angle in radians of the point `(y, x)`, from `-pi` to `pi`; at `(0, 0)` the
            /// gradient is 0.
            Atan2 atan2(x, y) = angle(x, y),
                [(g, x, y) => g * angle_slope(y, x),
                 (g, x, y) => -(g * angle_slope(x, y))], Any, Cheap, float, Undefined;
            /// Returns the larger of two values, or the one that is not NaN; at a tie each gets half of the
            /// gradient.
            Fmax fmax(x, y) = R::select(x.gt(y) | y.ne(y), x, y),
                [(g, x, y) => R::select(y.ne(y), g, half_tie(x, y, g)),
                 (g, x, y) => R::select(x.ne(x) & y.eq(y), g, half_tie(y, x, g))],
                Any, Cheap, (x.max(y)), Undefined;
            /// Returns the smaller of two values, or the one that is not NaN; at a tie each gets half of the
            /// gradient.
            Fmin fmin(x, y) = R::select(x.lt(y) | y.ne(y), x, y),
                [(g, x, y) => R::select(y.ne(y), g, half_tie(y, x, g)),
                 (g, x, y) => R::select(x.ne(x) & y.eq(y), g, half_tie(x, y, g))],
                Any, Cheap, (x.min(y)), Undefined;
            /// Returns `log(exp(x) + exp(y))` without overflow.
            LogAddExp logaddexp(x, y) =
                R::select(x.eq(y), x + LN_2, R::select(x.gt(y), x, y) + (-((x - y).abs())).exp().log1p()),
                [(g, x, y) => share(x, y, g), (g, x, y) => share(y, x, g)],
                Any, Cheap, float, Two(ComplexSym::log_add_exp);
            /// Returns the length of `(x, y)` without overflow, infinite where either is; at 0 the gradient
            /// is 0.
            Hypot hypot(x, y) = hypotenuse(x.abs(), y.abs()),
                [(g, x, y) => g * hypot_slope(x, y), (g, x, y) => g * hypot_slope(y, x)],
                Any, Cheap, float, Undefined;
            /// Returns `x` with the sign of `y`; zero has a sign, too.
            Copysign copysign(x, y) =
                R::select(y.lt(R::lit(0.0)) | (1.0 / y).lt(R::lit(0.0)), -(x.abs()), x.abs()),
                [(g, x, o) => g * (sign(x)
                    * R::select(o.lt(R::lit(0.0)) | (1.0 / o).lt(R::lit(0.0)), R::lit(-1.0), R::lit(1.0))),
                 (g) => R::lit(0.0)], Any, Cheap, float, Undefined;
            /// Returns `x * log(y)`, 0 where `x` is 0, unless `y` is NaN; there the slope in `x` is the
            /// logarithm, and 0 where that is not finite. Integers give a float.
            Xlogy xlogy(x, y) = x * logged(x, y, 0.0).log(),
                [(g, x, y) => g * logged(x, y, 0.0).log(), (g, x, y) => g * unless_unmet(x, y, 0.0)],
                F32, Costly, float, Two(|z, w| z.times_log(w, 0.0));
            /// Returns `x * log(1 + y)`, 0 where `x` is 0, unless `y` is NaN; there the slope in `x` is the
            /// logarithm, and 0 where that is not finite. Integers give a float.
            Xlog1py xlog1py(x, y) = x * logged(x, y, 1.0).log1p(),
                [(g, x, y) => g * logged(x, y, 1.0).log1p(), (g, x, y) => g * unless_unmet(x, y, 1.0)],
                F32, Costly, float, Two(|z, w| z.times_log(w, 1.0));
            /// Returns the step at zero: 0 below, `y` at zero, 1 above.
            Heaviside heaviside(x, y) = R::select(x.eq(R::lit(0.0)), y,
                R::select(x.lt(R::lit(0.0)), R::lit(0.0), R::select(x.eq(x), R::lit(1.0), x))),
                [(g) => R::lit(0.0), (g, x) => R::select(x.eq(R::lit(0.0)), g, R::lit(0.0))],
                Any, Cheap,
                (y.mul(I::lit(1).sub(x.sign().mul(x.sign()))).add(x.sign().max(I::lit(0)))), Undefined;
        }
    };
}
pub(crate) use binary_table;

binary_table!(define_table);
