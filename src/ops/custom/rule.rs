//! What a custom operation is made of: the forward, its rules, and what the forward settles for them.

use crate::error::Result;
use crate::interp::Interp;
use crate::op::{Batched, BatchedOutputs, Grads};
use crate::tape::host_ref::Holder;
use crate::tensor::{Tensor, Tensors};
use std::sync::Arc;

/// A value that the rules ask for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    /// Input `i`.
    Input(usize),
    /// Output `i`.
    Output(usize),
    /// Hidden output `i`.
    Hidden(usize),
}

/// What the forward settles.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The number of outputs, hidden ones not counted.
    pub visible: usize,
    /// What the rules ask for, in their order, each value once.
    pub saved: Vec<Source>,
    /// Per output, whether it has no derivative.
    pub constant: Vec<bool>,
    /// Whether hidden outputs have derivatives; the inputs are then kept in reserve.
    pub traceable: bool,
    /// Per output, whether its memory is that of an argument or of another output; empty for none.
    pub shared: Vec<bool>,
}

/// A function with rules of its own, for one call.
pub trait CustomRule: Holder {
    /// The public name.
    fn name(&self) -> &'static str;
    /// The outputs; with `hidden` also the hidden ones, after them. Settles the plan. Derivatives are not
    /// traced through this run.
    fn forward(&self, x: &[Tensor], hidden: bool) -> Result<Tensors>;
    /// The outputs and hidden outputs once more, for derivatives to be traced through.
    fn retrace(&self, x: &[Tensor]) -> Result<Tensors>;
    /// What the forward settled.
    fn plan(&self) -> Result<Arc<Plan>>;
    /// Per input its cotangent, from the outputs' cotangents; `needs` says which are wanted.
    fn vjp(&self, saved: &[Tensor], g: &[Option<Tensor>], needs: &[bool]) -> Result<Grads>;
    /// Per output its tangent.
    fn jvp(&self, x: &[Tensor], saved: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads>;
    /// [`CustomRule::jvp`] with the outputs, where the rule computes them as well.
    fn push(&self, x: &[Tensor], saved: &[Tensor], t: &[Option<Tensor>]) -> Result<(Option<Tensors>, Grads)> {
        Ok((None, self.jvp(x, saved, t)?))
    }
    /// Whether the VJP is the transpose of the JVP.
    fn is_inlined(&self) -> bool {
        false
    }
    /// The outputs of a whole batch, by a rule of the user's; without one the forward is batched as it runs.
    /// `at` is the batching interpreter.
    fn batch(&self, _at: &Arc<Interp>, _x: &[Batched], _hidden: bool) -> Option<Result<BatchedOutputs>> {
        None
    }
}
