//! Calls of the host within a program: what must be as it was after them.

use super::act::{Act, Planned};
use super::{Program, Source};
use crate::tape::node::Node;
use crate::watch::script::Called;
use std::sync::Arc;

/// What is so after a call of the host, too, unless the call does what it did not when the program was made.
#[derive(Clone)]
pub struct AfterCall {
    /// Which of the first leaves have a gradient.
    gradients: Vec<bool>,
    /// Whether something follows that reads what the call could have changed.
    is_read: bool,
}

impl Program {
    /// What calls left, and what follows them.
    pub(super) fn after_calls(&self, calls: Vec<Called>) -> Vec<AfterCall> {
        let is_call = |step: &Planned| matches!(step.act, Act::Call(_));
        let last = self.steps.iter().rposition(|step| !is_call(step));
        let outside = |&value: &u32| {
            matches!(self.values[self.base(value) as usize].source, Source::Fixed(_) | Source::Gradient(..))
        };
        let returned = self.outputs.iter().any(outside);
        let places = (0..self.steps.len()).filter(|&i| is_call(&self.steps[i]));
        let after = |(i, call): (usize, Called)| AfterCall {
            gradients: call.gradients,
            is_read: returned || last.is_some_and(|last| last > i),
        };
        places.zip(calls).map(after).collect()
    }

    /// Whether something follows a call of the host, by its number, that reads what it could have changed.
    pub fn reads_after(&self, call: usize) -> bool {
        self.calls.get(call).is_some_and(|call| call.is_read)
    }

    /// The memory of the gradients of all leaves.
    pub fn gradients(&self) -> Vec<Option<usize>> {
        let memory = |node: Option<Arc<Node>>| {
            node?.grad()?.as_ref().map(|slot| slot.concrete().map_or(0, |array| array.buffer().id()))
        };
        self.leaves.iter().map(|leaf| memory(leaf.node.upgrade())).collect()
    }

    /// Whether a call left the gradients where it left them when the program was made; `before` are those
    /// before it.
    pub fn keeps_gradients(&self, call: usize, before: &[Option<usize>]) -> bool {
        let Some(call) = self.calls.get(call) else { return true };
        let mut all = call.gradients.iter().zip(self.gradients()).zip(before);
        all.all(|((&has, now), before)| now.is_some() == has && (now.is_none() || now == *before))
    }
}
