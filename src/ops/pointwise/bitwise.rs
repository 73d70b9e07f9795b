//! Functions of two numbers without derivatives: integers as rows of bits (on bools, `and`, `or` and `xor`
//! are logic), the greatest common divisor, the next floating point number towards another.

use crate::array::dtype::Category;
use crate::device::pointwise_int;
use crate::error::Named;
use crate::ops::pointwise::compare::{Logic, Logical};
use crate::ops::pointwise::operand::{Operand, bind_met, met, promote};
use crate::ops::pointwise::table::integer_rule;
use crate::ops::prelude::*;

/// A function of two integers that has no meaning for other numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bits {
    /// The bits that both have.
    And,
    /// The bits that at least one has.
    Or,
    /// The bits that exactly one has.
    Xor,
    /// Bits moved up.
    LeftShift,
    /// Bits moved down, the sign staying.
    RightShift,
    /// Greatest common divisor.
    Gcd,
}

impl Bits {
    /// The public name.
    pub const fn name(self) -> &'static str {
        match self {
            Bits::And => "bitwise_and",
            Bits::Or => "bitwise_or",
            Bits::Xor => "bitwise_xor",
            Bits::LeftShift => "bitwise_left_shift",
            Bits::RightShift => "bitwise_right_shift",
            Bits::Gcd => "gcd",
        }
    }

    /// What it is for truth values.
    const fn logic(self) -> Option<Logic> {
        match self {
            Bits::And => Some(Logic::And),
            Bits::Or => Some(Logic::Or),
            Bits::Xor => Some(Logic::Xor),
            Bits::LeftShift | Bits::RightShift | Bits::Gcd => None,
        }
    }
}

/// A [`Bits`] of two integer tensors of one dtype.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bitwise {
    /// Which.
    pub fun: Bits,
}

kernel! {
    Bitwise, self.fun.name(), |self, x| {
        macro_rules! rule {
            ($name:ident) => {{
                pointwise_int(self.fun.name(), [x[0], x[1]], integer_rule!([x, y] => x.$name(y)))
            }};
        }
        match self.fun {
            Bits::And => rule!(and),
            Bits::Or => rule!(or),
            Bits::Xor => rule!(xor),
            Bits::LeftShift => rule!(shl),
            Bits::RightShift => rule!(shr),
            Bits::Gcd => rule!(gcd),
        }
    }
}

impl Discrete for Bitwise {
    batch!(aligned: |self| *self);
}

/// A [`Bits`] of two operands, at least one of them a tensor.
pub fn bitwise(fun: Bits, x: Operand, y: Operand) -> Result<Tensor> {
    let (like, dtype) = met(|| fun.name(), &x, &y)?;
    check_dtype(fun.name(), dtype, fun.logic().is_some())?;
    let (x, y) = (x.to_tensor(dtype, like)?, y.to_tensor(dtype, like)?);
    match fun.logic() {
        Some(logic) if dtype == DType::Bool => bind(Logical { logic }, &[&x, &y]).named(fun.name()),
        _ => bind(Bitwise { fun }, &[&x, &y]),
    }
}

/// Raises unless numbers of this type have bits to work on.
fn check_dtype(name: &str, dtype: DType, bools: bool) -> Result<()> {
    let (expected, way) = match dtype.category() {
        Category::Int => return Ok(()),
        Category::Bool if bools => return Ok(()),
        _ if bools => ("bools or integers", "compare first, or use logical_and and its kin"),
        _ => ("integers", "convert with .to() to an integer dtype"),
    };
    Err(Error::dtype(format!("{name}: {expected} expected, got {dtype}; {way}")))
}

/// The next number after `x` in the direction of `y`. Inputs: two floats of one dtype.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NextAfter;

kernel! {
    NextAfter, "nextafter", |self, x| {
        on_device!(x[0], logic::next_after(x[0], x[1]))
    }
}

impl Discrete for NextAfter {
    batch!(aligned: |self| *self);
}

impl Tensor {
    /// The next number of the dtype after each element in the direction of `other`; NaN where either is.
    pub fn nextafter(&self, other: &Tensor) -> Result<Tensor> {
        bind_met(NextAfter, self, other, promote(self, other).to_float())
    }

    /// Every bit the opposite; on bools the opposite.
    pub fn bitwise_not(&self) -> Result<Tensor> {
        check_dtype("bitwise_not", self.dtype(), true)?;
        if self.dtype() == DType::Bool {
            return self.logical_not();
        }
        // -1 - x, in every dtype.
        let ones = self.scalar_like(0.0)?.sub(1_i64)?;
        bind(Bitwise { fun: Bits::Xor }, &[self, &ones])
    }
}
