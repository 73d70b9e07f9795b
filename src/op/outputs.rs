//! What an operation returns: one tensor, or a list of them. The type of each is in `src/op/list.rs`.

use super::{Arrays, Kernel, Op, no_output};
use crate::array::Array;
use crate::error::Result;
use crate::interp::{Interp, tape};
use crate::tape::node::Node;
use crate::tensor::{Tensor, Tensors};
use smallvec::smallvec;
use std::sync::Arc;

/// An operation of the list, with the type of what it returns.
pub trait Operation: Kernel + Clone + Into<Op> {
    /// [`Tensor`], or [`Tensors`] where there are several outputs or their number varies.
    type Out: Outputs;
}

/// The outputs of an operation.
pub trait Outputs: Sized {
    /// Runs `op` on concrete arrays.
    fn eval(op: &impl Kernel, x: &[&Array]) -> Result<Self>;
    /// The outputs as an interpreter returns them.
    fn from_list(list: Tensors) -> Result<Self>;
    /// The outputs in order.
    fn list(&self) -> &[Tensor];
    /// The outputs as a list.
    fn into_list(self) -> Tensors;
    /// Makes them the outputs of `node`; those without derivatives stay as they are.
    fn on_tape(self, at: &Interp, node: Arc<Node>) -> Self;
}

impl Outputs for Tensor {
    #[inline(always)]
    fn eval(op: &impl Kernel, x: &[&Array]) -> Result<Tensor> {
        op.eval_one(x).map(Tensor::Array)
    }
    #[inline]
    fn from_list(mut list: Tensors) -> Result<Tensor> {
        list.pop().ok_or_else(no_output)
    }
    fn list(&self) -> &[Tensor] {
        std::slice::from_ref(self)
    }
    fn into_list(self) -> Tensors {
        smallvec![self]
    }
    #[inline(always)]
    fn on_tape(self, at: &Interp, node: Arc<Node>) -> Tensor {
        tape::output(at, self, node, 0)
    }
}

impl Outputs for Tensors {
    fn eval(op: &impl Kernel, x: &[&Array]) -> Result<Tensors> {
        let outputs: Arrays = op.eval(x)?;
        Ok(outputs.into_iter().map(Tensor::Array).collect())
    }
    fn from_list(list: Tensors) -> Result<Tensors> {
        Ok(list)
    }
    fn list(&self) -> &[Tensor] {
        self
    }
    fn into_list(self) -> Tensors {
        self
    }
    fn on_tape(self, at: &Interp, node: Arc<Node>) -> Tensors {
        self.into_iter().enumerate().map(|(i, y)| tape::output(at, y, node.clone(), i as u32)).collect()
    }
}
