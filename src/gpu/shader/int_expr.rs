//! `IntExpr`: the integer type whose operations write WGSL, as `gpu::shader::wgsl::Expr` does for floats.
//!
//! `max` and `min` become the functions of that name. No other comparison can be translated, since its result
//! is needed at once; a rule that makes one is rejected.

use crate::array::dtype::DType;
use crate::error::{Error, Result};
use crate::math::real::{Integer, PointwiseInt};
use std::cell::RefCell;
use std::cmp::Ordering;

/// A named value of the function being written: an `i32` or a `u32`, the type `T` of the template.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct IntExpr(u32);

#[derive(Default)]
struct Writer {
    text: String,
    values: u32,
    was_compared: bool,
}

thread_local! {
    static WRITER: RefCell<Writer> = RefCell::default();
}

fn push(value: String) -> IntExpr {
    WRITER.with_borrow_mut(|w| {
        let id = w.values;
        w.values += 1;
        w.text.push_str(&format!("  let v{id} = {value};\n"));
        IntExpr(id)
    })
}

fn call(name: &str, x: IntExpr, y: IntExpr) -> IntExpr {
    push(format!("{name}(v{}, v{})", x.0, y.0))
}

impl Integer for IntExpr {
    fn abs(self) -> Self {
        push(format!("abs(v{})", self.0))
    }
    fn sign(self) -> Self {
        push(format!("T(v{0} > T(0)) - T(v{0} < T(0))", self.0))
    }
    fn add(self, other: Self) -> Self {
        push(format!("v{} + v{}", self.0, other.0))
    }
    fn sub(self, other: Self) -> Self {
        push(format!("v{} - v{}", self.0, other.0))
    }
    fn mul(self, other: Self) -> Self {
        push(format!("v{} * v{}", self.0, other.0))
    }
    fn floor_div(self, other: Self) -> Self {
        call("floor_div", self, other)
    }
    fn remainder(self, other: Self) -> Self {
        call("remainder", self, other)
    }
    fn pow(self, exponent: Self) -> Self {
        call("int_pow", self, exponent)
    }
    fn lit(value: i64) -> Self {
        push(format!("bitcast<T>({:#x}u)", value as u32))
    }
    fn fmod(self, divisor: Self) -> Self {
        call("int_fmod", self, divisor)
    }
    fn and(self, other: Self) -> Self {
        push(format!("v{} & v{}", self.0, other.0))
    }
    fn or(self, other: Self) -> Self {
        push(format!("v{} | v{}", self.0, other.0))
    }
    fn xor(self, other: Self) -> Self {
        push(format!("v{} ^ v{}", self.0, other.0))
    }
    fn shl(self, count: Self) -> Self {
        call("int_shl", self, count)
    }
    fn shr(self, count: Self) -> Self {
        call("int_shr", self, count)
    }
    fn gcd(self, other: Self) -> Self {
        call("int_gcd", self, other)
    }
}

impl Ord for IntExpr {
    fn cmp(&self, other: &Self) -> Ordering {
        WRITER.with_borrow_mut(|w| w.was_compared = true);
        self.0.cmp(&other.0)
    }
    fn max(self, other: Self) -> Self {
        call("max", self, other)
    }
    fn min(self, other: Self) -> Self {
        call("min", self, other)
    }
    fn clamp(self, low: Self, high: Self) -> Self {
        call("min", call("max", self, low), high)
    }
}

impl PartialOrd for IntExpr {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The functions that integer rules of this dtype call.
pub fn library(dtype: DType) -> &'static str {
    if dtype == DType::U32 { UNSIGNED } else { SIGNED }
}

const UNSIGNED: &str = include_str!("../../../shaders/lib/integers_unsigned.wgsl");
const SIGNED: &str = include_str!("../../../shaders/lib/integers_signed.wgsl");

/// Returns the text of `fn op` for an integer rule, without the functions of [`library`] that it calls.
pub fn function<const N: usize, P: PointwiseInt<N>>(args: &[&str; N], rule: P) -> Result<String> {
    WRITER.with_borrow_mut(|w| *w = Writer::default());
    let x = args.map(|name| push(name.to_string()));
    let result = rule.apply(x);
    let writer = WRITER.with_borrow_mut(std::mem::take);
    if writer.was_compared {
        return Err(Error::unsupported(
            "internal: an integer rule compares its inputs; it has no gpu kernel",
        ));
    }
    let parameters = args.map(|name| format!("{name}: T")).join(", ");
    Ok(format!("fn op({parameters}) -> T {{\n{}  return v{};\n}}\n", writer.text, result.0))
}
