//! `Vjp`: the context of a reverse rule.

use super::{Node, Slot};
use crate::error::{Error, Result};
use crate::op::Needs;
use crate::tape::saving::SavedTensor;
use crate::tensor::{Aval, Tensor};
use std::sync::Arc;

/// The context of a reverse rule: saved tensors, shapes of the inputs, and which gradients are wanted.
pub struct Vjp<'a> {
    /// The node whose rule runs.
    pub node: &'a Arc<Node>,
    /// Its saved tensors.
    pub saved: &'a [SavedTensor],
    /// Which gradients are wanted.
    pub needs: Needs,
    /// Whether the node's tape records the operations of the rule.
    pub recorded: bool,
}

impl Vjp<'_> {
    /// Number of inputs of the operation.
    pub fn inputs(&self) -> usize {
        self.node.edges.len()
    }

    /// Whether the gradient of input `i` is wanted.
    pub fn needs(&self, i: usize) -> bool {
        self.needs.has(i)
    }

    #[inline]
    fn find(&self, slot: Slot) -> Option<&Tensor> {
        self.saved.iter().find(|kept| kept.slot == slot)?.tensor()
    }

    /// Input `i`, if it was saved.
    #[inline]
    pub fn saved_input(&self, i: usize) -> Option<&Tensor> {
        self.find(Slot::Input(i as u16))
    }

    /// Output `i`, if it was saved.
    #[inline]
    pub fn saved_output(&self, i: usize) -> Option<&Tensor> {
        self.find(Slot::Output(i as u16))
    }

    /// Input `i`, which the operation must have declared in its `Saves`.
    pub fn input(&self, i: usize) -> Result<&Tensor> {
        self.saved_input(i).ok_or_else(|| self.not_saved("input", i))
    }

    /// Output `i`, which the operation must have declared in its `Saves`.
    pub fn output(&self, i: usize) -> Result<&Tensor> {
        self.saved_output(i).ok_or_else(|| self.not_saved("output", i))
    }

    #[cold]
    fn not_saved(&self, what: &str, i: usize) -> Error {
        Error::autodiff(format!("internal: {} did not declare {what} {i} in its Saves", self.node.name()))
    }

    /// Shape, dtype and device of input `i`, which must have an edge.
    pub fn aval(&self, i: usize) -> Result<Aval> {
        match self.node.edges.get(i) {
            Some(Some(edge)) => Ok(*edge.aval()),
            _ => Err(self.not_saved("shape of input", i)),
        }
    }
}
