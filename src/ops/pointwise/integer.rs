//! The rows of the tables that integers have too: wrapping arithmetic, Python's rounding for division.

use crate::array::Array;
use crate::array::buffer::Device;
use crate::array::dtype::DType;
use crate::error::{Error, Result};
use crate::math::real::{Integer, PointwiseInt};
use crate::op::Kernel;
use crate::ops::pointwise::binary::Binary;
use crate::ops::pointwise::elementwise::Map;
use crate::ops::pointwise::table::Fun;
use crate::ops::pointwise::unary::Unary;

/// A function of integers, with attributes in `_p`, as a type that implements `PointwiseInt`.
macro_rules! integer_rule {
    ($n:literal, [$($x:ident),*] => $body:expr) => {{
        #[derive(Clone, Copy)]
        struct Rule([f64; 2]);
        impl PointwiseInt<$n> for Rule {
            #[inline(always)]
            fn apply<I: Integer>(&self, [$($x),*]: [I; $n]) -> I {
                let _p = self.0;
                #[allow(clippy::redundant_closure_call)]
                ($body)(_p)
            }
        }
        Rule
    }};
}

pub(crate) use integer_rule;

/// Raises where an integer would be divided by zero. On a GPU the answer would come too late, and the result
/// is 0.
fn check_divisor(op: &Map, x: &[&Array]) -> Result<()> {
    let divides = matches!(op.fun, Fun::Binary(Binary::FloorDivide | Binary::Remainder | Binary::Fmod));
    if !divides || x[1].device() != Device::Cpu || x.iter().any(|a| a.numel() == 0) {
        return Ok(());
    }
    let nonzero = crate::cpu::pointwise::copy::cast(x[1], DType::Bool)?;
    let is_zero = nonzero.slice::<bool>()?.contains(&false);
    if is_zero {
        return Err(Error::zero_division(format!(
            "{}: {} cannot be divided by zero; mask the divisor with where(), or convert with .float() for \
             inf and nan",
            op.name(),
            x[1].dtype()
        )));
    }
    Ok(())
}

/// The rows that integers have too.
pub fn eval_int(op: &Map, x: &[&Array]) -> Result<Array> {
    check_divisor(op, x)?;
    let p = op.p.get();
    macro_rules! unary {
        ($body:expr) => {{
            let rule = integer_rule!(1, [x] => |_p: [f64; 2]| {
                let f: fn(I, [f64; 2]) -> I = $body;
                f(x, _p)
            });
            crate::device::pointwise_int([x[0]], rule(p))
        }};
    }
    macro_rules! binary {
        ($body:expr) => {{
            let rule = integer_rule!(2, [x, y] => |_p: [f64; 2]| { let f: fn(I, I) -> I = $body; f(x, y) });
            crate::device::pointwise_int([x[0], x[1]], rule(p))
        }};
    }
    match op.fun {
        Fun::Unary(Unary::Neg) => unary!(|x, _| I::lit(0).sub(x)),
        // By max and min, since a comparison of GPU integers has no value in the host.
        Fun::Unary(Unary::Abs) if x[0].dtype().is_unsigned() => Ok(x[0].clone()),
        Fun::Unary(Unary::Abs) => unary!(|x, _| x.max(I::lit(0).sub(x))),
        Fun::Unary(Unary::Sign) if x[0].dtype().is_unsigned() => unary!(|x, _| x.min(I::lit(1))),
        Fun::Unary(Unary::Sign) => unary!(|x, _| x.max(I::lit(-1)).min(I::lit(1))),
        Fun::Unary(Unary::Square) => unary!(|x, _| x.mul(x)),
        Fun::Unary(Unary::Relu) => unary!(|x, _| x.max(I::lit(0))),
        Fun::Unary(Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc) => Ok(x[0].clone()),
        Fun::Unary(Unary::Frac) => unary!(|x, _| x.sub(x)),
        Fun::Binary(Binary::Add) => binary!(|x, y| x.add(y)),
        Fun::Binary(Binary::Sub) => binary!(|x, y| x.sub(y)),
        Fun::Binary(Binary::Mul) => binary!(|x, y| x.mul(y)),
        Fun::Binary(Binary::Pow) => binary!(|x, y| x.pow(y)),
        Fun::Binary(Binary::Maximum) => binary!(|x, y| x.max(y)),
        Fun::Binary(Binary::Minimum) => binary!(|x, y| x.min(y)),
        Fun::Binary(Binary::FloorDivide) => binary!(|x, y| x.floor_div(y)),
        Fun::Binary(Binary::Remainder) => binary!(|x, y| x.remainder(y)),
        Fun::Binary(Binary::Fmod) => binary!(|x, y| x.fmod(y)),
        _ => Err(Error::dtype(format!(
            "{}: not defined for {}; convert with .float()",
            op.name(),
            x[0].dtype()
        ))),
    }
}
