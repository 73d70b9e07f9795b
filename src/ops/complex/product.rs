//! The product of complex numbers.

use crate::arguments::complex::Gate;
use crate::ops::pointwise::operand::{bind_expanded, expanded};
use crate::ops::prelude::*;
use crate::watch::debug::{self, Modes};

/// `x y` or `x conj(y)` of operands of one shape.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ComplexProduct {
    /// Whether the right operand is conjugated.
    pub conjugate: bool,
    /// The operand, a cotangent or tangent, whose zeros stay zero when multiplied by infinities.
    pub gate: Gate,
}

/// The product of two complex tensors; broadcasts.
pub fn multiply(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    bind_expanded(ComplexProduct { conjugate: false, gate: Gate::Open }, x, y)
}

impl ComplexProduct {
    /// A product with a cotangent or tangent, the operand that `gate` names.
    fn of_slope(conjugate: bool, gate: Gate, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        let gate = if debug::modes().has(Modes::STRICT) { Gate::Open } else { gate };
        bind(ComplexProduct { conjugate, gate }, &[x, y])
    }
}

kernel! {
    ComplexProduct, "mul", |self, x| {
        on_device!(x[0], complex::product(x[0], x[1], self.conjugate, self.gate))
    },
    /// Four products and two sums of parts.
    flops |_x, y| cost::each(y, 6)
}

impl Bilinear for ComplexProduct {
    const TRANSPOSES: [&'static str; 2] = ["g conj(y) for x", "g conj(x) for y"];

    fn transpose_left(&self, g: &Tensor, y: &Tensor, _c: &Vjp) -> Result<Tensor> {
        Self::of_slope(!self.conjugate, Gate::Left, g, y)
    }
    fn transpose_right(&self, g: &Tensor, x: &Tensor, _c: &Vjp) -> Result<Tensor> {
        if self.conjugate {
            return Self::of_slope(true, Gate::Right, x, g);
        }
        Self::of_slope(true, Gate::Left, g, x)
    }
    fn jvp(&self, x: &[&Tensor], _y: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads> {
        let left = t[0].as_ref().map(|t| Self::of_slope(self.conjugate, Gate::Left, t, x[1])).transpose()?;
        let right =
            t[1].as_ref().map(|t| Self::of_slope(self.conjugate, Gate::Right, x[0], t)).transpose()?;
        Ok(smallvec![added(left, right)?])
    }
    batch!(expanded: |self| *self);
}
