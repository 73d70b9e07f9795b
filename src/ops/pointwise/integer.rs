//! The rows of the tables that integers have too: wrapping arithmetic, Python's rounding for division.

use crate::math::real::PointwiseInt;
use crate::ops::pointwise::binary::Binary;
use crate::ops::pointwise::elementwise::{Map, operands};
use crate::ops::pointwise::table::{Fun, VisitInt};
use crate::ops::prelude::*;

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

struct RunInt<'a>(&'a [&'a Array], Fun);

impl VisitInt for RunInt<'_> {
    type Out = Result<Array>;
    fn visit<const N: usize, P: PointwiseInt<N>>(self, rule: P) -> Result<Array> {
        crate::device::pointwise_int(operands(self.1, self.0)?, rule)
    }
}

/// Runs a row by its formula for integers.
pub fn eval_int(op: &Map, x: &[&Array]) -> Result<Array> {
    check_divisor(op, x)?;
    op.fun.integer(RunInt(x, op.fun)).unwrap_or_else(|| {
        Err(Error::dtype(format!("{}: not defined for {}; convert with .float()", op.name(), x[0].dtype())))
    })
}
