//! The next floating point number towards another.

use crate::ops::pointwise::operand::{bind_met, promote};
use crate::ops::prelude::*;

/// The next number after `x` in the direction of `y`. Inputs: two floats of one dtype.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NextAfter;

impl Kernel for NextAfter {
    fn name(&self) -> &'static str {
        "nextafter"
    }
    fn eval(&self, x: &[&Array]) -> Result<Arrays> {
        one!(on_host(x, |x| crate::cpu::pointwise::neighbour::next_after(x[0], x[1])))
    }
    no_flops!();
}

impl Discrete for NextAfter {
    fn batch(&self, x: &[Batched], _size: usize) -> Result<BatchedOutputs> {
        aligned(*self, x)
    }
}

impl Tensor {
    /// The next number of the dtype after each element in the direction of `other`; NaN where either is.
    pub fn nextafter(&self, other: &Tensor) -> Result<Tensor> {
        bind_met(NextAfter, self, other, promote(self, other).to_float())
    }
}
