//! `IntExpr`: the number type of the template's type `T` whose operations write WGSL, as
//! `gpu::shader::wgsl::Expr` does for floats.
//!
//! `max` and `min` become the functions of that name. No other comparison of `Ord` can be translated, since
//! its result is needed at once; a rule that makes one is rejected.

use super::wgsl::{infix, methods, prefix, push, write};
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
    /// 1 where the values are in the relation that WGSL spells `sign`, else 0.
    pub fn relation(self, sign: &str, other: IntExpr) -> IntExpr {
        IntExpr(push(&format_args!("T(v{} {sign} v{})", self.0, other.0)))
    }

    /// `yes` where `self` is not 0, else `no`.
    pub fn select(self, yes: IntExpr, no: IntExpr) -> IntExpr {
        IntExpr(push(&format_args!("select(v{}, v{}, v{} != T(0))", no.0, yes.0, self.0)))
    }
}

impl Integer for IntExpr {
    methods!(infix -> IntExpr: add "+", sub "-", mul "*", and "&", or "|", xor "^");
    methods!(function -> IntExpr: floor_div "floor_div", remainder "remainder", fmod "int_fmod",
        pow "int_pow", shl "int_shl", shr "int_shr", gcd "int_gcd");
    methods!(prefix -> IntExpr: abs "abs", sign "int_sign");
    fn lit(value: i64) -> Self {
        IntExpr(push(&format_args!("bitcast<T>({:#x}u)", value as u32)))
    }
}

impl Ord for IntExpr {
    fn cmp(&self, other: &Self) -> Ordering {
        WAS_COMPARED.set(true);
        self.0.cmp(&other.0)
    }
    methods!(function -> IntExpr: max "max", min "min");
    fn clamp(self, low: Self, high: Self) -> Self {
        self.max(low).min(high)
    }
}

impl PartialOrd for IntExpr {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The functions that integer rules of this dtype call.
pub fn library(dtype: DType) -> &'static str {
    if dtype == DType::U32 { shader!("lib/integers_unsigned") } else { shader!("lib/integers_signed") }
}

/// Returns the text of `fn op` for a function of values of the type `T`.
pub fn text(args: &[&str], body: &dyn Fn(&[IntExpr]) -> IntExpr) -> String {
    write("op", "T", args, &|x| body(&x.iter().map(|&v| IntExpr(v)).collect::<Vec<_>>()).0).0
}

/// Returns the text of `fn op` for an integer rule, without the functions of [`library`] that it calls.
pub fn function<const N: usize, P: PointwiseInt<N>>(args: &[&str; N], rule: P) -> Result<String> {
    WAS_COMPARED.set(false);
    let text = text(args, &|x| rule.apply(std::array::from_fn(|i| x[i])));
    if WAS_COMPARED.get() {
        return Err(Error::unsupported(
            "internal: an integer rule compares its inputs; it has no gpu kernel",
        ));
    }
    Ok(text)
}
