//! The parts of a custom operation: the forward, its rules, and the plan that the forward makes for them.

use crate::interp::Interp;
use crate::ops::prelude::*;
use crate::tape::host_ref::Holder;
use std::sync::Arc;

/// A value that the rules need.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RuleInput {
    /// Input `i`.
    Input(usize),
    /// Output `i`.
    Output(usize),
    /// Hidden output `i`.
    Hidden(usize),
}

/// What the forward determines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForwardFacts {
    /// The number of outputs, hidden ones not counted.
    pub visible: usize,
    /// The values that the rules need, in their order, each once.
    pub saved: Vec<RuleInput>,
    /// Per output, whether it has no derivative.
    pub constant: Vec<bool>,
    /// Whether hidden outputs have derivatives; if so, all inputs are also saved, in reserve.
    pub traceable: bool,
    /// Per output, whether it shares memory with an argument or another output; empty if none does.
    pub shared: Vec<bool>,
}

/// A function with custom rules, for one call.
pub trait CustomRule: Holder {
    /// The public name.
    fn name(&self) -> &'static str;
    /// Returns the outputs, then the hidden ones if `hidden`, and determines the plan. Traces no derivatives.
    fn forward(&self, x: &[Tensor], hidden: bool) -> Result<Tensors>;
    /// Recomputes the outputs and hidden outputs with derivatives traced through them.
    fn retrace(&self, x: &[Tensor]) -> Result<Tensors>;
    /// The plan that the forward determined.
    fn plan(&self) -> Result<Arc<ForwardFacts>>;
    /// Returns the cotangent of each input from those of the outputs; `needs` says which are wanted.
    fn vjp(&self, saved: &[Tensor], g: &[Option<Tensor>], needs: &[bool]) -> Result<Grads>;
    /// Whether the node keeps what it saved, for other cotangents than these.
    fn keeps_saved(&self, _g: &[Option<Tensor>]) -> bool {
        false
    }
    /// Whether the cotangent of input `i`, which [`CustomRule::vjp`] leaves out where these outputs are
    /// `given` one, is zero everywhere; else nothing reaches the input.
    fn is_zero(&self, _i: usize, _given: &[bool]) -> bool {
        false
    }
    /// Whether the VJP runs Python code of the user's, which may read what has changed since the forward.
    fn runs_user_code(&self) -> bool {
        false
    }
    /// Returns the tangent of each output.
    fn jvp(&self, x: &[Tensor], saved: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads>;
    /// [`CustomRule::jvp`]; also returns the outputs if the rule computes them as well.
    fn push(&self, x: &[Tensor], saved: &[Tensor], t: &[Option<Tensor>]) -> Result<(Option<Tensors>, Grads)> {
        Ok((None, self.jvp(x, saved, t)?))
    }
    /// Whether the VJP is the transpose of the JVP.
    fn is_inlined(&self) -> bool {
        false
    }
    /// Computes the outputs of a whole batch by the user's rule; `None` without one: the forward is then
    /// batched as it runs. `at` is the batching interpreter.
    fn batch(&self, _at: &Arc<Interp>, _x: &[Batched], _hidden: bool) -> Option<Result<BatchedOutputs>> {
        None
    }
}
