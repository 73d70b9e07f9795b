//! `IntExpr`: the integer that writes WGSL, as `gpu::wgsl::Expr` does for floats.
//!
//! `max` and `min` become the functions of that name. Any other comparison cannot be written down, since its
//! answer is needed at once; a rule that makes one is refused.

use crate::array::dtype::DType;
use crate::error::{Error, Result};
use crate::math::real::{Integer, PointwiseInt};
use std::cell::RefCell;
use std::cmp::Ordering;

/// A named value of the function that is being written: an `i32` or a `u32`, the type `T` of the skeleton.
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

/// The functions that rules of integers of this type call.
pub fn library(dtype: DType) -> &'static str {
    if dtype == DType::U32 { UNSIGNED } else { SIGNED }
}

/// Division, powers, shifts and divisors of numbers without sign, as `Integer` defines them.
const UNSIGNED: &str = "
fn floor_div(x: u32, y: u32) -> u32 {
  if (y == 0u) { return 0u; }
  return x / y;
}
fn remainder(x: u32, y: u32) -> u32 {
  if (y == 0u) { return 0u; }
  return x % y;
}
fn int_fmod(x: u32, y: u32) -> u32 { return remainder(x, y); }
fn int_shl(x: u32, n: u32) -> u32 { return select(0u, x << (n & 31u), n < 32u); }
fn int_shr(x: u32, n: u32) -> u32 { return select(0u, x >> (n & 31u), n < 32u); }
fn int_gcd(x: u32, y: u32) -> u32 {
  var a = x;
  var b = y;
  for (; b != 0u; ) {
    let rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}
fn int_pow(x: u32, n: u32) -> u32 {
  var result = 1u;
  var base = x;
  for (var rest = n; rest > 0u; rest >>= 1u) {
    if ((rest & 1u) == 1u) { result *= base; }
    base *= base;
  }
  return result;
}
";

/// Division, power, shifts and common divisor as `Integer` defines them.
const SIGNED: &str = "
fn floor_div(x: i32, y: i32) -> i32 {
  if (y == 0) { return 0; }
  if (y == -1) { return 0 - x; }
  let q = x / y;
  return select(q, q - 1, q * y != x && (x < 0) != (y < 0));
}
fn remainder(x: i32, y: i32) -> i32 {
  if (y == 0 || y == -1) { return 0; }
  return x - floor_div(x, y) * y;
}
fn int_fmod(x: i32, y: i32) -> i32 {
  if (y == 0 || y == -1) { return 0; }
  return x % y;
}
fn int_shl(x: i32, n: i32) -> i32 {
  if (n < 0 || n > 31) { return 0; }
  return x << u32(n);
}
fn int_shr(x: i32, n: i32) -> i32 {
  if (n < 0 || n > 31) { return x >> 31u; }
  return x >> u32(n);
}
fn int_gcd(x: i32, y: i32) -> i32 {
  var a = x;
  var b = y;
  while (b != 0) {
    let rest = int_fmod(a, b);
    a = b;
    b = rest;
  }
  return select(a, 0 - a, a < 0);
}
fn int_pow(x: i32, n: i32) -> i32 {
  if (n < 0) {
    if (x == 1) { return 1; }
    if (x == -1) { return select(-1, 1, (n & 1) == 0); }
    return 0;
  }
  var result = 1;
  var base = x;
  for (var rest = n; rest > 0; rest >>= 1u) {
    if ((rest & 1) == 1) { result *= base; }
    base *= base;
  }
  return result;
}
";

/// The text of `fn op` for an integer rule; the functions that it calls are in [`library`].
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
