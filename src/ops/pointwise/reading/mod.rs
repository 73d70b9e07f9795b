//! Readings of rules for the books: `Text` prints a rule as a formula, `Count` counts its floating point
//! operations.
//!
//! The documentation's table of operations (`docs/operations.md`) and the counts of `src/watch/cost.rs` come
//! from here, so neither can disagree with what kernels compute.

mod count;
mod text;

/// The operators of a number type, with literals on either side.
macro_rules! operators {
    ($type:ident, $($trait:ident $method:ident |$a:ident, $b:ident| $body:expr;)*) => {$(
        impl $trait for $type {
            type Output = $type;
            fn $method(self, other: $type) -> $type {
                let ($a, $b) = (self, other);
                $body
            }
        }
        impl $trait<f64> for $type {
            type Output = $type;
            fn $method(self, other: f64) -> $type {
                $trait::$method(self, $type::lit(other))
            }
        }
        impl $trait<$type> for f64 {
            type Output = $type;
            fn $method(self, other: $type) -> $type {
                $trait::$method($type::lit(self), other)
            }
        }
    )*};
}
use operators;

#[cfg(test)]
mod tests {
    use crate::ops::pointwise::binary::Binary;
    use crate::ops::pointwise::table::{Fun, all};
    use crate::ops::pointwise::unary::{Parametric, Unary};

    #[test]
    fn formulas_read_as_people_write_them() {
        let partial = |fun: Unary| Fun::Unary(fun).partial_formula(0);
        assert_eq!(partial(Unary::Tanh).as_deref(), Some("g * (1 - o^2)"));
        assert_eq!(partial(Unary::Sqrt).as_deref(), Some("g * 0.5 / o"));
        assert_eq!(partial(Unary::Log).as_deref(), Some("g / x"));
        assert_eq!(partial(Unary::Floor), None);
        assert_eq!(Fun::Unary(Unary::Silu).formula(), "x * sigmoid(x)");
        assert_eq!(Fun::Binary(Binary::Div).partial_formula(1).as_deref(), Some("-g * o / y"));
        assert_eq!(Fun::Parametric(Parametric::ClampMin).formula(), "where(x < a, a, x)");
    }

    #[test]
    fn every_row_has_formulas_without_loose_ends() {
        for fun in all() {
            let partials = (0..2).filter_map(|i| fun.partial_formula(i));
            for text in partials.chain([fun.formula()]) {
                assert!(
                    !text.is_empty() && !text.contains('?') && !text.contains("e-20"),
                    "{}: {text}",
                    fun.name()
                );
            }
        }
    }

    #[test]
    fn counts_are_those_of_the_formulas() {
        assert_eq!(Fun::Binary(Binary::Add).flops(), 1);
        assert_eq!(Fun::Unary(Unary::Relu).flops(), 0);
        assert_eq!(Fun::Unary(Unary::Tanh).flops(), 1);
        // g * (1 - o * o)
        assert_eq!(Fun::Unary(Unary::Tanh).partial_flops(0), 3);
        // g * o
        assert_eq!(Fun::Unary(Unary::Exp).partial_flops(0), 1);
        assert_eq!(Fun::Unary(Unary::Floor).partial_flops(0), 0);
    }
}
