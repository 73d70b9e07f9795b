//! The cross product of vectors of length 3.

use crate::arguments::complex::Gate;
use crate::cpu::pointwise::cross::cross;
use crate::ops::pointwise::operand::{bind_expanded, expanded};
use crate::ops::prelude::*;
use crate::ops::views::join::cat;
use crate::watch::debug::{self, Modes};

/// The cross product along an axis of two tensors of one shape, in float32 or float64 on the CPU.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cross {
    /// The axis of length 3.
    pub axis: u8,
    /// The operand, a cotangent or tangent, whose zeros stay zero when multiplied by infinities.
    pub gate: Gate,
}

kernel! {
    Cross, "cross", |self, x| cross(x[0], x[1], self.axis as usize, self.gate),
    /// Six products and three differences for three elements.
    flops |_x, y| cost::each(y, 3)
}

impl Cross {
    /// The product with a cotangent or tangent, the operand that `gate` names.
    fn of_slope(self, gate: Gate, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        let gate = if debug::modes().has(Modes::STRICT) { Gate::Open } else { gate };
        bind(Cross { gate, ..self }, &[x, y])
    }
}

impl Bilinear for Cross {
    const TRANSPOSES: [&'static str; 2] = ["y cross g for x", "g cross x for y"];

    fn transpose_left(&self, g: &Tensor, y: &Tensor, _c: &Vjp) -> Result<Tensor> {
        self.of_slope(Gate::Right, y, g)
    }
    fn transpose_right(&self, g: &Tensor, x: &Tensor, _c: &Vjp) -> Result<Tensor> {
        self.of_slope(Gate::Left, g, x)
    }
    fn jvp(&self, x: &[&Tensor], _y: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads> {
        let left = t[0].as_ref().map(|t| self.of_slope(Gate::Left, t, x[1])).transpose()?;
        let right = t[1].as_ref().map(|t| self.of_slope(Gate::Right, x[0], t)).transpose()?;
        Ok(smallvec![added(left, right)?])
    }
    batch!(expanded: |self| Cross { axis: self.axis + 1, ..*self });
}

impl Tensor {
    /// The cross product along `axis`, of length 3 in both; other axes broadcast.
    pub fn cross(&self, other: &Tensor, axis: i64) -> Result<Tensor> {
        let i = self.shape().axis(axis, "cross")?;
        if self.shape().broadcast(&other.shape()).is_none() {
            let (a, b) = (self.shape(), other.shape());
            return Err(Error::shape(format!("cross: shapes {a} and {b} do not broadcast")));
        }
        let known = matches!(self.dtype(), DType::F32 | DType::F64) && self.device() == Device::Cpu;
        if known && other.dtype() == self.dtype() && other.device() == self.device() {
            return bind_expanded(Cross { axis: i as u8, gate: Gate::Open }, self, other);
        }
        let part = |x: &Tensor, k: usize| x.narrow(i as i64, k % 3, 1);
        let component = |k: usize| {
            let left = part(self, k + 1)?.mul(&part(other, k + 2)?)?;
            left.sub(&part(self, k + 2)?.mul(&part(other, k + 1)?)?)
        };
        cat(&(0..3).map(component).collect::<Result<Vec<_>>>()?, i as i64)
    }
}
