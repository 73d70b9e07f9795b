//! `IntExpr`: the number type of the template's type `T` whose operations write WGSL, as
//! `gpu::shader::wgsl::Expr` does for floats.
//!
//! `max` and `min` become the functions of that name. No other comparison of `Ord` can be translated, since
//! its result is needed at once; a rule that makes one is rejected.

use super::wgsl::{infix, methods, prefix, push, write};
use crate::arguments::logic::Relation;
use crate::array::dtype::DType;
use crate::error::{Error, Result};
use crate::math::real::{Integer, PointwiseInt};
use std::cell::Cell;
use std::cmp::Ordering;

/// A named value of the function being written, of the type `T` of the template.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct IntExpr(u32);

thread_local! {
    /// Whether the rule being written has compared values.
    static WAS_COMPARED: Cell<bool> = const { Cell::new(false) };
}

impl IntExpr {
    /// 1 where the values are in this relation, else 0.
    pub fn relation(self, relation: Relation, other: IntExpr) -> IntExpr {
        let (x, y) = (self.0, other.0);
        IntExpr(match relation {
            Relation::Lt => push(&format_args!("truth(less(v{x}, v{y}))")),
            Relation::Le => push(&format_args!("truth(!less(v{y}, v{x}))")),
            Relation::Eq => push(&format_args!("truth(same(v{x}, v{y}))")),
            Relation::Ne => push(&format_args!("truth(!same(v{x}, v{y}))")),
            Relation::Gt => push(&format_args!("truth(less(v{y}, v{x}))")),
            Relation::Ge => push(&format_args!("truth(!less(v{x}, v{y}))")),
        })
    }

    /// `yes` where `self` is not 0, else `no`.
    pub fn select(self, yes: IntExpr, no: IntExpr) -> IntExpr {
        IntExpr(push(&format_args!("select(v{}, v{}, is_true(v{}))", no.0, yes.0, self.0)))
    }
}

impl Integer for IntExpr {
    methods!(infix -> IntExpr: and "&", or "|", xor "^");
    methods!(function -> IntExpr: add "plus", sub "minus", mul "times", fmod "int_fmod",
        floor_div "floor_div", remainder "remainder",
        pow "int_pow", shl "int_shl", shr "int_shr", gcd "int_gcd");
    methods!(prefix -> IntExpr: abs "int_abs", sign "int_sign");
    fn lit(value: i64) -> Self {
        IntExpr(push(&format_args!("literal({:#x}u, {:#x}u)", value as u32, (value >> 32) as u32)))
    }
}

impl Ord for IntExpr {
    fn cmp(&self, other: &Self) -> Ordering {
        WAS_COMPARED.set(true);
        self.0.cmp(&other.0)
    }
    methods!(function -> IntExpr: max "larger", min "smaller");
    fn clamp(self, low: Self, high: Self) -> Self {
        self.max(low).min(high)
    }
}

impl PartialOrd for IntExpr {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The functions that integer rules call in the arithmetic of `compute`; a template has those of two words.
fn library(compute: DType) -> &'static str {
    match compute {
        DType::U32 => shader!("lib/integers_unsigned"),
        DType::I32 => shader!("lib/integers_signed"),
        _ => "",
    }
}

/// Returns the text of `fn op` for a function of values of the type `T` of `compute`, with what it calls.
pub fn text(compute: DType, args: &[&str], body: &dyn Fn(&[IntExpr]) -> IntExpr) -> String {
    let op = write("op", "T", args, &|x| body(&x.iter().map(|&v| IntExpr(v)).collect::<Vec<_>>()).0).0;
    op + library(compute)
}

/// Returns the text of `fn op` for an integer rule.
pub fn function<const N: usize, P: PointwiseInt<N>>(
    compute: DType, args: &[&str; N], rule: P,
) -> Result<String> {
    WAS_COMPARED.set(false);
    let text = text(compute, args, &|x| rule.apply(std::array::from_fn(|i| x[i])));
    if WAS_COMPARED.get() {
        return Err(Error::unsupported(
            "internal: an integer rule compares its inputs; it has no gpu kernel",
        ));
    }
    Ok(text)
}
