//! Readings of rules: `Text` prints a rule as a formula, `Count` counts its floating point operations.
//!
//! The documentation's table of operations (`docs/operations.md`) and the counts of `src/watch/cost.rs` come
//! from here, so neither can disagree with what kernels compute.

mod count;
mod text;

pub use count::spent;

/// An operator of a number type, with literals on either side.
macro_rules! operator {
    ($inline:ident [$($bound:tt)*] $type:ty; $trait:ident $method:ident |$a:ident, $b:ident| $body:expr) => {
        impl<$($bound)*> std::ops::$trait for $type {
            type Output = $type;
            #[inline($inline)]
            #[allow(clippy::suspicious_arithmetic_impl)]
            fn $method(self, other: $type) -> $type {
                let ($a, $b) = (self, other);
                $body
            }
        }
        impl<$($bound)*> std::ops::$trait<f64> for $type {
            type Output = $type;
            #[inline($inline)]
            fn $method(self, other: f64) -> $type {
                std::ops::$trait::$method(self, <$type>::lit(other))
            }
        }
        impl<$($bound)*> std::ops::$trait<$type> for f64 {
            type Output = $type;
            #[inline($inline)]
            fn $method(self, other: $type) -> $type {
                std::ops::$trait::$method(<$type>::lit(self), other)
            }
        }
    };
}
pub(super) use operator;

/// Functions of one number of a [`reading!`].
macro_rules! primitive_rows {
    ($($(#[doc = $doc:literal])? $name:ident $row:ident,)*) => {$(
        fn $name(self) -> Self {
            self.unary(Unary::$row, |x| crate::math::lane::F64Fma(x).$name().0)
        }
    )*};
}
pub(super) use primitive_rows;

/// Makes a type a `Real` that sees a rule operation by operation: its `unary` and `binary` are told the row
/// of the tables and the same function of plain numbers, its `compare` the relation, and `logic` of its mask
/// the connective. The rest of `Real` stands behind its name.
macro_rules! reading {
    ($number:ident, $mask:ident; $($rest:tt)*) => {
        use $crate::ops::pointwise::reading::operator;
        operator!(never [] $number; Add add |x, y| x.binary(y, Binary::Add, |x, y| x + y));
        operator!(never [] $number; Sub sub |x, y| x.binary(y, Binary::Sub, |x, y| x - y));
        operator!(never [] $number; Mul mul |x, y| x.binary(y, Binary::Mul, |x, y| x * y));
        operator!(never [] $number; Div div |x, y| x.binary(y, Binary::Div, |x, y| x / y));

        impl std::ops::Neg for $number {
            type Output = $number;
            fn neg(self) -> $number {
                self.unary(Unary::Neg, |x| -x)
            }
        }

        impl std::ops::BitAnd for $mask {
            type Output = $mask;
            fn bitand(self, other: $mask) -> $mask {
                self.logic(other, Logic::And)
            }
        }

        impl std::ops::BitOr for $mask {
            type Output = $mask;
            fn bitor(self, other: $mask) -> $mask {
                self.logic(other, Logic::Or)
            }
        }

        impl std::ops::Not for $mask {
            type Output = $mask;
            fn not(self) -> $mask {
                self.logic(self, Logic::Not)
            }
        }

        impl Real for $number {
            type Mask = $mask;
            fn lt(self, other: Self) -> $mask {
                self.compare(other, Relation::Lt)
            }
            fn le(self, other: Self) -> $mask {
                self.compare(other, Relation::Le)
            }
            fn eq(self, other: Self) -> $mask {
                self.compare(other, Relation::Eq)
            }
            fn ne(self, other: Self) -> $mask {
                self.compare(other, Relation::Ne)
            }
            crate::ops::pointwise::reading::primitive_rows! { abs Abs, floor Floor, round Round, sqrt Sqrt, }
            crate::math::functions::primitives!(crate::ops::pointwise::reading::primitive_rows);
            fn pow(self, exponent: Self) -> Self {
                self.binary(exponent, Binary::Pow, f64::powf)
            }
            fn fmod(self, divisor: Self) -> Self {
                self.binary(divisor, Binary::Fmod, |x, y| x % y)
            }
            $($rest)*
        }
    };
}
pub(super) use reading;

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
