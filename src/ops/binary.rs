//! Functions of two variables in one table: value and both partial derivatives.
//!
//! Same columns as `unary.rs`, with two inputs `x`, `y` and one derivative for each.

use crate::ops::formulas::{divisor, half_tie, tame, where_nonzero};
use crate::ops::table::define_table;

macro_rules! binary_table {
    ($callback:ident) => {
        $callback! { Binary, 2, p;
            /// Sum `x + y`.
            Add add(x, y) = x + y, [(g) => g, (g) => g];
            /// Difference `x - y`.
            Sub sub(x, y) = x - y, [(g) => g, (g) => -g];
            /// Product `x * y`.
            Mul mul(x, y) = x * y, [(g, y) => g * y, (g, x) => g * x];
            /// Quotient `x / y`; integers give a float.
            Div div(x, y) = x / y, [(g, y) => g / divisor(g, y), (g, y, o) => -(g * tame(g, o / y))];
            /// Power `x ** y`. At `x = 0` the partial in `y` is 0, as in PyTorch.
            Pow pow(x, y) = x.pow(y),
                [(g, x, y) => where_nonzero(y, g * tame(g, y * x.pow(y - 1.0))),
                 (g, x, o) => R::select(x.eq(R::lit(0.0)), R::lit(0.0), g * tame(g, o * x.log()))];
            /// Larger of two values; at a tie each gets half of the gradient.
            Maximum maximum(x, y) = R::select(x.gt(y) | x.ne(x), x, y),
                [(g, x, y) => half_tie(x, y, g), (g, x, y) => half_tie(y, x, g)];
            /// Smaller of two values; at a tie each gets half of the gradient.
            Minimum minimum(x, y) = R::select(x.lt(y) | x.ne(x), x, y),
                [(g, x, y) => half_tie(y, x, g), (g, x, y) => half_tie(x, y, g)];
            /// `floor(x / y)`. Integers over zero raise ZeroDivisionError; on a GPU the result is 0.
            FloorDivide floor_divide(x, y) = (x / y).floor(), [];
            /// Remainder with the sign of the divisor, as Python's `%`. Integers over zero raise ZeroDivisionError; on a GPU
            /// the result is 0.
            Remainder remainder(x, y) = x - (x / y).floor() * y, [(g) => g, (g, x, y) => -(g * (x / y).floor())];
        }
    };
}
pub(crate) use binary_table;

binary_table!(define_table);
