//! The tape of a transform whose function has returned. It is reentered while its history is walked, because
//! hooks and custom rules may use tensors of that function, which belong to it.
//!
//! Hooks and rules see values: the history of such a tensor is not part of this walk. Levels outside the
//! transform still differentiate it.

use super::prelude::*;
use crate::interp::{Interp, InterpGuard};

/// The ambient tape of a transform, whose parent is the tape that recorded the function.
pub struct FinishedTape(Arc<Interp>);

impl FinishedTape {
    /// Returns the tapes of the transform that this chain has just entered.
    pub fn of(chain: &Arc<Interp>) -> FinishedTape {
        FinishedTape(interp::below_autocast(chain).clone())
    }

    /// Whether the current chain still contains the tape.
    pub fn is_current(&self) -> bool {
        interp::current().contains(self.0.below().tag)
    }

    /// Enters both tapes, recording and ambient, on top of the current chain.
    #[must_use]
    pub fn enter(&self) -> InterpGuard {
        let tape = self.0.below().on_top_of(&interp::current());
        interp::enter(self.0.on_top_of(&tape))
    }

    /// Unwraps a tensor to its value below both tapes.
    pub fn below(&self, t: Tensor) -> Tensor {
        t.peeled(|tag| tag == self.0.tag || tag == self.0.below().tag)
    }
}
